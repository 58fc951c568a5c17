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
import scipy.sparse as sp
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record

SUFFICIENT = 0.2  # restart when the length of a step has fallen to this share of the first since the last restart,
NECESSARY = 0.5  # or to this share, and has begun to grow again,
LONG = 0.36  # or when this share of all steps was made since


class Sparse(NamedTuple):
    """Rows of a sparse matrix."""

    begin: np.ndarray  # int64 (rows + 1,)
    places: np.ndarray  # int32
    entries: np.ndarray  # float64


def sparse(A: sp.csr_array) -> Sparse:
    """A matrix as kernels take it."""
    return Sparse(A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data)


class Saddle(NamedTuple):
    """The program, its rows ordered by owner: those of i are ``first[i]:first[i + 1]``; and the lengths of steps."""

    rows: Sparse  # A
    columns: Sparse  # A'
    b: np.ndarray
    first: np.ndarray  # int64 (n + 1,)
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


_f8s = types.float64[::1]
SPARSE = record(Sparse, types.int64[::1], types.int32[::1], _f8s)
SADDLE = record(Saddle, SPARSE, SPARSE, _f8s, types.int64[::1], _f8s, types.boolean[::1], _f8s, _f8s)
PAIR = record(Pair, _f8s, _f8s, _f8s, _f8s)


@register_jitable
def add_rows(matrix, x, out):
    """``out = sum_p x_p row_p``, over the rows whose x is not 0."""
    out[:] = 0.0
    for p in range(len(x)):
        if x[p] != 0.0:
            for k in range(matrix.begin[p], matrix.begin[p + 1]):
                out[matrix.places[k]] += x[p] * matrix.entries[k]


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
    """``image = T(z)``; returns the length of the step in the metric of the method."""
    length = 0.0
    for j in range(len(z.w)):
        t = saddle.tau[j] / omega
        x = z.w[j] + t * z.u[j]
        image.w[j] = x - t if x > t else (x + t if x < -t and not saddle.positive[j] else 0.0)
        length += (image.w[j] - z.w[j]) ** 2 / t
    add_rows(saddle.columns, image.w, image.scores)
    for p in range(len(z.alpha)):
        s = saddle.sigma[p] * omega
        image.alpha[p] = z.alpha[p] + s * (saddle.b[p] - 2.0 * image.scores[p] + z.scores[p])
    project(saddle.first, saddle.weight, image.alpha)
    for p in range(len(z.alpha)):
        length += (image.alpha[p] - z.alpha[p]) ** 2 / (saddle.sigma[p] * omega)
    add_rows(saddle.rows, image.alpha, image.u)
    return np.sqrt(length)


@register_jitable
def bounds_at(saddle, z):
    """The objective at the weights, ``b . alpha``, and by how much the multipliers must be divided."""
    primal, linear, excess = 0.0, 0.0, 1.0
    for j in range(len(z.w)):
        primal += abs(z.w[j])
        excess = max(excess, z.u[j] if saddle.positive[j] else abs(z.u[j]))
    for i in range(len(saddle.weight)):
        loss = 0.0
        for p in range(saddle.first[i], saddle.first[i + 1]):
            loss = max(loss, saddle.b[p] - z.scores[p])
            linear += saddle.b[p] * z.alpha[p]
        primal += saddle.weight[i] * loss
    return primal, linear, excess


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


@kernel(
    types.UniTuple(types.float64, 4)(
        SADDLE, PAIR, PAIR, PAIR, _f8s, _f8s, types.float64, types.float64, types.float64, types.int64
    )
)
def primal_dual(saddle, z, image, anchor, best_w, best_alpha, omega, control, tol, most):
    """Steps from z until the relative gap of the best weights and multipliers seen is at most ``tol``.

    The iterates are pulled to the point of the last restart, ``z = (k + 1) / (k + 2) (2 T(z) - z) + 1 / (k + 2)
    anchor`` (Halpern's method with reflection, whose steps shorten like 1/k; with restarts the rate is linear), and
    ``control`` is the exponent by which each restart moves omega to where weights and multipliers move equally far.
    ``image`` ends as the last T(z). Returns the number of steps, the best bounds, and omega. O(steps (non-zeros of the
    rows with a multiplier + of the columns with a weight + m + d)). Lu, Yang 2024, Restarted Halpern PDHG for linear
    programming; Lu, Peng, Yang 2025, cuPDLPx.
    """
    multiply(saddle, z)
    set_pair(anchor, z)
    upper, lower = np.inf, -np.inf
    since, opening, last = 0, np.inf, np.inf
    for count in range(1, most + 1):
        length = step(saddle, z, image, omega)
        primal, linear, excess = bounds_at(saddle, image)
        if primal < upper:
            upper = primal
            best_w[:] = image.w
        if linear / excess > lower:
            lower = linear / excess
            best_alpha[:] = image.alpha
        if upper - lower <= tol * max(abs(upper), abs(lower)):
            return float(count), upper, lower, omega
        opening = length if since == 0 else opening
        fallen = length <= SUFFICIENT * opening or (length <= NECESSARY * opening and length > last)
        if since > 0 and (fallen or since >= max(LONG * count, 50.0)):
            omega *= (balance(saddle, image, anchor, omega) / omega) ** control
            set_pair(z, image)
            set_pair(anchor, image)
            since, last = 0, np.inf
            continue
        share = (since + 1.0) / (since + 2.0)
        halpern(z.w, image.w, anchor.w, share)
        halpern(z.u, image.u, anchor.u, share)
        halpern(z.alpha, image.alpha, anchor.alpha, share)
        halpern(z.scores, image.scores, anchor.scores, share)
        since, last = since + 1, length
    return float(most), upper, lower, omega
