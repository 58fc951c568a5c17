"""
Margin and slack rescaling
==========================

An output that costs more must be outscored by more (*margin rescaling*), or its violation counts more (*slack
rescaling*). The picture shows both losses of one example with three outputs besides the right one, along a line of
weights: margin rescaling still asks for more when a costly output is already outscored by 1, slack rescaling does not.
"""

import matplotlib.pyplot as plt
import numpy as np

cost = np.array([1.0, 2.0, 4.0])
steps = np.linspace(-1, 5, 400)
lead = steps[:, None] * np.array([1.0, 0.8, 1.2])  # by how much the right output is ahead of each other one

margin = np.maximum(0, (cost - lead).max(axis=1))
slack = np.maximum(0, (cost * (1 - lead)).max(axis=1))
figure, ax = plt.subplots(layout="constrained")
ax.plot(steps, margin, label="margin rescaling: max cost - lead")
ax.plot(steps, slack, label="slack rescaling: max cost (1 - lead)")
ax.set(xlabel="step along a direction", ylabel="loss", ylim=(-0.2, 8))
ax.legend()

# %%
# The same two losses for label sets, by a parameter:

from maxmargin import MultilabelClassifier
from maxmargin.datasets import load_recipes
from maxmargin.metrics import micro_f1

recipes = load_recipes()
X, y, X_test, y_test = recipes.data[:180], recipes.target[:180], recipes.data[180:], recipes.target[180:]
for rescaling in ("margin", "slack"):
    classifier = MultilabelClassifier(graph="full", rescaling=rescaling, C=0.1).fit(X, y)
    print(f"{rescaling:7} micro F1 {micro_f1(y_test, classifier.predict(X_test)):.3f}, {classifier.certificate_}")
