"""Compiled rounds of strands: each visits blocks of its own, with weights of its own, and tells the others.

A strand has a mirror of those columns of u that its planes use, numbered in the order of their arrival: a vector that
is short, read and changed by one thread alone. All strands work at the same time, in rounds; at the end of a round they
add up what each has changed in the *frequent* columns, those that pull blocks of different strands together. Other
columns that several strands use follow at the end of the call, and u itself when it is next needed; only the frequent
columns of u follow every round, since argmaxes read them. Strands are what one worker does at a time; any number of
workers does the same sums in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.batch_kernel import BATCH_FUNCTION, PACK, ROWS, Pack, Rows
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.visit_kernel import ABSORB_FUNCTION
from maxmargin.team_kernel import wait_for_all

APART = 8  # numbers that different strands write are so far apart
LINE = 4  # bits: so many blocks, and planes, in a row belong to one strand, so that strands share no line of memory
GAINED, MET, CROSSED = range(3)  # sums of a strand
FULL, USED, WORK, AT, DONE = range(5)  # its counters


class Mirrors(NamedTuple):
    """The weights of strands and what they tell each other; a row for each strand."""

    u: np.ndarray  # float64 (strands, columns): what each takes for its columns of u, by their numbers
    columns: np.ndarray  # int32 (strands, columns): which columns these are,
    numbers: np.ndarray  # int32 (strands, columns): and 1 + the number of each column, or 0
    ids: np.ndarray  # int32 (pool,): the planes' columns by the numbers of their strands
    frequent: np.ndarray  # int32 (F,): columns exchanged in every round,
    places: np.ndarray  # int32 (strands, F): and their numbers
    level: np.ndarray  # float64 (strands, F): their values at the last exchange, the same for all strands,
    first: np.ndarray  # float64 (strands, F): and at the beginning of the call
    own: np.ndarray  # float64 (strands, F): by how much each has changed them since then,
    told: np.ndarray  # float64 (2 strands, F): and in the round at hand, even or odd
    users: np.ndarray  # int32 (columns,): 0 for nobody, -1 - s for strand s, 1 + the place in ``shared`` for several
    shared: np.ndarray  # int32 (strands, columns): numbers of the columns that several strands use, or -1,
    base: np.ndarray  # float64 (columns,): and the values that all last agreed on
    sums: np.ndarray  # float64 (strands, APART): GAINED by visits, MET, CROSSED; see :func:`tell` and :func:`join`
    counts: np.ndarray  # int64 (strands, APART): the round in which it found no room, or 0; columns; progress
    n_shared: np.ndarray  # int64 (1,)
    arrived: np.ndarray  # int64 (APART,): see wait_for_all


class Strands(NamedTuple):
    """What strands need beside, a row for each."""

    free: np.ndarray  # int32 (strands, planes): unused planes of each
    size: np.ndarray  # int64 (strands, SIZES)
    linear: np.ndarray  # float64 (strands, APART): sum alpha b of what the strand has changed
    begins: np.ndarray  # int64 (strands,): where the part of the pool begins that a strand may fill,
    ends: np.ndarray  # int64 (strands,): and where it ends
    known: np.ndarray  # int64 (strands,): columns in use before the call
    lifted: np.ndarray  # int64 (1,): where the columns of squared slacks begin
    g: np.ndarray  # float64 (strands, width + 1)
    change: np.ndarray  # float64 (strands, width + 1)
    table: np.ndarray  # int32 (strands, 2^bits)
    dense: np.ndarray  # float64 (strands, columns), or one row for all where planes are short
    alpha: np.ndarray  # float64 (planes,): multipliers before the call,
    origin: np.ndarray  # float64 (blocks,): and those of the origins


class Asking(NamedTuple):
    """What strands need beside to ask the oracle: as Pack and Rows, a row for each strand."""

    iwork: np.ndarray  # int32 (strands, size)
    fwork: np.ndarray  # float64 (strands, size)
    output: np.ndarray  # int32 (strands, size)
    counts: np.ndarray  # int64 (strands, APART)
    example: np.ndarray  # int64 (strands, rows)
    indptr: np.ndarray  # int64 (strands, rows)
    indices: np.ndarray  # int32 (strands, entries)
    values: np.ndarray  # float64 (strands, entries)
    b: np.ndarray  # float64 (strands, rows)
    bound: np.ndarray  # float64 (strands, rows)


_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
_i8, _f8 = types.int64, types.float64
MIRRORS = record(
    Mirrors, _f8ss, _i4ss, _i4ss, _i4s, _i4s, _i4ss, _f8ss, _f8ss, _f8ss, _f8ss, _i4s, _i4ss, _f8s, _f8ss, _i8ss, _i8s,
    _i8s,
)  # fmt: skip
STRANDS = record(Strands, _i4ss, _i8ss, _f8ss, _i8s, _i8s, _i8s, _i8s, _f8ss, _f8ss, _i4ss, _f8ss, _f8s, _f8s)
ASKING = record(Asking, _i4ss, _f8ss, _i4ss, _i8ss, _i8ss, _i8ss, _i4ss, _f8ss, _f8ss, _f8ss)


# --- what a strand sees -----------------------------------------------------------------------------------------------


@register_jitable
def own_store(store, strands, mirrors, s):
    """The working set as strand s sees it: with unused planes, pool and sums of its own, and numbers for columns."""
    end = strands.ends[s]
    return wk.Store(
        store.slots, store.held, store.total, store.origin, store.open, store.gap, store.start, store.length, store.b,
        store.alpha, store.idle, store.iterate, store.gram, mirrors.ids[:end], store.entries[:end], strands.free[s],
        strands.size[s], strands.linear[s], store.mean, store.moment,
    )  # fmt: skip


@register_jitable
def own_point(point, mirrors, s):
    """Where strand s stands."""
    u = mirrors.u[s]
    return wk.Point(
        u, u, point.positive, point.starts, point.table, point.fixed, point.curving, point.threshold, point.scale,
        point.log,
    )  # fmt: skip


@register_jitable
def own_visit(visit, strands, s):
    dense = strands.dense[min(s, len(strands.dense) - 1)]
    return wk.Visit(
        visit.limit, visit.rule, visit.keep_origin, visit.tau, visit.max_steps, visit.patience, visit.bits,
        strands.table[s], dense, strands.g[s], strands.change[s],
    )  # fmt: skip


@register_jitable
def own_pack(pack, asking, s):
    return Pack(
        pack.meta, pack.ints, pack.floats, asking.iwork[s], asking.fwork[s], asking.output[s], pack.room,
        pack.rescaling, pack.cost_weight, pack.lift, asking.counts[s],
    )  # fmt: skip


@register_jitable
def own_rows(asking, s):
    return Rows(asking.example[s], asking.indptr[s], asking.indices[s], asking.values[s], asking.b[s], asking.bound[s])


# --- what strands tell each other -------------------------------------------------------------------------------------


@register_jitable
def number_of(mirrors, u, lifted, c, s):
    """The number of a column in the mirror of strand s, which is given when it is first needed.

    Columns of squared slacks, from ``lifted`` on, are their own numbers.
    """
    if c >= lifted:
        return c
    number = mirrors.numbers[s, c]
    if number == 0:
        number = np.int32(mirrors.counts[s, USED] + 1)
        mirrors.numbers[s, c] = number
        mirrors.columns[s, number - 1] = c
        mirrors.u[s, number - 1] = u[c]
        mirrors.counts[s, USED] = number
    return number - 1


@register_jitable
def column_of(mirrors, lifted, number, s):
    """The column that has a number in the mirror of strand s."""
    return number if number >= lifted else mirrors.columns[s, number]


@kernel(types.void(MIRRORS, _f8s, _i8, _i4s, _i4s, _i8), borrows=True)
def number_all(mirrors, u, lifted, columns, numbers, s):
    """``numbers`` (n,) receives those of columns in the mirror of strand s; the two may be the same array."""
    for e in range(len(columns)):
        numbers[e] = number_of(mirrors, u, lifted, columns[e], s)


@kernel(types.void(MIRRORS, wk.STORE, _f8s, _i8, _i8), borrows=True)
def number_planes(mirrors, store, u, lifted, s):
    """Number the columns of all planes of strand s."""
    for block in range(len(store.held)):
        if (block >> LINE) % len(mirrors.u) == s:
            for p in range(store.held[block]):
                plane = store.slots[block, p]
                begin, end = store.start[plane], store.start[plane] + store.length[plane]
                number_all(mirrors, u, lifted, store.columns[begin:end], mirrors.ids[begin:end], s)


@kernel(types.void(MIRRORS, _f8s, _i8, _i8), borrows=True)
def reflect(mirrors, u, lifted, s):
    """Let the mirror of a strand be u."""
    for e in range(mirrors.counts[s, USED]):
        mirrors.u[s, e] = u[mirrors.columns[s, e]]
    for c in range(lifted, len(u)):
        mirrors.u[s, c] = u[c]


@kernel(types.void(MIRRORS, _f8s), borrows=True)
def renew_base(mirrors, u):
    """Let the columns that several strands use be what they are in u."""
    for s in range(len(mirrors.u)):
        for e in range(mirrors.n_shared[0]):
            if mirrors.shared[s, e] >= 0:
                mirrors.base[e] = u[mirrors.columns[s, mirrors.shared[s, e]]]


@kernel(types.void(MIRRORS, _f8s, _i8s), borrows=True)
def find_shared(mirrors, u, known):
    """Note which of the columns numbered from ``known`` (strands,) on have come to belong to several strands."""
    count = len(mirrors.u)
    for s in range(count):
        for number in range(known[s], mirrors.counts[s, USED]):
            c = mirrors.columns[s, number]
            user = mirrors.users[c]
            if user == 0:
                mirrors.users[c] = -1 - s
                continue
            if user < 0:
                e, other = mirrors.n_shared[0], -1 - user
                mirrors.n_shared[0] += 1
                for t in range(count):
                    mirrors.shared[t, e] = -1
                mirrors.shared[other, e] = mirrors.numbers[other, c] - 1
                mirrors.base[e] = u[c]
                mirrors.users[c] = user = np.int32(e + 1)
            mirrors.shared[s, user - 1] = number


@kernel(types.void(MIRRORS, _i8), borrows=True)
def begin_rounds(mirrors, s):
    """A strand begins with the frequent columns as they are."""
    for k in range(len(mirrors.frequent)):
        x = mirrors.u[s, mirrors.places[s, k]]
        mirrors.level[s, k], mirrors.first[s, k], mirrors.own[s, k] = x, x, 0.0
    for k in range(APART):
        mirrors.sums[s, k] = 0.0


@kernel(types.void(MIRRORS, _i8, _i8), fast=False, borrows=True)
def tell(mirrors, s, odd):
    """A strand says what it has changed in the frequent columns.

    What it takes its steps to gain is right at its mirror. At u they gain more by MET, the products of its changes with
    those of others that it has been told of since the call began: those are part of the mirror already.
    """
    u, level, first, own = mirrors.u[s], mirrors.level[s], mirrors.first[s], mirrors.own[s]
    told, places = mirrors.told[odd * len(mirrors.u) + s], mirrors.places[s]
    met = 0.0
    for k in range(len(mirrors.frequent)):
        change = u[places[k]] - level[k]
        met += change * (level[k] - first[k] - own[k])
        told[k] = change
        own[k] += change
    mirrors.sums[s, MET] += met


@kernel(types.void(MIRRORS, _i8, _i8), fast=False, borrows=True)
def listen(mirrors, s, odd):
    """A strand follows what all have changed in the frequent columns, added in their order."""
    count, n = len(mirrors.u), len(mirrors.frequent)
    u, level, places = mirrors.u[s], mirrors.level[s], mirrors.places[s]
    for t in range(count):
        told = mirrors.told[odd * count + t]
        for k in range(n):
            level[k] += told[k]
    for k in range(n):
        u[places[k]] = level[k]


@kernel(types.void(MIRRORS, _i8), fast=False, borrows=True)
def join(mirrors, k):
    """Let all mirrors agree on the k-th part of the columns that several strands use.

    A column that one strand has changed is what that strand has made of it, to the last bit: so nothing depends on how
    long a column has been known as shared. CROSSED receives the products of the changes of different strands.
    """
    count, crossed, n = len(mirrors.u), 0.0, mirrors.n_shared[0]
    for s in range(count):
        for t in range(s):
            for f in range(k, len(mirrors.frequent), count):
                crossed += mirrors.own[s, f] * mirrors.own[t, f]
    for e in range(k * n // count, (k + 1) * n // count):
        before = mirrors.base[e]
        after, changes, total = before, 0, 0.0
        for s in range(count):
            number = mirrors.shared[s, e]
            if number >= 0:
                x = mirrors.u[s, number]
                if x != before:
                    change = x - before
                    crossed += total * change
                    total += change
                    after = x if changes == 0 else before + total
                    changes += 1
        if changes > 0:
            mirrors.base[e] = after
            for s in range(count):
                if mirrors.shared[s, e] >= 0:
                    mirrors.u[s, mirrors.shared[s, e]] = after
    mirrors.sums[k, CROSSED] = crossed


@register_jitable
def show_frequent(mirrors, u, worker, workers):
    """Let u have the frequent columns."""
    n, level = len(mirrors.frequent), mirrors.level[worker]
    for k in range(worker * n // workers, (worker + 1) * n // workers):
        u[mirrors.frequent[k]] = level[k]


@kernel(types.void(MIRRORS, _f8s, _i8, _i8, _i8), borrows=True)
def hand_back(mirrors, u, lifted, worker, workers):
    """Let u have what the strands have made of it; all mirrors agree."""
    for s in range(worker, len(mirrors.u), workers):
        for e in range(mirrors.counts[s, USED]):
            c = mirrors.columns[s, e]
            if u[c] != mirrors.u[s, e]:
                u[c] = mirrors.u[s, e]
        for c in range(lifted, len(u)):
            if ((c - lifted) >> LINE) % len(mirrors.u) == s:
                u[c] = mirrors.u[s, c]


@register_jitable
def prepare(mirrors, point, strands, store, worker, workers):
    """The beginning of a call: multipliers are remembered. Strands wait for each other behind it."""
    count, planes, blocks = len(mirrors.u), len(store.alpha), len(store.origin)
    for s in range(worker, count, workers):
        begin_rounds(mirrors, s)
        for p in range(s * planes // count, (s + 1) * planes // count):
            strands.alpha[p] = store.alpha[p]
        for p in range(s * blocks // count, (s + 1) * blocks // count):
            strands.origin[p] = store.origin[p]
        mirrors.counts[s, FULL] = mirrors.counts[s, AT] = mirrors.counts[s, DONE] = 0


@register_jitable
def exchange(mirrors, rounds, worker, workers, waits):
    """The end of a round, the ``rounds``-th; whether a strand had no room, and the waits so far."""
    count, odd, full = len(mirrors.u), rounds & 1, False
    for s in range(worker, count, workers):
        tell(mirrors, s, odd)
    waits += 1
    wait_for_all(mirrors.arrived, waits, workers)
    for s in range(worker, count, workers):
        listen(mirrors, s, odd)
    for s in range(count):
        full = full or 0 < mirrors.counts[s, FULL] <= rounds
    return full, waits


@register_jitable
def agree(mirrors, point, strands, store, worker, workers, waits):
    """The end of a call: all mirrors agree again."""
    count = len(mirrors.u)
    for s in range(worker, count, workers):
        for e in range(strands.begins[s], strands.size[s, wk.POOL_END]):
            store.columns[e] = column_of(mirrors, strands.lifted[0], mirrors.ids[e], s)
    if worker == 0:
        find_shared(mirrors, point.u, strands.known)
        for k in range(len(mirrors.frequent)):
            e = mirrors.users[mirrors.frequent[k]] - 1
            if e >= 0:
                mirrors.base[e] = mirrors.level[0, k]
    waits += 1
    wait_for_all(mirrors.arrived, waits, workers)
    for s in range(worker, count, workers):
        join(mirrors, s)


# --- rounds -----------------------------------------------------------------------------------------------------------


@register_jitable
def work_of(store, block):
    """About how many entries a visit of a block reads."""
    return 64 + store.held[block] * store.length[store.slots[block, 0]]


@kernel(
    types.void(wk.PASS_FUNCTION, wk.STORE, _i8s, _i8s, wk.POINT, wk.VISIT, STRANDS, MIRRORS, _i8, _i8, _i8),
    borrows=True,
)
def revisit_rounds(solve, store, blocks, offsets, point, visit, strands, mirrors, per_round, worker, workers):
    """Visit the blocks ``blocks[offsets[s] : offsets[s + 1]]`` of each strand with the planes they have.

    Rounds read about ``per_round`` entries per strand; all strands have the same number of them.
    """
    count, counts, waits = len(mirrors.u), mirrors.counts, 1
    prepare(mirrors, point, strands, store, worker, workers)
    for s in range(worker, count, workers):
        work = 0
        for k in range(offsets[s], offsets[s + 1]):
            work += work_of(store, blocks[k])
        counts[s, WORK] = work
    wait_for_all(mirrors.arrived, waits, workers)
    most = 0
    for s in range(count):
        most = max(most, counts[s, WORK])
    rounds = max(1, most // per_round)
    for r in range(1, rounds + 1):
        for s in range(worker, count, workers):
            begin = offsets[s] + counts[s, AT]
            at, due = begin, counts[s, WORK] * r // rounds
            while at < offsets[s + 1] and (r == rounds or counts[s, DONE] < due):
                counts[s, DONE] += work_of(store, blocks[at])
                at += 1
            counts[s, AT] = at - offsets[s]
            mirrors.sums[s, GAINED] += solve(
                own_store(store, strands, mirrors, s), blocks[begin:at], own_point(point, mirrors, s),
                own_visit(visit, strands, s), 0,
            )  # fmt: skip
        _, waits = exchange(mirrors, r, worker, workers, waits)
    agree(mirrors, point, strands, store, worker, workers, waits)


@kernel(
    types.void(
        BATCH_FUNCTION, SEARCH_FUNCTION, PLANE_FUNCTION, PACK, ABSORB_FUNCTION, wk.ROOM_FUNCTION, wk.PASS_FUNCTION,
        wk.STORE, wk.POINT, wk.VISIT, _i8s, _i8s, _i8, _i8, _i8, _f8s, STRANDS, MIRRORS, ASKING, _i8, _i8, _i8,
    ),
    borrows=True,
)  # fmt: skip
def visit_rounds(
    planes_batch, search, plane, pack, absorb, make_room, solve, store, point, visit, examples, offsets, first, batch,
    emit, weight, strands, mirrors, asking, per_round, worker, workers,
):  # fmt: skip
    """Visit the examples of each strand with new planes, at least ``per_round`` in a round; else as sequential_pass.

    ``counts[:, AT]`` says how many are done; less than all means that the store has to grow.
    """
    count, counts, waits, most = len(mirrors.u), mirrors.counts, 1, 0
    prepare(mirrors, point, strands, store, worker, workers)
    wait_for_all(mirrors.arrived, waits, workers)
    for s in range(count):
        most = max(most, offsets[s + 1] - offsets[s])
    rounds = max(1, most // per_round)
    for r in range(1, rounds + 1):
        for s in range(worker, count, workers):
            begin = offsets[s] + counts[s, AT]
            last = offsets[s] + (offsets[s + 1] - offsets[s]) * r // rounds
            rows, lifts = own_rows(asking, s), pack.lift[first:]
            while begin < last:
                part = examples[begin : min(begin + batch, last)]
                planes_batch(search, plane, own_pack(pack, asking, s), point.w, part, 0, emit, rows)
                m = 0
                while rows.example[m] >= 0:
                    rows.example[m] = part[rows.example[m]] - first
                    m += 1
                entries = rows.indices[: rows.indptr[m]]
                number_all(mirrors, point.u, strands.lifted[0], entries, entries, s)
                done = absorb(
                    make_room, solve, own_store(store, strands, mirrors, s), rows.example[:m], 0, rows, weight, lifts,
                    own_point(point, mirrors, s), own_visit(visit, strands, s), mirrors.sums[s],
                )  # fmt: skip
                if done < m:
                    counts[s, FULL] = r
                    break
                begin += len(part)
            counts[s, AT] = begin - offsets[s]
        full, waits = exchange(mirrors, r, worker, workers, waits)
        show_frequent(mirrors, point.u, worker, workers)
        waits += 1
        wait_for_all(mirrors.arrived, waits, workers)
        if full:
            break
    agree(mirrors, point, strands, store, worker, workers, waits)


@kernel(
    types.void(
        ABSORB_FUNCTION, wk.ROOM_FUNCTION, wk.PASS_FUNCTION, wk.STORE, _i8s, _i8s, _i8s, ROWS, _f8s, _f8s, wk.POINT,
        wk.VISIT, STRANDS, MIRRORS, _i8, _i8, _i8,
    ),
    borrows=True,
)  # fmt: skip
def absorb_rounds(
    absorb, make_room, solve, store, begins, ends, offsets, rows, weight, lift, point, visit, strands, mirrors,
    per_round, worker, workers,
):  # fmt: skip
    """Bring new planes into the blocks of each strand; else as absorb.

    Strand s has the rows ``begins[k] : ends[k]`` for k from ``offsets[s]`` to ``offsets[s + 1]``, and begins move on with
    what is done; less than all means that the store has to grow.
    """
    count, counts, waits, most = len(mirrors.u), mirrors.counts, 1, 0
    prepare(mirrors, point, strands, store, worker, workers)
    wait_for_all(mirrors.arrived, waits, workers)
    for s in range(count):
        most = max(most, offsets[s + 1] - offsets[s])
    rounds = max(1, most // per_round)
    for r in range(1, rounds + 1):
        for s in range(worker, count, workers):
            last = offsets[s] + (offsets[s + 1] - offsets[s]) * r // rounds
            for k in range(offsets[s] + counts[s, AT], last):
                entries = rows.indices[rows.indptr[begins[k]] : rows.indptr[ends[k]]]
                number_all(mirrors, point.u, strands.lifted[0], entries, entries, s)
                begins[k] = absorb(
                    make_room, solve, own_store(store, strands, mirrors, s), rows.example[: ends[k]], begins[k], rows, weight,
                    lift, own_point(point, mirrors, s), own_visit(visit, strands, s), mirrors.sums[s],
                )  # fmt: skip
                if begins[k] < ends[k]:
                    for e in range(rows.indptr[begins[k]], rows.indptr[ends[k]]):
                        rows.indices[e] = column_of(mirrors, strands.lifted[0], rows.indices[e], s)
                    counts[s, FULL] = r
                    break
                counts[s, AT] += 1
        full, waits = exchange(mirrors, r, worker, workers, waits)
        if full:
            break
    agree(mirrors, point, strands, store, worker, workers, waits)


@kernel(_i8(wk.STORE, _i8, _i4s, _i4s), borrows=True)
def count_columns(store, step, counts, found):
    """Count the planes of every ``step``-th block with a non-zero in each column, ``counts`` (columns,), zeros before.

    ``found`` receives the columns that occur, in order of their appearance; returns how many they are.
    """
    n = 0
    for block in range(0, len(store.held), step):
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            for e in range(store.start[plane], store.start[plane] + store.length[plane]):
                c = store.columns[e]
                if counts[c] == 0:
                    found[n] = c
                    n += 1
                counts[c] += 1
    return n
