"""Searches for the largest h g over random points, compared with looking at all of them."""

from math import inf, log

import numpy as np
import pytest

from maxmargin.inference.slack_search import (
    STRIP,
    Reply,
    Stop,
    Wedge,
    angular_search,
    binary_search,
    bisecting_search,
    edge_optimum,
    first_cost_weight,
    golden_search,
    in_closed_angles,
    relaxed_search,
    sarawagi_gupta_search,
)

HULL_SEARCHES = [binary_search, golden_search, bisecting_search, sarawagi_gupta_search]
SETS = 10_000
EVERYTHING = Wedge(0.0, inf, False, True)


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
        i = int(total.argmax())
        return Reply(float(self.h[i]), float(self.g[i]), float(total[i]), i)

    def plain(self, lam):
        self.queries += 1
        total = self.h + lam * self.g
        i = int(total.argmax())
        return Reply(float(self.h[i]), float(self.g[i]), float(total[i]), i)

    def constrained(self, lam, wedge):
        return self.reply(lam, self.inside(wedge))

    def between(self, lam, low, high):
        """The oracle of closed angles."""
        slope = self.slopes()
        return self.reply(lam, (slope > 0) & (low <= slope) & (slope <= high))

    def inside(self, wedge):
        slope = self.slopes()
        ends = (wedge.closed_below & (slope == wedge.low)) | (wedge.closed_above & (slope == wedge.high))
        return (slope > 0) & (((wedge.low < slope) & (slope < wedge.high)) | ends)

    def slopes(self):
        return np.divide(self.g, self.h, out=np.full(len(self.h), -1.0), where=(self.h > 0) & (self.g > 0))

    def best(self):
        good = (self.h > 0) & (self.g > 0)
        return float((self.h * self.g)[good].max(initial=0.0))

    def corners(self):
        """The points that some open interval of cost weights selects, by rising g: corners of the upper hull."""
        found = []
        for g, h in sorted(zip(self.g.tolist(), self.h.tolist(), strict=True)):
            while found and found[-1][1] <= h:  # less of both
                found.pop()
            while len(found) > 1 and (found[-1][1] - found[-2][1]) * (g - found[-2][0]) <= (h - found[-2][1]) * (
                found[-1][0] - found[-2][0]
            ):
                found.pop()
            found.append((g, h))
        return [(h, g) for g, h in found]


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
    for _ in range(SETS):
        points = random_points(rng)
        result = angular_search(points.constrained, start=float(np.exp(rng.standard_normal())))
        best = points.best()
        assert result.value == pytest.approx(best, rel=1e-10)
        assert best <= result.bound * (1 + 1e-10) and result.bound <= best * (1 + 1e-9)
        assert result.queries == points.queries <= 2 * len(points.h) + 1
        if best > 0:
            assert points.h[result.output] * points.g[result.output] == result.value


def nearly_parallel(rng):
    """Points whose slopes differ by no more than an oracle with tolerances can tell, and others."""
    points = random_points(rng)
    m = len(points.h)
    near = rng.integers(0, m, m)
    shift = 1.0 + STRIP * rng.normal(size=m) * rng.choice([0.1, 1.0, 10.0], m)
    h, g = np.append(points.h, points.h[near]), np.append(points.g, points.g[near] * shift)
    return Points(h, g)


def test_angular_search_with_an_oracle_that_cannot_see_ends_has_a_true_bound():
    """10,000 sets of points with slopes up to 1e-8 from each other, by an oracle of closed angles."""
    rng = np.random.default_rng(10)
    for _ in range(SETS):
        points = nearly_parallel(rng)
        start = float(rng.choice([1.0, np.exp(rng.standard_normal())]))
        result = angular_search(in_closed_angles(points.between), start, strip=STRIP)
        best = points.best()
        assert result.bound >= best * (1 - 1e-11) and result.value >= best * (1 - 1e-6)
        assert result.bound <= best * (1 + 1e-6) and result.queries <= 2 * len(points.h) + 1


@pytest.mark.parametrize("search", HULL_SEARCHES)
def test_no_bound_is_ever_below_the_optimum_and_misses_are_inside_the_hull(search):
    """10,000 sets of points; what bisecting misses is no corner, and Theorem 1 allows no more."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(SETS):
        points = random_points(rng)
        best = points.best()
        result = search(points.plain)
        assert result.value <= best * (1 + 1e-12) and result.bound >= best * (1 - 1e-12)
        assert (result.output is None) == (result.value == 0.0)
        missed += result.value < best * (1 - 1e-9)
        if search is bisecting_search:
            assert result.value >= max(h * g for h, g in points.corners()) * (1 - 1e-9)
    assert 0 < missed < SETS / 4


def test_relaxed_search_is_exact_over_hulls():
    """10,000 hulls of points: the best of all edges, by a formula, is value and bound."""
    rng = np.random.default_rng(11)
    for _ in range(SETS):
        points = random_points(rng)
        (h, g), best = np.array(points.corners()).T, points.best()
        if len(h) > 1:
            dh, dg = np.diff(h), np.diff(g)
            t = np.clip(-(h[:-1] * dg + g[:-1] * dh) / (2 * dh * dg), 0.0, 1.0)
            best = max(best, float(((h[:-1] + t * dh) * (g[:-1] + t * dg)).max()))
        result = relaxed_search(points.plain, float(np.exp(rng.standard_normal())))
        assert max(result.value, 0.0) == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert best * (1 - 1e-11) <= result.bound
        if best > 1e-6:
            assert result.bound <= best * (1 + 1e-9)
            low, high, share = result.low, result.high, result.share
            assert (low.h + share * (high.h - low.h)) * (low.g + share * (high.g - low.g)) == pytest.approx(best)


def test_a_value_of_rounding_size_does_not_lead_astray():
    """A satisfied output has h = 1e-16; the line that touches there is as good as none."""
    points = Points([5.6e-16, 1.0, 0.8, 0.5], [50.0, 0.0, 20.0, 30.0])
    assert bisecting_search(points.plain).value == 16.0
    relaxed = relaxed_search(points.plain)
    assert 16.0 <= relaxed.value <= relaxed.bound <= relaxed.value * (1 + 1e-9)


def test_searches_begin_where_the_hull_of_what_is_known_is_best():
    rng = np.random.default_rng(12)
    for _ in range(200):
        points = random_points(rng)
        known = tuple(points.reply(1.0, np.arange(len(points.h)) == i) for i in range(len(points.h)))
        found = relaxed_search(points.plain)
        if found.value > 1e-6:
            low, high, t = found.low, found.high, found.share
            weight = (low.h + t * (high.h - low.h)) / (low.g + t * (high.g - low.g))
            assert first_cost_weight(known, 1.0) == pytest.approx(weight, rel=1e-6)
    assert first_cost_weight((), 1.0, 0.3) == 0.3
    assert first_cost_weight((Reply(-1e-16, 4.0, 0.0, None),), 1.0) == pytest.approx(1 / 4)  # rounding is no start


def test_theorem_1_a_plain_oracle_never_sees_the_best_of_three():
    """Two corners of value nearly 0 hide a point of a quarter of max h times max g."""
    for eps in (1e-2, 1e-6):
        points = Points([1.0, 0.5, eps, 1.0], [eps, 0.5 - eps, 1.0, 0.0])
        for search in HULL_SEARCHES:
            result = search(points.plain)
            assert result.value <= eps < 0.2 < points.best() <= result.bound
        assert angular_search(points.constrained).value == points.best()


def on_a_hyperbola(M):
    slopes = np.exp(np.linspace(-2, 2, M))
    return Points(np.append(1 / np.sqrt(slopes), 1.0), np.append(np.sqrt(slopes), 0.0))


def test_theorem_3_points_on_a_hyperbola_must_all_be_seen():
    """With all values equal up to a little, no constrained oracle can leave out a point."""
    points = on_a_hyperbola(15)
    assert 15 <= angular_search(points.constrained).queries <= 2 * 16 + 1
    for last in range(15):  # whichever point is best by a little, it is found
        lifted = Points(points.h.copy(), points.g.copy())
        lifted.h[last] *= 1 + 1e-6
        assert angular_search(lifted.constrained).output == last


def test_theorem_3_whatever_is_asked_a_point_not_yet_answered_may_be_the_best():
    """Any M - 1 constrained queries: a point they have not named can be lifted above all others without a trace."""
    rng, M = np.random.default_rng(13), 12
    for _ in range(300):
        points = on_a_hyperbola(M)
        ends = np.sort(np.exp(rng.normal(size=(M - 1, 2))), axis=1)
        asked = [(float(np.exp(rng.normal())), Wedge(low, high, True, True)) for low, high in ends]
        asked[0] = (asked[0][0], EVERYTHING)
        answers = [points.constrained(*query) for query in asked]
        unnamed = sorted(set(range(M)) - {answer.output for answer in answers if answer is not None})
        assert unnamed
        lifted = Points(points.h.copy(), points.g.copy())
        lifted.h[unnamed[0]] *= 1 + 1e-9
        lifted.g[unnamed[0]] *= 1 + 1e-9  # the slope stays
        again = [lifted.constrained(*query) for query in asked]
        assert [a and a.output for a in again] == [a and a.output for a in answers]
        assert int((lifted.h * lifted.g).argmax()) == unnamed[0]


def test_theorem_4_every_query_has_its_guarantee():
    """value_t >= best v^(-4/(t+1)) with v = max(lam0 slope, 1/(lam0 slope)) of the first answer (printed otherwise)."""
    rng = np.random.default_rng(2)
    for _ in range(1_000):
        points = random_points(rng)
        best, start = points.best(), float(np.exp(rng.standard_normal()))
        if best == 0.0:
            continue
        first = points.constrained(start, EVERYTHING)
        ratio = start * first.g / first.h
        v = max(ratio, 1.0 / ratio)
        for t in range(1, 8):
            value = angular_search(points.constrained, start, Stop(queries=t)).value
            assert value >= best * v ** (-4.0 / (t + 1)) * (1 - 1e-9)


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
    just_below = exact.value * (1 - 1e-6)  # a value near the best is no reason to stop when only the best is wanted
    assert angular_search(points.constrained, stop=Stop(relative=1e-2, enough=just_below)).value == exact.value
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
    for _ in range(SETS):
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
    for _ in range(2_000):
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
