"""Compiled minimum cut: one forest, grown breadth first from the nodes that want label 1.

The energy of a labelling y in {0, 1}^n, with arcs in both directions between neighbours, is

    E(y) = sum_p excess_p y_p + sum_{arcs p -> q} residual_pq (1 - y_p) y_q .

Sending x over an arc p -> q (excess_p and residual_pq lose x, excess_q and residual_qp gain x) leaves E as it is, as
long as no residual turns negative. So the kernels send excess to nodes with negative excess until none can get there.
Then the nodes that can still reach a negative excess over arcs with room form the smallest set of ones of least energy,
and E is the sum of their excesses. The steps:

* ``sweep``: each node in turn shares its excess among its later neighbours, then the same backwards (one iteration of
  sequential tree-reweighted message passing); two passes over memory that do most of the work on usual energies.
* ``search``: the forest holds the nodes that can reach a negative excess, with their distance; it grows level by level,
  and a node with excess that joins is drained down the tree. Far from the roots several levels wait for each other.
* ``drain``: excess runs to the root; a node whose arc fills up, and a root that has got enough, is an orphan.
* ``adopt``: an orphan looks for a parent as near as the lost one; otherwise its distance grows, its children are
  orphans too, and when no parent is in sight it leaves the forest. If one loss makes distances grow for too long, the
  search stops, and the forest is planted anew with true ones.
* ``readopt``: in its place when the forest of an earlier flow goes on (min_cut_update_kernel.py). It is deep from the
  start, and distances would grow far before a lost branch leaves; here any parent will do that leads to a root.

Distances never fall during a search and an arc fills up at most once for each distance of its tail, so the work is
bounded by O(n^2 m) for any real capacities; usual energies need about O(n). With ``readopt`` it has a budget instead,
and stops unfinished when that is spent; min_cut_augment_kernel.py goes on. Nothing is compiled with ``fast``, so that
the order of sums, and with it the last digit, does not depend on the addresses of the arrays.

The same code serves two kinds of graphs. ``graph = (degree, begin, head, back)``:

* grid: ``begin`` and ``back`` are None; arc ``v * degree + k`` leads from v to ``v + head[k]``, and k ^ 1 leads back;
* any graph: arcs ``begin[v] ... begin[v + 1] - 1`` lead from v to ``head[arc]``, the arc back is ``back[arc]``.

Node 0 and arc 0 are nobody's, so zeros mean: outside the forest, in no list. ``forest = (distance, parent, queue, lost,
surplus, state)``: parent is an arc, ROOT or LOST; the next three are the links of lists, all zero between calls.

Goldberg, Hed, Kaplan, Tarjan, Werneck (2011), Maximum flows by incremental breadth-first search. Goldberg, Hed, Kaplan,
Kohli, Tarjan, Werneck (2015), Faster and more dynamic maximum flow by incremental breadth-first search. Kohli, Torr
(2005), Efficiently solving dynamic Markov random fields using graph cuts. Kolmogorov (2006), Convergent tree-reweighted
message passing for energy minimization. Boykov, Kolmogorov (2004), An experimental comparison of min-cut/max-flow
algorithms for energy minimization in vision.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel

ROOT, LOST = -1, -2  # parents that are no arcs
END = -1  # of a list
DEEP = 256  # levels from where on drains wait for each other
PATIENCE = 4  # distances that may grow for each node, before one lost root is reason to plant anew
U = np.uint64  # of a place: spares the look whether it is negative that numba takes at each access, in the hot loops
HUGE = 1e9  # an excess of this size may drown the others in rounding
# positions in ``state``, which also has the offsets of a grid, at most 26, from OFFSETS on
HEAD, TAIL, COUNT, LEVEL, BUDGET, FIRST_LOST, OFFSETS, STATE_SIZE = 0, 1, 2, 3, 4, 5, 6, 40


@register_jitable
def arcs_of(v, degree, begin):
    """First arc of node v, and the one after its last."""
    if begin is None:
        return v * degree, v * degree + degree
    else:
        return np.int64(begin[v]), np.int64(begin[v + 1])


@register_jitable
def across(v, arc, degree, head, back):
    """The node at the other end of an arc of v, and the arc back."""
    if back is None:
        k = arc - v * degree
        u = v + head[U(k)]
        return u, u * degree + (k ^ 1)
    else:
        return np.int64(head[arc]), np.int64(back[arc])


@register_jitable
def forest_of(n, work):
    """The parts of the integer workspace, ``STATE_SIZE + 5 n`` long."""
    rows = work[STATE_SIZE : STATE_SIZE + 5 * n].reshape(5, n)
    return rows[0], rows[1], rows[2], rows[3], rows[4], work[:STATE_SIZE]


@register_jitable
def grain_for(largest):
    """What ``coarse`` needs, for capacities up to ``largest``."""
    return 1.5 * 2.0 ** min(22.0 + np.floor(np.log2(largest)), 1000.0) if largest > 0.0 else 1.0


@register_jitable
def coarse(x, grain):
    """x rounded to multiples of 2^-30 of the largest capacity, a power of two: flows of whole numbers stay exact."""
    return (x + grain) - grain


@register_jitable
def sweep(n, graph, residual, excess, grain, forward):
    """Every node in turn shares its excess, of either sign, evenly among the neighbours that come after it."""
    degree, begin, head, back = graph
    for i in range(1, n):
        p = i if forward else n - i
        e = excess[p]
        if e == 0.0:
            continue
        start, stop = arcs_of(p, degree, begin)
        if begin is None:
            left = degree // 2
        else:
            left = 0
            for arc in range(start, stop):
                left += (head[arc] > p) == forward
        for arc in range(start, stop):
            u, opposite = across(p, arc, degree, head, back)
            if (u > p) == forward:
                # The last one gets all that is left, so that no dust of rounding remains.
                x = coarse(e * (1.0 / left), grain) if left > 1 else e
                x = max(min(x, residual[arc]), -residual[opposite])
                left -= 1
                e -= x
                residual[arc] -= x
                residual[opposite] += x
                excess[u] += x
        excess[p] = e


@register_jitable
def wait(v, queue, state):
    """Queue a node of the forest that has to look for new members."""
    if queue[v] == 0:
        queue[v] = END
        if state[COUNT] == 0:
            state[HEAD] = v
        else:
            queue[state[TAIL]] = v
        state[TAIL] = v
        state[COUNT] += 1


@register_jitable
def pop(first, links):
    """The first node of a list, taken out of it, and the one behind."""
    v = np.int64(first)
    behind = np.int64(links[U(v)])
    links[U(v)] = 0
    return v, behind


@register_jitable
def adopt(first, graph, residual, forest):
    """Find parents for a list of orphans and for the orphans that this makes; stops the search if that takes long."""
    degree, begin, head, back = graph
    distance, parent, queue, lost, _, state = forest
    level = np.uint32(state[LEVEL])
    later, tail = END, END
    steps, most = 0, PATIENCE * len(distance)
    while (first != END or later != END) and steps < most:
        if first != END:
            v = np.int64(first)
            first = lost[v]
        else:
            v = np.int64(later)
            later = lost[v]
        lost[v] = 0
        start, stop = arcs_of(v, degree, begin)
        # Distance minus one, unsigned: outsiders are the farthest. Without branches, which nobody could predict here.
        best, chosen = level, np.int64(0)
        for arc in range(start, stop):
            u, _ = across(v, arc, degree, head, back)
            near = np.uint32(distance[u] - 1)
            better = (near < best) & (residual[arc] > 0.0)
            best = near if better else best
            chosen = arc if better else chosen
        parent[v] = chosen
        if chosen != 0 and best + 2 == distance[v]:
            continue
        steps += 1
        for arc in range(start, stop):
            u, opposite = across(v, arc, degree, head, back)
            if parent[u] == opposite:
                parent[u] = LOST
                lost[u] = END
                if later == END:
                    later = u
                else:
                    lost[tail] = u
                tail = u
        if chosen == 0:
            distance[v] = 0
        else:
            distance[v] = best + 2
            if best + 1 == level:
                wait(v, queue, state)
    if steps >= most:
        state[BUDGET] = -1


@register_jitable
def readopt(first, graph, residual, forest):
    """Find parents for a list of orphans and for the orphans that this makes, at whatever distance."""
    degree, begin, head, back = graph
    distance, parent, _, lost, _, state = forest
    alone, found, steps, budget = np.int64(END), False, 0, np.int64(state[BUDGET])
    while first != END and steps <= budget:
        v, first = pop(first, lost)
        steps += 1
        start, stop = arcs_of(v, degree, begin)
        chosen = np.int64(0)
        for arc in range(start, stop):
            if residual[U(arc)] > 0.0:
                u, _ = across(v, arc, degree, head, back)
                if distance[U(u)] > 0:
                    up = np.int64(parent[U(u)])
                    while up > 0:
                        u, _ = across(u, up, degree, head, back)
                        up = np.int64(parent[U(u)])
                        steps += 1
                    if up == ROOT:
                        chosen = arc
                        found = True
                        break
        parent[U(v)] = chosen
        if chosen == 0:
            distance[U(v)] = -distance[U(v)]  # nobody's parent
            lost[U(v)] = alone
            alone = v
            for arc in range(start, stop):
                u, opposite = across(v, arc, degree, head, back)
                if parent[U(u)] == opposite:
                    parent[U(u)] = LOST
                    lost[U(u)] = first
                    first = np.int64(u)
    while found and steps <= budget:  # then those that are alone may follow others, the last ones first
        found = False
        first = alone
        alone = np.int64(END)
        while first != END:
            v, first = pop(first, lost)
            steps += 1
            start, stop = arcs_of(v, degree, begin)
            chosen = np.int64(0)
            for arc in range(start, stop):
                u, _ = across(v, arc, degree, head, back)
                if distance[U(u)] > 0 and residual[U(arc)] > 0.0:
                    chosen = arc
                    break
            if chosen != 0:
                parent[U(v)] = chosen
                distance[U(v)] = -distance[U(v)]
                found = True
            else:
                lost[U(v)] = alone
                alone = v
    while alone != END:
        v, alone = pop(alone, lost)
        distance[v] = 0
    state[BUDGET] = max(budget - steps, -1)


@register_jitable
def drain(first, graph, residual, excess, forest, repairing):
    """Send the excess of a list of nodes down the forest, until they are empty or outside it."""
    degree, _, head, back = graph
    distance, parent, _, lost, surplus, state = forest
    while first != END and state[BUDGET] >= 0:
        v, first = pop(first, surplus)
        if distance[U(v)] == 0 or excess[U(v)] <= 0.0:
            continue
        orphans = np.int64(END)
        x, room, steps = excess[U(v)], 0.0, 0
        while True:
            steps += 1
            arc = np.int64(parent[U(v)])
            u = np.int64(0)
            if arc == ROOT:
                excess[U(v)] = x
                if x < 0.0:
                    break
            else:
                u, opposite = across(v, arc, degree, head, back)
                room = residual[U(arc)]
                if x < room:
                    residual[U(arc)] = room - x
                    residual[U(opposite)] += x
                    excess[U(v)] = 0.0
                    v = u
                    x += excess[U(v)]
                    continue
                residual[U(arc)] = 0.0
                residual[U(opposite)] += room
                excess[U(v)] = x - room
            parent[U(v)] = LOST
            lost[U(v)] = orphans  # the nearest to the root comes first
            orphans = v
            if excess[U(v)] > 0.0 and surplus[U(v)] == 0:
                surplus[U(v)] = first
                first = v
            if u == 0:
                break
            v = u
            x = room + excess[U(v)]
        if repairing:
            state[BUDGET] = max(state[BUDGET] - steps, -1)
            readopt(orphans, graph, residual, forest)
        else:
            adopt(orphans, graph, residual, forest)


@register_jitable
def search(graph, residual, excess, forest, repairing):
    """Grow the forest from the queued nodes, level by level, and drain what it meets, until nothing can join.

    Deep in the forest the way to a root is long: there several levels are drained together, the last ones first, which
    take along what they pass. So the ways of a long row add up to a few times its length and not to its square.
    """
    degree, begin, head, back = graph
    distance, parent, queue, _, surplus, state = forest
    later, due = np.int64(END), DEEP
    while state[BUDGET] >= 0:
        if later != END and (state[COUNT] == 0 or state[LEVEL] >= due):
            drain(later, graph, residual, excess, forest, repairing)
            later = np.int64(END)
            due = state[LEVEL] + state[LEVEL] // 8
        if state[COUNT] == 0:
            break
        if distance[state[HEAD]] > state[LEVEL]:
            state[LEVEL] += 1
        for _ in range(state[COUNT]):
            p = np.int64(state[HEAD])
            state[HEAD] = queue[U(p)]
            state[COUNT] -= 1
            queue[U(p)] = 0
            d = distance[U(p)]
            if d > state[LEVEL]:
                wait(p, queue, state)
                continue
            if d == 0:
                continue
            start, stop = arcs_of(p, degree, begin)
            for arc in range(start, stop):
                q, opposite = across(p, arc, degree, head, back)
                if distance[U(q)] == 0 and residual[U(opposite)] > 0.0:
                    distance[U(q)] = d + 1
                    parent[U(q)] = opposite
                    wait(q, queue, state)
                    if excess[U(q)] > 0.0 and surplus[U(q)] == 0:
                        if d >= DEEP:
                            surplus[U(q)] = later
                            later = q
                            continue
                        surplus[U(q)] = END
                        drain(q, graph, residual, excess, forest, repairing)
                        if distance[U(p)] != d:  # what joins now would be too near
                            if distance[U(p)] > 0:
                                wait(p, queue, state)
                            break


@register_jitable
def plant(n, excess, forest):
    """An empty forest, and a root at each node of negative excess."""
    distance, parent, queue, _, _, state = forest
    state[LEVEL] = 0
    for p in range(1, n):
        want = excess[p] < 0.0
        distance[p] = 1 if want else 0
        parent[p] = ROOT if want else 0
        if want:
            wait(p, queue, state)


@register_jitable
def forget(forest):
    """Empty the lists of an unfinished search."""
    _, _, queue, lost, surplus, state = forest
    queue[:] = 0
    lost[:] = 0
    surplus[:] = 0
    state[COUNT] = 0
    state[BUDGET] = 0


@register_jitable
def wanted(excess):
    """The sum of the excesses of the ones, after a flow: none is positive there, and none is negative elsewhere."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0  # in turn: four sums do not wait for each other
    for p in range(len(excess)):
        a, b, c, d = b, c, d, a + min(excess[p], 0.0)
    return (a + b) + (c + d)


@kernel("Tuple((float64, int64))(float64[:, ::1], float64[::1], boolean)", fast=False)
def terminals(unary, excess, write):
    """The sum of the costs of label 0, NaN when one is infinite or huge, and how many excesses differ from those given.

    The excess of a node is what label 1 costs more than label 0; with ``write`` they are written, not compared.
    """
    finite, changed = True, 0
    a, b, c, d = 0.0, 0.0, 0.0, 0.0  # as in ``wanted``
    for p in range(len(unary)):
        e = unary[p, 1] - unary[p, 0]
        a, b, c, d = b, c, d, a + unary[p, 0]
        finite &= abs(e) < HUGE
        if write:
            excess[p] = e
        else:
            changed += e != excess[p]
    total = (a + b) + (c + d)
    return total if finite and abs(total) < np.inf else np.nan, changed


def _flow(n, degree, begin, head, back, work, residual, excess, grain, fresh):
    """Send all excess that can go; unless ``fresh`` most of it is where it should be, and sweeps would do harm."""
    graph = (degree, begin, head, back)
    forest = forest_of(n, work)
    if fresh:
        sweep(n, graph, residual, excess, grain, True)
        sweep(n, graph, residual, excess, grain, False)
    plant(n, excess, forest)
    search(graph, residual, excess, forest, False)
    while forest[-1][BUDGET] < 0:
        forget(forest)
        plant(n, excess, forest)
        search(graph, residual, excess, forest, False)


_i8, _f8, _i4s, _f8s = types.int64, types.float64, types.int32[::1], types.float64[::1]
_rest = (_i4s, _f8s, _f8s, _f8, types.boolean)

# The same function, compiled for each kind of graph.
grid_flow = kernel(types.void(_i8, _i8, types.none, _i4s, types.none, *_rest), fast=False)(_flow)
graph_flow = kernel(types.void(_i8, _i8, _i4s, _i4s, _i4s, *_rest), fast=False)(_flow)
