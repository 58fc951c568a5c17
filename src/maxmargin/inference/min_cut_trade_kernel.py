"""Compiled minimum cut after a change that is too much for the forest: the scarce kind asks the plentiful one.

Where excesses and wants nearly cancel, as in energies without structure, a forest that grows from the scarce kind gets
deep before it finds the last of the other, and every root that has got enough leaves a large tree without one. From the
plentiful kind the ways are shorter. So

* ``measure``: the distance of every node from the nearest one of the plentiful kind, breadth first;
* ``trade``: each node of the scarce kind follows falling distances, sends or takes what it can, and goes on; where no
  way is left the distance grows. When its own has grown too far, it waits for the next measure.

Distances only grow where somebody has come along, others stay as they are: in a forest whole branches would have to
follow. They never exceed the true ones, so a node that is not reached by ``measure`` has nobody to trade with.

References
----------
Goldberg, Tarjan (1988), A new approach to the maximum-flow problem. Ahuja, Orlin (1991), Distance-directed augmenting
path algorithms for maximum flow and parametric maximum flow problems.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.inference.min_cut_kernel import U, across, arcs_of, forest_of
from maxmargin.kernel import kernel

STEPS = 40  # for each node; what is then left goes on without
NEAR, FAR = 3, 16  # a distance may grow by 3, and by a sixteenth, until the next measure
FEW = 20  # at most one node in so many may ask


@register_jitable
def measure(n, graph, residual, excess, sign, distance, queue):
    """Distances from the nodes that have what an excess of this sign asks for; 0 where there is no way."""
    degree, begin, head, back = graph
    count = 0
    for p in range(1, n):
        gives = sign * excess[U(p)] < 0.0
        distance[U(p)] = 1 if gives else 0
        if gives:
            queue[U(count)] = p
            count += 1
    at = 0
    while at < count:
        p = np.int64(queue[U(at)])
        at += 1
        d = distance[U(p)] + 1
        for arc in range(*arcs_of(p, degree, begin)):
            q, opposite = across(p, arc, degree, head, back)
            if distance[U(q)] == 0 and residual[U(opposite if sign > 0.0 else arc)] > 0.0:
                distance[U(q)] = d
                queue[U(count)] = q
                count += 1


@register_jitable
def trade(s, most, budget, graph, residual, excess, sign, distance, chosen, path):
    """Node s trades along falling distances, until it has got rid of its excess, its distance exceeds ``most``, or the
    budget is spent; returns what is left of that."""
    degree, begin, head, back = graph
    v, steps = s, 0
    while budget >= 0:
        budget -= 1
        if sign * excess[U(v)] < 0.0:
            budget -= steps
            x = min(sign * excess[U(s)], -sign * excess[U(v)])
            for i in range(steps):
                w = np.int64(path[U(i)])
                arc = np.int64(chosen[U(w)])
                _, opposite = across(w, arc, degree, head, back)
                x = min(x, residual[U(arc if sign > 0.0 else opposite)])
            steps, full = 0, steps
            for i in range(full):
                w = np.int64(path[U(i)])
                arc = np.int64(chosen[U(w)])
                _, opposite = across(w, arc, degree, head, back)
                residual[U(arc)] -= sign * x
                residual[U(opposite)] += sign * x
                steps += steps == i and residual[U(arc if sign > 0.0 else opposite)] > 0.0
            excess[U(s)] -= sign * x
            excess[U(v)] += sign * x
            if excess[U(s)] == 0.0:
                break
            if steps < full:  # back to where the way is blocked
                v = np.int64(path[U(steps)])
        mine = distance[U(v)]
        best, way, to = 0, np.int64(0), v
        for arc in range(*arcs_of(v, degree, begin)):
            u, opposite = across(v, arc, degree, head, back)
            d = distance[U(u)]
            if d > 0 and (d < best or best == 0) and residual[U(arc if sign > 0.0 else opposite)] > 0.0:
                best, way, to = d, arc, u
                if d < mine:
                    break
        if 0 < best < mine:
            chosen[U(v)] = way
            path[U(steps)] = v
            steps += 1
            v = to
        else:
            distance[U(v)] = best + 1 if best > 0 else 0
            if v == s:
                if best == 0 or best >= most:
                    break
            else:
                steps -= 1
                v = np.int64(path[U(steps)])
    return budget


def _exchange(n, degree, begin, head, back, work, residual, excess):
    """Trade until nobody can, if few have to ask. Needs a forest with empty lists, and leaves it to be planted anew."""
    graph = (degree, begin, head, back)
    distance, chosen, queue, path, asking, _ = forest_of(n, work)
    total = 0.0
    for p in range(1, n):
        total += excess[p]
    sign = -1.0 if total > 0.0 else 1.0
    count, same = 0, 0
    for p in range(1, n):
        same += (distance[p] > 0) == (sign < 0.0)  # on the side of those that ask
        if sign * excess[p] > 0.0:
            asking[count] = p
            count += 1
    budget = STEPS * n if FEW * count <= n and 5 * same <= n else -1  # where sides are mixed, forests are quicker
    while budget >= 0:
        measure(n, graph, residual, excess, sign, distance, queue)
        ways = 0
        for i in range(count):
            ways += distance[asking[i]]
        if ways == 0 or ways > n:  # nobody left to trade with, or too far away
            break
        budget -= n // 4  # for the measure
        left = 0
        for i in range(count):
            s = np.int64(asking[i])
            d = distance[s]
            if d > 0:
                budget = trade(s, d + NEAR + d // FAR, budget, graph, residual, excess, sign, distance, chosen, path)
            if excess[s] != 0.0:
                asking[left] = s
                left += 1
        count = left
    queue[:] = 0
    path[:] = 0
    asking[:] = 0


_i8, _i4s, _f8s = types.int64, types.int32[::1], types.float64[::1]

# As ``@kernel`` does, but the same function for each kind of graph.
grid_exchange = kernel(types.void(_i8, _i8, types.none, _i4s, types.none, _i4s, _f8s, _f8s), fast=False)(_exchange)
graph_exchange = kernel(types.void(_i8, _i8, _i4s, _i4s, _i4s, _i4s, _f8s, _f8s), fast=False)(_exchange)
