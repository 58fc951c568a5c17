"""The oracle of an angle, against all sets of a few labels and all corners of their relaxation."""

from __future__ import annotations

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from maxmargin.inference.constrained_oracle import TINY, ConstrainedOracle, pair_rows
from maxmargin.inference.slack_search import STRIP, Stop, Wedge, angular_search, in_closed_angles

pytest.importorskip("highspy")

SEEDS = st.integers(0, 2**32 - 1)
ANGLES = st.tuples(
    st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([1.5, 3.0, inf]), st.booleans(), st.booleans()
)


class Problem:
    """Points ``h = 1 + slopes x`` and ``g = cost z`` of some labels z, with pairs y: x = (z, y)."""

    def __init__(self, seed, n, whole_numbers):
        rng = np.random.default_rng(seed)
        self.n = n
        self.edges = np.array([e for e in combinations(range(n), 2) if rng.random() < 0.7], np.int32).reshape(-1, 2)
        size = n + len(self.edges)
        self.slopes = rng.integers(-2, 3, size).astype(float) if whole_numbers else rng.normal(size=size)
        self.cost = rng.integers(1, 4, n).astype(float) if whole_numbers else rng.uniform(0.2, 2.0, n)

    def points(self, values):
        """(h, g) of all labels with these values and of each of the extreme values of their pairs."""
        j, k = self.edges.T
        found = []
        for z in np.array(list(product(values, repeat=self.n))):
            ends = np.stack([np.maximum(z[j] + z[k] - 1, 0), np.minimum(z[j], z[k])], axis=1)
            for y in product(*map(np.unique, ends)):
                found.append((1.0 + self.slopes @ [*z, *y], self.cost @ z))
        return np.array(found)

    def oracle(self, integer):
        rows = pair_rows(self.n, self.edges)
        kinds = np.arange(self.n + len(self.edges)) < self.n
        oracle = ConstrainedOracle(*rows, integer=kinds if integer else None)
        for _ in range(2):  # aimed again, it answers the same
            oracle.aim(self.slopes, np.append(self.cost, np.zeros(len(self.edges))), 1.0)
        return oracle


def is_inside(points, wedge, slack):
    h, g = points.T
    low, high = wedge.low * (1 - slack), wedge.high * (1 + slack)
    return (h > 0) & (g > 0) & (g >= low * h) & ((g <= high * h) if high < inf else True)


def best_of_hull(points, lam, wedge):
    """The largest ``h + lam g`` of the convex hull inside an angle: at a corner, or where an edge meets an end."""
    ends = [np.array([-s, 1.0]) for s in (wedge.low, wedge.high) if s < inf]
    ends += [np.array([1.0, 0.0]), np.array([0.0, 1.0])]  # h = 0 and g = 0
    candidates = [points]
    a, b = points[:, None], points[None, :]
    for normal in ends:
        one, other = a @ normal, b @ normal
        with np.errstate(all="ignore"):
            share = one / (one - other)
        crosses = (one * other < 0) & np.isfinite(share)
        t = np.where(crosses, share, 0.0)[..., None]
        candidates.append((a + t * (b - a))[crosses])
    found = np.concatenate(candidates)
    h, g = found.T
    inside = (h >= -1e-12) & (g >= -1e-12) & (g >= wedge.low * h - 1e-12)
    inside &= (g <= wedge.high * h + 1e-12) if wedge.high < inf else True
    return float((h + lam * g)[inside].max(initial=-inf))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 5), st.booleans(), ANGLES, st.sampled_from([0.1, 1.0, 4.0]))
def test_the_best_set_of_an_angle(seed, n, whole_numbers, angle, lam):
    problem, wedge = Problem(seed, n, whole_numbers), Wedge(*angle)
    points = problem.points((0.0, 1.0))
    reply = problem.oracle(integer=True)(lam, *wedge.closed())
    values = points @ [1.0, lam]
    surely, perhaps = (values[is_inside(points, wedge, slack)] for slack in (-1e-5, 1e-5))
    if reply is None:
        assert len(surely) == 0
        return
    assert is_inside(np.array([[reply.h, reply.g]]), wedge, 1e-5)[0]
    assert surely.max(initial=-inf) - 1e-5 <= reply.bound <= perhaps.max() + 1e-5
    z = np.round(reply.output[:n])
    j, k = problem.edges.T
    assert reply.h == pytest.approx(1.0 + problem.slopes @ [*z, *(z[j] * z[k])], abs=1e-5)
    assert reply.g == pytest.approx(problem.cost @ z, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 3), st.booleans(), ANGLES, st.sampled_from([0.1, 1.0, 4.0]))
def test_the_best_relaxed_point_of_an_angle(seed, n, whole_numbers, angle, lam):
    problem, wedge = Problem(seed, n, whole_numbers), Wedge(*angle)
    points = problem.points((0.0, 0.5, 1.0))  # corners of the relaxation are halves
    best, reply = best_of_hull(points, lam, wedge), problem.oracle(integer=False)(lam, *wedge.closed())
    if reply is None:  # nothing, or only on an end
        inside = Wedge(wedge.low * (1 + 1e-5), wedge.high * (1 - 1e-5))
        assert best_of_hull(points, lam, inside) <= 100 * TINY
        return
    assert reply.bound == pytest.approx(best, abs=1e-4)
    assert is_inside(np.array([[reply.h, reply.g]]), wedge, 1e-4)[0]


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 4), st.booleans(), st.booleans())
def test_angular_search_with_it_is_exact(seed, n, whole_numbers, integer):
    problem = Problem(seed, n if integer else min(n, 3), whole_numbers)
    points = problem.points((0.0, 1.0) if integer else (0.0, 0.5, 1.0))
    if not integer:  # a parabola along each segment between two points
        (h, g), (dh, dg) = points.T[:, :, None], points.T[:, None, :] - points.T[:, :, None]
        with np.errstate(all="ignore"):
            t = np.nan_to_num(-(h * dg + g * dh) / (2 * dh * dg)).clip(0.0, 1.0)
        points = np.concatenate([points, np.stack([h + t * dh, g + t * dg], -1).reshape(-1, 2)])
    h, g = points.T
    best = float((h * g)[(h > 0) & (g > 0)].max(initial=0.0))
    oracle = problem.oracle(integer)
    stop = Stop(relative=1e-4, absolute=1e-6)
    found = angular_search(in_closed_angles(oracle), 1.0, stop, strip=STRIP, beyond=oracle.beyond)
    assert found.value == pytest.approx(best, rel=2e-4, abs=1e-4)
    assert found.bound >= best


@pytest.mark.parametrize("distance", [0.0, 5e-8, -5e-8, 1e-6])
def test_what_lies_in_the_strip_along_an_open_end_is_not_lost(distance):
    """The best point has nearly the slope at which the first answer parts the angle."""
    best, other = (1.4, 1.4 * (1 - distance)), (0.6, 2.4)
    one_of_two = csr_array(np.ones((1, 2)))
    oracle = ConstrainedOracle(one_of_two, np.zeros(1), np.ones(1), integer=np.ones(2, bool))
    oracle.aim(np.array([best[0], other[0]]) - 1.0, np.array([best[1], other[1]]), 1.0)
    found = angular_search(in_closed_angles(oracle), 1.0, strip=STRIP, beyond=oracle.beyond)
    assert found.value == pytest.approx(best[0] * best[1], rel=1e-9)
    assert best[0] * best[1] <= found.bound <= best[0] * best[1] * (1 + 1e-6)


def test_a_program_that_ends_early_leaves_a_bound():
    rng = np.random.default_rng(0)
    n = 14
    edges = np.array(list(combinations(range(n), 2)), np.int32)
    slopes, cost = rng.normal(size=n + len(edges)), np.append(np.ones(n), np.zeros(len(edges)))
    bounds = {}
    for nodes in (0, 100_000):
        oracle = ConstrainedOracle(*pair_rows(n, edges), integer=np.arange(len(slopes)) < n, nodes=nodes)
        oracle.aim(slopes, cost, 1.0, least=1.0)
        reply = oracle(0.5, 0.3, 0.6)
        bounds[nodes] = reply.bound
        assert reply.h + 0.5 * reply.g <= reply.bound
    assert bounds[0] >= bounds[100_000]
