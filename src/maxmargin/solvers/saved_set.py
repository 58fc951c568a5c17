"""The working set of the dual engine from arrays that nobody vouches for.

Whatever a compiled loop relies on is checked: planes inside the pool that overlap nowhere, each in one block or free;
columns in range, none twice; multipliers that are feasible; products that are those of the planes.
"""

from __future__ import annotations

import numpy as np

from maxmargin.formulations.problem import Problem
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.proof import ROUNDING, agree
from maxmargin.solvers.saved import NUMBER, SIZE, Saved, twice
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["check_sums", "saved_set"]

AT_ONCE = 1024  # blocks whose planes are looked at together
NOISE = 1e-12  # what sums of planes that are gone may leave


def saved_set(saved: Saved, like: WorkingSet, limit: int | None, quadratic: bool) -> WorkingSet:
    """The working set that :meth:`WorkingSet.to_arrays` wrote, for the blocks and columns of an empty one.

    ``limit`` is the setting for planes per block, which short memory may have lowered. O(non-zeros), and for a
    ``quadratic`` regulariser O(m) times the non-zeros of each block of m planes, for its products.
    """
    part = saved.part("set")
    store = wk.Store(**_arrays(part, like))
    _check_places(part, store, like.n_columns)
    _check_multipliers(part, store)
    shape = part.whole("shape", np.int64, (4,), (-1, 2.0**62))
    present = None if shape[3] < 0 else int(shape[3])
    within = present is None or present >= 2 if limit is None else present is not None and 1 <= present <= limit
    if not within:
        raise part.refusal("shape", f"has the limit {present} where the solver has {limit}")
    if quadratic:
        from maxmargin.solvers.saved_kernel import wrong_products

        block = int(wrong_products(store, np.zeros(like.n_columns), ROUNDING))
        if block >= 0:
            raise part.refusal("gram", f"does not hold the products of the planes of block {block}")
    pool = part.whole("pool", np.int64, (), (len(store.columns), like.budget))
    try:
        return WorkingSet.restore(store, int(pool), like.n_columns, like.longest, like.budget, present)
    except MemoryError:
        raise part.refusal("pool", f"asks for {pool} entries, more than fit in memory") from None


def _arrays(part: Saved, like: WorkingSet) -> dict[str, np.ndarray]:
    """The arrays of the store by kind, shape and range; what is true of single numbers only."""
    n, d, empty = like.n_blocks, like.n_columns, like.store
    b = part.reals("b", (None,))
    planes = len(b)
    slots = part.whole("slots", np.int32, (n, None), (0, planes - 1))
    width = slots.shape[1]
    averaging = empty.moment[wk.RULE]
    found = {
        "slots": slots, "b": b,
        "held": part.whole("held", np.int32, (n,), (0, width - 1)),  # one place stays free for merged planes
        "total": part.reals("total", (n,), SIZE), "origin": part.reals("origin", (n,), SIZE),
        "open": part.whole("open", np.int8, (n,), (0, 1)), "gap": part.reals("gap", (n,), SIZE),
        "start": part.array("start", np.int64, (planes,)), "length": part.array("length", np.int32, (planes,)),
        "alpha": part.reals("alpha", (planes,), NUMBER), "idle": part.array("idle", np.int32, (planes,)),
        "iterate": part.whole("iterate", np.int8, (planes,), (0, 1)),
        "gram": part.array("gram", np.float64, (planes, width)),
        "columns": part.whole("columns", np.int32, (None,), (0, d - 1)),  # also those in holes between planes
        "free": part.whole("free", np.int32, (planes,), (0, planes - 1)),
        "size": part.whole("size", np.int64, (wk.SIZES,), (0, 2.0**62)), "linear": part.reals("linear", (1,)),
        "mean": part.reals("mean", (d if averaging else 0,)),
        "moment": part.reals("moment", (wk.MOMENTS,)),
    }  # fmt: skip
    found["entries"] = part.reals("entries", (len(found["columns"]),))
    rule, total, visits, linear = found["moment"]
    most = 2.0**53 if averaging else 0.0
    counted = (total == 0.0 or 1.0 <= total <= most**2) and 0.0 <= visits <= most
    if rule != averaging or not counted:
        raise part.refusal("moment", "does not count the visits of an average as the solver makes it")
    if total == 0.0 and (linear != 0.0 or found["mean"].any()):
        raise part.refusal("mean", "and set/moment hold a sum over no visits that is not 0")
    if not np.isfinite(found["gap"][np.isfinite(found["gap"])].sum()):
        raise part.refusal("gap", "has no finite sum")
    return found


def _check_places(part: Saved, store: wk.Store, n_columns: int) -> None:
    """Every plane is in one block or free, and those in blocks lie in the pool, apart from each other."""
    planes, end = len(store.b), len(store.columns)
    inside = np.arange(store.slots.shape[1]) < store.held[:, None]
    used = store.slots[inside]
    if len(used) + store.size[wk.FREE] != planes:
        raise part.refusal("size", f"counts {store.size[wk.FREE]} free planes of {planes} where {len(used)} are held")
    both = np.concatenate([used, store.free[: store.size[wk.FREE]]])
    if not np.array_equal(np.sort(both), np.arange(planes)):
        raise part.refusal("slots", "and set/free do not name every plane once")
    start, length = store.start[used], store.length[used].astype(np.int64)
    if len(used) and not (length.min() >= 0 and start.min() >= 0 and (start <= end - length).all()):
        raise part.refusal("start", f"and set/length lead out of the {end} entries")
    order = np.argsort(start[length > 0])
    begins, ends = start[length > 0][order], (start + length)[length > 0][order]
    if (begins[1:] < ends[:-1]).any():
        raise part.refusal("start", "has planes that overlap")
    if store.size[wk.POOL_END] != end or store.size[wk.POOL_LIVE] != length.sum():
        raise part.refusal("size", f"does not count the {end} entries, {length.sum()} of them in planes")
    if twice(start, length, store.columns, n_columns) >= 0:
        raise part.refusal("columns", "names a column twice in a plane")
    if not np.isfinite(np.where(inside[:, None, :], store.gram[store.slots], 0.0)[inside]).all():
        raise part.refusal("gram", "holds numbers that are not finite")


def _check_multipliers(part: Saved, store: wk.Store) -> None:
    """Multipliers are >= 0 and, with that of the origin, add up to their block's total; it has one stored iterate."""
    inside = np.arange(store.slots.shape[1]) < store.held[:, None]
    alpha = np.where(inside, store.alpha[store.slots], 0.0)
    if not (np.isfinite(alpha).all() and alpha.min(initial=0.0) >= 0.0):
        raise part.refusal("alpha", "holds multipliers that are negative or not finite")
    bounded = np.isfinite(store.total)
    off = np.abs(alpha.sum(axis=1)[bounded] + store.origin[bounded] - store.total[bounded])
    if (off > ROUNDING * store.total[bounded]).any() or not np.isinf(store.origin[~bounded]).all():
        raise part.refusal("alpha", "and set/origin do not add up to the totals of their blocks")
    iterates = np.where(inside, store.iterate[store.slots], 0).sum(axis=1)
    if (iterates > 1).any():  # a full block makes room for one newcomer at a time, beside one stored iterate
        raise part.refusal("iterate", f"marks two planes of block {int(np.argmax(iterates > 1))}")


def check_sums(saved: Saved, ws: WorkingSet, problem: Problem, u: np.ndarray) -> None:
    """Refuse sums over planes that are not those of the multipliers."""
    linear, size, total, most = 0.0, 0.0, np.zeros(ws.n_columns), np.zeros(ws.n_columns)
    bounded = np.where(np.isfinite(ws.store.total), ws.store.total, 0.0)
    for begin in range(0, ws.n_blocks, AT_ONCE):
        blocks = np.arange(begin, min(begin + AT_ONCE, ws.n_blocks))
        ids, owner = ws.ids(blocks), np.repeat(blocks, ws.store.held[blocks])
        A, b, alpha = ws.rows(ids), ws.store.b[ids], ws.store.alpha[ids]
        linear, size = linear + float(alpha @ b), size + float(alpha @ np.abs(b))
        total, most = total + A.T @ alpha, most + abs(A).T @ np.maximum(alpha, bounded[owner])
    if problem.shift is not None:
        total, most = total - problem.shift, most + np.abs(problem.shift)
    if not np.abs(u - total).max(initial=0.0) <= ROUNDING * most.max(initial=0.0) + NOISE:
        raise saved.refusal("u", "is not the sum of the planes times their multipliers")
    if not agree(ws.linear, linear, size + NOISE / ROUNDING):
        raise saved.refusal("set/linear", "is not the sum of the costs of the planes times their multipliers")
