"""Sparse features of tokens as plain arrays: what extractors make, before it becomes a matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from maxmargin.features.sequences import Sequences

__all__ = ["RowFeatures", "SparseRows"]

Text = TypeVar("Text", contravariant=True)


class SparseRows(NamedTuple):
    """Features of the tokens of n sequences, row-compressed.

    Their ids are known to be in range, and -1 for what is to be left out.
    """

    offsets: np.ndarray  # int64 (n + 1,): sequence i owns tokens offsets[i]:offsets[i + 1]
    indptr: np.ndarray  # int64 (tokens + 1,)
    indices: np.ndarray  # int32 (entries,)
    values: np.ndarray  # float64 (entries,), or empty when all are 1

    def sequences(self, n_features: int) -> Sequences:
        """The same as a matrix, which holds small integers where all values are 1."""
        _, indptr, indices, values = self
        kept = indices >= 0
        if not kept.all():
            indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
            indices, values = indices[kept], values[kept] if len(values) else values
        if len(indices) < 2**31:  # int64 pointers would widen the indices too
            indptr = indptr.astype(np.int32)
        data = values if len(values) else np.ones(len(indices), np.int8)
        matrix = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
        return Sequences(self.offsets, sparse=matrix)


class RowFeatures(ABC, Generic[Text]):
    """An extractor that can do without a matrix, whose making takes longer than to label a sentence."""

    n_features_: int

    @abstractmethod
    def rows(self, X: Text) -> SparseRows | None:
        """Features of a few sequences; None when they are not plain sparse features of tokens."""

    @abstractmethod
    def keeping(self, kept: np.ndarray) -> Self | None:
        """Only the features that ``kept`` marks, a bool array with ``n_features_`` entries; None where none can be."""

    @abstractmethod
    def to_state(self) -> tuple[Mapping[str, object], Mapping[str, object]]:
        """Arrays and JSON-able facts, from which the class method ``from_state`` makes the same features."""
