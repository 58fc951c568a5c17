"""
Matching two sets of points
===========================

Points in two pictures, some of which are missing in the other one. :func:`~maxmargin.inference.best_matching` links
pairs that are near each other and leaves the others alone: a pair whose score is below zero is no link.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.inference import best_matching, k_best_matchings

rng = np.random.default_rng(3)
first = rng.random((14, 2))
second = np.vstack([first[:10] + rng.normal(0, 0.04, (10, 2)), rng.random((4, 2))])
score = 0.15 - np.linalg.norm(first[:, None] - second[None], axis=-1)  # below zero beyond a distance of 0.15

found = best_matching(score)
figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.scatter(*first.T, label="first picture")
ax.scatter(*second.T, marker="s", label="second picture")
for i, j in found.links:
    ax.plot(*np.stack([first[i], second[j]]).T, color="0.4")
ax.set(title=f"{len(found.links)} links", aspect="equal")
ax.legend()

# %%
# How much worse are the next best matchings?

print([round(found.value - other.value, 4) for other in k_best_matchings(score, 4)])
