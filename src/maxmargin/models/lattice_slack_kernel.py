"""Exact searches of lattices, compiled: the path of largest ``cost^p (lam - w . psi)`` among those that cost something.

A few plain argmaxes mostly settle it. Where they leave a doubt, every node keeps the starts of paths that are not
beaten in both cost and score, because a path through a beaten start is beaten too.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.slack_search_kernel import raised
from maxmargin.kernel import kernel
from maxmargin.models import lattice_kernel as lk
from maxmargin.models.search_kernel import (
    best_wrong,
    is_open,
    no_plane,
    search_number,
    search_power,
    slack,
    wrong_prediction,
)
from maxmargin.models.signature import SEARCH_SIGNATURE

MOST_STARTS = 1 << 18  # kept in one search; where more are needed, the bound of the argmaxes has to do
SLIGHT = 1e-9  # of scores: so far below what is needed a start is not given up


@register_jitable
def true_sums(meta, ints, floats, w, row):
    """Score and cost of the good path."""
    first, score, cost = ints[row + lk.FIRST_ARC], 0.0, 0.0
    for p in range(ints[row + lk.N_TRUE]):
        arc = first + ints[meta[lk.AT_TRUTH] + ints[row + lk.FIRST_TRUE] + p]
        score += lk.arc_score(meta, ints, floats, w, arc)
        cost += floats[meta[lk.AT_COSTS] + arc]
    return score, cost


@register_jitable
def best_ends(begin, tail, gain):
    """The largest sum of gains (E,) of the arcs of a path from each node to the last."""
    ends = np.full(len(begin) - 1, -np.inf)
    ends[-1] = 0.0
    for v in range(len(ends) - 1, 0, -1):
        for e in range(begin[v], begin[v + 1]):
            ends[tail[e]] = max(ends[tail[e]], gain[e] + ends[v])
    return ends


@register_jitable
def best_of_all_costs(begin, tail, score, costs, true_score, true_cost, lam, power, mu, top, path):
    """Write the path of largest ``cost^p (lam - w . psi)`` if that is above ``top``, the larger value, and its length.

    A path of cost g with ``reach = lam + mu g - w . psi`` has the value ``g^p (reach - mu g)``, at most what the
    touching line allows, so starts with which no path reaches ``(1 + p) (top (mu / p)^p)^(1 / (1 + p))`` are left out.
    The length is 0 where no path is above, and -1 where more than :data:`MOST_STARTS` would have to be kept.
    """
    n, whole = len(begin) - 1, lam - true_score - mu * true_cost
    ends = best_ends(begin, tail, score + mu * costs)
    needed = top
    if power > 0.0:
        needed = (1.0 + power) * (top * (mu / power) ** power) ** (1.0 / (1.0 + power))
    needed -= SLIGHT * (abs(true_score) + lam + abs(whole + ends[0])) + whole
    paid, scored = np.empty(MOST_STARTS), np.empty(MOST_STARTS)
    last, before = np.empty(MOST_STARTS, np.int32), np.empty(MOST_STARTS, np.int32)
    at = np.zeros(n + 1, np.int64)  # the starts that end in node v are at[v], ..., at[v + 1] - 1
    paid[0], scored[0], last[0], before[0], at[1] = 0.0, 0.0, -1, -1, 1
    for v in range(1, n):
        used = at[v]
        k = used
        for e in range(begin[v], begin[v + 1]):
            for s in range(at[tail[e]], at[tail[e] + 1]):
                if k == MOST_STARTS:
                    return top, -1
                paid[k], scored[k], last[k], before[k] = paid[s] + costs[e], scored[s] + score[e], e, s
                k += scored[k] + mu * paid[k] + ends[v] >= needed
        order = np.argsort(-paid[used:k]) + used
        sums, scores, arcs, others = paid[order], scored[order], last[order], before[order]
        best = -np.inf
        for s in range(len(order)):
            if scores[s] > best:
                best = scores[s]
                paid[used], scored[used], last[used], before[used] = sums[s], scores[s], arcs[s], others[s]
                used += 1
        at[v + 1] = used
    chosen, length = -1, 0
    for s in range(at[n - 1], at[n]):
        cost = paid[s] - true_cost
        if cost > lk.ROUNDING:
            reached = raised(cost, power) * (lam - true_score + scored[s])
            if reached > top:
                top, chosen = reached, s
    while chosen > 0:
        path[length] = last[chosen]
        length += 1
        chosen = before[chosen]
    path[:length] = path[:length][::-1].copy()
    return top, length


@kernel(SEARCH_SIGNATURE)
def path_search(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result):
    """The path of largest ``cost^p (lam - w . psi)``, and a bound, which is met unless too many starts must be kept.

    The number of each example is the least positive cost of its paths, 0 where that is not known.
    """
    if lam <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    power, least = search_power(meta, floats), search_number(meta, floats, example)
    if power > 0.0:
        made = slack(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result)
        if result[0] <= 0.0:  # the last answer has its margin: its plane would lower the sum of all
            made = no_plane(made, result)
        if not is_open(result):
            return made
    else:
        made, wrong = wrong_prediction(
            plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result
        )
        if wrong:
            return made
        result[0], result[1] = 0.0, lam  # no wrong output outscores the truth
    row = meta[lk.AT_ROWS] + example * lk.ROW
    n, first, m = ints[row + lk.N_NODES], ints[row + lk.FIRST_ARC], ints[row + lk.N_ARCS]
    begin = ints[meta[lk.AT_BEGIN] + ints[row + lk.FIRST_NODE] :][: n + 1]
    tail, costs = ints[meta[lk.AT_TAILS] + first :][:m], floats[meta[lk.AT_COSTS] + first :][:m]
    score = np.empty(m)
    for e in range(m):
        score[e] = lk.arc_score(meta, ints, floats, w, first + e)
    true_score, true_cost = true_sums(meta, ints, floats, w, row)
    dearest, top = best_ends(begin, tail, costs)[0] - true_cost, result[0]
    mu = 0.0
    if dearest <= lk.ROUNDING:  # nothing costs anything
        result[1] = top
        return made if power > 0.0 else no_plane(made, result)
    if power > 0.0:
        mu = power * (top / raised(result[2], power) / result[2] if top > 0.0 else lam / dearest)
    path = iwork[meta[lk.N_WEIGHTS] + meta[lk.MOST_NODES] :][:n]
    found, length = best_of_all_costs(
        begin, tail, score, costs, true_score, true_cost, lam, power, mu, top, path
    )  # fmt: skip
    if length > 0:
        slot = iwork[: meta[lk.N_WEIGHTS]]
        made = lk.answer_path(meta, ints, floats, w, row, lam, emit, path[:length], slot, output, index, value, result)
        path[:] = 0
        result[0], result[1] = found, found
        return made
    if power > 0.0:
        result[1] = top if length == 0 else result[1]
        return made
    if length < 0 and least > 0.0:
        return best_wrong(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result)
    result[1] = 0.0 if length == 0 else lam
    return no_plane(made, result)
