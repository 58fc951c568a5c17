"""Compiled visits of blocks whose planes are packed: each non-zero is one word of 32 bits.

A word holds the entry, a small whole number, above the number of its column among those in use. Passes over planes at
hand wait for memory: a word is a third of a column and its entry, and ``u`` at the columns in use lies side by side,
where the weights of all features are spread over many times as much. Sums are added in the order of
:mod:`~maxmargin.planes_kernel`, so a visit leaves the same multipliers, to the last bit, wherever planes are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.prefetch_kernel import prefetch_entry, prefetch_much
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import move_pairs


class Packed(NamedTuple):
    """The pool of a working set in words."""

    word: np.ndarray  # int32 (pool,)
    number: np.ndarray  # int32 (columns,): number of a column, plus 1; 0 where it has none
    column: np.ndarray  # int32 (numbers,): column of a number
    u: np.ndarray  # float64 (numbers,): u at the numbered columns
    size: np.ndarray  # int64 (2,): words made, numbers given


MADE, NUMBERS = 0, 1
BITS = 22  # of a number; the others hold the entry
LARGEST = 511  # entry
FETCHED_AHEAD = 160  # entries ahead of the one at hand whose number, or u, is asked for
MOST_ANNOUNCED = 1 << 13  # words of a block that are fetched ahead of its visit
_MASK = (1 << BITS) - 1

_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
PACKED = record(Packed, _i4s, _i4s, _i4s, _f8s, _i8s)


@kernel(types.boolean(wk.STORE, PACKED), borrows=True)
def pack(store, packed):
    """Make words of what the pool has beyond those made; False where one does not fit."""
    made, numbers = packed.size[MADE], packed.size[NUMBERS]
    end = store.size[wk.POOL_END]
    for e in range(made, end):
        if e + FETCHED_AHEAD < end:
            prefetch_entry(packed.number, np.int64(store.columns[e + FETCHED_AHEAD]))
        entry, column = store.entries[e], store.columns[e]
        whole = np.int32(entry) if abs(entry) <= LARGEST else np.int32(0)
        if whole != entry:
            return False
        number = packed.number[column]
        if number == 0:
            if numbers == len(packed.column):
                return False
            packed.column[numbers] = column
            numbers += 1
            packed.number[column] = number = numbers
        packed.word[e] = (whole << BITS) | (number - 1)
    packed.size[MADE], packed.size[NUMBERS] = end, numbers
    return True


@kernel(types.void(PACKED, _f8s), borrows=True)
def fetch(packed, u):
    """Copy u at the numbered columns to where they lie side by side."""
    numbers = packed.size[NUMBERS]
    for k in range(numbers):
        if k + FETCHED_AHEAD < numbers:
            prefetch_entry(u, np.int64(packed.column[k + FETCHED_AHEAD]))
        packed.u[k] = u[packed.column[k]]


@kernel(types.void(PACKED, _f8s), borrows=True)
def bring_back(packed, u):
    """Copy them back."""
    for k in range(packed.size[NUMBERS]):
        u[packed.column[k]] = packed.u[k]


@kernel("float64(float64[::1], int32[::1])", fast=False, borrows=True)
def packed_dot(u, words):
    """As :func:`~maxmargin.planes_kernel.sparse_dot`."""
    n = len(words)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p = 0
    while p + 4 <= n:
        a += u[np.uint32(words[p] & _MASK)] * np.float64(words[p] >> BITS)
        b += u[np.uint32(words[p + 1] & _MASK)] * np.float64(words[p + 1] >> BITS)
        c += u[np.uint32(words[p + 2] & _MASK)] * np.float64(words[p + 2] >> BITS)
        d += u[np.uint32(words[p + 3] & _MASK)] * np.float64(words[p + 3] >> BITS)
        p += 4
    while p < n:
        a += u[np.uint32(words[p] & _MASK)] * np.float64(words[p] >> BITS)
        p += 1
    return (a + b) + (c + d)


@kernel("void(float64[::1], int32[::1], float64)", fast=False, borrows=True)
def packed_add(u, words, scale):
    """As :func:`~maxmargin.planes_kernel.sparse_add`."""
    for p in range(len(words)):
        u[np.uint32(words[p] & _MASK)] += scale * np.float64(words[p] >> BITS)


@register_jitable
def announce(store, packed, blocks, k):
    """Let memory fetch what visits behind the k-th will read; see :func:`working_set_kernel.announce`.

    The places of a block's planes come three visits ahead, what is kept of each plane two, words and products one: each
    of these is found through the one before.
    """
    width = store.slots.shape[1]
    if k + 3 < len(blocks):
        block = blocks[k + 3]
        prefetch_entry(store.held, block)
        prefetch_entry(store.slots, block * width)
    if k + 2 < len(blocks):
        block = blocks[k + 2]
        for p in range(store.held[block]):
            plane = np.int64(store.slots[block, p])
            prefetch_entry(store.start, plane)
            prefetch_entry(store.length, plane)
            prefetch_entry(store.b, plane)
            prefetch_entry(store.alpha, plane)
            prefetch_entry(store.idle, plane)
    if k + 1 < len(blocks):
        block, asked = blocks[k + 1], 0
        held = store.held[block]
        for p in range(held):
            plane = np.int64(store.slots[block, p])
            begin, end = store.start[plane], store.start[plane] + store.length[plane]
            asked += end - begin
            if asked > MOST_ANNOUNCED:
                return
            prefetch_much(packed.word, begin, end)
            prefetch_much(store.gram, plane * width, plane * width + held)


@kernel(types.float64(wk.STORE, PACKED, _i8s, wk.VISIT), borrows=True)
def packed_pass(store, packed, blocks, visit):
    """As :func:`~maxmargin.solvers.masters.smo_kernel.smo_pass`: visit blocks in turn; the gain of the dual."""
    total, u, g, change = 0.0, packed.u, visit.g, visit.change
    for k in range(len(blocks)):
        block = blocks[k]
        announce(store, packed, blocks, k)
        held = store.held[block]
        if held == 0:
            continue
        for p in range(held):
            plane = store.slots[block, p]
            begin, end = store.start[plane], store.start[plane] + store.length[plane]
            g[p] = store.b[plane] - packed_dot(u, packed.word[begin:end])
        total += move_pairs(store, block, g, change, visit.tau, visit.max_steps, 1.0)
        for p in range(held):
            if change[p] != 0.0:
                plane = store.slots[block, p]
                begin, end = store.start[plane], store.start[plane] + store.length[plane]
                packed_add(u, packed.word[begin:end], change[p])
                store.linear[0] += change[p] * store.b[plane]
        wk.forget(store, block, visit.patience)
    return total
