"""Compiled minimum cut after a change of excesses: the flow and the forest of the last cut go on.

After a flow (min_cut_kernel.py) the nodes inside the forest, the ones, have no positive excess, the nodes outside no
negative one, and no arc with room leads from the outside to the inside. A change only matters where it breaks this:

* ``settle``: a node inside that has got an excess sends it along straight lines to others inside that want some, one
  outside that has got a want takes from others outside. So no way opens from the outside into the forest. Lines are
  quick to follow, and with long ones little remains. What a line cuts off is an orphan.
* What remains inside is drained down the forest, and what still wants something outside becomes a root and searches.

This is done for one band of nodes after the other, whose part of the memory then stays near. A change that turns large
parts of the forest around needs a new one, with true distances: so the work has a budget, and when that is spent the
rest is only settled, what still has to flow is traded (min_cut_trade_kernel.py), and the forest is planted anew.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.inference.min_cut_kernel import (
    BUDGET,
    END,
    FIRST_LOST,
    LOST,
    ROOT,
    U,
    across,
    arcs_of,
    drain,
    forest_of,
    readopt,
    search,
    wait,
)
from maxmargin.kernel import kernel

BAND = 16384  # nodes that are mended together
REACH = 64  # steps along a line
AHEAD = 1024  # nodes from the one at hand to the one that is read ahead
MANY = 20  # a share of nodes that is much
STEPS = 4  # the budget of ``readopt``, for each node


@register_jitable
def change(unary, last, excess, marks, mark):
    """Add to the excesses what they differ from the last ones; mark those that do, if ``mark``; returns how many."""
    changed = 0
    for i in range(len(last)):
        e = unary[i, 1] - unary[i, 0]
        difference = e - last[i]
        last[i] = e
        excess[i] += difference
        marks[i] = mark & (difference != 0.0)
        changed += difference != 0.0
    return changed


@register_jitable
def few(n_changed, n, state):
    """Whether so few excesses have changed that the forest can go on; then it gets its budget, otherwise none."""
    state[BUDGET] = min(STEPS * n, 2**31 - 1) if 8 * n_changed <= n else -1
    return state[BUDGET] >= 0


@register_jitable
def much_left(excess, distance):
    """Whether so much excess is left inside an unfinished forest that sweeps are quicker than walks."""
    waiting = 0
    for p in range(len(distance)):
        waiting += (distance[p] != 0) & (excess[p] > 0.0)
    return MANY * waiting > len(distance)


@register_jitable
def farther(v, u, arc, opposite, degree, begin, head, back):
    """The next step of a line that has led from v to u: straight on in a grid, else by an arc far from the one back."""
    if begin is None:
        step = u - v
        return u, u + step, arc + step * degree, opposite + step * degree
    else:
        start, stop = arcs_of(u, degree, begin)
        arc = opposite + (stop - start) // 2  # no arc comes twice before the line is back at its first node
        if arc >= stop:
            arc -= stop - start
        return u, np.int64(head[arc]), arc, np.int64(back[arc])


@register_jitable
def lose(v, parent, lost, state):
    """Put a node of the forest on the list of orphans."""
    parent[v] = LOST
    lost[v] = state[FIRST_LOST] if state[FIRST_LOST] != 0 else END
    state[FIRST_LOST] = v


@register_jitable
def send(p, arc, steps, x, graph, residual, forest):
    """Send x, of either sign, along the line that begins with an arc of p."""
    degree, begin, head, back = graph
    _, parent, _, lost, _, state = forest
    u, opposite = across(p, arc, degree, head, back)
    for _ in range(steps):
        residual[U(arc)] -= x
        residual[U(opposite)] += x
        if parent[U(p)] == arc and residual[U(arc)] == 0.0:
            lose(p, parent, lost, state)
        p, u, arc, opposite = farther(p, u, arc, opposite, degree, begin, head, back)


@register_jitable
def settle(low, high, n, graph, residual, excess, forest):
    """Settle the marked changes among some nodes; returns the first of a list of nodes inside that have excess left."""
    degree, begin, head, back = graph
    distance, parent, queue, lost, surplus, state = forest
    first = np.int64(END)
    for p in range(low, high):
        # Never negative; but reading ahead makes a stream of the memory that lines need, and that comes faster.
        if surplus[U(p)] == 0 and residual[U(arcs_of(min(p + AHEAD, n - 1), degree, begin)[0])] >= 0.0:
            continue
        surplus[U(p)] = 0
        inside = distance[U(p)] > 0
        sign = 1.0 if inside else -1.0
        left = sign * excess[U(p)]
        if left > 0.0:
            for arc in range(*arcs_of(p, degree, begin)):
                u, opposite = across(p, arc, degree, head, back)
                v, way, room = p, arc, left
                for steps in range(1, REACH + 1):
                    room = min(room, residual[U(way if inside else opposite)])
                    if room <= 0.0 or (distance[U(u)] > 0) != inside or u == p:
                        break
                    x = min(room, -sign * excess[U(u)])
                    if x > 0.0:
                        send(p, arc, steps, sign * x, graph, residual, forest)
                        excess[U(u)] += sign * x
                        if excess[U(u)] == 0.0 and parent[U(u)] == ROOT:
                            lose(u, parent, lost, state)
                        room -= x
                        left -= x
                    v, u, way, opposite = farther(v, u, way, opposite, degree, begin, head, back)
                if left <= 0.0:
                    break
            excess[U(p)] = sign * left
        if excess[U(p)] < 0.0:
            parent[U(p)] = ROOT
            if not inside:
                distance[U(p)] = 1
                wait(p, queue, state)
        elif inside:
            if parent[U(p)] == ROOT:
                lose(p, parent, lost, state)
            if left > 0.0:
                surplus[U(p)] = first
                first = p
    return first


def _mend(low, high, n, degree, begin, head, back, work, residual, excess):
    """A flow again after marked changes among some nodes; unfinished when the budget is spent."""
    graph = (degree, begin, head, back)
    forest = forest_of(n, work)
    state = forest[-1]
    first = settle(low, high, n, graph, residual, excess, forest)
    if state[FIRST_LOST] != 0 and state[BUDGET] >= 0:
        readopt(np.int64(state[FIRST_LOST]), graph, residual, forest)
    state[FIRST_LOST] = 0
    drain(first, graph, residual, excess, forest, True)
    search(graph, residual, excess, forest, True)


_i8, _i4s, _f8s = types.int64, types.int32[::1], types.float64[::1]

# As ``@kernel`` does, but the same function for each kind of graph.
grid_mend = kernel(types.void(_i8, _i8, _i8, _i8, types.none, _i4s, types.none, _i4s, _f8s, _f8s), fast=False)(_mend)
graph_mend = kernel(types.void(_i8, _i8, _i8, _i8, _i4s, _i4s, _i4s, _i4s, _f8s, _f8s), fast=False)(_mend)
