"""Slack rescaling: every solver reaches the optimum of a conic solver on problems small enough to enumerate."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, best, check_minimum, solve
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.solvers.driver import run

CASES = [
    Tiny(kind, loss, signed, cost, weighted, C, seed, n=4, ends=ends, rescaling="slack")
    for kind, loss, signed, (cost, weighted, C, seed, ends) in product(
        ["chain", "multiclass"],
        ["hinge", "squared_hinge"],
        [False, True],
        [
            ("hamming", False, 0.05, 0, False),
            ("quarters", True, 1.0, 1, True),
            ("hamming", True, 20.0, 2, False),
            ("quarters", False, 3.0, 3, False),
        ],
    )
]
DUAL = {
    "auto": mm.Auto(),
    "auto, single planes": mm.Auto(parts=1, batch=1, cached_passes=0),
    "sequential": mm.SequentialDual(tau=1e-11),
    "cutting plane, one": mm.CuttingPlane("one"),
    "cutting plane, n": mm.CuttingPlane("n"),
    "one": Simplicial("one"),
    "product": Simplicial("product", master="newton"),
    "product, gap": Simplicial("product", working_set=2, selection="gap"),
}


@pytest.mark.parametrize("name", DUAL)
@pytest.mark.parametrize("tiny", CASES, ids=str)
def test_dual_solvers(tiny, name):
    result = solve(tiny, DUAL[name], tol=1e-9, max_passes=3000)
    check_minimum(result, tiny)
    assert result.certificate.dual == pytest.approx(best(tiny).objective, rel=1e-6)


FREE = [tiny for tiny in CASES if not tiny.signed and tiny.C <= 1.0]
PRIMAL = {
    "pegasos": mm.Pegasos(averaging="weighted"),
    "pegasos, projected": mm.Pegasos(project=True, averaging="weighted"),
    "sgd": mm.SGD(t0=20.0),
}


@pytest.mark.parametrize("name", PRIMAL)
@pytest.mark.parametrize("tiny", FREE, ids=str)
def test_primal_solvers(tiny, name):
    """At their sublinear rate: close after 2,000 passes, and the two bounds hold the optimum between them."""
    problem = tiny.problem()
    result = run(PRIMAL[name].engine(problem, 0), problem, tol=1e-6, max_passes=2000)
    optimum = best(tiny).objective
    assert result.certificate.primal == pytest.approx(optimum, rel=2e-2)
    assert all(row["dual"] <= optimum * (1 + 1e-7) and optimum <= row["primal"] * (1 + 2e-7) for row in result.history)


@pytest.mark.parametrize("solver", [mm.MIRA(), mm.Perceptron()], ids=["mira", "perceptron"])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_methods_without_an_objective_carry_a_certificate_too(kind, solver):
    tiny = Tiny(kind, cost="quarters", C=0.5, seed=1, rescaling="slack")
    problem = tiny.problem()
    result = run(solver.engine(problem, 0), problem, tol=1e-6, max_passes=40)
    assert result.certificate.dual <= best(tiny).objective <= result.certificate.primal * (1 + 1e-9)


def test_projection_radius_holds_the_optimum():
    for tiny in FREE:
        problem = tiny.problem()
        state = mm.Pegasos(project=True).engine(problem, 0).init(problem)
        assert np.linalg.norm(best(tiny).weights) <= state.radius * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_with_one_cost_for_all_mistakes_the_two_rescalings_agree(loss):
    """cost 1 for every wrong class: 1 - w . psi either way."""
    tiny = Tiny("multiclass", loss, cost="hamming", C=0.7, seed=3, n=6)
    margin, slack = solve(tiny, mm.Auto()), solve(replace(tiny, rescaling="slack"), mm.Auto())
    assert slack.certificate.primal == pytest.approx(margin.certificate.primal, rel=1e-7)
    assert np.abs(slack.weights - margin.weights).max() <= 1e-4


@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_scaling_costs_up_and_C_down_changes_nothing(kind):
    """The slack-rescaled loss is linear in the cost."""
    X, y = Tiny(kind, seed=4).data
    y = [labels.tolist() for labels in y] if kind == "chain" else y.tolist()
    model = mm.Chain if kind == "chain" else mm.Multiclass
    matrix = np.array([[0, 1, 2], [1, 0, 1], [2, 3, 0]]) / 4
    found = [
        mm.StructuredSVM(model(cost=factor * matrix, classes=[0, 1, 2]), C=1.0 / factor, rescaling="slack", tol=1e-9)
        .fit(X, y)
        .weights_
        for factor in (1.0, 8.0)
    ]
    assert np.abs(found[0] - found[1]).max() <= 1e-5


def test_multipliers_of_the_other_rescaling_are_refused():
    for kind in ("chain", "multiclass"):
        margin, slack = Tiny(kind, seed=1), Tiny(kind, seed=1, rescaling="slack")
        state = solve(margin, mm.Auto()).state
        problem = slack.problem()
        with pytest.raises(ValueError, match="warm start needs the same examples, costs and rescaling"):
            mm.Auto().engine(problem, 0).init(problem, warm=state)
