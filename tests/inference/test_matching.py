"""Matchings compared with brute force over all sets of links, and with scipy's assignment."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from maxmargin.inference import best_matching, k_best_matchings

PRICES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(lambda p: [x / 2 for x in np.cumsum(p)])


def all_matchings(score, left, right):
    """Every allowed set of links with its value, best first."""
    n, m = score.shape
    found = []
    for bits in product((0, 1), repeat=n * m):
        y = np.array(bits).reshape(n, m)
        rows, columns = y.sum(axis=1), y.sum(axis=0)
        if (rows > len(left)).any() or (columns > len(right)).any() or np.isneginf(score[y > 0]).any():
            continue
        paid = sum(sum(left[:d]) for d in rows) + sum(sum(right[:d]) for d in columns)
        found.append((float(score[y > 0].sum() - paid), tuple(map(tuple, np.argwhere(y).tolist()))))
    return sorted(found, key=lambda pair: -pair[0])


@st.composite
def tables(draw):
    n, m = draw(st.sampled_from([(1, 1), (1, 4), (4, 1), (2, 3), (3, 2), (3, 3), (2, 5), (4, 2)]))
    values = st.one_of(st.integers(-4, 6).map(float), st.floats(-5, 5, width=32), st.just(-np.inf))
    score = np.array(draw(st.lists(values, min_size=n * m, max_size=n * m))).reshape(n, m)
    return score, draw(PRICES), draw(PRICES)


@settings(max_examples=300, deadline=None)
@given(tables())
def test_the_best_matching_is_that_of_brute_force(problem):
    every = all_matchings(*problem)
    found = best_matching(*problem)
    assert found.value == pytest.approx(every[0][0], abs=1e-9)
    values = dict((links, value) for value, links in every)
    assert values[tuple(map(tuple, found.links.tolist()))] == pytest.approx(found.value, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 60))
def test_the_k_best_are_distinct_and_those_of_brute_force(problem, k):
    score, left, right = problem
    every = all_matchings(*problem)
    found = k_best_matchings(score, k, left, right)
    assert len(found) == min(k, len(every))
    assert len({tuple(map(tuple, one.links.tolist())) for one in found}) == len(found)
    np.testing.assert_allclose([one.value for one in found], [value for value, _ in every[:k]], atol=1e-9)


def test_thousands_of_small_tables_ties_included():
    """The 1 to 8 best of 2,500 tables, half of them of small whole numbers, against all sets of links at once."""
    rng = np.random.default_rng(5)
    shapes = ((2, 2), (2, 3), (3, 2), (3, 3), (2, 4))
    every = {shape: np.array(list(product((0, 1), repeat=shape[0] * shape[1]))) for shape in shapes}
    for case in range(2500):
        shape = shapes[case % len(shapes)]
        score = rng.integers(-2, 4, shape).astype(float) if case % 2 else rng.normal(size=shape)
        prices = [np.cumsum(rng.integers(0, 3, rng.integers(1, 3))) / 2.0 for _ in range(2)]
        sets = every[shape].reshape(-1, *shape)
        values = every[shape] @ score.ravel()
        for axis, price in ((2, prices[0]), (1, prices[1])):
            degree = sets.sum(axis=axis)
            paid = np.concatenate([[0.0], np.cumsum(price), np.full(8, np.inf)])
            values = values - paid[degree].sum(axis=1)
        best = np.sort(values[values > -np.inf])[::-1]
        k = 1 + case % 8
        found = k_best_matchings(score, k, *prices)
        np.testing.assert_allclose([one.value for one in found], best[:k], atol=1e-9)
        assert len({one.links.tobytes() for one in found}) == len(found) == min(k, len(best))


def test_large_tables_give_what_an_assignment_solver_gives():
    rng = np.random.default_rng(0)
    for n, m in ((30, 30), (40, 25), (25, 60)):
        score = rng.normal(size=(n, m))
        rows, columns = linear_sum_assignment(np.maximum(score, 0.0), maximize=True)  # worthless links count nothing
        assert best_matching(score).value == pytest.approx(np.maximum(score, 0.0)[rows, columns].sum())
        rows, columns = linear_sum_assignment(score + 100.0, maximize=True)  # every link pays: as many as fit
        assert best_matching(score + 100.0).value == pytest.approx((score + 100.0)[rows, columns].sum())


def test_no_rows_no_links():
    assert best_matching(np.empty((0, 3))).links.shape == (0, 2)
    assert len(k_best_matchings(np.full((2, 2), -1.0), 100)) == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), "score has shape"),
        (([[np.nan]],), "NaN"),
        (([[1.0]], [1.0, 0.0]), "left is"),
        (([[1.0]], [0.0], []), "right is"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_matching(*arguments)


def test_k_is_at_least_one():
    with pytest.raises(ValueError, match="k is 0"):
        k_best_matchings([[1.0]], 0)
