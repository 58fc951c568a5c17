"""Compiled searches on forests of labels: the best set for every cost, where a few queries leave a doubt.

``table_k[z, c]`` is the most that the labels below k, k itself, and those below its later siblings can gain at costs c
when the parent of k is flipped (z = 1) or not:

    table_k[z, c1 + c2 + paid] = max over z' of  z' (gain_k + z pair) + table_child[z', c1] + table_next[z, c2]

with ``paid`` the cost of a mistake on k, in whole units, where z' = 1. Roots are siblings. O(C^2) time and O(M C)
memory for costs up to C; C = M where mistakes cost the same.
Bauer, Goernitz, Biegler, Mueller, Kloft 2014, Efficient algorithms for exact inference in sequence labeling SVMs.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.label_set_kernel import (
    AT_ABOVE,
    AT_CHILD,
    AT_NEXT,
    AT_ORDER,
    AT_PARENT,
    AT_SIZE,
    AT_TABLE,
    MARGIN,
    best_flips,
    conclude,
    flip_scores,
    parted,
    scaled,
    value_of_flips,
)
from maxmargin.models.search_kernel import (
    search_number,
    search_power,
    search_unit,
    try_cost_weights,
    wrong_prediction,
)
from maxmargin.models.signature import SEARCH_SIGNATURE

QUERIES = 24  # before the numbers of mistakes are told apart; three are usual


@register_jitable
def table_of(meta, ints, tables, k):
    """``table_k`` (2, size + 1); that of no label is 0 for no mistakes, and stands in front."""
    if k < 0:
        return tables[:2].reshape((2, 1))
    size = np.int64(ints[meta[AT_SIZE] + k]) + 1
    begin = 2 + np.int64(ints[meta[AT_TABLE] + k])
    return tables[begin : begin + 2 * size].reshape((2, size))


@register_jitable
def units_paid(cost, unit):
    """The cost of a mistake in units."""
    return np.int64(np.rint(cost / unit))


@register_jitable
def fill_tables(meta, ints, gain, cost, unit, pair, tables):
    """All tables, last labels first."""
    tables[:2] = 0.0
    for i in range(meta[mk.N_LABELS] - 1, -1, -1):
        k = ints[meta[AT_ORDER] + i]
        edge = pair[ints[meta[AT_ABOVE] + k]] if ints[meta[AT_PARENT] + k] >= 0 else 0.0
        own = table_of(meta, ints, tables, k)
        below = table_of(meta, ints, tables, ints[meta[AT_CHILD] + k])
        after = table_of(meta, ints, tables, ints[meta[AT_NEXT] + k])
        for z in range(2):
            own[z, :] = -np.inf
            for flip in range(2):
                paid = units_paid(cost[k], unit) if flip == 1 else 0
                for c in range(below.shape[1]):
                    gained = below[flip, c] + flip * (gain[k] + z * edge)
                    for d in range(after.shape[1]):
                        v = gained + after[z, d]
                        own[z, c + d + paid] = v if v > own[z, c + d + paid] else own[z, c + d + paid]


@register_jitable
def flips_with(meta, ints, gain, cost, unit, pair, tables, units, left, output):
    """The best flips at so many units, from the roots down; ``left`` (M,) is what each label may hand out."""
    left[ints[meta[AT_ORDER]]] = units
    for i in range(meta[mk.N_LABELS]):
        k = ints[meta[AT_ORDER] + i]
        parent, child, after_k = ints[meta[AT_PARENT] + k], ints[meta[AT_CHILD] + k], ints[meta[AT_NEXT] + k]
        edge = pair[ints[meta[AT_ABOVE] + k]] if parent >= 0 else 0.0
        z = 1 if parent >= 0 and output[parent] != 0 else 0
        below, after = table_of(meta, ints, tables, child), table_of(meta, ints, tables, after_k)
        total, best, best_c = np.int64(left[k]), -np.inf, 0
        output[k] = 0
        for flip in range(2):
            paid = units_paid(cost[k], unit) if flip == 1 else 0
            for c in range(below.shape[1]):
                d = total - paid - c
                if 0 <= d < after.shape[1]:
                    v = below[flip, c] + flip * (gain[k] + z * edge) + after[z, d]
                    if v > best:
                        best, best_c = v, c
                        output[k] = flip
        if child >= 0:
            left[child] = best_c
        if after_k >= 0:
            paid = units_paid(cost[k], unit) if output[k] != 0 else 0
            left[after_k] = total - paid - best_c


@register_jitable
def best_by_costs(meta, ints, gain, cost, unit, pair, rest, lam, power, output):
    """The flips of largest ``cost^p (lam - w . psi)``, exact, where all costs are multiples of a unit."""
    M = meta[mk.N_LABELS]
    left, tables = rest[:M], rest[M:]
    fill_tables(meta, ints, gain, cost, unit, pair, tables)
    whole = table_of(meta, ints, tables, ints[meta[AT_ORDER]])
    top, units = 0.0, 0
    for c in range(1, whole.shape[1]):
        v = scaled(whole[0, c], unit * c, lam, power)
        if v > top:
            top, units = v, c
    output[:M] = 0
    if units > 0:
        flips_with(meta, ints, gain, cost, unit, pair, tables, units, left, output)


@register_jitable
def ask_flips(plane, question, mu, output, result):
    """A query, answered from the gains of flips."""
    meta, ints, example, gain, cost, pair, delta = question
    best_flips(meta, ints, mu, gain, cost, pair, delta, output)
    value_of_flips(meta, ints, example, mu, MARGIN, gain, cost, pair, output, result)
    return 0


@kernel(SEARCH_SIGNATURE)
def forest_search(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result):
    """The set of largest ``cost^p (lam - w . psi)``.

    The prediction where p = 0 and it is wrong; a few argmaxes, answered from the gains of flips, where p > 0; and all
    costs where these leave a doubt.
    """
    if lam <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    power, settled = search_power(meta, floats), False
    if power == 0.0:
        made, wrong = wrong_prediction(
            plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result
        )
        if wrong:
            return made
    M = meta[mk.N_LABELS]
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    if power > 0.0:
        question, best = (meta, ints, example, gain, cost, pair, rest[:M]), np.zeros(M, np.int32)
        least = search_number(meta, floats, example)
        mu = lam / least if least > 0.0 else lam
        _made, _mu, top, _at, bound = try_cost_weights(
            ask_flips, plane, question, lam, least, mu, 0.0, power, QUERIES, best, output, result
        )
        output[:M], settled = best, bound <= top
    if not settled:
        best_by_costs(meta, ints, gain, cost, search_unit(meta, floats, example), pair, rest, lam, power, output)
    return conclude(meta, ints, floats, example, lam, power, emit, gain, cost, pair, output, index, value, result)
