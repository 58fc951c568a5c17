"""Compiled kernels that look at all outputs of a hierarchy, where they are few: single paths, small ones, any cost."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.hierarchy_kernel import (
    AT_LISTED,
    AT_MEMBERS,
    FILL_SIGNATURE,
    N_LISTED,
    as_flips,
    preferences,
)
from maxmargin.models.label_set_kernel import (
    ADDITIVE,
    COST_KIND,
    MARGIN,
    conclude,
    count_cost,
    flip_scores,
    is_on,
    parted,
    scaled,
)
from maxmargin.models.signature import PLANE_SIGNATURE, SEARCH_SIGNATURE


@register_jitable
def places(meta, ints, j):
    """Where the labels of output j stand in ``ints``."""
    begin = meta[AT_MEMBERS]
    return range(begin + ints[meta[AT_LISTED] + j], begin + ints[meta[AT_LISTED] + j + 1])


@register_jitable
def best_listed(meta, ints, floats, w, example, lam, power, emit, fwork, output, index, value, result):
    """The best of all outputs, for any cost and rescaling, and its plane. O(nnz S + labels of all outputs)."""
    M, has_labels, kind = meta[mk.N_LABELS], meta[mk.HAS_LABELS], meta[COST_KIND]
    score, gain, cost, pair, _ = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    n_on, n_paid, h_empty, cost_empty = 0, 0, 0.0, 0.0  # of the true set; the empty one against it
    for k in range(M):
        if is_on(meta, ints, example, k):
            n_on += 1
            n_paid += cost[k] > 0.0
            h_empty += gain[k]
            cost_empty += cost[k]
    top, found = -np.inf if power == MARGIN else 0.0, -1
    for j in range(meta[N_LISTED]):
        h, paid, wrong, both, size = h_empty, cost_empty, n_paid, 0, 0
        for at in places(meta, ints, j):
            k = ints[at]
            size += 1
            if is_on(meta, ints, example, k):
                both += 1
                h -= gain[k]
                paid -= cost[k]
                wrong -= cost[k] > 0.0
            else:
                h += gain[k]
                paid += cost[k]
                wrong += cost[k] > 0.0
        if kind != ADDITIVE and has_labels != 0:
            paid = count_cost(kind, n_on, size - both, n_on - both)
        elif wrong == 0:  # rounding makes no cost
            paid = 0.0
        v = scaled(h, paid, lam, power)
        if v > top:
            top, found = v, j
    output[:M] = 0
    if found >= 0:
        for at in places(meta, ints, found):
            output[ints[at]] = 1
        as_flips(meta, ints, example, output)
    return conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)


@kernel(PLANE_SIGNATURE, borrows=True)
def listed_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``w . phi + cost_weight cost``."""
    return best_listed(
        meta, ints, floats, w, example, cost_weight, MARGIN, emit, fwork, output, index, value, result
    )  # fmt: skip


@kernel(SEARCH_SIGNATURE, borrows=True)
def listed_search(
    plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
):  # fmt: skip
    """The set of largest ``cost^p (cost_weight - w . psi)``, p where the last entry of ``meta`` points."""
    if cost_weight <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    power = floats[meta[len(meta) - 1]]
    return best_listed(
        meta, ints, floats, w, example, cost_weight, power, emit, fwork, output, index, value, result
    )  # fmt: skip


@kernel(FILL_SIGNATURE, borrows=True)
def listed_max_marginals(meta, ints, floats, w, iwork, fwork, out):
    """Best score with each label on minus the best with it off, (n, M). O(nnz S + M outputs) per example."""
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    prefer, off, on, stamp = rest[:M], rest[M : 2 * M], rest[2 * M : 3 * M], rest[3 * M : 4 * M]
    for example in range(len(out)):
        flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
        preferences(meta, ints, example, 0.0, gain, cost, prefer)
        on[:M], off[:M], stamp[:M] = -np.inf, -np.inf, -1.0
        for j in range(meta[N_LISTED]):
            h = 0.0
            for at in places(meta, ints, j):
                h += prefer[ints[at]]
                stamp[ints[at]] = j
            for k in range(M):
                side = on if stamp[k] == j else off
                side[k] = max(side[k], h)
        for k in range(M):
            out[example, k] = on[k] - off[k]
