"""The linear program of L1-regularised large margins over every output, by a general solver."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def lp_optimum(planes, weight, positive=None) -> float:
    """``min |w|_1 + sum_i C_i max(0, max_y b_i(y) - w . a_i(y))`` over all rows; planes[i] = (A_i, b_i)."""
    n, d = len(planes), planes[0][0].shape[1]
    rows = [np.hstack([-A, A, -np.eye(n)[[i] * len(b)]]) for i, (A, b) in enumerate(planes)]
    tops = np.full(d, np.inf) if positive is None else np.where(positive, 0.0, np.inf)
    bounds = [(0.0, np.inf)] * d + [(0.0, top) for top in tops] + [(0.0, np.inf)] * n
    cost = np.concatenate([np.ones(2 * d), np.broadcast_to(np.asarray(weight, float), n)])
    found = linprog(cost, np.vstack(rows), np.concatenate([-b for _, b in planes]), bounds=bounds)
    assert found.status == 0
    return float(found.fun)


def unit(psi, costs):
    """Rows of unit margins: every wrong output must be outscored by 1."""
    wrong = np.asarray(costs) > 0
    return psi[wrong], np.ones(int(wrong.sum()))
