"""Compiled decoding of a few sequences with sparse features."""

from __future__ import annotations

import numpy as np

from maxmargin.kernel import kernel
from maxmargin.models import chain_kernel as ck


@kernel("boolean(float64[::1])", borrows=True)
def has_nan(numbers):
    """Whether a number is NaN."""
    count = 0
    for x in numbers:
        count += x != x
    return count > 0


@kernel(
    "int64(int64[::1], int64[::1], int64[::1], int32[::1], float64[::1], float64[::1], int64[::1], int32[::1], "
    "float64[::1], int32[::1], int32[::1], float64[::1], float64[::1], int32[::1], float64[::1])"
)
def decode_few(
    meta, offsets, indptr, indices, values, dense, edge_rows, edge_columns, edge_values, pair_rows, pair_labels, masks,
    w, outputs, scores,
):  # fmt: skip
    """Write the best labels of all tokens and their scores; returns -1, or the first sequence that allows no output.

    The arrays of :func:`~maxmargin.models.chain_kernel.chain_plane` are made here, without the features that do not
    occur: where pairs of features and labels are row-compressed, each token becomes one feature, whose weights are the
    scores of its labels. The score of a sequence is NaN where any score of a label or of two neighbours is. ``meta``
    has the sizes of the layout. ``values`` are empty when all are 1, as are dense and edge features where there are
    none, and ``masks`` where nothing is forbidden.

    Complexity: O(entries and their pairs + K S) beside the argmax, whatever the number of features.
    """
    n, N, observed, constrained = len(offsets) - 1, len(indptr) - 1, meta[ck.OBSERVED], meta[ck.CONSTRAINED]
    K, S, binary = meta[ck.N_LABELS], meta[ck.STRIDE], len(values) == 0
    own = meta.copy()
    own[ck.OBSERVED], own[ck.BINARY] = 0, binary or observed
    own[ck.AT_ROWS] = n + 1
    own[ck.AT_COLUMNS] = own[ck.AT_ROWS] + N + 1
    own[ck.AT_FIXED] = own[ck.AT_COLUMNS] + (N if observed else len(indices))
    own[ck.AT_EDGE_ROWS] = own[ck.AT_FIXED] + (N if constrained else 0)
    own[ck.AT_EDGE_COLUMNS] = own[ck.AT_EDGE_ROWS] + len(edge_rows)
    ints = np.empty(own[ck.AT_EDGE_COLUMNS] + len(edge_columns), np.int32)
    ints[: n + 1] = offsets
    ints[own[ck.AT_FIXED] : own[ck.AT_EDGE_ROWS]] = -1
    ints[own[ck.AT_EDGE_ROWS] : own[ck.AT_EDGE_COLUMNS]] = edge_rows
    ints[own[ck.AT_EDGE_COLUMNS] :] = edge_columns
    rows, columns = ints[own[ck.AT_ROWS] :], ints[own[ck.AT_COLUMNS] :]
    numbers, weights, entry = np.empty(0 if observed else len(values)), w, 0
    rows[0] = 0
    if observed:
        behind = w[meta[ck.W_DENSE] :]
        weights = np.zeros(N * S + len(behind))
        weights[N * S :] = behind
        own[ck.W_DENSE : ck.W_EDGE + 1] += N * S - meta[ck.W_DENSE]
    for t in range(N):
        row = weights[t * S : t * S + S]
        for c in range(indptr[t], indptr[t + 1]):
            f = indices[c]
            if f < 0:
                continue
            x = 1.0 if binary else values[c]
            if observed:
                for p in range(pair_rows[f], pair_rows[f + 1]):
                    row[pair_labels[p]] += x * w[p]
                continue
            columns[entry] = f
            if not binary:
                numbers[entry] = x
            entry += 1
        if observed:
            columns[t], entry = t, t + 1
        rows[t + 1] = entry
    own[ck.AT_DENSE] = len(numbers)
    own[ck.AT_EDGE_VALUES] = own[ck.AT_DENSE] + len(dense)
    own[ck.AT_MASK] = own[ck.AT_EDGE_VALUES] + len(edge_values)
    own[ck.AT_START_MASK] = own[ck.AT_MASK] + K * K
    own[ck.AT_END_MASK] = own[ck.AT_START_MASK] + K
    floats = np.concatenate((numbers, dense, edge_values, masks))

    longest = np.int64(1)
    for i in range(n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    none, index, result = np.empty(0), np.empty(0, np.int32), np.zeros(5)
    fwork = np.empty(longest * S + K * S + 2 * S)
    arcs = own[ck.W_TRANSITION]
    doubtful = has_nan(weights[arcs : arcs + K * S])
    for i in range(n):
        output = outputs[offsets[i] : offsets[i + 1]]
        if ck.chain_plane(own, ints, floats, weights, i, 0.0, 0, index, fwork, output, index, none, result) < 0:
            return i
        scores[i] = result[0]
        if doubtful or has_nan(fwork[: len(output) * S]):  # one that does not win is not seen in the score
            scores[i] = np.nan
    return -1
