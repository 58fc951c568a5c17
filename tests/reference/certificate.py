"""Primal, dual and gap recomputed from all enumerated planes by plain numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Recomputed(NamedTuple):
    primal: float  # from the weights and all planes
    dual: float  # from the multipliers and the planes only
    gap: float
    weights: np.ndarray  # the weights that the multipliers stand for


def recompute(weights, multipliers, planes, C, *, squared=False, positive=None, tolerance=1e-9) -> Recomputed:
    """Certificate of any weights and any feasible multipliers of the enumerated problem (see ``qp``).

    multipliers[i] (m_i,) belongs to planes[i]; it may be None for the primal alone (the dual is then that of 0).
    Infeasible multipliers are an error, since their dual value would prove nothing.
    """
    C = np.broadcast_to(np.asarray(C, float), len(planes))
    w = np.asarray(weights, float)
    slack = np.array([max(0.0, (b - a @ w).max(initial=0.0)) for a, b in planes])
    primal = 0.5 * w @ w + (0.5 * C @ slack**2 if squared else C @ slack)

    v, linear, charge = np.zeros(len(w)), 0.0, 0.0
    for i, (a, b) in enumerate(planes if multipliers is not None else []):
        alpha = np.asarray(multipliers[i], float)
        if alpha.shape != b.shape or not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError(f"example {i}: multipliers must be {len(b)} finite numbers >= 0, got {alpha}")
        total = alpha.sum()
        if (not squared or C[i] == 0) and total > C[i] * (1 + tolerance) + 1e-300:
            raise ValueError(f"example {i}: multipliers sum to {total}, more than C = {C[i]}")
        v += a.T @ alpha
        linear += b @ alpha
        charge += total**2 / (2 * C[i]) if squared and C[i] > 0 else 0.0
    if positive is not None:
        v = np.where(np.broadcast_to(np.asarray(positive, bool), v.shape), np.maximum(v, 0.0), v)
    dual = linear - 0.5 * v @ v - charge
    return Recomputed(float(primal), float(dual), float(primal - dual), v)
