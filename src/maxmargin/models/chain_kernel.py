"""Compiled kernels of the chain model: score table, argmax with a cost weight, plane.

Layout of the weights (S = labels padded to ``stride``, so that rows stay aligned):

    sparse emissions | dense emissions D x S | transitions K x S | start S | end S | edge features P x K x S

Sparse emissions are F x S rows (``weights="all"``) or row-compressed pairs (``weights="observed"``).
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.recursion_chain_kernel import reach_from, viterbi_last, viterbi_left, viterbi_step
from maxmargin.kernel import kernel
from maxmargin.lanes_kernel import add_product, check_lanes, lanes, over_lanes, put_lanes
from maxmargin.models.signature import PLANE_SIGNATURE
from maxmargin.planes_kernel import accumulate, exchange, finish, planes_of_runs
from maxmargin.prefetch_kernel import prefetch

# positions in ``meta``
N_LABELS, STRIDE, N_SPARSE, N_DENSE, N_EDGE, BINARY, OBSERVED, HAS_LABELS, HAS_ENDS = range(9)
AT_TOKENS, AT_ROWS, AT_COLUMNS, AT_LABELS, AT_FIXED = range(9, 14)
AT_EDGE_ROWS, AT_EDGE_COLUMNS, AT_PAIR_ROWS, AT_PAIR_LABELS = range(14, 18)
AT_VALUES, AT_DENSE, AT_COST, AT_TOKEN_WEIGHT, AT_MASK, AT_START_MASK, AT_END_MASK, AT_EDGE_VALUES = range(18, 26)
W_DENSE, W_TRANSITION, W_START, W_END, W_EDGE = range(26, 31)
TABLE_BITS, CONSTRAINED, META_SIZE = range(31, 34)
PRUNE_FROM = 32  # labels
FETCHED_AHEAD = 20  # features ahead of those at hand whose weights are asked for


def _rows(width):
    def rows(k, w, features, floats, values, binary, S, row):
        total = lanes(row, k, width)
        for c in range(len(features)):
            x, at = 1.0 if binary else floats[values + c], features[c] * np.int64(S) + k
            check_lanes(w, at, width)
            total = add_product(total, x, lanes(w, at, width))
        put_lanes(row, k, total)

    return rows


_add_rows = over_lanes(_rows)  # rows of weights of some features are added to a row of scores, as many labels at once


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64, float64[::1])", borrows=True)
def score_table(meta, ints, floats, w, example, cost_weight, table):
    """Fill ``table`` (T x S, flat) with emission + start + end scores + cost_weight * cost; -inf where forbidden."""
    K, S = meta[N_LABELS], meta[STRIDE]
    first, last = ints[meta[AT_TOKENS] + example], ints[meta[AT_TOKENS] + example + 1]
    rows, columns = meta[AT_ROWS], meta[AT_COLUMNS]
    final = columns + ints[rows + last]
    for t in range(first, last):
        at = (t - first) * S
        row = table[at : at + S]
        row[:] = 0.0
        begin, end = columns + ints[rows + t], columns + ints[rows + t + 1]
        if meta[OBSERVED]:
            pairs, pair_labels = meta[AT_PAIR_ROWS], meta[AT_PAIR_LABELS]
            for c in range(begin, end):
                f = ints[c]
                x = 1.0 if meta[BINARY] else floats[meta[AT_VALUES] + c - columns]
                for p in range(ints[pairs + f], ints[pairs + f + 1]):
                    row[ints[pair_labels + p]] += x * w[p]
        else:
            for ahead in range(begin + FETCHED_AHEAD, min(end + FETCHED_AHEAD, final)):
                at = ints[ahead] * np.int64(S)
                prefetch(w, at, at + S)
            _add_rows(S, w, ints[begin:end], floats, meta[AT_VALUES] + begin - columns, meta[BINARY], S, row)
        D = meta[N_DENSE]
        for j in range(D):
            x = floats[meta[AT_DENSE] + t * D + j]
            if x != 0.0:
                w0 = w[meta[W_DENSE] + j * S : meta[W_DENSE] + j * S + S]
                for k in range(S):
                    row[k] += x * w0[k]
        if cost_weight != 0.0 and meta[HAS_LABELS]:
            scale = cost_weight * floats[meta[AT_TOKEN_WEIGHT] + t]
            begin = meta[AT_COST] + ints[meta[AT_LABELS] + t] * K
            cost = floats[begin : begin + K]
            for k in range(K):
                row[k] += scale * cost[k]
        if meta[CONSTRAINED]:
            fixed = ints[meta[AT_FIXED] + t]
            if fixed >= 0:
                for k in range(K):
                    if k != fixed:
                        row[k] = -np.inf
        row[K:] = -np.inf
    if last > first:
        if meta[HAS_ENDS]:
            for k in range(K):
                table[k] += w[meta[W_START] + k]
                table[(last - first - 1) * S + k] += w[meta[W_END] + k]
        if meta[CONSTRAINED]:
            for k in range(K):
                table[k] += floats[meta[AT_START_MASK] + k]
                table[(last - first - 1) * S + k] += floats[meta[AT_END_MASK] + k]


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64[::1])", borrows=True)
def pair_table(meta, ints, floats, w, t, pair):
    """Fill ``pair`` (K x S, flat) with the transition scores into token ``t``; -inf where forbidden."""
    K, S = meta[N_LABELS], meta[STRIDE]
    at = meta[W_TRANSITION]
    for k in range(K * S):
        pair[k] = w[at + k]
    if meta[N_EDGE]:
        rows, columns = meta[AT_EDGE_ROWS], meta[AT_EDGE_COLUMNS]
        for c in range(ints[rows + t], ints[rows + t + 1]):
            x = floats[meta[AT_EDGE_VALUES] + c]
            at = meta[W_EDGE] + np.int64(ints[columns + c]) * K * S
            for k in range(K * S):
                pair[k] += x * w[at + k]
    if meta[CONSTRAINED]:
        for j in range(K):
            for k in range(K):
                pair[j * S + k] += floats[meta[AT_MASK] + j * K + k]


@kernel("void(float64[::1], int64, int64, float64[::1])", borrows=True)
def row_maxima(pair, K, S, reach):
    """The best arc out of each label."""
    for j in range(K):
        most = -np.inf
        for k in range(K):
            most = max(most, pair[j * S + k])
        reach[j] = most


@register_jitable
def pruned_step(before, now, pair, reach, best):
    """:func:`~maxmargin.inference.recursion_chain_kernel.viterbi_step` without left labels that cannot win; exact.

    The best left label reaches every label with some score. A label whose best arc cannot lift it above the lowest of
    these scores cannot be the best left label of anything, and its row is passed over: large label sets stay cheap.
    """
    K, S = pair.shape
    leader, lowest = 0, np.inf
    for j in range(1, K):
        if before[j] > before[leader]:
            leader = j
    row, score = pair[leader], before[leader]
    for k in range(S):
        best[k] = score + row[k]
    for k in range(K):
        lowest = min(lowest, best[k])
    for j in range(K):
        if j != leader and before[j] + reach[j] > lowest:
            reach_from(before[j], pair[j], best)
    for k in range(S):
        now[k] += best[k]


@kernel("float64(int64[::1], int32[::1], float64[::1], int64, int32[::1])", borrows=True)
def chain_cost(meta, ints, floats, example, output):
    """Cost of an output: sum over tokens of weight * table[true, found]."""
    K = meta[N_LABELS]
    first, last = ints[meta[AT_TOKENS] + example], ints[meta[AT_TOKENS] + example + 1]
    labels = meta[AT_LABELS]
    cost = 0.0
    for t in range(first, last):
        cost += floats[meta[AT_TOKEN_WEIGHT] + t] * floats[meta[AT_COST] + ints[labels + t] * K + output[t - first]]
    return cost


@kernel(
    "int64(int64[::1], int32[::1], float64[::1], int64, int32[::1], int32[::1], int32[::1], float64[::1])", borrows=True
)
def chain_psi(meta, ints, floats, example, output, iwork, index, value):
    """phi(x, y_i) - phi(x, output) into (index, value); returns their number. O(wrong tokens x features)."""
    K, S = meta[N_LABELS], meta[STRIDE]
    first, last = ints[meta[AT_TOKENS] + example], ints[meta[AT_TOKENS] + example + 1]
    T, labels, has_edges = last - first, meta[AT_LABELS] + first, meta[N_EDGE] > 0
    bits, nnz = meta[TABLE_BITS], 0
    rows, columns, D = meta[AT_ROWS], meta[AT_COLUMNS], meta[N_DENSE]
    for t in range(T):
        true, found = np.int64(ints[labels + t]), np.int64(output[t])
        if true != found:
            token = first + t
            for c in range(columns + ints[rows + token], columns + ints[rows + token + 1]):
                f = np.int64(ints[c])
                x = 1.0 if meta[BINARY] else floats[meta[AT_VALUES] + c - columns]
                if meta[OBSERVED]:
                    for p in range(ints[meta[AT_PAIR_ROWS] + f], ints[meta[AT_PAIR_ROWS] + f + 1]):
                        k = ints[meta[AT_PAIR_LABELS] + p]
                        if k == true:
                            nnz = accumulate(iwork, bits, index, value, nnz, p, x)
                        elif k == found:
                            nnz = accumulate(iwork, bits, index, value, nnz, p, -x)
                else:
                    nnz = exchange(iwork, bits, index, value, nnz, f * S + true, f * S + found, x)
            for j in range(D):
                x = floats[meta[AT_DENSE] + token * D + j]
                if x != 0.0:
                    at = meta[W_DENSE] + j * S
                    nnz = exchange(iwork, bits, index, value, nnz, at + true, at + found, x)
            if meta[HAS_ENDS] and t == 0:
                nnz = exchange(iwork, bits, index, value, nnz, meta[W_START] + true, meta[W_START] + found, 1.0)
            if meta[HAS_ENDS] and t == T - 1:
                nnz = exchange(iwork, bits, index, value, nnz, meta[W_END] + true, meta[W_END] + found, 1.0)
        if t > 0:
            left, wrong = np.int64(ints[labels + t - 1]), np.int64(output[t - 1])
            if left != wrong or true != found:
                at = meta[W_TRANSITION]
                nnz = exchange(iwork, bits, index, value, nnz, at + left * S + true, at + wrong * S + found, 1.0)
                if has_edges:
                    edge_rows, edge_columns = meta[AT_EDGE_ROWS], meta[AT_EDGE_COLUMNS]
                    for c in range(ints[edge_rows + first + t], ints[edge_rows + first + t + 1]):
                        x = floats[meta[AT_EDGE_VALUES] + c]
                        at = meta[W_EDGE] + np.int64(ints[edge_columns + c]) * K * S
                        nnz = exchange(iwork, bits, index, value, nnz, at + left * S + true, at + wrong * S + found, x)
    return finish(iwork, bits, index, value, nnz)


@register_jitable
def chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result):
    """Cost and planes of an output of an example with labels; returns the number of planes."""
    first, last = ints[meta[AT_TOKENS] + example], ints[meta[AT_TOKENS] + example + 1]
    truth = ints[meta[AT_LABELS] + first : meta[AT_LABELS] + last]
    return planes_of_runs(
        chain_cost, chain_psi, meta, ints, floats, example, truth, meta[TABLE_BITS], emit, output, iwork, index, value,
        result,
    )  # fmt: skip


@register_jitable
def true_score(meta, ints, floats, w, first, T, table, pair):
    """The score of the true labels in a score table."""
    S, labels, truth = meta[STRIDE], meta[AT_LABELS] + first, 0.0
    for t in range(T):
        truth += table[t * S + ints[labels + t]]
        if t > 0:
            if meta[N_EDGE] > 0:
                pair_table(meta, ints, floats, w, first + t, pair)
            truth += pair[ints[labels + t - 1] * S + ints[labels + t]]
    return truth


@kernel(PLANE_SIGNATURE, borrows=True)
def chain_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Viterbi on the cost-augmented score table, then the plane of the winner.

    Back-pointers are not stored: the columns of partial scores are, and the pointers of the winning path alone are
    found again from them. That leaves a pure max in the inner loop, which the compiler vectorises over labels.
    O(T (nnz S + r S) + K S) where r is the number of left labels that can matter, at worst K; scratch T S + K S + 2 S.
    """
    K, S = meta[N_LABELS], meta[STRIDE]
    first, last = ints[meta[AT_TOKENS] + example], ints[meta[AT_TOKENS] + example + 1]
    T = last - first
    result[:4] = 0.0
    if T == 0:
        return min(emit, 1)
    table = fwork[: T * S]
    score_table(meta, ints, floats, w, example, cost_weight, table)
    has_labels, has_edges = meta[HAS_LABELS], meta[N_EDGE] > 0
    if has_edges or meta[CONSTRAINED]:
        pair = fwork[T * S : T * S + K * S]
        pair_table(meta, ints, floats, w, first, pair)
    else:
        pair = w[meta[W_TRANSITION] : meta[W_TRANSITION] + K * S]
    truth = true_score(meta, ints, floats, w, first, T, table, pair) if has_labels else 0.0
    pairs, work = pair.reshape((K, S)), fwork[T * S + K * S : T * S + K * S + S]
    reach = fwork[T * S + K * S + S : T * S + K * S + 2 * S]
    prune = K >= PRUNE_FROM
    if prune and T > 1 and not has_edges:
        row_maxima(pair, K, S, reach)
    for t in range(1, T):
        if has_edges:
            pair_table(meta, ints, floats, w, first + t, pair)
            if prune:
                row_maxima(pair, K, S, reach)
        before, now = table[(t - 1) * S : t * S], table[t * S : t * S + S]
        if prune:
            pruned_step(before, now, pairs, reach, work)
        else:
            viterbi_step(before, now, pairs, work)
    top, winner = viterbi_last(table[(T - 1) * S :], K)
    if winner < 0:
        return -1
    for t in range(T - 1, 0, -1):
        output[t] = winner
        if has_edges:
            pair_table(meta, ints, floats, w, first + t, pair)
        winner = viterbi_left(table[(t - 1) * S : t * S], pairs, winner)
    output[0] = winner

    result[:2] = top - truth
    if not has_labels:
        return 0
    return chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
