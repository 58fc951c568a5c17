"""Compiled minimum cut of any graph: an edge list to rows of arcs, and labels back.

Node i is number i + 1 inside (number 0 is nobody). Edge e is an arc at ``place[e]`` in the row of its first node and
one at ``back[place[e]]`` in the row of its second. The float workspace holds the residuals, then the excesses,
then the grain.
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.min_cut_again_kernel import BAND, change, few, graph_mend, much_left
from maxmargin.inference.min_cut_kernel import BUDGET, forest_of, forget, grain_for, graph_flow, wanted
from maxmargin.inference.min_cut_trade_kernel import graph_exchange
from maxmargin.kernel import kernel


@kernel("void(int32[:, ::1], int32[::1], int32[::1], int32[::1], int32[::1])", fast=False)
def graph_rows(edges, begin, head, back, place):
    """Fill ``begin`` (n + 2, zeros before), ``head`` and ``back`` (2 m + 1) and ``place`` (m); O(n + m)."""
    m = len(edges)
    n = len(begin) - 2
    for e in range(m):
        begin[edges[e, 0] + 1] += 1
        begin[edges[e, 1] + 1] += 1
    last = np.int32(1)
    begin[0] = last
    for v in range(1, n + 2):  # the end of each row, from which the arcs are filled in backwards
        last += begin[v]
        begin[v] = last
    head[0], back[0] = 0, 0
    for e in range(m - 1, -1, -1):
        p, q = edges[e, 0] + 1, edges[e, 1] + 1
        begin[p] -= 1
        begin[q] -= 1
        arc, opposite = begin[p], begin[q]
        head[arc], back[arc] = q, opposite
        head[opposite], back[opposite] = p, arc
        place[e] = arc


@kernel("float64(float64[::1], float64[::1])", fast=False)
def grain_of(forward, backward):
    """The grain for these capacities."""
    largest = 0.0
    for e in range(len(forward)):
        largest = max(largest, forward[e], backward[e])
    return grain_for(largest)


@kernel("void(float64[::1], float64[::1], float64[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_load(excess, forward, backward, back, place, fwork):
    """Fill the float workspace."""
    m = len(back)
    fwork[0], fwork[m] = 0.0, 0.0
    for e in range(len(place)):
        fwork[place[e]] = forward[e]
        fwork[back[place[e]]] = backward[e]
    for i in range(len(excess)):
        fwork[m + 1 + i] = excess[i]
    fwork[m + 1 + len(excess)] = grain_of(forward, backward)


@kernel(
    "void(float64[:, ::1], float64[::1], int32[:, ::1], float64[::1], float64[::1], float64[::1], int32[::1],"
    "int32[::1], float64[::1])",
    fast=False,
)
def graph_reload(unary, last, edges, rooms, forward, backward, back, place, fwork):
    """Other costs and capacities after a flow, which is kept as far as it fits; ``graph_solve`` must follow.

    ``last`` has the excesses so far, and receives the new ones; ``rooms`` has the forward capacities so far. What an
    arc can no longer carry goes back to the excess of its tail.
    """
    excess = fwork[len(back) + 1 :]
    for i in range(len(last)):
        e = unary[i, 1] - unary[i, 0]
        excess[i] += e - last[i]
        last[i] = e
    for e in range(len(place)):
        arc = place[e]
        flow = rooms[e] - fwork[arc]
        kept = max(min(flow, forward[e]), -backward[e])
        fwork[arc], fwork[back[arc]] = forward[e] - kept, backward[e] + kept
        excess[edges[e, 0]] += flow - kept
        excess[edges[e, 1]] -= flow - kept
    excess[len(last)] = grain_of(forward, backward)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_solve(begin, head, back, work, fwork):
    """The flow from the start, after ``graph_load`` or ``graph_reload``."""
    m, n = len(head), len(begin) - 1
    graph_flow(n, 0, begin, head, back, work, fwork[:m], fwork[m : m + n], fwork[m + n], True)


@kernel(
    "void(float64[:, ::1], float64[::1], int64, int32[::1], int32[::1], int32[::1], int32[::1], float64[::1])",
    fast=False,
)
def graph_solve_again(unary, last, n_changed, begin, head, back, work, fwork):
    """The flow after a flow, for other costs; ``last`` has the excesses so far, and receives the new ones.

    When few have changed, only what has to change is touched.
    """
    m, n = len(head), len(begin) - 1
    residual, excess, grain = fwork[:m], fwork[m : m + n], fwork[m + n]
    forest = forest_of(n, work)
    marks = forest[4]
    keep = few(n_changed, len(last), work)
    for i in range(0, len(last), BAND):
        low, high = i + 1, min(i + BAND, len(last)) + 1
        changed = change(unary[low - 1 : high - 1], last[low - 1 : high - 1], excess[low:], marks[low:], keep)
        if keep and changed > 0:
            graph_mend(low, high, n, 0, begin, head, back, work, residual, excess)
    if work[BUDGET] < 0:
        much = much_left(excess, forest[0])
        forget(forest)
        if keep and not much:
            graph_exchange(n, 0, begin, head, back, work, residual, excess)
        graph_flow(n, 0, begin, head, back, work, residual, excess, grain, much or not keep)


@kernel("float64(int32[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_labels(labels, head, work, fwork):
    """Write the labels of the nodes after a flow and return the energy, without the costs of label 0."""
    m, n = len(head), len(labels) + 1
    distance = forest_of(n, work)[0]
    for i in range(n - 1):
        labels[i] = distance[i + 1] > 0
    return wanted(fwork[m : m + n])
