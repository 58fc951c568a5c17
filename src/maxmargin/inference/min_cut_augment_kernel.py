"""Compiled minimum cut of a grid after a change that is too much for the forest: flow along shortest paths.

Where excesses and wants nearly cancel, as in energies without structure, a forest that grows from the scarce kind gets
deep before it finds the last of the other, and every root that has got enough leaves a large tree without one. From the
plentiful kind the paths are shorter. So

* ``label_distances``: the distance of every node from the nearest one of the plentiful kind, breadth first;
* ``augment``: each node of the scarce kind follows falling distances, sends or takes what it can, and goes on; where no
  path is left the distance grows. When its own has grown too far, it waits for new labels.

Distances only grow where a path has come along, others stay as they are: in a forest whole branches would have to
follow. They never exceed the true ones, so a node without a label has no path to any node of the plentiful kind.

Goldberg, Tarjan (1988), A new approach to the maximum-flow problem. Ahuja, Orlin (1991), Distance-directed augmenting
path algorithms for maximum flow and parametric maximum flow problems.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.min_cut_kernel import U, across, forest_of
from maxmargin.kernel import kernel

STEPS = 40  # for each node; what is then left goes on without
NEAR, FAR = 3, 16  # a distance may grow by 3, and by a sixteenth, until new labels
SCARCE = 20  # at most one node in so many may be of the scarce kind


@register_jitable
def label_distances(n, degree, offsets, residual, excess, sign, distance, queue):
    """Distances from the nodes whose excess has the other sign; 0 where there is no path."""
    count = 0
    for p in range(1, n):
        plentiful = sign * excess[U(p)] < 0.0
        distance[U(p)] = 1 if plentiful else 0
        if plentiful:
            queue[U(count)] = p
            count += 1
    at = 0
    while at < count:
        p = np.int64(queue[U(at)])
        at += 1
        d = distance[U(p)] + 1
        for arc in range(p * degree, p * degree + degree):
            q, opposite = across(p, arc, degree, offsets, None)
            if distance[U(q)] == 0 and residual[U(opposite if sign > 0.0 else arc)] > 0.0:
                distance[U(q)] = d
                queue[U(count)] = q
                count += 1


@register_jitable
def augment(s, most, budget, degree, offsets, residual, excess, sign, distance, chosen, path):
    """Flow between node s and others along falling distances, until its excess is gone, its distance exceeds ``most``,
    or the budget is spent; returns what is left of that."""
    v, steps = s, 0
    while budget >= 0:
        budget -= 1
        if sign * excess[U(v)] < 0.0:
            budget -= steps
            x = min(sign * excess[U(s)], -sign * excess[U(v)])
            for i in range(steps):
                w = np.int64(path[U(i)])
                arc = np.int64(chosen[U(w)])
                _, opposite = across(w, arc, degree, offsets, None)
                x = min(x, residual[U(arc if sign > 0.0 else opposite)])
            steps, full = 0, steps
            for i in range(full):
                w = np.int64(path[U(i)])
                arc = np.int64(chosen[U(w)])
                _, opposite = across(w, arc, degree, offsets, None)
                residual[U(arc)] -= sign * x
                residual[U(opposite)] += sign * x
                steps += steps == i and residual[U(arc if sign > 0.0 else opposite)] > 0.0
            excess[U(s)] -= sign * x
            excess[U(v)] += sign * x
            if excess[U(s)] == 0.0:
                break
            if steps < full:  # back to where the path is blocked
                v = np.int64(path[U(steps)])
        mine = distance[U(v)]
        best, way, to = 0, np.int64(0), v
        for arc in range(v * degree, v * degree + degree):
            u, opposite = across(v, arc, degree, offsets, None)
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


@kernel("void(int64, int64, int32[::1], int32[::1], float64[::1], float64[::1])", fast=False)
def augment_all(n, degree, offsets, work, residual, excess):
    """Augment from the scarce kind while paths are short and the budget lasts.

    Needs a forest with empty lists, and leaves it to be planted anew.
    """
    distance, chosen, queue, path, scarce, _ = forest_of(n, work)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0  # in turn: four sums do not wait for each other
    for p in range(1, n):
        a, b, c, d = b, c, d, a + excess[p]
    sign = -1.0 if (a + b) + (c + d) > 0.0 else 1.0
    count, same = 0, 0
    for p in range(1, n):
        same += (distance[p] > 0) == (sign < 0.0)  # on the side of the scarce kind
        if sign * excess[p] > 0.0:
            scarce[count] = p
            count += 1
    budget = STEPS * n if SCARCE * count <= n and 5 * same <= n else -1  # where sides are mixed, forests are quicker
    while budget >= 0:
        label_distances(n, degree, offsets, residual, excess, sign, distance, queue)
        lengths = 0
        for i in range(count):
            lengths += distance[scarce[i]]
        if lengths == 0 or lengths > n:  # no path is left, or they are too long
            break
        budget -= n // 4  # for the labels
        left = 0
        for i in range(count):
            s = np.int64(scarce[i])
            far = distance[s]
            if far > 0:
                most = far + NEAR + far // FAR
                budget = augment(s, most, budget, degree, offsets, residual, excess, sign, distance, chosen, path)
            if excess[s] != 0.0:
                scarce[left] = s
                left += 1
        count = left
    queue[:] = 0
    path[:] = 0
    scarce[:] = 0
