"""How much room the planes of a chain need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maxmargin.models.chain import ChainLayout

__all__ = ["plane_size"]


def plane_size(layout: ChainLayout, offsets: np.ndarray, rows: Iterable[np.ndarray]) -> tuple[int, int]:
    """Bits of the table in which a plane is added up, and room for all planes of one example.

    ``rows`` are the pointers (tokens + 1,) of the sparse features of tokens, and of those of pairs.
    """
    lengths, K = np.diff(offsets), len(layout.labels)
    per_sequence = sum((np.diff(starts[offsets].astype(np.int64)) for starts in rows), np.zeros_like(lengths))
    # the most non-zeros a plane can have: two for each feature of each token and pair, never more than all weights
    dense = np.minimum(2 * lengths * layout.n_dense, K * layout.n_dense)
    one = min(int((2 * per_sequence + dense + 2 * lengths + 4).max()) + 1, layout.n_weights + 1)
    # planes of single runs of errors together hold what the plane of all errors holds, before it is merged
    unmerged = int((2 * per_sequence + 2 * lengths * layout.n_dense + 2 * lengths + 4).max())
    return max(6, int(np.ceil(np.log2(2 * one + 1)))), one + unmerged + 2 * int(lengths.max(initial=1))
