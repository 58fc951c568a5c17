"""List Viterbi against sorting every labeling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference import tables
from maxmargin.inference.recursion import chain_k_best as k_best
from reference.enumeration import chain_k_best, labeling_score

from .chain_tables import assert_same, chains


@settings(max_examples=300, deadline=None)
@given(chains(), st.integers(1, 40))
def test_k_best_in_order_with_ties(chain, k):
    assert_same(k_best(*chain, k), chain_k_best(*chain, k))


@settings(max_examples=50, deadline=None)
@given(chains())
def test_asking_for_more_than_there_are_gives_all(chain):
    labels, scores = k_best(*chain, 10_000)
    length, n_labels = chain[0].shape
    _, everything = chain_k_best(*chain, n_labels**length)
    assert len(scores) == len(everything)
    assert len(np.unique(labels, axis=0)) == len(labels)


def test_single_position_and_single_label():
    labels, scores = k_best([[1.0, 3.0, 2.0]], np.zeros((3, 3)), 5)
    assert (labels.tolist(), scores.tolist()) == ([[1], [2], [0]], [3.0, 2.0, 1.0])
    labels, scores = k_best(np.ones((4, 1)), np.zeros((1, 1)), 5)
    assert (labels.tolist(), scores.tolist()) == ([[0, 0, 0, 0]], [4.0])


def test_infeasible_gives_nothing():
    labels, scores = k_best(np.full((3, 2), -np.inf), np.zeros((2, 2)), 4)
    assert labels.shape == (0, 3)
    assert scores.shape == (0,)


def test_long_chain_swaps_one_label_at_a_time():
    # Without transitions the second best labeling gives up the cheapest single position, and so on.
    rng = np.random.default_rng(0)
    length, k = 10_000, 8
    unary = np.zeros((length, 2))
    unary[:, 1] = -1.0 - rng.permutation(length)
    labels, scores = k_best(unary, np.zeros((2, 2)), k)
    expected = [0.0, -1.0, -2.0, -3.0, -3.0, -4.0, -4.0, -5.0]
    assert scores.tolist() == expected
    assert len(np.unique(labels, axis=0)) == k
    np.testing.assert_array_equal(labeling_score(unary, np.zeros((2, 2)), labels), expected)


def test_many_labels():
    rng = np.random.default_rng(2)
    unary, transition = rng.normal(size=(2, 300)), rng.normal(size=(300, 300))
    labels, scores = k_best(unary, transition, 50)
    every = (unary[0][:, None] + transition) + unary[1]
    np.testing.assert_array_equal(scores, np.sort(every.ravel())[::-1][:50])
    np.testing.assert_array_equal(every[labels[:, 0], labels[:, 1]], scores)


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match="at least one"):
        k_best(np.zeros((2, 2)), np.zeros((2, 2)), 0)
    with pytest.raises(ValueError, match=r"2\*\*31.*smaller k"):
        k_best(np.zeros((40, 2)), np.zeros((2, 2)), 2**31)
    monkeypatch.setattr(tables, "LARGEST_TABLE", 10**6)
    with pytest.raises(ValueError, match=r"GiB.*smaller k"):
        k_best(np.zeros((1000, 10)), np.zeros((10, 10)), 100)
