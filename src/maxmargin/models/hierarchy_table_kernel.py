"""Compiled searches on trees of labels: the best set for every cost, where a few queries leave a doubt.

Costs are whole multiples of a unit. ``table_k[s, c]`` is the most that label k, the labels below it, and those of its
later siblings can gain with a cost of c units when their parent is on; s says whether an earlier sibling is on:

    table_k[s, c] = max( off_k + table_next[s, c - paid],  own_k + table_child[0, c1] + table_next[1, c2] )

where ``off_k`` is what the whole tree of k gains by being off, at a cost of ``paid``. Roots are siblings. Where outputs
end in leaves, no sibling on at the end is worth minus infinity; elsewhere s makes no difference, and is always 1.
O(U^2) time and memory for costs up to U units. Bauer, Goernitz, Biegler, Mueller, Kloft 2014, Efficient algorithms for
exact inference in sequence labeling SVMs (for chains).
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.hierarchy_kernel import AT_UNITS, LEAVES_ONLY, UNIT, as_flips
from maxmargin.models.label_forest_kernel import table_of
from maxmargin.models.label_set_kernel import (
    AT_CHILD,
    AT_NEXT,
    AT_ORDER,
    AT_PARENT,
    conclude,
    flip_scores,
    is_on,
    parted,
    scaled,
)
from maxmargin.models.search_kernel import EQUAL, search_power, slack, wrong_prediction
from maxmargin.models.signature import SEARCH_SIGNATURE


@register_jitable
def units_of(meta, ints, example, k, output):
    """What it costs, in units, that label k is on (1) or off (0)."""
    on = is_on(meta, ints, example, k)
    return 0 if on == (output == 1) else np.int64(ints[meta[AT_UNITS] + 2 * k + on])


@register_jitable
def gained(meta, ints, example, gain, k, output):
    """What label k gains over the truth when it is on (1) or off (0)."""
    return 0.0 if is_on(meta, ints, example, k) == (output == 1) else gain[k]


@register_jitable
def end_of(meta, ints, k, s):
    """What the end of the siblings of k is worth."""
    return -np.inf if meta[LEAVES_ONLY] != 0 and s == 0 and ints[meta[AT_PARENT] + k] >= 0 else 0.0


@register_jitable
def after_value(meta, ints, tables, k, s, d):
    """What the later siblings of k gain at a cost of d; minus infinity where they cannot cost that."""
    after = ints[meta[AT_NEXT] + k]
    if after < 0:
        return end_of(meta, ints, k, s) if d == 0 else -np.inf
    table = table_of(meta, ints, tables, after)
    return table[s, d] if 0 <= d < table.shape[1] else -np.inf


@register_jitable
def width_after(meta, ints, tables, k):
    """Number of costs that the later siblings of k can have."""
    after = ints[meta[AT_NEXT] + k]
    return 1 if after < 0 else table_of(meta, ints, tables, after).shape[1]


@register_jitable
def fill_tables(meta, ints, example, gain, off, paid, tables):
    """All tables, last labels first; ``off`` and ``paid`` (M,) are what whole trees gain and cost by being off."""
    M = meta[mk.N_LABELS]
    tables[:2] = 0.0
    for k in range(M):
        off[k], paid[k] = gained(meta, ints, example, gain, k, 0), units_of(meta, ints, example, k, 0)
    for i in range(M - 1, -1, -1):
        k = ints[meta[AT_ORDER] + i]
        parent = ints[meta[AT_PARENT] + k]
        own, below = table_of(meta, ints, tables, k), table_of(meta, ints, tables, ints[meta[AT_CHILD] + k])
        alone, step = gained(meta, ints, example, gain, k, 1), units_of(meta, ints, example, k, 1)
        n_after, down = width_after(meta, ints, tables, k), np.int64(paid[k])
        own[:] = -np.inf
        for d in range(n_after):
            v = after_value(meta, ints, tables, k, 1, d)
            if v == -np.inf:
                continue
            for c in range(below.shape[1]):
                x = alone + below[0, c] + v
                own[1, c + d + step] = x if x > own[1, c + d + step] else own[1, c + d + step]
        own[0] = own[1]  # with k on, its earlier siblings do not matter
        for s in range(2):
            for d in range(n_after):
                x = off[k] + after_value(meta, ints, tables, k, s, d)
                own[s, d + down] = max(own[s, d + down], x)
        if parent >= 0:
            off[parent] += off[k]
            paid[parent] += paid[k]


@register_jitable
def labels_with(meta, ints, example, gain, off, paid, tables, units, left, seen, output):
    """The best set that costs so many units, from the roots down.

    ``left`` (M,) is what each label and its later siblings may cost, ``seen`` (M,) whether an earlier one is on.
    """
    first = ints[meta[AT_ORDER]]
    left[first], seen[first] = units, 0.0
    for i in range(meta[mk.N_LABELS]):
        k = ints[meta[AT_ORDER] + i]
        parent, child, after = ints[meta[AT_PARENT] + k], ints[meta[AT_CHILD] + k], ints[meta[AT_NEXT] + k]
        output[k] = 0
        if parent >= 0 and output[parent] == 0:
            continue
        below = table_of(meta, ints, tables, child)
        alone, step = gained(meta, ints, example, gain, k, 1), units_of(meta, ints, example, k, 1)
        s, total = np.int64(seen[k]), np.int64(left[k])
        rest = total - np.int64(paid[k])
        best, best_c = off[k] + after_value(meta, ints, tables, k, s, rest), 0
        for c in range(below.shape[1]):
            v = alone + below[0, c] + after_value(meta, ints, tables, k, 1, total - step - c)
            if v > best:
                best, best_c, rest = v, c, total - step - c
                output[k] = 1
        if child >= 0:
            left[child], seen[child] = best_c, 0.0
        if after >= 0:
            left[after], seen[after] = rest, max(s, output[k])


@register_jitable
def best_by_cost(meta, ints, floats, w, example, lam, power, emit, fwork, output, index, value, result):
    """The set of largest ``cost^p (lam - w . psi)``, exact, where costs are whole multiples of a unit."""
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    off, paid, left, seen, tables = rest[:M], rest[M : 2 * M], rest[2 * M : 3 * M], rest[3 * M : 4 * M], rest[4 * M :]
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    fill_tables(meta, ints, example, gain, off, paid, tables)
    whole = table_of(meta, ints, tables, ints[meta[AT_ORDER]])
    top, units = 0.0, 0
    for c in range(1, whole.shape[1]):
        v = scaled(whole[0, c], floats[meta[UNIT]] * c, lam, power) if whole[0, c] > -np.inf else 0.0
        if v > top:
            top, units = v, c
    if units > 0:
        labels_with(meta, ints, example, gain, off, paid, tables, units, left, seen, output)
        as_flips(meta, ints, example, output)
    else:
        output[:M] = 0
    return conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)


@kernel(SEARCH_SIGNATURE)
def tree_search(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``cost^p (lam - w . psi)``.

    The prediction where p = 0 and it is wrong; a few argmaxes where p > 0; and all costs where these leave a doubt.
    """
    power = search_power(meta, floats)
    if power == 0.0 and lam > 0.0:
        made, settled = wrong_prediction(
            plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result
        )
    else:
        made = slack(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result)
        settled = lam <= 0.0 or result[1] <= result[0] + EQUAL * abs(result[0])
    if settled:
        return made
    return best_by_cost(meta, ints, floats, w, example, lam, power, emit, fwork, output, index, value, result)
