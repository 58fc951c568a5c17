"""
Paths of a lattice
==================

What a speech recogniser may have heard, with a score for each arc. :func:`~maxmargin.inference.best_path` finds the
best path, and :func:`~maxmargin.inference.k_best_paths` the best ones of which no two say the same, however many paths
there are. Nothing is learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import Lattice
from maxmargin.inference import best_path, k_best_paths
from maxmargin.reports import LatticeDisplay

tails, heads = [0, 0, 1, 2, 2, 0, 3, 3, 4], [1, 2, 2, 3, 3, 3, 5, 4, 5]
words = ["wreck", "recognise", "a nice", "beach", "speech", "recognise speech", "today", "to", "day"]
scores = np.array([-1.0, -0.8, -0.5, -1.2, -0.6, -1.5, -0.4, -0.9, -0.7])
print("best:", " ".join(words[arc] for arc in best_path(tails, heads, scores).arcs))

lattice = Lattice(6, tails, heads, scores[:, None], words, names=["score"])
figure, axes = plt.subplots(3, 1, figsize=(9, 6.4), layout="constrained")
for ax, path in zip(axes, k_best_paths(tails, heads, scores, 3, labels=words), strict=True):
    LatticeDisplay(lattice, path.arcs.tolist()).plot(ax)
    ax.set_title(f"{' '.join(words[arc] for arc in path.arcs)}: {path.score:.1f}", fontsize=10)
