"""Compiled minimum cut of a grid after a change of costs: the flow and the forest of the last cut are repaired.

After a flow (min_cut_kernel.py) the nodes inside the forest, the ones, have no positive excess, the nodes outside no
negative one, and no arc with room leads from the outside to the inside. A change only matters where it breaks this:

* ``settle``: a node inside that has got an excess sends it along straight lines to others inside that want some, one
  outside that has got a want takes from others outside. So no way opens from the outside into the forest. Lines are
  quick to follow, and with long ones little remains. A node that loses its parent arc to a line is an orphan.
* What remains inside is drained down the forest, and what still wants something outside becomes a root and searches.

This is done for one band of nodes after the other, whose part of the memory then stays near. A change that turns large
parts of the forest around needs a new one, with true distances: so the work has a budget, and when that is spent the
rest is only settled, what still has to flow goes along shortest paths (min_cut_augment_kernel.py), and the forest is
planted anew.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.min_cut_augment_kernel import augment_all
from maxmargin.inference.min_cut_grid_kernel import grid_layout
from maxmargin.inference.min_cut_kernel import (
    BUDGET,
    END,
    FIRST_LOST,
    LOST,
    OFFSETS,
    ROOT,
    STATE_SIZE,
    U,
    across,
    drain,
    forest_of,
    forget,
    grid_flow,
    readopt,
    search,
    wait,
)
from maxmargin.kernel import kernel
from maxmargin.prefetch_kernel import prefetch

BAND = 16384  # nodes that are repaired together
REACH = 64  # steps along a line
AHEAD = 1024  # nodes from the one at hand to the one whose memory is asked for
MANY = 20  # sweeps are quicker when more than one node in so many has excess left
CHANGED = 8  # the forest is kept when at most one excess in so many has changed
STEPS = 4  # the budget of ``readopt``, for each node


@register_jitable
def add_changes(unary, last, excess, p, places, count):
    """Add to the excesses of a line, whose first node is p, what they differ from the last ones.

    The nodes that do are listed from ``places[count]`` on, without a branch that nobody could predict; returns the end
    of that list.
    """
    for i in range(len(last)):
        e = unary[i, 1] - unary[i, 0]
        difference = e - last[i]
        last[i] = e
        excess[i] += difference
        places[U(count)] = p + i
        count += difference != 0.0
    return count


@register_jitable
def much_left(excess, distance):
    """Whether so much excess is left inside an unfinished forest that sweeps are quicker than walks."""
    waiting = 0
    for p in range(len(distance)):
        waiting += (distance[p] != 0) & (excess[p] > 0.0)
    return MANY * waiting > len(distance)


@register_jitable
def make_orphan(v, parent, lost, state):
    """Put a node of the forest on the list of orphans."""
    parent[v] = LOST
    lost[v] = state[FIRST_LOST] if state[FIRST_LOST] != 0 else END
    state[FIRST_LOST] = v


@register_jitable
def send_along(p, arc, steps, x, degree, offsets, residual, forest):
    """Send x, of either sign, along the straight line that begins with an arc of p."""
    _, parent, _, lost, _, state = forest
    u, opposite = across(p, arc, degree, offsets, None)
    step = u - p
    for _ in range(steps):
        residual[U(arc)] -= x
        residual[U(opposite)] += x
        if parent[U(p)] == arc and residual[U(arc)] == 0.0:
            make_orphan(p, parent, lost, state)
        p, arc, opposite = p + step, arc + step * degree, opposite + step * degree


@register_jitable
def settle(places, degree, offsets, residual, excess, forest):
    """Settle the changes at some nodes; returns the first of a list of nodes inside that have excess left."""
    distance, parent, queue, lost, surplus, state = forest
    first = np.int64(END)
    asked = np.int64(0)
    for i in range(len(places)):
        p = np.int64(places[U(i)])
        # A stream of the memory that lines need comes faster than one piece after the other when they need it.
        ahead = p + AHEAD
        prefetch(residual, max(asked, ahead - REACH) * degree, ahead * degree)
        asked = ahead
        inside = distance[U(p)] > 0
        sign = 1.0 if inside else -1.0
        left = sign * excess[U(p)]
        if left > 0.0:
            for arc in range(p * degree, p * degree + degree):
                u, opposite = across(p, arc, degree, offsets, None)
                step, way, room = u - p, arc, left
                for steps in range(1, REACH + 1):
                    room = min(room, residual[U(way if inside else opposite)])
                    if room <= 0.0 or (distance[U(u)] > 0) != inside:
                        break
                    x = min(room, -sign * excess[U(u)])
                    if x > 0.0:
                        send_along(p, arc, steps, sign * x, degree, offsets, residual, forest)
                        excess[U(u)] += sign * x
                        if excess[U(u)] == 0.0 and parent[U(u)] == ROOT:
                            make_orphan(u, parent, lost, state)
                        room -= x
                        left -= x
                    u, way, opposite = u + step, way + step * degree, opposite + step * degree
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
                make_orphan(p, parent, lost, state)
            if left > 0.0:
                surplus[U(p)] = first
                first = p
    return first


@kernel("void(int32[::1], int64, int64, int32[::1], int32[::1], float64[::1], float64[::1])", fast=False)
def repair(places, n, degree, offsets, work, residual, excess):
    """A flow again after changes at some nodes; unfinished when the budget is spent."""
    graph = (degree, None, offsets, None)
    forest = forest_of(n, work)
    state = forest[-1]
    first = settle(places, degree, offsets, residual, excess, forest)
    if state[FIRST_LOST] != 0 and state[BUDGET] >= 0:
        readopt(np.int64(state[FIRST_LOST]), graph, residual, forest)
    state[FIRST_LOST] = 0
    drain(first, graph, residual, excess, forest, True)
    search(graph, residual, excess, forest, True)


@kernel("void(int64, int64, int64, int64, float64[:, ::1], float64[::1], int64, int32[::1], float64[::1])", fast=False)
def grid_update(depth, height, width, neighbours, unary, last, n_changed, work, fwork):
    """The flow after a flow, for other costs; ``last`` has the excesses so far, and receives the new ones.

    When few have changed, only what has to change is touched.
    """
    layer, row, first, n = grid_layout(depth, height, width, neighbours)
    m = n * neighbours
    residual, excess, grain = fwork[:m], fwork[m : m + n], fwork[m + n]
    offsets, forest = work[OFFSETS:STATE_SIZE], forest_of(n, work)
    keep = CHANGED * n_changed <= len(last)
    work[BUDGET] = min(STEPS * len(last), 2**31 - 1) if keep else -1
    lines, rows = depth * height, max(1, BAND // row)
    places = np.empty(rows * width + 1, np.int32)
    for top in range(0, lines, rows):
        count = 0
        for line in range(top, min(top + rows, lines)):
            p, pixel = first + line // height * layer + line % height * row, line * width
            here = slice(pixel, pixel + width)
            count = add_changes(unary[here], last[here], excess[p:], p, places, count)
        if keep and count > 0:
            repair(places[:count], n, neighbours, offsets, work, residual, excess)
    if work[BUDGET] < 0:
        much = much_left(excess, forest[0])
        forget(forest)
        if keep and not much:
            augment_all(n, neighbours, offsets, work, residual, excess)
        grid_flow(n, neighbours, None, offsets, None, work, residual, excess, grain, much or not keep)
