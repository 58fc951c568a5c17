"""Exact searches of the chain model, compiled: the argmax of cost times violation, and the best wrong output."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.recursion_kernel import fill_by_cost, path_of_cost
from maxmargin.kernel import kernel
from maxmargin.models import chain_kernel as ck
from maxmargin.models.signature import SEARCH_SIGNATURE

QUERIES = 3  # plain argmaxes before the costs are told apart
EQUAL = 1.0 + 1e-12


@register_jitable
def chain_tables(meta, ints, floats, w, example):
    """Scores (T, K), those of arcs by right and left label (T - 1 or 1, K, K), costs (T, K), the score of the truth."""
    K, S = meta[ck.N_LABELS], meta[ck.STRIDE]
    first, last = np.int64(ints[meta[ck.AT_TOKENS] + example]), np.int64(ints[meta[ck.AT_TOKENS] + example + 1])
    T, labels = last - first, meta[ck.AT_LABELS] + first
    flat, pair = np.empty(T * S), np.empty(K * S)
    ck.score_table(meta, ints, floats, w, example, 0.0, flat)
    unary, cost = np.empty((T, K)), np.empty((T, K))
    arcs = np.empty((T - 1 if meta[ck.N_EDGE] and T > 1 else 1, K, K))
    truth = 0.0
    for t in range(T):
        true = np.int64(ints[labels + t])
        weight = floats[meta[ck.AT_TOKEN_WEIGHT] + first + t]
        for k in range(K):
            unary[t, k] = flat[t * S + k]
            cost[t, k] = weight * floats[meta[ck.AT_COST] + true * K + k]
        truth += unary[t, true]
        if t == 1 or (t > 1 and meta[ck.N_EDGE]):
            ck.pair_table(meta, ints, floats, w, first + t, pair)
            for j in range(K):
                for k in range(K):
                    arcs[t - 1, k, j] = pair[j * S + k]
        if t > 0:
            truth += arcs[t - 1 if meta[ck.N_EDGE] else 0, true, np.int64(ints[labels + t - 1])]
    return unary, arcs, cost, truth


@register_jitable
def best_of_all_costs(meta, ints, floats, w, example, cost_weight, unit, most, power, output):
    """Write the output of largest ``cost^p (cost_weight - w . psi)`` among those of cost up to ``most``; its value.

    One table holds the best score for every cost (:mod:`~maxmargin.inference.recursion_kernel`). When no output has a
    positive value, ``output`` stays as it is and 0 is returned. O(T K^2 most / unit).
    """
    unary, arcs, cost, truth = chain_tables(meta, ints, floats, w, example)
    T, K = unary.shape
    steps = np.rint(cost / unit).astype(np.int64)
    width = np.int64(np.floor(most / unit * (1.0 + 1e-9))) + 1
    table, scores = np.empty((T * K, width)), np.empty(width)
    node, arc, costs = unary.reshape(-1), arcs.reshape(-1), steps.reshape(-1)
    none, free = np.empty(0, np.int32), np.empty(0, np.int64)  # no lists of arcs, and no cost of arcs
    fill_by_cost(node, none, none, arc, K, costs, free, table, scores)
    top, chosen = 0.0, -1
    for c in range(1, width):
        v = (c * unit) ** power * (cost_weight + scores[c] - truth)
        if v > top:
            top, chosen = v, c
    if chosen > 0:
        path_of_cost(node, none, none, arc, K, costs, free, table, chosen, output[:T], none)
        for t in range(T):
            output[t] -= t * K
    return top


@register_jitable
def best_product(
    plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result, power
):  # fmt: skip
    """The output of largest ``cost(y)^p (lam - w . psi(y))``, lam = cost_weight, and planes of its runs of errors.

    With ``h = lam - w . psi`` and ``g = cost``, the argmax at cost weight mu proves ``h + mu g <= B`` for all outputs:

    * at ``mu = lam / unit`` (unit: the smallest cost there is) the true output wins only if every other has h <= 0;
    * no output has a value above that of the point where ``g^p h`` touches the line, ``p h = mu g``: when that is
      reached the search is over, most often with mu = p h / g of the answer before;
    * an output that beats the best so far has a cost g with ``g^p (B - mu g)`` above it: only costs up to the largest
      such one are left for the exact search over all costs.

    The unit of cost of each example stands in ``floats`` where the last entry of ``meta`` says.

    Choi, Meshi, Srebro 2016 for the queries; Bauer et al. 2014 for the exact search.
    """
    if cost_weight <= 0.0:  # the prediction
        return plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    first, last = ints[meta[ck.AT_TOKENS] + example], ints[meta[ck.AT_TOKENS] + example + 1]
    T, truth = last - first, meta[ck.AT_LABELS] + first
    unit = floats[meta[len(meta) - 1] + example]
    result[:4] = 0.0
    top, best = 0.0, ints[truth : truth + T].copy()
    if T == 0 or unit == 0.0:  # nothing costs anything
        output[:T] = best
        return min(emit, 1)
    mu, most, bound = cost_weight / unit, np.inf, np.inf
    for query in range(QUERIES):
        plane(meta, ints, floats, w, example, mu, 0, iwork, fwork, output, index, value, result)
        reach, g = cost_weight + result[0], result[2]
        h = reach - mu * g
        right = True  # rounding may leave the true output a little above itself
        for t in range(T):
            right = right and output[t] == ints[truth + t]
        if query == 0 and (right or result[0] <= 0.0):
            bound = 0.0
            break
        if h > 0.0 and g**power * h > top:
            top = g**power * h
            best[:] = output[:T]
        touching = power * reach / ((1.0 + power) * mu)
        bound = min(bound, touching**power * (reach - mu * touching))
        if bound <= top * EQUAL:
            break
        most = min(most, largest_cost(reach, mu, unit, top, power))
        if g <= 0.0 or h <= 0.0 or power * h == mu * g:
            break
        mu = power * h / g
    if bound > top * EQUAL:
        top = max(top, best_of_all_costs(meta, ints, floats, w, example, cost_weight, unit, most, power, best))
    output[:T] = best
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, top
    return made


@register_jitable
def largest_cost(reach, mu, unit, top, power):
    """The largest g with ``g^p (reach - mu g) >= top``; for p other than 1, as a multiple of unit."""
    if power == 1.0:
        return (reach + np.sqrt(max(reach * reach - 4.0 * mu * top, 0.0))) / (2.0 * mu)
    steps = np.floor(reach / (mu * unit))
    while steps > 0.0 and (steps * unit) ** power * (reach - mu * steps * unit) * EQUAL < top:
        steps -= 1.0
    return steps * unit


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


@kernel("float64(float64[:, ::1], float64[:, :, ::1], float64[:, ::1], int32[::1])", fast=False)
def best_costly_path(unary, arcs, cost, output):
    """Write the best labeling of a chain with a positive cost; its score, -inf when there is none.

    Two scores for each position and label: the best start without cost and the best start with cost,

        free[t, k]   = unary[t, k] + max_j free[t-1, j] + arc[k, j]                      where k costs nothing at t
        costly[t, k] = unary[t, k] + max_j (costly[t-1, j] or, where k costs, free[t-1, j]) + arc[k, j].

    O(T K^2) time, O(T K) memory.
    """
    T, K = unary.shape
    best = np.full((T, 2, K), -np.inf)  # without and with cost
    came = np.zeros((T, 2, K), np.int32)
    for k in range(K):
        best[0, 1 if cost[0, k] > 0.0 else 0, k] = unary[0, k]
    for t in range(1, T):
        arc = arcs[t - 1 if arcs.shape[0] > 1 else 0]
        for k in range(K):
            for before in range(2):
                after = 1 if before or cost[t, k] > 0.0 else 0
                for j in range(K):
                    reach = best[t - 1, before, j] + arc[k, j] + unary[t, k]
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
    T = ints[meta[ck.AT_TOKENS] + example + 1] - ints[meta[ck.AT_TOKENS] + example]
    if T == 0 or cost_weight <= 0.0:  # nothing is wrong, or only the prediction is wanted
        return made
    unary, arcs, cost, truth = chain_tables(meta, ints, floats, w, example)
    top = cost_weight + best_costly_path(unary, arcs, cost, output) - truth
    if top <= 0.0:  # every wrong output has its margin, or there is none
        for t in range(T):
            output[t] = ints[meta[ck.AT_LABELS] + ints[meta[ck.AT_TOKENS] + example] + t]
        top = 0.0
    made = ck.chain_planes(meta, ints, floats, example, emit, output, iwork, index, value, result)
    result[0], result[1] = top, top
    return made
