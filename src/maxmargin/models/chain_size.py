"""How much room the planes of a chain need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maxmargin.models.chain import ChainLayout

__all__ = ["plane_size", "reach"]


def reach(layout: ChainLayout, offsets: np.ndarray, rows: Iterable[np.ndarray]) -> np.ndarray:
    """The most of any sequence (3,): non-zeros of a plane, the same before it is merged, and tokens.

    Of sequences in several parts, these are the largest of the parts. ``rows`` are the pointers (tokens + 1,) of the
    sparse features of tokens, and of those of pairs.
    """
    lengths, K = np.diff(offsets), len(layout.labels)
    per_sequence = sum((np.diff(starts[offsets].astype(np.int64)) for starts in rows), np.zeros_like(lengths))
    # two for each feature of each token and pair, never more than all weights
    dense = np.minimum(2 * lengths * layout.n_dense, K * layout.n_dense)
    one = 2 * per_sequence + dense + 2 * lengths + 4
    # planes of single runs of errors together hold what the plane of all errors holds, before it is merged
    unmerged = 2 * per_sequence + 2 * lengths * layout.n_dense + 2 * lengths + 4
    return np.array([one.max(initial=0), unmerged.max(initial=0), lengths.max(initial=1)], np.int64)


def plane_size(layout: ChainLayout, most: np.ndarray) -> tuple[int, int]:
    """Bits of the table in which a plane is added up, and room for all planes of one example, from :func:`reach`."""
    merged, unmerged, longest = most.tolist()
    one = min(merged + 1, layout.n_weights + 1)
    return max(6, int(np.ceil(np.log2(2 * one + 1)))), one + unmerged + 2 * longest
