"""The multiclass kernel against trying every class, and the checks of its data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.models.multiclass import Multiclass

from .batches import decode, plane, planes, total


@st.composite
def problems(draw):
    """(bound model, features with the constant one last, labels, cost table, w, cost weight, exact arithmetic)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, K = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    F, D = draw(st.sampled_from([(0, 3), (4, 0), (3, 2), (1, 1), (7, 0)]))
    integral, intercept = draw(st.booleans()), draw(st.booleans())
    scaling = draw(st.sampled_from([1.0, 4.0])) if intercept else 0.0

    def numbers(*shape):
        return rng.integers(-2, 3, shape).astype(float) if integral else rng.normal(size=shape)

    sparse, dense = numbers(n, F) * (rng.random((n, F)) < 0.5), numbers(n, D)
    X = {"sparse": sp.csr_array(sparse), "dense": dense}
    if F == 0:
        X = dense
    elif D == 0:
        X = X["sparse"]
    Y = rng.integers(0, K, n).tolist()
    table = rng.integers(0, 3, (K, K)).astype(float) if integral else rng.random((K, K))
    np.fill_diagonal(table, 0.0)
    hamming = draw(st.booleans())
    weights = {k: float(rng.integers(0, 4)) for k in range(K)} if draw(st.booleans()) else None
    model = Multiclass(
        cost="hamming" if hamming else table,
        fit_intercept=intercept,
        intercept_scaling=scaling or 1.0,
        classes=range(K),
    )
    bound = model.bind(X, Y, class_weight=weights)
    cost = 1.0 - np.eye(K) if hamming else table
    if weights:
        cost = np.diag([weights[k] for k in range(K)]) @ cost
    features = np.hstack([sparse, dense, np.full((n, 1 if intercept else 0), scaling)])
    w = numbers(bound.n_weights) * draw(st.sampled_from([0.0, 1.0, 3.0]))
    lam = draw(st.sampled_from([0.0, 1.0, 0.5, 2.0, -1.0, -2.5]))
    return bound, features, Y, cost, w, lam, integral


def phi(bound, x, k):
    """Joint features: x in column k of the matrix of weights."""
    out = np.zeros((len(x), bound.layout.stride))
    out[:, k] = x
    return out.ravel()


@settings(max_examples=300, deadline=None)
@given(problems())
def test_argmax_cost_bound_and_plane(case):
    bound, X, Y, cost, w, lam, integral = case
    examples = np.arange(len(Y))
    outputs, costs, bounds, status = decode(bound, w, examples, lam)
    rows, _ = planes(bound, w, examples, lam)
    assert status == -1
    assert [row.position for row in rows] == examples.tolist()
    scores = bound.scores(w)
    assert scores.shape == cost[Y].shape
    for i, row in enumerate(rows):
        found = int(outputs[i][0])
        score = np.array([w @ phi(bound, X[i], k) for k in range(len(cost))])
        np.testing.assert_allclose(scores[i], score, atol=1e-12)
        objective = score + lam * cost[Y[i]] - score[Y[i]]
        if integral:
            assert found == np.argmax(objective)  # the first of equals
        assert objective[found] == pytest.approx(objective.max(), abs=1e-9)
        assert bounds[i] == row.bound == pytest.approx(objective.max(), abs=1e-9)
        assert costs[i] == cost[Y[i], found]
        assert row.b == lam * costs[i]
        np.testing.assert_allclose(row.a, phi(bound, X[i], Y[i]) - phi(bound, X[i], found), atol=1e-12)
        for emit in (0, 1, 3):
            made, output, result = plane(bound, w, i, lam, emit)
            assert (made, output.tolist()) == (min(emit, 1), [found])
            assert result[0] == pytest.approx(objective.max(), abs=1e-9)
            assert result[1] == result[0]


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(0, 20))
def test_lift_small_buffers_and_sums(case, spare):
    bound, _, Y, _, w, lam, _ = case
    lam = abs(lam) + 0.5  # so that b tells whether a plane has a cost
    examples = np.arange(len(Y))[::-1]
    lift = np.arange(1.0, len(Y) + 1)
    rows, calls = planes(bound, w, examples, lam)
    assert calls == len(Y)
    lifted, _ = planes(bound, np.append(w, lift * 1e6), examples, lam, lift=lift, spare=spare, spare_rows=spare)
    for row, bare in zip(lifted, rows, strict=True):
        extra = np.zeros(len(lift))
        if bare.a.any() or bare.b > 0:
            extra[examples[row.position]] = lift[examples[row.position]]
        np.testing.assert_array_equal(row.a, np.append(bare.a, extra))
        assert (row.position, row.b, row.bound) == (bare.position, bare.b, bare.bound)
    scale = np.linspace(1.0, 2.0, len(Y))
    a, b, bounds = total(bound, w, examples, lam, scale)
    np.testing.assert_allclose(a, sum(s * row.a for s, row in zip(scale, rows, strict=True)), atol=1e-9)
    assert b == pytest.approx(sum(s * row.b for s, row in zip(scale, rows, strict=True)))
    assert bounds.tolist() == [row.bound for row in rows]


@settings(max_examples=50, deadline=None)
@given(problems())
def test_prediction_needs_no_labels_and_ignores_padding(case):
    bound, X, Y, _, w, _, _ = case
    layout = bound.layout
    data = {"sparse": X[:, : layout.n_sparse], "dense": X[:, layout.n_sparse : layout.n_features]}
    data = {key: block for key, block in data.items() if block.shape[1]}
    unlabelled = Multiclass().bind(data, layout=layout)
    garbled = np.where(layout.real(), w, 1e9)
    expected = [y.tolist() for y in decode(bound, w, range(len(Y)), 0.0)[0]]
    for cost_weight in (0.0, 1.0, -2.0):
        outputs, costs, _, _ = decode(unlabelled, garbled, range(len(Y)), cost_weight)
        assert [y.tolist() for y in outputs] == expected
        assert not costs.any()
    for row in planes(bound, garbled, range(len(Y)), 1.0)[0]:
        assert not row.a[~layout.real()].any()


def test_groups_reproduce_the_scores():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(6, 3)), list("abcabc")
    bound = Multiclass(fit_intercept=True, intercept_scaling=5.0).bind(X, Y)
    w = rng.normal(size=bound.n_weights)
    groups = bound.layout.groups(w)
    assert groups["coef"].shape == (3, 3) and groups["intercept"].shape == (3,)
    np.testing.assert_allclose(bound.scores(w), X @ groups["coef"] + groups["intercept"])
    np.testing.assert_allclose(bound.scores(w, np.array([4, 1])), bound.scores(w)[[4, 1]])
    assert bound.layout.labels.classes == ["a", "b", "c"]
    plain = Multiclass().bind(X, Y).layout.groups(w[:9])
    np.testing.assert_array_equal(plain["intercept"], np.zeros(3))


def test_one_class_does_not_crash():
    bound = Multiclass(fit_intercept=True).bind(np.ones((3, 2)), ["only"] * 3)
    w = np.random.default_rng(0).normal(size=bound.n_weights)
    rows, _ = planes(bound, w, range(3), 1.0)
    assert all(not row.a.any() and row.b == 0.0 and row.bound == 0.0 for row in rows)


def test_dense_data_may_follow_sparse_data():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(5, 4)), [0, 1, 2, 0, 1]
    trained = Multiclass(fit_intercept=True).bind(sp.csr_matrix(X), Y)
    w = rng.normal(size=trained.n_weights)
    later = Multiclass().bind(X, Y, layout=trained.layout)
    np.testing.assert_allclose(later.scores(w), trained.scores(w))
    for a, b in zip(planes(trained, w, range(5), 1.0)[0], planes(later, w, range(5), 1.0)[0], strict=True):
        np.testing.assert_allclose(a.a, b.a)


def test_duplicate_entries_are_added_and_the_input_is_left_alone():
    X = sp.csr_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    bound = Multiclass(classes=[0, 1]).bind(X, [0])
    rows, _ = planes(bound, np.zeros(4), [0], 1.0)
    np.testing.assert_array_equal(rows[0].a, [0.0, 0.0, 3.0, -3.0])
    assert X.nnz == 3


def test_no_examples_to_predict():
    layout = Multiclass().bind(np.ones((2, 3)), [0, 1]).layout
    empty = Multiclass().bind(np.empty((0, 3)), layout=layout)
    assert empty.n_examples == 0
    assert empty.scores(np.zeros(empty.n_weights)).shape == (0, 2)


BAD = np.ones((3, 2))
BAD[2, 1] = np.nan


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones(3), [0, 1, 2], r"shape \(3,\).*one row of features.*X\[None\]"),
        (np.ones((2, 2, 2)), [0, 1], r"shape \(2, 2, 2\)"),
        (BAD, [0, 1, 2], "example 2 has NaN or infinite"),
        (sp.csr_array(BAD), [0, 1, 2], "example 2 has NaN or infinite"),
        (np.ones((3, 2)), [0, 1], "X has 3 examples and Y has 2"),
        (np.array([["a"], ["b"]]), [0, 1], "must be numbers"),
        ([[1.0, 2.0], [1.0]], [0, 1], "different lengths"),
        (np.ones((2, 2)), [0, [1]], "example 1 has the label .*hashable"),
        (np.ones((2, 2)), [0, float("nan")], "example 1 has the label nan"),
        (np.ones((0, 2)), [], "X is empty"),
        (np.ones((2, 0)), [0, 1], "no features"),
        (np.ones((2, 2)), None, "pass Y"),
        ({"sparse": np.ones((2, 1)), "dense": np.ones((3, 1))}, [0, 1], "'sparse' has 2 rows and 'dense' has 3"),
        ({"edge": np.ones((2, 1))}, [0, 1], r"\['edge'\].*use 'sparse' and/or 'dense'"),
    ],
)
def test_bad_data_is_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        Multiclass().bind(X, Y)


def test_too_many_weights_are_refused_with_numbers():
    assert Multiclass().bind(sp.csr_array((1, 2**30)), ["a"]).n_weights == 2**30
    with pytest.raises(ValueError, match=r"1073741824 features times 2 classes make 2147483648 weights"):
        Multiclass().bind(sp.csr_array((2, 2**30)), [0, 1])


def test_unseen_label_width_weights_and_scaling():
    X, Y = np.ones((2, 2)), ["a", "b"]
    layout = Multiclass().bind(X, Y).layout
    with pytest.raises(ValueError, match=r"example 1 has the label 'z'.*classes"):
        Multiclass().bind(X, ["a", "z"], layout=layout)
    with pytest.raises(ValueError, match=r"0 sparse and 3 dense.*fitted with 0 sparse and 2 dense"):
        Multiclass().bind(np.ones((2, 3)), layout=layout)
    with pytest.raises(ValueError, match="class_weight of 'b' is -1"):
        Multiclass().bind(X, Y, class_weight={"b": -1})
    with pytest.raises(ValueError, match="part of the layout"):
        Multiclass().bind(X, Y, class_weight={"b": 1}, layout=layout)
    with pytest.raises(ValueError, match="intercept_scaling is 0"):
        Multiclass(intercept_scaling=0).bind(X, Y)
    with pytest.raises(ValueError, match="the cost matrix has 3 rows for 2 classes"):
        Multiclass(cost=np.zeros((3, 3))).bind(X, Y)
