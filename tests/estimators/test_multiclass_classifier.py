"""Multiclass classification against liblinear, the reference solver and closed relations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

import maxmargin as mm
from reference.problems import multiclass_planes, random_cost_matrix, random_multiclass
from reference.qp import solve_primal

SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = scale(IRIS_X)


def objective(coef, X, y, C, weight=None):
    """1/2 |W|^2 + C sum_i s_i max_k [k != y_i] + (w_k - w_{y_i}) . x_i, from the formula."""
    scores = X @ coef.T
    true = scores[np.arange(len(y)), y]
    losses = (scores - true[:, None] + (np.arange(len(coef)) != y[:, None])).max(axis=1)
    return 0.5 * (coef**2).sum() + C * (losses if weight is None else weight * losses).sum()


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_objective_of_crammer_and_singer(C):
    theirs = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=200_000)
    theirs.fit(IRIS_X, IRIS_Y)
    ours = mm.MulticlassClassifier(C=C, fit_intercept=False, tol=1e-6).fit(IRIS_X, IRIS_Y)
    value = objective(ours.coef_, IRIS_X, IRIS_Y, C)
    assert ours.certificate_.primal == pytest.approx(value, rel=1e-9)
    assert value == pytest.approx(objective(theirs.coef_, IRIS_X, IRIS_Y, C), rel=1e-4)
    assert value <= objective(theirs.coef_, IRIS_X, IRIS_Y, C) * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_two_classes_are_the_binary_machine(loss):
    """With v = (w_1 - w_0) / 2 and margin 1 for 2 v.x the pair objective at C is twice the binary one, hinge(2 v.x).

    1/2 (|w_0|^2 + |w_1|^2) = |v|^2 at the optimum w_1 = -w_0 = v, so the minimum over v of |v|^2 + C sum L(1 - 2 t v.x)
    with u = 2 v is 1/2 [ 1/2 |u|^2 + 2 C sum L(1 - t u.x) ]: half the binary optimum at 2 C.
    """
    X, y = IRIS_X[50:], IRIS_Y[50:] - 1
    ours = mm.MulticlassClassifier(C=0.5, loss=loss, fit_intercept=False, tol=1e-8).fit(X, y)
    theirs = LinearSVC(C=1.0, loss=loss, dual=True, fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(X, y)
    u, t = theirs.coef_[0], 2 * y - 1
    slack = np.maximum(0, 1 - t * (X @ u))
    binary = 0.5 * u @ u + (slack if loss == "hinge" else slack**2).sum()
    assert 2 * ours.certificate_.primal == pytest.approx(binary, rel=1e-5)
    np.testing.assert_allclose(ours.coef_[1] - ours.coef_[0], u, atol=2e-3)
    np.testing.assert_allclose(ours.coef_.sum(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(ours.decision_function(X), X @ u, atol=2e-2)


def test_squared_hinge_and_cost_matrix_against_the_reference_solver():
    X, y = random_multiclass(10, 4, 3, seed=2)
    cost = random_cost_matrix(4, seed=1)
    best = solve_primal(multiclass_planes(X, y, 4, cost=cost).planes, 2 * 0.7, squared=True)
    ours = mm.MulticlassClassifier(C=0.7, loss="squared_hinge", cost=cost, fit_intercept=False, tol=1e-9).fit(X, y)
    assert ours.certificate_.primal == pytest.approx(best.objective, rel=1e-7)
    np.testing.assert_allclose(ours.coef_.T.ravel(), best.weights, atol=1e-4)


def test_the_intercept_is_a_constant_feature():
    constant = np.hstack([IRIS_X, np.full((len(IRIS_X), 1), 3.0)])
    implicit = mm.MulticlassClassifier(intercept_scaling=3.0, tol=1e-7).fit(IRIS_X, IRIS_Y)
    explicit = mm.MulticlassClassifier(fit_intercept=False, tol=1e-7).fit(constant, IRIS_Y)
    assert implicit.certificate_.primal == pytest.approx(explicit.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(implicit.intercept_, 3.0 * explicit.coef_[:, -1], atol=1e-3)
    np.testing.assert_allclose(
        implicit.decision_function(IRIS_X), IRIS_X @ implicit.coef_.T + implicit.intercept_, atol=1e-9
    )


def test_sample_weights_repeat_examples():
    times = np.arange(len(IRIS_Y)) % 4
    weighted = mm.MulticlassClassifier(tol=1e-7).fit(IRIS_X, IRIS_Y, sample_weight=times)
    repeated = mm.MulticlassClassifier(tol=1e-7).fit(np.repeat(IRIS_X, times, axis=0), np.repeat(IRIS_Y, times))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_class_weights_are_sample_weights():
    y = np.array(["x", "y", "z"])[IRIS_Y]
    by_class = mm.MulticlassClassifier(class_weight={"y": 5.0}, tol=1e-7).fit(IRIS_X, y)
    by_example = mm.MulticlassClassifier(tol=1e-7).fit(IRIS_X, y, sample_weight=np.where(y == "y", 5.0, 1.0))
    assert by_class.certificate_ == by_example.certificate_
    few = np.r_[0:50, 50:60, 100:150]
    balanced = mm.MulticlassClassifier(class_weight="balanced", tol=1e-7).fit(IRIS_X[few], y[few])
    factor = {"x": 110 / 150, "y": 110 / 30, "z": 110 / 150}
    by_hand = mm.MulticlassClassifier(tol=1e-7).fit(IRIS_X[few], y[few], [factor[label] for label in y[few]])
    assert balanced.certificate_.primal == pytest.approx(by_hand.certificate_.primal, rel=1e-6)


def test_sparse_is_dense():
    X = np.where(IRIS_X > 0.3, IRIS_X, 0.0)
    dense = mm.MulticlassClassifier(tol=1e-6).fit(X, IRIS_Y)
    sparse = mm.MulticlassClassifier(tol=1e-6).fit(sp.csr_matrix(X), IRIS_Y)
    assert dense.certificate_.primal == pytest.approx(sparse.certificate_.primal, rel=2e-6)
    np.testing.assert_array_equal(sparse.predict(X), sparse.predict(sp.csc_array(X)))
    np.testing.assert_allclose(sparse.decision_function(X), sparse.decision_function(sp.csr_array(X)), atol=1e-12)


def test_positive_coefficients():
    X = np.abs(IRIS_X)
    fitted = mm.MulticlassClassifier(positive=True, fit_intercept=False, C=0.1, tol=1e-7).fit(X[::10], IRIS_Y[::10])
    assert (fitted.coef_ >= 0).all() and (fitted.coef_ == 0).any()
    planes = multiclass_planes(X[::10], IRIS_Y[::10], 3).planes
    best = solve_primal(planes, 0.1, positive=True)
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_agree(solver):
    tol = 2e-2 if solver == "frank_wolfe" else 1e-3
    fitted = mm.MulticlassClassifier(C=0.05, solver=solver, tol=tol).fit(IRIS_X, IRIS_Y)
    best = mm.MulticlassClassifier(C=0.05, tol=1e-8).fit(IRIS_X, IRIS_Y)
    assert fitted.status_.converged
    assert best.certificate_.dual * (1 - 1e-9) <= fitted.certificate_.primal <= best.certificate_.primal * (1 + tol)
    assert fitted.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)


def test_labels_of_any_kind():
    for labels in (np.array(["x", "y", "z"]), np.array([10, -3, 7]), np.array([True, False, True])):
        y = labels[IRIS_Y]
        fitted = mm.MulticlassClassifier().fit(IRIS_X, y)
        assert fitted.classes_.tolist() == sorted(set(y.tolist()))
        assert fitted.predict(IRIS_X).dtype == y.dtype
        assert fitted.score(IRIS_X, y) > 0.7  # the middle species alone is not linearly separable
        assert fitted.predict(IRIS_X[:1]).shape == (1,)
