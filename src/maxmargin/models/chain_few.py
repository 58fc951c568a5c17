"""A few sequences at a time: what only many sequences repay is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from maxmargin.features.sequences import Sequences
from maxmargin.models.chain import ChainLayout

__all__ = ["observed_part"]


def observed_part(
    layout: ChainLayout, sequences: Sequences, w: np.ndarray
) -> tuple[ChainLayout, Sequences, np.ndarray]:
    """Layout, sequences and weights without the features that do not occur, so that they need not be packed.

    For ``weights="observed"``; each entry becomes a feature of its own. O(nnz + their pairs + weights of transitions).
    """
    assert layout.pair_rows is not None and layout.pair_labels is not None and sequences.sparse is not None
    sparse = sequences.sparse
    begins = layout.pair_rows[sparse.indices]
    counts = layout.pair_rows[sparse.indices + 1] - begins
    rows = np.zeros(sparse.nnz + 1, np.int32)
    np.cumsum(counts, out=rows[1:])
    pairs = np.arange(rows[-1]) + np.repeat(begins - rows[:-1], counts)
    part = replace(layout, n_sparse=sparse.nnz, pair_rows=rows, pair_labels=layout.pair_labels[pairs])
    columns = np.arange(sparse.nnz, dtype=np.int32)
    renumbered = sp.csr_array((sparse.data, columns, sparse.indptr), shape=(sparse.shape[0], sparse.nnz))
    return part, replace(sequences, sparse=renumbered), np.concatenate([w[pairs], w[layout.n_emission :]])
