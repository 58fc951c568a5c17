"""The kernel of the matching model: scores of pairs, costs included, and the links of largest value."""

from __future__ import annotations

from numba.extending import register_jitable

from maxmargin.inference.matching_kernel import FREE, best_links
from maxmargin.inference.neighbours_kernel import N_STEPS, best_neighbours, neighbour
from maxmargin.kernel import kernel
from maxmargin.models.search_kernel import dense_plane
from maxmargin.models.signature import PLANE_SIGNATURE

# positions in ``meta``
N_FEATURES, N_LEFT, N_RIGHT, HAS_LINKS, NEIGHBOURS = range(5)  # N_LEFT, N_RIGHT: the most links of a node on a side
AT_ROWS, AT_LINKS, AT_FEATURES, AT_COSTS, META_SIZE = range(5, 10)
# positions in the row of an example
LEFT, RIGHT, FIRST_PAIR, FIRST_LINK, N_LINKS, ROW = range(6)
MATCHINGS = 100  # that an argmax with neighbours may take


@register_jitable
def add_features(floats, first, F, n, m, left, places, scale, degree, psi):
    """``psi += scale phi(links)``; ``degree`` is zeros and is handed back as zeros."""
    for p in places:
        for f in range(F):
            psi[f] += scale * floats[first + p * F + f]
        i, j = p // m, n + p % m
        degree[i] += 1
        degree[j] += 1
        # the k-th link of a node pays the prices 2, ..., k
        for k in range(2, degree[i] + 1):
            psi[F + k - 2] -= scale
        for k in range(2, degree[j] + 1):
            psi[F + left - 1 + k - 2] -= scale
    degree[: n + m] = 0


@register_jitable
def add_neighbours(n, m, places, scale, linked, psi):
    """``psi += scale`` times the numbers of links that touch; ``linked`` is zeros and is handed back as zeros."""
    for p in places:
        linked[p] = 1
    for p in places:
        for d in range(N_STEPS):
            q = neighbour(p, d, n, m)
            if q >= 0 and linked[q]:
                psi[d] += scale
    for p in places:
        linked[p] = 0


@register_jitable
def scored_pairs(meta, ints, floats, w, example, cost_weight, fwork):
    """Scores of all pairs, costs included, and prices on the left and on the right, all of them in ``fwork``.

    The price of a link is the sum of all weights up to it, none of them negative: prices never fall.
    """
    F, left, right, at = meta[N_FEATURES], meta[N_LEFT], meta[N_RIGHT], meta[AT_ROWS] + example * ROW
    pairs, first = ints[at + LEFT] * ints[at + RIGHT], meta[AT_FEATURES] + ints[at + FIRST_PAIR] * F
    costs = meta[AT_COSTS] + ints[at + FIRST_PAIR]
    prices, score = fwork[: left + right], fwork[left + right :][:pairs]
    prices[0] = prices[left] = 0.0
    for k in range(1, left):
        prices[k] = prices[k - 1] + max(w[F + k - 1], 0.0)
    for k in range(1, right):
        prices[left + k] = prices[left + k - 1] + max(w[F + left - 1 + k - 1], 0.0)
    for p in range(pairs):
        total = 0.0
        for f in range(F):
            total += w[f] * floats[first + p * F + f]
        score[p] = total + (cost_weight * floats[costs + p] if meta[HAS_LINKS] else 0.0)
    return score, prices[:left], prices[left:]


@register_jitable
def scratch(meta, ints, example, iwork, fwork):
    """State of the pairs, links of each node, and three arrays for the nodes; behind the scores and prices."""
    at = meta[AT_ROWS] + example * ROW
    pairs, nodes = ints[at + LEFT] * ints[at + RIGHT], ints[at + LEFT] + ints[at + RIGHT]
    distance = fwork[meta[N_LEFT] + meta[N_RIGHT] + pairs :][:nodes]
    state, used = iwork[:pairs], iwork[pairs:][:nodes]
    return state, used, distance, iwork[pairs + nodes :][:nodes], iwork[pairs + 2 * nodes :][:nodes]


@register_jitable
def answer_links(
    meta, ints, floats, w, example, cost_weight, gap, emit, iwork, fwork, output, index, value, result
):  # fmt: skip
    """Write the links in the state as the answer; returns the number of planes."""
    F, left, right, has_links = meta[N_FEATURES], meta[N_LEFT], meta[N_RIGHT], meta[HAS_LINKS]
    at = meta[AT_ROWS] + example * ROW
    n, m = ints[at + LEFT], ints[at + RIGHT]
    pairs, first = n * m, meta[AT_FEATURES] + ints[at + FIRST_PAIR] * F
    costs = meta[AT_COSTS] + ints[at + FIRST_PAIR]
    truth = ints[meta[AT_LINKS] + ints[at + FIRST_LINK] :][: ints[at + N_LINKS]]
    state, used = iwork[:pairs], iwork[pairs:][: n + m]
    cost, found = 0.0, 0
    if has_links:
        for p in range(pairs):  # a missed link costs what linking it would have saved
            cost += max(-floats[costs + p], 0.0)
    for p in range(pairs):
        if state[p] != FREE:
            output[found] = p
            found += 1
            if has_links:
                cost += floats[costs + p]
    iwork[: pairs + 3 * (n + m)] = 0

    P = F + left + right - 2
    psi = fwork[: P + N_STEPS * meta[NEIGHBOURS]]  # scores and prices are not needed any more
    psi[:] = 0.0
    add_features(floats, first, F, n, m, left, output[:found], -1.0, used, psi)
    if has_links:
        add_features(floats, first, F, n, m, left, truth, 1.0, used, psi)
    if meta[NEIGHBOURS]:
        add_neighbours(n, m, output[:found], -1.0, state, psi[P:])
        if has_links:
            add_neighbours(n, m, truth, 1.0, state, psi[P:])
    for t in range(len(output) // 2 - 1, -1, -1):  # from the last on, since pairs take twice the room of places
        place = output[t] if t < found else -1
        output[2 * t], output[2 * t + 1] = (place // m, place % m) if place >= 0 else (-1, -1)
    return dense_plane(psi, w, cost, cost_weight, gap, emit, has_links, index, value, result)


@kernel(PLANE_SIGNATURE)
def matching_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Links of largest ``w . phi(x, y) + cost_weight * cost(y)`` and their plane. O(n m F + L n m)."""
    at = meta[AT_ROWS] + example * ROW
    score, left, right = scored_pairs(meta, ints, floats, w, example, cost_weight, fwork)
    best_links(
        ints[at + LEFT], ints[at + RIGHT], score, left, right, 0, *scratch(meta, ints, example, iwork, fwork)
    )  # fmt: skip
    return answer_links(
        meta, ints, floats, w, example, cost_weight, 0.0, emit, iwork, fwork, output, index, value, result
    )


@kernel(PLANE_SIGNATURE)
def neighbours_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The same with bonuses for links that touch: up to 100 matchings, and the bound may be above the value."""
    at, P = meta[AT_ROWS] + example * ROW, meta[N_FEATURES] + meta[N_LEFT] + meta[N_RIGHT] - 2
    score, left, right = scored_pairs(meta, ints, floats, w, example, cost_weight, fwork)
    gap = best_neighbours(
        ints[at + LEFT], ints[at + RIGHT], score, left, right, w[P : P + N_STEPS], MATCHINGS,
        *scratch(meta, ints, example, iwork, fwork),
    )  # fmt: skip
    return answer_links(
        meta, ints, floats, w, example, cost_weight, gap, emit, iwork, fwork, output, index, value, result
    )
