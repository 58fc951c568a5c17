"""
Labels in a hierarchy
=====================

A dog is a mammal, and a mammal is an animal. With ``hierarchy`` no answer breaks such rules, however the evidence
falls: a label is on only where the one above it is.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import MultilabelClassifier
from maxmargin.metrics import micro_f1

NAMES = ["animal", "mammal", "bird", "dog", "cat", "eagle", "duck", "plant", "tree", "oak", "pine", "flower"]
PARENT = np.array([-1, 0, 0, 1, 1, 2, 2, -1, 7, 8, 8, 7])  # the number of the label above, -1 for none
rng = np.random.default_rng(0)


def described(n):
    """Sets of labels with all labels above them, and noisy features."""
    Y = np.zeros((n, len(NAMES)), int)
    for row in Y:
        label = rng.integers(len(NAMES))
        while label >= 0:
            row[label] = 1
            label = PARENT[label]
    return Y @ mixing + rng.normal(0, 0.8, size=(n, 20)), Y


mixing = rng.normal(size=(len(NAMES), 20)) / 2
(X, y), (X_test, y_test) = described(150), described(400)
free = MultilabelClassifier(C=0.1).fit(X, y).predict(X_test)
bound = MultilabelClassifier(C=0.1, hierarchy=PARENT).fit(X, y).predict(X_test)

# %%
# Answers in which some label is on without the one above it, and how good the answers are:

below = np.flatnonzero(PARENT >= 0)
answers = {"labels alone": free, "hierarchy": bound}
broken = [100 * np.mean((found[:, below] > found[:, PARENT[below]]).any(axis=1)) for found in answers.values()]
scores = [100 * micro_f1(y_test, found) for found in answers.values()]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
titles = ("% of answers that break the hierarchy", "micro F1, %")
for ax, values, title in zip(axes, (broken, scores), titles, strict=True):
    ax.bar_label(ax.bar(answers.keys(), values, color=["tab:orange", "tab:green"], width=0.5), fmt="%.1f")
    ax.set(title=title, ylim=(0, 1.15 * max(values)))
