"""Marginals against summing over every labeling, and against differences of the log-partition."""

import numpy as np
import pytest
from hypothesis import given, settings

from maxmargin.inference.recursion import chain_marginals as marginals
from reference.enumeration import chain_marginals

from .chain_tables import chains


@settings(max_examples=300, deadline=None)
@given(chains())
def test_against_enumeration(chain):
    log_partition, single, pairs = marginals(*chain)
    expected_log, expected_single, expected_pairs = chain_marginals(*chain)
    assert log_partition == pytest.approx(expected_log, rel=1e-12, abs=1e-11)
    np.testing.assert_allclose(single, expected_single, atol=1e-11)
    np.testing.assert_allclose(pairs, expected_pairs, atol=1e-11)


@settings(max_examples=50, deadline=None)
@given(chains(scores="real"))
def test_marginals_are_derivatives_of_the_log_partition(chain):
    unary, transition = chain
    log_partition, single, pairs = marginals(unary, transition)
    if log_partition == -np.inf:
        return
    step = 1e-5
    rng = np.random.default_rng(0)
    for _ in range(4):
        at = tuple(rng.integers(0, unary.shape))
        if unary[at] == -np.inf:
            assert single[at] == 0.0
            continue
        up, down = unary.copy(), unary.copy()
        up[at] += step
        down[at] -= step
        slope = (marginals(up, transition)[0] - marginals(down, transition)[0]) / (2 * step)
        assert slope == pytest.approx(single[at], abs=1e-7)
    if len(unary) > 1:
        at = tuple(rng.integers(0, transition.shape))
        up, down = transition.copy(), transition.copy()
        up[at] += step
        down[at] -= step
        slope = (marginals(unary, up)[0] - marginals(unary, down)[0]) / (2 * step)
        counts = pairs.sum(axis=0, keepdims=True) if len(transition) == 1 else pairs
        assert slope == pytest.approx(counts[at], abs=1e-6)


@pytest.mark.parametrize("shift", [-1e5, 1e5])
def test_large_scores_neither_overflow_nor_vanish(shift):
    rng = np.random.default_rng(1)
    unary, transition = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    expected_log, expected_single, expected_pairs = marginals(unary, transition)
    log_partition, single, pairs = marginals(unary + shift, transition)
    assert log_partition == pytest.approx(expected_log + 6 * shift, rel=1e-12)
    np.testing.assert_allclose(single, expected_single, atol=1e-8)
    np.testing.assert_allclose(pairs, expected_pairs, atol=1e-8)


def test_very_unequal_scores():
    # The only feasible way goes through a label 5000 below the other.
    unary = np.array([[0.0, -5000.0], [0.0, 0.0]])
    transition = np.array([[-np.inf, -np.inf], [1.0, 2.0]])
    log_partition, single, pairs = marginals(unary, transition)
    assert log_partition == pytest.approx(-5000.0 + np.logaddexp(1.0, 2.0), rel=1e-14)
    np.testing.assert_allclose(single[0], [0.0, 1.0])
    np.testing.assert_allclose(pairs[0, 1], np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum())


def test_infeasible_is_minus_infinity_and_zeros():
    log_partition, single, pairs = marginals(np.full((3, 2), -np.inf), np.zeros((2, 2)))
    assert log_partition == -np.inf
    assert not single.any()
    assert not pairs.any()


def test_long_chain_of_equal_scores_has_a_closed_form():
    length, n_labels = 10_000, 4
    log_partition, single, pairs = marginals(np.full((length, n_labels), 0.3), np.full((n_labels, n_labels), -0.1))
    assert log_partition == pytest.approx(length * (0.3 + np.log(n_labels)) - (length - 1) * 0.1, rel=1e-12)
    np.testing.assert_allclose(single, 1 / n_labels, rtol=1e-9)
    np.testing.assert_allclose(pairs, 1 / n_labels**2, rtol=1e-9)


def test_many_labels_sum_to_one():
    rng = np.random.default_rng(2)
    unary, transition = rng.normal(size=(4, 300)), rng.normal(size=(300, 300))
    _, single, pairs = marginals(unary, transition)
    np.testing.assert_allclose(single.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(pairs.sum(axis=2), single[:-1], atol=1e-12)
    np.testing.assert_allclose(pairs.sum(axis=1), single[1:], atol=1e-12)


def test_pairwise_can_be_left_out():
    log_partition, single, pairs = marginals(np.zeros((3, 2)), np.zeros((2, 2)), pairwise=False)
    assert pairs is None
    assert log_partition == pytest.approx(3 * np.log(2))
    np.testing.assert_allclose(single, 0.5)
