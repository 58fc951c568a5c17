"""Compiled: multipliers come back behind the walls ``|A' alpha|_j <= 1``, wall by wall."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record

NEXT_TO_NOTHING = 1e-12  # by which a column may be out


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
def lower(rows, columns, positive, alpha, u, sweeps, enough):
    """Lower multipliers, and ``u = A' alpha`` with them, until no column is out by ``enough``; the largest price then.

    A column that is out by e is projected onto its wall over the rows with a multiplier that push it out, ``alpha -= e
    a / |a|^2``, cut at 0. Multipliers only fall, so that the sums over owners stay feasible. O(sweeps (d + non-zeros of
    the columns that are out and of their rows)).
    """
    for _ in range(sweeps):
        worst = 0.0
        for j in range(len(u)):
            sign = 1.0 if u[j] > 0.0 or positive[j] else -1.0
            out = sign * u[j] - 1.0
            if out <= NEXT_TO_NOTHING:
                continue
            worst = max(worst, out)
            begin, end = columns.begin[j], columns.begin[j + 1]
            square = 0.0
            for k in range(begin, end):
                if sign * columns.entries[k] > 0.0 and alpha[columns.places[k]] > 0.0:
                    square += columns.entries[k] ** 2
            for k in range(begin, end):
                push, p = sign * columns.entries[k], columns.places[k]
                if push > 0.0 and alpha[p] > 0.0:
                    less = min(out * push / square, alpha[p])
                    alpha[p] -= less
                    for e in range(rows.begin[p], rows.begin[p + 1]):
                        u[rows.places[e]] -= less * rows.entries[e]
        if worst <= enough:
            break
    largest = 0.0
    for j in range(len(u)):
        largest = max(largest, u[j] if positive[j] else abs(u[j]))
    return largest


@kernel(types.float64(SPARSE, SPARSE, types.boolean[::1], *[types.float64[::1]] * 2, types.int64), borrows=True)
def project_prices(rows, columns, positive, alpha, u, sweeps):
    """:func:`lower`, compiled by itself; u is filled in."""
    add_rows(rows, alpha, u)
    return lower(rows, columns, positive, alpha, u, sweeps, 0.0)
