"""Viterbi on dense tables of a chain: unary (T, K), transition (1 or T - 1, K, K) by left and right label.

It is written in steps that the kernels of chain models share, and is a declared exception, see :func:`viterbi`: all
other recursions take chains as graphs (:mod:`maxmargin.inference.recursion_kernel`).
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel


@register_jitable
def reach_from(score, row, best):
    """``best[k] = max(best[k], score + row[k])``."""
    for k in range(len(best)):
        a = score + row[k]
        best[k] = a if a > best[k] else best[k]


@register_jitable
def viterbi_step(before, now, pair, best):
    """``now[k] += max_j before[j] + pair[j, k]``. Four rows at a time save loads and stores of ``best``."""
    K, S = pair.shape
    for k in range(S):
        best[k] = -np.inf
    whole = K - K % 4
    for j in range(0, whole, 4):
        s0, s1, s2, s3 = before[j], before[j + 1], before[j + 2], before[j + 3]
        r0, r1, r2, r3 = pair[j], pair[j + 1], pair[j + 2], pair[j + 3]
        for k in range(S):
            a, b, c, d = s0 + r0[k], s1 + r1[k], s2 + r2[k], s3 + r3[k]
            a = a if a > b else b
            c = c if c > d else d
            a = a if a > c else c
            best[k] = a if a > best[k] else best[k]
    for j in range(whole, K):
        reach_from(before[j], pair[j], best)
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
