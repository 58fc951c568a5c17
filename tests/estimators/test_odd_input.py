"""Odd input that is fine: one label, empty sequences, ties, zeros, extreme scales, long sequences, many labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.features.sequences import Sequences
from reference.problems import chain_planes
from reference.qp import solve_primal

SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")
BOTH = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
RNG = np.random.default_rng(0)
X = [RNG.normal(size=(RNG.integers(2, 5), 3)) for _ in range(6)]
Y = [["abc"[k] for k in RNG.integers(0, 3, len(x))] for x in X]
MX, MY = np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) % 3


def tagger(**params):
    return mm.SequenceTagger(**params)


@BOTH
@pytest.mark.parametrize("solver", SOLVERS)
def test_one_label_only(loss, solver):
    fitted = tagger(loss=loss, solver=solver).fit(X, [["a"] * len(x) for x in X])
    assert not fitted.weights_.any()
    assert fitted.certificate_.primal == fitted.certificate_.dual == 0
    assert fitted.status_.converged
    assert fitted.predict(X) == [["a"] * len(x) for x in X]
    assert np.isinf(fitted.predict_margin(X)).all()
    assert all((p == 1).all() for p in fitted.predict_marginals(X))


def test_one_class_only():
    fitted = mm.StructuredSVM(mm.Multiclass()).fit(MX, ["only"] * 9)
    assert not fitted.weights_.any() and fitted.certificate_.gap == 0
    assert fitted.predict(MX) == ["only"] * 9


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_sequence(solver):
    fitted = tagger(solver=solver, tol=1e-2).fit(X[:1], Y[:1])
    assert fitted.status_.converged and fitted.predict(X[:1]) == Y[:1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_empty_sequence_changes_nothing(solver):
    plain = tagger(solver=solver).fit(X, Y)
    padded = tagger(solver=solver).fit([*X, np.zeros((0, 3))], [*Y, []])
    assert padded.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-3)
    assert padded.predict([np.zeros((0, 3)), X[0]]) == [[], padded.predict(X[:1])[0]]
    assert padded.predict_kbest([np.zeros((0, 3))], 2) == [[([], 0.0)]]
    assert padded.predict_margin([np.zeros((0, 3))]).tolist() == [np.inf]
    assert padded.predict([]) == []


def test_length_one_is_multiclass():
    """Without neighbours the transition weights stay 0 and the chain is Crammer-Singer."""
    first = [y[0] for y in Y]
    chain = tagger(tol=1e-8).fit([x[:1] for x in X], [[y] for y in first])
    classes = mm.MulticlassClassifier(fit_intercept=False, tol=1e-8).fit(np.vstack([x[:1] for x in X]), first)
    assert not chain.transition_.any()
    assert chain.certificate_.primal == pytest.approx(classes.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(chain.coef_, classes.coef_.T, atol=1e-4)


@BOTH
@pytest.mark.parametrize("solver", SOLVERS)
def test_C_of_zero(loss, solver):
    fitted = tagger(loss=loss, solver=solver, C=0).fit(X, Y)
    assert not fitted.weights_.any()
    assert fitted.certificate_.gap == 0 and fitted.status_.converged


@BOTH
@pytest.mark.parametrize("solver", SOLVERS)
def test_examples_of_weight_zero_count_for_nothing(loss, solver):
    tol = {"bcfw": 1e-2, "frank_wolfe": 5e-2}.get(solver, 1e-5)
    weighted = tagger(loss=loss, solver=solver, tol=tol).fit(X, Y, sample_weight=[1, 0, 0, 2, 0, 1])
    left_out = tagger(loss=loss, tol=1e-8).fit([X[i] for i in (0, 3, 5)], [Y[i] for i in (0, 3, 5)], [1, 2, 1])
    assert weighted.certificate_.primal == pytest.approx(left_out.certificate_.primal, rel=tol)
    assert weighted.certificate_.dual <= left_out.certificate_.primal * (1 + 1e-9)


@BOTH
def test_tiny_C(loss):
    """Weights of order C: the objective is C times the losses at w = 0, to first order."""
    power = 1 if loss == "hinge" else 2
    at_zero = 1e-12 * sum(len(y) ** power for y in Y)
    fitted = tagger(loss=loss, C=1e-12).fit(X, Y)
    assert fitted.status_.converged
    assert fitted.certificate_.primal == pytest.approx(at_zero, rel=1e-9)
    assert 0 < np.abs(fitted.weights_).max() < 1e-9


@BOTH
def test_huge_C_on_separable_examples(loss):
    """The hard margin solution, by the reference solver at a C that is large enough."""
    rng = np.random.default_rng(3)
    K, y = 2, [[0, 1], [1, 0, 0], [1]]
    x = [np.eye(K)[labels] + 0.1 * rng.normal(size=(len(labels), K)) for labels in y]
    hard = solve_primal(chain_planes(x, y, K).planes, 1e6)
    fitted = tagger(loss=loss, C=1e9, tol=1e-5).fit(x, y)
    assert fitted.certificate_.primal == pytest.approx(hard.objective, rel=1e-5)
    assert fitted.predict(x) == y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@BOTH
def test_huge_C_on_noise_keeps_a_valid_certificate(loss):
    fitted = tagger(loss=loss, C=1e12, max_passes=25).fit(X, Y)
    assert fitted.certificate_.gap >= 0 and fitted.certificate_.certified
    assert (np.diff(fitted.history_["dual"]) >= -1e-9 * fitted.history_["dual"].abs().max()).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_costs_of_zero(solver):
    fitted = tagger(cost=np.zeros((3, 3)), solver=solver).fit(X, Y)
    assert not fitted.weights_.any() and fitted.certificate_.gap == 0


@BOTH
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_zero(loss, solver):
    """All outputs of equal length look the same but for transitions; the reference solver knows the optimum."""
    codes = [["abc".index(label) for label in y] for y in Y]
    C = 0.3
    planes = chain_planes([0 * x for x in X], codes, 3).planes
    squared = loss == "squared_hinge"
    best = solve_primal(planes, 2 * C if squared else C, squared=squared).objective
    tol = 1e-2 if solver in ("bcfw", "frank_wolfe") else 1e-4
    fitted = tagger(loss=loss, solver=solver, C=C, tol=tol).fit([0 * x for x in X], Y)
    assert fitted.certificate_.dual <= best * (1 + 1e-9)
    assert fitted.certificate_.primal == pytest.approx(best, rel=tol)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_features_at_all(solver):
    fitted = tagger(solver=solver, tol=1e-2).fit([x[:, :0] for x in X], Y)
    zero = tagger(tol=1e-6).fit([0 * x for x in X], Y)
    assert fitted.certificate_.primal == pytest.approx(zero.certificate_.primal, rel=1e-2)
    assert fitted.transition_.shape == (3, 3)


@BOTH
def test_ties_everywhere(loss):
    rng = np.random.default_rng(1)
    x = [rng.integers(-1, 2, (T, 2)) for T in (1, 2, 3, 3, 2, 3)]
    y = [rng.integers(0, 3, len(row)).tolist() for row in x]
    squared = loss == "squared_hinge"
    best = solve_primal(chain_planes(x, y, 3).planes, 2.0 if squared else 1.0, squared=squared).objective
    assert tagger(loss=loss, tol=1e-7).fit(x, y).certificate_.primal == pytest.approx(best, rel=1e-6)


def test_kinds_of_numbers_and_orders_of_memory():
    x = [np.round(4 * row) for row in X]
    expected = tagger().fit(x, Y).weights_
    for convert in (
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.int16),
        lambda a: a.astype(np.float16),
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a.astype(">f8"),
        lambda a: a.tolist(),
    ):
        np.testing.assert_array_equal(tagger().fit([convert(row) for row in x], Y).weights_, expected)
    np.testing.assert_array_equal(tagger().fit(Sequences.of(x), Y).weights_, expected)
    labels = [np.array(y) for y in Y]
    np.testing.assert_array_equal(tagger().fit(x, labels).weights_, expected)


def test_kinds_of_sparse_matrices():
    x = [np.where(np.abs(row) > 0.7, row, 0.0) for row in X]
    expected = tagger().fit([sp.csr_array(row) for row in x], Y).weights_
    for kind in (sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array):
        np.testing.assert_array_equal(tagger().fit([kind(row) for row in x], Y).weights_, expected)
    boolean = [sp.csr_array(row != 0) for row in x]
    ones = [sp.csr_array((row != 0).astype(float)) for row in x]
    np.testing.assert_array_equal(tagger().fit(boolean, Y).weights_, tagger().fit(ones, Y).weights_)


def test_entries_given_twice_are_added():
    once = [sp.csr_array(np.array([[2.0, 0.0], [0.0, 1.0]]))] * 2
    twice = [sp.csr_array((np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))] * 2
    y = [["a", "b"], ["b", "b"]]
    a, b = tagger(tol=1e-8).fit(once, y), tagger(tol=1e-8).fit(twice, y)
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-6)


def test_rows_of_equal_length_in_one_array():
    block = np.random.default_rng(0).normal(size=(4, 3, 2))
    y = [["a", "b", "a"]] * 4
    np.testing.assert_array_equal(tagger().fit(block, y).weights_, tagger().fit(list(block), y).weights_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_huge_features_end_with_a_valid_certificate(solver):
    """Emissions of 1e8 beside transitions of 1: what can be reached is a matter of rounding, the bounds must hold."""
    fitted = tagger(solver=solver, max_passes=8).fit([1e8 * x for x in X], Y)
    assert fitted.certificate_.gap >= 0 and np.isfinite(fitted.weights_).all()
    assert fitted.certificate_.primal == fitted.history_["primal"].iloc[-1]
    assert len(fitted.predict(X)) == len(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "simplicial"])
@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_features_that_nobody_scaled(solver, scale):
    """Emissions of a hundred and more beside transitions of 1, as with pixels or counts."""
    fitted = tagger(solver=solver, max_passes=300).fit([scale * x for x in X], Y)
    assert fitted.status_.converged


def test_huge_features_alone_are_a_matter_of_scale():
    """x -> s x with C -> C / s^2 gives w -> w / s and the objective divided by s^2."""
    s = 1e8
    small = mm.MulticlassClassifier(fit_intercept=False, tol=1e-6).fit(MX, MY)
    large = mm.MulticlassClassifier(fit_intercept=False, tol=1e-6, C=s**-2).fit(s * MX, MY)
    assert large.certificate_.primal * s**2 == pytest.approx(small.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(large.coef_ * s, small.coef_, atol=1e-4)


def test_labels_of_mixed_kinds():
    names = {"a": 0, "b": "b", "c": ("c", 1)}
    fitted = tagger().fit(X, [[names[label] for label in y] for y in Y])
    plain = tagger().fit(X, Y)
    assert set(fitted.classes_) == set(names.values())
    assert fitted.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-3)
    assert all(label in names.values() for y in fitted.predict(X) for label in y)


def test_more_than_255_labels():
    y = [list(range(k, k + 3)) for k in range(280, 300, 3)]
    x = [np.eye(30)[np.array(labels) - 275] for labels in y]
    fitted = tagger(classes=range(303), tol=1e-2, solver="sequential_dual").fit(x, y)
    assert fitted.predict(x) == y
    assert fitted.coef_.shape == (30, 303)
    assert fitted.predict_kbest(x, 2)[0][0][0] == y[0]


def test_a_sequence_of_ten_thousand():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 10_000)
    x = np.eye(3)[y] + 0.3 * rng.normal(size=(10_000, 3))
    fitted = tagger(C=0.01, tol=0.05).fit([x, x[:7]], [y, y[:7]])
    assert fitted.score([x], [y]) > 0.95
    marginals = fitted.predict_marginals([x])[0]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-9)
    assert len(fitted.predict_kbest([x], 2)[0]) == 2


def test_labels_that_only_the_test_data_has():
    fitted = tagger().fit(X, Y)
    unseen = [["z", *y[1:]] for y in Y]
    tokens = sum(len(y) for y in Y)
    right = sum(
        a == b for y, found in zip(unseen, fitted.predict(X), strict=True) for a, b in zip(y, found, strict=True)
    )
    assert fitted.score(X, unseen) == pytest.approx(right / tokens)
    svm = mm.StructuredSVM(mm.Chain()).fit(X, Y)
    assert svm.score(X, unseen) == pytest.approx(-(tokens - right) / len(X))


def test_sparse_and_dense_may_take_each_others_place_at_prediction():
    fitted = tagger().fit(X, Y)
    assert fitted.predict([sp.csr_array(x) for x in X]) == fitted.predict(X)
    fitted = tagger().fit([sp.csr_array(x) for x in X], Y)
    assert fitted.predict(X) == fitted.predict([sp.csr_array(x) for x in X])
