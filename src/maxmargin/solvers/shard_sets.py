"""One working set from the blocks of several: planes, multipliers and products stay what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.accuracy import Scales
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["gathered", "linear_of", "scales_of"]

PER_BLOCK = ("held", "total", "origin", "open", "gap")
PER_PLANE = ("length", "b", "alpha", "idle", "iterate")


def gathered(pieces: Sequence[tuple[WorkingSet, np.ndarray]], budget: int) -> WorkingSet:
    """A working set of some blocks of each of several sets, in order, with copies of their planes."""
    first, ids = pieces[0][0], [ws.ids(blocks) for ws, blocks in pieces]
    rows = [ws.rows(own) for (ws, _), own in zip(pieces, ids, strict=True)]
    width = max(ws.store.slots.shape[1] for ws, _ in pieces)
    found = {n: np.concatenate([getattr(ws.store, n)[blocks] for ws, blocks in pieces]) for n in PER_BLOCK}
    pairs = [(ws.store, own) for (ws, _), own in zip(pieces, ids, strict=True)]
    found |= {n: np.concatenate([getattr(store, n)[own] for store, own in pairs]) for n in PER_PLANE}
    planes, inside = sum(map(len, ids)), np.arange(width) < found["held"][:, None]
    slots, size = np.zeros(inside.shape, np.int32), np.zeros(wk.SIZES, np.int64)
    slots[inside] = np.arange(planes)
    size[wk.POOL_END] = size[wk.POOL_LIVE] = sum(part.nnz for part in rows)
    gram = [np.pad(store.gram[own], ((0, 0), (0, width - store.gram.shape[1]))) for store, own in pairs]
    made = WorkingSet(found["total"], first.n_columns, first.longest, first.limit, budget)
    store = made.store._replace(
        slots=slots, gram=np.concatenate(gram), size=size, free=np.zeros(planes, np.int32),
        start=np.cumsum(found["length"], dtype=np.int64) - found["length"],
        columns=np.concatenate([part.indices for part in rows]).astype(np.int32),
        entries=np.concatenate([part.data for part in rows]), **found,
    )  # fmt: skip
    made = WorkingSet.restore(store, len(store.columns), first.n_columns, first.longest, budget, first.limit)
    made.store.linear[0] = linear_of(made)
    return made


def scales_of(ws: WorkingSet) -> Scales:
    """As :meth:`WorkingSet.scales`, also of a set that has no planes yet."""
    if ws.n_planes:
        return ws.scales()
    return np.where(np.isfinite(ws.store.total), ws.store.total, 0.0), np.zeros(ws.n_blocks)


def linear_of(ws: WorkingSet) -> float:
    """``sum alpha b``, added up anew: the same wherever the planes are stored."""
    ids = ws.ids(np.arange(ws.n_blocks))
    return float(ws.store.alpha[ids] @ ws.store.b[ids])
