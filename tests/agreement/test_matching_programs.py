"""Linear programs and ramps of matchings, against general solvers over all sets of links.

(6) has one good set of links for each example, (7) compares each bad set with the good one that shares most links with
it, (8) all good with all bad ones. Ramps are not convex: that a run ends where no majorant is lower is all that holds.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import maxmargin as mm
from agreement.every_solver import DUAL, LINEAR, PRIMAL, SLOW
from agreement.ramped import check_no_lower_majorant
from maxmargin.models import Matching
from reference.linear_programs import lp_optimum
from reference.matchings import FALSE, MISSED, all_links, features, planes_of, sample
from reference.qp import solve_primal

SHAPE, N_FEATURES = (3, 2), 5


def examples(n_good):
    """Tables whose first feature tells the links of good sets, and the one or two good sets of each."""
    rng, X, good = np.random.default_rng(8), [], []
    full = [links for links in all_links(SHAPE, 1) if len(links) == 2]
    for _ in range(4):
        x = rng.normal(size=(*SHAPE, N_FEATURES))
        x[:, :, 0] = 0.3 * x[:, :, 0] - 0.7
        first, other = (full[k] for k in rng.permutation(len(full))[:2])
        for link in {*first, *other}:
            x[link][0] += 1.4
        X.append(x)
        good.append([first, other][:n_good])
    return X, good


def rows(X, good, most, pairing):
    """Every row phi(good) - phi(bad) with its margin of 1; in order, so that the first of the nearest is taken."""
    planes = []
    for x, sets in zip(X, good, strict=True):
        sets = sorted(sorted(links) for links in sets)
        found = []
        for bad in all_links(SHAPE, most):
            if bad in sets:
                continue
            apart = [len(set(links) ^ set(bad)) for links in sets]
            chosen = sets if pairing == "all" else [sets[int(np.argmin(apart))]]
            found += [features(x, links, most) - features(x, bad, most) for links in chosen]
        planes.append((np.array(found), np.ones(len(found))))
    return planes


def fitted(most, penalty, solver, tol, pairing, C, passes=4000):
    """A fit, and the optimum by a general solver over all rows."""
    X, good = examples(1 if pairing is None else 2)
    planes = rows(X, good, most, pairing or "all")
    positive = np.arange(planes[0][0].shape[1]) >= N_FEATURES  # prices of further links
    svm = mm.StructuredSVM(Matching(most), C=C, penalty=penalty, solver=solver, tol=tol, max_passes=passes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the slow ones: that they stop early
        svm.fit(X, [sets[0] for sets in good], references=[sets[1:] for sets in good], pairing=pairing or "all")
    if penalty == "l1":
        return svm, lp_optimum(planes, C, positive)
    return svm, solve_primal(planes, C, positive=positive).objective


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("pairing", [None, "nearest", "all"], ids=["(6)", "(7)", "(8)"])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_programs(name, pairing, most):
    svm, best = fitted(most, "l1", LINEAR[name], 1e-6, pairing, C=5.0)
    assert svm.certificate_.primal == pytest.approx(best, rel=2e-6)
    assert (svm.history_["dual"] <= best * (1 + 1e-9)).all() and (svm.history_["primal"] >= best * (1 - 1e-9)).all()


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("pairing", [None, "nearest", "all"], ids=["(6)", "(7)", "(8)"])
@pytest.mark.parametrize("name", DUAL | PRIMAL)
def test_their_quadratic_kin(name, pairing, most):
    """The same rows with |w|^2 / 2; methods at the rate 1/t come near where C is small."""
    how = {"tol": 1e-2, "C": 0.1, "passes": 300} if name in SLOW else {"tol": 1e-6, "C": 5.0}
    svm, best = fitted(most, "l2", (DUAL | PRIMAL)[name], pairing=pairing, **how)
    assert svm.certificate_.primal == pytest.approx(best, rel=1e-2 if name in SLOW else 2e-6)
    assert (svm.history_["dual"] <= best * (1 + 1e-7)).all() and (svm.history_["primal"] >= best * (1 - 1e-7)).all()


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("rescaling", ["margin", "unit"])
@pytest.mark.parametrize("name", LINEAR)
def test_rescalings_with_absolute_weights(name, rescaling, most):
    X, Y = sample(5, SHAPE[::-1], seed=2)
    planes = planes_of(X, Y, most, rescaling)
    model = Matching(most, missed=MISSED, false=FALSE)
    svm = mm.StructuredSVM(model, C=0.3, penalty="l1", rescaling=rescaling, solver=LINEAR[name], tol=1e-6).fit(X, Y)
    best = lp_optimum(planes, 0.3, np.arange(planes[0][0].shape[1]) >= 2)
    assert svm.certificate_.primal == pytest.approx(best, rel=2e-6)
    assert (svm.history_["dual"] <= best * (1 + 1e-9)).all() and (svm.history_["primal"] >= best * (1 - 1e-9)).all()


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize("name", DUAL | PRIMAL)
def test_ramps_end_where_no_majorant_is_lower(name, ramp, most):
    X, Y = sample(5, SHAPE[::-1], seed=2)
    planes = planes_of(X, Y, most, "margin")
    positive = np.arange(planes[0][0].shape[1]) >= 2
    model = Matching(most, missed=MISSED, false=FALSE)
    svm = mm.StructuredSVM(
        model, C=3.0, loss=mm.Ramp(ramp), solver=(DUAL | PRIMAL)[name], tol=1e-4, max_passes=4000, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svm.fit(X, Y)
    share = 5e-2 if name in SLOW else 2e-3
    check_no_lower_majorant(planes, 3.0, svm.weights_, svm.certificate_.primal, ramp, share, positive)
