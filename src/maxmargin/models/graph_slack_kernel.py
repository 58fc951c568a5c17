"""Compiled slack search of graphs: a few argmaxes, and on forests a table over all costs where these leave a doubt."""

from __future__ import annotations

import numpy as np

from maxmargin.inference.forest_cost_kernel import best_of_all_costs, forest_with_tables
from maxmargin.inference.graph_kernel import total_score
from maxmargin.inference.slack_search_kernel import raised
from maxmargin.kernel import kernel
from maxmargin.models import graph_kernel as gk
from maxmargin.models.search_kernel import is_open, search_power, search_unit, slack
from maxmargin.models.signature import SEARCH_SIGNATURE


@kernel(SEARCH_SIGNATURE)
def graph_slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The labels of largest ``cost^p (lam - w . psi)``, lam = cost_weight, with a bound: exact on forests with a unit.

    Each example has its least positive cost, and the unit of its costs, 0 where it has none or the table is too large.
    """
    made = slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result)
    unit = search_unit(meta, floats, example)
    at, n, m, kind, given, edges, _begin, _ends, order, up, _rows = gk.structure_of(meta, ints, example)
    if made < 0 or cost_weight <= 0.0 or unit <= 0.0 or kind != gk.TREE or not is_open(result):
        return made
    K, D, power, top = meta[gk.N_LABELS], meta[gk.N_WEIGHTS], search_power(meta, floats), result[0]
    psi, row, tables = fwork[:D], fwork[D : D + meta[gk.N_PAIR]], fwork[D + meta[gk.N_PAIR] :]
    unary, pair = tables[: n * K], tables[n * K : n * K + 2 * m * K * K]
    gk.fill_tables(meta, ints, floats, w, n, m, given, at, 0.0, unary, pair, row)
    start = np.int64(ints[at + gk.NODE_START])
    parent, place, spent = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.empty(n * K, np.int64)
    for p in range(n):
        weight = floats[meta[gk.AT_COSTS] + start + p] / unit
        for k in range(K):
            spent[p * K + k] = np.int64(np.rint(weight * floats[meta[gk.AT_TABLE] + given[p] * K + k]))
        if up[p] >= 0:
            end = np.int64(up[p])
            parent[p], place[p] = edges[end ^ 1], (end & 1) * m * K * K + (end >> 1) * K * K
    whole = cost_weight - total_score(n, K, edges, unary, pair, given)
    forest = forest_with_tables(K, order, parent, place, unary, pair, spent)
    labels, asked = np.empty(n, np.int32), result[len(result) - 1]
    if best_of_all_costs(forest, whole, unit, power, top, labels):
        output[:n] = labels
        output[n] = gk.TREE
        made = gk.answer_with(meta, ints, floats, w, example, 0.0, labels, 0.0, emit, psi, index, value, result)
        top = max(top, raised(result[2], power) * (cost_weight + result[0]))
    result[0], result[1], result[len(result) - 1] = top, top, asked
    return made
