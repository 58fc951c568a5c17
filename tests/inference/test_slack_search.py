"""Searches for the largest h g over random points, compared with looking at all of them."""

from math import inf, log

import numpy as np
import pytest

from maxmargin.inference.slack_search import (
    Reply,
    Stop,
    angular_search,
    binary_search,
    bisecting_search,
    edge_optimum,
    golden_search,
    sarawagi_gupta_search,
)

HULL_SEARCHES = [binary_search, golden_search, bisecting_search]


class Points:
    """Oracles over a list of points, which count their queries."""

    def __init__(self, h, g):
        self.h, self.g = np.asarray(h, float), np.asarray(g, float)
        self.queries = 0

    def reply(self, lam, inside):
        self.queries += 1
        if not inside.any():
            return None
        total = np.where(inside, self.h + lam * self.g, -inf)
        i = int(np.argmax(total))
        return Reply(float(self.h[i]), float(self.g[i]), float(total[i]), i)

    def plain(self, lam):
        return self.reply(lam, np.ones(len(self.h), bool))

    def constrained(self, lam, wedge):
        return self.reply(lam, self.inside(wedge))

    def inside(self, wedge):
        slope = np.divide(self.g, self.h, out=np.full(len(self.h), -1.0), where=(self.h > 0) & (self.g > 0))
        ends = (wedge.closed_below & (slope == wedge.low)) | (wedge.closed_above & (slope == wedge.high))
        return (slope > 0) & (((wedge.low < slope) & (slope < wedge.high)) | ends)

    def best(self):
        good = (self.h > 0) & (self.g > 0)
        return float((self.h * self.g)[good].max(initial=0.0))

    def best_corner(self):
        """The largest product among the points that some open interval of cost weights selects: corners of the hull."""
        found = 0.0
        for i in range(len(self.h)):
            dh, dg = self.h - self.h[i], self.g - self.g[i]
            # a weight lam > 0 with dh + lam dg <= 0 for all points
            least = max((-(dh[k] / dg[k]) for k in range(len(dh)) if dg[k] < 0), default=0.0)
            most = min((-(dh[k] / dg[k]) for k in range(len(dh)) if dg[k] > 0), default=inf)
            if max(least, 0.0) < most * (1 - 1e-9) and not ((dg == 0) & (dh > 0)).any():
                found = max(found, self.h[i] * self.g[i]) if self.h[i] > 0 else found
        return found


def random_points(rng):
    """The truth at (1, 0) and others, of one of five kinds: with ties, duplicates, whole or zero costs."""
    m, kind = int(rng.integers(1, 40)), rng.integers(5)
    h, g = 1.0 + 2.0 * rng.standard_normal(m), 4.0 * rng.random(m)
    if kind == 1:
        g = np.ceil(g)
    elif kind == 2:
        h, g = np.round(h), np.round(g)
    elif kind == 3:
        again = rng.integers(0, m, m)
        h, g = h[again], g[again]
    elif kind == 4:  # near a hyperbola, where no line is far from the contour
        g = np.exp(2.0 * rng.standard_normal(m))
        h = (1.0 + 0.01 * rng.standard_normal(m)) / g
    return Points(np.append(h, 1.0), np.append(g, 0.0))


def test_angular_search_always_finds_the_best_point():
    """10,000 sets of points: the optimum every time, in at most 2 M + 1 queries, and a bound that is the value."""
    rng = np.random.default_rng(0)
    for _ in range(10_000):
        points = random_points(rng)
        result = angular_search(points.constrained, start=float(np.exp(rng.standard_normal())))
        best = points.best()
        assert result.value == pytest.approx(best, rel=1e-10)
        assert best <= result.bound * (1 + 1e-10) and result.bound <= best * (1 + 1e-9)
        assert result.queries == points.queries <= 2 * len(points.h) + 1
        if best > 0:
            assert points.h[result.output] * points.g[result.output] == result.value


def test_no_bound_is_ever_below_the_optimum_and_misses_are_inside_the_hull():
    rng = np.random.default_rng(1)
    missed = dict.fromkeys(HULL_SEARCHES, 0)
    for _ in range(2_000):
        points = random_points(rng)
        best, corner = points.best(), points.best_corner()
        for search in HULL_SEARCHES:
            result = search(points.plain)
            assert result.value <= best * (1 + 1e-12) and result.bound >= best * (1 - 1e-12)
            assert (result.output is None) == (result.value == 0.0)
            missed[search] += result.value < best * (1 - 1e-9)
        assert bisecting_search(points.plain).value >= corner * (1 - 1e-9)
    assert 0 < missed[bisecting_search] < 500


def test_theorem_1_a_plain_oracle_never_sees_the_best_of_three():
    """Two corners of value nearly 0 hide a point of a quarter of max h times max g."""
    for eps in (1e-2, 1e-6):
        points = Points([1.0, 0.5, eps, 1.0], [eps, 0.5 - eps, 1.0, 0.0])
        for search in HULL_SEARCHES:
            result = search(points.plain)
            assert result.value <= eps < 0.2 < points.best() <= result.bound
        assert angular_search(points.constrained).value == points.best()


def test_theorem_3_points_on_a_hyperbola_must_all_be_seen():
    """With all values equal up to a little, no constrained oracle can leave out a point."""
    slopes = np.exp(np.linspace(-2, 2, 15))
    points = Points(np.append(1 / np.sqrt(slopes), 1.0), np.append(np.sqrt(slopes), 0.0))
    assert angular_search(points.constrained).queries <= 2 * 16 + 1
    for last in range(15):  # whichever point is best by a little, it is found
        lifted = Points(points.h.copy(), points.g.copy())
        lifted.h[last] *= 1 + 1e-6
        assert angular_search(lifted.constrained).output == last


def test_theorem_4_every_query_has_its_guarantee():
    """value_t >= best v^(-4/(t+1)) with v = max(lam0 slope, 1/(lam0 slope)) of the first answer (printed otherwise)."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        points = random_points(rng)
        best, start = points.best(), float(np.exp(rng.standard_normal()))
        if best == 0.0:
            continue
        first = points.constrained(start, _everything())
        ratio = start * first.g / first.h
        v = max(ratio, 1.0 / ratio)
        for t in range(1, 8):
            value = angular_search(points.constrained, start, Stop(queries=t)).value
            assert value >= best * v ** (-4.0 / (t + 1)) * (1 - 1e-9)


def _everything():
    from maxmargin.inference.slack_search import Wedge

    return Wedge(0.0, inf, False, True)


@pytest.mark.parametrize("eps", [0.3, 0.05])
def test_theorem_5_queries_to_a_relative_optimum(eps):
    """From lam0 = H/G, within T = 4 log(GH/phi)/eps queries, the value is at least (1 - eps) of the best."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        points = random_points(rng)
        best, H, G = points.best(), points.h.max(), points.g.max()
        if best == 0.0:
            continue
        phi = 0.99 * best
        most = max(int(4 * log(G * H / phi) / eps) + 1, 1)
        result = angular_search(points.constrained, H / G, Stop(queries=most), slopes=(phi / H**2, G**2 / phi))
        assert result.value >= (1 - eps) * best * (1 - 1e-12)


def test_stopping_rules():
    points = Points(np.append(np.linspace(0.1, 2, 30), 1), np.append(2 / np.linspace(0.1, 2, 30) ** 0.9, 0))
    exact = angular_search(points.constrained)
    for stop in (Stop(relative=0.2), Stop(absolute=0.3), Stop(queries=2)):
        result = angular_search(points.constrained, stop=stop)
        assert result.queries <= exact.queries and result.value <= exact.value <= result.bound
    assert angular_search(points.constrained, stop=Stop(relative=0.2)).value >= exact.value / 1.2
    assert angular_search(points.constrained, stop=Stop(absolute=0.3)).value >= exact.value - 0.3
    known = points.reply(1.0, np.arange(31) == exact.output)
    assert angular_search(points.constrained, known=(known,)).value == exact.value


def test_tangency_ends_an_angle_and_not_the_search():
    points = Points([1.0, 1.0, 1.0, 3.0], [0.0, 4.0, 2.0, 1.9])
    assert angular_search(points.constrained, start=1.0).value == pytest.approx(5.7)


def test_an_oracle_that_may_miss_leaves_an_honest_bound():
    """Answers are random points inside; only their bounds are true."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        points = random_points(rng)

        def rough(lam, wedge, points=points):
            inside = points.inside(wedge)
            assert [wedge.holds(h, g) for h, g in zip(points.h, points.g, strict=True)] == inside.tolist()
            exact = points.reply(lam, inside)
            if exact is None:
                return None
            i = int(rng.choice(np.flatnonzero(inside)))
            return Reply(float(points.h[i]), float(points.g[i]), exact.bound, i)

        result = angular_search(rough, stop=Stop(queries=25))
        assert result.value <= points.best() * (1 + 1e-12) <= result.bound * (1 + 2e-10)


def test_square_roots_of_costs():
    rng = np.random.default_rng(5)
    for _ in range(500):
        points = random_points(rng)
        good = (points.h > 0) & (points.g > 0)
        best = float((points.h * np.sqrt(points.g))[good].max(initial=0.0))
        result = bisecting_search(points.plain, power=0.5)
        assert result.value <= best * (1 + 1e-12) and result.bound >= best * (1 - 1e-12)


def test_with_the_least_cost_the_bound_of_satisfied_examples_is_zero():
    points = Points([1.0, -0.5, -3.0], [0.0, 1.0, 2.0])
    result = bisecting_search(points.plain, start=1.0, least=1.0)
    assert (result.output, result.value, result.bound, result.queries) == (None, 0.0, 0.0, 1)


def test_sarawagi_and_gupta_find_a_violation_or_prove_that_there_is_none():
    rng = np.random.default_rng(6)
    found = proven = 0
    for _ in range(500):
        points = random_points(rng)
        best, slack = points.best(), float(np.exp(rng.standard_normal()))
        result = sarawagi_gupta_search(points.plain, slack)
        assert result.bound >= best * (1 - 1e-12)
        found += result.value > slack
        proven += best <= slack and result.bound <= slack
    assert found > 100 and proven > 5


def test_the_best_point_of_an_edge():
    """Against a fine grid of the points between."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        (h, hh), (g, gg) = np.sort(rng.random(2))[::-1], np.sort(rng.random(2))
        low, high = Reply(h, g, 0.0, 0), Reply(hh, gg, 0.0, 1)
        value, t = edge_optimum(low, high)
        shares = np.linspace(0, 1, 2001)
        grid = (h + shares * (hh - h)) * (g + shares * (gg - g))
        assert value == pytest.approx(grid.max(), rel=1e-5) and value >= grid.max() * (1 - 1e-12)
        assert value == pytest.approx((h + t * (hh - h)) * (g + t * (gg - g)))
