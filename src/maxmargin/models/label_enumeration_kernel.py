"""Compiled kernels that look at all label sets, with any graph and any cost; and max-marginals.

The labels are split in two. The scores of all flips of the low ones stand in a table of 2^L numbers. Each of the flips
of the high ones adds a row that is linear in the low ones, so that one more flip costs one addition per entry:

    h(low, high + j) = h(low, high) + row_j(low) + const(j, high)        j below all flips in ``high``

Tables of the prefixes of ``high`` are kept, hence no rounding builds up. O(2^M) in loops without branches.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.label_set_kernel import (
    ADDITIVE,
    AT_ABOVE,
    AT_EDGES,
    AT_ORDER,
    AT_PARENT,
    COST_KIND,
    MARGIN,
    N_EDGES,
    conclude,
    count_cost,
    flip_scores,
    is_on,
    message,
    messages,
    parted,
    power_of,
)
from maxmargin.models.signature import PLANE_SIGNATURE

LOW = 8  # labels in the table that the inner loops run over: a few kilobytes, which stay in the nearest cache


@register_jitable
def doubled(table, size, step):
    """The second half of a table over flips: the first half plus ``step``."""
    for z in range(size):
        table[size + z] = table[z] + step


@register_jitable
def prepare(meta, ints, gain, pair, pairs, rows, stack, scratch):
    """Fill ``pairs`` (M, M), ``rows`` (H, 2^L), and the last of ``stack`` (H + 1, 2^L): no flips of high labels."""
    M = meta[mk.N_LABELS]
    L = min(M, LOW)
    H = M - L
    pairs[:] = 0.0
    for e in range(meta[N_EDGES]):
        j, k = ints[meta[AT_EDGES] + 2 * e], ints[meta[AT_EDGES] + 2 * e + 1]
        pairs[j, k] += pair[e]
        pairs[k, j] += pair[e]
    base = stack[H]
    base[0] = 0.0
    for k in range(L):
        scratch[0] = 0.0
        for j in range(k):
            doubled(scratch, 1 << j, pairs[k, j])
        size = 1 << k
        for z in range(size):
            base[size + z] = base[z] + (gain[k] + scratch[z])
    for i in range(H):
        row = rows[i]
        row[0] = 0.0
        for j in range(L):
            doubled(row, 1 << j, pairs[L + i, j])


@register_jitable
def lowest(flips, H):
    """Position of the lowest flip among the high labels; H when there is none."""
    i = 0
    while i < H and (flips >> i) & 1 == 0:
        i += 1
    return i


@register_jitable
def next_table(flips, L, H, gain, pairs, rows, stack):
    """Fill the table of these flips of high labels and return its place in ``stack``; flips come in rising order."""
    i = lowest(flips, H)
    if i == H:
        return H
    const = gain[L + i]
    for j in range(i + 1, H):
        if (flips >> j) & 1:
            const += pairs[L + i, L + j]
    before, row, table = stack[lowest(flips & (flips - 1), H)], rows[i], stack[i]
    for z in range(1 << L):
        table[z] = before[z] + (row[z] + const)
    return i


@register_jitable
def tables(meta, rest):
    """Scratch: pairs (M, M), rows (H, 2^L), stack (H + 1, 2^L), five tables (2^L,), costs by counts ((M + 1)^2,)."""
    M = meta[mk.N_LABELS]
    L = min(M, LOW)
    n, H = 1 << L, M - L
    pairs = rest[: M * M].reshape((M, M))
    at = M * M
    rows = rest[at : at + H * n].reshape((H, n))
    at += H * n
    stack = rest[at : at + (H + 1) * n].reshape((H + 1, n))
    at += (H + 1) * n
    more = rest[at : at + 5 * n].reshape((5, n))
    return pairs, rows, stack, more, rest[at + 5 * n : at + 5 * n + (M + 1) ** 2]


@register_jitable
def best_of_all(meta, ints, floats, w, example, lam, power, emit, fwork, output, index, value, result):
    """The best set of all, for any graph, cost and rescaling, and its plane. O(nnz S + 2^M)."""
    M, kind = meta[mk.N_LABELS], meta[COST_KIND]
    L = min(M, LOW)
    n, H = 1 << L, M - L
    score, gain, cost, pair, rest = parted(meta, fwork)
    pairs, rows, stack, more, by_counts = tables(meta, rest)
    low_cost, paid, found, best, where = more[0], more[1], more[2], more[3], more[4]
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    prepare(meta, ints, gain, pair, pairs, rows, stack, found)
    counted = kind != ADDITIVE and meta[mk.HAS_LABELS] != 0
    if counted:  # ``cost`` numbers the pairs (labels added, labels missed), and ``by_counts`` has what they cost
        n_on = 0
        for k in range(M):
            on = is_on(meta, ints, example, k)
            n_on += on
            cost[k] = 1.0 if on else M + 1.0
        for a in range(M - n_on + 1):
            for m in range(n_on + 1):
                by_counts[a * (M + 1) + m] = count_cost(kind, n_on, a, m)
    low_cost[0] = 0.0
    for k in range(L):
        doubled(low_cost, 1 << k, cost[k])
    best[:] = -np.inf
    where[:] = 0.0
    for flips in range(1 << H):
        table = stack[next_table(flips, L, H, gain, pairs, rows, stack)]
        high_cost = 0.0
        for i in range(H):
            if (flips >> i) & 1:
                high_cost += cost[L + i]
        if counted:
            for z in range(n):
                paid[z] = by_counts[np.int64(low_cost[z] + high_cost)]
        else:
            for z in range(n):
                paid[z] = low_cost[z] + high_cost
        if power == MARGIN:
            for z in range(n):
                found[z] = table[z] + lam * paid[z]
        elif power == 1.0:
            for z in range(n):
                found[z] = paid[z] * (lam + table[z])
        elif power == 0.5:
            for z in range(n):
                found[z] = np.sqrt(paid[z]) * (lam + table[z])
        else:
            for z in range(n):
                found[z] = lam + table[z] if paid[z] > 0.0 else 0.0
        for z in range(n):
            better = found[z] > best[z]
            where[z] = flips if better else where[z]
            best[z] = found[z] if better else best[z]
    top = 0
    for z in range(n):
        if best[z] > best[top]:
            top = z
    if power != MARGIN and best[top] <= 0.0:
        output[:M] = 0
    else:
        flips = top + (np.int64(where[top]) << L)
        for k in range(M):
            output[k] = (flips >> k) & 1
    return conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)


@kernel(PLANE_SIGNATURE, borrows=True)
def all_sets_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost`` or ``cost^p (cost_weight - w . psi)``."""
    power = power_of(meta, floats, cost_weight)
    return best_of_all(
        meta, ints, floats, w, example, cost_weight, power, emit, fwork, output, index, value, result
    )  # fmt: skip


_ARRAYS = "int64[::1], int32[::1], float64[::1], float64[::1]"


@kernel(f"void({_ARRAYS}, float64[::1], float64[:, ::1])", borrows=True)
def forest_max_marginals(meta, ints, floats, w, fwork, out):
    """Best score with each label on minus the best with it off, (n, M), on a forest. O(nnz S + M) per example."""
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        delta, total = rest[:M], out[example]
        for k in range(M):
            delta[k] = gain[k]
        messages(meta, ints, pair, delta)
        for i in range(M):
            k = ints[meta[AT_ORDER] + i]
            parent = ints[meta[AT_PARENT] + k]
            total[k] = delta[k]
            if parent >= 0:  # what the parent would gain without this label, told to it
                edge = pair[ints[meta[AT_ABOVE] + k]]
                total[k] += message(total[parent] - message(delta[k], edge), edge)


@kernel(f"void({_ARRAYS}, float64[::1], float64[:, ::1])", borrows=True)
def all_sets_max_marginals(meta, ints, floats, w, fwork, out):
    """Best score with each label on minus the best with it off, (n, M), with any graph. O(nnz S + 2^M) per example."""
    M = meta[mk.N_LABELS]
    L = min(M, LOW)
    n, H = 1 << L, M - L
    score, gain, cost, pair, rest = parted(meta, fwork)
    pairs, rows, stack, more, _ = tables(meta, rest)
    best, off, on = more[0], more[1], more[2]
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        prepare(meta, ints, gain, pair, pairs, rows, stack, best)
        best[:] = -np.inf
        off[:M] = -np.inf
        on[:M] = -np.inf
        for flips in range(1 << H):
            table = stack[next_table(flips, L, H, gain, pairs, rows, stack)]
            most = -np.inf
            for z in range(n):
                best[z] = table[z] if table[z] > best[z] else best[z]
            for z in range(n):
                most = table[z] if table[z] > most else most
            for i in range(H):
                side = on if (flips >> i) & 1 else off
                side[L + i] = max(side[L + i], most)
        for z in range(n):
            for k in range(L):
                side = on if (z >> k) & 1 else off
                side[k] = max(side[k], best[z])
        for k in range(M):
            out[example, k] = on[k] - off[k]
