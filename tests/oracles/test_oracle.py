"""The margin oracle against enumeration: planes, losses, sums, lifts, and the order of answers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from maxmargin.models.chain import Chain
from maxmargin.models.multiclass import Multiclass
from maxmargin.models.user import PythonModel
from maxmargin.oracles.oracle import ModelOracle, reduced
from reference.problems import (
    chain_planes,
    multiclass_planes,
    random_chains,
    random_cost_matrix,
    random_multiclass,
)


class Enumerating:
    """Multiclass in plain Python: the argmax tries every class."""

    def __init__(self, K):
        self.K = K

    def n_weights(self, X, Y):
        return len(X[0]) * self.K

    def joint_features(self, x, y):
        table = np.zeros((len(x), self.K))
        table[:, y] = x
        return table.ravel()

    def cost(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        scores = np.asarray(x) @ w.reshape(len(x), self.K)
        if y_true is not None:
            scores = scores + cost_weight * (np.arange(self.K) != y_true)
        return int(scores.argmax())


def case(kind, seed=0):
    """(bound model, enumerated problem, columns of its weights among ours)."""
    if kind.startswith("chain"):
        X, y = random_chains(7, 3, 2, lengths=(1, 4), seed=seed)
        cost = random_cost_matrix(3, seed=seed) if kind == "chain, matrix" else "hamming"
        bound = Chain(ends=kind == "chain, ends", cost=cost, classes=range(3)).bind(X, y)
        return bound, chain_planes(X, y, 3, cost=cost, ends=kind == "chain, ends")
    X, y = random_multiclass(7, 3, 2, seed=seed)
    bound = PythonModel(Enumerating(3)).bind(X, y) if kind == "python" else Multiclass(classes=range(3)).bind(X, y)
    return bound, multiclass_planes(X, y, 3)


KINDS = ["chain", "chain, ends", "chain, matrix", "multiclass", "python"]


def dense(planes):
    return planes.to_csr().toarray()


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_planes_against_enumeration(kind, parts):
    for seed in range(5):
        bound, every = case(kind, seed)
        assert bound.n_weights == every.n_weights  # three labels need no padding
        w = np.random.default_rng(seed).normal(size=bound.n_weights)
        oracle = ModelOracle(bound)
        planes = oracle.planes(w, np.arange(7), parts)
        assert (np.diff(planes.example) >= 0).all()
        for i, (A, b) in enumerate(every.planes):
            rows = np.flatnonzero(planes.example == i)
            assert 1 <= len(rows) <= parts
            loss = (b - A @ w).max()
            np.testing.assert_allclose(planes.bound[rows], loss, atol=1e-9)
            assert planes.violations(w)[rows[0]] == pytest.approx(loss, abs=1e-9)
            for row in rows:  # each is the plane of some output
                distance = np.abs(A - dense(planes)[row]).max(axis=1) + np.abs(b - planes.b[row])
                assert distance.min() < 1e-9
            assert len(np.unique(dense(planes)[rows], axis=0)) == len(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_at_weights_of_zero_is_the_largest_cost(kind):
    bound, every = case(kind)
    planes = ModelOracle(bound).planes(np.zeros(bound.n_weights), np.arange(7))
    np.testing.assert_allclose(planes.bound, [cost.max() for cost in every.costs])
    np.testing.assert_allclose(planes.b, planes.bound)


@pytest.mark.parametrize("lifted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sum_is_the_sum_of_the_planes(kind, lifted):
    bound, _ = case(kind)
    rng = np.random.default_rng(1)
    oracle = ModelOracle(bound, lift=rng.random(7) if lifted else np.empty(0))
    w, scale = rng.normal(size=oracle.n_columns), rng.random(5)
    examples = np.array([5, 0, 3, 6, 1])
    a, b, losses, _ = oracle.sum(w, examples, scale)
    planes = oracle.planes(w, examples)
    np.testing.assert_array_equal(planes.example, examples)
    np.testing.assert_allclose(a, scale @ dense(planes), atol=1e-12)
    assert b == pytest.approx(scale @ planes.b)
    np.testing.assert_allclose(losses, planes.bound)


@pytest.mark.parametrize("kind", KINDS)
def test_sum_takes_one_plane_an_example_also_when_there_are_more(kind):
    bound, _ = case(kind)
    w = np.random.default_rng(2).normal(size=bound.n_weights)
    for lift in (np.empty(0), np.full(7, 0.5)):
        column = np.concatenate([w, np.zeros(len(lift))])
        one = ModelOracle(bound, lift=lift).sum(column, np.arange(7), np.ones(7))
        more = reduced(ModelOracle(bound, lift=lift).planes(column, np.arange(7), 4), np.ones(7), column)
        for x, y in zip(one, more, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_lift_is_one_entry_in_the_column_of_the_example(kind, parts):
    """Squared slacks: the extra entry is there for every plane but the zero plane of the true output."""
    bound, _ = case(kind)
    lift = np.linspace(0.5, 2.0, 7)
    w = 3.0 * np.random.default_rng(3).normal(size=bound.n_weights)
    oracle = ModelOracle(bound, lift=lift)
    assert oracle.n_columns == bound.n_weights + 7
    planes = oracle.planes(np.concatenate([w, np.zeros(7)]), np.arange(7), parts)
    plain = ModelOracle(bound).planes(w, np.arange(7), parts)
    np.testing.assert_allclose(dense(planes)[:, : bound.n_weights], dense(plain), atol=1e-12)
    np.testing.assert_array_equal(planes.example, plain.example)
    for row, i in enumerate(planes.example):
        extra = np.zeros(7)
        extra[i] = lift[i] if plain.b[row] > 0 or dense(plain)[row].any() else 0.0
        np.testing.assert_allclose(dense(planes)[row, bound.n_weights :], extra)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_come_in_the_order_asked_and_repeat_when_asked_twice(kind):
    bound, _ = case(kind)
    w = np.random.default_rng(4).normal(size=bound.n_weights)
    oracle = ModelOracle(bound)
    every = oracle.planes(w, np.arange(7))
    asked = np.array([6, 2, 2, 0])
    planes = oracle.planes(w, asked)
    np.testing.assert_array_equal(planes.example, asked)
    np.testing.assert_array_equal(dense(planes), dense(every)[asked])
    assert len(oracle.planes(w, np.empty(0, np.int64))) == 0
    a, b, losses, _ = oracle.sum(w, np.empty(0, np.int64), np.empty(0))
    assert not a.any() and b == 0 and len(losses) == 0


def test_buffers_that_hold_a_few_examples_only():
    """More non-zeros than the scratch of a thread has: the batch is made in several calls."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(30, 200)) for _ in range(240)]
    y = [rng.integers(0, 5, 30) for _ in X]
    bound = Chain().bind(X, y)
    oracle = ModelOracle(bound)
    w = rng.normal(size=bound.n_weights)
    planes = oracle.planes(w, np.arange(240))
    assert planes.indptr[-1] > max(16 * (bound.room + 1), 1 << 16)  # the room of one call
    one_by_one = [oracle.planes(w, np.array([i])) for i in range(240)]
    np.testing.assert_array_equal(dense(planes), np.vstack([dense(p) for p in one_by_one]))
    np.testing.assert_array_equal(planes.bound, np.concatenate([p.bound for p in one_by_one]))


def test_no_plane_is_longer_than_it_says():
    for kind in KINDS:
        bound, _ = case(kind)
        for lift in (np.empty(0), np.ones(7)):
            oracle = ModelOracle(bound, lift=lift)
            w = np.random.default_rng(5).normal(size=oracle.n_columns)
            assert np.diff(oracle.planes(w, np.arange(7)).indptr).max() <= oracle.longest


def test_a_pickled_oracle_answers_the_same():
    bound, _ = case("python")
    oracle = ModelOracle(bound, lift=np.ones(7))
    w = np.random.default_rng(6).normal(size=oracle.n_columns)
    again = pickle.loads(pickle.dumps(oracle))
    np.testing.assert_array_equal(dense(again.planes(w, np.arange(7))), dense(oracle.planes(w, np.arange(7))))
