"""Kernels of the lattice model: scores of arcs, costs included, the best path, and its plane."""

from __future__ import annotations

from numba.extending import register_jitable

from maxmargin.inference.recursion_kernel import reach_forward, write_back
from maxmargin.kernel import kernel
from maxmargin.models.search_kernel import search_power
from maxmargin.models.signature import PLANE_SIGNATURE, SEARCH_SIGNATURE

# positions in ``meta``; arcs are sorted by head within each lattice, ARC_NUMBERS says which they were
N_WEIGHTS, MOST_NODES, MOST_ARCS, HAS_TRUTH = range(4)
AT_ROWS, AT_BEGIN, AT_TAILS, AT_ARC_NUMBERS, AT_POINTERS, AT_COLUMNS, AT_TRUTH = range(4, 11)
AT_VALUES, AT_COSTS, META_SIZE = range(11, 14)
# positions in the row of an example
FIRST_NODE, N_NODES, FIRST_ARC, N_ARCS, FIRST_TRUE, N_TRUE, ROW = range(7)

ROUNDING = 1e-12  # costs that differ by no more are the same


@register_jitable
def arc_score(meta, ints, floats, w, arc):
    """``w . phi`` of an arc, counted over all lattices."""
    at, total = meta[AT_POINTERS] + arc, 0.0
    for p in range(ints[at], ints[at + 1]):
        total += w[ints[meta[AT_COLUMNS] + p]] * floats[meta[AT_VALUES] + p]
    return total


@register_jitable
def add_arc(meta, ints, floats, arc, scale, slot, index, value, nnz):
    """Add ``scale phi`` of an arc to a plane; ``slot[c]`` is 1 + the place of column c in it. Returns its entries."""
    at = meta[AT_POINTERS] + arc
    for p in range(ints[at], ints[at + 1]):
        c = ints[meta[AT_COLUMNS] + p]
        if slot[c] == 0:
            index[nnz], value[nnz] = c, 0.0
            nnz += 1
            slot[c] = nnz
        value[slot[c] - 1] += scale * floats[meta[AT_VALUES] + p]
    return nnz


@register_jitable
def answer_path(meta, ints, floats, w, row, cost_weight, emit, path, slot, output, index, value, result):
    """Write a path (arcs of its lattice, sorted by head) as the answer; returns the number of planes."""
    first, has_truth = ints[row + FIRST_ARC], meta[HAS_TRUTH]
    true = ints[meta[AT_TRUTH] + ints[row + FIRST_TRUE] :][: ints[row + N_TRUE]]
    gain, cost = 0.0, 0.0
    output[len(path) :] = -1
    for p in range(len(path)):
        arc = first + path[p]
        output[p] = ints[meta[AT_ARC_NUMBERS] + arc]
        gain += arc_score(meta, ints, floats, w, arc)
        if has_truth:
            cost += floats[meta[AT_COSTS] + arc]
    if has_truth:
        for p in range(len(true)):
            gain -= arc_score(meta, ints, floats, w, first + true[p])
            cost -= floats[meta[AT_COSTS] + first + true[p]]
        same = len(true) == len(path)
        for p in range(len(path)):
            same = same and path[p] == true[p]
        if same:
            gain = 0.0
        if same or abs(cost) <= ROUNDING:
            cost = 0.0
    result[0] = gain + cost_weight * cost
    result[1] = max(result[0], 0.0) if has_truth else result[0]  # the truth gives 0; an argmax may miss it by rounding
    result[2], result[3] = cost, 0.0
    if emit == 0 or not has_truth:
        return 0
    nnz = 0
    for p in range(len(true)):
        nnz = add_arc(meta, ints, floats, first + true[p], 1.0, slot, index, value, nnz)
    for p in range(len(path)):
        nnz = add_arc(meta, ints, floats, first + path[p], -1.0, slot, index, value, nnz)
    kept = 0
    for p in range(nnz):
        slot[index[p]] = 0
        if value[p] != 0.0:
            index[kept], value[kept] = index[p], value[p]
            kept += 1
    result[3] = kept
    return 1


@kernel(PLANE_SIGNATURE)
def lattice_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The path of largest ``w . phi(x, y) + cost_weight * cost(y)`` and its plane. O(N + features of the arcs)."""
    row = meta[AT_ROWS] + example * ROW
    n, first, m = ints[row + N_NODES], ints[row + FIRST_ARC], ints[row + N_ARCS]
    begin = ints[meta[AT_BEGIN] + ints[row + FIRST_NODE] :][: n + 1]
    tail = ints[meta[AT_TAILS] + first :][:m]
    score, reach = fwork[:m], fwork[meta[MOST_ARCS] :][:n]
    slot, came = iwork[: meta[N_WEIGHTS]], iwork[meta[N_WEIGHTS] :][:n]
    path = iwork[meta[N_WEIGHTS] + meta[MOST_NODES] :][:n]
    for e in range(m):
        score[e] = arc_score(meta, ints, floats, w, first + e)
    if meta[HAS_TRUTH] and cost_weight != 0.0:
        costs = floats[meta[AT_COSTS] + first :][:m]
        for e in range(m):
            score[e] += cost_weight * costs[e]
    reach_forward(begin, tail, score, reach, came)
    length = write_back(tail, came, n - 1, path)
    made = answer_path(meta, ints, floats, w, row, cost_weight, emit, path[:length], slot, output, index, value, result)
    came[:] = 0
    path[:] = 0
    return made


@kernel(SEARCH_SIGNATURE)
def list_search(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The hypothesis of a list with the largest ``cost^p (lam - w . psi)``, lam = cost_weight, over those that cost.

    All are looked at; p is 1 for slack rescaling, 1/2 for square-root slacks, 0 for the best wrong one.
    """
    if cost_weight <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    row, power = meta[AT_ROWS] + example * ROW, search_power(meta, floats)
    first, true = ints[row + FIRST_ARC], ints[meta[AT_TRUTH] + ints[row + FIRST_TRUE]]
    costs = floats[meta[AT_COSTS] + first :][: ints[row + N_ARCS]]
    level = cost_weight - arc_score(meta, ints, floats, w, first + true)
    top, found = 0.0, true
    for e in range(len(costs)):
        cost = costs[e] - costs[true]
        if cost > ROUNDING:
            scale = cost if power == 1.0 else cost**power
            reached = scale * (level + arc_score(meta, ints, floats, w, first + e))
            if reached > top:
                top, found = reached, e
    path = iwork[meta[N_WEIGHTS] :][:1]
    path[0] = found
    slot = iwork[: meta[N_WEIGHTS]]
    made = answer_path(meta, ints, floats, w, row, cost_weight, emit, path, slot, output, index, value, result)
    path[0] = 0
    result[0], result[1] = top, top
    return made


@kernel("void(int32[::1], int32[::1], int64[::1], int64[::1], int64[::1])")
def longest_sums(begin, tail, weight, longest, arcs):
    """The largest sum of the weights (E,) of the arcs of a path to each node, and the most arcs of one. O(N + E)."""
    longest[0], arcs[0] = 0, 0
    for v in range(1, begin.shape[0] - 1):
        longest[v], arcs[v] = 0, 0
        for e in range(begin[v], begin[v + 1]):
            longest[v] = max(longest[v], longest[tail[e]] + weight[e])
            arcs[v] = max(arcs[v], arcs[tail[e]] + 1)
