"""
Sets of labels, and which go together
=====================================

A cookbook prints several labels on a recipe. :class:`~maxmargin.MultilabelClassifier` scores a set of labels by its
ingredients and, with ``graph="full"``, by a weight for each pair of labels. The best of all sets is found exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import MultilabelClassifier
from maxmargin.datasets import load_recipes
from maxmargin.metrics import micro_f1, subset_accuracy

recipes = load_recipes()
X, y, X_test, y_test = recipes.data[:180], recipes.target[:180], recipes.data[180:], recipes.target[180:]
classifier = MultilabelClassifier(graph="full", C=0.1).fit(X, y)
found = classifier.predict(X_test)
print(f"micro F1 {micro_f1(y_test, found):.3f}, whole sets right {subset_accuracy(y_test, found):.3f}")

# %%
# The weights of pairs: red pairs seldom stand on the same recipe, blue ones often do.

names = recipes.target_names
table = np.zeros((len(names), len(names)))
for (a, b), weight in zip(classifier.edges_, classifier.edge_coef_, strict=True):
    table[a, b] = table[b, a] = weight
figure, ax = plt.subplots(layout="constrained")
limit = np.abs(table).max()
image = ax.imshow(table, cmap="RdBu", vmin=-limit, vmax=limit)
ax.set_xticks(range(len(names)), names, rotation=60, ha="right")
ax.set_yticks(range(len(names)), names)
ax.set_title("Weights of pairs of labels")
figure.colorbar(image)

# %%
# The best three sets of one recipe, with their scores:

for labels, score in classifier.predict_kbest(X_test[:1], 3)[0]:
    print(f"{score:6.2f}", sorted(names[k] for k in labels))
