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
    occur: where pairs of features and labels are row-compressed, each entry becomes a feature of its own. The score of
    a sequence is NaN where any score of a label or of two neighbours is. ``meta`` has the sizes of the layout.
    ``values`` are empty when all are 1, as are dense and edge features where there are none, and ``masks`` where
    nothing is forbidden.

    Complexity: O(entries and their pairs + K S) beside the argmax, whatever the number of features.
    """
    n, N, nnz = len(offsets) - 1, len(indptr) - 1, len(indices)
    K, S, observed, constrained = meta[ck.N_LABELS], meta[ck.STRIDE], meta[ck.OBSERVED], meta[ck.CONSTRAINED]
    pairs = 0
    if observed:
        for f in indices:
            pairs += pair_rows[f + 1] - pair_rows[f] if f >= 0 else 0
    own = meta.copy()
    own[ck.BINARY] = len(values) == 0
    own[ck.AT_ROWS] = n + 1
    own[ck.AT_COLUMNS] = own[ck.AT_ROWS] + N + 1
    own[ck.AT_PAIR_ROWS] = own[ck.AT_COLUMNS] + nnz
    own[ck.AT_PAIR_LABELS] = own[ck.AT_PAIR_ROWS] + (nnz + 1 if observed else 0)
    own[ck.AT_FIXED] = own[ck.AT_PAIR_LABELS] + pairs
    own[ck.AT_EDGE_ROWS] = own[ck.AT_FIXED] + (N if constrained else 0)
    own[ck.AT_EDGE_COLUMNS] = own[ck.AT_EDGE_ROWS] + len(edge_rows)
    ints = np.empty(own[ck.AT_EDGE_COLUMNS] + len(edge_columns), np.int32)
    ints[: n + 1] = offsets
    ints[own[ck.AT_FIXED] : own[ck.AT_EDGE_ROWS]] = -1
    ints[own[ck.AT_EDGE_ROWS] : own[ck.AT_EDGE_COLUMNS]] = edge_rows
    ints[own[ck.AT_EDGE_COLUMNS] :] = edge_columns
    numbers = np.empty(len(values))
    if observed:
        behind = w[meta[ck.W_DENSE] :]
        weights = np.empty(pairs + len(behind))
        weights[pairs:] = behind
        own[ck.W_DENSE : ck.W_EDGE + 1] += pairs - meta[ck.W_DENSE]
    else:
        weights = w
    rows, columns = ints[own[ck.AT_ROWS] :], ints[own[ck.AT_COLUMNS] :]
    own_rows, own_labels = ints[own[ck.AT_PAIR_ROWS] :], ints[own[ck.AT_PAIR_LABELS] :]
    entry, pair = 0, 0
    rows[0] = 0
    for t in range(N):
        for c in range(indptr[t], indptr[t + 1]):
            f = indices[c]
            if f < 0:
                continue
            columns[entry] = entry if observed else f
            if len(values):
                numbers[entry] = values[c]
            if observed:
                own_rows[entry] = pair
                for p in range(pair_rows[f], pair_rows[f + 1]):
                    own_labels[pair], weights[pair] = pair_labels[p], w[p]
                    pair += 1
            entry += 1
        rows[t + 1] = entry
    if observed:
        own_rows[entry] = pair
    own[ck.AT_DENSE] = len(values)
    own[ck.AT_EDGE_VALUES] = own[ck.AT_DENSE] + len(dense)
    own[ck.AT_MASK] = own[ck.AT_EDGE_VALUES] + len(edge_values)
    own[ck.AT_START_MASK] = own[ck.AT_MASK] + K * K
    own[ck.AT_END_MASK] = own[ck.AT_START_MASK] + K
    floats = np.concatenate((numbers, dense, edge_values, masks))

    longest = np.int64(1)
    for i in range(n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    none, index, result = np.empty(0), np.empty(0, np.int32), np.zeros(4)
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
