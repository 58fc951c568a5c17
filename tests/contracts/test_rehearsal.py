"""Three toy wings, each in a file of its own, train through the public face and agree with an enumerated reference.

They touch nothing of the library: what they need is in its contracts, and what they cannot do is refused by name.
"""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import maxmargin as mm
from contracts.dag import Dag, DagModel
from contracts.lp import CuttingPlaneLP, L1Hinge
from contracts.remote import RemoteOracle, Shard
from maxmargin.execution.processes import Processes
from maxmargin.formulations.problem import Problem
from maxmargin.formulations.regularisers import Quadratic
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.driver import run
from reference.problems import chain_planes, random_chains
from reference.qp import solve_primal


def test_each_wing_is_a_short_file():
    for name in ("dag", "lp", "remote"):
        assert len(Path(__file__).with_name(f"{name}.py").read_text().splitlines()) < 120, name


# --- paths through graphs ---------------------------------------------------------------------------------------------


def ladder(rng, steps=3, width=2, features=4):
    """A graph of ``steps`` layers between a source and a sink, and one of its paths; all its paths by enumeration."""
    layers = [[0]] + [[1 + width * s + k for k in range(width)] for s in range(steps)] + [[1 + width * steps]]
    begin, tail = [0, 0], []
    for before, layer in pairwise(layers):
        for _ in layer:
            tail += before
            begin.append(len(tail))
    graph = Dag(np.array(begin), np.array(tail), rng.normal(size=(len(tail), features)))
    head = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    paths = []
    for middle in product(*layers[1:-1]):
        nodes = [0, *middle, layers[-1][0]]
        paths.append(tuple(int(np.flatnonzero((graph.tail == a) & (head == b))[0]) for a, b in pairwise(nodes)))
    return graph, paths


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    X, every = zip(*(ladder(rng) for _ in range(6)), strict=True)
    truth = rng.normal(size=4)
    Y = [max(paths, key=lambda y: truth @ x.features[list(y)].sum(0)) for x, paths in zip(X, every, strict=True)]
    return list(X), Y, every


def planes_of_paths(X, Y, every, unit=False):
    planes = []
    for x, y, paths in zip(X, Y, every, strict=True):
        phi = np.array([x.features[list(path)].sum(axis=0) for path in paths])
        cost = np.array([len(set(path) - set(y)) for path in paths], float)
        planes.append((x.features[list(y)].sum(axis=0) - phi, (cost > 0).astype(float) if unit else cost))
    return planes


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "sequential_dual"])
@pytest.mark.parametrize("rescaling", ["margin", "unit"])
def test_paths_train_to_the_enumerated_optimum(graphs, rescaling, solver):
    X, Y, every = graphs
    svm = mm.StructuredSVM(DagModel(), C=0.5, solver=solver, tol=1e-6, formulation=RescaledHinge(rescaling=rescaling))
    svm.fit(X, Y)
    best = solve_primal(planes_of_paths(X, Y, every, rescaling == "unit"), np.full(6, 0.5)).objective
    assert svm.certificate_.primal == pytest.approx(best, rel=2e-6)
    assert svm.certificate_.dual <= best * (1 + 1e-7)
    for x, path, paths in zip(X, svm.predict(X), every, strict=True):
        assert path == max(paths, key=lambda y, x=x: svm.weights_ @ x.features[list(y)].sum(0))


def test_k_best_paths_are_those_of_enumeration(graphs):
    X, Y, every = graphs
    bound, w = DagModel().bind(X, Y), np.random.default_rng(1).normal(size=4)
    for i, paths in enumerate(every):
        scores = sorted((float(w @ X[i].features[list(y)].sum(0)) for y in paths), reverse=True)
        found, values = bound.k_best(w, i, 5)
        np.testing.assert_allclose(values, scores[:5])
        assert len(set(found)) == 5


def test_paths_are_refused_where_they_cannot_serve(graphs):
    X, Y, _ = graphs
    with pytest.raises(ValueError, match=r'rescaling="slack" needs a search .* which the dag model does not offer'):
        mm.StructuredSVM(DagModel(), rescaling="slack").fit(X, Y)


# --- a linear program -------------------------------------------------------------------------------------------------


def test_the_linear_program_reaches_the_enumerated_optimum_and_is_sparse():
    X, Y = random_chains(6, 3, 4, lengths=(2, 3), seed=1)
    Y = [y.tolist() for y in Y]
    svm = mm.StructuredSVM(mm.Chain(classes=[0, 1, 2]), C=0.4, formulation=L1Hinge(), solver=CuttingPlaneLP(), tol=1e-7)
    svm.fit(X, Y)
    planes = chain_planes(X, [np.array(y) for y in Y], 3).planes
    w = cp.Variable(planes[0][0].shape[1])
    losses = sum(cp.max(b - A @ w) for A, b in planes)
    best = cp.Problem(cp.Minimize(cp.norm1(w) + 0.4 * losses)).solve(solver=cp.CLARABEL)
    assert svm.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert svm.certificate_.dual <= best * (1 + 1e-6) and svm.status_.converged
    assert (svm.weights_ == 0).sum() > len(svm.weights_) // 2


def test_the_linear_program_is_refused_by_other_solvers_and_refuses_other_problems():
    X, Y = random_chains(4, 3, 2, lengths=(2, 3), seed=1)
    model = mm.Chain(classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r'this problem needs own_l1, which solver="auto" does not offer'):
        mm.StructuredSVM(model, formulation=L1Hinge()).fit(X, [y.tolist() for y in Y])
    with pytest.raises(ValueError, match=r"needs the regulariser .*, which solver=CuttingPlaneLP\(\) does not"):
        mm.StructuredSVM(model, solver=CuttingPlaneLP()).fit(X, [y.tolist() for y in Y])


# --- examples in other processes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [mm.Auto(), mm.CuttingPlane("one"), mm.BCFW(certificate_every=1.0)], ids=repr)
def test_examples_in_two_processes_train_to_the_enumerated_optimum(solver):
    X, Y = random_chains(9, 3, 2, lengths=(1, 3), seed=2)
    Y = [y.tolist() for y in Y]
    model = mm.Chain(classes=[0, 1, 2])
    layout = model.bind(X[:1], Y[:1]).layout
    executor = Processes(2)
    try:
        shards = [Shard(model, X[:5], Y[:5], layout, 0), Shard(model, X[5:], Y[5:], layout, 5)]
        oracle = RemoteOracle(shards, executor)
        problem = Problem(oracle, np.full(9, 0.3), layout.n_weights, Quadratic())
        result = run(solver.engine(problem, 0), problem, tol=1e-3, max_passes=400)
        best = solve_primal(chain_planes(X, [np.array(y) for y in Y], 3).planes, np.full(9, 0.3)).objective
        assert result.certificate.primal == pytest.approx(best, rel=2e-3)
        assert result.certificate.dual <= best * (1 + 1e-7)
        counts = oracle.asked()
        assert min(counts) > 4 and sum(counts) == result.state.oracle_calls  # each shard kept its own count
        perceptron = mm.Perceptron().engine(problem, 0)
        with pytest.raises(ValueError, match="this oracle has no predictions; use a solver"):
            run(perceptron, problem)
    finally:
        executor.close()
