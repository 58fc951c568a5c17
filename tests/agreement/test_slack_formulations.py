"""Every slack formulation with every solver, on every sort of model, against a conic solver over all outputs.

Scale = cost or its square root, linear and quadratic slacks; chains, classes, label sets with a full graph, and a model
of a user's own. :mod:`agreement.test_slack_rescaling` has more problems of the first two sorts. Bounds hold the optimum
between them at every certificate of every run.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.matching import Matching
from agreement.tiny import Tiny, best, solve
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.user import PythonModel
from maxmargin.solvers.driver import run
from maxmargin.solvers.presets import SOLVERS, solver_for

SLACK, LOSSES = ("slack", "sqrt_slack"), ("hinge", "squared_hinge")
KINDS = {  # cost, C; sample weights, one of them zero, for the quadratic slacks
    "chain": ("hamming", 0.2),
    "multiclass": ("quarters", 3.0),
    "labels": ("f1", 2.0),
    "own": ("hamming", 0.5),
}
CASES = [
    Tiny(kind, loss, False, cost, loss == "squared_hinge", C, seed=7, n=4, rescaling=rescaling)
    for (kind, (cost, C)), loss, rescaling in product(KINDS.items(), LOSSES, SLACK)
    if (kind, rescaling) != ("own", "sqrt_slack")  # its search has a bound that may stay open: see below
]


def columns(tiny):
    return tiny.planes[0][0].shape[1] + (tiny.n if tiny.squared else 0)


DUAL = {
    "auto": lambda t: mm.Auto(),
    "sequential": lambda t: mm.SequentialDual(tau=1e-11),
    "bcfw": lambda t: mm.BCFW(steps="pairwise"),
    "frank-wolfe": lambda t: mm.FrankWolfe(steps="pairwise"),
    "cutting plane, one": lambda t: mm.CuttingPlane("one"),
    "cutting plane, n": lambda t: mm.CuttingPlane("n"),
    "one, limit r": lambda t: Simplicial("one", limit=columns(t) + 2),
    "one, groups": lambda t: Simplicial("one", working_set=2, master="smo"),
    "product": lambda t: Simplicial("product", master="newton"),
    "product, limit r": lambda t: Simplicial("product", limit=columns(t) + 2, working_set=2, selection="gap"),
}


def check_bounds(result, tiny):
    """Weak duality at every certificate."""
    optimum = best(tiny).objective
    for row in result.history:
        assert row["dual"] <= optimum * (1 + 1e-7) and optimum <= row["primal"] * (1 + 2e-7)


@pytest.mark.parametrize("name", DUAL)
@pytest.mark.parametrize("tiny", CASES, ids=str)
def test_dual_solvers(tiny, name):
    if name == "frank-wolfe" and tiny.squared and tiny.kind == "chain":
        pytest.skip("one orthant for all examples is badly conditioned: thousands of passes")
    result = solve(tiny, DUAL[name](tiny), tol=1e-8, max_passes=3000)
    reference = best(tiny)
    assert result.status.code == "converged", str(result.status)
    assert result.certificate.primal == pytest.approx(reference.objective, rel=1e-6)
    assert result.certificate.dual == pytest.approx(reference.objective, rel=1e-6)
    assert np.abs(result.weights - reference.weights).max() <= 2e-4
    check_bounds(result, tiny)


# Few points kept, at the rate 1/t in general: 1e-6 where every block is a segment, of two outputs.
FEW = {
    "frank-wolfe": mm.FrankWolfe(),
    "bcfw": mm.BCFW(),
    "bcfw, gap": mm.BCFW(sampling="gap", certificate_every=2.0),
    "one, limit 2": Simplicial("one", limit=2),
    "product, limit 1": Simplicial("product", limit=1),
}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize(("loss", "rescaling"), list(product(LOSSES, SLACK)))
def test_few_planes(loss, rescaling, name):
    tiny = Tiny("multiclass", loss, cost="quarters", C=1.0, seed=1, n=2, K=2, F=4, rescaling=rescaling)
    result = solve(tiny, FEW[name], tol=1e-8, max_passes=1000)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)
    assert result.certificate.dual == pytest.approx(best(tiny).objective, rel=1e-6)
    check_bounds(result, tiny)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("tiny", [tiny for tiny in CASES if tiny.kind != "own" and not tiny.squared], ids=str)
def test_few_planes_approach_the_optimum(tiny, name):
    result = solve(tiny, FEW[name], tol=1e-6, max_passes=100)
    check_bounds(result, tiny)
    assert result.certificate.dual >= 0.8 * best(tiny).objective


PRIMAL = {"pegasos": mm.Pegasos(averaging="weighted"), "sgd": mm.SGD(t0=20.0)}


@pytest.mark.parametrize("name", PRIMAL)
@pytest.mark.parametrize("tiny", CASES, ids=str)
def test_primal_solvers(tiny, name):
    """At their sublinear rate: within 5 % after 600 passes (200 of a model in Python)."""
    problem = tiny.problem()
    passes = 200 if tiny.kind == "own" else 600
    result = run(PRIMAL[name].engine(problem, 0), problem, tol=1e-6, max_passes=passes)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=5e-2)
    check_bounds(result, tiny)


class WithoutSlackSearch(Matching):
    slack_argmax = None


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "simplicial", "sequential_dual", "pegasos"])
@pytest.mark.parametrize(("loss", "rescaling"), list(product(LOSSES, SLACK)))
def test_an_own_model_without_a_search_for_slacks(loss, rescaling, solver):
    """Queries of its argmax prove a bound: the certificate holds the optimum, and no run claims more than it proves."""
    tiny = Tiny("own", loss, C=0.5, seed=7, n=4, rescaling=rescaling)
    X, y = tiny.data
    bound = PythonModel(WithoutSlackSearch(tiny.K, tiny.F)).bind(list(X), [tuple(row.tolist()) for row in y])
    problem = RescaledHinge(loss, rescaling).problem(bound, C=tiny.C)
    result = run(SOLVERS[solver]().engine(problem, 0), problem, tol=1e-6, max_passes=60)
    check_bounds(result, tiny)
    if result.status.code == "converged":
        assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)


@pytest.mark.parametrize(("kind", "rescaling"), list(product(KINDS, SLACK)))
def test_refused_by_name(kind, rescaling):
    """A ramp has no slack-rescaled form; solvers of the primal family keep no signs."""
    tiny = Tiny(kind, cost="hamming", rescaling=rescaling, n=3)
    with pytest.raises(ValueError, match='the ramp has no slack-rescaled form; use loss="hinge" or rescaling="margin"'):
        mm.Ramp(convex=RescaledHinge("hinge", rescaling)).problem(tiny.bound)
    signs = np.ones(tiny.bound.n_weights, bool)
    problem = RescaledHinge("hinge", rescaling).problem(tiny.bound, positive=signs)
    for name in ("pegasos", "sgd", "perceptron", "mira"):
        with pytest.raises(ValueError, match=f'solver="{name}" does not offer'):
            solver_for(name, problem)


def test_refused_rescalings():
    with pytest.raises(ValueError, match="rescaling must be one of margin, slack, sqrt_slack, unit, none; got 'cubic'"):
        RescaledHinge("hinge", "cubic").problem(Tiny().bound)
    with pytest.raises(ValueError, match='rescaling="unit" needs a search for the best wrong output'):
        RescaledHinge("hinge", "unit").problem(Tiny("own").bound)
