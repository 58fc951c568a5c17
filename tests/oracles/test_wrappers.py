"""Oracles around oracles: counting and remembering, with the verb kept."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.models.chain import Chain
from maxmargin.oracles.cached import CachedOracle
from maxmargin.oracles.counting import CountingOracle
from maxmargin.oracles.margin import MarginOracle
from reference.problems import chain_planes, random_chains

X, Y = random_chains(6, 3, 2, lengths=(2, 4), seed=1)
BOUND = Chain().bind(X, Y)
EVERY = chain_planes(X, Y, 3).planes
ALL = np.arange(6)


def weights(seed):
    return np.random.default_rng(seed).normal(size=BOUND.n_weights)


def test_counting_counts_examples_and_changes_nothing():
    bare, counting = MarginOracle(BOUND), CountingOracle(MarginOracle(BOUND))
    w = weights(0)
    planes = counting.planes(w, np.array([1, 4]))
    assert (counting.oracle_calls, counting.argmax_calls) == (2, 2)
    np.testing.assert_array_equal(planes.to_csr().toarray(), bare.planes(w, np.array([1, 4])).to_csr().toarray())
    a, b, losses = counting.sum(w, ALL, np.ones(6))
    assert (counting.oracle_calls, counting.argmax_calls) == (8, 8)
    for ours, theirs in zip((a, b, losses), bare.sum(w, ALL, np.ones(6)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert counting.seconds == counting.timed_seconds > 0 and counting.timed_calls == 8
    assert (counting.n_examples, counting.n_columns) == (6, BOUND.n_weights)
    assert counting.longest == bare.longest


def test_the_first_answers_are_those_of_the_oracle():
    cached, bare = CachedOracle(MarginOracle(BOUND)), MarginOracle(BOUND)
    ours, theirs = cached.planes(weights(0), ALL), bare.planes(weights(0), ALL)
    np.testing.assert_array_equal(ours.to_csr().toarray(), theirs.to_csr().toarray())
    np.testing.assert_array_equal(ours.bound, theirs.bound)
    np.testing.assert_array_equal(ours.example, theirs.example)
    assert cached.hits == 0


def test_a_remembered_plane_is_a_plane_with_an_unknown_bound():
    counting = CountingOracle(MarginOracle(BOUND))
    cached = CachedOracle(counting, share=0.25)
    cached.planes(np.zeros(BOUND.n_weights), ALL)
    w = 0.01 * weights(1)
    again = cached.planes(w, ALL)
    assert cached.hits == 6 and counting.oracle_calls == 6
    assert np.isinf(again.bound).all()
    for i, row, b, violation in zip(again.example, again.to_csr().toarray(), again.b, again.violations(w), strict=True):
        A, offsets = EVERY[i]
        assert (np.abs(A - row).max(axis=1) + np.abs(offsets - b)).min() < 1e-9
        assert 0 < violation <= (offsets - A @ w).max() + 1e-9


def test_exact_answers_never_come_from_memory():
    counting = CountingOracle(MarginOracle(BOUND))
    cached = CachedOracle(counting)
    cached.planes(np.zeros(BOUND.n_weights), ALL)
    w = 0.01 * weights(1)
    exact = cached.planes(w, ALL, exact=True)
    assert counting.oracle_calls == 12 and cached.hits == 0
    np.testing.assert_allclose(exact.bound, [(b - A @ w).max() for A, b in EVERY])


def test_a_plane_that_is_violated_too_little_does_not_serve():
    counting = CountingOracle(MarginOracle(BOUND))
    cached = CachedOracle(counting, share=0.9)
    first = cached.planes(np.zeros(BOUND.n_weights), ALL)
    row = first.to_csr().toarray()[2]
    w = row / (row @ row) * 0.5 * first.b[2]  # leaves the plane of example 2 at half of its violation
    answer = cached.planes(w, np.array([2]))
    assert counting.oracle_calls == 7 and cached.hits == 0
    assert np.isfinite(answer.bound[0])
    generous = CachedOracle(CountingOracle(MarginOracle(BOUND)), share=0.25)
    generous.planes(np.zeros(BOUND.n_weights), ALL)
    assert np.isinf(generous.planes(w, np.array([2])).bound[0]) and generous.hits == 1


def test_hits_and_misses_keep_the_order_asked():
    cached = CachedOracle(MarginOracle(BOUND))
    cached.planes(np.zeros(BOUND.n_weights), np.array([1, 3]))
    answer = cached.planes(0.01 * weights(1), np.array([5, 3, 0, 1]))
    np.testing.assert_array_equal(answer.example, [5, 3, 0, 1])
    np.testing.assert_array_equal(np.isinf(answer.bound), [False, True, False, True])


def test_several_planes_an_example_are_all_remembered_up_to_the_size():
    cached = CachedOracle(MarginOracle(BOUND, parts=4), size=3)
    for seed in range(5):
        cached.planes(weights(seed), ALL, exact=True)
    assert max(len(seen) for seen in cached._seen.values()) == 3
    assert cached.sum(weights(0), ALL, np.ones(6))[1] == pytest.approx(
        MarginOracle(BOUND).sum(weights(0), ALL, np.ones(6))[1]
    )
    assert (cached.n_examples, cached.n_columns) == (6, BOUND.n_weights) and cached.longest > 0
