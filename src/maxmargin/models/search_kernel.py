"""Compiled code that serves every model: searches round its plain argmax, the decoding loop, dense planes."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.slack_search_kernel import next_cost_weight, proven_bound, raised
from maxmargin.kernel import kernel
from maxmargin.models.signature import DECODE_SIGNATURE, SEARCH_SIGNATURE

MOST_QUERIES = 24  # of a search; three are usual
EQUAL = 1e-12  # relative difference of numbers that are the same but for rounding


@kernel(SEARCH_SIGNATURE, borrows=True)
def argmax(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of largest ``w . phi + cost_weight cost``: one question."""
    return plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result)


@register_jitable
def search_power(meta, floats):
    """The power p of what a search maximises, ``cost^p (lam - w . psi)``; see :mod:`maxmargin.models.signature`."""
    return floats[meta[len(meta) - 1]]


@register_jitable
def search_number(meta, floats, example):
    """The number that a search has for each example, such as its least positive cost."""
    return floats[meta[len(meta) - 1] + 1 + example]


@register_jitable
def search_unit(meta, floats, example):
    """The number of which an example's costs are whole multiples, 0 for none: behind the numbers of all examples."""
    base = meta[len(meta) - 1] + 1
    return floats[base + (len(floats) - base) // 2 + example]


@register_jitable
def is_open(result):
    """Whether a search has left a bound above its value."""
    return result[1] > result[0] * (1.0 + EQUAL)


@register_jitable
def wrong_prediction(
    plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
):  # fmt: skip
    """The prediction, and whether it is wrong; where it is, it is the best wrong output, with that value."""
    made = plane(meta, ints, floats, w, example, 0.0, emit, iwork, fwork, output, index, value, result)
    if made >= 0 and result[2] <= 0.0:
        return made, False
    result[0] += cost_weight
    result[1] += cost_weight
    return made, True


@register_jitable
def no_plane(made, result):
    """The plane of the truth in place of those of another output that costs nothing, which is not among the wrong."""
    result[2], result[3] = 0.0, 0.0
    return min(made, 1)


@kernel(SEARCH_SIGNATURE, borrows=True)
def best_wrong(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of positive cost with the largest ``lam - w . psi``, lam = cost_weight, and a proven bound.

    The prediction is the answer when it is wrong. Otherwise all wrong outputs score at most as much as the true one,
    ``h(y) = -w . psi(y) <= 0``, and Dinkelbach's iteration finds the largest ratio of h to cost: the argmax at cost
    weight ``mu = -h(y') / cost(y')`` of the output y' at hand is a better one, or proves ``h(y) <= -mu cost(y)``, hence
    ``h <= -mu least`` with the least positive cost of the example. That is the value of y' when y' has the least cost,
    and an upper bound always.
    """
    made, wrong = wrong_prediction(
        plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
    )
    if wrong:
        return made
    least = search_number(meta, floats, example)
    if least <= 0.0 or cost_weight <= 0.0:  # no output is wrong, or only the prediction is wanted
        result[0], result[1] = 0.0, 0.0
        return made if cost_weight <= 0.0 else no_plane(made, result)
    mu = 2.0 * cost_weight / least  # where the true output still wins, all others have twice their margin
    bound, best, at = np.inf, -np.inf, -1.0
    for n in range(MOST_QUERIES):
        made = plane(meta, ints, floats, w, example, mu, emit, iwork, fwork, output, index, value, result)
        result[len(result) - 1] = n + 2.0
        bound, cost = min(bound, result[1] - mu * least), result[2]
        if cost <= 0.0:
            break
        h = result[0] - mu * cost
        if h > best:
            best, at = h, mu
        ratio = max(-h / cost, 0.0)
        if bound <= best or ratio >= mu * (1.0 - EQUAL):
            break
        mu = ratio
    if at < 0.0:
        result[0], result[1] = 0.0, max(cost_weight + bound, 0.0)
        return no_plane(made, result)
    if at != mu:
        made = plane(meta, ints, floats, w, example, at, emit, iwork, fwork, output, index, value, result)
    result[0] = cost_weight + best
    result[1] = max(cost_weight + max(bound, best), 0.0)
    return made


@register_jitable(inline="always")  # functions passed to a kernel in another way could not be cached
def try_cost_weights(ask, plane, question, lam, least, mu, top, power, queries, best, output, result):
    """Ask at one cost weight after another, first mu, for the largest ``cost^p (lam - w . psi)`` above ``top``.

    ``ask(plane, question, mu, output, result)`` writes the output of largest ``mu cost - w . psi`` with value, bound
    and cost as the kernel of a model does, and returns less than 0 where there is none; it may leave the true output
    out. ``least`` is the least positive cost (0: unknown). When the true output wins at ``mu = lam / least``, all
    others have their margin and nothing is left to gain. ``best`` receives the first labels of the best output, as
    many as it has room for. Returns what the last query returned and its mu, the largest value found, the mu where it
    was found (-1: nowhere), and a bound, the same as the value when that is the largest.

    Choi, Meshi, Srebro 2016, Fast and scalable structural SVM with slack rescaling.
    """
    kept, at, bound, made = np.zeros((2, 4)), -1.0, np.inf, 0
    rounding = EQUAL * lam * raised(least, power)
    for n in range(queries):
        made = ask(plane, question, mu, output, result)
        if made < 0:
            break
        result[len(result) - 1] = n + 1.0
        g = result[2]
        h = lam + result[0] - mu * g
        if g > 0.0 and h > 0.0 and raised(g, power) * h > top:
            top, at = raised(g, power) * h, mu
            best[:] = output[: len(best)]
        reach = lam + result[1]
        bound = min(bound, proven_bound(kept, mu, reach, power, least))
        if bound <= top * (1.0 + EQUAL) + rounding:
            bound = top
            break
        following = next_cost_weight(kept, mu, h, g, reach, power)
        if following == 0.0 or n + 1 == queries:
            break
        mu = following
    return made, mu, top, at, bound


@register_jitable
def ask_plane(plane, question, mu, output, result):
    """A query by the model's own kernel."""
    meta, ints, floats, w, example, emit, iwork, fwork, index, value = question
    return plane(meta, ints, floats, w, example, mu, emit, iwork, fwork, output, index, value, result)


@kernel(SEARCH_SIGNATURE)
def slack(plane, meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The output of largest ``cost^p (lam - w . psi)`` that plain argmaxes find, lam = cost_weight, and a proven bound.

    It is the best among the corners of the hull of costs and violations.
    """
    question = (meta, ints, floats, w, example, emit, iwork, fwork, index, value)
    if cost_weight <= 0.0:  # the prediction
        return ask_plane(plane, question, 0.0, output, result)
    power, least = search_power(meta, floats), search_number(meta, floats, example)
    mu = cost_weight / least if least > 0.0 else cost_weight
    made, mu, top, at, bound = try_cost_weights(
        ask_plane, plane, question, cost_weight, least, mu, 0.0, power, MOST_QUERIES, output[:0], output, result
    )
    if made >= 0 and at >= 0.0 and at != mu:
        made = ask_plane(plane, question, at, output, result)
    result[0], result[1] = top, max(bound, top)
    return made


@kernel(DECODE_SIGNATURE)
def decode_batch(
    plane, meta, ints, floats, w, examples, cost_weight, iwork, fwork, output, at, outputs, cost, value, bound
):  # fmt: skip
    """Decoded outputs of ``examples``, that of example ``e`` written from ``outputs[at[e]]`` to ``at[e + 1]``.

    Returns -1, or the position of the first example that allows no output.
    """
    result = np.zeros(5)
    index, entries = np.empty(0, np.int32), np.empty(0)
    for e in range(len(examples)):
        found = plane(meta, ints, floats, w, examples[e], cost_weight, 0, iwork, fwork, output, index, entries, result)
        if found < 0:
            return e
        value[e], bound[e], cost[e] = result[0], result[1], result[2]
        outputs[at[e] : at[e + 1]] = output[: at[e + 1] - at[e]]
    return -1


@register_jitable
def dense_plane(psi, w, cost, cost_weight, gap, emit, has_labels, index, value, result):
    """Write the answer of ``psi = phi(truth) - phi(labels)``, whose value is at most ``gap`` from the largest."""
    gain = cost_weight * cost
    for c in range(len(psi)):
        gain -= w[c] * psi[c]
    result[0] = gain
    # the truth gives 0; an argmax may miss it by rounding
    result[1] = max(gain + gap, 0.0) if has_labels else gain + gap
    result[2] = cost
    result[3] = 0.0
    if emit == 0 or not has_labels:
        return 0
    nnz = 0
    for c in range(len(psi)):
        if psi[c] != 0.0:
            index[nnz], value[nnz] = c, psi[c]
            nnz += 1
    result[3] = nnz
    return 1
