"""Compiled recursions over the paths of a directed acyclic graph.

A graph has nodes 0, ..., N - 1 in topological order and lists the arcs into each node: those into node v are
``begin[v], ..., begin[v + 1] - 1``, and arc e leaves ``tail[e]`` (< v). A path goes from a node without incoming arcs
to a node without outgoing arcs; its score adds up over its nodes (``node``, (N,)) and arcs (``arc``, (E,)), from the
first to the last. -inf forbids a node or an arc. A graph without nodes has one path, which is empty and scores 0.

A chain of T positions and K labels is the graph whose node t K + k has an arc from every (t - 1) K + j. These arcs need
no lists: ``begin`` and ``tail`` are empty, ``K`` is above 0, and ``arc`` holds the scores by head and tail, (T - 1, K,
K), or (1, K, K) when they are the same at all positions. For graphs, ``K`` is 0.

Ties, in every recursion: the smallest last node wins, then the first arc into it, and so on to the first node. For a
chain, this is the best labelling that comes first when labellings are compared from their last position backwards.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

_GRAPH = "float64[::1], int32[::1], int32[::1], float64[::1], int64"  # node, begin, tail, arc, K


@register_jitable
def arcs_into(begin, arc, K, v, column):
    """Where the scores of the arcs into node ``v`` begin, their number, and their first tail in a chain, else -1.

    ``column`` is the first node at the position of v in a chain, which loops count along: a division would take longer.
    """
    if K == 0:
        return np.int64(begin[v]), np.int64(begin[v + 1] - begin[v]), -1
    if column == 0:
        return 0, 0, -1
    return (v - K) * K if arc.shape[0] > K * K else (v - column) * K, K, column - K


@register_jitable
def reach_node(values, tail, arc, first, m, left, terms):
    """``terms[j] = values[tail] + arc`` of the m arcs into a node."""
    if left >= 0:
        lefts, scores = values[left : left + m], arc[first : first + m]
        for j in range(m):
            terms[j] = lefts[j] + scores[j]
    else:
        for j in range(m):
            terms[j] = values[tail[first + j]] + arc[first + j]


@register_jitable
def arc_number(begin, K, v):
    """Number of the first arc into node ``v``; in a chain, all arcs are counted, also those with the same scores."""
    return np.int64(begin[v]) if K == 0 else (v - K) * K


@register_jitable
def last_nodes(n, begin, tail, K, out):
    """Write the nodes without outgoing arcs, in order; returns their number."""
    count, leads = 0, np.zeros(n, np.bool_)
    for e in range(begin[n] if K == 0 else 0):
        leads[tail[e]] = True
    for v in range(n - K if K > 0 else 0, n):
        if not leads[v]:
            out[count] = v
            count += 1
    return count


@register_jitable
def widest(n, begin, K):
    """The most arcs that any node has."""
    most = K
    if K == 0:
        for v in range(n):
            most = max(most, np.int64(begin[v + 1] - begin[v]))
    return most


@kernel("int64(int32[::1], int32[::1])")
def longest_path(begin, tail):
    """Number of nodes on the longest path. O(E)."""
    n = begin.shape[0] - 1
    length = np.ones(n, np.int64)
    most = 0
    for v in range(n):
        for e in range(begin[v], begin[v + 1]):
            length[v] = max(length[v], length[tail[e]] + 1)
        most = max(most, length[v])
    return most


@register_jitable
def reach_forward(begin, tail, arc, value, came):
    """``value[v] = max_e value[tail[e]] + arc[e]`` over the arcs e into v, from 0 at node 0, and the best arc.

    ``came`` is -1 at node 0, and where the value is -inf; ties go to the first arc. O(N + E).
    """
    value[0], came[0] = 0.0, -1
    for v in range(1, begin.shape[0] - 1):
        top, best = -np.inf, -1
        for e in range(begin[v], begin[v + 1]):
            reach = value[tail[e]] + arc[e]
            if reach > top:
                top, best = reach, e
        value[v], came[v] = top, best


@register_jitable
def write_back(tail, came, v, out):
    """Write the arcs that lead from node 0 to node ``v`` to the front of ``out``, in order; returns their number."""
    n, u = 0, v
    while came[u] >= 0:
        u = tail[came[u]]
        n += 1
    at, u = n, v
    while at > 0:
        at -= 1
        out[at] = came[u]
        u = tail[came[u]]
    return n


@kernel("int64(int32[::1], int32[::1], float64[::1], float64[::1], int32[::1])", fast=False)
def best_from_first(begin, tail, arc, value, out):
    """Write the arcs of the best path from node 0 to the last node, in order, and return their number; -1 if none.

    ``value`` (N,) receives the best score of each node, ``out`` has room for the longest path. O(N + E).
    """
    came = np.empty(value.shape[0], np.int32)
    reach_forward(begin, tail, arc, value, came)
    last = value.shape[0] - 1
    return write_back(tail, came, last, out) if value[last] > -np.inf else -1


@register_jitable
def to_front(at, nodes_out, arcs_out):
    """Move a path that was written up to the end of its row to the front, and fill up with -1."""
    n = nodes_out.shape[0] - at
    for out in (nodes_out, arcs_out):
        if at > 0 and out.shape[0] > 0:
            for p in range(n):
                out[p] = out[p + at]
            out[n:] = -1


@register_jitable
def sift_down(heap, size, value, place):
    """Restore the heap below ``place``: larger value first, smaller number among equal values."""
    item = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        a = heap[child]
        if child + 1 < size:
            b = heap[child + 1]
            if value[b] > value[a] or (value[b] == value[a] and b < a):
                child += 1
                a = b
        if value[item] > value[a] or (value[item] == value[a] and item < a):
            break
        heap[place] = a
        place = child
    heap[place] = item


@register_jitable
def merge_lists(lists, counts, tail, arc, first, m, left, value, rank, heap, scores, came):
    """Merge the sorted lists of the tails of m arcs, shifted by their scores, into one of at most k entries.

    ``came`` receives ``arc * k + rank`` of each entry, arcs counted from the first into the node. Returns the number of
    entries.
    """
    k, size = lists.shape[1], 0
    for j in range(m):
        u = left + j if left >= 0 else np.int64(tail[first + j])
        if counts[u] > 0 and arc[first + j] > -np.inf:
            value[j] = lists[u, 0] + arc[first + j]
            rank[j] = 0
            heap[size] = j
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, value, place)
    n = 0
    while n < k and size > 0:
        j = heap[0]
        u = left + j if left >= 0 else np.int64(tail[first + j])
        scores[n] = value[j]
        came[n] = j * k + rank[j]
        n += 1
        if n == k:
            break
        rank[j] += 1
        if rank[j] < counts[u]:
            value[j] = lists[u, rank[j]] + arc[first + j]
        else:
            size -= 1
            heap[0] = heap[size]
        if size > 0:
            sift_down(heap, size, value, 0)
    return n


@kernel(f"int64({_GRAPH}, int32[:, ::1], int32[:, ::1], float64[::1])", fast=False)
def k_best_paths(node, begin, tail, arc, K, nodes_out, arcs_out, scores_out):
    """Write the k best paths, best first, and return how many there are (at most k).

    Formula: the sorted list of the k best paths that end in v is the merge, by a heap over the arcs into v, of the
    lists of their tails; k times the most arcs of a node is below 2^31. ``nodes_out`` (k, L) receives the nodes of each
    path, -1 behind the last, where L is at least the number of nodes of the longest path; ``arcs_out`` (k, L) the arc
    into each of them, -1 for the first, or nothing when it is (k, 0); ``scores_out`` is (k,).

    Complexity: O(E + N k log(arcs into a node)) time, O(N k) memory. Seshadri and Sundberg (1994), List Viterbi
    decoding algorithms with applications, IEEE Trans. Communications 42.
    """
    n, k = node.shape[0], scores_out.shape[0]
    if n == 0 or k == 0:
        scores_out[:1] = 0.0
        return min(k, 1)
    ends = np.empty(n, np.int32)
    n_ends = last_nodes(n, begin, tail, K, ends)
    room = max(widest(n, begin, K), n_ends)
    value, rank, heap = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
    lists, came, counts = np.empty((n, k)), np.empty((n, k), np.int32), np.zeros(n, np.int64)
    column = 0
    for v in range(n):
        column = v if v == column + K else column
        if node[v] == -np.inf:
            continue
        first, m, left = arcs_into(begin, arc, K, v, column)
        if m == 0:
            lists[v, 0] = node[v]
            came[v, 0] = -1
            counts[v] = 1
            continue
        counts[v] = merge_lists(lists, counts, tail, arc, first, m, left, value, rank, heap, lists[v], came[v])
        for r in range(counts[v]):
            lists[v, r] += node[v]
    last = np.empty(k, np.int32)
    found = merge_lists(lists, counts, ends, np.zeros(n_ends), 0, n_ends, -1, value, rank, heap, scores_out, last)
    for p in range(found):
        v, r, at = np.int64(ends[last[p] // k]), last[p] % k, nodes_out.shape[1]
        while True:
            at -= 1
            nodes_out[p, at] = v
            j, r = came[v, r] // k, came[v, r] % k
            if arcs_out.shape[1] > 0:
                arcs_out[p, at] = arc_number(begin, K, v) + j if j >= 0 else -1
            if j < 0:
                break
            v = np.int64(tail[begin[v] + j]) if K == 0 else (v // K - 1) * K + j
        to_front(at, nodes_out[p], arcs_out[p])
    return found


@register_jitable
def reach_costs(before, more, here):
    """``here[c] = max(here[c], before[c] + more)``."""
    for c in range(here.shape[0]):
        reach = before[c] + more
        here[c] = reach if reach > here[c] else here[c]


@kernel(f"void({_GRAPH}, int64[::1], int64[::1], float64[:, ::1], float64[::1])", fast=False)
def fill_by_cost(node, begin, tail, arc, K, node_cost, arc_cost, table, scores_out):
    """Fill the best score of the paths that end in each node with each cost, and of all paths with each cost.

    Formula: ``table[v, c] = node[v] + max_e (table[tail[e], c - node_cost[v] - arc_cost[e]] + arc[e])``, and
    ``scores_out[c] = max table[v, c]`` over the nodes v without outgoing arcs; -inf where no path has that cost.
    ``node_cost`` (N,) and ``arc_cost`` (E,) are not negative; the second is empty for chains, and where arcs cost
    nothing. ``table`` (N, c_max + 1), which :func:`path_of_cost` reads, and ``scores_out`` (c_max + 1,) leave out paths
    whose cost exceeds c_max.

    Complexity: O(E c_max) time, O(N c_max) memory. Only the costs that a node can be reached with are visited. Bauer,
    Goernitz, Biegler, Mueller and Kloft (2014), Efficient algorithms for exact inference in sequence labeling SVMs,
    IEEE Trans. Neural Networks and Learning Systems 25(5):870-881.
    """
    n, width = node.shape[0], scores_out.shape[0]
    scores_out[:] = -np.inf
    if width == 0 or n == 0:
        scores_out[:1] = 0.0
        return
    low, high, column = np.full(n, width), np.full(n, -1), 0
    for v in range(n):
        column = v if v == column + K else column
        row, own = table[v], node_cost[v]
        for c in range(width):
            row[c] = -np.inf
        if node[v] == -np.inf or own >= width:
            continue
        first, m, left = arcs_into(begin, arc, K, v, column)
        if m == 0:
            row[own] = node[v]
            at = column if K > 0 else v
            low[at], high[at] = min(low[at], own), max(high[at], own)
            continue
        least, most = width, np.int64(-1)
        if left >= 0:  # the left labels of a chain share one range of costs
            start, stop = low[left], min(high[left] + 1, width - own)
            least, most = start + own, stop - 1 + own
            here = row[least : most + 1]
            for j in range(m if stop > start else 0):
                if arc[first + j] > -np.inf:
                    reach_costs(table[left + j, start:stop], arc[first + j], here)
        for j in range(m if left < 0 else 0):
            u, shift = np.int64(tail[first + j]), own + (arc_cost[first + j] if arc_cost.shape[0] > 0 else 0)
            start, stop = low[u], min(high[u] + 1, width - shift)
            if stop > start and arc[first + j] > -np.inf:
                least, most = min(least, start + shift), max(most, stop - 1 + shift)
                reach_costs(table[u, start:stop], arc[first + j], row[start + shift : stop + shift])
        score = node[v]
        for c in range(least, most + 1):
            row[c] += score
        at = column if K > 0 else v
        low[at], high[at] = min(low[at], least), max(high[at], most)
    ends = np.empty(n, np.int32)
    for p in range(last_nodes(n, begin, tail, K, ends)):
        for c in range(width):
            scores_out[c] = max(scores_out[c], table[ends[p], c])


@kernel(f"float64({_GRAPH}, int64[::1], int64[::1], float64[:, ::1], int64, int32[::1], int32[::1])", fast=False)
def path_of_cost(node, begin, tail, arc, K, node_cost, arc_cost, table, c, nodes_out, arcs_out):
    """Write the best path of cost exactly ``c`` from a table of :func:`fill_by_cost`; returns its score, -inf if none.

    ``nodes_out`` and ``arcs_out`` are rows as in :func:`k_best_paths`, all -1 if none. O(arcs into its nodes).
    """
    n = node.shape[0]
    nodes_out[:] = -1
    arcs_out[:] = -1
    if n == 0 or c < 0 or c >= table.shape[1]:
        return 0.0 if c == 0 else -np.inf
    ends, top, v, at = np.empty(n, np.int32), -np.inf, np.int64(-1), nodes_out.shape[0]
    for p in range(last_nodes(n, begin, tail, K, ends)):
        if table[ends[p], c] > top:
            top, v = table[ends[p], c], np.int64(ends[p])
    while v >= 0:
        at -= 1
        nodes_out[at] = v
        c -= node_cost[v]
        first, m, left = arcs_into(begin, arc, K, v, v - v % K if K > 0 else 0)
        reach, chosen, came, paid = -np.inf, -1, np.int64(-1), np.int64(0)
        for j in range(m):
            u = left + j if left >= 0 else np.int64(tail[first + j])
            own = arc_cost[first + j] if arc_cost.shape[0] > 0 else 0
            if own <= c and table[u, c - own] + arc[first + j] > reach:
                reach, chosen, came, paid = table[u, c - own] + arc[first + j], j, u, own
        if arcs_out.shape[0] > 0:
            arcs_out[at] = arc_number(begin, K, v) + chosen if chosen >= 0 else -1
        v, c = came, c - paid
    if top > -np.inf:
        to_front(at, nodes_out, arcs_out)
    return top


@register_jitable
def log_sum_exp(values, n):
    """log sum exp of the first n values, shifted by the largest; -inf when there are none."""
    top = -np.inf
    for i in range(n):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(n):
        total += np.exp(values[i] - top)
    return top + np.log(total)


@kernel(f"float64({_GRAPH}, float64[::1], float64[::1])")
def path_marginals(node, begin, tail, arc, K, node_out, arc_out):
    """Write the marginals of the distribution p(path) proportional to exp(score), and return the log-partition.

    Formula: ``forward[v] = node[v] + ln sum_e exp(forward[tail[e]] + arc[e])`` over the arcs e into v; log-partition:
    the same sum over the nodes without outgoing arcs. Backwards, the probability of a node is shared among the arcs
    into it, ``p(e) = p(v) exp(forward[tail[e]] + arc[e]) / sum of these``, and that of an arc goes to its tail. Each
    share sums to one by itself, so that rounding does not grow with the length of the paths. ``node_out`` (N,) receives
    the probability that a path visits each node, ``arc_out`` (E,) that of each arc, by head, (T - 1, K, K), in a chain,
    or nothing when it is empty. When no path is allowed they are zero, and the log-partition is -inf.

    Complexity: O(N + E) time, O(N) memory beside the results. Rabiner (1989), A tutorial on hidden Markov models and
    selected applications in speech recognition.
    """
    n = node.shape[0]
    node_out[:] = 0.0
    arc_out[:] = 0.0
    if n == 0:
        return 0.0
    ends = np.empty(n, np.int32)
    n_ends = last_nodes(n, begin, tail, K, ends)
    forward, terms, column = np.empty(n), np.empty(max(widest(n, begin, K), n_ends)), 0
    for v in range(n):
        column = v if v == column + K else column
        first, m, left = arcs_into(begin, arc, K, v, column)
        reach_node(forward, tail, arc, first, m, left, terms)
        forward[v] = node[v] + (log_sum_exp(terms, m) if m > 0 else 0.0)
    for p in range(n_ends):
        terms[p] = forward[ends[p]]
    log_partition = log_sum_exp(terms, n_ends)
    if log_partition == -np.inf:
        return log_partition
    for p in range(n_ends):
        node_out[ends[p]] = np.exp(terms[p] - log_partition)
    for v in range(n - 1, -1, -1):
        column = column - K if v < column else column
        first, m, left = arcs_into(begin, arc, K, v, column)
        if node_out[v] == 0.0 or m == 0:
            continue
        reach_node(forward, tail, arc, first, m, left, terms)
        top, total = -np.inf, 0.0
        for j in range(m):
            top = max(top, terms[j])
        for j in range(m):
            terms[j] = np.exp(terms[j] - top)
            total += terms[j]
        share = node_out[v] / total
        if left >= 0:
            lefts = node_out[left : left + m]
            for j in range(m):
                lefts[j] += share * terms[j]
        else:
            for j in range(m):
                node_out[tail[first + j]] += share * terms[j]
        if arc_out.shape[0] > 0:
            at = arc_number(begin, K, v)
            for j in range(m):
                arc_out[at + j] = share * terms[j]
    return log_partition
