"""Compiled kernels of labels in trees: the best set closed under ancestors, max-marginals, the best by cost.

A label can be on only where its parent is. In each tree what is best below a label depends on that label alone:

    value_k = prefer_k + sum of the positive values of its children             (prefer_k: what being on gains over off)

and with outputs that end in leaves, the largest value of a child where none is positive. Sets are compared with the
truth in flips, as in :mod:`maxmargin.models.label_set_kernel`, whose functions these kernels share.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.label_set_kernel import (
    AT_ORDER,
    AT_PARENT,
    MARGIN,
    conclude,
    flip_scores,
    is_on,
    parted,
)
from maxmargin.models.label_set_kernel import META_SIZE as PLAIN_META_SIZE
from maxmargin.models.multiclass_kernel import multiclass_scores
from maxmargin.models.signature import EXCESS_SIGNATURE, PLANE_SIGNATURE, RETREAT_SIGNATURE, SCORES_SIGNATURE

# positions in ``meta`` behind those of the label-set kernels
LEAVES_ONLY, AT_UNITS, UNIT, N_LISTED, AT_LISTED, AT_MEMBERS = range(PLAIN_META_SIZE, PLAIN_META_SIZE + 6)
N_PAIRS, AT_PAIRS, AT_ARCS, META_SIZE = range(PLAIN_META_SIZE + 6, PLAIN_META_SIZE + 10)
_ARRAYS = "int64[::1], int32[::1], float64[::1], float64[::1]"
FILL_SIGNATURE = f"void({_ARRAYS}, int32[::1], float64[::1], float64[:, ::1])"  # of functions that fill max-marginals


@register_jitable
def preferences(meta, ints, example, lam, gain, cost, prefer):
    """What each label gains by being on instead of off, at cost weight lam, into ``prefer`` (M,)."""
    for k in range(meta[mk.N_LABELS]):
        v = gain[k] + lam * cost[k]
        prefer[k] = -v if is_on(meta, ints, example, k) else v


@register_jitable
def as_flips(meta, ints, example, output):
    """Turn the labels that are on into flips of the true set, in place."""
    for k in range(meta[mk.N_LABELS]):
        if is_on(meta, ints, example, k):
            output[k] = 1 - output[k]


@register_jitable
def climb(meta, ints, value, below, best, child):
    """From the leaves to the roots: ``value`` (M,) comes with what labels gain alone, and leaves with all below.

    ``below`` is the sum of the positive values of the children of each label, ``child`` the one of the largest value,
    ``best`` that value.
    """
    M = meta[mk.N_LABELS]
    below[:M], best[:M], child[:M] = 0.0, -np.inf, -1.0
    for i in range(M - 1, -1, -1):
        k = ints[meta[AT_ORDER] + i]
        parent = ints[meta[AT_PARENT] + k]
        value[k] += best[k] if forced(meta, below, child, k) else below[k]
        if parent >= 0:
            below[parent] += max(value[k], 0.0)
            if value[k] > best[parent]:
                best[parent], child[parent] = value[k], k


@register_jitable
def forced(meta, below, child, k):
    """Whether a label needs one of its children, though none is worth it."""
    return meta[LEAVES_ONLY] != 0 and child[k] >= 0.0 and below[k] <= 0.0


@kernel(PLANE_SIGNATURE, borrows=True)
def tree_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost`` for labels in trees and a cost that adds up. O(nnz S + M)."""
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    total, below, best, child = rest[:M], rest[M : 2 * M], rest[2 * M : 3 * M], rest[3 * M : 4 * M]
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    preferences(meta, ints, example, cost_weight, gain, cost, total)
    climb(meta, ints, total, below, best, child)
    for i in range(M):
        k = ints[meta[AT_ORDER] + i]
        parent = ints[meta[AT_PARENT] + k]
        on = total[k] > 0.0
        if parent >= 0:
            on = output[parent] != 0 and (on or (forced(meta, below, child, parent) and child[parent] == k))
        output[k] = 1 if on else 0
    as_flips(meta, ints, example, output)
    return conclude(
        meta, ints, floats, example, cost_weight, MARGIN, emit, gain, cost, pair, output, index, value, result
    )  # fmt: skip


@kernel(FILL_SIGNATURE, borrows=True)
def tree_max_marginals(meta, ints, floats, w, iwork, fwork, out):
    """Best score with each label on minus the best with it off, (n, M), by a pass up and one down. O(nnz S + M).

    ``outer_k`` is the most that all but the tree below k can gain when k is on, ``off_k`` the most without k. What the
    other children of its parent add differs where they are forced: without k one of them must be on.
    """
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    total, below, best, child = rest[:M], rest[M : 2 * M], rest[2 * M : 3 * M], rest[3 * M : 4 * M]
    outer, off, second, worth = rest[4 * M : 5 * M], rest[5 * M : 6 * M], rest[6 * M : 7 * M], rest[7 * M : 8 * M]
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        preferences(meta, ints, example, 0.0, gain, cost, total)
        climb(meta, ints, total, below, best, child)
        second[:M], worth[:M], whole = -np.inf, 0.0, 0.0  # the largest value of another child; children worth having
        for k in range(M):
            parent = ints[meta[AT_PARENT] + k]
            if parent < 0:
                whole += max(total[k], 0.0)
            else:
                worth[parent] += total[k] > 0.0
                if child[parent] != k:
                    second[parent] = max(second[parent], total[k])
        for i in range(M):
            k = ints[meta[AT_ORDER] + i]
            parent, own = ints[meta[AT_PARENT] + k], max(total[k], 0.0)
            if parent < 0:
                outer[k] = off[k] = whole - own
                out[example, k] = total[k]
                continue
            alone = outer[parent] + total[parent]  # less what its children add, which is their sum or the best of them
            alone -= best[parent] if forced(meta, below, child, parent) else below[parent]
            outer[k] = alone + (below[parent] - own)
            without = below[parent] - own
            if meta[LEAVES_ONLY] != 0 and worth[parent] - (total[k] > 0.0) == 0.0:
                without = second[parent] if child[parent] == k else best[parent]
            off[k] = max(off[parent], alone + without)
            out[example, k] = min(outer[k] + total[k] - off[k], out[example, parent])  # rounding breaks no hierarchy


@kernel(SCORES_SIGNATURE, borrows=True)
def set_scores(meta, ints, floats, w, example, score, cost):
    """Scores (S,) of all labels, and what each adds to the cost by being on (M,). O(nnz S)."""
    multiclass_scores(meta, ints, floats, w, example, score)
    for k in range(meta[mk.N_LABELS]):
        on = is_on(meta, ints, example, k)
        paid = floats[meta[mk.AT_COST] + 2 * k + on]
        cost[k] = -paid if on else paid
    return 0


@kernel(EXCESS_SIGNATURE, borrows=True)
def tree_excess(meta, ints, floats, example, r, work):
    """The most that a closed set gains over the true one, for labels that gain r (M,) each. O(M)."""
    M = meta[mk.N_LABELS]
    value, below, best, child = work[:M], work[M : 2 * M], work[2 * M : 3 * M], work[3 * M : 4 * M]
    total = 0.0
    for k in range(M):
        value[k] = r[k]
        if is_on(meta, ints, example, k):
            total -= r[k]
    climb(meta, ints, value, below, best, child)
    for k in range(M):
        if ints[meta[AT_PARENT] + k] < 0:
            total += max(value[k], 0.0)
    return total


@kernel(RETREAT_SIGNATURE, borrows=True)
def tree_retreat(meta, ints, floats, example, v, work):
    """t minus the nearest point of the hull of closed sets to t + v, in place of v (M,).

    The hull has ``0 <= y_k <= y_parent <= 1``, so this is isotonic regression on a tree, cut off at 0 and 1: from the
    leaves up, a label and the blocks below it join as long as the largest mean below is above its own. O(M) where few
    join. Pardalos, Xue 1999, Algorithms for a class of isotonic regression problems.
    """
    M = meta[mk.N_LABELS]
    total, count, first, following = work[:M], work[M : 2 * M], work[2 * M : 3 * M], work[3 * M : 4 * M]
    joined = work[4 * M : 5 * M]
    for k in range(M):
        total[k] = v[k] + (1.0 if is_on(meta, ints, example, k) else 0.0)
        count[k], first[k], following[k], joined[k] = 1.0, -1.0, -1.0, -1.0
    for i in range(M - 1, -1, -1):
        k = ints[meta[AT_ORDER] + i]
        while first[k] >= 0.0:
            best, best_before, before, c = -1, -1, -1, np.int64(first[k])
            while c >= 0:
                if best < 0 or total[c] * count[best] > total[best] * count[c]:
                    best, best_before = c, before
                before, c = c, np.int64(following[c])
            if total[best] * count[k] <= total[k] * count[best]:
                break
            if best_before < 0:
                first[k] = following[best]
            else:
                following[best_before] = following[best]
            c = np.int64(first[best])  # what is below it is now below k
            while c >= 0:
                after = np.int64(following[c])
                following[c], first[k] = first[k], c
                c = after
            total[k] += total[best]
            count[k] += count[best]
            joined[best] = k
        parent = ints[meta[AT_PARENT] + k]
        if parent >= 0:
            following[k], first[parent] = first[parent], k
    for i in range(M):
        k = ints[meta[AT_ORDER] + i]
        if joined[k] >= 0.0:
            total[k] = total[np.int64(joined[k])]
        else:
            total[k] = min(max(total[k] / count[k], 0.0), 1.0)
        v[k] = (1.0 if is_on(meta, ints, example, k) else 0.0) - total[k]
