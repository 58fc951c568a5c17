"""Compiled matching of two sides: which pairs to link, when each node may take several links at a rising price.

    max_y  sum_{(i, j) in y} score[i, j] - sum_i sum_{k < deg(i)} left[k] - sum_j sum_{k < deg(j)} right[k]

``left`` and ``right`` are the prices of the first, second, ... link of a node on either side, never falling; a node
takes no more links than there are prices. That is a flow of least cost with convex costs, so its optimum is integral,
and successive shortest paths give the best y with 1, 2, 3, ... links. Their values are concave in the number of links:
the first path without a gain ends the search.

O(L n m) for L links between n and m nodes, times the number of rounds in which paths get shorter (a few; n at worst).
Ahuja, Magnanti, Orlin 1993, Network flows, section 14.5. Lacoste-Julien et al. 2006, Word alignment via quadratic
assignment.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

FREE, LINKED, FORCED = range(3)  # states of a pair; a forced link is never taken back
TINY = 1e-12  # of the largest score: paths that are shorter by less are not, so that rounding closes no cycle


@register_jitable
def cheapest_path(n, m, score, left, right, state, used, tiny, distance, back, fresh):
    """The right node at which the cheapest path to one more link ends, and its cost; -1 and inf when there is none.

    A path goes right along free pairs and back along links. ``back`` receives the node before each node, -1 for the
    first; left nodes are 0 to n - 1, right ones n to n + m - 1.
    """
    for v in range(n + m):
        distance[v], back[v], fresh[v] = np.inf, -1, 0
    for i in range(n):
        if used[i] < len(left):
            distance[i], fresh[i] = left[used[i]], 1
    for _ in range(n + 1):  # no path has more nodes on the left
        for i in range(n):
            if fresh[i]:
                fresh[i] = 0
                for j in range(m):
                    length = distance[i] - score[i * m + j]
                    if length < distance[n + j] - tiny and state[i * m + j] == FREE:
                        distance[n + j], back[n + j], fresh[n + j] = length, i, 1
        shorter = False
        for j in range(m):
            if fresh[n + j]:
                fresh[n + j] = 0
                for i in range(n):
                    if state[i * m + j] == LINKED and distance[n + j] + score[i * m + j] < distance[i] - tiny:
                        distance[i], back[i], fresh[i] = distance[n + j] + score[i * m + j], n + j, 1
                        shorter = True
        if not shorter:
            break
    end, least = -1, np.inf
    for j in range(m):
        if used[n + j] < len(right) and distance[n + j] + right[used[n + j]] < least:
            end, least = n + j, distance[n + j] + right[used[n + j]]
    return end, least


@register_jitable
def best_links(n, m, score, left, right, at_least, state, used, distance, back, fresh):
    """Add the best links to those in ``state``; returns how many, fewer than ``at_least`` only when there are no more.

    ``state`` int32 (n m,) and ``used`` int32 (n + m,), the links of each node, say what is forced and receive what is
    found; a pair with a score of -inf is never linked. The other three are scratch (n + m,).
    """
    largest = 0.0
    for p in range(n * m):
        if score[p] > -np.inf:
            largest = max(largest, abs(score[p]))
    links = 0
    while True:
        end, cost = cheapest_path(n, m, score, left, right, state, used, TINY * largest, distance, back, fresh)
        if end < 0 or (cost >= 0.0 and links >= at_least):
            return links
        used[end] += 1
        v = end
        while back[v] >= 0:  # links and free pairs change places along the path
            u = back[v]
            if v >= n:
                state[u * m + v - n] = LINKED
            else:
                state[v * m + u - n] = FREE
            v = u
        used[v] += 1
        links += 1


@kernel("int64(float64[:, ::1], float64[::1], float64[::1], int64, int32[:, ::1], int32[::1])")
def match_pairs(score, left, right, at_least, state, used):
    """:func:`best_links` with scratch of its own."""
    n, m = score.shape
    ints = np.empty((2, n + m), np.int32)
    return best_links(
        n, m, score.reshape(-1), left, right, at_least, state.reshape(-1), used, np.empty(n + m), ints[0], ints[1]
    )
