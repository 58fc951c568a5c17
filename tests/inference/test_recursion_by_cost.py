"""Best score for each cost against sorting every labeling by its cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference.recursion import chain_by_cost as by_cost
from maxmargin.inference.recursion_kernel import fill_by_cost, path_of_cost
from reference.enumeration import chain_argmax, chain_by_cost, labeling_score

from .chain_tables import assert_same, chains


@settings(max_examples=300, deadline=None)
@given(chains(costs=True), st.none() | st.integers(0, 12))
def test_every_cost_value_with_ties(chain, max_cost):
    assert_same(by_cost(*chain, max_cost), chain_by_cost(*chain, max_cost))


@settings(max_examples=100, deadline=None)
@given(chains(costs=True), st.floats(0.0, 5.0))
def test_frontier_gives_the_cost_augmented_argmax(chain, weight):
    unary, transition, cost = chain
    scores, _ = by_cost(unary, transition, cost)
    _, best = chain_argmax(unary + weight * cost, transition)
    augmented = np.max(scores + weight * np.arange(len(scores)))
    if best == -np.inf:
        assert augmented == -np.inf
    else:
        assert augmented == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_hamming_cost_zero_is_the_true_labeling():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 30)
    unary, transition = rng.normal(size=(30, 4)), rng.normal(size=(4, 4))
    scores, labels = by_cost(unary, transition, np.arange(4) != true[:, None])
    np.testing.assert_array_equal(labels[0], true)
    wrong = (labels != true).sum(axis=1)
    np.testing.assert_array_equal(wrong, np.arange(31))
    np.testing.assert_array_equal(labeling_score(unary, transition, labels), scores)


def test_costs_beyond_the_limit_and_gaps():
    scores, labels = by_cost([[0.0, 5.0, 9.0]], np.zeros((3, 3)), [[0, 3, 10**6]], max_cost=4)
    assert scores.tolist() == [0.0, -np.inf, -np.inf, 5.0, -np.inf]
    assert labels.ravel().tolist() == [0, -1, -1, 1, -1]


def test_long_chain_and_many_labels():
    length = 10_000
    scores, labels = by_cost(np.tile([0.0, 1.0], (length, 1)), np.zeros((2, 2)), np.tile([0, 1], (length, 1)), 5)
    assert scores.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    np.testing.assert_array_equal(labels.sum(axis=1), np.arange(6))
    rng = np.random.default_rng(3)
    unary, transition = rng.normal(size=(2, 300)), rng.normal(size=(300, 300))
    scores, _ = by_cost(unary, transition, np.tile(np.arange(300) != 7, (2, 1)))
    every = (unary[0][:, None] + transition) + unary[1]
    wrong = (np.arange(300) != 7)[:, None] * 1 + (np.arange(300) != 7)
    assert scores.tolist() == [every[wrong == c].max() for c in range(3)]


def test_kernel_answers_for_costs_outside_the_table():
    none, free, cost = np.empty(0, np.int32), np.empty(0, np.int64), np.array([0, 1])
    chain = np.zeros(2), none, none, np.zeros(4), 2, cost, free, np.empty((2, 2))
    fill_by_cost(*chain, np.empty(2))
    for c in (-1, 2):
        nodes = np.zeros(1, np.int32)
        assert path_of_cost(*chain, c, nodes, none) == -np.inf
        assert nodes[0] == -1


@pytest.mark.parametrize(
    ("cost", "max_cost", "message"),
    [
        ([[0, -1]], None, r"cost\[0, 1\] is -1"),
        ([[0, 0.5]], None, r"cost\[0, 1\] is 0.5.*whole"),
        ([[0, 1, 2]], None, "shape"),
        ([[0, 1]], -1, "0 or more"),
        ([[0, 1]], 10**10, "GiB.*max_cost"),
    ],
)
def test_refusals(cost, max_cost, message):
    with pytest.raises(ValueError, match=message):
        by_cost(np.zeros((1, 2)), np.zeros((2, 2)), cost, max_cost)
