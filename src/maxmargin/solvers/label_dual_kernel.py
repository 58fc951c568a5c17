"""Compiled sweeps of the sequential dual method for labels: a whole block at a time, exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.models.signature import (
    ADD_FUNCTION,
    EXCESS_FUNCTION,
    FETCH_FUNCTION,
    RETREAT_FUNCTION,
    SCORES_FUNCTION,
)
from maxmargin.prefetch_kernel import prefetch

TINY = 1e-12  # |x|^2 of an example without features
NOTHING = 1e-100  # the same where it need not be small beside C: all of it goes to the worst label then

_i8, _f8 = types.int64, types.float64
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]


class Labelled(NamedTuple):
    """The data of the examples, and the point."""

    meta: np.ndarray  # this and the next two: the packed data of the model
    ints: np.ndarray
    floats: np.ndarray
    square: np.ndarray  # float64 (n,): |x_i|^2
    weight: np.ndarray  # float64 (n,): C_i
    cost_weight: float
    beta: (
        np.ndarray
    )  # float64 (n, K): phi(x_i, y) has entered u so many times; the true label as often as all others left
    u: np.ndarray
    linear: np.ndarray  # float64 (1,): sum alpha b
    gap: np.ndarray  # float64 (n,): gap of each block when last seen
    loss: np.ndarray  # float64 (n,): and the loss of its example


NEAR, FAR = 2, 6  # examples between asking memory for the weights, or the features, of one and its visit
LABELLED = record(Labelled, _i8s, _i4s, _f8s, _f8s, _f8s, _f8, types.float64[:, ::1], _f8s, _f8s, _f8s, _f8s)


@kernel(_f8(_f8s, _i8, _f8, _f8), fast=False, borrows=True)
def threshold(bend, K, top, total):
    """theta with ``sum_y max(bend[y] - top - theta, 0) = total``, where ``top`` is the largest bend.

    Michelot's way: a theta that is too low; the labels above it share the total and theta rises, until none of them is
    left below it. O(K) a round, few rounds. Measured from zero, large bends would leave too few digits for the shares;
    so the compiler must not reorder the differences either.
    """
    theta, free = -total, K + 1
    while True:
        found, above = -total, 0
        for y in range(K):
            is_above = bend[y] - top > theta
            found += bend[y] - top if is_above else 0.0  # no jump that depends on the data
            above += is_above
        if above == 0 or above >= free:  # more than before: rounding
            return theta
        theta, free = found / above, above


@kernel(_f8(LABELLED, _i8, _i8, _f8s, _f8s, _f8s, _f8s), fast=False, borrows=True)
def solve_block(data, i, true, score, margin, bend, change):
    """The best multipliers of one example, the others fixed; ``change`` receives theirs, its largest is returned.

    With x the features, B_y = w_y . x - |x|^2 beta_y + lam cost_y and the minimum over the block

        min 1/2 |x|^2 |beta|^2 + B . beta     over  sum_y beta_y = 0,  beta_y <= C [y is true]

    the solution is ``beta_y = C [y is true] - max(C [y is true] + B_y / |x|^2 - theta, 0)``.
    """
    own, C, K = data.beta[i], data.weight[i], data.beta.shape[1]
    inverse, top = 1.0 / max(data.square[i], NOTHING), -np.inf
    for y in range(K):
        bend[y] = (score[y] + margin[y]) * inverse - own[y] + (C if y == true else 0.0)
        top = max(top, bend[y])
    theta, largest, cost = threshold(bend, K, top, C), 0.0, 0.0
    for y in range(K):
        best = (C if y == true else 0.0) - max(bend[y] - top - theta, 0.0)
        change[y] = best - own[y]
        own[y] = best
        cost += change[y] * margin[y]
        largest = max(largest, abs(change[y]))
    data.linear[0] -= cost
    return largest


def scratch_of(stride: int, K: int) -> np.ndarray:
    """What a sweep writes to. It is made outside, since a kernel that makes arrays counts references in its loop."""
    return np.zeros(2 * stride + 8 * K)


@kernel(types.void(_i8s, _f8s), borrows=True)
def shuffle(examples, random):
    """Put examples in the order that as many random numbers from [0, 1) give: as numpy does, in a third of the time."""
    for k in range(len(examples) - 1, 0, -1):
        other = np.int64(random[k] * (k + 1))
        examples[k], examples[other] = examples[other], examples[k]


@register_jitable
def parted(scratch, K):
    """Scratch for scores and changes (stride,), the latter zeros behind the labels, two arrays (K,) and one (6 K,)."""
    stride = (len(scratch) - 8 * K) // 2
    behind = scratch[2 * stride :]
    return scratch[:stride], scratch[stride : 2 * stride], behind[:K], behind[K : 2 * K], behind[2 * K :]


@kernel(types.void(SCORES_FUNCTION, ADD_FUNCTION, FETCH_FUNCTION, LABELLED, _i8s, _f8, _f8s), borrows=True)
def label_sweep(scores, add, fetch, data, examples, least, scratch):
    """Look at examples in turn: loss and gap of each, and where that is above ``least`` its best multipliers at once.

    O(nnz K) per example. With ``least = inf`` nothing changes but what is noted.
    """
    K, flat, last = data.beta.shape[1], data.beta.reshape(-1), len(examples) - 1
    score, change, margin, bend, _ = parted(scratch, K)
    for e in range(len(examples)):
        i, far = examples[e], examples[min(e + FAR, last)]  # in random order every example would wait for memory
        fetch(data.meta, data.ints, data.floats, data.u, examples[min(e + NEAR, last)], far)
        prefetch(flat, far * K, (far + 1) * K)
        for numbers in (data.gap, data.loss, data.weight, data.square):
            prefetch(numbers, far, far + 1)
        true = scores(data.meta, data.ints, data.floats, data.u, i, score, margin)
        best, inner = score[true], 0.0
        for y in range(K):
            margin[y] *= data.cost_weight
            best = max(best, score[y] + margin[y])
            inner -= data.beta[i, y] * (margin[y] + score[y] - score[true])  # 0 for the true label
        data.loss[i] = best - score[true]
        data.gap[i] = max(data.weight[i] * data.loss[i] - inner, 0.0)
        if data.gap[i] > least and solve_block(data, i, true, score, margin, bend, change) > 0.0:
            add(data.meta, data.ints, data.floats, i, change, data.u)


@kernel(
    types.void(SCORES_FUNCTION, ADD_FUNCTION, EXCESS_FUNCTION, RETREAT_FUNCTION, LABELLED, _i8s, _i8, _f8s),
    borrows=True,
)
def set_sweep(scores, add, excess, retreat, data, examples, solve, scratch):
    """As :func:`label_sweep` where outputs are sets t of labels with hull H: ``beta_i = C_i (t - mu_i)``, mu_i in H.

    With B = W' x - |x|^2 beta + lam cost the best block is the minimum of ``1/2 |x|^2 |beta|^2 + B . beta``, that is,
    mu is the point of H nearest to ``t + B / (|x|^2 C)``.
    """
    K = data.beta.shape[1]
    score, change, margin, pull, work = parted(scratch, K)
    for i in examples:
        scores(data.meta, data.ints, data.floats, data.u, i, score, margin)
        own, C, square, inner = data.beta[i], data.weight[i], max(data.square[i], TINY), 0.0
        for k in range(K):
            margin[k] *= data.cost_weight
            pull[k] = score[k] + margin[k]
            inner -= own[k] * pull[k]
        data.loss[i] = max(excess(data.meta, data.ints, data.floats, i, pull, work), 0.0)
        data.gap[i] = max(C * data.loss[i] - inner, 0.0)
        if not solve or data.gap[i] <= 0.0:
            continue
        for k in range(K):
            pull[k] = (pull[k] - square * own[k]) / (square * C)
        retreat(data.meta, data.ints, data.floats, i, pull, work)
        largest = 0.0
        for k in range(K):
            change[k] = C * pull[k] - own[k]
            own[k] = C * pull[k]
            data.linear[0] -= change[k] * margin[k]
            largest = max(largest, abs(change[k]))
        if largest > 0.0:
            add(data.meta, data.ints, data.floats, i, change, data.u)


@kernel(_f8(RETREAT_FUNCTION, LABELLED))
def distance_from_hull(retreat, data):
    """The most by which a multiplier lies outside of what sets of labels allow, as a share of its C_i."""
    n, K = data.beta.shape
    v, work, most = np.empty(K), np.empty(6 * K), 0.0
    for i in range(n):
        C = data.weight[i]
        for k in range(K):
            v[k] = -data.beta[i, k] / C if C > 0.0 else 0.0
            most = max(most, abs(data.beta[i, k])) if C <= 0.0 else most
        retreat(data.meta, data.ints, data.floats, i, v, work)
        for k in range(K):
            most = max(most, abs(v[k] - data.beta[i, k] / C)) if C > 0.0 else most
    return most


@kernel(types.void(SCORES_FUNCTION, ADD_FUNCTION, LABELLED, _i8))
def label_rebuild(scores, add, data, stride):
    """u and ``sum alpha b`` from the multipliers, to shed rounding errors."""
    K = data.beta.shape[1]
    score, margin, change = np.empty(stride), np.empty(K), np.zeros(stride)
    data.u[:] = 0.0
    data.linear[0] = 0.0
    for i in range(len(data.beta)):
        scores(data.meta, data.ints, data.floats, data.u, i, score, margin)
        largest = 0.0
        for y in range(K):
            change[y] = data.beta[i, y]
            largest = max(largest, abs(change[y]))
            data.linear[0] -= data.cost_weight * margin[y] * change[y]
        if largest > 0.0:
            add(data.meta, data.ints, data.floats, i, change, data.u)
