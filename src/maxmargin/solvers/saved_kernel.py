"""Compiled checks of saved planes, whose indices are in range already."""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_dot
from maxmargin.solvers.working_set_kernel import STORE

_i4s, _i8s, _f8s, _i8, _f8 = types.int32[::1], types.int64[::1], types.float64[::1], types.int64, types.float64


@kernel(_i8(_i8s, _i8s, _i4s, _i8s), borrows=True)
def first_repetition(start, length, columns, seen):
    """The first row that names a column twice, or -1; ``seen`` (columns) begins below 0."""
    for row in range(len(start)):
        for p in range(start[row], start[row] + length[row]):
            if seen[columns[p]] == row:
                return row
            seen[columns[p]] = row
    return -1


@kernel(_i8(STORE, _f8s, _f8), borrows=True)
def wrong_products(store, dense, share):
    """The first block with a Gram entry off by more than ``share`` of its longest plane's square, or -1.

    ``dense`` (columns) is zeros. O(m) times the non-zeros of a block with m planes.
    """
    for block in range(len(store.held)):
        longest, error = 0.0, 0.0
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            begin, end = store.start[plane], store.start[plane] + store.length[plane]
            for e in range(begin, end):
                dense[store.columns[e]] = store.entries[e]
            for q in range(store.held[block]):
                other = store.slots[block, q]
                first, last = store.start[other], store.start[other] + store.length[other]
                dot = sparse_dot(dense, store.columns[first:last], store.entries[first:last])
                off = abs(store.gram[plane, q] - dot)
                error = max(error, off) if off < np.inf else np.inf  # NaN is no small error
                if p == q:
                    longest = max(longest, dot)
            for e in range(begin, end):
                dense[store.columns[e]] = 0.0
        if error > share * longest or error == np.inf:
            return block
    return -1


@kernel(_i8(_i8s, _i8s, _i4s, _f8s, _f8s, _i8s, _f8s, _f8s, _f8s, _f8s, types.boolean, _f8), borrows=True)
def first_above(start, length, columns, entries, b, owner, total, w, limit, slacks, lifted, share):
    """The first row with ``b - w . a`` above the limit of its owner by more than a share of their parts, or -1.

    Rows whose owners have no total are passed over. Of ``lifted`` rows the columns behind the weights, which may not be
    negative, say how much each example counts: the limit is their product with ``slacks``.
    """
    d = len(w)
    for row in range(len(b)):
        if not total[owner[row]] > 0.0:
            continue
        value, size, most, least, largest = b[row], abs(b[row]), 0.0, 0.0, 0.0
        for p in range(start[row], start[row] + length[row]):
            j, entry = columns[p], entries[p]
            if j < d:
                value -= entry * w[j]
                size += abs(entry * w[j])
            else:
                most += entry * slacks[j - d]
                least, largest = min(least, entry), max(largest, abs(entry))
        if not lifted:
            most = limit[owner[row]]
        if not value <= most + share * (size + abs(most)) or least < -share * largest:
            return row
    return -1
