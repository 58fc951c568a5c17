"""Enumeration itself, on cases small enough to write down."""

import itertools

import numpy as np
import pytest

from reference.enumeration import (
    chain_argmax,
    chain_by_cost,
    chain_k_best,
    chain_marginals,
    chain_scores,
    enumerate_argmax,
    labeling,
    labeling_score,
    labelings,
)


def test_order_is_from_the_last_position_backwards():
    found = [tuple(y) for y in labelings(3, 2)]
    assert found == sorted(itertools.product(range(2), repeat=3), key=lambda y: y[::-1])
    assert [tuple(labeling(i, 3, 2)) for i in range(8)] == found
    assert sum(1 for _ in labelings(7, 4)) == 4**7


def test_score_is_the_sum_along_the_labeling():
    unary = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    transition = np.array([[[0.1, 0.2], [0.3, 0.4]], [[0.01, 0.02], [0.03, 0.04]]])
    assert labeling_score(unary, transition, [0, 1, 1]) == pytest.approx(1 + 0.2 + 20 + 0.04 + 200)
    assert labeling_score(unary, transition[0], [1, 1, 0]) == pytest.approx(2 + 0.4 + 20 + 0.3 + 100)
    scores = chain_scores(unary, transition)
    assert scores[0b110] == labeling_score(unary, transition, [0, 1, 1])


def test_two_positions_by_hand():
    unary, transition = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 2.0], [0.0, -np.inf]])
    labels, score = chain_argmax(unary, transition)
    assert (labels.tolist(), score) == ([0, 1], 2.0)
    labels, scores = chain_k_best(unary, transition, 9)
    assert (labels.tolist(), scores.tolist()) == ([[0, 1], [1, 0], [0, 0]], [2.0, 1.0, 0.0])
    scores, labels = chain_by_cost(unary, transition, [[0, 1], [0, 1]])
    assert (scores.tolist(), labels.tolist()) == ([0.0, 2.0, -np.inf], [[0, 0], [0, 1], [-1, -1]])
    log_partition, single, pairs = chain_marginals(unary, transition)
    total = np.exp(2) + np.exp(1) + 1
    assert log_partition == pytest.approx(np.log(total))
    np.testing.assert_allclose(single, np.array([[1 + np.exp(2), np.exp(1)], [1 + np.exp(1), np.exp(2)]]) / total)
    np.testing.assert_allclose(pairs, np.array([[[1, np.exp(2)], [np.exp(1), 0]]]) / total)


def test_infeasible_argmax():
    labels, score = chain_argmax(np.full((2, 2), -np.inf), np.zeros((2, 2)))
    assert (labels.tolist(), score) == ([-1, -1], -np.inf)


def test_too_many_labelings_are_refused_with_numbers():
    with pytest.raises(ValueError, match=r"3\*\*20.*1048576"):
        next(labelings(20, 3))
    assert next(labelings(20, 2)).shape == (20,)
    assert next(labelings(10_000, 1)).shape == (10_000,)


def test_enumerate_argmax_takes_the_first_best():
    assert enumerate_argmax("abcab", lambda letter: -abs(ord(letter) - ord("b"))) == ("b", 0.0)
    assert enumerate_argmax([(1, 2), (2, 1)], sum) == ((1, 2), 3.0)
    assert enumerate_argmax(iter([7]), lambda _: -np.inf) == (7, -np.inf)
    with pytest.raises(ValueError, match="no outputs"):
        enumerate_argmax([], len)
    with pytest.raises(ValueError, match=r"output number 1 .*NaN"):
        enumerate_argmax([0.0, np.nan], float)
    with pytest.raises(ValueError, match="more than 1048576"):
        enumerate_argmax(itertools.count(), lambda n: 0.0)
