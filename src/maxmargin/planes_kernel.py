"""Compiled work on planes that models and the working set share: merge, dot, add, and planes of runs of errors."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel


@kernel("int64(int32[::1], int64, int32[::1], float64[::1], int64, int64, float64)", borrows=True)
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


@register_jitable
def exchange(iwork, bits, index, value, nnz, gains, loses, x):
    """Add x at one index and take it from another; returns the number of entries."""
    return accumulate(iwork, bits, index, value, accumulate(iwork, bits, index, value, nnz, gains, x), loses, -x)


@kernel("int64(int32[::1], int64, int32[::1], float64[::1], int64)", borrows=True)
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


@kernel("float64(float64[::1], int32[::1], float64[::1])", fast=False, borrows=True)
def sparse_dot(w, index, value):
    """w . a for a sparse a: four sums at a time, in an order that does not depend on where planes are stored."""
    n = len(index)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p = 0
    while p + 4 <= n:
        a += w[np.uint32(index[p])] * value[p]
        b += w[np.uint32(index[p + 1])] * value[p + 1]
        c += w[np.uint32(index[p + 2])] * value[p + 2]
        d += w[np.uint32(index[p + 3])] * value[p + 3]
        p += 4
    while p < n:
        a += w[np.uint32(index[p])] * value[p]
        p += 1
    return (a + b) + (c + d)


@kernel("void(float64[::1], int32[::1], float64[::1], float64)", fast=False, borrows=True)
def sparse_add(w, index, value, scale):
    """w += scale * a for a sparse a."""
    for p in range(len(index)):
        w[np.uint32(index[p])] += scale * value[p]


@register_jitable(inline="always")  # functions passed to a kernel in another way could not be cached
def planes_of_runs(
    cost_of, psi_of, meta, ints, floats, example, truth, bits, emit, output, iwork, index, value, result
):  # fmt: skip
    """The plane of a sequence of labels, then those of its runs of errors, when there are fewer than ``emit``.

    Wrong labels with a right one between them do not interact: each run of wrong labels is an output of its own that
    violates its margin too, and its plane costs no further argmax. ``cost_of`` and ``psi_of`` are those of the model;
    ``iwork`` has room for an output behind its first ``2^bits`` entries. Fills ``result`` from 2 on and returns the
    number of planes.
    """
    result[2] = cost_of(meta, ints, floats, example, output)
    if emit == 0:
        return 0
    T = len(truth)
    end = psi_of(meta, ints, floats, example, output, iwork, index, value)
    result[3] = end
    runs = 0
    for t in range(T):
        if output[t] != truth[t] and (t == 0 or output[t - 1] == truth[t - 1]):
            runs += 1
    if runs < 2 or runs >= emit:
        return 1
    part = iwork[1 << bits :]
    for t in range(T):
        part[t] = truth[t]
    made, t = 1, 0
    while t < T:
        begin = t
        while t < T and output[t] != truth[t]:
            part[t] = output[t]
            t += 1
        if t > begin:
            result[2 + 2 * made] = cost_of(meta, ints, floats, example, part)
            end += psi_of(meta, ints, floats, example, part, iwork, index[end:], value[end:])
            result[3 + 2 * made] = end
            made += 1
            for s in range(begin, t):
                part[s] = truth[s]
        t += 1
    for s in range(T):
        part[s] = 0
    return made
