"""Rehearsal: L1 regularisation by a linear program of its own, with a certificate. New files only.

min  |w|_1 + sum_i C_i loss_i(w)        max  sum alpha b   over  |sum alpha a|_inf <= 1,  sum_y alpha_i(y) <= C_i
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from maxmargin.certificate import Certificate
from maxmargin.contracts import BoundModel
from maxmargin.formulations.problem import Problem, example_weights
from maxmargin.oracles.counting import CountingOracle
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.parameters import Parameters
from maxmargin.planes import Planes
from maxmargin.solvers.base import BaseSolver


@dataclass(frozen=True)
class L1:
    """``R(w) = |w|_1``; its conjugate is 0 in the unit cube and infinite outside."""

    traits = frozenset({"own_l1"})
    positive = None
    fingerprint = " l1"

    def value(self, w):
        return float(np.abs(w).sum())

    def conjugate(self, u):
        return 0.0 if np.abs(u).max(initial=0.0) <= 1.0 + 1e-12 else np.inf

    def weights(self, u):
        raise ValueError("a linear program finds the weights; u does not determine them")

    curvature = weights

    def feasible(self, w):
        return w

    def lower_bound(self, linear, u):
        scale = min(1.0, 1.0 / max(float(np.abs(u).max(initial=0.0)), 1e-300))
        return scale * linear, scale


class L1Hinge(Parameters):
    def problem(self, model: BoundModel, *, C=1.0, sample_weight=None, positive=None) -> Problem:
        weight, _ = example_weights("hinge", C, sample_weight, model.n_examples)
        return Problem(ModelOracle(model), weight, model.n_weights, L1())


@dataclass
class LPState:
    problem: Problem
    oracle: CountingOracle
    w: np.ndarray
    planes: list[Planes] = field(default_factory=list)
    linear: float = 0.0
    u: np.ndarray | float = 0.0
    rounds, unproven = None, 0
    oracle_calls = property(lambda self: self.oracle.oracle_calls)
    argmax_calls = property(lambda self: self.oracle.argmax_calls)
    seconds = property(lambda self: {"oracle": self.oracle.seconds, "solver": 0.0})

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"w": self.w}


class CuttingPlaneLP(BaseSolver):
    """One linear program per round, over all planes found so far; both the solver and its engine."""

    handles = frozenset({"own_l1"})

    def engine(self, problem, random_state=None):
        return self

    def init(self, problem: Problem, warm=None) -> LPState:
        return LPState(problem, CountingOracle(problem.oracle), np.zeros(problem.n_weights))

    def certificate(self, state) -> Certificate:
        planes = state.oracle.planes(state.w, np.arange(state.problem.n_examples))
        state.planes.append(planes)
        primal = state.problem.primal(state.w, planes.losses(state.problem.n_examples))
        return Certificate(primal, state.problem.lower_bound(state.linear, state.u))

    def step_calls(self, state) -> int:
        return state.problem.n_examples

    def step(self, state) -> None:
        planes, C = Planes.concatenate(state.planes), state.problem.weight
        A, d, n = planes.to_csr(), state.problem.n_weights, len(C)
        owner = sp.csr_array((np.ones(len(planes)), (np.arange(len(planes)), planes.example)), (len(planes), n))
        rows = sp.hstack([-A, A, -owner]).tocsr()  # b - A (w+ - w-) <= slack
        found = linprog(np.concatenate([np.ones(2 * d), C]), A_ub=rows, b_ub=-planes.b, method="highs")
        state.w = found.x[:d] - found.x[d : 2 * d]
        alpha = np.maximum(-found.ineqlin.marginals, 0.0)
        state.linear, state.u = float(alpha @ planes.b), A.T @ alpha

    def weights(self, state) -> np.ndarray:
        return state.w

    def certificate_due(self, state) -> bool:
        return True

    may_end = certificate_due

    def finished(self, state) -> str | None:
        return None

    def conclude(self, state, certificate, code) -> Certificate:
        return certificate

    def from_arrays(self, problem, arrays) -> LPState:
        return self.init(problem)
