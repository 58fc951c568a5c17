"""
Marginals of a small network
============================

Who votes for what, when friends like to agree? :class:`~maxmargin.inference.JunctionTree` computes exact marginals of
tables over discrete variables, here one table for each person and one for each friendship, and again after one vote is
known.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.inference import JunctionTree

people = ["Anna", "Ben", "Cara", "Dan", "Eva", "Finn"]
friends = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
tree = JunctionTree.build([2] * 6, [*((v,) for v in range(6)), *friends])
print(f"width {tree.width}")


def chances(leaning):
    """Probability of voting yes, by how much each person leans to it."""
    own = [[0.0, lean] for lean in leaning]
    agree = [[0.8, 0.0, 0.0, 0.8]] * len(friends)
    _, variables = tree.marginals(np.concatenate([np.ravel(own), np.ravel(agree)]))
    return [yes for no, yes in variables]


before = chances([1.0, 0.0, 0.0, 0.0, 0.0, -1.0])
after = chances([1.0, 0.0, 0.0, -50.0, 0.0, -1.0])  # Dan votes no

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
place = np.arange(6)
ax.bar(place - 0.2, before, width=0.4, label="before")
ax.bar(place + 0.2, after, width=0.4, label="when Dan votes no")
ax.axhline(0.5, color="0.5", linewidth=1)
ax.set_xticks(place, people)
ax.set(ylabel="probability of yes", ylim=(0, 1))
ax.legend()
