"""The compiled loop of the primal family: decode an example, take one sparse step, go on.

The weights are ``w = SCALE * vector``, so that shrinking them costs one multiplication, and the weighted sum of all
iterates is ``mean + TOTAL * vector``, so that averaging costs nothing but what a step touches anyway. An argmax at w
with cost weight lam is one at ``vector`` with cost weight ``lam / SCALE``, so nothing is ever multiplied out.

Where weights must be >= 0, ``shown`` holds the vector with its negative entries there cut off, and ``w = SCALE *
shown``; steps are those of the vector, which stays a combination of planes. Without signs ``shown`` is empty.

Behind the weights the vector carries a dual point, in columns that shrink and average with the rest: the multipliers
of each example's planes added up (n columns), ``sum alpha b`` (1), the multipliers of the concave planes that a step of
CCCP subtracts (n), and the share of earlier linear terms that is left (1).
"""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.batch_kernel import PACK, count
from maxmargin.oracles.rescaling_kernel import rescaled
from maxmargin.planes_kernel import sparse_add, sparse_dot

SCALE, TOTAL, RHO, STEPS, SQUARE, UPDATES = range(6)  # of ``numbers``
NUMBERS = 6
SUBGRADIENT, PERCEPTRON, MIRA = 0, 1, 2
INVERSE, CONSTANT, POWER = 0, 1, 2  # step sizes 1 / (t + t0), eta0, eta0 / t^power
UNIFORM, WEIGHTED = 1, 2
SMALL = 1e-6  # the scale is multiplied out when it leaves [SMALL, 1 / SMALL]

_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i8, _f8, _b1s = types.int64, types.float64, types.boolean[::1]


@kernel(types.void(_f8s, _f8s, _f8s, _f8s, _f8))
def shrink(vector, shown, mean, numbers, factor):
    """``w *= factor``; the average of earlier iterates stays what it is."""
    scale = numbers[SCALE] * factor
    if scale == 0.0 or scale < SMALL or scale > 1.0 / SMALL:
        for j in range(len(mean)):
            mean[j] += numbers[TOTAL] * vector[j]
        for j in range(len(vector)):
            vector[j] *= scale
        for j in range(len(shown)):
            shown[j] *= scale
        numbers[SQUARE] *= scale * scale
        numbers[TOTAL] = 0.0
        scale = 1.0
    numbers[SCALE] = scale


@kernel(types.void(_f8s, _f8s, _b1s, _f8s, _f8s, _i8, _i4s, _f8s, _f8))
def add(vector, shown, positive, mean, numbers, n_weights, index, value, amount):
    """``w += amount * a``; the average of earlier iterates stays what it is."""
    amount /= numbers[SCALE]
    square = 0.0
    for p in range(len(index)):
        if index[p] < n_weights:
            square += value[p] * (2.0 * vector[index[p]] + amount * value[p])
    sparse_add(vector, index, value, amount)
    if len(shown):
        square = 0.0
        for p in range(len(index)):
            j = index[p]
            if j < n_weights:
                w = 0.0 if positive[j] and vector[j] < 0.0 else vector[j]
                square += (w - shown[j]) * (w + shown[j]) / amount
                shown[j] = w
    numbers[SQUARE] += amount * square
    if len(mean):
        sparse_add(mean, index, value, -numbers[TOTAL] * amount)


@kernel(types.void(_f8s, _f8s, _f8s, _i8))
def end_step(vector, mean, numbers, averaging):
    """Let the present iterate into the average, with weight 1 or the number of the step."""
    numbers[STEPS] += 1.0
    if averaging:
        rho = 1.0 if averaging == UNIFORM else numbers[STEPS]
        numbers[TOTAL] += rho * numbers[SCALE]
        numbers[RHO] += rho


@kernel(_f8(_i8, _f8, _f8, _f8, _f8))
def step_size(schedule, t, eta0, t0, power):
    """The step size of step t = 1, 2, ..., never above 1: w must not change its sign by shrinking."""
    if schedule == INVERSE:
        eta = 1.0 / (t + t0)
    elif schedule == CONSTANT:
        eta = eta0
    else:
        eta = eta0 / t**power
    return min(eta, 1.0)


@kernel(
    types.void(
        _f8s, _f8s, _b1s, _f8s, _f8s, _i8, _i8, _i8s, _i8s, _i8s, _i4s, _f8s, _f8s, _f8s, _f8s, _i8, _i8, _f8s, _i8,
        _f8, _i8s, _i4s, _f8s, _i4s, _f8s,
    )
)  # fmt: skip
def primal_step(
    vector, shown, positive, mean, numbers, n_weights, n, examples, begins, lengths, index, value, b, losses, weight,
    squared, method, schedule, averaging, radius, concave_at, concave_index, concave_value, single, one,
):  # fmt: skip
    """One step on the planes of m examples, ``(index, value)[begin:begin+length], b``, whose losses are at w.

    The step is the mean of those that single examples ask for, of perceptrons the sum. ``weight`` holds C_i of all
    examples, ``schedule`` [kind, eta0, t0, power]. There is room for two entries behind each plane.
    """
    m, eta = len(examples), 1.0
    if method == SUBGRADIENT:
        eta = step_size(np.int64(schedule[0]), numbers[STEPS] + 1.0, schedule[1], schedule[2], schedule[3])
        if 1.0 - eta != 1.0:
            shrink(vector, shown, mean, numbers, 1.0 - eta)
    for e in range(m):
        i, begin, nnz, loss = examples[e], begins[e], lengths[e], losses[e]
        wrong = nnz > 0 or b[e] > 0.0
        amount, most = 0.0, np.inf
        if squared or method == MIRA:  # as far as this plane's loss goes
            square = 0.0
            for p in range(begin, begin + nnz):
                square += value[p] * value[p]
            most = loss / square if square > 0.0 else np.inf
        if method == SUBGRADIENT:
            if wrong and loss > 0.0:
                amount = min(eta * n * weight[i] * (loss if squared else 1.0), most) / m
        elif method == PERCEPTRON:
            amount = 1.0 if wrong and weight[i] > 0.0 else 0.0
        elif wrong and loss > 0.0:
            amount = min(weight[i], most) / m
        if amount > 0.0:
            end = begin + nnz
            index[end], value[end] = n_weights + i, 1.0
            index[end + 1], value[end + 1] = n_weights + n, b[e]
            own, entries = index[begin : end + 2], value[begin : end + 2]
            add(vector, shown, positive, mean, numbers, n_weights, own, entries, amount)
            numbers[UPDATES] += 1.0
        if len(concave_at):
            first, last = concave_at[i], concave_at[i + 1]
            if last > first:
                share = eta * n * weight[i] / m
                own, entries = concave_index[first:last], concave_value[first:last]
                add(vector, shown, positive, mean, numbers, n_weights, own, entries, -share)
                single[0], one[0] = n_weights + n + 1 + i, 1.0
                add(vector, shown, positive, mean, numbers, n_weights, single[:1], one[:1], share)
    if radius < np.inf:
        square = numbers[SQUARE] * numbers[SCALE] * numbers[SCALE]
        if square > radius * radius:
            shrink(vector, shown, mean, numbers, radius / np.sqrt(square))
    end_step(vector, mean, numbers, averaging)


@kernel(
    types.void(
        SEARCH_FUNCTION, PLANE_FUNCTION, PACK, _i8s, _i8, _i8, _i8, _f8s, _f8s, _b1s, _f8s, _f8s, _i8, _i8, _f8s, _i8,
        _i8, _f8s, _i8, _f8, _i8s, _i4s, _f8s,
    )
)  # fmt: skip
def primal_pass(
    search, plane, pack, examples, shift, batch, augmented, vector, shown, positive, mean, numbers, n_weights, n,
    weight, squared, method, schedule, averaging, radius, concave_at, concave_index, concave_value,
):  # fmt: skip
    """A step on each ``batch`` of ``examples``, on most violating outputs or (not ``augmented``) on predictions.

    What is example i here has the number i + ``shift`` in the pack.
    """
    index, value, result = np.empty(batch * pack.room, np.int32), np.empty(batch * pack.room), np.zeros(5)
    begins, lengths = np.arange(batch) * pack.room, np.zeros(batch, np.int64)
    bs, losses = np.empty(batch), np.empty(batch)
    single, one = np.empty(1, np.int32), np.empty(1)
    meta, ints, floats, iwork, fwork, output = pack.meta, pack.ints, pack.floats, pack.iwork, pack.fwork, pack.output
    w = shown if len(shown) else vector
    for start in range(0, len(examples), batch):
        together = examples[start : min(start + batch, len(examples))]
        scale = numbers[SCALE]
        for e in range(len(together)):
            i, result[4] = together[e] + shift, 1.0
            own, entries = index[begins[e] : begins[e] + pack.room], value[begins[e] : begins[e] + pack.room]
            if augmented:
                lam = pack.cost_weight / scale
                made = search(plane, meta, ints, floats, w, i, lam, 1, iwork, fwork, output, own, entries, result)
            else:
                made = plane(meta, ints, floats, w, i, 0.0, 1, iwork, fwork, output, own, entries, result)
            count(pack.counts, made, result)
            nnz = np.int64(result[3]) if made > 0 else 0
            factor, bs[e] = rescaled(pack.rescaling, pack.cost_weight, result[2] if made > 0 else 0.0)
            if factor == 0.0:
                nnz = 0
            elif factor != 1.0:
                for p in range(nnz):
                    entries[p] *= factor
            lengths[e], losses[e] = nnz, bs[e] - scale * sparse_dot(w, own[:nnz], entries[:nnz])
        primal_step(
            vector, shown, positive, mean, numbers, n_weights, n, together, begins, lengths, index, value, bs, losses,
            weight, squared, method, schedule, averaging, radius, concave_at, concave_index, concave_value, single, one,
        )  # fmt: skip
