"""Compiled: multipliers come back behind the walls ``|A' alpha|_j <= 1``, wall by wall."""

from __future__ import annotations

from numba import types

from maxmargin.kernel import kernel
from maxmargin.solvers.linear_programs.primal_dual_kernel import SPARSE


@kernel(types.void(SPARSE, types.boolean[::1], types.float64[::1], types.int64), borrows=True)
def project_prices(columns, positive, alpha, sweeps):
    """Lower multipliers until no column is out, or for so many sweeps.

    A column that is out by e is projected onto its wall over the rows with a multiplier that push it out, ``alpha -= e
    a / |a|^2``, cut at 0. Multipliers only fall, so that the sums over owners stay feasible. O(sweeps non-zeros).
    """
    for _ in range(sweeps):
        worst = 0.0
        for j in range(len(columns.begin) - 1):
            begin, end = columns.begin[j], columns.begin[j + 1]
            price = 0.0
            for k in range(begin, end):
                price += columns.entries[k] * alpha[columns.places[k]]
            sign = 1.0 if price > 0.0 or positive[j] else -1.0
            out = sign * price - 1.0
            if out <= 0.0:
                continue
            worst = max(worst, out)
            square = 0.0
            for k in range(begin, end):
                if sign * columns.entries[k] > 0.0 and alpha[columns.places[k]] > 0.0:
                    square += columns.entries[k] ** 2
            for k in range(begin, end):
                push = sign * columns.entries[k]
                if push > 0.0:
                    p = columns.places[k]
                    alpha[p] = max(alpha[p] - out * push / square, 0.0)
        if worst == 0.0:
            return
