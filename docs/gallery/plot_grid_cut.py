"""
A minimum cut of a grid
=======================

:func:`maxmargin.inference.grid_cut` finds the mask of least energy, the costs of its pixels plus a price for each pair
of neighbours that differ, exactly. It needs no training and no other part of the library.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.inference import grid_cut

rng = np.random.default_rng(0)
row, column = np.mgrid[:120, :160]
truth = (np.hypot(row - 60, column - 50) < 34) | ((np.abs(row - 60) < 22) & (np.abs(column - 120) < 26))
noisy = truth + rng.normal(0, 0.9, truth.shape)

costs = np.stack([noisy**2, (noisy - 1) ** 2], axis=-1)  # of labels 0 and 1 at each pixel
figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
axes[0].imshow(noisy, cmap="Greys")
axes[0].set_title("noisy")
for ax, price in zip(axes[1:], (0.0, 1.0, 3.0), strict=True):
    mask, energy = grid_cut(costs, price)
    ax.imshow(mask, cmap="Greys")
    ax.set_title(f"price {price:g}: {100 * np.mean(mask == truth):.1f} % right")
for ax in axes:
    ax.axis("off")

# %%
# :class:`~maxmargin.inference.GridCut` keeps its flow, so that a cut after a change takes a fraction of the time.

from maxmargin.inference import GridCut

cut = GridCut(truth.shape)
_, before = cut.solve(costs, 1.0)
costs[:20] += [0.0, 5.0]  # the upper rows are background for certain
mask, after = cut.solve(costs)
print(f"energy {before:.1f} before, {after:.1f} after the change")
