"""Exact searches of the chain model, compiled: the argmax of cost times violation, and the best wrong output.

The scores of an example are added up once, and all further questions are answered from their table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.recursion_chain_kernel import viterbi_last, viterbi_step
from maxmargin.inference.slack_search_kernel import raised
from maxmargin.kernel import kernel
from maxmargin.models import chain_kernel as ck
from maxmargin.models.search_kernel import (
    MOST_QUERIES,
    search_number,
    search_power,
    search_unit,
    try_cost_weights,
    wrong_prediction,
)
from maxmargin.models.signature import SEARCH_SIGNATURE

QUERIES = 4  # plain argmaxes before the costs are told apart
ROUNDING = 1e-9  # of scores: so far below what is needed an output is not given up


class Tables(NamedTuple):
    """One example, and what :func:`ask_wrong` answers from."""

    meta: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    w: np.ndarray
    example: int
    first: np.int64  # token
    T: np.int64  # tokens
    fwork: np.ndarray  # scratch of :func:`~maxmargin.models.chain_kernel.chain_plane`
    scores: np.ndarray  # float64 (T x S,)
    costs: np.ndarray  # float64 (T x S,)
    free: np.ndarray  # float64 (T x S,): best starts without cost that end in each label; -inf where it costs something
    arcs: np.ndarray  # float64 (K x S,): those into the last token looked at, where they differ
    truth: float  # score of the true labels


@register_jitable
def chain_tables(meta, ints, floats, w, example, fwork):
    """The tables of an example. O(T (nnz + K f)) where f labels cost nothing, at each position; mostly one."""
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    first, last = np.int64(ints[meta[ck.AT_TOKENS] + example]), np.int64(ints[meta[ck.AT_TOKENS] + example + 1])
    T = last - first
    scores, costs, free = np.empty(T * S), np.zeros(T * S), np.full(T * S, -np.inf)
    ck.score_table(meta, ints, floats, w, example, 0.0, scores)
    arcs = w[meta[ck.W_TRANSITION] : meta[ck.W_TRANSITION] + K * S]
    if meta[ck.N_EDGE] > 0 or meta[ck.CONSTRAINED]:
        arcs = fwork[T * S : T * S + K * S]
        ck.pair_table(meta, ints, floats, w, first, arcs)
    truth = ck.true_score(meta, ints, floats, w, first, T, scores, arcs)
    tables = Tables(meta, ints, floats, w, example, first, T, fwork, scores, costs, free, arcs, truth)
    for t in range(T):
        if t > 0:
            arcs_into(tables, t)
        weight = floats[meta[ck.AT_TOKEN_WEIGHT] + first + t]
        begin = meta[ck.AT_COST] + ints[meta[ck.AT_LABELS] + first + t] * K
        for k in range(K):
            costs[t * S + k] = weight * floats[begin + k]
            if costs[t * S + k] == 0.0:
                free[t * S + k] = scores[t * S + k] + (best_left(tables, free, t, k)[0] if t > 0 else 0.0)
    return tables


@register_jitable
def arcs_into(tables, t):
    """Fill ``arcs`` with the scores of those into position t > 0, where they differ from position to position."""
    if tables.meta[ck.N_EDGE]:
        ck.pair_table(tables.meta, tables.ints, tables.floats, tables.w, tables.first + t, tables.arcs)


@register_jitable
def best_left(tables, starts, t, k):
    """The best score with which starts before position t lead to label k, and the label that they end in."""
    K, S = tables.meta[ck.N_LABELS], tables.meta[ck.STRIDE]
    reach, left = -np.inf, 0
    for j in range(K):
        v = starts[(t - 1) * S + j] + tables.arcs[j * S + k]
        if v > reach:
            reach, left = v, j
    return reach, left


@register_jitable
def ask_wrong(plane, tables, mu, output, result):
    """The labels of positive cost with the largest ``mu cost - w . psi``, its value, bound and cost; -1 for none.

    The first ``T x S`` numbers of ``fwork`` keep the best starts that cost something. They come from such starts, or
    from one without cost at the first label that costs something:

        starts[t, k] = score[t, k] + mu cost[t, k] + max_j (starts[t-1, j], and where k costs, free[t-1, j]) + arc[j, k]
    """
    meta, T, scores, costs, free, arcs = tables.meta, tables.T, tables.scores, tables.costs, tables.free, tables.arcs
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    starts, behind = tables.fwork[: T * S], T * S + K * S
    work, reach = tables.fwork[behind : behind + S], tables.fwork[behind + S : behind + 2 * S]
    pairs, prune = arcs.reshape((K, S)), K >= ck.PRUNE_FROM
    for i in range(T * S):
        starts[i] = scores[i] + mu * costs[i] if i >= S or costs[i] > 0.0 else -np.inf
    for t in range(1, T):
        arcs_into(tables, t)
        if prune and (t == 1 or meta[ck.N_EDGE] > 0):
            ck.row_maxima(arcs, K, S, reach)
        before, now = starts[(t - 1) * S : t * S], starts[t * S : t * S + S]
        if prune:
            ck.pruned_step(before, now, pairs, reach, work)
        else:
            viterbi_step(before, now, pairs, work)
        for j in range(K):
            if free[(t - 1) * S + j] > -np.inf:
                begin, row = free[(t - 1) * S + j], pairs[j]
                score, cost = scores[t * S : t * S + S], costs[t * S : t * S + S]
                for k in range(S):
                    v = begin + row[k] + score[k] + mu * cost[k] if cost[k] > 0.0 else -np.inf
                    now[k] = v if v > now[k] else now[k]
    top, label = viterbi_last(starts[(T - 1) * S :], K)
    if label < 0:
        return -1
    costly = True
    for t in range(T - 1, -1, -1):
        output[t] = label
        if t > 0:
            arcs_into(tables, t)
            v, left = best_left(tables, free, t, label)
            if costly:
                u, other = best_left(tables, starts, t, label)
                costly = u >= v or costs[t * S + label] == 0.0
                left = other if costly else left
            label = left
    result[0] = top - tables.truth
    result[1], result[2] = result[0], ck.chain_cost(meta, tables.ints, tables.floats, tables.example, output)
    return 0


@register_jitable
def best_ends(tables, mu, ends):
    """Fill ``ends`` (T x S) with the most that labels behind each label can add to ``mu cost + score``."""
    meta, T, scores, costs, arcs = tables.meta, tables.T, tables.scores, tables.costs, tables.arcs
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    back, column, work = np.full((K, S), -np.inf), np.empty(S), np.empty(S)
    ends[:] = 0.0
    for t in range(T - 1, 0, -1):
        arcs_into(tables, t)
        if t == T - 1 or meta[ck.N_EDGE]:
            for j in range(K):
                for k in range(K):
                    back[k, j] = arcs[j * S + k]
        for k in range(S):
            column[k] = scores[t * S + k] + mu * costs[t * S + k] + ends[t * S + k]
        viterbi_step(column, ends[(t - 1) * S : t * S], back, work)


@register_jitable
def best_of_all_costs(tables, lam, mu, unit, power, top, output):
    """Write the labels of largest ``cost^p (lam - w . psi)`` if that is above ``top``; the larger of the two.

    One table holds the best score of the starts of every cost. The last query, at cost weight mu, left the best starts
    that end in each label. With the best ends, a label at a position, or a start of known cost, has the largest

        reach = lam + mu cost - w . psi    of all labellings that go through it.

    A labelling of cost g has the value ``g^p (reach - mu g)``, at most what the touching line allows, so that whatever
    has a reach below ``(1 + p) (top (mu / p)^p)^(1 / (1 + p))`` is left out: mostly all but a few labels and costs. At
    worst O(T K^2 c) time and O(T K c) memory for c different costs.

    Bauer, Goernitz, Biegler, Mueller, Kloft 2014, Efficient algorithms for exact inference in sequence labeling SVMs.
    """
    meta, T, scores, costs, arcs, truth = tables.meta, tables.T, tables.scores, tables.costs, tables.arcs, tables.truth
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    starts, ends = tables.fwork[: T * S], np.empty(T * S)
    best_ends(tables, mu, ends)
    size, whole = abs(truth) + lam, lam - truth
    needed = (1.0 + power) * (top * (mu / power) ** power) ** (1.0 / (1.0 + power))
    for k in range(K):
        size = max(size, abs(whole + starts[(T - 1) * S + k])) if starts[(T - 1) * S + k] > -np.inf else size
    needed -= ROUNDING * size + whole  # of starts and ends together

    label, begin, width = np.empty(T * K, np.int64), np.zeros(T + 1, np.int64), np.int64(1)
    for t in range(T):
        begin[t + 1], dearest = begin[t], np.int64(0)
        for k in range(K):
            if max(starts[t * S + k], tables.free[t * S + k]) + ends[t * S + k] >= needed:
                label[begin[t + 1]] = k
                begin[t + 1] += 1
                dearest = max(dearest, np.int64(np.rint(costs[t * S + k] / unit)))
        width += dearest
    low, high = np.empty(begin[T], np.int64), np.empty(begin[T], np.int64)
    table = np.empty((begin[T], width))
    for t in range(T):
        if t > 0:
            arcs_into(tables, t)
        for v in range(begin[t], begin[t + 1]):
            k, row = label[v], table[v]
            own, score, end = np.int64(np.rint(costs[t * S + k] / unit)), scores[t * S + k], ends[t * S + k]
            least, most = width, -1
            if t == 0:
                least, most = own, own
                row[own] = score
            else:
                for u in range(begin[t - 1], begin[t]):
                    if low[u] <= high[u]:
                        least, most = min(least, low[u] + own), max(most, high[u] + own)
                row[least : most + 1] = -np.inf
                for u in range(begin[t - 1], begin[t]):
                    before, arc = table[u], arcs[label[u] * S + k] + score
                    for c in range(low[u], high[u] + 1):
                        reach = before[c] + arc
                        row[c + own] = reach if reach > row[c + own] else row[c + own]
            low[v], high[v] = width, -1
            for c in range(least, most + 1):
                if row[c] + mu * unit * c + end >= needed:
                    low[v], high[v] = min(low[v], c), c
                else:
                    row[c] = -np.inf
    chosen, c, found = -1, 0, top
    for v in range(begin[T - 1], begin[T]):
        for paid in range(max(low[v], 1), high[v] + 1):
            value = raised(paid * unit, power) * (whole + table[v, paid])
            if value > found:
                found, chosen, c = value, v, paid
    for t in range(T - 1, -1, -1):
        if chosen < 0:
            break
        k = label[chosen]
        output[t] = k
        c -= np.int64(np.rint(costs[t * S + k] / unit))
        reach, chosen = -np.inf, -1
        if t > 0:
            arcs_into(tables, t)
            for u in range(begin[t - 1], begin[t]):
                if low[u] <= c <= high[u] and table[u, c] + arcs[label[u] * S + k] > reach:
                    reach, chosen = table[u, c] + arcs[label[u] * S + k], u
    return found


@kernel(SEARCH_SIGNATURE)
def chain_slack(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result):
    """The labels of largest ``cost(y)^p (lam - w . psi(y))``, and planes of their runs of errors.

    The best wrong labels come first: where they have their margin, so have all others. Then a few queries, which mostly
    settle it, and at last all costs that they leave open. The true labels, whose margin is 0, must be left out: with
    them no query could prove that the others have theirs. The number of each example is the unit of its costs; where
    they have none it is the least of them, the queries go on, and the bound may stay open.
    """
    if lam <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    first, last = ints[meta[ck.AT_TOKENS] + example], ints[meta[ck.AT_TOKENS] + example + 1]
    T, truth = last - first, meta[ck.AT_LABELS] + first
    power, least, unit = (
        search_power(meta, floats),
        search_number(meta, floats, example),
        search_unit(meta, floats, example),
    )
    result[:4], top, bound = 0.0, 0.0, 0.0
    best = ints[truth : truth + T].copy()
    if T == 0 or least == 0.0:  # nothing costs anything
        output[:T] = best
        return min(emit, 1)
    tables = chain_tables(meta, ints, floats, w, example, fwork)
    if ask_wrong(plane, tables, 0.0, output, result) >= 0 and result[0] > -lam:
        best[:] = output[:T]
        h, g = lam + result[0], result[2]
        made, mu, top, _at, bound = try_cost_weights(
            ask_wrong,
            plane,
            tables,
            lam,
            least,
            power * h / g,
            raised(g, power) * h,
            power,
            QUERIES if unit > 0.0 else MOST_QUERIES,
            best,
            output,
            result,
        )
        if bound > top and unit > 0.0:
            top = best_of_all_costs(tables, lam, mu, unit, power, top, best)
            bound = top
    output[:T] = best
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, max(bound, top)
    return made


@kernel(SEARCH_SIGNATURE)
def chain_wrong(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of positive cost with the largest ``lam - w . psi``, lam = cost_weight, and planes of runs of errors.

    The prediction when it is wrong; otherwise the best path among those that cost something.
    """
    made, wrong = wrong_prediction(
        plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
    )
    if wrong:
        return made
    result[:2] = 0.0
    first, last = ints[meta[ck.AT_TOKENS] + example], ints[meta[ck.AT_TOKENS] + example + 1]
    if first == last or cost_weight <= 0.0:  # nothing is wrong, or only the prediction is wanted
        return made
    tables, top = chain_tables(meta, ints, floats, w, example, fwork), 0.0
    if ask_wrong(plane, tables, 0.0, output, result) >= 0:
        top = max(cost_weight + result[0], 0.0)
    if top == 0.0:  # every wrong output has its margin, or there is none
        output[: last - first] = ints[meta[ck.AT_LABELS] + first : meta[ck.AT_LABELS] + last]
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, top
    return made
