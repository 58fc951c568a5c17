"""Compiled kernels of label sets whose graph has cycles and too many labels to try all sets: bounds, then branching.

The argmax solves the linear relaxation by roof duality (one minimum cut); labels where its solution is whole are
settled, and the others are branched on, with concave bounds. Other rescalings walk along the hull of *relaxed* points,
those of the concave function over the box: the product of cost and violation is quasi-concave there, so the last line
of the walk touches it at the relaxed optimum, an upper bound of what sets can reach. Then branching searches the sets
above the best one found and below that line. It has a budget of parts; where that ends, or more than 128 labels are
open, the bound stays open, and certificates count it.

See :mod:`maxmargin.inference.roof_kernel` and :mod:`maxmargin.inference.box_search_kernel`; flips are those of
:mod:`maxmargin.models.label_set_kernel`.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference import box_search_kernel as bk
from maxmargin.inference.roof_kernel import climb, roof, roof_sizes
from maxmargin.inference.slack_search_kernel import next_cost_weight, proven_bound
from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.label_set_kernel import (
    AT_BEGIN,
    AT_EDGES,
    AT_ENDS,
    MARGIN,
    N_EDGES,
    PARTS,
    conclude,
    flip_scores,
    parted,
)
from maxmargin.models.search_kernel import search_number, search_power
from maxmargin.models.signature import PLANE_SIGNATURE, SEARCH_SIGNATURE

EQUAL = 1e-11  # relative difference of numbers that are the same but for rounding
MOST_QUERIES = 24  # cost weights of a walk along the hull


def scratch_sizes(n_labels: int, n_edges: int) -> tuple[int, int]:
    """Integers and floats that the kernels need as scratch, beyond what all kernels of label sets need."""
    few = n_labels if n_labels <= bk.LARGEST else 0
    (roof_ints, roof_floats), (ints, floats) = roof_sizes(n_labels, n_edges), bk.search_sizes(few)
    return 3 * n_labels + max(roof_ints, ints), 4 * n_labels + few * few + bk.AIM_SIZE + max(roof_floats, floats)


@register_jitable
def graph_of(meta, ints):
    """The edges (2 E), and where those at each label begin (M + 1) and end (2 E)."""
    M, E = meta[mk.N_LABELS], meta[N_EDGES]
    begin, ends = meta[AT_BEGIN], meta[AT_ENDS]
    return ints[meta[AT_EDGES] : meta[AT_EDGES] + 2 * E], ints[begin : begin + M + 1], ints[ends : ends + 2 * E]


@register_jitable
def divided(M, iwork, rest):
    """Scratch: two sides of a relaxation and the labels set (3, M), more integers; gains, a point of the box, its
    gradient and curvatures (4, M), pairs (M, M) where there are few labels, the aim, more floats.
    """
    few = M if M <= bk.LARGEST else 0
    at = 4 * M + few * few
    rows, pairs = rest[: 4 * M].reshape((4, M)), rest[4 * M : at].reshape((few, few))
    aim, more = rest[at : at + bk.AIM_SIZE], rest[at + bk.AIM_SIZE :]
    return iwork[: 3 * M].reshape((3, M)), iwork[3 * M :], rows, pairs, aim, more


@register_jitable
def fill_pairs(graph, pair, pairs, curvature, fwork):
    """Pairs as a matrix, and the curvatures that make it concave. O(M^3)."""
    edges, M = graph[0], len(pairs)
    pairs[:] = 0.0
    for e in range(len(pair)):
        pairs[edges[2 * e], edges[2 * e + 1]] += pair[e]
        pairs[edges[2 * e + 1], edges[2 * e]] += pair[e]
    bk.curvatures(pairs, curvature, fwork[: M * M].reshape((M, M)))


@register_jitable
def offer(graph, gain, cost, pair, aim, z, top, output):
    """Climb from z; where that beats ``top`` it becomes the output. Returns the better objective."""
    edges, begin, ends = graph
    value, paid = climb(edges, begin, ends, gain, pair, -1, z), 0.0
    for k in range(len(z)):
        if z[k] != 0:
            paid += cost[k]
    found = bk.objective(value, paid, aim)
    if found > top:
        output[: len(z)] = z
        return found
    return top


@register_jitable
def offer_few(rows, pairs, cost, aim, side, top, output):
    """The same for few labels, from the set nearest to ``rows[1]``; two labels may change places as well."""
    bk.rounded(rows[1], side)
    found = bk.ascend(rows[0], pairs, cost, aim, side, rows[2])
    if found > top:
        output[: len(side)] = side
        return found
    return top


@register_jitable
def best_sum(graph, gain, cost, mu, pair, most, iwork, rest, output):
    """The flips of largest ``h + mu cost``, as far as the budget ``most`` allows: into ``output``; value and bound."""
    M = len(gain)
    sides, work, rows, pairs, aim, fwork = divided(M, iwork, rest)
    total, fixed = rows[0], sides[2]
    aim[bk.POWER], aim[bk.MU] = bk.SUM, mu
    for k in range(M):
        total[k] = gain[k] + mu * cost[k]
    bound = roof(graph[0], total, pair, work, fwork, sides[0], sides[1])
    for k in range(M):
        fixed[k] = sides[0, k] if sides[0, k] == sides[1, k] else bk.FREE
    output[:M] = 0
    top = 0.0
    for s in range(2):
        top = offer(graph, total, cost, pair, aim, sides[s], top, output)
    if bound - top > EQUAL * max(1.0, abs(bound)) and len(pairs) > 0:
        fill_pairs(graph, pair, pairs, rows[3], fwork)
        for k in range(M):
            rows[1, k] = 0.5 if fixed[k] == bk.FREE else fixed[k]
        bk.start_box(total, pairs, rows[3], rows[1], rows[2])
        bk.concave_bound(total, pairs, rows[3], fixed, rows[1], rows[2], top, bk.ROOT_SWEEPS)
        top = offer_few(rows, pairs, cost, aim, sides[0], top, output)
        top, bound = bk.branch_and_bound(
            total, pairs, rows[3], cost, aim, top, bound, fixed, most, rows[1], output[:M], work, fwork
        )
    sides[:] = 0
    return top, max(bound, top)


@register_jitable
def relaxed(graph, gain, cost, mu, pair, sides, work, rows, pairs, fwork):
    """The relaxation at cost weight mu, over the box where labels are few: its bound, and the cost of its solution.

    The solution goes into ``rows[1]``, where the box also begins; that of roof duality into ``sides``.
    """
    M, paid = len(gain), 0.0
    total, z = rows[0], rows[1]
    for k in range(M):
        total[k] = gain[k] + mu * cost[k]
    if len(pairs) == 0:
        upper = roof(graph[0], total, pair, work, fwork, sides[0], sides[1])
        for k in range(M):
            paid += 0.5 * cost[k] * (sides[0, k] + sides[1, k])
        return upper, paid
    sides[2, :] = bk.FREE
    bk.start_box(total, pairs, rows[3], z, rows[2])
    upper = bk.concave_bound(total, pairs, rows[3], sides[2], z, rows[2], -np.inf, bk.ROOT_SWEEPS)
    for k in range(M):
        paid += cost[k] * z[k]
    return upper, paid


@register_jitable
def best_product(graph, gain, cost, lam, least, power, pair, most, iwork, rest, output):
    """Flips of large ``cost^p (lam + h)``, into ``output``; returns value, bound and the queries it took.

    ``least`` is the least positive cost of any set.
    """
    M = len(gain)
    sides, work, rows, pairs, aim, fwork = divided(M, iwork, rest)
    output[:M] = 0
    if least <= 0.0:  # nothing costs anything
        return 0.0, 0.0, 1
    kept, top, bound, lowest, at, queries = np.zeros((2, 4)), 0.0, np.inf, np.inf, 0.0, 0
    aim[bk.POWER], aim[bk.LAM] = power, lam
    mu = lam / least if power > 0.0 else 0.0
    if len(pairs) > 0:
        fill_pairs(graph, pair, pairs, rows[3], fwork)
        aim[bk.MU] = 0.0
        rows[0, :] = gain
        rows[1, :] = 0.0
        top = offer_few(rows, pairs, cost, aim, sides[0], top, output)  # from the truth
        rows[1, :] = 0.5
    while queries < MOST_QUERIES:
        queries, aim[bk.MU] = queries + 1, mu
        upper, g = relaxed(graph, gain, cost, mu, pair, sides, work, rows, pairs, fwork)
        if len(pairs) > 0:
            top = offer_few(rows, pairs, cost, aim, sides[0], top, output)
        else:
            for s in range(2):
                top = offer(graph, rows[0], cost, pair, aim, sides[s], top, output)
        reach = lam + max(upper, 0.0)
        line = bk.greatest_objective(reach - lam, aim)
        if line < lowest:
            lowest, at = line, mu
        bound = min(bound, proven_bound(kept, mu, reach, power, least) if power > 0.0 else line)
        if bound <= top * (1.0 + EQUAL) or power == 0.0:
            break
        mu = next_cost_weight(kept, mu, reach - mu * g, g, reach, power)
        if mu == 0.0:
            break
    if bound > top * (1.0 + EQUAL) and len(pairs) > 0:
        aim[bk.MU] = at
        for k in range(M):
            rows[0, k] = gain[k] + at * cost[k]
            rows[1, k], sides[2, k] = 0.5, bk.FREE
        top, bound = bk.branch_and_bound(
            rows[0], pairs, rows[3], cost, aim, top, bound, sides[2], most, rows[1], output[:M], work, fwork
        )
    sides[:] = 0
    return top, max(bound, top), queries


@kernel(PLANE_SIGNATURE)
def cycle_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """A set of large ``w . phi + cost_weight cost``, and an upper bound of the largest. O(nnz S), a cut, branching."""
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    _, bound = best_sum(graph_of(meta, ints), gain, cost, cost_weight, pair, meta[PARTS], iwork, rest, output)
    made = conclude(
        meta, ints, floats, example, cost_weight, MARGIN, emit, gain, cost, pair, output, index, value, result
    )  # fmt: skip
    result[1] = max(result[1], bound)
    return made


@kernel(SEARCH_SIGNATURE)
def cycle_search(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result):
    """A set of large ``cost^p (lam - w . psi)`` among those that cost something, and an upper bound of the largest."""
    if lam <= 0.0:
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    power, least = search_power(meta, floats), search_number(meta, floats, example)
    _, bound, queries = best_product(
        graph_of(meta, ints), gain, cost, lam, least, power, pair, meta[PARTS], iwork, rest, output
    )
    result[len(result) - 1] = queries
    made = conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)
    result[1] = max(result[1], bound)
    return made


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int32[::1], float64[::1], float64[:, ::1])")
def cycle_max_marginals(meta, ints, floats, w, iwork, fwork, out):
    """Best score with each label on minus the best with it off, (n, M), as far as branching finds them."""
    score, gain, cost, pair, rest = parted(meta, fwork)
    graph = graph_of(meta, ints)
    edges, begin, ends = graph
    M = len(gain)
    sides, work, rows, pairs, aim, more = divided(M, iwork, rest)
    best, other = np.empty(M, np.int32), np.empty(M, np.int32)
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        top, _ = best_sum(graph, gain, cost, 0.0, pair, meta[PARTS], iwork, rest, best)
        if len(pairs) > 0:
            fill_pairs(graph, pair, pairs, rows[3], more)
        aim[bk.POWER] = bk.SUM
        for k in range(M):
            other[:] = best
            other[k] = 1 - other[k]
            found = climb(edges, begin, ends, gain, pair, k, other)
            if len(pairs) > 0:
                sides[2, :] = bk.FREE
                sides[2, k] = other[k]
                for j in range(M):
                    rows[1, j] = other[j]
                found, _, _ = bk.branch(
                    gain, pairs, rows[3], cost, aim, found, -np.inf, sides[2], meta[PARTS], rows[1], other, work, more
                )
            out[example, k] = top - found if best[k] != 0 else found - top
        sides[:] = 0
