"""Every row of the rescaling table, for every kind of loop, against enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from estimators.plain_chain import PlainChain
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.bayes_net import BayesNet
from maxmargin.models.labels import Labels
from maxmargin.models.network import Network
from maxmargin.models.user import PythonModel
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.rescaling import RESCALINGS
from maxmargin.solvers.driver import run
from maxmargin.solvers.presets import SOLVERS
from reference.problems import chain_features, random_chains, random_multiclass, sequence_cost
from reference.qp import solve_primal

SCALES = [0.0, 0.5, 3.0]


def planes_of(rescaling, psi, cost, lam):
    """(a, b) of an output, by hand."""
    if rescaling == "margin":
        return psi, lam * cost
    if rescaling == "slack":
        return cost * psi, lam * cost
    if rescaling == "sqrt_slack":
        return cost**0.5 * psi, lam * cost**0.5
    if rescaling == "unit":
        return psi, lam * (cost > 0)
    return psi, 0.0 * cost


def multiclass_case(seed):
    """A bound model, and (psi, cost) of all labels of each example."""
    rng = np.random.default_rng(seed)
    X, y = random_multiclass(6, 4, 3, seed=seed)
    matrix = np.ceil(3 * rng.random((4, 4))) * (1 - np.eye(4))
    bound = mm.Multiclass(cost=matrix, classes=[0, 1, 2, 3]).bind(X, y.tolist())
    every = []
    for x, true in zip(X, y, strict=True):
        phi = [np.outer(x, np.eye(4)[k]).ravel() for k in range(4)]
        every.append([(phi[true] - phi[k], matrix[true, k]) for k in range(4)])
    return bound, every


def chain_case(seed):
    X, Y = random_chains(5, 3, 2, lengths=(1, 4), seed=seed)
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [y.tolist() for y in Y])
    every = []
    for x, truth in zip(X, Y, strict=True):
        true = chain_features(x, truth, 3)
        outputs = [np.array(y) for y in product(range(3), repeat=len(truth))]
        every.append([(true - chain_features(x, y, 3), sequence_cost(truth, y, "hamming")) for y in outputs])
    return bound, every


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("seed", range(4))
def test_multiclass_losses_are_those_of_enumeration(seed, rescaling, scale):
    bound, every = multiclass_case(seed)
    w = scale * np.random.default_rng(seed).standard_normal(bound.n_weights)
    for lam in (1.0, 0.4):
        weight = 0.0 if rescaling == "none" else lam
        planes = ModelOracle(bound, rescaling, weight).planes(w, np.arange(6))
        for i, outputs in enumerate(every):
            values = [b - a @ w for a, b in (planes_of(rescaling, psi, cost, lam) for psi, cost in outputs)]
            assert max(planes.bound[i], 0.0) == pytest.approx(max(values), abs=1e-9)
            assert max(planes.violations(w)[i], 0.0) == pytest.approx(max(values), abs=1e-9)


def grid_case(seed):
    rng = np.random.default_rng(seed)
    X = [{"node": rng.standard_normal((2, 3, 1)), "edge": rng.random((2, 2, 3, 1))} for _ in range(4)]
    Y = [rng.integers(0, 2, (2, 3)) for _ in X]
    model = mm.Grid(neighbours=4)
    bound, every = model.bind(X, Y), []
    for x, truth in zip(X, Y, strict=True):
        outputs = [np.array(y).reshape(2, 3) for y in product([0, 1], repeat=6)]
        true = grid_features(x, truth)
        every.append([(true - grid_features(x, y), float((y != truth).sum())) for y in outputs])
    return bound, every


def grid_features(x, y):
    """Node features of pixels with label 1, and minus the edge features of neighbours whose labels differ."""
    right, down = x["edge"][0][:, :-1][y[:, 1:] != y[:, :-1]], x["edge"][1][:-1][y[1:] != y[:-1]]
    return np.concatenate([x["node"][y == 1].sum(axis=0), -down.sum(axis=0) - right.sum(axis=0)])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("case", [chain_case, grid_case])
def test_the_best_wrong_output_has_a_proven_bound(case, seed, scale):
    """Chains: exact. Others, by a function round the plain argmax: exact where the answer has the least cost."""
    bound, every = case(seed)
    w = scale * np.random.default_rng(seed).standard_normal(bound.n_weights)
    w = np.abs(w) if case is grid_case else w
    planes = ModelOracle(bound, "unit").planes(w, np.arange(len(every)))
    exact = 0
    for i, outputs in enumerate(every):
        wrong = max(0.0, max(1.0 - psi @ w for psi, cost in outputs if cost > 0))
        reached = max(planes.violations(w)[i], 0.0)
        assert reached <= wrong + 1e-9 and planes.bound[i] >= wrong - 1e-9
        exact += planes.bound[i] <= wrong + 1e-9 and reached >= wrong - 1e-9
    assert exact == len(every) if case is chain_case else exact >= 2


@pytest.mark.parametrize("seed", range(6))
def test_the_best_wrong_sequence_when_some_wrong_labels_cost_nothing(seed):
    rng = np.random.default_rng(seed)
    X, Y = random_chains(5, 3, 2, lengths=(1, 4), seed=seed)
    table = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    allowed = np.ones((3, 3), bool)
    allowed[0, 1] = any((a, b) == (0, 1) for y in Y for a, b in pairwise(y))
    bound = mm.Chain(classes=[0, 1, 2], cost=table, constraints=allowed).bind(X, [y.tolist() for y in Y])
    w = 3.0 * rng.standard_normal(bound.n_weights)
    planes = ModelOracle(bound, "unit", 0.7).planes(w, np.arange(5))
    for i, (x, truth) in enumerate(zip(X, Y, strict=True)):
        true = chain_features(x, truth, 3)
        outputs = [
            np.array(y) for y in product(range(3), repeat=len(truth)) if all(allowed[a, b] for a, b in pairwise(y))
        ]
        values = [0.7 - (true - chain_features(x, y, 3)) @ w for y in outputs if table[truth, y].sum() > 0]
        assert planes.bound[i] == pytest.approx(max(0.0, *values), abs=1e-9)
        assert max(planes.violations(w)[i], 0.0) == pytest.approx(max(0.0, *values), abs=1e-9)


@pytest.mark.parametrize("rescaling", ["sqrt_slack", "unit"])
@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "sequential_dual", "simplicial"])
def test_new_rescalings_reach_the_optimum_of_a_general_solver(rescaling, solver):
    bound, every = multiclass_case(3)
    every = [[planes_of(rescaling, psi, cost, 1.0) for psi, cost in outputs] for outputs in every]
    planes = [(np.array([a for a, _ in rows]), np.array([b for _, b in rows], float)) for rows in every]
    best = solve_primal(planes, np.full(6, 0.7)).objective
    problem = RescaledHinge(rescaling=rescaling).problem(bound, C=0.7)
    result = run(SOLVERS[solver]().engine(problem, 0), problem, tol=1e-5, max_passes=3000)
    assert result.certificate.primal == pytest.approx(best, rel=2e-5)
    assert result.certificate.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("rescaling", ["margin", "none"])
def test_plain_python_and_compiled_loops_share_the_table(rescaling):
    X, Y = random_chains(5, 3, 2, lengths=(1, 4), seed=2)
    Y = [y.tolist() for y in Y]
    compiled, plain = mm.Chain(classes=[0, 1, 2]).bind(X, Y), PythonModel(PlainChain(3)).bind(X, Y)
    w = np.random.default_rng(0).standard_normal(compiled.n_weights)
    ours, theirs = (ModelOracle(bound, rescaling, 0.6).planes(w, np.arange(5)) for bound in (compiled, plain))
    np.testing.assert_allclose(ours.to_csr().toarray(), theirs.to_csr().toarray(), atol=1e-12)
    np.testing.assert_allclose(ours.b, theirs.b)


def test_a_search_that_a_model_does_not_have_is_refused():
    own = PythonModel(PlainChain(3)).bind([np.ones((2, 2))], [[0, 1]])
    with pytest.raises(ValueError, match=r'rescaling="unit" needs a search for .* which .*python.* use'):
        RescaledHinge(rescaling="unit").problem(own)


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["chain", "own", "grid", "graph", "graph in Python", "net"])
def test_every_model_has_slack_rescaling_with_a_proven_bound(kind, seed, scale, power):
    """The bound is never below the best value of enumeration, the plane never above; for chains both are equal."""
    bound, every = CASES[kind](seed)
    w = scale * np.random.default_rng(seed).standard_normal(bound.n_weights)
    w = np.abs(w) if kind == "grid" else w
    for lam in (1.0, 0.4):
        planes = ModelOracle(bound, "slack" if power == 1.0 else "sqrt_slack", lam).planes(w, np.arange(len(every)))
        for i, outputs in enumerate(every):
            best = max(cost**power * (lam - psi @ w) for psi, cost in outputs)
            reached = max(planes.violations(w)[i], 0.0)
            assert reached <= best + 1e-9 and planes.bound[i] >= best - 1e-9
            if kind == "chain":
                assert planes.bound[i] == pytest.approx(best, abs=1e-9) and reached == pytest.approx(best, abs=1e-9)


def own_case(seed):
    X, Y = random_chains(5, 3, 2, lengths=(1, 4), seed=seed)
    return PythonModel(PlainChain(3)).bind(X, [y.tolist() for y in Y]), chain_case(seed)[1]


def graph_case(seed, method="auto"):
    """Three labels on a triangle."""
    rng = np.random.default_rng(seed)
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    X = [{"node": rng.standard_normal((3, 2)), "edges": edges, "edge": rng.standard_normal((3, 1))} for _ in range(4)]
    Y = [rng.integers(0, 3, 3) for _ in X]
    bound = mm.Graph(classes=[0, 1, 2], method=method).bind(X, [y.tolist() for y in Y])
    every = []
    for i, truth in enumerate(Y):
        true = bound_features(bound, i, truth)
        outputs = [np.array(y) for y in product(range(3), repeat=3)]
        every.append([(true - bound_features(bound, i, y), float((y != truth).sum())) for y in outputs])
    return bound, every


def bound_features(bound, i, y):
    return (bound if hasattr(bound, "joint_features") else bound.inner).joint_features(i, np.asarray(y, np.int32))


def net_case(seed):
    """A chain of three variables, all to be predicted."""
    rng = np.random.default_rng(seed)
    network = Network(("a", "b", "c"), (Labels(list("xyz")),) * 3, ((), (0,), (1,)))
    codes = rng.integers(0, 3, (4, 3)).astype(np.int32)
    bound, every = BayesNet(network).bind(codes, np.ones((4, 3), bool)), []
    for row in codes:
        outputs = [np.array(y, np.int32) for y in product(range(3), repeat=3)]
        true = network.counts(row[None])
        every.append([(true - network.counts(y[None]), float((y != row).sum())) for y in outputs])
    return bound, every


CASES = {
    "net": net_case,
    "graph in Python": lambda seed: graph_case(seed, "integer"),
    "chain": chain_case,
    "own": own_case,
    "grid": grid_case,
    "graph": graph_case,
}
