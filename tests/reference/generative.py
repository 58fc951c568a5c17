"""Generative models with a margin, all planes written out, by a conic solver with exponential cones.

    min_theta  c . (ln c - theta) + sum_k C_k xi_k    (or C_k/2 xi_k^2), c normalised in the logarithm
    s.t.       xi_k >= b_k(s) - a_k(s) . theta,  xi_k >= 0,  log sum exp(theta_j) <= 0 for every table j

`planes` is a list over examples of (A_k, b_k); `starts` bounds the tables.
"""

from __future__ import annotations

import itertools
import warnings

import cvxpy as cp
import numpy as np

from maxmargin.contracts import Sum
from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.problem import Problem
from maxmargin.models.base import digest
from maxmargin.models.tables import Tables
from maxmargin.planes import Planes

SUBSETS = [[0, 1, 2], [2, 3], [3, 4, 5], [5, 0]]  # a stream with overlaps that covers six examples
BLOCKS = {  # settings of the proximal solver
    "examples in turn": {},
    "whole set": {"blocks": "one"},
    "whole set, limit 8": {"blocks": "one", "limit": 8},
    "groups together": {"blocks": 3},
    "groups in turn": {"blocks": 3, "visits": 1},
    "product": {"blocks": "product"},
    "product in turn": {"blocks": "product", "visits": 2},
    "looks again": {"blocks": "one", "refind": True},
}


def optimum(
    planes, C, c, starts, *, squared=False, penalty="sum", gamma=0.0, centre=None, u=0.0
) -> tuple[float, np.ndarray]:
    """(optimal value, theta) of the objective minus ``u . theta``.

    penalty="max" over lists of examples instead: that is another problem, for contrast.
    """
    if not planes:  # older releases of cvxpy have no variables without entries
        planes, C = [(np.zeros((1, starts[-1])), np.zeros(1))], np.zeros(1)
    theta, xi = cp.Variable(starts[-1]), cp.Variable(len(planes), nonneg=True)
    limits = [cp.log_sum_exp(theta[a:b]) <= 0 for a, b in itertools.pairwise(starts)]
    for k, (A, b) in enumerate(planes):
        limits += [xi[k] >= b - A @ theta] if len(b) else []
    slack = cp.multiply(np.asarray(C) * (0.5 if squared else 1.0), cp.square(xi) if squared else xi)
    if isinstance(penalty, str):
        loss = cp.sum(slack)
    else:
        loss = cp.max(cp.hstack([cp.sum(slack[np.asarray(group)]) for group in penalty]))
    proximal = 0.0 if centre is None else 0.5 * gamma * cp.sum_squares(theta - centre)
    problem = cp.Problem(cp.Minimize(-(c + u) @ theta + loss + proximal), limits)
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a last digit short of these tolerances is fine
        problem.solve(solver=cp.CLARABEL, **tight)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value) - entropy(c, starts), np.asarray(theta.value)


def entropy(c, starts) -> float:
    """``- c . ln c``, each table divided by its sum in the logarithm."""
    return float(sum(-c[a:b] @ np.log(c[a:b] / c[a:b].sum()) for a, b in itertools.pairwise(starts)))


def objective(planes, C, c, theta, *, squared=False) -> float:
    """At theta; tables of c sum to 1."""
    losses = np.array([max(0.0, (b - A @ theta).max(initial=0.0)) for A, b in planes])
    return float(c @ (np.log(c) - theta) + np.asarray(C) @ (0.5 * losses**2 if squared else losses))


class ArrayOracle:
    """An oracle over enumerated planes; the zero plane of the truth is implicit. `several` planes of each example."""

    batch_hint = 1

    def __init__(self, planes, n_weights: int, several: int = 1, lift=None) -> None:
        self.planes_of, self.n_weights, self.n_examples, self.several = planes, n_weights, len(planes), several
        self.lift = lift
        self.n_columns = self.longest = n_weights + (0 if lift is None else len(lift))

    @property
    def fingerprint(self) -> str:
        return digest(*(part for pair in self.planes_of for part in pair))

    def fused(self):
        return None

    def spread(self):
        return None

    def predicting(self):
        raise NotImplementedError

    def sum(self, w, examples, scale):
        """As an oracle's: the weighted sum of the planes, and the losses."""
        planes = self.planes(w, examples)
        first = np.flatnonzero(np.diff(planes.example, prepend=-1))
        dense = planes.to_csr().toarray()[first]
        return Sum(np.asarray(scale) @ dense, float(np.asarray(scale) @ planes.b[first]), planes.bound[first])

    def planes(self, w, examples, most=1) -> Planes:
        rows, offsets, owner, bound = [], [], [], []
        for k in examples:
            A, b = self.planes_of[k]
            values = b - A @ w[: self.n_weights]
            order = np.argsort(-values, kind="stable")[: self.several]
            order = order[values[order] > 0]
            top = max(0.0, values.max(initial=0.0))
            for i in order if len(order) else [-1]:
                a = np.zeros(self.n_columns)
                if i >= 0:
                    a[: self.n_weights] = A[i]
                if i >= 0 and self.lift is not None:
                    a[self.n_weights + k] = self.lift[k]
                index = np.flatnonzero(a)
                rows.append((index, a[index]))
                offsets.append(b[i] if i >= 0 else 0.0)
                owner.append(k)
                bound.append(top)
        return Planes.from_rows(rows, np.array(offsets), np.array(owner), np.array(bound), self.n_columns)


def generative_problem(planes, C, c, starts, squared=False, *, oracle=ArrayOracle, several=1, pull=0.0) -> Problem:
    """The library's problem over enumerated planes."""
    weight = np.asarray(C, float)
    lift = np.where(weight > 0, 1 / np.sqrt(np.where(weight > 0, weight, 1.0)), 0.0) if squared else None
    regulariser = TableDivergence(Tables(starts), c, pull)
    return Problem(oracle(planes, len(c), several, lift), weight, len(c), regulariser, lift)


def random_problem(seed: int, *, sizes=(3, 2, 4), n=4, outputs=5, uniform=False):
    """(planes, c, starts): small integer counts, some entries that the truth never uses, costs with zeros."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    planes = []
    for _ in range(n):
        truth = rng.poisson(1.0, starts[-1]) * (rng.random(starts[-1]) < 0.7)
        counts = rng.poisson(1.0, (outputs, starts[-1]))
        planes.append(((truth - counts).astype(float), rng.integers(0, 4, outputs).astype(float)))
    c = [np.full(s, 1.0 / s) if uniform else rng.dirichlet(np.full(s, 2.0)) + 1e-3 for s in sizes]
    return planes, np.concatenate([x / x.sum() for x in c]), starts
