"""Best label sequence of a chain."""

from __future__ import annotations

import numpy as np

from maxmargin.kernel import kernel

__all__ = ["viterbi"]


@kernel("float64(float64[:, ::1], float64[:, :, ::1], int64[::1])", fast=False)
def viterbi(unary, transition, labels_out):
    """Write the best labeling of a chain and return its score.

    Formula: ``best[t, k] = unary[t, k] + max_j (best[t-1, j] + transition[t-1, j, k])``. No back-pointers are kept: the
    way back looks the maximising ``j`` up again, which costs O(TK) and leaves the loop forward a plain maximum.

    Ties: the smallest last label wins, then the smallest label before it, and so on to the first; that is the optimal
    labeling that comes first when sequences are compared from their last position backwards.

    Parameters
    ----------
    unary : float64 (T, K)
        Start and end scores, cost augmentation and -inf for forbidden labels already added.
    transition : float64 (S, K, K)
        S == 1 (the same at all positions) or S == T - 1; -inf forbids a pair.
    labels_out : int64 (T,)
        Receives the labels; all -1 when no labeling is feasible.

    Returns
    -------
    float
        The score, summed from left to right; -inf when no labeling is feasible; 0 when T == 0.

    Complexity: O(T K^2) time, O(T K) memory.

    References
    ----------
    Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
    """
    length, n_labels = unary.shape
    if length == 0:
        return 0.0
    moving = transition.shape[0] > 1
    best = np.empty((length, n_labels))
    for k in range(n_labels):
        best[0, k] = unary[0, k]
    for t in range(1, length):
        pairs = transition[t - 1 if moving else 0]
        left = best[t - 1]
        here = best[t]
        for k in range(n_labels):
            here[k] = -np.inf
        # Four previous labels at a time: a quarter of the loads and stores of ``here``, about half the time.
        whole = n_labels - n_labels % 4
        for j in range(0, whole, 4):
            s0, s1, s2, s3 = left[j], left[j + 1], left[j + 2], left[j + 3]
            r0, r1, r2, r3 = pairs[j], pairs[j + 1], pairs[j + 2], pairs[j + 3]
            for k in range(n_labels):
                a, b, c, d = s0 + r0[k], s1 + r1[k], s2 + r2[k], s3 + r3[k]
                a = a if a > b else b
                c = c if c > d else d
                a = a if a > c else c
                here[k] = a if a > here[k] else here[k]
        for j in range(whole, n_labels):
            score = left[j]
            row = pairs[j]
            for k in range(n_labels):
                a = score + row[k]
                here[k] = a if a > here[k] else here[k]
        for k in range(n_labels):
            here[k] += unary[t, k]

    label = -1
    top = -np.inf
    for k in range(n_labels):
        if best[length - 1, k] > top:
            top = best[length - 1, k]
            label = k
    if label < 0:
        labels_out[:] = -1
        return top
    labels_out[length - 1] = label
    for t in range(length - 1, 0, -1):
        pairs = transition[t - 1 if moving else 0]
        value = -np.inf
        came = 0
        for j in range(n_labels):
            candidate = best[t - 1, j] + pairs[j, label]
            if candidate > value:
                value = candidate
                came = j
        label = came
        labels_out[t - 1] = label
    return top
