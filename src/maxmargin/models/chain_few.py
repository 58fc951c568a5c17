"""A few sequences at a time: what only many sequences repay is left out."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite

import numpy as np

from maxmargin.door import weight_vector
from maxmargin.features.sequences import Sequences
from maxmargin.features.sparse_rows import RowFeatures, SparseRows
from maxmargin.models.base import FEW
from maxmargin.models.chain import ChainLayout, widths

__all__ = ["best_of_few", "few_examples"]

NO_INDICES, NO_POINTERS, NO_NUMBERS = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)
NO_EDGES = (NO_POINTERS, NO_INDICES, NO_NUMBERS)


def few_examples(layout: ChainLayout, features: object, X: object) -> SparseRows | Sequences | None:
    """Sequences that can be labelled without binding them; None for many, or when they cannot."""
    if not isinstance(X, (list, tuple, Sequences)) or len(X) > FEW:
        return None
    if isinstance(X, Sequences):
        X = Sequences.of(X)  # checked
        wanted = {"n_sparse": layout.n_sparse, "n_dense": layout.n_dense, "n_edge": layout.n_edge}
        return X if widths(X) == wanted else None
    sparse_only = layout.n_dense == layout.n_edge == 0
    if sparse_only and isinstance(features, RowFeatures) and features.n_features_ == layout.n_sparse:
        return features.rows(X)
    return None


def best_of_few(layout: ChainLayout, examples: SparseRows | Sequences, w: np.ndarray) -> list[np.ndarray]:
    """Codes of the best labels of each sequence, by one compiled call; the sequences must have the layout's features.

    They are those of ``argmax`` after ``bind``, which packs all that the layout knows: that takes longer than to label
    a sentence. A ValueError when a sequence allows no output.
    """
    from maxmargin.models.chain_few_kernel import decode_few

    if w.shape != (layout.n_weights,):
        raise ValueError(f"there are {w.size} weights; the model has {layout.n_weights}. Fit it again.")
    rows, dense, edge = (examples, NO_NUMBERS, NO_EDGES) if isinstance(examples, SparseRows) else _parts(examples)
    outputs, scores = np.empty(int(rows.offsets[-1]), np.int32), np.zeros(len(rows.offsets) - 1)
    stuck = decode_few(layout.sizes, *rows, dense, *edge, *layout.observed_pairs, layout.masks, w, outputs, scores)
    if stuck >= 0 or not all(map(isfinite, scores.tolist())):  # to look at all weights beforehand would take longer
        weight_vector(w, layout.n_weights)
    if stuck >= 0:
        raise ValueError(f"example {stuck}: the constraints together allow no output; loosen some.")
    at = rows.offsets.tolist()
    return [outputs[begin:end] for begin, end in pairwise(at)]


def _parts(sequences: Sequences) -> tuple[SparseRows, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sparse, dense and edge features as plain arrays."""
    offsets, dense = sequences.offsets, sequences.dense
    rows, edge = (
        NO_EDGES
        if block is None
        else (block.indptr.astype(np.int64), block.indices.astype(np.int32), block.data.astype(np.float64))
        for block in (sequences.sparse, sequences.edge)
    )
    if sequences.sparse is None:
        rows = (np.zeros(sequences.n_tokens + 1, np.int64), NO_INDICES, NO_NUMBERS)
    elif (rows[2] == 1.0).all():
        rows = (*rows[:2], NO_NUMBERS)
    return SparseRows(offsets, *rows), NO_NUMBERS if dense is None else dense.astype(np.float64).ravel(), edge
