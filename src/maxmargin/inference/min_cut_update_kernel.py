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

BAND = 16384  # nodes that are repaired together
REACH = 64  # steps along a line
AHEAD = 1024  # nodes from the one at hand to the one that is read ahead
MANY = 20  # sweeps are quicker when more than one node in so many has excess left
CHANGED = 8  # the forest is kept when at most one excess in so many has changed
STEPS = 4  # the budget of ``readopt``, for each node


@register_jitable
def add_changes(unary, last, excess, marks, mark):
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
def settle(low, high, n, degree, offsets, residual, excess, forest):
    """Settle the marked changes among some nodes; returns the first of a list of nodes inside that have excess left."""
    distance, parent, queue, lost, surplus, state = forest
    first = np.int64(END)
    for p in range(low, high):
        # Never negative; but reading ahead makes a stream of the memory that lines need, and that comes faster.
        if surplus[U(p)] == 0 and residual[U(min(p + AHEAD, n - 1) * degree)] >= 0.0:
            continue
        surplus[U(p)] = 0
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


@kernel("void(int64, int64, int64, int64, int32[::1], int32[::1], float64[::1], float64[::1])", fast=False)
def repair(low, high, n, degree, offsets, work, residual, excess):
    """A flow again after marked changes among some nodes; unfinished when the budget is spent."""
    graph = (degree, None, offsets, None)
    forest = forest_of(n, work)
    state = forest[-1]
    first = settle(low, high, n, degree, offsets, residual, excess, forest)
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
    marks = forest[4]
    keep = CHANGED * n_changed <= len(last)
    work[BUDGET] = min(STEPS * len(last), 2**31 - 1) if keep else -1
    lines, rows = depth * height, max(1, BAND // row)
    for top in range(0, lines, rows):
        low, p, changed = 0, 0, 0
        for line in range(top, min(top + rows, lines)):
            p, pixel = first + line // height * layer + line % height * row, line * width
            low = p if line == top else low
            here = slice(pixel, pixel + width)
            changed += add_changes(unary[here], last[here], excess[p:], marks[p:], keep)
        if keep and changed > 0:
            repair(low, p + width, n, neighbours, offsets, work, residual, excess)
    if work[BUDGET] < 0:
        much = much_left(excess, forest[0])
        forget(forest)
        if keep and not much:
            augment_all(n, neighbours, offsets, work, residual, excess)
        grid_flow(n, neighbours, None, offsets, None, work, residual, excess, grain, much or not keep)
