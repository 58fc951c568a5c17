"""Score tables of a bound chain, for k-best lists, marginals and costs by value."""

from __future__ import annotations

import numpy as np

from maxmargin.models.base import CompiledModel

__all__ = ["chain_tables"]


def chain_tables(
    bound: CompiledModel, w: np.ndarray, i: int, cost_weight: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Unary scores (T, K) and transition scores (1 or T-1, K, K) of sequence ``i``; -inf where forbidden."""
    from maxmargin.models import chain_kernel as ck

    layout, meta = bound.layout, bound.meta
    K, S = len(layout.labels), layout.stride
    first, last = bound.output_at[i], bound.output_at[i + 1]
    T = int(last - first)
    table = np.empty(T * S)
    ck.score_table(meta, bound.ints, bound.floats, w, i, cost_weight, table)
    positions = range(first + 1, last) if layout.n_edge else [first]
    pairs = np.empty((len(positions), K, K))
    pair = np.empty(K * S)
    for p, t in enumerate(positions):
        ck.pair_table(meta, bound.ints, bound.floats, w, t, pair)
        pairs[p] = pair.reshape(K, S)[:, :K]
    return np.ascontiguousarray(table.reshape(T, S)[:, :K]), pairs
