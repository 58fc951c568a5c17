"""The most violating output under slack rescaling, by searches that ask a plain argmax, or one within an angle.

Every output y is a point of the plane, h(y) = 1 - w . psi(y) and g(y) = cost(y), and wanted is the largest ``h g``
among the points with h > 0 and g > 0. The oracle of margin rescaling, asked with a cost weight lam, returns the point
of largest ``h + lam g``. Four searches use nothing else:

* :func:`binary_search` and :func:`golden_search` minimise the bound ``max_y (h + lam g)^2 / (4 lam)`` over lam;
* :func:`sarawagi_gupta_search` minimises the bound of ``h - xi / g`` for a slack xi, as the cutting-plane method needs;
* :func:`bisecting_search` moves along the hull of the points.

They see only corners of the hull, so they may miss the best output, whatever the number of queries (theorem 1 of the
paper). :func:`angular_search` asks for the best point with a slope g/h inside an angle and always finds it. Each
returns an upper bound with the output, so that a certificate never rests on a search that missed.

Choi, Meshi, Srebro (2016), Fast and scalable structural SVM with slack rescaling, AISTATS; Sarawagi, Gupta (2008),
Accurate max-margin training for structured output spaces, ICML. The listings of the first do not end, or lose the
optimum, in places; what is different here is said in each docstring.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import Generic, NamedTuple, TypeVar

import numpy as np

__all__ = [
    "Reply",
    "SearchResult",
    "Stop",
    "Wedge",
    "angular_search",
    "binary_search",
    "bisecting_search",
    "edge_optimum",
    "first_cost_weight",
    "golden_search",
    "in_closed_angles",
    "relaxed_search",
    "sarawagi_gupta_search",
]

Output = TypeVar("Output")
EQUAL = 1.0 + 1e-11
CLOSED = 1.0 + 1e-9  # ratio of the ends of an interval of cost weights that holds nothing more
SMALLEST, LARGEST = 1e-14, 1e14  # cost weights, as multiples of the first
GOLDEN = (sqrt(5.0) - 1.0) / 2.0
STRIP = 1e-7  # relative: oracles that compute with tolerances cannot tell slopes apart that are closer than this


class Reply(NamedTuple, Generic[Output]):
    """What an oracle answers to a cost weight lam: a point, an upper bound of ``h + lam g`` over all, its output."""

    h: float
    g: float
    bound: float
    output: Output


class Wedge(NamedTuple):
    """Slopes g/h from ``low`` to ``high``, each end inside or not."""

    low: float
    high: float
    closed_below: bool = False
    closed_above: bool = False

    def holds(self, h: float, g: float) -> bool:
        """Whether a point lies inside; an oracle must divide g by h just so, for slopes are compared bit for bit."""
        if h <= 0.0 or g <= 0.0:
            return False
        slope = g / h
        return (self.low < slope < self.high) or (
            (self.closed_below and slope == self.low) or (self.closed_above and slope == self.high)
        )

    def closed(self, strip: float = STRIP) -> tuple[float, float]:
        """Two slopes between which, both included, an oracle with tolerances looks for this wedge.

        Open ends move in by a strip, or their own point would come back. Closed ones move out by two: what the wedge on
        the other side, open there, leaves out is in this one.
        """
        low = self.low * (1.0 - 2.0 * strip if self.closed_below else 1.0 + strip)
        return low, self.high * (1.0 + 2.0 * strip if self.closed_above else 1.0 - strip)


Lines = tuple[tuple[float, float], ...]  # ``h + lam g <= bound`` for all points of a wedge, as (lam, bound)
Query = Callable[[float], Reply[Output]]
ConstrainedQuery = Callable[[float, Wedge], Reply[Output] | None]
ClosedQuery = Callable[[float, float, float], Reply[Output] | None]  # of a cost weight and two slopes


class Stop(NamedTuple):
    """When a search may end early: after so many queries, or when its bound is this close to its value."""

    queries: int = 1000
    relative: float = 0.0  # bound <= (1 + relative) value, for a value above ``enough``
    absolute: float = 0.0  # bound <= value + absolute, likewise
    enough: float = 0.0  # bound <= enough: nothing below it is wanted

    def target(self, value: float) -> float:
        """What a bound must come down to, when the best value so far is this.

        A value that is not wanted is no reason to stop, however near the best it is: that one may be wanted.
        """
        if value <= self.enough:
            return self.enough
        return max(value * (1.0 + self.relative), value + self.absolute)


TO_THE_END = Stop()


class SearchResult(NamedTuple, Generic[Output]):
    """The best output found (None when none has a positive value), its value, an upper bound of all values, queries."""

    output: Output | None
    value: float
    bound: float
    queries: int


class _Record(Generic[Output]):
    """What the answers so far have shown."""

    def __init__(self, query: Query[Output], stop: Stop, power: float = 1.0, least: float = 0.0) -> None:
        self.query, self.stop, self.power, self.least = query, stop, power, least
        self.output: Output | None = None
        self.value, self.bound, self.queries, self.following = 0.0, inf, 0, 0.0
        self.kept = np.zeros((2, 4))

    def ask(self, lam: float) -> Reply[Output]:
        from maxmargin.inference.slack_search_kernel import next_cost_weight, proven_bound

        reply, self.queries = self.query(lam), self.queries + 1
        value = reply.g**self.power * reply.h if reply.g > 0.0 and reply.h > 0.0 else 0.0
        if value > self.value:
            self.value, self.output = value, reply.output
        told = float(proven_bound(self.kept, lam, max(reply.bound, 0.0), self.power, self.least))
        self.bound = max(min(self.bound, told), self.value)
        self.following = float(next_cost_weight(self.kept, lam, reply.h, reply.g, reply.bound, self.power))
        return reply

    @property
    def done(self) -> bool:
        return self.bound <= max(self.value * EQUAL, self.stop.target(self.value)) or self.queries >= self.stop.queries

    def result(self) -> SearchResult[Output]:
        return SearchResult(self.output, self.value, self.bound, self.queries)


def bisecting_search(
    query: Query[Output], start: float = 1.0, stop: Stop = TO_THE_END, power: float = 1.0, least: float = 0.0
) -> SearchResult[Output]:
    """Bisecting search along the hull, for ``h g^power``; three queries are usual.

    Algorithm 1 of the paper halves an interval of cost weights that begins without an upper end, and none of its
    stopping rules ever holds. Here the interval grows until there is an answer at either end, and the next cost weight
    makes the line through both answers: the oracle finds a corner between them, or proves that there is none. Where all
    convex combinations of outputs are outputs, the last edge holds the optimum; see :func:`edge_optimum`.

    Parameters
    ----------
    query : function of a cost weight
        The oracle of margin rescaling.
    start : float
        The first cost weight, for instance the last one of the search before.
    stop : Stop
    power : float
        1 for slack rescaling, 1/2 for square-root slack.
    least : float
        The least positive g of any output, 0 when it is not known; a bound of 0 needs it.
    """
    record, lam = _Record(query, stop, power, least), start
    while SMALLEST * start <= lam <= LARGEST * start:
        record.ask(lam)
        if record.done:
            break
        lam = record.following
    return record.result()


def edge_optimum(low: Reply[Output], high: Reply[Output]) -> tuple[float, float]:
    """The largest ``h g`` between two points, and the share t of the second: exact over a convex set of outputs.

    With dh = h' - h and dg = g' - g, ``t = -(h dg + g dh) / (2 dh dg)``, clipped to [0, 1].
    """
    dh, dg = high.h - low.h, high.g - low.g
    curved = dh * dg
    ends = [(low.h * low.g, 0.0), (high.h * high.g, 1.0)]
    if curved < 0.0:
        t = min(max(-(low.h * dg + low.g * dh) / (2.0 * curved), 0.0), 1.0)
        ends.append(((low.h + t * dh) * (low.g + t * dg), t))
    return max(ends)


class RelaxedResult(NamedTuple, Generic[Output]):
    """The two answers that the last edge joins, the share of the second, the value there, its bound, queries."""

    low: Reply[Output]
    high: Reply[Output]
    share: float
    value: float
    bound: float
    queries: int


def relaxed_search(query: Query[Output], start: float = 1.0, stop: Stop = TO_THE_END) -> RelaxedResult[Output]:
    """The largest ``h g`` over a convex set of points, by plain queries: on the last edge of the walk along its hull.

    ``h g`` is quasi-concave, so the line through the last two answers, beyond which the query has found nothing,
    touches no contour above the best point between them: value and bound are the same.
    """
    record, lam = _Record(query, stop), start
    sides: list[Reply[Output] | None] = [None, None]
    value, share = 0.0, 0.0
    while True:
        reply = record.ask(lam)
        sides[lam * reply.g > reply.h] = reply
        low, high = sides[0] or reply, sides[1] or reply
        value, share = edge_optimum(low, high)
        lam = record.following
        if record.bound <= value * EQUAL or record.done or not SMALLEST * start <= lam <= LARGEST * start:
            return RelaxedResult(low, high, share, value, max(record.bound, value), record.queries)


def first_cost_weight(known: tuple[Reply[Output], ...], truth: float = 1.0, otherwise: float = 1.0) -> float:
    """Where a search begins: at the cost weight h / g of the best point of the hull of all points known.

    Among them is that of the true output, at h = ``truth`` and g = 0. There the line of the first query touches the
    highest contour that meets the hull: over a convex set of outputs that is the best output known, and elsewhere
    nothing better can be known without another query. ``otherwise`` where no point has a cost. O(k log k).
    """
    corners: list[Reply[None]] = []  # of the upper hull, by rising g
    for g, h in sorted([(0.0, truth), *((reply.g, reply.h) for reply in known if reply.g > 0.0)]):
        while len(corners) > 1 and (corners[-1].h - corners[-2].h) * (g - corners[-2].g) <= (h - corners[-2].h) * (
            corners[-1].g - corners[-2].g
        ):
            corners.pop()
        corners.append(Reply(h, g, 0.0, None))
    best, weight = 0.0, otherwise
    for one, other in pairwise(corners):
        value, t = edge_optimum(one, other)
        if value > best:
            best, weight = value, (one.h + t * (other.h - one.h)) / (one.g + t * (other.g - one.g))
    return weight


def binary_search(query: Query[Output], start: float = 1.0, stop: Stop = TO_THE_END) -> SearchResult[Output]:
    """Halve (in logarithms) the interval of cost weights in which the bound of lemma 1 is least.

    The bound ``B(lam)^2 / (4 lam)``, B = max h + lam g, falls where ``lam g < h`` at the answer and rises where not.
    """
    record = _Record(query, stop)
    low, high, lam = 0.0, inf, start
    while SMALLEST * start <= lam <= LARGEST * start:
        reply = record.ask(lam)
        low, high = (lam, high) if lam * reply.g <= reply.h else (low, lam)
        if record.done or high <= low * CLOSED:
            break
        lam = sqrt(low * high) if low > 0.0 and isfinite(high) else lam * 4.0 if low > 0.0 else lam / 4.0
    return record.result()


def golden_search(query: Query[Output], start: float = 1.0, stop: Stop = TO_THE_END) -> SearchResult[Output]:
    """Minimise the bound of lemma 1 by golden sections of the logarithm of the cost weight."""
    record = _Record(query, stop)
    _golden(record, lambda lam, reply: max(reply.bound, 0.0) ** 2 / (4.0 * lam), start)
    return record.result()


def sarawagi_gupta_search(
    query: Query[Output], slack: float | None = None, start: float = 1.0, stop: Stop = TO_THE_END
) -> SearchResult[Output]:
    """The search of the cutting-plane method, which wants an output with ``h - xi / g > 0`` for the present slack xi.

    It minimises the convex ``F(lam) = max_y (h + lam g) - 2 sqrt(xi lam)`` by golden sections and ends as soon as
    ``F < 0`` proves that there is none: then the bound is at most xi. Without a slack it is the value of the answer at
    ``start``: outputs above that are wanted.
    """
    record = _Record(query, stop)
    if slack is None:
        record.ask(start)
        slack = record.value
    wanted = slack

    def excess(lam: float, reply: Reply[Output]) -> float:
        found = reply.bound - 2.0 * sqrt(wanted * lam)
        if found < 0.0:
            record.bound = max(record.value, min(record.bound, wanted))
        return found

    _golden(record, excess, start, least=0.0)
    return record.result()


def _golden(
    record: _Record[Output], height: Callable[[float, Reply[Output]], float], start: float, least: float = -inf
) -> None:
    """Golden sections for the least ``height`` over cost weights; ends when it is below ``least``."""
    heights: dict[float, float] = {}

    def at(lam: float) -> float:
        if lam not in heights and not record.done:
            heights[lam] = height(lam, record.ask(lam))
        return heights.get(lam, inf)

    low, middle, high = start / 4.0, start, start * 4.0
    while at(low) < at(middle) and low > SMALLEST * start:
        low, middle, high = low / 4.0, low, middle
    while at(high) < at(middle) and high < LARGEST * start:
        low, middle, high = middle, high, high * 4.0
    span = np.log(high / low)
    a, b = high * np.exp(-GOLDEN * span), low * np.exp(GOLDEN * span)
    while high > low * (1.0 + 1e-6) and not record.done and min(heights.values(), default=-inf) >= least:
        if at(a) <= at(b):
            high, b = b, a
            a = high * np.exp(-GOLDEN * np.log(high / low))
        else:
            low, a = a, b
            b = low * np.exp(GOLDEN * np.log(high / low))


def angular_search(
    query: ConstrainedQuery[Output],
    start: float = 1.0,
    stop: Stop = TO_THE_END,
    known: tuple[Reply[Output], ...] = (),
    slopes: tuple[float, float] = (0.0, inf),
    strip: float = 0.0,
    beyond: float = 0.0,
) -> SearchResult[Output]:
    """Angular search: exact, in at most 2 M + 1 queries for M outputs.

    Algorithm 2 of the paper with these changes: the two angles of a split are closed on different sides; a line that
    touches the hyperbola ends one angle, not the search; angles wait in a queue by their upper bounds, which all lines
    of the answers before them make together, and one that cannot beat the incumbent is dropped; the ends of new angles
    come from the incumbent, by its own slope bit for bit.

    Parameters
    ----------
    query : function of a cost weight and a :class:`Wedge`
        The point of largest ``h + lam g`` among those inside, or None; its bound holds for the wedge alone.
    start : float
        Cost weight of the first query; ``max h / max g`` is good (the paper's theorem 5 prints its inverse).
    stop : Stop
    known : tuple of Reply
        Points seen before: the best is the first incumbent.
    slopes : tuple of float
        Where the optimum can lie: ``phi / max(h)^2`` to ``max(g)^2 / phi`` when its value is at least phi.
    strip : float
        0 for a query that compares slopes bit for bit; :data:`STRIP` for one that looks in ``wedge.closed()``. What
        lies in the strips along open ends is then in the bound, by the lines above it, which exceed the point on the
        end by as little as a strip is wide.
    beyond : float
        The most that points can be worth which the query never answers with; the bound is not below it.
    """
    value, output = 0.0, None
    for seen in known:
        if seen.h > 0.0 and seen.g > 0.0 and seen.h * seen.g > value:
            value, output = seen.h * seen.g, seen.output
    asked, bound = 0, beyond  # the bound of the angles that were dropped
    queue: list[tuple[float, int, Wedge, Lines]] = [(-inf, 0, Wedge(*slopes, slopes[0] > 0.0, True), ())]
    while queue:
        if -queue[0][0] <= max(value * EQUAL, stop.target(value)) or asked >= stop.queries:
            break
        above, _, wedge, lines = heapq.heappop(queue)
        lam = start if wedge.low == 0.0 or wedge.high == inf else 1.0 / sqrt(wedge.low * wedge.high)
        reply, asked = query(lam, wedge), asked + 1
        if reply is None:
            continue
        if reply.h * reply.g > value:
            value, output = reply.h * reply.g, reply.output
        upper = min(-above, reply.bound**2 / (4.0 * lam))
        target = stop.target(value)  # what is below it does not matter
        if upper <= max(value * EQUAL, target):
            bound = max(bound, upper)
            continue
        lines = (*lines, (lam, reply.bound))
        bound = max(bound, target)
        parts = _split(wedge, reply, lam, target, strip)
        if strip > 0.0:
            slope = reply.g / reply.h if reply.h > 0.0 else 0.0
            bound = max(bound, min(upper, _largest_in_strips(parts, slope, lines, strip) * EQUAL))
        for part in parts:
            within = min(upper, _largest_product(part, lines) * EQUAL)
            heapq.heappush(queue, (-within, 2 * asked + part.closed_below, part, lines))
    waiting = max((-above for above, *_ in queue), default=0.0)
    return SearchResult(output, value, max(value, bound, waiting), asked)


def in_closed_angles(query: ClosedQuery[Output]) -> ConstrainedQuery[Output]:
    """A query for angles that hold both their ends as one of angular search, which is then to have a ``strip``."""

    def ask(lam: float, wedge: Wedge) -> Reply[Output] | None:
        low, high = wedge.closed()
        return query(lam, low, high) if low <= high else None

    return ask


def _largest_product(wedge: Wedge, lines: Lines) -> float:
    """The largest ``h g`` inside a wedge and below all lines ``h + lam g = bound``.

    On the ray of slope s it is ``s h(s)^2``, h(s) = min bound / (1 + lam s), and the largest is where a line touches a
    hyperbola, where two lines meet, or at an end of the wedge.
    """
    slopes = [wedge.low, wedge.high, *(1.0 / lam for lam, _ in lines)]
    for n, (lam, bound) in enumerate(lines):
        for other, lower in lines[:n]:
            across = bound * other - lower * lam
            slopes.append((lower - bound) / across if across != 0.0 else 0.0)
    inside = [s for s in slopes if wedge.low <= s <= wedge.high and 0.0 < s < inf]
    return max((s * min(bound / (1.0 + lam * s) for lam, bound in lines) ** 2 for s in inside), default=0.0)


def _largest_in_strips(parts: list[Wedge], slope: float, lines: Lines, strip: float) -> float:
    """The largest ``h g`` at the slope of an answer, and in the strips along open ends that no other part closes."""
    strips = [Wedge(slope, slope)]
    for part in parts:
        if not part.closed_below:
            strips.append(Wedge(part.low, part.low * (1.0 + strip)))
        if not part.closed_above and not any(part.high == other.low for other in parts):
            strips.append(Wedge(part.high * (1.0 - strip), part.high))
    return max(_largest_product(each, lines) for each in strips)


def _split(wedge: Wedge, reply: Reply[Output], lam: float, value: float, strip: float = 0.0) -> list[Wedge]:
    """What an answer leaves of an angle: slopes where its line is above the hyperbola, parted at slope 1/lam."""
    middle = 1.0 / lam
    low, high = _hyperbola(reply.bound, lam, value)
    above = Wedge(middle, min(high, wedge.high), True, wedge.closed_above and wedge.high <= high)
    below = Wedge(max(low, wedge.low), middle, wedge.closed_below and wedge.low >= low, False)
    if reply.bound <= (reply.h + lam * reply.g) * (EQUAL + strip):  # the answer is on the line: one end moves to it
        slope, outside = reply.g / reply.h, 1.0 + 2.0 * strip
        if slope >= middle and slope <= above.high * outside:
            above = above._replace(high=min(slope, above.high), closed_above=False)
        elif slope < middle and slope * outside >= below.low:
            below = below._replace(low=max(slope, below.low), closed_below=False)
    return [part for part in (above, below) if part.low < part.high or (part.low == part.high and part.closed_above)]


def _hyperbola(bound: float, lam: float, value: float) -> tuple[float, float]:
    """Slopes of the two points where the line ``h + lam g = bound`` meets the hyperbola ``h g = value``."""
    g = (bound + sqrt(max(bound * bound - 4.0 * lam * value, 0.0))) / (2.0 * lam)
    other = value / (lam * g) if g > 0.0 else 0.0
    return (other / (lam * g) if g > 0.0 else 0.0), (g / (lam * other) if other > 0.0 else inf)
