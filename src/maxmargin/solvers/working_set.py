"""The working set: planes kept by block, with multipliers and cached Gram entries.

There is one for all dual solvers. What differs between them is which blocks there are, which are visited, how many
planes a block may keep, and how a block is solved.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import Regulariser
from maxmargin.planes import OverBudget
from maxmargin.solvers import working_set_kernel as wk

__all__ = ["WorkingSet", "extended", "unused_is_free"]

_PER_PLANE = 8 + 4 + 8 + 8 + 4 + 1 + 4  # start, length, b, alpha, idle, iterate, free
_PER_ENTRY = 4 + 8
AHEAD = 4  # times the room asked for is set aside when the pool has to move


class WorkingSet:
    """Planes by block.

    Parameters
    ----------
    total : float64 array (n_blocks,)
        Sum of the multipliers of each block; inf for an orthant.
    n_columns : int
        Length of a plane.
    longest : int
        The most non-zeros a new plane can have.
    limit : int or None
        Most extreme points a block may keep; None for as many as ``budget`` allows.
    budget : int
        Bytes. When more would be needed, blocks get a limit (with merging); a limit of 2 that does not fit is refused.
    averaging : int
        Rule by which the weights are averaged over the visits, of :mod:`~maxmargin.solvers.working_set_kernel`.
    """

    def __init__(
        self, total: np.ndarray, n_columns: int, longest: int, limit: int | None = None, budget: int = 4 << 30,
        averaging: int = wk.NO_MEAN,
    ) -> None:  # fmt: skip
        n, total = len(total), np.array(total, dtype=np.float64)
        width, planes = (8 if limit is None else min(limit, 30) + 2), max(64, 4 * n)
        pool = min(max(1 << 12, 4 * min(longest, n_columns), 200 * n), budget // (2 * _PER_ENTRY))
        self.n_columns, self.budget, self.limit = n_columns, budget, limit
        self.store = wk.Store(
            slots=np.zeros((n, width), np.int32), held=np.zeros(n, np.int32),
            total=total, origin=total.copy(), open=np.ones(n, np.int8), gap=np.full(n, np.inf),
            start=np.zeros(planes, np.int64), length=np.zeros(planes, np.int32), b=np.zeros(planes),
            alpha=np.zeros(planes), idle=np.zeros(planes, np.int32), iterate=np.zeros(planes, np.int8),
            gram=np.zeros((planes, width)), columns=extended(np.zeros(0, np.int32), 0, pool),
            entries=extended(np.zeros(0), 0, pool),
            free=np.arange(planes - 1, -1, -1, dtype=np.int32), size=np.zeros(wk.SIZES, np.int64), linear=np.zeros(1),
            mean=np.zeros(n_columns if averaging else 0), moment=np.zeros(wk.MOMENTS),
        )  # fmt: skip
        self.store.size[wk.FREE] = planes
        self.store.moment[wk.RULE] = averaging
        self._scratch(longest)

    def _scratch(self, longest: int) -> None:
        bits = max(6, int(np.ceil(np.log2(2 * min(longest, wk.HASHED) + 2))))
        self.longest, self.bits = longest, bits
        self.table = np.zeros(1 << bits, np.int32)
        self.dense = np.zeros(self.n_columns)
        self.g = np.empty(self.store.slots.shape[1] + 1)
        self.change = np.empty(self.store.slots.shape[1] + 1)

    @property
    def n_blocks(self) -> int:
        return len(self.store.held)

    @property
    def n_planes(self) -> int:
        return int(self.store.held.sum())

    @property
    def n_entries(self) -> int:
        """Non-zeros of all planes."""
        return int(self.store.size[wk.POOL_LIVE])

    @property
    def linear(self) -> float:
        """``sum alpha b``."""
        return float(self.store.linear[0])

    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """For each block its total (an orthant: the sum of its multipliers) and the largest ``|b|`` of its planes."""
        store = self.store
        inside = np.arange(store.slots.shape[1]) < store.held[:, None]
        used = np.where(inside, store.alpha[store.slots], 0.0).sum(axis=1)
        largest = np.where(inside, np.abs(store.b[store.slots]), 0.0).max(axis=1, initial=0.0)
        return np.where(np.isfinite(store.total), store.total, used), largest

    def restart_mean(self, averaging: int | None = None) -> None:
        """Begin a new average with the next visit, by another rule if one is given."""
        if averaging is not None:
            self.store = self.store._replace(mean=np.zeros(self.n_columns if averaging else 0))
            self.store.moment[:] = 0.0
            self.store.moment[wk.RULE] = averaging
        self.store.mean[:] = 0.0
        self.store.moment[wk.TOTAL] = self.store.moment[wk.LINEAR] = 0.0

    def take_mean(self, other: WorkingSet) -> None:
        """Go on with the average of another working set."""
        self.store = self.store._replace(mean=other.store.mean.copy(), moment=other.store.moment.copy())

    def grow(self, block: int, rows: int, entries: int) -> bool:
        """Make room for ``rows`` planes in a block and ``entries`` non-zeros; True when a limit was set instead."""
        return self.reserve(int(self.store.held[block]) + rows + 1, rows, entries)

    def reserve(self, wide: int, rows: int, entries: int, restrict: bool = True) -> bool:
        """Make room for blocks of ``wide`` planes, ``rows`` more planes and ``entries`` more non-zeros, as above.

        Without ``restrict``, True says that there is no room, and nothing is changed.
        """
        store = self.store
        width, planes, pool = store.slots.shape[1], len(store.b), len(store.columns)
        for ample in (True, False):  # as much as makes growing rare, or else just what is needed
            new_width, new_planes, new_pool = width, planes, pool
            if wide > width:
                new_width = max(2 * width if ample else 0, wide)
            if store.size[wk.FREE] <= rows:
                new_planes = (2 if ample else 1) * planes + rows + 1
            if store.size[wk.POOL_LIVE] + entries > 0.75 * pool:
                new_pool = int(1.6 * (pool + entries)) if ample else _pool(int(store.size[wk.POOL_LIVE]) + entries)
            needed = self._bytes(new_width, new_planes, new_pool)
            if needed <= self.budget:
                break
        else:
            return self._restrict(needed) if restrict else True
        if new_width != width:
            slots, gram = (_larger(array, (len(array), new_width)) for array in (store.slots, store.gram))
            store = store._replace(slots=slots, gram=gram)
        if new_planes != planes:
            fresh = np.arange(new_planes - 1, planes - 1, -1, dtype=np.int32)
            free = np.concatenate([store.free[: store.size[wk.FREE]], fresh])
            names = ("start", "length", "b", "alpha", "idle", "iterate")
            longer = {name: np.resize(getattr(store, name), new_planes) for name in names}
            gram = _larger(store.gram, (new_planes, new_width))
            size = store.size.copy()
            size[wk.FREE] = len(free)
            store = store._replace(free=np.resize(free, new_planes), gram=gram, size=size, **longer)
        self.g, self.change = np.empty(new_width + 1), np.empty(new_width + 1)
        self.store = store  # whole before the next call: an interrupt may come behind it
        if new_pool != pool:
            if store.size[wk.POOL_END] + entries > new_pool:  # else holes may wait: closing them moves all planes
                wk.compact(store)
            end = int(store.size[wk.POOL_END])
            columns, entries = (extended(pooled, end, new_pool) for pooled in (store.columns, store.entries))
            self.store = store._replace(columns=columns, entries=entries)
        return False

    def _bytes(self, width: int, planes: int, pool: int) -> int:
        """What blocks of ``width`` planes, so many planes in all and so many non-zeros take."""
        return planes * (_PER_PLANE + 8 * width) + pool * _PER_ENTRY + self.n_blocks * (4 * width + 29)

    @property
    def left(self) -> int:
        """Bytes of the budget that are not taken."""
        return self.budget - self._bytes(self.store.slots.shape[1], len(self.store.b), len(self.store.columns))

    def _restrict(self, needed: int) -> bool:
        """Lower the limit and merge down to it, because memory is short."""
        most = int(self.store.held.max(initial=0))
        limit = max(2, min(self.limit or most, most) // 2)
        if self.limit is not None and self.limit <= 2:
            raise OverBudget(
                f"the working set needs {needed / 2**20:.3g} MB with two planes per block, more than the budget of "
                f"{self.budget / 2**20:.3g} MB. Raise the solver's memory, or use fewer examples."
            )
        self.limit = limit
        for block in np.flatnonzero(self.store.held > limit):
            for _ in range(int(self.store.held[block])):
                planes = self.store.slots[block, : self.store.held[block]]
                self._spare(min(self.n_columns, int(self.store.length[planes].sum())))
                wk.make_room(self.store, block, limit, wk.MERGE, 1, self.change, self.dense)
        wk.compact(self.store)
        pool = _pool(int(self.store.size[wk.POOL_LIVE]))
        if pool < len(self.store.columns):  # give back what the planes that are gone took
            columns, entries = self.store.columns[:pool].copy(), self.store.entries[:pool].copy()
            self.store = self.store._replace(columns=columns, entries=entries)
        return True

    def _spare(self, entries: int) -> None:
        """Room for one merged plane behind the end of the pool, even when that exceeds the budget for a moment."""
        if self.store.size[wk.POOL_END] + entries > len(self.store.columns):
            wk.compact(self.store)
        if self.store.size[wk.POOL_END] + entries > len(self.store.columns):
            more = np.zeros(entries)
            columns = np.concatenate([self.store.columns, more.astype(np.int32)])
            self.store = self.store._replace(columns=columns, entries=np.concatenate([self.store.entries, more]))

    def follow(
        self, u: np.ndarray, w: np.ndarray, change: np.ndarray, linear: float, R: Regulariser, share: float = 1.0
    ) -> None:
        """Let u, w, ``sum alpha b`` and the average follow ``share`` of a change of the multipliers, given by u's."""
        u += share * change
        self.store.linear[0] += share * linear
        if len(self.store.mean):
            self.store.mean[:] -= self.store.moment[wk.TOTAL] * share * change
            self.store.moment[wk.LINEAR] -= self.store.moment[wk.TOTAL] * share * linear
        if w is not u:
            w[:] = R.weights(u)

    def ids(self, blocks: np.ndarray) -> np.ndarray:
        """The planes of some blocks, block by block."""
        store = self.store
        held = [store.slots[i, : store.held[i]] for i in blocks]
        return np.concatenate(held) if held else np.empty(0, np.int32)

    def rows(self, ids: np.ndarray) -> sp.csr_array:
        """The vectors of some planes, (m, n_columns)."""
        store = self.store
        lengths = store.length[ids].astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(store.start[ids] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return sp.csr_array((store.entries[at], store.columns[at], indptr), shape=(len(ids), self.n_columns))

    def matrix(self, ids: np.ndarray, width: int) -> np.ndarray:
        """The first ``width`` columns of some planes, (m, width)."""
        A = np.zeros((len(ids), width))
        wk.scatter(self.store, ids, A)
        return A

    def keep(self, ids: np.ndarray, visits: int) -> None:
        """Let planes stay for so many further visits than they would without weight."""
        self.store.idle[ids] = -visits

    def planes(self) -> tuple[sp.csr_array, np.ndarray, np.ndarray, np.ndarray]:
        """All planes: matrix A (m, n_columns), b (m,), alpha (m,), block (m,)."""
        blocks = np.arange(self.n_blocks)
        ids = self.ids(blocks)
        return self.rows(ids), self.store.b[ids], self.store.alpha[ids], np.repeat(blocks, self.store.held)

    def prepend(self, total: np.ndarray, n_weights: int, columns: int) -> None:
        """Empty blocks in front of those at hand, whose extra columns move behind ``columns`` new ones."""
        store, n = self.store, len(total)
        fresh = {
            "slots": np.zeros((n, store.slots.shape[1])), "held": np.zeros(n), "total": total, "origin": total,
            "open": np.ones(n), "gap": np.full(n, np.inf),
        }  # fmt: skip
        store.columns[store.columns >= n_weights] += columns
        self.store = store._replace(
            **{k: np.concatenate([v.astype(getattr(store, k).dtype), getattr(store, k)]) for k, v in fresh.items()}
        )
        self.n_columns += columns
        self._scratch(self.longest + columns)

    def rescale(self, total: np.ndarray, stretch: np.ndarray | None, n_weights: int, keep: bool = False) -> None:
        """Move to other totals: multipliers follow in proportion, or stay where they may (``keep``).

        ``stretch`` (n_blocks,) multiplies the extra entries of squared slacks, beyond column ``n_weights``.
        """
        store = self.store
        bounded = np.isfinite(total)
        reach = np.maximum(total, store.total - store.origin) if keep else store.total
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(bounded & (reach > 0), total / reach, 1.0)
        if stretch is not None:
            ratio = np.where(bounded, ratio, 1.0 / stretch**2)  # zeta_i follows C_i
        for block in range(self.n_blocks):
            ids = store.slots[block, : store.held[block]]
            store.alpha[ids] *= ratio[block]
            if stretch is not None and len(ids):
                extra = np.zeros(len(ids))
                for p, plane in enumerate(ids):
                    cut = slice(store.start[plane], store.start[plane] + store.length[plane])
                    own = np.flatnonzero(store.columns[cut] >= n_weights) + store.start[plane]
                    extra[p] = store.entries[own].sum()
                    store.entries[own] *= stretch[block]
                store.gram[ids, : len(ids)] += np.outer(extra, extra) * (stretch[block] ** 2 - 1.0)
            used = store.alpha[ids].sum()
            store.origin[block] = max(total[block] - used, 0.0) if bounded[block] else np.inf
            if bounded[block] and store.origin[block] < 1e-15 * total[block]:
                store.origin[block] = 0.0
            if total[block] == 0.0:
                store.alpha[ids] = 0.0
                store.origin[block] = 0.0
        store.total[:] = total
        store.gap[:] = np.inf

    def rescale_sums(self, ratio: np.ndarray, stretch: np.ndarray | None, n_weights: int) -> None:
        """Let planes that are sums over examples follow the weights C_i; multipliers stay.

        ``ratio`` (n_blocks,) multiplies the planes; ``stretch`` (n_columns - n_weights,) takes its place where slacks
        are squared: there a plane is a ray and only its extra entries change.
        """
        for block in range(self.n_blocks):
            ids = self.ids(np.array([block]))
            for plane in ids:
                cut = slice(self.store.start[plane], self.store.start[plane] + self.store.length[plane])
                if stretch is None:
                    self.store.entries[cut] *= ratio[block]
                    self.store.b[plane] *= ratio[block]
                else:
                    extra = np.maximum(self.store.columns[cut] - n_weights, 0)
                    self.store.entries[cut] *= np.where(self.store.columns[cut] < n_weights, 1.0, stretch[extra])
            A = self.rows(ids)
            self.store.gram[ids, : len(ids)] = (A @ A.T).toarray()
        self.store.gap[:] = np.inf

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The store, without unused entries."""
        end = self.store.size[wk.POOL_END]
        arrays = {f"set/{name}": array for name, array in self.store._asdict().items()}
        arrays["set/columns"], arrays["set/entries"] = self.store.columns[:end], self.store.entries[:end]
        arrays["set/pool"] = np.array(len(self.store.columns))
        limit = -1 if self.limit is None else self.limit
        arrays["set/shape"] = np.array([self.n_columns, self.longest, self.budget, limit])
        return {name: array.copy() for name, array in arrays.items()}

    @classmethod
    def restore(
        cls, store: wk.Store, pool: int, n_columns: int, longest: int, budget: int, limit: int | None
    ) -> WorkingSet:
        """The working set behind a store without unused entries; the arrays are taken over."""
        self = cls.__new__(cls)
        self.n_columns, self.budget, self.limit = n_columns, budget, limit
        columns, entries = np.zeros(pool, np.int32), np.zeros(pool)
        columns[: len(store.columns)], entries[: len(store.entries)] = store.columns, store.entries
        self.store = store._replace(columns=columns, entries=entries)
        self._scratch(longest)
        return self

    def copy(self) -> WorkingSet:
        """Another one with the same planes and multipliers."""
        store = wk.Store(*(array.copy() for array in self.store))
        return self.restore(store, len(store.columns), self.n_columns, self.longest, self.budget, self.limit)


def _larger(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A copy with zeros behind, which take no memory before they are used."""
    made = np.zeros(shape, array.dtype)
    made[tuple(map(slice, array.shape))] = array
    return made


def extended(array: np.ndarray, used: int, length: int) -> np.ndarray:
    """The array with more entries, of which the first ``used`` count: where they are, if there is room behind them.

    Else a copy, with far more room behind it than was asked for, where that costs nothing before it is used.
    """
    whole = array if array.base is None else array.base
    begins = isinstance(whole, np.ndarray) and whole.dtype == array.dtype and whole.ctypes.data == array.ctypes.data
    if not begins or whole.ndim > 1 or len(whole) < length:
        try:
            whole = np.zeros(length * (AHEAD if unused_is_free() else 1), array.dtype)
        except MemoryError:
            whole = np.zeros(length, array.dtype)
        whole[:used] = array[:used]
    return whole[:length]


def unused_is_free() -> bool:
    """Whether memory that is set aside costs nothing before it is used: not on Windows, and not under a limit.

    Systems that promise no more than they have (strict overcommit) are not recognised; there an allocation may fail.
    """
    try:
        import resource
    except ImportError:
        return False
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in limits)


def _pool(entries: int) -> int:
    """The least pool in which a quarter stays free for planes that come and go."""
    return int(entries / 0.75) + 2
