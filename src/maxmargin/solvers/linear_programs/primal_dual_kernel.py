"""Compiled restarted primal-dual steps for the program of program.py, its slacks eliminated.

The slacks are best at the largest violation of their example, so the program is the saddle point

    min_w  max_(alpha in S)  |w|_1 + b . alpha - alpha . A w,        S = {alpha >= 0, sum over each owner <= C_i}

and a step T of the primal-dual hybrid gradient method is a soft threshold of the weights and a projection of the
multipliers, owner by owner. Both leave many zeros, and products skip them: ``A w`` is a sum over columns with a
weight, ``A' alpha`` one over rows with a multiplier. Both are known at T(z), so bounds of the optimum come with every
step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.solvers.linear_programs.feasible_kernel import SPARSE, Sparse, add_rows, settle, towards

SUFFICIENT = 0.2  # restart when the gap has fallen to this share of that at the last restart,
NECESSARY = 0.8  # or to this share, and has begun to grow again,
LONG = 0.36  # or when this share of all steps was made since
LOOK = 100  # steps between certified bounds
THIN = 4  # steps between those that join the mean
SWEEPS = 400  # over the columns, to make multipliers feasible,
ENOUGH = 0.03  # of the gap asked for, by which prices may then be out


class Saddle(NamedTuple):
    """The program, its rows ordered by owner: those of i are ``first[i]:first[i + 1]``; and the lengths of steps."""

    rows: Sparse  # A
    columns: Sparse  # A'
    b: np.ndarray
    first: np.ndarray  # int64 (n + 1,)
    owner: np.ndarray  # int64 (m,)
    weight: np.ndarray
    positive: np.ndarray  # bool (d,)
    tau: np.ndarray  # (d,), the square of a step's length in each weight
    sigma: np.ndarray  # (m,), in each multiplier, equal for all rows of an owner


class Pair(NamedTuple):
    """Weights and multipliers, and their products with the matrix."""

    w: np.ndarray
    alpha: np.ndarray
    u: np.ndarray  # A' alpha
    scores: np.ndarray  # A w


class Path(NamedTuple):
    """Where a run of steps is: z, T(z), the point of the last restart, the mean since, and room for a fifth."""

    z: Pair
    image: Pair
    anchor: Pair
    mean: Pair
    scratch: Pair


_f8s = types.float64[::1]
SADDLE = record(Saddle, SPARSE, SPARSE, _f8s, types.int64[::1], types.int64[::1], _f8s, types.boolean[::1], _f8s, _f8s)
PAIR = record(Pair, _f8s, _f8s, _f8s, _f8s)
PATH = record(Path, PAIR, PAIR, PAIR, PAIR, PAIR)


@kernel(types.void(SADDLE, PAIR), borrows=True)
def multiply(saddle, z):
    """Fill in the products of a pair."""
    add_rows(saddle.columns, z.w, z.scores)
    add_rows(saddle.rows, z.alpha, z.u)


@register_jitable
def project(first, weight, alpha):
    """The nearest point of S: of each owner the simplex ``alpha >= 0, sum <= C_i`` (Michelot 1986)."""
    for i in range(len(weight)):
        low, high = first[i], first[i + 1]
        total, held = 0.0, 0
        for p in range(low, high):
            alpha[p] = max(alpha[p], 0.0)
            total += alpha[p]
            held += alpha[p] > 0.0
        if total <= weight[i]:
            continue
        cut = (total - weight[i]) / held
        while True:
            total, left = 0.0, 0
            for p in range(low, high):
                if alpha[p] > cut:
                    total += alpha[p]
                    left += 1
            if left >= held or left == 0:  # rounding may bring one back
                break
            held = left
            cut = (total - weight[i]) / held
        for p in range(low, high):
            alpha[p] = max(alpha[p] - cut, 0.0)


@register_jitable
def step(saddle, z, image, omega):
    """``image = T(z)``."""
    for j in range(len(z.w)):
        t = saddle.tau[j] / omega
        x = z.w[j] + t * z.u[j]
        image.w[j] = x - t if x > t else (x + t if x < -t and not saddle.positive[j] else 0.0)
    add_rows(saddle.columns, image.w, image.scores)
    for p in range(len(z.alpha)):
        s = saddle.sigma[p] * omega
        image.alpha[p] = z.alpha[p] + s * (saddle.b[p] - 2.0 * image.scores[p] + z.scores[p])
    project(saddle.first, saddle.weight, image.alpha)
    add_rows(saddle.rows, image.alpha, image.u)


@register_jitable
def primal_at(saddle, z):
    """The objective at the weights."""
    primal = 0.0
    for j in range(len(z.w)):
        primal += abs(z.w[j])
    for i in range(len(saddle.weight)):
        loss = 0.0
        for p in range(saddle.first[i], saddle.first[i + 1]):
            loss = max(loss, saddle.b[p] - z.scores[p])
        primal += saddle.weight[i] * loss
    return primal


@register_jitable
def dual_at(saddle, z, scratch, enough):
    """What the multipliers prove once they are feasible; these end in ``scratch``."""
    alpha, u = scratch.alpha, scratch.u
    alpha[:], u[:] = z.alpha, z.u
    room = saddle.weight.copy()
    for p in range(len(alpha)):
        room[saddle.owner[p]] -= alpha[p]
    np.maximum(room, 0.0, room)
    rows, columns, owner = saddle.rows, saddle.columns, saddle.owner
    price = max(1.0, settle(rows, columns, saddle.positive, owner, room, alpha, u, SWEEPS, enough))
    dual = 0.0
    for p in range(len(alpha)):
        alpha[p] /= price
        dual += saddle.b[p] * alpha[p]
    return dual


@register_jitable
def balance(saddle, z, anchor, omega):
    """The weight between weights and multipliers at which both have moved equally far since the last restart."""
    far, wide = 0.0, 0.0
    for j in range(len(z.w)):
        far += (z.w[j] - anchor.w[j]) ** 2 / saddle.tau[j]
    for p in range(len(z.alpha)):
        wide += (z.alpha[p] - anchor.alpha[p]) ** 2 / saddle.sigma[p]
    return np.sqrt(wide / far) if far > 1e-200 and wide > 1e-200 else omega


@register_jitable
def set_pair(z, other):
    z.w[:], z.alpha[:], z.u[:], z.scores[:] = other.w, other.alpha, other.u, other.scores


@register_jitable
def halpern(x, image, anchor, share):
    """``x = share (2 T(x) - x) + (1 - share) anchor``, member by member."""
    for j in range(len(x)):
        x[j] = share * (2.0 * image[j] - x[j]) + (1.0 - share) * anchor[j]


@kernel(types.UniTuple(types.float64, 4)(SADDLE, PATH, _f8s, _f8s, types.float64, _f8s, types.float64, types.int64))
def primal_dual(saddle, path, best_w, best_alpha, omega, control, tol, most):
    """Steps from ``path.z`` until the relative gap of the best weights and multipliers seen is at most ``tol``.

    The iterates are pulled to the point of the last restart, ``z = (k + 1) / (k + 2) (2 T(z) - z) + 1 / (k + 2)
    anchor`` (Halpern's method with reflection, whose steps shorten like 1/k; with restarts the rate is linear). Every
    ``LOOK`` steps, bounds are taken at T(z) and at the mean since the last restart, whose multipliers are lowered until
    they are feasible: iterates swing about the walls ``|A' alpha|_j <= 1`` long after their mean has come to rest.
    The gap of the better of the two decides about restarts. A restart moves ``log omega`` by ``control[0] e +
    control[1] (sum of e)`` (PI control), where e is the log of the ratio at which weights and multipliers have moved
    equally far to omega. ``path.image`` ends as the last T(z). Returns the number of steps, the best bounds, and omega.
    O(steps (non-zeros of the rows with a multiplier + of the columns with a weight + m + d)). Lu, Yang 2024, Restarted
    Halpern PDHG for linear programming; Lu, Peng, Yang 2025, cuPDLPx.
    """
    z, image, anchor, mean, scratch = path
    multiply(saddle, z)
    set_pair(anchor, z)
    upper, lower_bound = np.inf, -np.inf
    since, joined, opening, last, errors = 0, 0, np.inf, np.inf, 0.0
    for count in range(1, most + 1):
        step(saddle, z, image, omega)
        if since % THIN == 0:
            joined += 1
            share = 1.0 / joined
            if joined == 1:
                set_pair(mean, image)
            else:
                towards(mean.w, image.w, share)
                towards(mean.u, image.u, share)
                towards(mean.alpha, image.alpha, share)
                towards(mean.scores, image.scores, share)
        if count % LOOK == 0 or count == most:
            gap = np.inf
            for seen in (image, mean):
                primal, dual = primal_at(saddle, seen), dual_at(saddle, seen, scratch, ENOUGH * tol)
                if primal < upper:
                    upper = primal
                    best_w[:] = seen.w
                if dual > lower_bound:
                    lower_bound = dual
                    best_alpha[:] = scratch.alpha
                gap = min(gap, primal - dual)
            if upper - lower_bound <= tol * max(abs(upper), abs(lower_bound)):
                return float(count), upper, lower_bound, omega
            if opening == np.inf:
                opening = gap
            fallen = gap <= SUFFICIENT * opening or (gap <= NECESSARY * opening and gap > last)
            last = gap
            if fallen or since >= LONG * count:
                error = np.log(balance(saddle, image, anchor, omega) / omega)
                errors += error
                omega *= np.exp(control[0] * error + control[1] * errors)
                set_pair(z, image)
                set_pair(anchor, image)
                since, joined, opening, last = 0, 0, gap, np.inf
                continue
        share = (since + 1.0) / (since + 2.0)
        halpern(z.w, image.w, anchor.w, share)
        halpern(z.u, image.u, anchor.u, share)
        halpern(z.alpha, image.alpha, anchor.alpha, share)
        halpern(z.scores, image.scores, anchor.scores, share)
        since += 1
    return float(most), upper, lower_bound, omega
