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


@kernel(PLANE_SIGNATURE)
def matching_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Links of largest ``w . phi(x, y) + cost_weight * cost(y)`` and their plane. O(n m F + L n m).

    With neighbours the second term counts up to 100 times, and the bound may be larger than the value.
    """
    F, left, right, has_links = meta[N_FEATURES], meta[N_LEFT], meta[N_RIGHT], meta[HAS_LINKS]
    P = F + left + right - 2
    D = P + N_STEPS * meta[NEIGHBOURS]
    at = meta[AT_ROWS] + example * ROW
    n, m = ints[at + LEFT], ints[at + RIGHT]
    pairs, first = n * m, meta[AT_FEATURES] + ints[at + FIRST_PAIR] * F
    costs = meta[AT_COSTS] + ints[at + FIRST_PAIR]
    truth = ints[meta[AT_LINKS] + ints[at + FIRST_LINK] :][: ints[at + N_LINKS]]
    psi, prices = fwork[:D], fwork[D : D + left + right]
    score, distance = fwork[D + left + right :][:pairs], fwork[D + left + right + pairs :][: n + m]
    state, used = iwork[:pairs], iwork[pairs : pairs + n + m]
    back, fresh = iwork[pairs + n + m :][: n + m], iwork[pairs + 2 * (n + m) :][: n + m]

    # the price of a link is the sum of all weights up to it, none of them negative: prices never fall
    prices[0] = prices[left] = 0.0
    for k in range(1, left):
        prices[k] = prices[k - 1] + max(w[F + k - 1], 0.0)
    for k in range(1, right):
        prices[left + k] = prices[left + k - 1] + max(w[F + left - 1 + k - 1], 0.0)
    for p in range(pairs):
        total = 0.0
        for f in range(F):
            total += w[f] * floats[first + p * F + f]
        score[p] = total + (cost_weight * floats[costs + p] if has_links else 0.0)
    gap = 0.0
    if meta[NEIGHBOURS]:
        gap = best_neighbours(
            n, m, score, prices[:left], prices[left:], w[P:D], MATCHINGS, state, used, distance, back, fresh
        )
    else:
        best_links(n, m, score, prices[:left], prices[left:], 0, state, used, distance, back, fresh)

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
