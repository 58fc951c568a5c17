"""Compiled branch and bound over the labellings of a pairwise graph, with tree-reweighted messages for the bounds."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.inference.graph_kernel import total_score, trws
from maxmargin.kernel import kernel

_i8, _f8 = types.int64, types.float64
_i4s, _f8s = types.int32[::1], types.float64[::1]

# what is kept of a part: the part it was taken from, the node and the label that tell it apart, whether that label is
# the only one or the only one missing, its bound (-inf once it is split), where to split it (-1: nowhere)
PARENT, NODE, LABEL, ONLY, BOUND, NEXT_NODE, NEXT_LABEL, SIZE = range(8)

BRANCH_PASSES = 20  # of messages for a part
PATIENCE = 20  # parts after which a search must be on the way to close the gap
CLOSED = 1e-10  # relative


def scratch_size(n: int, m: int, K: int, branches: int) -> int:
    """Scratch of :func:`branch_and_bound`."""
    return (4 * m + 2) * K + n * K + max(branches, 1) * SIZE


@register_jitable
def largest_score(K, begin, unary, pair):
    """More than any label of a node can gain or lose."""
    top, tie, degree = 0.0, 0.0, 0
    for c in range(len(unary)):
        top = max(top, abs(unary[c]))
    for c in range(len(pair) // 2):
        tie = max(tie, abs(pair[c]))
    for p in range(len(begin) - 1):
        degree = max(degree, begin[p + 1] - begin[p])
    return 1.0 + 2.0 * (top + degree * tie)


@register_jitable
def choose_split(n, K, m, edges, begin, ends, unary, restricted, message, part, belief):
    """Where the two best labels of a node are closest, and the better one."""
    part[NEXT_NODE], part[NEXT_LABEL] = -1.0, 0.0
    least = np.inf
    for p in range(n):
        belief[:] = restricted[p * K : (p + 1) * K]
        for a in range(begin[p], begin[p + 1]):
            end = np.int64(ends[a])
            for k in range(K):
                belief[k] += message[end * K + k]
        first, second, found, free = -np.inf, -np.inf, 0, 0
        for k in range(K):
            if restricted[p * K + k] < unary[p * K + k]:
                continue
            free += 1
            if belief[k] > first:
                first, second, found = belief[k], first, k
            elif belief[k] > second:
                second = belief[k]
        if free > 1 and first - second < least:
            least = first - second
            part[NEXT_NODE], part[NEXT_LABEL] = p, found


@kernel(types.Tuple((_f8, _f8, _i8))(_i8, _i8, _i4s, _i4s, _i4s, _f8s, _f8s, _i8, _i8, _f8, _i4s, _f8s))
def branch_and_bound(n, K, edges, begin, ends, unary, pair, passes, branches, known, labels, fwork):
    """The best labelling found, its score, an upper bound of all scores, and the number of parts looked at.

    The part of largest bound is split: into the labellings where one node has one label, and those where it has not, at
    the node whose two best labels are closest. Every part gets a labelling and a bound by messages, which start from
    those of the whole. The search ends when no part can beat the best labelling (or ``known``, another known score),
    after ``branches`` parts, or when at this rate those will not be enough.

    Complexity: O(branches m K^2) at most. ``labels`` (3 n) has the answer first; scratch as ``scratch_size`` says. Sun,
    Telaprolu, Lee, Savarese (2012), Efficient and exact MAP-MRF inference using branch and bound.
    """
    m = len(edges) // 2
    work, settled = fwork[: (2 * m + 2) * K], fwork[(2 * m + 2) * K : (4 * m + 2) * K]
    restricted = fwork[(4 * m + 2) * K : (4 * m + 2) * K + n * K]
    parts = fwork[(4 * m + 2) * K + n * K :][: max(branches, 1) * SIZE].reshape(max(branches, 1), SIZE)
    message, belief = work[: 2 * m * K], work[2 * m * K : (2 * m + 1) * K]
    value, bound = trws(n, K, edges, begin, ends, unary, pair, passes, known, True, labels[n : 3 * n], work)
    labels[:n] = labels[n : 2 * n]
    first = bound - max(value, known)
    if branches <= 2 or first <= CLOSED * max(1.0, abs(bound)):
        return value, bound, 1
    parts[0, PARENT], parts[0, BOUND] = -1.0, bound
    choose_split(n, K, m, edges, begin, ends, unary, unary, message, parts[0], belief)
    settled[:] = message
    penalty = largest_score(K, begin, unary[: n * K], pair)
    count = 1
    while True:
        chosen = 0
        for j in range(1, count):
            if parts[j, BOUND] > parts[chosen, BOUND]:
                chosen = j
        bound = parts[chosen, BOUND]
        gap = bound - max(value, known)
        stuck = count > PATIENCE and gap > (1.0 - count / branches) * first
        split = np.int64(parts[chosen, NEXT_NODE])
        if gap <= CLOSED * max(1.0, abs(bound)) or stuck or count + 2 > branches or split < 0:
            return value, max(bound, value), count
        for only in range(2):
            part = parts[count]
            part[PARENT], part[NODE], part[ONLY] = chosen, split, only
            part[LABEL] = parts[chosen, NEXT_LABEL]
            restricted[:] = unary[: n * K]
            j = count
            while j > 0:
                p, k = np.int64(parts[j, NODE]), np.int64(parts[j, LABEL])
                for i in range(K):
                    if (i == k) != (parts[j, ONLY] == 1.0):
                        restricted[p * K + i] = unary[p * K + i] - penalty
                j = np.int64(parts[j, PARENT])
            best, few = max(value, known), min(passes, BRANCH_PASSES)
            message[:] = settled
            _, limit = trws(n, K, edges, begin, ends, restricted, pair, few, best, False, labels[n : 3 * n], work)
            part[BOUND] = min(limit, bound)
            choose_split(n, K, m, edges, begin, ends, unary, restricted, message, part, belief)
            score = total_score(n, K, edges, unary, pair, labels[n : 2 * n])
            if score > value:
                value = score
                labels[:n] = labels[n : 2 * n]
            count += 1
        parts[chosen, BOUND] = -np.inf
