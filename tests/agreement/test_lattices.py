"""Lattice fits reach the optimum of general solvers over all paths: penalties, rescalings and several good outputs."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations.references import References
from maxmargin.models.lattice import LatticeModel
from maxmargin.models.lattice_targets import Target
from reference.lattices import lattice_planes, path_features, paths_of, random_lattice
from reference.linear_programs import lp_optimum, unit
from reference.qp import solve_primal
from reference.ramp import linear_term, minimise_majorant, ramp_objective


def sample(flat, seed=0, n=8):
    rng = np.random.default_rng(seed)
    sizes = {"most_nodes": 2, "more": 7} if flat else {"most_nodes": 5, "more": 6}
    X, Y = [], []
    while len(X) < n:
        lattice = random_lattice(rng, **sizes)
        if len({lattice.text(path) for path in paths_of(lattice)}) > 3:
            X.append(lattice)
            costs = rng.integers(0, 4, lattice.n_arcs) / 4.0
            Y.append(Target(costs, np.array(min(paths_of(lattice), key=lambda p: costs[p].sum()), np.int32)))
    return X, Y


DUAL = ["auto", "bcfw", "cutting_plane", "sequential_dual", "simplicial"]


@pytest.mark.parametrize("solver", DUAL)
@pytest.mark.parametrize(
    ("flat", "rescaling", "loss"),
    [
        (True, "margin", "hinge"),
        (False, "margin", "hinge"),
        (False, "margin", "squared_hinge"),
        (True, "slack", "hinge"),
        (True, "sqrt_slack", "squared_hinge"),
    ],
)
def test_fit(flat, rescaling, loss, solver):
    X, Y = sample(flat)
    squared = loss == "squared_hinge"
    tol = 1e-7 if solver == "auto" else 1e-4
    fitted = mm.StructuredSVM(
        LatticeModel(), C=0.7, loss=loss, rescaling=rescaling, solver=solver, tol=tol, max_passes=20_000
    ).fit(X, Y)
    expected = solve_primal(lattice_planes(X, Y, rescaling), 1.4 if squared else 0.7, squared=squared)
    assert fitted.certificate_.primal == pytest.approx(expected.objective, rel=2 * tol)
    assert fitted.certificate_.dual <= expected.objective * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["column_generation", "recentred_dual"])
@pytest.mark.parametrize("flat", [True, False])
def test_linear_programs(flat, solver):
    X, Y = sample(flat)
    rescaling = "unit" if flat else "margin"
    planes = lattice_planes(X, Y, "margin")
    if flat:
        planes = [unit(psi, cost) for psi, cost in planes]
    fitted = mm.StructuredSVM(
        LatticeModel(), C=0.7, penalty="l1", rescaling=rescaling, solver=solver, tol=1e-5, max_passes=5000
    ).fit(X, Y)
    assert fitted.certificate_.primal == pytest.approx(lp_optimum(planes, 0.7), rel=2e-5)


def paired(X, good, pairing):
    """Rows phi(good) - phi(bad): bad are the paths whose texts are no good ones."""
    planes = []
    for lattice, paths in zip(X, good, strict=True):
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


@pytest.mark.parametrize("solver", ["frank_wolfe", "pegasos", "sgd"])
@pytest.mark.parametrize("flat", [True, False])
def test_slow_solvers_come_near(flat, solver):
    """Their bounds close slowly: no lower bound above the optimum, no objective below it, and not far above."""
    X, Y = sample(flat)
    fitted = mm.StructuredSVM(LatticeModel(), C=0.7, solver=solver, tol=1e-2, max_passes=2000).fit(X, Y)
    expected = solve_primal(lattice_planes(X, Y, "margin"), 0.7).objective
    assert expected * (1 - 1e-9) <= fitted.certificate_.primal <= expected * 1.03
    assert fitted.certificate_.dual <= expected * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["auto", "bcfw", "cutting_plane", "sequential_dual", "simplicial"])
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize("flat", [True, False])
def test_ramps_end_where_no_majorant_is_lower(flat, ramp, solver):
    """A ramp is not convex: its value is right, and its majorant, solved anew over all paths, gains nothing."""
    X, Y = sample(flat)
    psi_and_costs, C = lattice_planes(X, Y, "margin"), np.full(len(X), 3.0)
    above, below = {"cost_diminished": (1.0, -1.0), "best_output": (1.0, 0.0)}[ramp]
    fitted = mm.StructuredSVM(LatticeModel(), C=3.0, loss=mm.Ramp(ramp), solver=solver, tol=1e-4, max_passes=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w = fitted.fit(X, Y).weights_
    value = ramp_objective(psi_and_costs, C, w, above, below)
    assert fitted.certificate_.primal == pytest.approx(value, rel=1e-9)
    scores = [below * cost - psi @ w for psi, cost in psi_and_costs]
    tied = [np.flatnonzero(score >= score.max() - 1e-6).tolist() for score in scores]  # any of them is a majorant's
    terms = [linear_term(psi_and_costs, C, outputs, below) for outputs in product(*tied)]
    assert max(minimise_majorant(psi_and_costs, C, *term, above).objective for term in terms) >= value * (1 - 2e-3)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("pairing", ["all", "nearest"])
@pytest.mark.parametrize(
    ("penalty", "solver"),
    [("l1", "auto"), ("l1", "column_generation"), ("l1", "recentred_dual"), *(("l2", name) for name in DUAL)],
)
def test_several_good_outputs(flat, pairing, penalty, solver):
    """Formulations (7) and (8); other paths that say a good output are neither good nor bad."""
    X, _ = sample(flat, seed=3)
    good = []
    for lattice in X:
        first_of: dict[str, list[int]] = {}
        for path in paths_of(lattice):
            first_of.setdefault(lattice.text(path), path)
        good.append(sorted(first_of.values())[:2])
    formulation = References(good, pairing, penalty, lambda first, second: abs(len(first) - len(second)))
    tol = {"auto": 1e-6, "bcfw": 1e-2}.get(solver, 1e-4)
    fitted = mm.StructuredSVM(
        LatticeModel(), C=0.5, formulation=formulation, solver=solver, tol=tol, max_passes=5000
    ).fit(X, [paths[0] for paths in good])
    planes = paired(X, good, pairing)
    expected = lp_optimum(planes, 0.5) if penalty == "l1" else solve_primal(planes, 0.5).objective
    assert fitted.certificate_.primal == pytest.approx(expected, rel=3 * tol)
    assert fitted.certificate_.dual <= expected * (1 + 1e-9)
