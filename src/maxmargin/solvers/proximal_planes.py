"""What the proximal point method keeps: planes of blocks of examples, with their multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.planes import Planes

__all__ = ["Blocks", "Found", "Origin", "Pool", "collect"]


@dataclass(frozen=True)
class Blocks:
    """A partition of the examples into blocks, each with multipliers of its own.

    Attributes
    ----------
    members : list of int64 arrays
        Examples of each block; a block whose examples are gone is empty and keeps its planes.
    block, place : int64 arrays (n_examples,)
        Block of each example, and its position within the block.
    product : bool
        Whether each block is a single example, which then may have several planes at a time.
    """

    members: list[np.ndarray]
    block: np.ndarray
    place: np.ndarray
    product: bool

    @staticmethod
    def of(members: list[np.ndarray], n_examples: int, product: bool = False) -> Blocks:
        block, place = np.zeros(n_examples, np.int64), np.zeros(n_examples, np.int64)
        for i, examples in enumerate(members):
            block[examples], place[examples] = i, np.arange(len(examples))
        return Blocks(members, block, place, product)

    @cached_property
    def widest(self) -> int:
        return max((len(m) for m in self.members), default=1)

    @cached_property
    def live(self) -> np.ndarray:
        """Blocks that have examples."""
        return np.flatnonzero([len(m) > 0 for m in self.members])

    def __len__(self) -> int:
        return len(self.members)


class Found(NamedTuple):
    """New planes, k of them: block (k,), A (k, d), b (k,), zeta (k, widest) or (k, 0)."""

    block: np.ndarray
    A: np.ndarray
    b: np.ndarray
    zeta: np.ndarray


def collect(
    planes: Planes, losses: np.ndarray, blocks: Blocks, visited: np.ndarray, weight: np.ndarray, squared: bool
) -> Found:
    """The planes of the visited blocks from those of their examples.

    The plane of a block is the sum of those of its examples, times C_k. For squared losses it is a ray, and example k
    enters with ``zeta_k = C_k loss_k``, what it would have at the optimum: unless the present point is optimal, that
    ray ascends.

    Parameters
    ----------
    planes : Planes
        Of the examples of the visited blocks; of several planes of an example only product blocks use all.
    losses : array (m,)
        Loss of the example behind each plane.
    blocks : Blocks
    visited : int64 array
    weight : array (n_examples,)
        C_k.
    squared : bool
    """
    rows = np.arange(len(planes)) if blocks.product else np.flatnonzero(np.diff(planes.example, prepend=-1))
    owner = planes.example[rows]
    scale = weight[owner] * losses[rows] if squared else weight[owner]
    block = blocks.block[owner] if blocks.product else visited
    slot = np.zeros(len(blocks), np.int64)
    slot[visited] = np.arange(len(visited))
    target = np.arange(len(rows)) if blocks.product else slot[blocks.block[owner]]
    d, size = planes.n_weights, len(block)
    at, factor = np.zeros(len(planes), np.int64), np.zeros(len(planes))
    at[rows], factor[rows] = target, scale
    lengths = np.diff(planes.indptr)
    entries = np.repeat(at * d, lengths) + planes.indices
    A = np.bincount(entries, np.repeat(factor, lengths) * planes.data, size * d).reshape(size, d)
    b = np.bincount(target, scale * planes.b[rows], size)
    zeta = np.zeros((size, blocks.widest if squared else 0))
    if squared:
        zeta[target, blocks.place[owner]] = scale / np.sqrt(np.where(weight[owner] > 0, weight[owner], 1.0))
    return Found(block, A, b, zeta)


class Origin(NamedTuple):
    """What the multiplier that a block does not give to planes belongs to: a plane (A, b) of each block.

    That is nothing at all, the plane of the true outputs, but in a round of CCCP: there it is that of the outputs which
    take the place of the truth. A sparse (blocks, d), b (blocks,).
    """

    A: sp.csr_array
    b: np.ndarray

    @staticmethod
    def of(planes: Planes | None, weight: np.ndarray, blocks: Blocks) -> Origin | None:
        """From the planes that are subtracted, at most one per example."""
        if planes is None or len(planes) == 0:
            return None
        where = blocks.block[planes.example], np.arange(len(planes))
        owner = sp.csr_array((weight[planes.example], where), shape=(len(blocks), len(planes)))
        return Origin(sp.csr_array(owner @ planes.to_csr()), owner @ planes.b)


class Pool:
    """Planes with their multipliers; rows whose block is -1 are free.

    Attributes
    ----------
    A, b : float64 arrays (rows, d), (rows,)
    zeta : float64 array (rows, widest) or (rows, 0)
        ``zeta_k / sqrt(C_k)`` of the examples of the block, for squared losses.
    alpha, beta : float64 arrays (rows,)
        Multipliers: those of the proximal problem, and those behind the best lower bound.
    block, idle : int64 arrays (rows,)
        Block of the plane; masters in a row that gave it no weight.
    origin : Origin, optional
        What planes are counted from; they are stored as they were found, so that it may move.
    """

    ARRAYS = ("A", "b", "zeta", "alpha", "beta", "block", "idle")

    def __init__(self, n_weights: int, width: int, limit: int | None) -> None:
        self.limit = limit
        self.origin: Origin | None = None
        self.A, self.b, self.zeta = np.zeros((0, n_weights)), np.zeros(0), np.zeros((0, width))
        self.alpha, self.beta = np.zeros(0), np.zeros(0)
        self.block, self.idle = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def rows(self, blocks: np.ndarray | None = None) -> np.ndarray:
        """Rows of the planes of some blocks, or of all."""
        return np.flatnonzero(self.block >= 0 if blocks is None else np.isin(self.block, blocks))

    def add(self, found: Found) -> int:
        """Take in new planes without weight; returns how many were new. A full block makes room first."""
        new = 0
        for block, a, b, zeta in zip(*found, strict=True):
            if self._is_origin(block, a, b):
                continue
            rows = np.flatnonzero(self.block == block)
            same = rows[self.b[rows] == b]
            if len(same) and ((self.A[same] == a).all(axis=1) & (self.zeta[same] == zeta).all(axis=1)).any():
                continue
            if self.limit is not None and len(rows) > self.limit:
                self._make_room(rows)
            row = self._free()
            self.A[row], self.b[row], self.zeta[row] = a, b, zeta
            self.alpha[row], self.beta[row], self.block[row], self.idle[row] = 0.0, 0.0, block, 0
            new += 1
        return new

    def _is_origin(self, block: int, a: np.ndarray, b: float) -> bool:
        if self.origin is None:
            return b == 0.0 and not a.any()
        return b == self.origin.b[block] and np.array_equal(a, self.origin.A[[block]].toarray()[0])

    def _free(self) -> int:
        free = np.flatnonzero(self.block < 0)
        if len(free) == 0:
            more = max(16, len(self.block))
            for name in self.ARRAYS:
                array = getattr(self, name)
                room = np.full((more, *array.shape[1:]), -1 if name == "block" else 0, array.dtype)
                setattr(self, name, np.concatenate([array, room]))
            return len(self.block) - more
        return int(free[0])

    def _make_room(self, rows: np.ndarray) -> None:
        """Drop the plane that was idle longest, or make one of the two lightest; the present point stays the same."""
        idle = rows[self.alpha[rows] == 0]
        if len(idle):
            self.forget(idle[[np.argmax(self.idle[idle])]])
            return
        keep, gone = rows[np.argsort(self.alpha[rows], kind="stable")[:2]]
        total = self.alpha[keep] + self.alpha[gone]
        share = self.alpha[gone] / total
        for array in (self.A, self.b, self.zeta):
            array[keep] = (1 - share) * array[keep] + share * array[gone]
        self.alpha[keep], self.beta[keep] = total, min(self.beta[keep], self.beta[gone])
        self.forget(np.array([gone]))

    def forget(self, rows: np.ndarray) -> None:
        """Free some rows."""
        self.alpha[rows], self.beta[rows], self.block[rows] = 0.0, 0.0, -1

    def set_weights(self, rows: np.ndarray, alpha: np.ndarray, patience: int) -> None:
        """Multipliers after a master problem; planes that stayed without weight too long are dropped."""
        self.alpha[rows] = alpha
        self.idle[rows] = np.where((alpha > 0) | (self.beta[rows] > 0), 0, self.idle[rows] + 1)
        self.forget(rows[self.idle[rows] > patience])

    def planes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(A, b) of some rows, counted from the origins of their blocks."""
        if self.origin is None:
            return self.A[rows], self.b[rows]
        blocks, place = np.unique(self.block[rows], return_inverse=True)
        return self.A[rows] - self.origin.A[blocks].toarray()[place], self.b[rows] - self.origin.b[blocks][place]

    def point(self, weights: np.ndarray) -> tuple[np.ndarray, float, float]:
        """(u, sum alpha b, sum zeta^2 / C) at multipliers ``weights``; u is counted from the origin."""
        rows = np.flatnonzero(weights > 0)
        quadratic = 0.0
        if self.zeta.shape[1]:
            for block in np.unique(self.block[rows]):
                own = rows[self.block[rows] == block]
                total = weights[own] @ self.zeta[own]
                quadratic += float(total @ total)
        u, linear = weights[rows] @ self.A[rows], float(weights[rows] @ self.b[rows])
        if self.origin is not None:
            given = np.bincount(self.block[rows], weights[rows], len(self.origin.b))
            u, linear = u - given @ self.origin.A, linear + float((1.0 - given) @ self.origin.b)
        return u, linear, quadratic

    def gram(self, rows: np.ndarray) -> np.ndarray | None:
        """Products of zeta within blocks, (m, m); None when losses are not squared."""
        if self.zeta.shape[1] == 0:
            return None
        block = self.block[rows]
        return (self.zeta[rows] @ self.zeta[rows].T) * (block[:, None] == block[None, :])
