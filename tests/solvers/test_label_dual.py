"""The sequential dual method for labels: optima against liblinear and the engine of planes, blocks, checkpoints."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.formulations import MarginRescaling
from maxmargin.models.multiclass import Multiclass
from maxmargin.solvers.driver import run
from maxmargin.solvers.label_dual import LabelDual, LabelEngine, LabelState
from maxmargin.solvers.label_dual_kernel import threshold

pytestmark = pytest.mark.found("B6")
COSTS = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 0.5, 0.0]])


def examples(n=60, d=2000, seed=0):
    """Sparse examples with three labels, the last example without features."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.005, format="csr", random_state=seed)
    X.data[:] = rng.normal(size=X.nnz)
    common = sp.csr_matrix(rng.normal(size=(n, 2)))  # what the labels depend on
    y = (np.asarray(common.todense()) @ rng.normal(size=(2, 3)) + rng.normal(size=(n, 3))).argmax(axis=1)
    X = sp.hstack([X, common]).tolil()
    X[n - 1] = 0.0
    return sp.csr_matrix(X), y


def problem_of(X, y, C=1.0, weight=None, cost="hamming", intercept=False):
    return MarginRescaling().problem(
        Multiclass(cost=cost, fit_intercept=intercept).bind(X, y), C=C, sample_weight=weight
    )


def objective(W, X, y, C, costs, weight):
    scores = X @ W
    losses = (costs[y] + scores - scores[np.arange(len(y)), y][:, None]).max(axis=1)
    return 0.5 * float((W**2).sum()) + C * float(weight @ losses)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_liblinear(C, intercept):
    X, y = examples()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-9, max_iter=100_000, fit_intercept=intercept)
        peer.fit(X, y)
    own = mm.MulticlassClassifier(C=C, tol=1e-10, fit_intercept=intercept).fit(X, y)
    assert isinstance(own.state_, LabelState)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=2e-4 * np.abs(peer.coef_).max())
    assert own.certificate_.relative_gap <= 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_engine_of_planes(seed):
    """Costs by matrix, weights with zeros, and an example without features."""
    X, y = examples(seed=seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    problem = problem_of(X, y, 0.7, weight, COSTS)
    assert LabelDual.suits(problem)
    found = run(LabelEngine(0), problem, tol=1e-9)
    other = run(mm.Auto().engine(problem, 0), problem, tol=1e-9)
    np.testing.assert_allclose(found.certificate.dual, other.certificate.dual, rtol=3e-9)
    W = found.weights.reshape(X.shape[1], -1)[:, :3]
    np.testing.assert_allclose(found.certificate.primal, objective(W, X, y, 0.7, COSTS, weight), rtol=1e-12)


def test_a_visit_solves_the_block():
    """After a visit the gap of the block, which is defined without the formula of the solution, is zero."""
    problem = problem_of(*examples(), C=5.0, cost=COSTS)
    engine = LabelEngine(0)
    state = engine.init(problem)
    for i in np.random.default_rng(0).integers(problem.n_examples, size=200):
        engine._sweep(state, np.array([i]), solve=True)
        before = state.gap[i]
        engine._sweep(state, np.array([i]), solve=False)
        assert state.gap[i] <= 1e-12 * max(1.0, before)
        assert abs(state.beta[i].sum()) <= 1e-12 and state.beta[i].max() <= 5.0 + 1e-12


def test_threshold():
    rng = np.random.default_rng(0)
    for K in (1, 2, 5, 40):
        for total in (1e-18, 1e-9, 1.0, 1e6):
            bend = rng.normal(size=K).round(1)
            top = bend.max()
            theta = threshold(bend, K, top, total)
            np.testing.assert_allclose(np.maximum(bend - top - theta, 0.0).sum(), total, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-160])
def test_small_features_leave_multipliers_feasible(scale):
    """Multipliers that sum to C only up to rounding of the scores made the dual exceed the primal."""
    X, y = examples(n=300)
    own = mm.MulticlassClassifier(C=1.0, tol=1e-9, fit_intercept=False).fit(X * scale, y)
    assert isinstance(own.state_, LabelState)
    np.testing.assert_allclose(own.state_.beta.sum(axis=1), 0.0, atol=1e-14)
    assert own.certificate_.relative_gap <= 1e-9
    np.testing.assert_allclose(own.certificate_.dual, len(y), rtol=1e3 * scale)


def test_dense_features_keep_the_engine_of_planes():
    X, y = examples()
    assert not LabelDual.suits(problem_of(np.asarray(X[:, -12:].todense()), y))
    assert not isinstance(mm.MulticlassClassifier(loss="squared_hinge", max_passes=9).fit(X, y).state_, LabelState)


def test_goes_on_where_it_was_saved():
    problem = problem_of(*examples(), C=3.0)
    engine = LabelEngine(0)
    state = engine.init(problem)
    for _ in range(3):
        engine.step(state)
    engine.certificate(state)
    copy = LabelEngine(7).from_arrays(problem, state.to_arrays())
    for each in (state, copy):
        for _ in range(4):
            engine.step(each)
    assert np.array_equal(state.u, copy.u) and np.array_equal(state.beta, copy.beta)
    assert engine.certificate(state) == engine.certificate(copy)
    assert state.oracle_calls == copy.oracle_calls


@pytest.mark.parametrize(
    "edit",
    [
        lambda a: a["beta"].__setitem__((0, 0), np.nan), lambda a: a["beta"].__setitem__((3, 1), 1e3),
        lambda a: a["beta"].__imul__(2.0), lambda a: a["u"].__setitem__(0, 1.0), lambda a: a.update(u=a["u"][:-1]),
        lambda a: a.update(beta=a["beta"][:-1]), lambda a: a.update(gap=a["gap"][:-1]),
    ],
)  # fmt: skip
def test_refuses_damaged_states(edit):
    problem = problem_of(*examples(), C=3.0)
    engine = LabelEngine(0)
    state = engine.init(problem)
    engine.step(state)
    arrays = state.to_arrays()
    edit(arrays)
    with pytest.raises(ValueError, match=r"the saved state|of the checkpoint"):
        engine.from_arrays(problem, arrays)


def test_warm_start_with_another_C():
    X, y = examples()
    path = mm.MulticlassClassifier(C=1.0, tol=1e-6, warm_start=True, random_state=0).fit(X, y)
    warm = path.set_params(C=1.1).fit(X, y)
    cold = mm.MulticlassClassifier(C=1.1, tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=2e-6)
    assert warm.n_iter_ <= cold.n_iter_


def test_ramp():
    X, y = examples()
    model = mm.MulticlassClassifier(C=2.0, loss=mm.Ramp(), tol=1e-5, fit_intercept=False).fit(X, y)
    scores, unequal = X @ model.coef_.T, 1.0 - np.eye(3)[y]
    ramp = (scores + unequal).max(axis=1) - (scores - unequal).max(axis=1)
    np.testing.assert_allclose(model.certificate_.primal, 0.5 * (model.coef_**2).sum() + 2.0 * ramp.sum(), rtol=1e-9)
    assert model.certificate_.relative_gap <= 1e-5
    assert isinstance(model.state_.inner, LabelState)
