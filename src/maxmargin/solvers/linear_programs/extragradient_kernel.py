"""Compiled steps of the extragradient method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.solvers.linear_programs.feasible_kernel import SPARSE, Sparse, add_rows, towards


class Printed(NamedTuple):
    """The program as the paper has it, with its slacks."""

    rows: Sparse  # A
    columns: Sparse  # A'
    b: np.ndarray
    owner: np.ndarray  # int64 (m,)
    weight: np.ndarray
    positive: np.ndarray  # bool (d,)


class Triple(NamedTuple):
    """Weights, slacks and multipliers, and products with the matrix."""

    w: np.ndarray
    xi: np.ndarray
    alpha: np.ndarray
    u: np.ndarray  # A' alpha
    scores: np.ndarray  # A w
    sums: np.ndarray  # of the multipliers of each example


_f8s = types.float64[::1]
PRINTED = record(Printed, SPARSE, SPARSE, _f8s, types.int64[::1], _f8s, types.boolean[::1])
TRIPLE = record(Triple, _f8s, _f8s, _f8s, _f8s, _f8s, _f8s)


@register_jitable
def fill(program, at):
    """The products at a point."""
    add_rows(program.columns, at.w, at.scores)
    add_rows(program.rows, at.alpha, at.u)
    at.sums[:] = 0.0
    for p in range(len(at.alpha)):
        at.sums[program.owner[p]] += at.alpha[p]


@register_jitable
def move(program, s, now, at, out):
    """``out`` is ``now`` moved by s along the gradients at ``at``."""
    for j in range(len(now.w)):
        w = now.w[j] + s * at.u[j]
        out.w[j] = w - s if w > s else (w + s if w < -s and not program.positive[j] else 0.0)
    for i in range(len(now.xi)):
        out.xi[i] = max(now.xi[i] + s * (at.sums[i] - program.weight[i]), 0.0)
    for p in range(len(now.alpha)):
        short = program.b[p] - at.scores[p] - at.xi[program.owner[p]]
        out.alpha[p] = max(now.alpha[p] + s * short, 0.0)


@kernel(types.void(PRINTED, types.float64, TRIPLE, TRIPLE, TRIPLE, TRIPLE, types.int64))
def extragradient(program, s, now, before, ahead, mean, steps):
    """So many steps from ``now``; ``mean`` becomes that of the points looked at ahead, ``before`` the last but one.

    O(steps (non-zeros of the rows with a multiplier + of the columns with a weight + m + d)).
    """
    for count in range(steps):
        before.w[:], before.xi[:], before.alpha[:] = now.w, now.xi, now.alpha
        fill(program, before)
        move(program, s, before, before, ahead)
        fill(program, ahead)
        move(program, s, before, ahead, now)
        towards(mean.w, ahead.w, 1.0 / (count + 1.0))
        towards(mean.alpha, ahead.alpha, 1.0 / (count + 1.0))
