"""Tiny problems that exist twice: as a library problem, and as a list of all planes for the references."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import maxmargin as mm
from agreement.matching import Matching, WithoutSlackSearch, matching_planes
from maxmargin import Chain, Graph, Grid, LabelSet, Multiclass
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.user import PythonModel
from maxmargin.solvers.driver import run
from maxmargin.solvers.sharded_engine import ShardedState
from reference import label_sets
from reference.hierarchies import outputs
from reference.pictures import graph_planes, grid_planes
from reference.problems import (
    chain_planes,
    multiclass_planes,
    random_chains,
    random_cost_matrix,
    random_multiclass,
    rescaled,
)
from reference.qp import Solution, objective, solve_dual, solve_primal

PRESETS = {
    "auto": mm.Auto(),
    "sharded": mm.Sharded(shards=2, visits_per_round=2),
    "sequential": mm.SequentialDual(),
    "bcfw": mm.BCFW(certificate_every=2.0),
    "frank-wolfe": mm.FrankWolfe(),
    "cutting plane, one": mm.CuttingPlane("one"),
    "cutting plane, n": mm.CuttingPlane("n"),
}  # one of each kind
PARENTS = [[], [], [0, 1], [1]]  # of the labels of a hierarchy
RING = [(0, 1), (1, 2), (2, 0)]  # edges of a graph


@dataclass(frozen=True)
class Tiny:
    """What distinguishes one tiny problem from another; hashable, so that references are solved once.

    The weights of a plane list and of the model agree: up to 5 labels no row is padded.
    """

    # "chain", "multiclass", "labels" (sets, with a full graph), "hierarchy" (sets), "grid" (two by two pixels), "graph"
    # (rings of three nodes), "own" (matchings, in Python) or "own, no search" (without a search for slacks)
    kind: str = "chain"
    loss: str = "hinge"
    signed: bool = False
    cost: str = "hamming"  # "hamming", "matrix", or "quarters": a matrix of multiples of 1/4
    weighted: bool = False  # sample weights, one of them zero
    C: float = 1.0
    seed: int = 0
    n: int = 5
    K: int = 3
    F: int = 2
    ends: bool = False
    rescaling: str = "margin"  # or "slack", "sqrt_slack"

    def __str__(self) -> str:
        flags = [name for name in ("signed", "weighted", "ends") if getattr(self, name)]
        flags += [self.rescaling] if self.rescaling != "margin" else []
        return "-".join([self.kind, self.loss, *flags, self.cost, f"C{self.C:g}", f"seed{self.seed}"])

    @property
    def squared(self) -> bool:
        return self.loss == "squared_hinge"

    @property
    def data(self):
        if self.kind == "chain":
            return random_chains(self.n, self.K, self.F, lengths=(1, 3), seed=self.seed)
        rng = np.random.default_rng(self.seed)
        if self.kind == "labels":
            return rng.normal(size=(self.n, self.F)), rng.integers(0, 2, (self.n, self.K))
        if self.kind == "hierarchy":
            sets = outputs(PARENTS)
            return rng.normal(size=(self.n, self.F)), sets[rng.integers(len(sets), size=self.n)]
        if self.kind == "grid":
            X = [{"node": rng.normal(size=(2, 2, self.F)), "edge": rng.random((2, 2, 2, 1))} for _ in range(self.n)]
            return X, rng.integers(0, 2, (self.n, 2, 2))
        if self.kind == "graph":
            X = [{"node": rng.normal(size=(3, self.F)), "edges": RING} for _ in range(self.n)]
            return X, rng.integers(0, self.K, (self.n, 3))
        if self.kind.startswith("own"):
            return rng.normal(size=(self.n, self.K, self.F)), np.array([rng.permutation(self.K) for _ in range(self.n)])
        return random_multiclass(self.n, self.K, self.F, seed=self.seed)

    @property
    def cost_argument(self):
        if self.cost == "hamming":
            return "hamming"
        matrix = random_cost_matrix(self.K, seed=self.seed)
        return matrix if self.cost == "matrix" else np.ceil(4.0 * matrix) / 4.0

    @property
    def planes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """All planes of each example, the true output included."""
        return planes_of(self)

    @property
    def sample_weight(self) -> np.ndarray | None:
        if not self.weighted:
            return None
        weights = np.random.default_rng(1000 + self.seed).uniform(0.3, 3.0, self.n)
        weights[1] = 0.0
        return weights

    @property
    def example_weight(self) -> np.ndarray:
        """C_i of the references: squared slacks are written with 1/2 there."""
        weights = np.ones(self.n) if self.sample_weight is None else self.sample_weight
        return (2.0 if self.squared else 1.0) * self.C * weights

    @property
    def positive(self) -> np.ndarray | None:
        if self.kind == "grid":
            return np.arange(self.F + 1) >= self.F  # a minimum cut needs it of the weight of the edges
        if not self.signed:
            return None
        return np.random.default_rng(2000 + self.seed).random(self.planes[0][0].shape[1]) < 0.5

    @property
    def bound(self):
        X, y = self.data
        if self.kind == "labels":
            return LabelSet(graph="full", cost=self.cost).bind(X, y)
        if self.kind == "hierarchy":
            return LabelSet(hierarchy=dict(enumerate(PARENTS))).bind(X, y)
        if self.kind == "grid":
            return Grid().bind(X, list(y))
        if self.kind == "graph":
            return Graph(classes=list(range(self.K))).bind(X, y.tolist())
        if self.kind.startswith("own"):
            made = Matching if self.kind == "own" else WithoutSlackSearch
            return PythonModel(made(self.K, self.F)).bind(list(X), [tuple(row.tolist()) for row in y])
        options = {"cost": self.cost_argument, "classes": list(range(self.K))}
        model = Chain(ends=self.ends, **options) if self.kind == "chain" else Multiclass(**options)
        return model.bind(X, [labels.tolist() for labels in y] if self.kind == "chain" else y.tolist())

    def problem(self):
        return RescaledHinge(self.loss, self.rescaling).problem(
            self.bound, C=self.C, sample_weight=self.sample_weight, positive=self.positive
        )


@cache
def planes_of(tiny: Tiny) -> list[tuple[np.ndarray, np.ndarray]]:
    """All planes of each example, the true output included; made once."""
    X, y = tiny.data
    if tiny.kind == "chain":
        return chain_planes(X, y, tiny.K, cost=tiny.cost_argument, ends=tiny.ends, rescaling=tiny.rescaling).planes
    if tiny.kind == "labels":
        edges = list(combinations(range(tiny.K), 2))
        return label_sets.planes(np.column_stack([X, np.ones(tiny.n)]), y, edges, tiny.rescaling, tiny.cost)
    if tiny.kind == "hierarchy":
        return hierarchy_planes(np.column_stack([X, np.ones(tiny.n)]), y, tiny.rescaling)
    if tiny.kind == "grid":
        return grid_planes(X, y, tiny.rescaling)
    if tiny.kind == "graph":
        return graph_planes(X, y, tiny.K, tiny.rescaling)
    if tiny.kind.startswith("own"):
        return matching_planes(X, y, tiny.rescaling)
    return multiclass_planes(X, y, tiny.K, cost=tiny.cost_argument, rescaling=tiny.rescaling).planes


def hierarchy_planes(X, Y, rescaling):
    """(A_i, b_i) over all sets that are closed under ancestors; X has the constant feature."""
    sets, planes = outputs(PARENTS), []
    for x, t in zip(X, Y, strict=True):
        psi = np.array([label_sets.features(x, t, []) - label_sets.features(x, y, []) for y in sets])
        planes.append(rescaled(psi, label_sets.cost(t, sets), rescaling))
    return planes


@cache
def best(tiny: Tiny) -> Solution:
    """The optimum by a conic solver, whose two routes must agree. Examples of weight 0 leave no interior: left out."""
    used = np.flatnonzero(tiny.example_weight)
    planes, C = [tiny.planes[i] for i in used], tiny.example_weight[used]
    primal = solve_primal(planes, C, squared=tiny.squared, positive=tiny.positive)
    dual = solve_dual(planes, C, squared=tiny.squared, positive=tiny.positive)
    assert abs(primal.objective - dual.objective) <= 5e-7 * primal.objective, "the references disagree"
    return primal


def engine_of(preset, problem, seed=0):
    """The engine with the settings of a preset, the oracle set up as estimators do."""
    return preset.engine(problem, seed)


def dual_state(state):
    """The state of the dual engine; where there are shards, that of all of them together."""
    return state.joined() if isinstance(state, ShardedState) else state


def solve(tiny: Tiny, preset, *, tol=1e-8, max_passes=20_000, seed=0, **options):
    """A full run of a preset on a tiny problem."""
    problem = tiny.problem()
    return run(engine_of(preset, problem, seed), problem, tol=tol, max_passes=max_passes, **options)


def walk(preset, tiny: Tiny, count: int, seed=0):
    """(engine, problem, state) after each of ``count`` steps, with the certificates that come before them."""
    problem = tiny.problem()
    engine = engine_of(preset, problem, seed)
    state = engine.init(problem)
    for _ in range(count):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
        yield engine, problem, state


def random_tiny(rng: np.random.Generator, seed: int, loss="hinge", exponents=(-1, 1)) -> Tiny:
    """A problem of any kind and size; C is a power of ten between the exponents."""
    return Tiny(
        kind=str(rng.choice(["chain", "multiclass"])),
        loss=loss,
        signed=bool(rng.integers(2)),
        cost=str(rng.choice(["hamming", "matrix"])),
        weighted=bool(rng.integers(2)),
        C=float(10 ** rng.uniform(*exponents)),
        seed=seed,
        n=int(rng.integers(2, 7)),
        K=int(rng.integers(2, 5)),
        F=int(rng.integers(1, 5)),
    )


def check_minimum(result, tiny: Tiny) -> None:
    """The solver says that it has converged, and its objective and its weights are those of the QP solver."""
    reference = best(tiny)
    assert result.status.code == "converged", str(result.status)
    assert abs(result.certificate.primal - reference.objective) <= 1e-6 * abs(reference.objective)
    assert np.abs(result.weights - reference.weights).max() <= 1e-4


def check_certificates(solver, tiny: Tiny, steps: int) -> None:
    """After each step the primal is the objective, counted by enumeration, and the optimum lies between the bounds."""
    problem, optimum = tiny.problem(), best(tiny).objective
    engine = solver.engine(problem, 7)
    state = engine.init(problem)
    for _ in range(steps):
        engine.step(state)
        certificate = engine.certificate(state).check()
        primal = objective(tiny.planes, tiny.example_weight, engine.weights(state), squared=tiny.squared)
        assert certificate.primal == pytest.approx(primal, rel=1e-9)
        assert certificate.dual <= optimum * (1 + 1e-7)
        assert certificate.primal >= optimum * (1 - 1e-7)
