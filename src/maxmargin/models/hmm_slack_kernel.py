"""Compiled slack search of hidden Markov models: a few argmaxes, then all costs where these leave a doubt."""

from __future__ import annotations

import numpy as np

from maxmargin.inference.forest_cost_kernel import best_of_all_costs, forest_with_tables
from maxmargin.inference.slack_search_kernel import raised
from maxmargin.kernel import kernel
from maxmargin.models import hmm_kernel as hk
from maxmargin.models.search_kernel import is_open, search_power, search_unit, slack
from maxmargin.models.signature import SEARCH_SIGNATURE


@kernel(SEARCH_SIGNATURE)
def hmm_slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The states of largest ``cost^p (lam - w . psi)``, lam = cost_weight: exact where costs have a unit, else a bound.

    Each example has its least positive cost, and the unit of its costs, 0 where it has none or the table is too large.
    """
    made = slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result)
    unit, first = search_unit(meta, floats, example), ints[meta[hk.AT_OFFSETS] + example]
    if made < 0 or cost_weight <= 0.0 or unit <= 0.0 or not is_open(result):
        return made
    K, T = meta[hk.N_STATES], np.int64(ints[meta[hk.AT_OFFSETS] + example + 1] - first)
    power, top, scale = search_power(meta, floats), result[0], floats[meta[hk.AT_SCALE] + example] / unit
    unary, pair = fwork[: T * K], np.empty(K * K)
    hk.hmm_table(meta, ints, floats, w, example, 0.0, unary)
    for j in range(K):
        for k in range(K):
            pair[k * K + j] = w[K + j * K + k]
    spent = np.empty(T * K, np.int64)
    for t in range(T):
        row = meta[hk.AT_COST] + ints[meta[hk.AT_LABELS] + first + t] * K
        for k in range(K):
            spent[t * K + k] = np.int64(np.rint(scale * floats[row + k]))
    order = np.arange(T)
    whole = cost_weight - hk.hmm_truth(meta, ints, w, example)
    if not np.isfinite(whole):  # the true states are impossible
        return made
    forest = forest_with_tables(K, order, order - 1, np.zeros(T, np.int64), unary, pair, spent)
    labels, asked = output[:T].copy(), result[len(result) - 1]
    if best_of_all_costs(forest, whole, unit, power, top, labels):
        output[:T] = labels
        made = hk.hmm_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
        score = 0.0
        for t in range(T):
            score += unary[t * K + labels[t]] + (pair[labels[t] * K + labels[t - 1]] if t > 0 else 0.0)
        top = max(top, raised(hk.hmm_cost(meta, ints, floats, example, output), power) * (whole + score))
    result[0], result[1], result[len(result) - 1] = top, top, asked
    return made
