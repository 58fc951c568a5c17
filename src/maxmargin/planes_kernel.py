"""Compiled arithmetic on sparse vectors: merge, dot, add. Shared by model kernels and the working set."""

from __future__ import annotations

import numpy as np

from maxmargin.kernel import kernel


@kernel("int64(int32[::1], int64, int32[::1], float64[::1], int64, int64, float64)")
def accumulate(slots, bits, index, value, nnz, key, x):
    """Add ``x`` to entry ``key`` of the sparse vector (index, value) of length ``nnz``; return the new length.

    ``slots[:2**bits]`` is an open-addressing table of positions + 1, zero when free.
    """
    mask = (1 << bits) - 1
    slot = ((key * 2654435761) >> 7) & mask
    while True:
        held = slots[slot]
        if held == 0:
            slots[slot] = nnz + 1
            index[nnz] = key
            value[nnz] = x
            return nnz + 1
        if index[held - 1] == key:
            value[held - 1] += x
            return nnz
        slot = (slot + 1) & mask


@kernel("int64(int32[::1], int64, int32[::1], float64[::1], int64)")
def finish(slots, bits, index, value, nnz):
    """Free the table, drop entries that cancelled, return the number left."""
    mask = (1 << bits) - 1
    for p in range(nnz):
        key = np.int64(index[p])
        slot = ((key * 2654435761) >> 7) & mask
        while slots[slot] != 0:
            slots[slot] = 0
            slot = (slot + 1) & mask
    kept = 0
    for p in range(nnz):
        if value[p] != 0.0:
            index[kept] = index[p]
            value[kept] = value[p]
            kept += 1
    return kept


@kernel("float64(float64[::1], int32[::1], float64[::1])")
def sparse_dot(w, index, value):
    """w . a for a sparse a."""
    total = 0.0
    for p in range(len(index)):
        total += w[index[p]] * value[p]
    return total


@kernel("void(float64[::1], int32[::1], float64[::1], float64)")
def sparse_add(w, index, value, scale):
    """w += scale * a for a sparse a."""
    for p in range(len(index)):
        w[index[p]] += scale * value[p]
