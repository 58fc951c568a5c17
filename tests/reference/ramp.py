"""Ramp losses over enumerated outputs: values, linearisations, majorants by a conic solver, the global minimum.

    J(w) = |w|^2/2 + sum_i C_i [ max_y (above cost_i(y) - w.psi_i(y)) - max_y (below cost_i(y) - w.psi_i(y)) ]

`planes[i] = (psi, cost)` has a row for every output of example i, the true one (zeros) included.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from reference.qp import PlaneList, _conic, _positive, _stack


class Minimum(NamedTuple):
    weights: np.ndarray
    objective: float


def parts(planes: PlaneList, w, weight: float) -> np.ndarray:
    """max_y (weight cost_i(y) - w.psi_i(y)) of each example."""
    return np.array([(weight * cost - psi @ w).max() for psi, cost in planes])


def ramp_objective(planes: PlaneList, C, w, above: float, below: float) -> float:
    """J(w)."""
    return float(0.5 * w @ w + np.asarray(C) @ (parts(planes, w, above) - parts(planes, w, below)))


def linear_term(planes: PlaneList, C, outputs, below: float) -> tuple[np.ndarray, float]:
    """(v, offset): what is left of the concave part when the outputs that attain it are held fixed."""
    rows = [(psi[y], below * cost[y]) for (psi, cost), y in zip(planes, outputs, strict=True)]
    v = sum(c * a for c, (a, _) in zip(C, rows, strict=True))
    return v, -float(sum(c * b for c, (_, b) in zip(C, rows, strict=True)))


def linear_term_at(planes: PlaneList, C, w, below: float) -> tuple[np.ndarray, float]:
    """The same with the outputs that are best at w."""
    return linear_term(planes, C, [int((below * cost - psi @ w).argmax()) for psi, cost in planes], below)


def minimise_majorant(planes: PlaneList, C, v, offset: float, above: float, positive=None) -> Minimum:
    """min |w|^2/2 + w.v + offset + sum_i C_i max_y (above cost_i(y) - w.psi_i(y)), w_j >= 0 where positive."""
    a, cost, example, d = _stack(planes)
    n, m = len(planes), len(cost)
    sign = _positive(positive, d)
    pick = sparse.csc_matrix((np.ones(m), (np.arange(m), example)), shape=(m, n))
    rows = sparse.vstack(
        [
            sparse.hstack([-sparse.csc_matrix(a), -pick]),
            sparse.hstack([-sparse.eye(d, format="csr")[sign], sparse.csc_matrix((len(sign), n))]),
        ],
        format="csc",
    )
    curvature = sparse.diags(np.concatenate([np.ones(d), np.zeros(n)]), format="csc")
    right = np.concatenate([-above * cost, np.zeros(len(sign))])
    x, _ = _conic(curvature, np.concatenate([v, C]), rows, right, [clarabel.NonnegativeConeT(len(right))])
    w = x[:d].copy()
    w[sign] = np.maximum(w[sign], 0)
    return Minimum(w, float(0.5 * w @ w + w @ v + offset + np.asarray(C) @ parts(planes, w, above)))


def global_minimum(planes: PlaneList, C, above: float, below: float) -> Minimum:
    """The least of the minima over all choices of one output an example for the concave part: J is their minimum."""
    found = []
    for outputs in product(*(range(len(cost)) for _, cost in planes)):
        v, offset = linear_term(planes, C, outputs, below)
        found.append(minimise_majorant(planes, C, v, offset, above))
    return min(found, key=lambda minimum: minimum.objective)
