"""All label sets of tiny problems: scores, costs and planes, written out independently of the library."""

from __future__ import annotations

from itertools import product

import numpy as np


def all_sets(M: int) -> np.ndarray:
    return np.array(list(product([0, 1], repeat=M)))


def features(x, y, edges) -> np.ndarray:
    """x (F,) in the column of each label that is on, row by row (F, M); then 1 for each edge with both ends on."""
    return np.concatenate([np.outer(x, y).ravel(), [float(y[j] and y[k]) for j, k in edges]])


def cost(t, y, kind="hamming", weights=None) -> np.ndarray:
    """Of sets y (..., M). ``weights`` (M, 2): of adding and of missing a label; two empty sets cost nothing."""
    both, union = (t & y).sum(axis=-1), (t | y).sum(axis=-1)
    if kind in ("f1", "jaccard"):
        share = 2 * both / np.maximum(both + union, 1) if kind == "f1" else both / np.maximum(union, 1)
        return np.where(union > 0, 1.0 - share, 0.0)
    weights = np.ones((len(t), 2)) if weights is None else weights
    return np.where(t, weights[:, 1] * (1 - y), weights[:, 0] * y).sum(axis=-1)


def value(h, c, lam, rescaling):
    """What each rescaling maximises at h = score over that of the truth, and cost c."""
    return {
        "margin": h + lam * c,
        "slack": c * (lam + h),
        "sqrt_slack": np.sqrt(c) * (lam + h),
        "unit": np.where(c > 0, lam + h, 0.0),
    }[rescaling]


def planes(X, Y, edges, rescaling, kind="hamming", weights=None):
    """(A_i, b_i) over all sets, for the general solver; X has the constant feature."""
    found = []
    for x, t in zip(X, Y, strict=True):
        sets = all_sets(len(t))
        psi = np.array([features(x, t, edges) - features(x, y, edges) for y in sets])
        c = cost(t, sets, kind, weights)
        scale = {"slack": c, "sqrt_slack": np.sqrt(c), "unit": (c > 0) * 1.0, "margin": np.ones(len(c))}[rescaling]
        found.append((scale[:, None] * psi, c if rescaling == "margin" else scale))
    return found
