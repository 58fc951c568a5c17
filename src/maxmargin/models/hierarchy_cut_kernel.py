"""Compiled kernels of labels with several parents: the best set closed under ancestors is a minimum cut.

The set of largest sum of preferences among those that are closed is a *closure of largest weight*: labels are nodes,
and an arc that the cut cannot pay keeps a label off where one of its parents is off (Picard 1976, Maximal closure of a
graph and applications to combinatorial problems). Where outputs must end in leaves, this is a bound; a set that does so
is made from it by adding, for each label that lacks one, the child with the best way down.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.min_cut_graph_kernel import graph_labels, graph_load, graph_solve
from maxmargin.inference.min_cut_kernel import STATE_SIZE
from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.hierarchy_kernel import (
    AT_ARCS,
    AT_PAIRS,
    FILL_SIGNATURE,
    LEAVES_ONLY,
    N_PAIRS,
    as_flips,
    preferences,
)
from maxmargin.models.label_set_kernel import AT_ORDER, MARGIN, conclude, flip_scores, is_on, parted
from maxmargin.models.signature import PLANE_SIGNATURE


@register_jitable
def best_closure(meta, ints, prefer, output, iwork, room):
    """The smallest closed set of largest sum of ``prefer`` (M,) into ``output``."""
    M, E = meta[mk.N_LABELS], meta[N_PAIRS]
    excess, forward, backward, fwork = room[:M], room[M : M + E], room[M + E : M + 2 * E], room[M + 2 * E :]
    size = 1.0
    for k in range(M):
        excess[k] = -prefer[k]
        size += abs(prefer[k])
    forward[:], backward[:] = size, 0.0  # a parent off with its child on costs more than all there is to gain
    begin = meta[AT_ARCS]
    a, b, c = begin + M + 2, begin + M + 2 + 2 * E + 1, begin + M + 2 + 2 * (2 * E + 1)
    head, back, place = ints[a:b], ints[b:c], ints[c : c + E]
    graph_load(excess, forward, backward, back, place, fwork[: 2 * E + M + 3])
    graph_solve(ints[begin:a], head, back, iwork, fwork[: 2 * E + M + 3])
    graph_labels(output[:M], head, iwork, fwork[: 2 * E + M + 3])
    iwork[: STATE_SIZE + 2 * (M + 1)] = 0  # the lists behind are empty


@register_jitable
def total_of(prefer, output):
    """The sum of the preferences of the labels that are on."""
    total = 0.0
    for k in range(len(prefer)):
        if output[k] != 0:
            total += prefer[k]
    return total


@register_jitable
def add_leaves(meta, ints, prefer, output, way, child):
    """Add children until every label that is on ends in a leaf, by the best way down that one parent each would pay."""
    M, E = meta[mk.N_LABELS], meta[N_PAIRS]
    for i in range(M - 1, -1, -1):  # way: what a label and the best way down from it gain
        k = ints[meta[AT_ORDER] + i]
        best, child[k], lacking = -np.inf, -1.0, True
        for e in range(E):
            if ints[meta[AT_PAIRS] + 2 * e] == k:
                c = ints[meta[AT_PAIRS] + 2 * e + 1]
                gain = way[c]
                for f in range(E):  # other parents that the child would bring along
                    parent = ints[meta[AT_PAIRS] + 2 * f]
                    if ints[meta[AT_PAIRS] + 2 * f + 1] == c and parent != k and output[parent] == 0:
                        gain += min(prefer[parent], 0.0)
                if gain > best:
                    best, child[k] = gain, c
                lacking = lacking and output[c] == 0
        way[k] = (0.0 if output[k] != 0 else prefer[k]) + (best if child[k] >= 0.0 and lacking else 0.0)
    for i in range(M):
        k = ints[meta[AT_ORDER] + i]
        if output[k] == 0 or child[k] < 0.0:
            continue
        lacking = True
        for e in range(E):
            if ints[meta[AT_PAIRS] + 2 * e] == k and output[ints[meta[AT_PAIRS] + 2 * e + 1]] != 0:
                lacking = False
        if lacking:
            output[np.int64(child[k])] = 1
    for i in range(M - 1, -1, -1):  # ancestors of what was added
        k = ints[meta[AT_ORDER] + i]
        for e in range(E):
            if ints[meta[AT_PAIRS] + 2 * e + 1] == k and output[k] != 0:
                output[ints[meta[AT_PAIRS] + 2 * e]] = 1


@kernel(PLANE_SIGNATURE)
def closure_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost`` among those closed under ancestors, for a cost that adds up.

    One cut; where outputs must end in leaves, a set that does, and the cut as its bound.
    """
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    prefer, way, child, room = rest[:M], rest[M : 2 * M], rest[2 * M : 3 * M], rest[3 * M :]
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    preferences(meta, ints, example, cost_weight, gain, cost, prefer)
    best_closure(meta, ints, prefer, output, iwork, room)
    bound = total_of(prefer, output)
    for k in range(M):  # the preferences count from the empty set
        if is_on(meta, ints, example, k):
            bound -= prefer[k]
    if meta[LEAVES_ONLY] != 0:
        add_leaves(meta, ints, prefer, output, way, child)
    as_flips(meta, ints, example, output)
    made = conclude(
        meta, ints, floats, example, cost_weight, MARGIN, emit, gain, cost, pair, output, index, value, result
    )  # fmt: skip
    if meta[LEAVES_ONLY] != 0:
        result[1] = max(result[1], bound)
    return made


@kernel(FILL_SIGNATURE)
def closure_max_marginals(meta, ints, floats, w, iwork, fwork, out):
    """Best score of closed sets with each label on minus the best with it off, (n, M). M + 1 cuts an example."""
    M, E = meta[mk.N_LABELS], meta[N_PAIRS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    prefer, room, output = rest[:M], rest[3 * M :], np.empty(M, np.int32)
    best = np.empty(M, np.int32)
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        preferences(meta, ints, example, 0.0, gain, cost, prefer)
        best_closure(meta, ints, prefer, best, iwork, room)
        top = total_of(prefer, best)
        size = 1.0
        for k in range(M):
            size += 2.0 * abs(prefer[k])
        for i in range(M):
            k = ints[meta[AT_ORDER] + i]
            own = prefer[k]
            prefer[k] = -size if best[k] != 0 else size
            best_closure(meta, ints, prefer, output, iwork, room)
            prefer[k] = own
            other = total_of(prefer, output)
            out[example, k] = top - other if best[k] != 0 else other - top
            for e in range(E):  # rounding breaks no hierarchy
                if ints[meta[AT_PAIRS] + 2 * e + 1] == k:
                    out[example, k] = min(out[example, k], out[example, ints[meta[AT_PAIRS] + 2 * e]])
