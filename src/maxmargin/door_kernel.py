"""Checks of arrays from outside, at the speed of memory; :mod:`maxmargin.door` turns what they find into errors."""

from __future__ import annotations

import numpy as np

from maxmargin.kernel import kernel

CHUNK = 512  # numbers that are counted without a branch, so that the compiler vectorises; then one branch
FINE, START, FALLS, END, COLUMN = range(5)  # what is wrong with compressed rows: nothing, or which rule is broken


@kernel("int64(float64[::1], float64)", fast=False, borrows=True)
def first_beyond(values, limit):
    """Where a number is first NaN or larger than ``limit`` in absolute value; -1 if nowhere. O(n)."""
    n, at = len(values), 0
    while at < n:
        chunk = values[at : min(at + CHUNK, n)]
        fine = 0
        for i in range(len(chunk)):
            fine += np.int64(abs(chunk[i]) <= limit)
        if fine < len(chunk):
            while abs(values[at]) <= limit:
                at += 1
            return at
        at += len(chunk)
    return -1


@kernel("int64(float64[::1], float64[::1], float64, float64)", fast=False, borrows=True)
def copy_within(values, out, least, most):
    """Copy numbers; where one is first NaN, below ``least`` or above ``most``, -1 if nowhere. O(n)."""
    n, at = len(values), 0
    while at < n:
        end = min(at + CHUNK, n)
        chunk, copied = values[at:end], out[at:end]
        fine = 0
        for i in range(len(chunk)):
            copied[i] = chunk[i]
            fine += np.int64(least <= chunk[i]) & np.int64(chunk[i] <= most)
        if fine < len(chunk):
            while least <= values[at] <= most:
                at += 1
            return at
        at = end
    return -1


@kernel("int64(int64[::1], int32[::1], int64, int64, int64)", borrows=True)
def copy_among(values, out, a, b, c):
    """Copy whole numbers; where one is first none of ``a``, ``b`` and ``c``, -1 if nowhere. O(n)."""
    fine = 0
    for i in range(len(values)):
        x = values[i]
        out[i] = x
        fine += np.int64(x == a) | np.int64(x == b) | np.int64(x == c)
    if fine == len(values):
        return -1
    at = 0
    while values[at] == a or values[at] == b or values[at] == c:
        at += 1
    return at


def _rows_fault(pointers, columns, n_columns, n_entries):
    """Which rule of compressed rows is broken, and where: (FINE, -1) when all hold. O(rows + entries).

    Pointers begin with 0, never fall, and end within the ``n_entries`` stored; the columns of all entries that they
    enclose are from 0 to ``n_columns - 1``.
    """
    n = len(pointers) - 1
    if pointers[0] != 0:
        return START, 0
    falls = 0
    for i in range(n):
        falls += np.int64(pointers[i + 1] < pointers[i])
    if falls:
        i = 0
        while pointers[i + 1] >= pointers[i]:
            i += 1
        return FALLS, i
    used = np.int64(pointers[n])
    if used > n_entries:
        return END, n
    at = np.int64(0)
    while at < used:
        chunk = columns[at : min(at + CHUNK, used)]
        low, high = chunk[0], chunk[0]
        for c in range(len(chunk)):
            low, high = min(low, chunk[c]), max(high, chunk[c])
        if low < 0 or high >= n_columns:
            while 0 <= columns[at] < n_columns:
                at += 1
            return COLUMN, at
        at += len(chunk)
    return FINE, -1


rows_fault_32 = kernel("UniTuple(int64, 2)(int32[::1], int32[::1], int64, int64)", borrows=True)(_rows_fault)
rows_fault_64 = kernel("UniTuple(int64, 2)(int64[::1], int64[::1], int64, int64)", borrows=True)(_rows_fault)
