"""Exact searches of the chain model, compiled: the argmax of cost times violation, and the best wrong output.

The scores of an example are added up once, and all further questions are answered from their table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.recursion_chain_kernel import viterbi_step
from maxmargin.kernel import kernel
from maxmargin.models import chain_kernel as ck
from maxmargin.models.search_kernel import EQUAL, try_cost_weights
from maxmargin.models.signature import SEARCH_SIGNATURE

QUERIES = 4  # plain argmaxes before the costs are told apart
ROUNDING = 1e-9  # of scores: so far below what is needed an output is not given up


class Tables(NamedTuple):
    """One example, and what :func:`ask_table` answers from."""

    meta: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    w: np.ndarray
    example: int
    first: int  # token
    T: int  # tokens
    fwork: np.ndarray  # scratch of :func:`~maxmargin.models.chain_kernel.chain_plane`
    scores: np.ndarray  # float64 (T x S,)
    costs: np.ndarray  # float64 (T x S,)
    arcs: np.ndarray  # float64 (K x S,): those into the last token looked at, where they differ
    truth: float  # score of the true labels


@register_jitable
def chain_tables(meta, ints, floats, w, example, fwork):
    """The tables of an example. O(T (nnz + K))."""
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    first, last = np.int64(ints[meta[ck.AT_TOKENS] + example]), np.int64(ints[meta[ck.AT_TOKENS] + example + 1])
    T = last - first
    scores, costs = np.empty(T * S), np.zeros(T * S)
    ck.score_table(meta, ints, floats, w, example, 0.0, scores)
    for t in range(T):
        weight = floats[meta[ck.AT_TOKEN_WEIGHT] + first + t]
        begin = meta[ck.AT_COST] + ints[meta[ck.AT_LABELS] + first + t] * K
        for k in range(K):
            costs[t * S + k] = weight * floats[begin + k]
    arcs = w[meta[ck.W_TRANSITION] : meta[ck.W_TRANSITION] + K * S]
    if meta[ck.N_EDGE] > 0 or meta[ck.CONSTRAINED]:
        arcs = fwork[T * S : T * S + K * S]
        ck.pair_table(meta, ints, floats, w, first, arcs)
    truth = ck.true_score(meta, ints, floats, w, first, T, scores, arcs)
    return Tables(meta, ints, floats, w, example, first, T, fwork, scores, costs, arcs, truth)


@register_jitable
def arcs_into(tables, t):
    """Fill ``arcs`` with the scores of those into position t > 0, where they differ from position to position."""
    if tables.meta[ck.N_EDGE]:
        ck.pair_table(tables.meta, tables.ints, tables.floats, tables.w, tables.first + t, tables.arcs)


@register_jitable
def ask_table(plane, tables, mu, output, result):
    """The labels of largest ``mu cost - w . psi``, with value, bound and cost; ``fwork`` keeps the best starts."""
    meta, ints, floats, w, first, T = tables.meta, tables.ints, tables.floats, tables.w, tables.first, tables.T
    scores, costs, table = tables.scores, tables.costs, tables.fwork[: len(tables.scores)]
    for i in range(len(scores)):
        table[i] = scores[i] + mu * costs[i]
    top, found = ck.best_path(meta, ints, floats, w, first, T, table, tables.arcs, tables.fwork, output)
    if not found:
        return -1
    right = True  # rounding may leave the true labels a little above themselves
    for t in range(T):
        right = right and output[t] == ints[meta[ck.AT_LABELS] + first + t]
    result[0] = 0.0 if right else top - tables.truth
    result[1], result[2] = result[0], ck.chain_cost(meta, ints, floats, tables.example, output)
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
    that end in each label; with the best ends, a label at a position, or a start of known cost, has the largest

        reach = lam + mu cost - w . psi    of all labelings that go through it.

    A labeling of cost g has the value ``g^p (reach - mu g)``, at most what the touching line allows, so that whatever
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

    label, begin, width = np.empty(T * K, np.int64), np.zeros(T + 1, np.int64), 1
    for t in range(T):
        begin[t + 1], most = begin[t], 0
        for k in range(K):
            if starts[t * S + k] + ends[t * S + k] >= needed:
                label[begin[t + 1]] = k
                begin[t + 1] += 1
                most = max(most, np.int64(np.rint(costs[t * S + k] / unit)))
        width += most
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
            value = (paid * unit) ** power * (whole + table[v, paid])
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


@register_jitable
def best_product(plane, meta, ints, floats, w, example, lam, emit, iwork, fwork, output, index, value, result, power):
    """The labels of largest ``cost(y)^p (lam - w . psi(y))``, and planes of their runs of errors.

    A few queries first, which mostly settle it, then all costs that they leave open. The unit of cost of each example
    stands in ``floats`` where the last entry of ``meta`` says.
    """
    if lam <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    first, last = ints[meta[ck.AT_TOKENS] + example], ints[meta[ck.AT_TOKENS] + example + 1]
    T, truth = last - first, meta[ck.AT_LABELS] + first
    unit = floats[meta[len(meta) - 1] + example]
    result[:4] = 0.0
    best = ints[truth : truth + T].copy()
    if T == 0 or unit == 0.0:  # nothing costs anything
        output[:T] = best
        return min(emit, 1)
    tables = chain_tables(meta, ints, floats, w, example, fwork)
    made, mu, top, _at, bound = try_cost_weights(
        ask_table, plane, tables, lam, unit, power, QUERIES, best, output, result
    )
    if made < 0:
        return made
    if bound > top * (1.0 + EQUAL):
        top = best_of_all_costs(tables, lam, mu, unit, power, top, best)
    output[:T] = best
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, top
    return made


@kernel(SEARCH_SIGNATURE)
def chain_slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of largest ``cost (lam - w . psi)``; exact."""
    return best_product(
        plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result, 1.0
    )  # fmt: skip


@kernel(SEARCH_SIGNATURE)
def chain_sqrt_slack(
    plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
):  # fmt: skip
    """The output of largest ``sqrt(cost) (lam - w . psi)``; exact."""
    return best_product(
        plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result, 0.5
    )  # fmt: skip


@register_jitable
def best_costly_path(tables, output):
    """Write the best labels with a positive cost; their score, -inf when there are none.

    Two scores for each position and label: the best start without cost and the best start with cost,

        free[t, k]   = score[t, k] + max_j free[t-1, j] + arc[j, k]                      where k costs nothing at t
        costly[t, k] = score[t, k] + max_j (costly[t-1, j] or, where k costs, free[t-1, j]) + arc[j, k].

    O(T K^2) time, O(T K) memory.
    """
    meta, T, scores, costs, arcs = tables.meta, tables.T, tables.scores, tables.costs, tables.arcs
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    best = np.full((T, 2, K), -np.inf)  # without and with cost
    came = np.zeros((T, 2, K), np.int32)
    for k in range(K):
        best[0, 1 if costs[k] > 0.0 else 0, k] = scores[k]
    for t in range(1, T):
        arcs_into(tables, t)
        for k in range(K):
            for before in range(2):
                after = 1 if before or costs[t * S + k] > 0.0 else 0
                for j in range(K):
                    reach = best[t - 1, before, j] + arcs[j * S + k] + scores[t * S + k]
                    if reach > best[t, after, k]:
                        best[t, after, k] = reach
                        came[t, after, k] = before * K + j
    last, state = 0, 1
    for k in range(1, K):
        if best[T - 1, 1, k] > best[T - 1, 1, last]:
            last = k
    top = best[T - 1, 1, last]
    if top > -np.inf:
        for t in range(T - 1, -1, -1):
            output[t] = last
            state, last = came[t, state, last] // K, came[t, state, last] % K
    return top


@kernel(SEARCH_SIGNATURE)
def chain_wrong(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of positive cost with the largest ``lam - w . psi``, lam = cost_weight, and planes of runs of errors.

    The prediction when it is wrong; otherwise the best path among those that cost something.
    """
    made = plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    if made < 0 or result[2] > 0.0:
        result[0] += cost_weight
        result[1] += cost_weight
        return made
    result[:2] = 0.0
    first, last = ints[meta[ck.AT_TOKENS] + example], ints[meta[ck.AT_TOKENS] + example + 1]
    if first == last or cost_weight <= 0.0:  # nothing is wrong, or only the prediction is wanted
        return made
    tables = chain_tables(meta, ints, floats, w, example, fwork)
    top = cost_weight + best_costly_path(tables, output) - tables.truth
    if top <= 0.0:  # every wrong output has its margin, or there is none
        output[: last - first] = ints[meta[ck.AT_LABELS] + first : meta[ck.AT_LABELS] + last]
        top = 0.0
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, top
    return made
