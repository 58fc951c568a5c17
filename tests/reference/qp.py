"""The large-margin problem with all planes written out, solved by a conic solver along two routes.

    min_w  |w|^2/2 + sum_i C_i xi_i          or   + sum_i C_i/2 xi_i^2      (squared)
    s.t.   xi_i >= b_i(y) - a_i(y).w  for all y,   xi_i >= 0,   w_j >= 0 where positive

`planes` is a list over examples of (A_i, b_i) with A_i (m_i, d) and b_i (m_i,); C has one weight per example.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

PlaneList = list[tuple[np.ndarray, np.ndarray]]


class Solution(NamedTuple):
    weights: np.ndarray  # (d,)
    objective: float
    multipliers: list[np.ndarray]  # one (m_i,) an example, without the zero plane


def solve_primal(planes: PlaneList, C, *, squared: bool = False, positive=None) -> Solution:
    """Variables (w, xi), one row per plane; the multipliers are the solver's dual variables."""
    a, b, example, d = _stack(planes)
    n, m = len(planes), len(b)
    C = np.broadcast_to(np.asarray(C, float), n)
    sign = _positive(positive, d)
    pick = sparse.csc_matrix((np.ones(m), (np.arange(m), example)), shape=(m, n))
    curvature = sparse.diags(np.concatenate([np.ones(d), C if squared else np.zeros(n)]), format="csc")
    linear = np.concatenate([np.zeros(d), np.zeros(n) if squared else C])
    rows = sparse.vstack(
        [
            sparse.hstack([-sparse.csc_matrix(a), -pick]),
            sparse.hstack([sparse.csc_matrix((n, d)), -sparse.eye(n)]),
            sparse.hstack([-sparse.eye(d, format="csr")[sign], sparse.csc_matrix((len(sign), n))]),
        ],
        format="csc",
    )
    right = np.concatenate([-b, np.zeros(n + len(sign))])
    x, z = _conic(curvature, linear, rows, right, [clarabel.NonnegativeConeT(len(right))])
    w = x[:d].copy()
    w[sign] = np.maximum(w[sign], 0)
    return Solution(w, objective(planes, C, w, squared=squared), _split(np.maximum(z[:m], 0), planes))


def solve_dual(planes: PlaneList, C, *, squared: bool = False, positive=None) -> Solution:
    """Variables (w, alpha, u, zeta): max b.alpha - |w|^2/2 - sum zeta_i^2/(2 C_i), w = A'alpha + u, u >= 0 on positive.

    zeta_i is the sum of the multipliers of example i; linear slacks bound it by C_i instead of charging for it.
    The objective returned is the dual one, computed from alpha with the best u.
    """
    a, b, example, d = _stack(planes)
    n, m = len(planes), len(b)
    C = np.broadcast_to(np.asarray(C, float), n)
    sign = _positive(positive, d)
    p = len(sign)
    charge = np.where(C > 0, 1 / np.where(C > 0, C, 1.0), 0.0) if squared else np.zeros(n)
    curvature = sparse.diags(np.concatenate([np.ones(d), np.zeros(m + p), charge]), format="csc")
    linear = np.concatenate([np.zeros(d), -b, np.zeros(p + n)])
    pick = sparse.csc_matrix((np.ones(m), (example, np.arange(m))), shape=(n, m))
    equal = sparse.vstack(
        [
            sparse.hstack(
                [
                    -sparse.eye(d),
                    sparse.csc_matrix(a.T),
                    sparse.eye(d, format="csc")[:, sign],
                    sparse.csc_matrix((d, n)),
                ]
            ),
            sparse.hstack([sparse.csc_matrix((n, d)), pick, sparse.csc_matrix((n, p)), -sparse.eye(n)]),
        ]
    )
    lower = sparse.hstack([sparse.csc_matrix((m + p, d)), -sparse.eye(m + p), sparse.csc_matrix((m + p, n))])
    capped = np.flatnonzero(C == 0) if squared else np.arange(n)
    upper = sparse.hstack([sparse.csc_matrix((len(capped), d + m + p)), sparse.eye(n, format="csr")[capped]])
    rows = sparse.vstack([equal, lower, upper], format="csc")
    right = np.concatenate([np.zeros(d + n + m + p), C[capped]])
    cones = [clarabel.ZeroConeT(d + n), clarabel.NonnegativeConeT(m + p + len(capped))]
    x, _ = _conic(curvature, linear, rows, right, cones)
    alpha = np.maximum(x[d : d + m], 0)
    w = a.T @ alpha
    w[sign] = np.maximum(w[sign], 0)  # the best u for this alpha
    zeta = np.bincount(example, weights=alpha, minlength=n)
    value = b @ alpha - 0.5 * w @ w - 0.5 * charge @ zeta**2
    return Solution(w, float(value), _split(alpha, planes))


def objective(planes: PlaneList, C, w, *, squared: bool = False) -> float:
    """The primal value of w, the slacks being the smallest possible ones."""
    slack = np.array([max(0.0, (b - a @ w).max(initial=0.0)) for a, b in planes])
    C = np.broadcast_to(np.asarray(C, float), len(planes))
    return float(0.5 * w @ w + (0.5 * C @ slack**2 if squared else C @ slack))


def _stack(planes: PlaneList) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    a = np.vstack([np.asarray(a, float) for a, _ in planes])
    b = np.concatenate([np.asarray(b, float) for _, b in planes])
    example = np.repeat(np.arange(len(planes)), [len(b) for _, b in planes])
    return a, b, example, a.shape[1]


def _positive(positive, d: int) -> np.ndarray:
    return np.flatnonzero(np.zeros(d, bool) if positive is None else np.broadcast_to(np.asarray(positive, bool), d))


def _split(x: np.ndarray, planes: PlaneList) -> list[np.ndarray]:
    return np.split(x, np.cumsum([len(b) for _, b in planes])[:-1])


def _conic(curvature, linear, rows, right, cones) -> tuple[np.ndarray, np.ndarray]:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(curvature, linear, rows, right, cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        raise RuntimeError(f"the reference solver ended with {solution.status}")
    return np.array(solution.x), np.array(solution.z)
