"""Compiled kernels of label sets: flips of the true set, exact answers for forests and for graphs without edges.

All searches work on *flips* z of the true set t (of the empty set, where there is none): label k of the output is
``t_k xor z_k``. The score over that of the truth is again a sum over labels and edges,

    h(z) = sum_k gain_k z_k + sum_(j, k) pair_jk z_j z_k      gain_k = s_k (score_k + sum_j w_jk t_j),  s = 1 - 2 t
                                                              pair_jk = s_j s_k w_jk

so that the true set has h = 0 and cost 0 exactly, and costs are counted in flips.

Layout of the weights: the rows of :mod:`maxmargin.models.multiclass_kernel`, then one weight per edge.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.multiclass_kernel import multiclass_scores
from maxmargin.models.signature import PLANE_SIGNATURE

# positions in ``meta`` behind those of the multiclass kernel
N_EDGES, COST_KIND, AT_EDGES, AT_ORDER, AT_PARENT, AT_ABOVE, W_EDGES = range(mk.META_SIZE, mk.META_SIZE + 7)
AT_CHILD, AT_NEXT, AT_SIZE, AT_TABLE, AT_BEGIN, AT_ENDS, PARTS, META_SIZE = range(mk.META_SIZE + 7, mk.META_SIZE + 15)
ADDITIVE, F1, JACCARD = range(3)  # kinds of cost
MARGIN = -1.0  # in place of the power p of ``cost^p (lam + h)``: the value is ``h + lam cost``


@register_jitable
def is_on(meta, ints, example, k):
    """Whether label k is in the true set."""
    return meta[mk.HAS_LABELS] != 0 and ints[meta[mk.AT_LABELS] + example * meta[mk.N_LABELS] + k] != 0


@register_jitable
def count_cost(kind, n_on, added, missed):
    """``1 - F1`` or ``1 - Jaccard`` of a set with so many labels added to, and missed from, a true one of ``n_on``."""
    both = n_on - missed
    union = n_on + added
    if union == 0:
        return 0.0
    return 1.0 - 2.0 * both / (both + union) if kind == F1 else 1.0 - both / union


@register_jitable
def power_of(meta, floats, cost_weight):
    """What a kernel that knows all answers maximises: that of its search, whose power stands behind ``meta``."""
    return floats[meta[len(meta) - 1]] if len(meta) > META_SIZE and cost_weight > 0.0 else MARGIN


@register_jitable
def scaled(h, cost, lam, power):
    """What a search maximises."""
    if power == MARGIN:
        return h + lam * cost
    if cost <= 0.0:
        return 0.0
    if power == 1.0:
        return cost * (lam + h)
    return (lam + h) * (np.sqrt(cost) if power == 0.5 else 1.0)


@register_jitable
def flip_scores(meta, ints, floats, w, example, score, gain, cost, pair):
    """Fill gain (M,), cost (M,) of each flip, and pair (E,) of each edge. O(nnz S + E); scratch ``score`` (S,)."""
    M, E = meta[mk.N_LABELS], meta[N_EDGES]
    multiclass_scores(meta, ints, floats, w, example, score)
    for k in range(M):
        gain[k] = score[k]
    for e in range(E):
        j, k = ints[meta[AT_EDGES] + 2 * e], ints[meta[AT_EDGES] + 2 * e + 1]
        weight = w[meta[W_EDGES] + e]
        on_j, on_k = is_on(meta, ints, example, j), is_on(meta, ints, example, k)
        if on_k:
            gain[j] += weight
        if on_j:
            gain[k] += weight
        pair[e] = weight if on_j == on_k else -weight
    for k in range(M):
        on = is_on(meta, ints, example, k)
        if on:
            gain[k] = -gain[k]
        cost[k] = floats[meta[mk.AT_COST] + 2 * k + on] if meta[mk.HAS_LABELS] else 0.0


@register_jitable
def flips_cost(meta, ints, example, cost, output):
    """The cost of the flips in ``output`` (M,)."""
    total, n_on, added, missed = 0.0, 0, 0, 0
    if meta[mk.HAS_LABELS] == 0:
        return total
    for k in range(meta[mk.N_LABELS]):
        on = is_on(meta, ints, example, k)
        n_on += on
        if output[k] != 0:
            total += cost[k]
            added += not on
            missed += on
    return total if meta[COST_KIND] == ADDITIVE else count_cost(meta[COST_KIND], n_on, added, missed)


@register_jitable
def value_of_flips(meta, ints, example, lam, power, gain, cost, pair, output, result):
    """Write value, bound and cost of the flips in ``output`` (M,). O(M + E)."""
    h = 0.0
    for k in range(meta[mk.N_LABELS]):
        if output[k] != 0:
            h += gain[k]
    for e in range(meta[N_EDGES]):
        if output[ints[meta[AT_EDGES] + 2 * e]] != 0 and output[ints[meta[AT_EDGES] + 2 * e + 1]] != 0:
            h += pair[e]
    result[2] = flips_cost(meta, ints, example, cost, output)
    result[0] = scaled(h, result[2], lam, power)
    # the truth gives 0; rounding may miss it
    result[1] = max(result[0], 0.0) if meta[mk.HAS_LABELS] else result[0]


@register_jitable
def write_label(meta, ints, floats, example, begin, end, k, step, index, value, nnz):
    """Write ``step`` times the features of an example, entries begin to end and the dense ones, in the weights of k."""
    S, D = meta[mk.STRIDE], meta[mk.N_DENSE]
    for c in range(begin, end):
        index[nnz], value[nnz] = ints[meta[mk.AT_COLUMNS] + c] * S + k, step * floats[meta[mk.AT_VALUES] + c]
        nnz += 1
    for d in range(D):
        x = floats[meta[mk.AT_DENSE] + example * D + d]
        if x != 0.0:
            index[nnz], value[nnz] = meta[mk.W_DENSE] + d * S + k, step * x
            nnz += 1
    if meta[mk.HAS_INTERCEPT]:
        index[nnz], value[nnz] = meta[mk.W_INTERCEPT] + k, step * floats[meta[mk.AT_SCALING]]
        nnz += 1
    return nnz


@register_jitable
def conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result):
    """Turn the flips in ``output`` into the set that they make, and write its value and its plane. O(M + E + nnz)."""
    M, E, has_labels, nnz = meta[mk.N_LABELS], meta[N_EDGES], meta[mk.HAS_LABELS], 0
    value_of_flips(meta, ints, example, lam, power, gain, cost, pair, output, result)
    if emit > 0 and has_labels:
        begin, end = np.int64(ints[meta[mk.AT_ROWS] + example]), np.int64(ints[meta[mk.AT_ROWS] + example + 1])
        for k in range(M):
            if output[k] == 0:
                continue
            sign = 1.0 if is_on(meta, ints, example, k) else -1.0
            nnz = write_label(meta, ints, floats, example, begin, end, k, sign, index, value, nnz)
    for k in range(M):
        if is_on(meta, ints, example, k):
            output[k] = 1 - output[k]
    if emit > 0 and has_labels:
        for e in range(E):
            j, k = ints[meta[AT_EDGES] + 2 * e], ints[meta[AT_EDGES] + 2 * e + 1]
            before = is_on(meta, ints, example, j) and is_on(meta, ints, example, k)
            after = output[j] != 0 and output[k] != 0
            if before != after:
                index[nnz], value[nnz] = meta[W_EDGES] + e, 1.0 if before else -1.0
                nnz += 1
    result[3] = nnz
    return 1 if emit > 0 and has_labels else 0


@register_jitable
def parted(meta, fwork):
    """Scratch: score (S,), gain (M,), cost (M,), pair (E,), and the rest."""
    S, M, E = meta[mk.STRIDE], meta[mk.N_LABELS], meta[N_EDGES]
    at = S + 2 * M
    return fwork[:S], fwork[S : S + M], fwork[S + M : at], fwork[at : at + E], fwork[at + E :]


@register_jitable
def messages(meta, ints, pair, delta):
    """From the leaves of a forest to its roots: what flipping each label gains, all that is below it at its best.

    ``delta`` (M,) comes with what each label gains alone: the two-state dynamic program, in differences. O(M).
    """
    M = meta[mk.N_LABELS]
    for i in range(M - 1, -1, -1):
        k = ints[meta[AT_ORDER] + i]
        parent = ints[meta[AT_PARENT] + k]
        if parent >= 0:
            delta[parent] += message(delta[k], pair[ints[meta[AT_ABOVE] + k]])


@register_jitable
def message(delta, pair):
    """What the best choice at one end of an edge gains when the other end is flipped too."""
    return max(0.0, delta + pair) - max(0.0, delta)


@register_jitable
def best_flips(meta, ints, cost_weight, gain, cost, pair, delta, output):
    """The flips of largest ``h + cost_weight cost`` in a forest; without edges every label decides for itself. O(M)."""
    M = meta[mk.N_LABELS]
    for k in range(M):
        delta[k] = gain[k] + cost_weight * cost[k]
    messages(meta, ints, pair, delta)
    for i in range(M):
        k = ints[meta[AT_ORDER] + i]
        parent, d = ints[meta[AT_PARENT] + k], delta[k]
        if parent >= 0 and output[parent] != 0:
            d += pair[ints[meta[AT_ABOVE] + k]]
        output[k] = 1 if d > 0.0 else 0


@kernel(PLANE_SIGNATURE, borrows=True)
def forest_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost`` where the graph is a forest and the cost adds up over labels.

    O(nnz S + M).
    """
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    best_flips(meta, ints, cost_weight, gain, cost, pair, rest[: meta[mk.N_LABELS]], output)
    return conclude(
        meta, ints, floats, example, cost_weight, MARGIN, emit, gain, cost, pair, output, index, value, result
    )  # fmt: skip


@register_jitable
def best_counts(meta, ints, floats, w, example, lam, power, emit, fwork, output, index, value, result):
    """The best set where there are no edges and the cost depends on the numbers of labels added and missed only.

    For each pair of numbers the labels of largest gain are best: all of them are tried, and the search is exact for
    every rescaling. O(nnz S + M log M + added * missed).
    """
    M, kind = meta[mk.N_LABELS], meta[COST_KIND]
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    order = np.argsort(-gain)
    added, missed = rest[: M + 1], rest[M + 1 : 2 * M + 2]  # what the best so many flips of each sort gain together
    n_off, n_on = 0, 0
    added[0], missed[0] = 0.0, 0.0
    for k in order:
        if is_on(meta, ints, example, k):
            missed[n_on + 1] = missed[n_on] + gain[k]
            n_on += 1
        else:
            added[n_off + 1] = added[n_off] + gain[k]
            n_off += 1
    has_labels, top, best_a, best_m = meta[mk.HAS_LABELS], 0.0, 0, 0
    per_added, per_missed = floats[meta[mk.AT_COST]], floats[meta[mk.AT_COST] + 1]
    for m in range(n_on + 1):
        for a in range(n_off + 1):
            if not has_labels:
                paid = 0.0
            elif kind == ADDITIVE:
                paid = per_added * a + per_missed * m
            else:
                paid = count_cost(kind, n_on, a, m)
            v = scaled(added[a] + missed[m], paid, lam, power)
            if v > top:
                top, best_a, best_m = v, a, m
    output[:M] = 0
    for k in order:
        if is_on(meta, ints, example, k):
            if best_m > 0:
                output[k] = 1
                best_m -= 1
        elif best_a > 0:
            output[k] = 1
            best_a -= 1
    return conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)


@kernel(PLANE_SIGNATURE)
def counts_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost`` or ``cost^p (cost_weight - w . psi)``, by counts."""
    power = power_of(meta, floats, cost_weight)
    return best_counts(
        meta, ints, floats, w, example, cost_weight, power, emit, fwork, output, index, value, result
    )  # fmt: skip
