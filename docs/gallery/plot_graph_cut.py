"""
Cuts of graphs and volumes
==========================

:func:`~maxmargin.inference.graph_cut` finds the best two labels of the nodes of any graph, here of points whose
neighbours hold together. Volumes are grids in three dimensions, with 6, 18 or 26 neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from maxmargin.inference import graph_cut, grid_cut

rng = np.random.default_rng(0)
points = rng.uniform(-1, 1, (900, 2))
truth = np.abs(points[:, 1] - 0.4 * np.sin(3 * points[:, 0])) < 0.35
seen = np.where(rng.random(len(points)) < 0.75, truth, ~truth)  # a quarter of the labels is wrong
costs = np.stack([seen, ~seen], axis=1).astype(float)
_, near = cKDTree(points).query(points, 7)
edges = np.unique(np.sort(np.stack([np.repeat(np.arange(len(points)), 6), near[:, 1:].ravel()], axis=1)), axis=0)
labels, energy = graph_cut(costs, edges, np.full(len(edges), 0.3))

figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for ax, shown, name in zip(axes, (seen, labels == 1), ("points as seen", "after the cut"), strict=False):
    ax.scatter(*points.T, c=np.where(shown, "tab:green", "0.75"), s=9)
    ax.set_title(f"{name}: {100 * np.mean(shown == truth):.1f} % right", fontsize=10)

# %%
# A ball in a noisy volume, its middle slice:

z, y, x = np.mgrid[:40, :40, :40] - 19.5
ball = np.sqrt(x**2 + y**2 + z**2) < 13
noisy = ball + rng.normal(0, 1.2, ball.shape)
mask, energy = grid_cut(np.stack([noisy**2, (noisy - 1) ** 2], axis=-1), 0.8)
axes[2].imshow(noisy[20], cmap="Greys")
axes[2].set_title(f"a slice: {100 * np.mean((noisy > 0.5) == ball):.1f} % right", fontsize=10)
axes[3].imshow(mask[20], cmap="Greys")
axes[3].set_title(f"after the cut: {100 * np.mean(mask == ball):.1f} % right", fontsize=10)
for ax in axes:
    ax.axis("off")
