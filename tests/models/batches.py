"""Runs the compiled loops of the oracles on a bound model, with buffers of a chosen size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.models.search_kernel import decode_batch
from maxmargin.oracles.batch_kernel import Pack, Rows, planes_batch, sum_batch


@dataclass(frozen=True)
class Row:
    """One plane: its position in the list of examples, (a, b) with a dense, and the bound that came with it."""

    position: int
    a: np.ndarray
    b: float
    bound: float


GUARD = 64


class Guarded:
    """Arrays with a margin behind their end, to see a kernel write where it may not: compiled code does not check."""

    def __init__(self):
        self.margins = []

    def array(self, size, dtype=np.float64, fill=0):
        whole = np.full(size + GUARD, fill, dtype)
        whole[size:] = -77
        self.margins.append(whole[size:])
        return whole[:size]

    def workspace(self, bound):
        _, _, output = bound.workspace()
        sizes = (bound.iwork_size, np.int32), (bound.fwork_size, np.float64), (len(output), np.int32)
        return [self.array(size, dtype) for size, dtype in sizes]

    def check(self):
        assert all((margin == -77).all() for margin in self.margins), "a kernel wrote behind the end of an array"


MARGIN = 0  # row of the rescaling table


def pack(bound):
    return bound.plane, bound.meta, bound.ints, bound.floats


def functions(bound):
    kernel = bound.kernel()
    return kernel.search, kernel.plane


def plane(bound, w, i, cost_weight, emit):
    """One call of the kernel: (planes made, output, result)."""
    guarded = Guarded()
    work = guarded.workspace(bound)
    index, value = guarded.array(bound.room, np.int32), guarded.array(bound.room)
    result = guarded.array(2 + 2 * max(emit, 1))
    made = bound.plane(*pack(bound)[1:], w, i, cost_weight, emit, *work, index, value, result)
    guarded.check()
    length = bound.output_at[i + 1] - bound.output_at[i]
    return made, work[2][:length].copy(), result


def planes(bound, w, examples, cost_weight, *, emit=1, lift=None, room=None, spare=0, spare_rows=0):
    """All planes, in as many calls as the buffers (one example, plus what is spare) make necessary; and that number."""
    examples = np.ascontiguousarray(examples, np.int64)
    lift = np.empty(0) if lift is None else np.asarray(lift, np.float64)
    room = bound.room if room is None else room
    guarded = Guarded()
    iwork, fwork, output = guarded.workspace(bound)
    capacity, most = room + spare, emit + spare_rows
    out, begin, calls = [], 0, 0
    while True:
        rows, indptr = guarded.array(most + 1, np.int64, -7), guarded.array(most + 1, np.int64, -7)
        index, value = guarded.array(capacity, np.int32, -7), guarded.array(capacity, fill=np.nan)
        b, limit = guarded.array(most, fill=np.nan), guarded.array(most, fill=np.nan)
        question = Pack(
            *pack(bound)[1:], iwork, fwork, output, room, MARGIN, float(cost_weight), lift, np.zeros(2, np.int64)
        )
        answers = Rows(rows, indptr, index, value, b, limit)
        done = planes_batch(*functions(bound), question, w, examples, begin, emit, answers)
        calls += 1
        m = int(np.flatnonzero(rows == -1)[0])
        for p in range(m):
            entries = slice(indptr[p], indptr[p + 1])
            keys = index[entries]
            assert len(set(keys.tolist())) == len(keys), "an index twice in one plane"
            assert (value[entries] != 0).all(), "a stored zero"
            a = np.zeros(len(w))
            a[keys] = value[entries]
            out.append(Row(int(rows[p]), a, float(b[p]), float(limit[p])))
        guarded.check()
        assert not iwork.any(), "scratch not handed back as zeros"
        if done == len(examples):
            return out, calls
        assert done > begin, "no progress with room for one example"
        begin = done


def decode(bound, w, examples, cost_weight):
    """(outputs as a list of arrays, costs, bounds, status)."""
    examples = np.ascontiguousarray(examples, np.int64)
    iwork, fwork, output = bound.workspace()
    lengths = np.diff(bound.output_at)[examples]
    at = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    outputs = np.full(at[-1], -7, np.int32)
    cost, value, limit = np.full((3, len(examples)), np.nan)
    status = decode_batch(*pack(bound), w, examples, cost_weight, iwork, fwork, output, at, outputs, cost, value, limit)
    return [outputs[at[e] : at[e + 1]] for e in range(len(examples))], cost, limit, status


def total(bound, w, examples, cost_weight, scale):
    """(dense sum of scale * a, sum of scale * b, losses)."""
    examples = np.ascontiguousarray(examples, np.int64)
    iwork, fwork, output = bound.workspace()
    a, limit = np.zeros(len(w)), np.full(len(examples), np.nan)
    question = Pack(
        *pack(bound)[1:],
        iwork,
        fwork,
        output,
        bound.room,
        MARGIN,
        float(cost_weight),
        np.empty(0),
        np.zeros(2, np.int64),
    )
    b = sum_batch(*functions(bound), question, w, examples, scale, a, limit)
    return a, b, limit
