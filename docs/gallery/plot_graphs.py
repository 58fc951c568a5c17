"""
Labels of the nodes of graphs
=============================

Rooms of a house: each has features that say little about its kind, but doors join kinds that belong together.
:class:`~maxmargin.GraphLabeler` learns both, and chooses by itself how to search: trees, cuts, junction trees, or
messages with branch and bound. Where a search cannot be exact, the certificate counts what it may have missed.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import GraphLabeler, MulticlassClassifier
from maxmargin.datasets import load_houses

shipped = load_houses()
houses, kinds = shipped.data, shipped.target
labeler = GraphLabeler(C=1.0).fit(houses[:80], kinds[:80])
alone = MulticlassClassifier(C=1.0).fit(np.vstack([h["node"] for h in houses[:80]]), np.concatenate(kinds[:80]))
print(labeler.method_, labeler.certificate_)

# %%
# How often are rooms recognised, alone and with their neighbours?

found = labeler.predict(houses[80:])
right = np.mean(np.concatenate(found) == np.concatenate(kinds[80:]))
right_alone = np.mean(alone.predict(np.vstack([h["node"] for h in houses[80:]])) == np.concatenate(kinds[80:]))

figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
angle = 2 * np.pi * np.arange(8) / 8
left.plot(np.cos(np.append(angle, 0)), np.sin(np.append(angle, 0)), color="0.6", zorder=1)
for a, true, label in zip(angle, kinds[80], found[0], strict=True):
    colour = "tab:green" if true == label else "tab:red"
    left.text(np.cos(a), np.sin(a), label, ha="center", va="center", color="white",
              bbox={"boxstyle": "round", "facecolor": colour, "edgecolor": "none"})  # fmt: skip
left.set(xlim=(-1.4, 1.4), ylim=(-1.3, 1.3), title="A house: right (green) and wrong (red)")
left.axis("off")
middle.bar_label(
    middle.bar(["each room alone", "whole houses"], [100 * right_alone, 100 * right], width=0.5), fmt="%.0f"
)
middle.set(ylabel="% of rooms right")
