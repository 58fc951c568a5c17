"""Compiled kernel of the Bayesian network: the most probable values of what is unknown, with a cost weight; plane.

What is known has been put into the tables when the data were bound. ``meta`` says whether there are labels, then for
each example the place of its pattern in ``meta`` and of its own data in ``ints``, then the patterns, one for each set
of unknown variables that occurs:

    pattern:  unknown variables U, factors F, junction tree (a place in ``meta``), cells of all tables, scale of the
              cost (a place in ``floats``), whether the tree is exact | for each unknown: states, cost (a place in
              ``floats``, -1: none) | factors
    factor:   unknown members k, cells | for each member: which unknown, states, stride in the weights
    own data: true value of each unknown (U) | weight of each factor with all unknown members at 0 (F)

Factors are different families, so no weight is used by two of them.
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.junction_tree_kernel import max_product, sum_product
from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_SIGNATURE

# places in ``meta``, in a pattern and in a factor
HAS_LABELS, EXAMPLES = 0, 1
UNKNOWN, FACTORS, TREE, CELLS, SCALE, EXACT, HEAD = range(7)
MEMBERS, SIZE, FIRST = range(3)


@kernel("void(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64, int32[::1], float64[::1])")
def net_tables(meta, ints, floats, w, example, cost_weight, iwork, tables):
    """Fill ``tables``: cost_weight * cost of each unknown, then the factors reduced by what is known."""
    pattern, own = meta[EXAMPLES + 2 * example], meta[EXAMPLES + 2 * example + 1]
    U, at = meta[pattern + UNKNOWN], 0
    scale = cost_weight * floats[meta[pattern + SCALE]]
    for u in range(U):
        K, cost = meta[pattern + HEAD + 2 * u], meta[pattern + HEAD + 2 * u + 1]
        tables[at : at + K] = 0.0
        if cost_weight != 0.0 and cost >= 0 and meta[HAS_LABELS]:
            row = cost + ints[own + u] * K
            for x in range(K):
                tables[at + x] = scale * floats[row + x]
        at += K
    factor = pattern + HEAD + 2 * U
    for f in range(meta[pattern + FACTORS]):
        k, size, cell = meta[factor + MEMBERS], meta[factor + SIZE], np.int64(ints[own + U + f])
        last = factor + FIRST + 3 * (k - 1)
        K, stride = meta[last + 1], meta[last + 2]
        for row in range(size // K):
            for x in range(K):
                tables[at + row * K + x] = w[cell + x * stride]
            j, member = k - 2, last - 3
            while j >= 0:
                iwork[j] += 1
                cell += meta[member + 2]
                if iwork[j] < meta[member + 1]:
                    break
                cell -= meta[member + 1] * meta[member + 2]
                iwork[j] = 0
                j -= 1
                member -= 3
        at += size
        factor += FIRST + 3 * k


@kernel("int64(int64[::1], int64, int64, int32[::1])")
def net_weight(meta, factor, cell, labels):
    """The weight that a factor uses."""
    for j in range(meta[factor + MEMBERS]):
        member = factor + FIRST + 3 * j
        cell += meta[member + 2] * labels[meta[member]]
    return cell


@kernel("float64(int64[::1], int32[::1], float64[::1], int64, int32[::1])")
def net_score(meta, ints, w, example, labels):
    """Sum of the factors at given values of the unknown variables."""
    pattern, own = meta[EXAMPLES + 2 * example], meta[EXAMPLES + 2 * example + 1]
    U, total = meta[pattern + UNKNOWN], 0.0
    factor = pattern + HEAD + 2 * U
    for f in range(meta[pattern + FACTORS]):
        total += w[net_weight(meta, factor, ints[own + U + f], labels)]
        factor += FIRST + 3 * meta[factor + MEMBERS]
    return total


@kernel("float64(int64[::1], int32[::1], float64[::1], int64, int32[::1])")
def net_cost(meta, ints, floats, example, labels):
    """Cost of given values of the unknown variables."""
    pattern, own = meta[EXAMPLES + 2 * example], meta[EXAMPLES + 2 * example + 1]
    total = 0.0
    for u in range(meta[pattern + UNKNOWN]):
        K, cost = meta[pattern + HEAD + 2 * u], meta[pattern + HEAD + 2 * u + 1]
        if cost >= 0:
            total += floats[cost + ints[own + u] * K + labels[u]]
    return floats[meta[pattern + SCALE]] * total


@kernel("float64(int64[::1], int32[::1], float64[::1], float64[::1], int64, float64, int32[::1], float64[::1])")
def net_single(meta, ints, floats, w, example, cost_weight, output, scores):
    """Argmax for one unknown variable, by trying all its values; the common case, hence without any detour."""
    pattern, own = meta[EXAMPLES + 2 * example], meta[EXAMPLES + 2 * example + 1]
    K, cost = meta[pattern + HEAD], meta[pattern + HEAD + 1]
    scores[:K] = 0.0
    if cost_weight != 0.0 and cost >= 0 and meta[HAS_LABELS]:
        row, scale = cost + ints[own] * K, cost_weight * floats[meta[pattern + SCALE]]
        for x in range(K):
            scores[x] = scale * floats[row + x]
    factor = pattern + HEAD + 2
    for f in range(meta[pattern + FACTORS]):
        cell, stride = np.int64(ints[own + 1 + f]), meta[factor + FIRST + 2]
        for x in range(K):
            scores[x] += w[cell + x * stride]
        factor += FIRST + 3
    top = -np.inf
    output[0] = 0
    for x in range(K):
        if scores[x] > top:
            top = scores[x]
            output[0] = x
    return top


@kernel(PLANE_SIGNATURE)
def net_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Max-product over the unknown variables, then the plane of the winner.

    Weights may be -inf; when that leaves no output the kernel returns -1. Without an exact tree ``result[1]`` is the
    bound of the mini-buckets. O(cells of the junction tree).
    """
    pattern, own = meta[EXAMPLES + 2 * example], meta[EXAMPLES + 2 * example + 1]
    U, F = meta[pattern + UNKNOWN], meta[pattern + FACTORS]
    result[:4] = 0.0
    if U == 0:
        return min(emit, 1)
    if U == 1:
        top = net_single(meta, ints, floats, w, example, cost_weight, output, fwork)
    else:
        cells = meta[pattern + CELLS]
        net_tables(meta, ints, floats, w, example, cost_weight, iwork, fwork)
        top = max_product(meta, meta[pattern + TREE], fwork[:cells], output, iwork, fwork[cells:])
    if top == -np.inf:
        return -1
    found = top
    if not meta[pattern + EXACT]:
        found = net_score(meta, ints, w, example, output)
        if meta[HAS_LABELS]:
            found += cost_weight * net_cost(meta, ints, floats, example, output)
        top = max(top, found)
    if not meta[HAS_LABELS]:
        result[0] = found
        result[1] = top
        return 0
    labels = ints[own : own + U]
    truth = net_score(meta, ints, w, example, labels)
    result[0] = found - truth
    result[1] = top - truth
    result[2] = net_cost(meta, ints, floats, example, output)
    if emit == 0:
        return 0
    nnz, factor = 0, pattern + HEAD + 2 * U
    for f in range(F):
        cell = np.int64(ints[own + U + f])
        right, wrong = net_weight(meta, factor, cell, labels), net_weight(meta, factor, cell, output)
        if right != wrong:
            index[nnz], value[nnz] = right, 1.0
            index[nnz + 1], value[nnz + 1] = wrong, -1.0
            nnz += 2
        factor += FIRST + 3 * meta[factor + MEMBERS]
    result[3] = nnz
    return 1


@kernel(
    "void(int64[::1], int32[::1], float64[::1], float64[::1], int64[::1], float64[::1], float64[::1], int32[::1], "
    "float64[::1])"
)
def net_sums(meta, ints, floats, w, at, marginals, values, iwork, fwork):
    """Log of the sum over all values of the unknown variables, and their marginals, example by example.

    Those of example i go to ``marginals[at[i] : at[i + 1]]``, its unknown variables one after the other.
    """
    for i in range(len(values)):
        pattern = meta[EXAMPLES + 2 * i]
        cells = meta[pattern + CELLS]
        net_tables(meta, ints, floats, w, i, 0.0, iwork, fwork)
        values[i] = sum_product(
            meta, meta[pattern + TREE], fwork[:cells], marginals[at[i] : at[i + 1]], iwork, fwork[cells:]
        )
