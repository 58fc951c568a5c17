"""Compiled passes over a junction tree: max-product and sum-product for factors of any size.

The tree is a program of int64 numbers, written by :class:`maxmargin.inference.junction_tree.JunctionTree`, one bucket
after the other in the order of elimination:

    program:  buckets, messages (cells of all messages), constants, place of each bucket, place of each constant
    bucket:   variable, its states K, neighbours k, rows (configurations of the neighbours), table, message,
              sources, first marginal | states of the neighbours (k) | the neighbours (k) | sources
    source:   where it begins, strides over the neighbours (k), stride over the variable

A bucket's table has a row for each configuration of the neighbours, last neighbour fastest, and a column for each state
of its variable. A source is a factor (``where >= 0``, a place in ``tables``) or the message of an earlier bucket
(``-1 - where``, a place in ``fwork``). Two buckets of one variable are mini-buckets: each maximises over a copy of it.
Places in a program count from its begin ``at``, so that many programs can stand in one array.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

# places in a program, then in a bucket
BUCKETS, MESSAGES, CONSTANTS, PLACES = range(4)
VARIABLE, STATES, NEIGHBOURS, ROWS, TABLE, MESSAGE, SOURCES, MARGINAL, HEAD = range(9)


@register_jitable
def advance(digits, states, strides):
    """Count one further, the last digit fastest, and return the step in a table with these strides."""
    step, j = 0, len(states) - 1
    while j >= 0:
        digits[j] += 1
        step += strides[j]
        if digits[j] < states[j]:
            break
        step -= states[j] * strides[j]
        digits[j] = 0
        j -= 1
    return step


@register_jitable
def constants_of(ints, at, tables):
    """The sum of the factors without variables."""
    total, first = 0.0, at + PLACES + ints[at + BUCKETS]
    for c in range(ints[at + CONSTANTS]):
        total += tables[ints[first + c]]
    return total


@register_jitable
def filled(ints, at, i, tables, iwork, fwork):
    """Fill bucket ``i`` and return its place, its states, its rows, and the places of its table and its message."""
    bucket = at + ints[at + PLACES + i]
    fill_bucket(ints, bucket, tables, iwork, fwork)
    return bucket, ints[bucket + STATES], ints[bucket + ROWS], ints[bucket + TABLE], ints[bucket + MESSAGE]


@kernel("void(int64[::1], int64, float64[::1], int32[::1], float64[::1])")
def fill_bucket(ints, bucket, tables, iwork, fwork):
    """Add up the sources of a bucket in its table; ``iwork`` counts like an odometer and ends as zeros."""
    K, k, rows = ints[bucket + STATES], ints[bucket + NEIGHBOURS], ints[bucket + ROWS]
    table = fwork[ints[bucket + TABLE] : ints[bucket + TABLE] + rows * K]
    states = ints[bucket + HEAD : bucket + HEAD + k]
    table[:] = 0.0
    source = bucket + HEAD + 2 * k
    for _ in range(ints[bucket + SOURCES]):
        where, strides, stride = ints[source], ints[source + 1 : source + 1 + k], ints[source + 1 + k]
        origin = tables if where >= 0 else fwork
        cell = where if where >= 0 else -1 - where
        for row in range(rows):
            for x in range(K):
                table[row * K + x] += origin[cell + x * stride]
            cell += advance(iwork, states, strides)
        source += k + 2


@kernel("float64(int64[::1], int64, float64[::1], int32[::1], int32[::1], float64[::1])")
def max_product(ints, at, tables, labels, iwork, fwork):
    """Labels of the largest sum of factors, and its value; an upper bound when there are mini-buckets.

    Ties go to the first state. With the value -inf no labels are allowed and those written mean nothing.
    O(cells x sources); scratch ``iwork`` (zeros, handed back so) and ``fwork``.
    """
    buckets, total = ints[at + BUCKETS], constants_of(ints, at, tables)
    for i in range(buckets):
        bucket, K, rows, table, message = filled(ints, at, i, tables, iwork, fwork)
        for row in range(rows):
            best = -np.inf
            for x in range(table + row * K, table + row * K + K):
                best = fwork[x] if fwork[x] > best else best
            fwork[message + row] = best
        if ints[bucket + NEIGHBOURS] == 0:
            total += fwork[message]
    last = buckets
    while last > 0:
        bucket = at + ints[at + PLACES + last - 1]
        variable, first = ints[bucket + VARIABLE], last - 1
        while first > 0 and ints[at + ints[at + PLACES + first - 1] + VARIABLE] == variable:
            first -= 1
        K = ints[bucket + STATES]
        best, winner = -np.inf, 0
        for x in range(K):
            score = 0.0
            for i in range(first, last):
                bucket = at + ints[at + PLACES + i]
                k, row = ints[bucket + NEIGHBOURS], 0
                for j in range(k):
                    row = row * ints[bucket + HEAD + j] + labels[ints[bucket + HEAD + k + j]]
                score += fwork[ints[bucket + TABLE] + row * K + x]
            if score > best:
                best, winner = score, x
        labels[variable] = winner
        last = first
    return total


@kernel("float64(int64[::1], int64, float64[::1], float64[::1], int32[::1], float64[::1])")
def sum_product(ints, at, tables, marginals, iwork, fwork):
    """Logarithm of the sum over all labels of exp(sum of factors), and the marginals of every variable.

    Upwards a bucket sends ``m(n) = ln sum_x e^{t(n, x)}``; downwards ``P(n, x) = P(n) e^{t(n, x) - m(n)}``, where P(n)
    is added up from the joint of the bucket that took the message: no division, and -inf needs no care. ``marginals``
    holds the variables one after the other; empty: only the value. Zeros when the value is -inf.
    """
    buckets, total = ints[at + BUCKETS], constants_of(ints, at, tables)
    for i in range(buckets):
        bucket, K, rows, table, message = filled(ints, at, i, tables, iwork, fwork)
        for row in range(rows):
            t = fwork[table + row * K : table + row * K + K]
            top, mass = -np.inf, 0.0
            for x in range(K):
                top = t[x] if t[x] > top else top
            if top > -np.inf:
                for x in range(K):
                    mass += np.exp(t[x] - top)
                top += np.log(mass)
                for x in range(K):
                    t[x] = np.exp(t[x] - top)  # from here on the conditional P(x | n)
            else:
                t[:] = 0.0
            fwork[message + row] = top
        if ints[bucket + NEIGHBOURS] == 0:
            total += fwork[message]
    if len(marginals) == 0:
        return total
    marginals[:] = 0.0
    if total == -np.inf:
        return total
    fwork[: ints[at + MESSAGES]] = 0.0
    for i in range(buckets - 1, -1, -1):
        bucket = at + ints[at + PLACES + i]
        K, k, rows = ints[bucket + STATES], ints[bucket + NEIGHBOURS], ints[bucket + ROWS]
        table, message, marginal = ints[bucket + TABLE], ints[bucket + MESSAGE], ints[bucket + MARGINAL]
        for row in range(rows):
            weight = 1.0 if k == 0 else fwork[message + row]
            for x in range(K):
                fwork[table + row * K + x] *= weight
                marginals[marginal + x] += fwork[table + row * K + x]
        states, source = ints[bucket + HEAD : bucket + HEAD + k], bucket + HEAD + 2 * k
        for _ in range(ints[bucket + SOURCES]):
            where, strides, stride = ints[source], ints[source + 1 : source + 1 + k], ints[source + 1 + k]
            source += k + 2
            if where >= 0:
                continue
            cell = -1 - where
            for row in range(rows):
                for x in range(K):
                    fwork[cell + x * stride] += fwork[table + row * K + x]
                cell += advance(iwork, states, strides)
    return total
