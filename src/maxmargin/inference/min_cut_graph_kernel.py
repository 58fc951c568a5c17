"""Compiled minimum cut of any graph: an edge list to rows of arcs, and labels back.

Node i is number i + 1 inside (number 0 is nobody). Edge e is an arc at ``place[e]`` in the row of its first node and
one at ``back[place[e]]`` in the row of its second. The float workspace holds the residuals, then the excesses,
then the grain.
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.min_cut_kernel import forest_of, grain_for, graph_flow, wanted
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


@kernel("void(float64[::1], float64[::1], float64[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_load(excess, forward, backward, back, place, fwork):
    """Fill the float workspace."""
    m, largest = len(back), 0.0
    fwork[0], fwork[m] = 0.0, 0.0
    for e in range(len(place)):
        largest = max(largest, forward[e], backward[e])
        fwork[place[e]] = forward[e]
        fwork[back[place[e]]] = backward[e]
    for i in range(len(excess)):
        fwork[m + 1 + i] = excess[i]
    fwork[m + 1 + len(excess)] = grain_for(largest)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_solve(begin, head, back, work, fwork):
    """The flow from the start, after ``graph_load``."""
    m, n = len(head), len(begin) - 1
    graph_flow(n, 0, begin, head, back, work, fwork[:m], fwork[m : m + n], fwork[m + n], True)


@kernel("float64(int32[::1], int32[::1], int32[::1], float64[::1])", fast=False)
def graph_labels(labels, head, work, fwork):
    """Write the labels of the nodes after a flow and return the energy, without the costs of label 0."""
    m, n = len(head), len(labels) + 1
    distance = forest_of(n, work)[0]
    for i in range(n - 1):
        labels[i] = distance[i + 1] > 0
    return wanted(fwork[m : m + n])
