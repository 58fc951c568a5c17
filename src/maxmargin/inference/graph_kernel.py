"""Compiled argmax of pairwise graphs: max-product on forests, a cut for two labels, tree-reweighted messages otherwise.

Scores are maximised. The arrays of a graph with n nodes, m edges and K labels:

    unary (n K)       score of label k at node p at ``p K + k``
    pair (2 m K K)    scores of pairs of labels, twice: at ``(e K + i) K + j`` for label i at the first and j at the
                      second node of edge e, and from ``m K K`` on with i at the second and j at the first
    edges (2 m)       nodes of each edge
    begin (n + 1), ends (2 m)
                      the edge ends at each node: ``2 e`` if it is the first node of edge e, ``2 e + 1`` if the second
    order (n), up (n) nodes of a spanning forest from the roots down, and for each node its edge end that leads to the
                      parent, -1 at roots
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.inference.min_cut_graph_kernel import graph_labels, graph_load, graph_solve
from maxmargin.inference.min_cut_kernel import STATE_SIZE
from maxmargin.kernel import kernel

_i8, _f8, _b1 = types.int64, types.float64, types.boolean
_i4s, _f8s = types.int32[::1], types.float64[::1]
_pair = types.UniTuple(_f8, 2)

SLOW = 1e-3  # messages stop when a pass lowers the bound by less than this share of the gap that is left
SWEEPS = 50  # the most sweeps of single changes


@kernel(_b1(_i4s, _i4s, _i4s, _i4s, _i4s))
def spanning_forest(edges, begin, ends, order, up):
    """Fill ``begin`` (zeros before), ``ends``, ``order`` and ``up``; whether the graph itself is a forest. O(n + m)."""
    n, m = len(order), len(edges) // 2
    for e in range(2 * m):
        begin[edges[e] + 1] += 1
    for p in range(n):
        begin[p + 1] += begin[p]
        up[p] = begin[p]
    for e in range(2 * m):
        ends[up[edges[e]]] = e
        up[edges[e]] += 1
    up[:] = -2
    made, roots = 0, 0
    for root in range(n):
        if up[root] != -2:
            continue
        up[root] = -1
        order[made] = root
        head = made
        made += 1
        roots += 1
        while head < made:
            p = order[head]
            head += 1
            for a in range(begin[p], begin[p + 1]):
                q = edges[ends[a] ^ 1]
                if up[q] == -2:
                    up[q] = ends[a] ^ 1
                    order[made] = q
                    made += 1
    return m == n - roots


@kernel(_f8(_i8, _i8, _i4s, _f8s, _f8s, _i4s))
def total_score(n, K, edges, unary, pair, labels):
    """Score of a labelling."""
    total = 0.0
    for p in range(n):
        total += unary[p * K + labels[p]]
    for e in range(len(edges) // 2):
        total += pair[(e * K + labels[edges[2 * e]]) * K + labels[edges[2 * e + 1]]]
    return total


@kernel(_f8(_i8, _i8, _i4s, _i4s, _i4s, _f8s, _f8s, _i4s, _f8s))
def tree_argmax(n, K, edges, order, up, unary, pair, labels, belief):
    """The best labelling of a forest and its score, by max-product; ``belief`` (n K) is scratch. O(n K^2)."""
    half = len(pair) // 2
    belief[: n * K] = unary[: n * K]
    total = 0.0
    for i in range(n - 1, -1, -1):
        p = np.int64(order[i])
        here = belief[p * K : (p + 1) * K]
        end = np.int64(up[p])
        if end < 0:
            total += here.max()
            continue
        q = np.int64(edges[end ^ 1])
        table = pair[(end & 1) * half + (end >> 1) * K * K :]
        for l in range(K):
            best = here[0] + table[l]
            for k in range(1, K):
                best = max(best, here[k] + table[k * K + l])
            belief[q * K + l] += best
    for i in range(n):
        p = np.int64(order[i])
        end = np.int64(up[p])
        best, found = -np.inf, 0
        l = np.int64(labels[edges[end ^ 1]]) if end >= 0 else 0
        at = (end & 1) * half + (end >> 1) * K * K + l
        for k in range(K):
            v = belief[p * K + k] + (pair[at + k * K] if end >= 0 else 0.0)
            if v > best:
                best, found = v, k
        labels[p] = found
    return total


@kernel(_b1(_i8, _f8s, _f8s))
def is_submodular(m, pair, capacity):
    """Whether equal labels are favoured by all 2 x 2 tables, up to rounding; writes how much, (m,)."""
    legal = True
    for e in range(m):
        t = pair[4 * e : 4 * e + 4]
        c = 0.5 * (t[0] + t[3] - t[1] - t[2])
        size = max(abs(t[0]), abs(t[1]), abs(t[2]), abs(t[3]))
        legal = legal and c >= -1e-12 * size
        capacity[e] = max(c, 0.0)
    return legal


@kernel("void(int32[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def cut_terms(edges, unary, pair, capacity, excess):
    """What label 1 costs more than label 0 at each node, when an edge costs its capacity for different labels."""
    for p in range(len(excess)):
        excess[p] = unary[2 * p] - unary[2 * p + 1]
    for e in range(len(edges) // 2):
        t = pair[4 * e : 4 * e + 4]
        excess[edges[2 * e]] += t[0] - t[2] - capacity[e]
        excess[edges[2 * e + 1]] += t[0] - t[1] - capacity[e]


@kernel("void(int64, int64, int32[::1], int32[::1], float64[::1], float64[::1], int32[::1], int32[::1], float64[::1])")
def cut_argmax(n, m, edges, rows, excess, capacity, labels, work, fwork):
    """The labelling of least ``excess`` and capacities, by a minimum cut.

    ``rows`` are begin (n + 2), head (2 m + 1), back (2 m + 1), place (m) of ``graph_rows``. ``work`` (zeros, and handed
    back so) and ``fwork`` are scratch of STATE_SIZE + 5 (n + 1) and 2 m + n + 3.
    """
    a, b, c = n + 2, n + 2 + 2 * m + 1, n + 2 + 2 * (2 * m + 1)
    begin, head, back, place = rows[:a], rows[a:b], rows[b:c], rows[c : c + m]
    room = fwork[: 2 * m + n + 3]
    graph_load(excess, capacity, capacity, back, place, room)
    graph_solve(begin, head, back, work, room)
    graph_labels(labels, head, work, room)
    work[: STATE_SIZE + 2 * (n + 1)] = 0  # the lists behind are empty


@register_jitable
def send(K, table, share, belief, incoming, outgoing, tail):
    """One message over an edge: ``max_k share * belief[k] - incoming[k] + table[k, l]``, with its maximum taken off."""
    for l in range(K):
        outgoing[l] = -np.inf
    for k in range(K):
        tail[k] = share * belief[k] - incoming[k]
    for k in range(K):
        v = tail[k]
        row = table[k * K : (k + 1) * K]
        for l in range(K):
            x = v + row[l]
            outgoing[l] = x if x > outgoing[l] else outgoing[l]
    top = outgoing[0]
    for l in range(1, K):
        top = max(top, outgoing[l])
    for l in range(K):
        outgoing[l] -= top
    return top


@kernel(types.void(_i8, _i8, _i4s, _i4s, _i4s, _f8s, _f8s, _i4s, _f8s))
def improve(n, K, edges, begin, ends, unary, pair, labels, belief):
    """Change single labels while that raises the score; ``belief`` (K) is scratch."""
    half = len(pair) // 2
    for _ in range(SWEEPS):
        changed = False
        for p in range(n):
            belief[:K] = unary[p * K : (p + 1) * K]
            for a in range(begin[p], begin[p + 1]):
                end = np.int64(ends[a])
                other = np.int64(labels[edges[end ^ 1]])
                # the copy in which the other node comes first, so that the row is contiguous
                at = (1 - (end & 1)) * half + ((end >> 1) * K + other) * K
                for k in range(K):
                    belief[k] += pair[at + k]
            found = np.int64(labels[p])
            best = belief[found] + 1e-12 * abs(belief[found])
            for k in range(K):
                if belief[k] > best:
                    best, found = belief[k], k
            if found != labels[p]:
                labels[p] = found
                changed = True
        if not changed:
            return


@kernel(_pair(_i8, _i8, _i4s, _i4s, _i4s, _f8s, _f8s, _i8, _f8, _b1, _i4s, _f8s))
def trws(n, K, edges, begin, ends, unary, pair, passes, enough, fresh, labels, fwork):
    """Sequential tree-reweighted message passing: a labelling, its score, and an upper bound of all scores.

    The graph is a sum of chains along which node numbers grow. The bound is the sum of the maxima of the chains, and no
    pass raises it. Labelings are made on the way, node by node, given the labels of the nodes before and the messages
    of those behind, and improved by single changes. Kolmogorov (2006), Convergent tree-reweighted message passing for
    energy minimization.

    Complexity: O(passes m K^2), less when the bound falls to ``enough``. ``labels`` (2 n) has the answer first;
    ``fwork`` ((2 m + 2) K) begins with the messages into the node at each edge end, which start from zero if ``fresh``.
    """
    m = len(edges) // 2
    half = m * K * K
    message = fwork[: 2 * m * K]  # at ``end K``: what flows into the node at that end
    belief, tail = fwork[2 * m * K : (2 * m + 1) * K], fwork[(2 * m + 1) * K : (2 * m + 2) * K]
    if fresh:
        message[:] = 0.0
    trial = labels[n : 2 * n]
    bound, value, before = np.inf, -np.inf, np.inf
    for turn in range(2 * passes):
        forward = turn % 2 == 0
        limit = 0.0
        for i in range(n):
            p = i if forward else n - 1 - i
            first, last = np.int64(begin[p]), np.int64(begin[p + 1])
            # a label for this node, given those before it
            belief[:] = unary[p * K : (p + 1) * K]
            ahead = 0
            for a in range(first, last):
                end = np.int64(ends[a])
                q = np.int64(edges[end ^ 1])
                if (q > p) == forward:
                    ahead += 1
                    for k in range(K):
                        belief[k] += message[end * K + k]
                else:
                    at = (1 - (end & 1)) * half + ((end >> 1) * K + trial[q]) * K
                    for k in range(K):
                        belief[k] += pair[at + k]
            found = 0
            for k in range(1, K):
                if belief[k] > belief[found]:
                    found = k
            trial[p] = found
            # messages to the nodes behind it
            belief[:] = unary[p * K : (p + 1) * K]
            for a in range(first, last):
                end = np.int64(ends[a])
                for k in range(K):
                    belief[k] += message[end * K + k]
            top = belief[0]
            for k in range(1, K):
                top = max(top, belief[k])
            for k in range(K):
                belief[k] -= top
            limit += top
            share = 1.0 / max(1.0, float(ahead), float(last - first - ahead))
            for a in range(first, last):
                end = np.int64(ends[a])
                if (edges[end ^ 1] > p) == forward:
                    at = (end & 1) * half + (end >> 1) * K * K
                    incoming, outgoing = message[end * K :][:K], message[(end ^ 1) * K :][:K]
                    limit += send(K, pair[at : at + K * K], share, belief, incoming, outgoing, tail)
        improve(n, K, edges, begin, ends, unary, pair, trial, belief)
        score = total_score(n, K, edges, unary, pair, trial)
        if score > value:
            value = score
            labels[:n] = trial
        bound = min(bound, limit)
        if forward:
            continue
        gap = bound - value
        if gap <= 1e-11 * max(abs(bound), abs(value)) or bound <= enough:
            break
        if turn > (20 if fresh else 6) and before - bound < (SLOW if fresh else 10.0 * SLOW) * gap:
            break
        before = bound
    return value, max(bound, value)
