"""Planes: the currency between oracles and solvers.

The surrogate loss of example ``i`` is a maximum of linear pieces of the weights,

    loss_i(w) = max_y  b_i(y) - w . a_i(y),

and a *plane* is one such piece: a sparse vector ``a`` of length ``n_weights`` and a number ``b``. The output ``y``
behind a plane is not needed to optimise, so solvers never see outputs and models never see solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

__all__ = ["OverBudget", "Planes", "added_counts", "aligned_zeros", "weighted_sum"]


class OverBudget(MemoryError):
    """Planes take more bytes than the solver may use; the system may have more."""


def aligned_zeros(n: int) -> np.ndarray:
    """A vector of zeros that begins on a cache line: rows of padded weights then touch no line more than they must."""
    raw = np.empty(n + 8)
    begin = (-raw.ctypes.data % 64) // 8
    vector = raw[begin : begin + n]
    vector[:] = 0.0
    return vector


@dataclass(frozen=True)
class Planes:
    """A batch of planes as raw CSR arrays."""

    # int64 (m + 1,): row ``p`` of A is ``indices[indptr[p]:indptr[p+1]]`` with ``data`` beside it; no duplicate
    # indices in a row
    indptr: np.ndarray
    indices: np.ndarray  # int32 (nnz,)
    data: np.ndarray  # float64 (nnz,)
    b: np.ndarray  # float64 (m,)
    example: np.ndarray  # int64 (m,): the example each plane belongs to
    # float64 (m,): an upper bound of ``loss_i(w)`` at the weights of the call: the loss itself when the oracle is
    # exact, ``inf`` when nothing is known. Certificates use the bound, steps use the plane
    bound: np.ndarray
    n_weights: int
    # argmaxes that it took to find them, and of how many examples the bound is open; None: one each, not known
    counts: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.b)

    def to_csr(self) -> sp.csr_array:
        """The matrix A (m x n_weights); for inspection and tests, not for hot paths."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=(len(self), self.n_weights))

    def losses(self, n_examples: int) -> np.ndarray:
        """The bounds of the losses, one per example that has a plane here, 0 for the others."""
        losses = np.zeros(n_examples)
        losses[self.example] = self.bound
        return losses

    def violations(self, w: np.ndarray) -> np.ndarray:
        """``b - A w``, the value of each plane at ``w``."""
        return self.b - self.to_csr() @ w

    def take(self, rows: np.ndarray) -> Planes:
        """Some of the planes, in the order of ``rows``."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        indices, data = self.indices[entries], self.data[entries]
        return Planes(indptr, indices, data, self.b[rows], self.example[rows], self.bound[rows], self.n_weights)

    def between(self, begin: int, end: int) -> Planes:
        """The planes from row ``begin`` to ``end`` (exclusive); entries are not copied."""
        first, last = self.indptr[begin], self.indptr[end]
        return Planes(
            self.indptr[begin : end + 1] - first, self.indices[first:last], self.data[first:last], self.b[begin:end],
            self.example[begin:end], self.bound[begin:end], self.n_weights,
        )  # fmt: skip

    @staticmethod
    def from_rows(
        rows: Sequence[tuple[np.ndarray, np.ndarray]], b: np.ndarray, example: np.ndarray, bound: np.ndarray,
        n_weights: int,
    ) -> Planes:  # fmt: skip
        """Planes from (indices, values) pairs, one pair per row."""
        indptr = np.cumsum([0, *(len(index) for index, _ in rows)], dtype=np.int64)
        indices = np.concatenate([index for index, _ in rows] or [np.empty(0)]).astype(np.int32)
        data = np.concatenate([value for _, value in rows] or [np.empty(0)]).astype(np.float64)
        b, bound = np.asarray(b, dtype=np.float64), np.asarray(bound, dtype=np.float64)
        return Planes(indptr, indices, data, b, np.asarray(example, dtype=np.int64), bound, n_weights)

    @staticmethod
    def concatenate(parts: list[Planes]) -> Planes:
        """One batch from several, in the order given."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0] + [part.indptr[-1] for part in parts[:-1]])
        indptr = [parts[0].indptr[:1], *(part.indptr[1:] + s for part, s in zip(parts, shifts, strict=True))]
        names = ("indices", "data", "b", "example", "bound")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        counts = added_counts([part.counts for part in parts])
        return Planes(indptr=np.concatenate(indptr), n_weights=parts[0].n_weights, counts=counts, **joined)


def added_counts(counts: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Those of several batches; None when one has none."""
    known = [pair for pair in counts if pair is not None]
    return (sum(a for a, _ in known), sum(b for _, b in known)) if len(known) == len(counts) else None


def weighted_sum(planes: Planes, scale: np.ndarray) -> np.ndarray:
    """``sum_p scale_p a_p`` as a dense vector (n_weights,)."""
    entries = planes.data * np.repeat(scale, np.diff(planes.indptr))
    return np.bincount(planes.indices, entries, minlength=planes.n_weights)
