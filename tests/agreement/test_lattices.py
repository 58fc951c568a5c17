"""Lattice fits reach the optimum of general solvers over all paths: penalties, rescalings and several good outputs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import maxmargin as mm
from agreement.every_solver import DUAL, LINEAR, PRIMAL, SLOW
from agreement.ramped import check_no_lower_majorant
from maxmargin.datasets import Lattice
from maxmargin.formulations.references import References
from maxmargin.models.lattice import LatticeModel
from maxmargin.models.lattice_targets import Target
from reference.lattices import lattice_planes, path_features, paths_of, random_lattice
from reference.linear_programs import lp_optimum, unit
from reference.qp import objective, solve_primal


def told(rng, lattice, paths):
    """The lattice with a first feature that is larger for arcs of good paths, by more than noise."""
    features = lattice.features.toarray()
    features[:, 0] = 0.3 * features[:, 0] - 0.7
    features[sorted({e for path in paths for e in path}), 0] += 1.4
    return Lattice(lattice.n_nodes, lattice.tails, lattice.heads, features, lattice.words)


def sample(flat, seed=2, n=5, n_good=1):
    """Lattices, costs of arcs with the path of least cost, and good paths with different texts, that one in front."""
    rng = np.random.default_rng(seed)
    sizes = {"most_nodes": 2, "more": 7} if flat else {"most_nodes": 5, "more": 6}
    X, Y, good = [], [], []
    while len(X) < n:
        lattice = random_lattice(rng, n_features=5, **sizes)
        if len({lattice.text(path) for path in paths_of(lattice)}) > 3:
            costs = rng.integers(0, 4, lattice.n_arcs) / 4.0
            by_text: dict[str, list[int]] = {}
            for path in sorted(paths_of(lattice), key=lambda p: costs[p].sum()):
                by_text.setdefault(lattice.text(path), path)
            good.append(list(by_text.values())[:n_good])
            X.append(told(rng, lattice, good[-1]))
            Y.append(Target(costs, np.array(good[-1][0], np.int32)))
    return X, Y, good


def planes_of(X, Y, rescaling):
    planes = lattice_planes(X, Y, "margin" if rescaling == "unit" else rescaling)
    return [unit(psi, cost) for psi, cost in planes] if rescaling == "unit" else planes


EVERY = DUAL | PRIMAL
C, RESCALINGS = 0.7, ("margin", "slack", "sqrt_slack", "unit")


def fit(X, Y, solver, tol=1e-7, max_passes=2000, **words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that slow ones, and those whose bound stays, stop early
        svm = mm.StructuredSVM(LatticeModel(), solver=solver, tol=tol, max_passes=max_passes, random_state=0, **words)
        return svm.fit(X, Y)


def check_bounds(svm, best):
    """The optimum lies between the bounds of every certificate."""
    assert (svm.history_["dual"] <= best * (1 + 1e-7)).all() and (svm.history_["primal"] >= best * (1 - 1e-7)).all()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("flat", [True, False], ids=["lists", "lattices"])
def test_rescalings(flat, rescaling, loss, name):
    """The objective, counted over all paths, and both bounds are those of the conic solver."""
    X, Y, _ = sample(flat)
    squared, slow = loss == "squared_hinge", name in SLOW
    planes, weight = planes_of(X, Y, rescaling), np.full(len(X), 2 * C if squared else C)
    svm = fit(X, Y, EVERY[name], C=C, loss=loss, rescaling=rescaling)
    best = solve_primal(planes, weight, squared=squared).objective
    check_bounds(svm, best)
    near = 3e-2 if slow else 1e-6
    assert objective(planes, weight, svm.weights_, squared=squared) <= best * (1 + near)
    if name not in PRIMAL:
        assert svm.certificate_.dual >= best * (1 - near)
    if not slow:
        assert svm.status_.converged and svm.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("rescaling", ["margin", "unit"])
@pytest.mark.parametrize("flat", [True, False], ids=["lists", "lattices"])
def test_rescalings_with_absolute_weights(flat, rescaling, name):
    X, Y, _ = sample(flat)
    svm = fit(X, Y, LINEAR[name], tol=1e-6, C=C, penalty="l1", rescaling=rescaling)
    best = lp_optimum(planes_of(X, Y, rescaling), C)
    check_bounds(svm, best)
    assert svm.certificate_.primal == pytest.approx(best, rel=2e-6)


def paired(X, good, pairing):
    """Rows phi(good) - phi(bad): bad are the paths whose texts are no good ones."""
    planes = []
    for lattice, paths in zip(X, map(sorted, good), strict=True):  # the first of those that are equally near
        texts = [lattice.text(path) for path in paths]
        rows = []
        for bad in paths_of(lattice):
            if lattice.text(bad) in texts:
                continue
            apart = [abs(len(text.split()) - len(lattice.text(bad).split())) for text in texts]
            chosen = paths if pairing == "all" else [paths[int(np.argmin(apart))]]
            rows += [path_features(lattice, path) - path_features(lattice, bad) for path in chosen]
        planes.append((np.array(rows), np.ones(len(rows))))
    return planes


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize("flat", [True, False], ids=["lists", "lattices"])
def test_ramps_end_where_no_majorant_is_lower(flat, ramp, name):
    """A ramp is not convex: its value is right, and its majorant, solved anew over all paths, gains nothing."""
    X, Y, _ = sample(flat)
    svm = fit(X, Y, EVERY[name], tol=1e-4, max_passes=4000, C=3.0, loss=mm.Ramp(ramp))
    share = 5e-2 if name in SLOW else 2e-3
    check_no_lower_majorant(planes_of(X, Y, "margin"), 3.0, svm.weights_, svm.certificate_.primal, ramp, share)


@pytest.mark.parametrize("flat", [True, False], ids=["lists", "lattices"])
@pytest.mark.parametrize("pairing", [None, "nearest", "all"], ids=["(6)", "(7)", "(8)"])
@pytest.mark.parametrize(("penalty", "name"), [*(("l1", name) for name in LINEAR), *(("l2", name) for name in EVERY)])
def test_several_good_outputs(flat, pairing, penalty, name):
    """One or two good outputs; other paths that say a good output are neither good nor bad."""
    X, _, good = sample(flat, n_good=1 if pairing is None else 2)
    formulation = References(good, pairing or "all", penalty, lambda first, second: abs(len(first) - len(second)))
    slow = name in SLOW  # at the rate 1/t: near where C is small
    how = {"tol": 1e-2, "C": 0.05, "max_passes": 300} if slow else {"tol": 1e-6, "C": 0.5}
    solver = (LINEAR if penalty == "l1" else EVERY)[name]
    svm = fit(X, [paths[0] for paths in good], solver, formulation=formulation, **how)
    planes = paired(X, good, pairing or "all")
    best = lp_optimum(planes, 0.5) if penalty == "l1" else solve_primal(planes, how["C"]).objective
    check_bounds(svm, best)
    assert svm.certificate_.primal == pytest.approx(best, rel=3e-2 if slow else 2e-6)
