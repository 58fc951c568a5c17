"""Viterbi on dense tables of a chain: unary (T, K), transition (1 or T - 1, K, K) by left and right label.

It is written in steps that the kernels of chain models share, and is a declared exception, see :func:`viterbi`: all
other recursions take chains as graphs (:mod:`maxmargin.inference.recursion_kernel`).
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.lanes_kernel import check_lanes, lanes, larger_sum, over_lanes, put_lanes


@register_jitable
def reach_from(score, row, best):
    """``best[k] = max(best[k], score + row[k])``."""
    for k in range(len(best)):
        a = score + row[k]
        best[k] = a if a > best[k] else best[k]


def _reached(width):
    def reached(k, before, arcs, S, best):
        check_lanes(best, k, width)
        check_lanes(arcs, (len(before) - 1) * S + k, width)
        most = lanes(best, k, width)
        for j in range(len(before)):
            most = larger_sum(most, before[j], lanes(arcs, j * S + k, width))
        put_lanes(best, k, most)

    return reached


_all_reached = over_lanes(_reached)


@register_jitable
def viterbi_step(before, now, pair, best):
    """``now[k] += max_j before[j] + pair[j, k]``."""
    K, S = pair.shape
    for k in range(S):
        best[k] = -np.inf
    _all_reached(S, before[:K], pair.reshape(K * S), S, best)
    for k in range(S):
        now[k] += best[k]


@register_jitable
def viterbi_last(column, K):
    """The best score of the last column and its label, -1 when none is allowed."""
    top, winner = -np.inf, -1
    for k in range(K):
        if column[k] > top:
            top, winner = column[k], k
    return top, winner


@register_jitable
def viterbi_left(before, pair, label):
    """The label from which ``label`` was reached."""
    reach, previous = -np.inf, 0
    for j in range(pair.shape[0]):
        v = before[j] + pair[j, label]
        if v > reach:
            reach, previous = v, j
    return previous


@kernel("float64(float64[:, ::1], float64[:, :, ::1], int64[::1])", fast=False)
def viterbi(unary, transition, labels_out):
    """Write the best labelling of a chain, all -1 when none is allowed, and return its score.

    It takes the maximum for all labels at once, which the compiler turns into vector instructions; a recursion over
    arcs cannot. Ties are broken as there.

    Complexity: O(T K^2) time, O(T K) memory. Viterbi (1967), Error bounds for convolutional codes and an
    asymptotically optimum decoding algorithm.
    """
    T, K = unary.shape
    if T == 0:
        return 0.0
    moving = transition.shape[0] > 1
    table, work = unary.copy(), np.empty(K)
    for t in range(1, T):
        viterbi_step(table[t - 1], table[t], transition[t - 1 if moving else 0], work)
    top, label = viterbi_last(table[T - 1], K)
    if label < 0:
        labels_out[:] = -1
        return top
    for t in range(T - 1, 0, -1):
        labels_out[t] = label
        label = viterbi_left(table[t - 1], transition[t - 1 if moving else 0], label)
    labels_out[0] = label
    return top
