"""Viterbi against looking at every labeling."""

import numpy as np
import pytest
from hypothesis import given, settings

from maxmargin.inference.recursion import chain_argmax as best
from maxmargin.inference.tables import score_tables
from reference.enumeration import chain_argmax, labeling_score

from .chain_tables import chains


@settings(max_examples=300, deadline=None)
@given(chains())
def test_best_labeling_with_ties(chain):
    labels, score = best(*chain)
    expected, top = chain_argmax(*chain)
    assert score == top  # both add from left to right, so not a bit differs
    np.testing.assert_array_equal(labels, expected)


def test_all_tied_gives_smallest_labels():
    labels, score = best(np.zeros((6, 3)), np.zeros((3, 3)))
    assert score == 0.0
    assert labels.tolist() == [0] * 6


def test_tie_goes_to_the_smaller_last_label():
    # Labelings (1, 0) and (0, 1) tie at 1; the one with the smaller last label is given.
    labels, score = best(np.zeros((2, 2)), [[0.0, 1.0], [1.0, 0.0]])
    assert (labels.tolist(), score) == ([1, 0], 1.0)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_infeasible(length):
    unary = np.zeros((length, 3))
    unary[length // 2] = -np.inf
    labels, score = best(unary, np.zeros((3, 3)))
    assert score == -np.inf
    assert labels.tolist() == [-1] * length


def test_blocked_by_transitions_only():
    labels, score = best(np.zeros((2, 5)), np.full((5, 5), -np.inf))
    assert score == -np.inf
    assert labels.tolist() == [-1, -1]


def test_empty_sequence_scores_zero():
    assert best(np.zeros((0, 3)), np.zeros((3, 3)))[1] == 0.0


@pytest.mark.parametrize("n_labels", range(1, 13))
def test_every_remainder_of_four_labels(n_labels):
    rng = np.random.default_rng(n_labels)
    chain = rng.integers(-1, 2, (3, n_labels)).astype(float), rng.integers(-1, 2, (2, n_labels, n_labels)).astype(float)
    np.testing.assert_array_equal(best(*chain)[0], chain_argmax(*chain)[0])


@pytest.mark.parametrize("moving", [False, True])
def test_planted_labels_of_a_long_chain(moving):
    rng = np.random.default_rng(0)
    length, n_labels = 10_000, 20
    planted = rng.integers(0, n_labels, length)
    unary = rng.normal(size=(length, n_labels))
    transition = rng.normal(size=(length - 1 if moving else 1, n_labels, n_labels))
    unary[np.arange(length), planted] += 50.0  # more than any pair of transitions can win back
    labels, score = best(unary, transition)
    np.testing.assert_array_equal(labels, planted)
    assert score == labeling_score(unary, transition, planted)


def test_more_labels_than_a_byte_holds():
    rng = np.random.default_rng(1)
    unary, transition = rng.normal(size=(2, 300)), rng.normal(size=(300, 300))
    labels, score = best(unary, transition)
    every = (unary[0][:, None] + transition) + unary[1]
    assert score == every.max()
    assert tuple(labels) == np.unravel_index(every.argmax(), every.shape)
    unary[1, 299] += 100.0
    unary[0, 298] += 100.0
    assert best(unary, transition)[0].tolist() == [298, 299]


@pytest.mark.parametrize(
    ("unary", "transition", "message"),
    [
        (np.zeros(3), np.zeros((3, 3)), r"\(T, K\)"),
        (np.zeros((4, 3)), np.zeros((2, 3, 3)), r"\(3, 3, 3\)"),
        (np.zeros((4, 3)), np.zeros((2, 2)), r"\(3, 3\)"),
        (np.array([[0.0, np.nan]]), np.zeros((2, 2)), r"unary\[0, 1\] is nan"),
        (np.zeros((2, 2)), np.array([[0.0, 0.0], [np.inf, 0.0]]), r"transition\[0, 1, 0\] is inf"),
    ],
)
def test_wrong_tables_are_named(unary, transition, message):
    with pytest.raises(ValueError, match=message):
        score_tables(unary, transition)
