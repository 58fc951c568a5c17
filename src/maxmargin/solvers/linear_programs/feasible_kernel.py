"""Compiled: multipliers come back behind the walls ``|A' alpha|_j <= 1``, wall by wall, back and forth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record

NEXT_TO_NOTHING = 1e-12  # by which a column may be out
PLAIN = 5  # sweeps that go as far as the walls; later ones go
RELAXED = 1.6  # times as far
INSIDE = 0.01  # of the worst price beyond 1: how far inside the walls stand,
MOST_INSIDE = 2e-3  # at most
LAP = 40  # sweeps after which the worst price must be down to
HARDLY = 0.9  # of what it was


class Sparse(NamedTuple):
    """Rows of a sparse matrix."""

    begin: np.ndarray  # int64 (rows + 1,)
    places: np.ndarray  # int32
    entries: np.ndarray  # float64


def sparse(A: sp.csr_array) -> Sparse:
    """A matrix as kernels take it."""
    return Sparse(A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data)


SPARSE = record(Sparse, types.int64[::1], types.int32[::1], types.float64[::1])


@register_jitable
def add_rows(matrix, x, out):
    """``out = sum_p x_p row_p``, over the rows whose x is not 0."""
    out[:] = 0.0
    for p in range(len(x)):
        if x[p] != 0.0:
            for k in range(matrix.begin[p], matrix.begin[p + 1]):
                out[matrix.places[k]] += x[p] * matrix.entries[k]


@register_jitable
def towards(x, other, share):
    """``x = (1 - share) x + share other``, member by member."""
    for j in range(len(x)):
        x[j] += share * (other[j] - x[j])


@register_jitable
def settle(rows, columns, positive, owner, room, alpha, u, sweeps, enough):
    """Move multipliers, and ``u = A' alpha`` with them, until no column is out by ``enough``; the largest price then.

    A column that is out by e is projected onto its wall, later also beyond it (over-relaxed), over the rows with a
    multiplier, ``alpha -= e a / |a|^2``: those that push it out fall, as far as 0, and the others rise, as far as
    ``room`` (n,) lets the sum of their example rise. Projections onto convex sets that meet come to rest in all of
    them. If multipliers only fell, each repair would push other columns out, until hardly any were left. The walls
    stand a little inside, by a share of the worst price at first, so that it ends. It gives up when a lap of sweeps has
    hardly changed the worst price. O(sweeps (d + non-zeros of the columns that are out and of their rows)).
    """
    before, inside = np.inf, 0.0
    for sweep in range(sweeps):
        worst, relaxed = 0.0, 1.0 if sweep < PLAIN else RELAXED
        for j in range(len(u)):
            sign = 1.0 if u[j] > 0.0 or positive[j] else -1.0
            out = sign * u[j] - 1.0
            if out <= NEXT_TO_NOTHING:
                continue
            worst = max(worst, out)
            begin, end = columns.begin[j], columns.begin[j + 1]
            square = 0.0
            for k in range(begin, end):
                p = columns.places[k]
                if alpha[p] > 0.0 and (sign * columns.entries[k] > 0.0 or room[owner[p]] > 0.0):
                    square += columns.entries[k] ** 2
            for k in range(begin, end):
                p = columns.places[k]
                if alpha[p] <= 0.0 or square == 0.0:
                    continue
                change = -relaxed * (out + inside) * sign * columns.entries[k] / square
                change = max(min(change, room[owner[p]]), -alpha[p])
                if change != 0.0:
                    alpha[p] += change
                    room[owner[p]] -= change
                    for e in range(rows.begin[p], rows.begin[p + 1]):
                        u[rows.places[e]] += change * rows.entries[e]
        if worst <= enough:
            break
        if sweep == 0:
            inside = min(INSIDE * worst, MOST_INSIDE)
        if sweep % LAP == LAP - 1:
            if worst > HARDLY * before:
                break
            before = worst
    largest = 0.0
    for j in range(len(u)):
        largest = max(largest, u[j] if positive[j] else abs(u[j]))
    return largest


@kernel(
    types.float64(SPARSE, SPARSE, types.boolean[::1], types.int64[::1], *[types.float64[::1]] * 3, types.int64),
    borrows=True,
)
def project_prices(rows, columns, positive, owner, room, alpha, u, sweeps):
    """:func:`settle`, compiled by itself; u is filled in."""
    add_rows(rows, alpha, u)
    return settle(rows, columns, positive, owner, room, alpha, u, sweeps, 0.0)
