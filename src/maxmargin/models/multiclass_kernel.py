"""Compiled kernels of the multiclass model: scores, argmax with a cost weight, plane; other searches by enumeration.

Layout of the weights (S = labels padded to ``stride``, so that rows stay aligned):

    sparse features F x S | dense features D x S | intercept S
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.lanes_kernel import add_product, check_lanes, lanes, put_lanes
from maxmargin.models.signature import (
    ADD_SIGNATURE,
    FETCH_SIGNATURE,
    PLANE_SIGNATURE,
    SCORES_SIGNATURE,
    SEARCH_SIGNATURE,
)
from maxmargin.prefetch_kernel import prefetch

# positions in ``meta``
N_LABELS, STRIDE, N_DENSE, HAS_LABELS, HAS_INTERCEPT = range(5)
AT_ROWS, AT_COLUMNS, AT_LABELS = range(5, 8)
AT_VALUES, AT_DENSE, AT_COST, AT_SCALING = range(8, 12)
W_DENSE, W_INTERCEPT, META_SIZE = range(12, 15)
FIRST_PART = 32  # weights of a row that memory is asked for in advance


def _times(width):
    def times(values, columns, w, S, k, other, score):
        total, total_other = lanes(score, k, width), lanes(score, other, width)
        for c in range(len(columns)):
            at = columns[c] * S
            check_lanes(w, at + k, width)
            total = add_product(total, values[c], lanes(w, at + k, width))
            check_lanes(w, at + other, width)
            total_other = add_product(total_other, values[c], lanes(w, at + other, width))
        put_lanes(score, k, total)
        put_lanes(score, other, total_other)

    return times


def _add(width):
    def add(values, columns, change, S, k, other, w):
        step, step_other = lanes(change, k, width), lanes(change, other, width)
        for c in range(len(columns)):
            at = columns[c] * S
            check_lanes(w, at + k, width)
            check_lanes(w, at + other, width)
            row, row_other = lanes(w, at + k, width), lanes(w, at + other, width)
            put_lanes(w, at + k, add_product(row, values[c], step))
            put_lanes(w, at + other, add_product(row_other, values[c], step_other))

    return add


def _over_labels(loop):
    """A function that calls a loop over features for some labels after the other.

    A loop takes two groups of labels, so that neither waits for the sums of the other. They may overlap, since both are
    read before either is written: so the last few labels need one loop, whatever their number.
    """
    by_8, by_4, by_2, by_1 = (register_jitable(loop(width)) for width in (8, 4, 2, 1))

    @register_jitable
    def labels(values, columns, source, S, target):
        k = 0
        while S - k > 16:
            by_8(values, columns, source, S, k, k + 8, target)
            k += 16
        if S - k >= 8:
            by_8(values, columns, source, S, k, S - 8, target)
        elif S - k >= 4:
            by_4(values, columns, source, S, k, S - 4, target)
        elif S - k >= 2:
            by_2(values, columns, source, S, k, S - 2, target)
        elif S - k == 1:
            by_1(values, columns, source, S, k, k, target)

    return labels


_times_rows, _add_rows = _over_labels(_times), _over_labels(_add)


@kernel("void(float64[::1], int32[::1], float64[::1], int64, float64[::1])", borrows=True)
def sparse_times(values, columns, w, S, score):
    """``score[k] += sum_c values[c] w[columns[c], k]``, rows of weights of length S. O(nnz S)."""
    check_lanes(score, 0, S)
    _times_rows(values, columns, w, S, score)


@kernel("void(float64[::1], int32[::1], float64[::1], int64, float64[::1])", borrows=True)
def sparse_add(values, columns, change, S, w):
    """``w[columns[c], k] += values[c] change[k]``, rows of weights of length S. O(nnz S)."""
    check_lanes(change, 0, S)
    _add_rows(values, columns, change, S, w)


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64[::1])", borrows=True)
def multiclass_scores(meta, ints, floats, w, example, score):
    """Fill ``score`` (S,) with the scores of all labels. O(nnz S)."""
    K, S, D = meta[N_LABELS], meta[STRIDE], meta[N_DENSE]
    begin, end = np.int64(ints[meta[AT_ROWS] + example]), np.int64(ints[meta[AT_ROWS] + example + 1])
    columns, values = meta[AT_COLUMNS], meta[AT_VALUES]
    dense = floats[meta[AT_DENSE] + example * D : meta[AT_DENSE] + (example + 1) * D]
    scaling = floats[meta[AT_SCALING]]
    score[:] = 0.0
    sparse_times(floats[values + begin : values + end], ints[columns + begin : columns + end], w, S, score)
    for j in range(D):
        x, at = dense[j], meta[W_DENSE] + j * S
        if x != 0.0:
            row = w[at : at + S]
            for k in range(S):
                score[k] += x * row[k]
    if meta[HAS_INTERCEPT]:
        for k in range(K):
            score[k] += scaling * w[meta[W_INTERCEPT] + k]


@kernel("int64(int64[::1], int32[::1], float64[::1], int64, int64, int32[::1], float64[::1])", borrows=True)
def multiclass_psi(meta, ints, floats, example, found, index, value):
    """phi(x, y_i) - phi(x, found) into (index, value); returns the number of non-zeros. O(nnz)."""
    S, D = meta[STRIDE], meta[N_DENSE]
    true = np.int64(ints[meta[AT_LABELS] + example])
    if found == true:
        return np.int64(0)
    begin, end = np.int64(ints[meta[AT_ROWS] + example]), np.int64(ints[meta[AT_ROWS] + example + 1])
    columns, values, nnz = meta[AT_COLUMNS], meta[AT_VALUES], 0
    for c in range(begin, end):
        x, at = floats[values + c], ints[columns + c] * S
        index[nnz], value[nnz] = at + true, x
        index[nnz + 1], value[nnz + 1] = at + found, -x
        nnz += 2
    for j in range(D):
        x, at = floats[meta[AT_DENSE] + example * D + j], meta[W_DENSE] + j * S
        if x != 0.0:
            index[nnz], value[nnz] = at + true, x
            index[nnz + 1], value[nnz + 1] = at + found, -x
            nnz += 2
    if meta[HAS_INTERCEPT]:
        x = floats[meta[AT_SCALING]]
        index[nnz], value[nnz] = meta[W_INTERCEPT] + true, x
        index[nnz + 1], value[nnz + 1] = meta[W_INTERCEPT] + found, -x
        nnz += 2
    return nnz


@kernel(PLANE_SIGNATURE, borrows=True)
def multiclass_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The label of largest ``w . phi(x, y) + cost_weight * cost(y)``, smallest code among equals, and its plane.

    O(nnz S); scratch S.
    """
    K, score = meta[N_LABELS], fwork[: meta[STRIDE]]
    multiclass_scores(meta, ints, floats, w, example, score)
    has_labels = meta[HAS_LABELS]
    true = np.int64(ints[meta[AT_LABELS] + example]) if has_labels else np.int64(0)
    truth = score[true] if has_labels else 0.0
    cost = floats[meta[AT_COST] + true * K : meta[AT_COST] + (true + 1) * K]
    top, found = -np.inf, np.int64(0)
    for k in range(K):
        v = score[k] + cost_weight * cost[k] if has_labels else score[k]
        if v > top:
            top, found = v, k
    output[0] = found
    result[:2] = top - truth
    result[2] = cost[found] if has_labels else 0.0
    result[3] = 0.0
    if emit == 0 or not has_labels:
        return 0
    result[3] = multiclass_psi(meta, ints, floats, example, found, index, value)
    return 1


@kernel(SEARCH_SIGNATURE, borrows=True)
def multiclass_search(
    plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
):  # fmt: skip
    """The label of largest ``scale(y) (cost_weight - w . psi(y))`` among those that cost something, by enumeration.

    The number behind ``floats`` where the last entry of ``meta`` points is the power p of ``scale = cost^p``: 1 for
    slack rescaling, 1/2 for square-root slacks, 0 for the best wrong label. O(nnz S); scratch S.
    """
    if cost_weight <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    K, score = meta[N_LABELS], fwork[: meta[STRIDE]]
    multiclass_scores(meta, ints, floats, w, example, score)
    true, power = np.int64(ints[meta[AT_LABELS] + example]), floats[meta[len(meta) - 1]]
    cost = floats[meta[AT_COST] + true * K : meta[AT_COST] + (true + 1) * K]
    top, found = 0.0, true
    for k in range(K):
        if cost[k] > 0.0:
            scale = cost[k] if power == 1.0 else cost[k] ** power
            v = scale * (cost_weight - (score[true] - score[k]))
            if v > top:
                top, found = v, k
    output[0] = found
    result[0], result[1], result[2], result[3] = top, top, cost[found], 0.0
    if emit == 0:
        return 0
    result[3] = multiclass_psi(meta, ints, floats, example, found, index, value)
    return 1


@kernel(SCORES_SIGNATURE, borrows=True)
def label_scores(meta, ints, floats, w, example, score, cost):
    """Scores (S,) and costs (K,) of all labels; returns the true one. O(nnz S)."""
    multiclass_scores(meta, ints, floats, w, example, score)
    K, true = meta[N_LABELS], np.int64(ints[meta[AT_LABELS] + example])
    for k in range(K):
        cost[k] = floats[meta[AT_COST] + true * K + k]
    return true


@kernel(FETCH_SIGNATURE, borrows=True)
def label_fetch(meta, ints, floats, w, near, far):
    """Ask memory for what :func:`label_scores` will read: the weights of example ``near``, the features of ``far``.

    To know where the weights are, the features must be there already. Of long rows the first part is asked for: the
    processor itself asks for what follows. O(nnz).
    """
    S, rows, columns, values = meta[STRIDE], meta[AT_ROWS], meta[AT_COLUMNS], meta[AT_VALUES]
    for c in range(columns + ints[rows + near], columns + ints[rows + near + 1]):
        prefetch(w, ints[c] * S, ints[c] * S + min(S, FIRST_PART))
    begin, end = np.int64(ints[rows + far]), np.int64(ints[rows + far + 1])
    prefetch(ints, meta[AT_LABELS] + far, meta[AT_LABELS] + far + 1)
    prefetch(ints, columns + begin, columns + end)
    prefetch(floats, values + begin, values + end)


@kernel(ADD_SIGNATURE, borrows=True)
def label_add(meta, ints, floats, example, change, w):
    """Add ``change[y] x`` to the weights of each label y; ``change`` (S,) is 0 behind the labels. O(nnz S)."""
    S, D = meta[STRIDE], meta[N_DENSE]
    begin, end = np.int64(ints[meta[AT_ROWS] + example]), np.int64(ints[meta[AT_ROWS] + example + 1])
    columns, values = meta[AT_COLUMNS], meta[AT_VALUES]
    sparse_add(floats[values + begin : values + end], ints[columns + begin : columns + end], change, S, w)
    for j in range(D):
        x, at = floats[meta[AT_DENSE] + example * D + j], meta[W_DENSE] + j * S
        if x != 0.0:
            row = w[at : at + S]
            for k in range(S):
                row[k] += x * change[k]
    if meta[HAS_INTERCEPT]:
        for k in range(meta[N_LABELS]):
            w[meta[W_INTERCEPT] + k] += floats[meta[AT_SCALING]] * change[k]
