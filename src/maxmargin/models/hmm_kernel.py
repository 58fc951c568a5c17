"""Compiled kernel of the hidden Markov model: max-product with a cost weight, plane.

Layout of the weights, all log-probabilities (K states, V symbols):

    initial K | transition K x K (from, to) | emission K x V
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.recursion_chain_kernel import viterbi_last, viterbi_left, viterbi_step
from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_SIGNATURE
from maxmargin.planes_kernel import exchange, finish, planes_of_runs

# positions in ``meta``
N_STATES, N_SYMBOLS, HAS_LABELS, TABLE_BITS = range(4)
AT_OFFSETS, AT_SYMBOLS, AT_LABELS, AT_COST, AT_SCALE, META_SIZE = range(4, 10)


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64, float64[::1])")
def hmm_table(meta, ints, floats, w, example, cost_weight, table):
    """Fill ``table`` (T x K, flat) with log-probabilities of initial state and symbols + cost_weight * cost.

    A symbol of -1 is missing and says nothing about the state.
    """
    K, V = meta[N_STATES], meta[N_SYMBOLS]
    first, last = ints[meta[AT_OFFSETS] + example], ints[meta[AT_OFFSETS] + example + 1]
    emission = K + K * K
    for t in range(first, last):
        at, symbol = (t - first) * K, ints[meta[AT_SYMBOLS] + t]
        for k in range(K):
            table[at + k] = w[k] if t == first else 0.0
        if symbol >= 0:
            for k in range(K):
                table[at + k] += w[emission + k * V + symbol]
        if cost_weight != 0.0 and meta[HAS_LABELS]:
            row = meta[AT_COST] + ints[meta[AT_LABELS] + t] * K
            scale = cost_weight * floats[meta[AT_SCALE] + example]
            for k in range(K):
                table[at + k] += scale * floats[row + k]


@kernel("float64(int64[::1], int32[::1], float64[::1], int64, int32[::1])")
def hmm_cost(meta, ints, floats, example, output):
    """Cost of an output."""
    K, labels = meta[N_STATES], meta[AT_LABELS]
    first, last = ints[meta[AT_OFFSETS] + example], ints[meta[AT_OFFSETS] + example + 1]
    cost = 0.0
    for t in range(first, last):
        cost += floats[meta[AT_COST] + ints[labels + t] * K + output[t - first]]
    return floats[meta[AT_SCALE] + example] * cost


@kernel("int64(int64[::1], int32[::1], float64[::1], int64, int32[::1], int32[::1], int32[::1], float64[::1])")
def hmm_psi(meta, ints, floats, example, output, iwork, index, value):
    """Counts of the truth minus counts of ``output`` into (index, value); returns the number of non-zeros."""
    K, V, bits, nnz = meta[N_STATES], meta[N_SYMBOLS], meta[TABLE_BITS], 0
    first, last = ints[meta[AT_OFFSETS] + example], ints[meta[AT_OFFSETS] + example + 1]
    labels, emission = meta[AT_LABELS] + first, K + K * K
    for t in range(last - first):
        true, found = np.int64(ints[labels + t]), np.int64(output[t])
        if true != found:
            symbol = np.int64(ints[meta[AT_SYMBOLS] + first + t])
            if symbol >= 0:
                at = emission + symbol
                nnz = exchange(iwork, bits, index, value, nnz, at + true * V, at + found * V, 1.0)
            if t == 0:
                nnz = exchange(iwork, bits, index, value, nnz, true, found, 1.0)
        if t > 0:
            left, wrong = np.int64(ints[labels + t - 1]), np.int64(output[t - 1])
            if left != wrong or true != found:
                nnz = exchange(iwork, bits, index, value, nnz, K + left * K + true, K + wrong * K + found, 1.0)
    return finish(iwork, bits, index, value, nnz)


@register_jitable
def hmm_truth(meta, ints, w, example):
    """Score of the true states."""
    K, V, first = meta[N_STATES], meta[N_SYMBOLS], ints[meta[AT_OFFSETS] + example]
    labels, truth = meta[AT_LABELS] + first, 0.0
    for t in range(ints[meta[AT_OFFSETS] + example + 1] - first):
        k, symbol = np.int64(ints[labels + t]), np.int64(ints[meta[AT_SYMBOLS] + first + t])
        truth += w[k] if t == 0 else w[K + ints[labels + t - 1] * K + k]
        if symbol >= 0:
            truth += w[K + K * K + k * V + symbol]
    return truth


@register_jitable
def hmm_planes(meta, ints, floats, example, emit, output, iwork, index, value, result):
    """The plane of an output, and those of its single runs of errors; ``result[:2]`` stays."""
    first = ints[meta[AT_OFFSETS] + example]
    labels, T = meta[AT_LABELS] + first, ints[meta[AT_OFFSETS] + example + 1] - first
    true, bits = ints[labels : labels + T], meta[TABLE_BITS]
    return planes_of_runs(
        hmm_cost, hmm_psi, meta, ints, floats, example, true, bits, emit, output, iwork, index, value, result
    )  # fmt: skip


@kernel(PLANE_SIGNATURE)
def hmm_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Max-product along the sequence, then the plane of the winner; planes of single runs of errors when asked for.

    Weights may be -inf; when that leaves no output the kernel returns -1. O(T K^2); scratch T K + K.
    """
    result[:4] = 0.0
    K, first = meta[N_STATES], ints[meta[AT_OFFSETS] + example]
    T = ints[meta[AT_OFFSETS] + example + 1] - first
    if T == 0:
        return min(emit, 1)
    table, work = fwork[: T * K], fwork[T * K : T * K + K]
    pair = w[K : K + K * K].reshape((K, K))
    hmm_table(meta, ints, floats, w, example, cost_weight, table)
    for t in range(1, T):
        viterbi_step(table[(t - 1) * K : t * K], table[t * K : (t + 1) * K], pair, work)
    top, winner = viterbi_last(table[(T - 1) * K :], K)
    if winner < 0:
        return -1
    for t in range(T - 1, 0, -1):
        output[t] = winner
        winner = viterbi_left(table[(t - 1) * K : t * K], pair, winner)
    output[0] = winner

    if not meta[HAS_LABELS]:
        result[:2] = top
        return 0
    result[:2] = top - hmm_truth(meta, ints, w, example)
    return hmm_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
