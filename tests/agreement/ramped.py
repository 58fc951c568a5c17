"""Tiny problems with a ramp loss: CCCP round any solver, and where it stands by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.solvers.cccp import CCCP
from maxmargin.solvers.driver import Result, run
from reference.ramp import Minimum, linear_term, linear_term_at, minimise_majorant, ramp_objective

COST_WEIGHTS = {"cost_diminished": (1.0, -1.0), "best_output": (1.0, 0.0), "cost_diminished_vs_best": (0.0, -1.0)}

# problems with several rounds and a concave set that is not empty at the end
CASES = [
    (Tiny("chain", C=3.0, seed=4), "cost_diminished"),
    (Tiny("chain", cost="matrix", C=3.0, seed=1), "best_output"),
    (Tiny("chain", signed=True, C=3.0, seed=4), "cost_diminished"),
    (Tiny("chain", signed=True, cost="matrix", weighted=True, C=3.0, seed=5), "best_output"),
    (Tiny("multiclass", cost="matrix", C=3.0, seed=3), "best_output"),
    (Tiny("multiclass", signed=True, weighted=True, C=3.0, seed=2), "best_output"),
]
UNSIGNED = [case for case in CASES if not case[0].signed]

EXACT = {
    "auto": mm.Auto(),
    "auto, single planes": mm.Auto(parts=1, batch=1, cached_passes=0),
    "sequential": mm.SequentialDual(tau=1e-11),
    "one": Simplicial("one"),
    "product": Simplicial("product"),
    "product, working set": Simplicial("product", working_set=2, selection="gap"),
    "cutting plane, one": mm.CuttingPlane("one"),
    "cutting plane, n": mm.CuttingPlane("n"),
}
SLOW = {
    "bcfw": mm.BCFW(certificate_every=2.0),
    "bcfw, averaged": mm.BCFW(averaging="weighted"),
    "frank-wolfe": mm.FrankWolfe(),
    "product, limit 2": Simplicial("product", limit=2),
}
PRIMAL = {
    "pegasos": mm.Pegasos(),
    "pegasos, projected": mm.Pegasos(project=True),
    "pegasos, averaged": mm.Pegasos(averaging="weighted"),
    "sgd": mm.SGD("power", power=0.6, averaging="tail"),
}
EVERY = EXACT | SLOW | PRIMAL


def names(case):
    return f"{case[0]}-{case[1]}"


def grid(share):
    """All pairs of a case and a solver; all but one in ``share`` of them are slow tests."""
    return [
        pytest.param(case, name, id=f"{names(case)}-{name}", marks=[pytest.mark.slow] if k % share else [])
        for k, (case, name) in enumerate(product(CASES, EVERY))
    ]


def ramp_problem(tiny: Tiny, ramp: str):
    """The library's problem."""
    return mm.Ramp(ramp).problem(tiny.bound, C=tiny.C, sample_weight=tiny.sample_weight, positive=tiny.positive)


def cccp(preset, problem, seed: int = 0, **options) -> CCCP:
    """The outer loop round the engine of a preset, set up as estimators do."""
    return CCCP(preset.engine(problem.convex, seed), **options)


def solve_ramp(
    tiny: Tiny, preset, ramp: str, *, tol=1e-9, max_passes=3000, seed=0, callbacks=(), resume=None, **options
) -> Result:
    """A full run on a tiny problem."""
    problem = ramp_problem(tiny, ramp)
    solver = cccp(preset, problem, seed, **options)
    return run(solver, problem, tol=tol, max_passes=max_passes, callbacks=callbacks, resume=resume)


def J(tiny: Tiny, w: np.ndarray, ramp: str) -> float:
    """The ramp objective, by enumeration."""
    return ramp_objective(tiny.planes, tiny.example_weight, w, *COST_WEIGHTS[ramp])


def next_minimum(tiny: Tiny, w: np.ndarray, ramp: str) -> Minimum:
    """The minimum of the majorant that touches J at w, by a conic solver; w is stationary when it is w itself."""
    above, below = COST_WEIGHTS[ramp]
    used = np.flatnonzero(tiny.example_weight)  # examples of weight 0 leave the solver no interior
    planes, C = [tiny.planes[i] for i in used], tiny.example_weight[used]
    v, offset = linear_term_at(planes, C, w, below)
    return minimise_majorant(planes, C, v, offset, above, tiny.positive)


class Weights:
    """A callback that keeps the weights and the values of every certificate."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, float, float]] = []

    def on_begin(self, run) -> None:
        pass

    def on_certificate(self, run) -> None:
        self.seen.append((run.weights().copy(), run.certificate.primal, run.certificate.dual))

    def on_end(self, run) -> None:
        pass


def many(n=40, seed=0):
    """Sequences whose features tell their labels, one in five labelled at random."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        labels = rng.integers(0, 3, rng.integers(1, 5))
        X.append(2.0 * np.eye(3)[labels] + 0.5 * rng.normal(size=(len(labels), 3)))
        Y.append((rng.integers(0, 3, len(labels)) if i % 5 == 0 else labels).tolist())
    return X, Y


def check_no_lower_majorant(planes, C: float, w: np.ndarray, value: float, ramp: str, share: float, positive=None):
    """J(w) is the reported value, and a majorant that touches J there, solved anew, gains no more than a share of it.

    Where several outputs attain the concave part, one of their majorants.
    """
    above, below = COST_WEIGHTS[ramp]
    weights = np.full(len(planes), C)
    assert value == pytest.approx(ramp_objective(planes, weights, w, above, below), rel=1e-9)
    scores = [below * cost - psi @ w for psi, cost in planes]
    tied = [np.flatnonzero(score >= score.max() - 1e-6).tolist() for score in scores]
    terms = [linear_term(planes, weights, outputs, below) for outputs in product(*tied)]
    found = [minimise_majorant(planes, weights, *term, above, positive).objective for term in terms]
    assert max(found) >= value * (1 - share)
