"""Bound models whose outputs are label sequences, scored by tables of labels and of pairs of neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from maxmargin.models.base import CompiledModel

__all__ = ["SequenceBound", "Tabulated"]


@runtime_checkable
class Tabulated(Protocol):
    """A bound model whose scores and costs add up over T positions of K labels, and pairs of neighbours."""

    @abstractmethod
    def tables(self, w: np.ndarray, example: int, cost_weight: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Scores of labels (T, K) and of pairs (1 or T - 1, K, K) of one example; -inf where forbidden."""

    @abstractmethod
    def truth(self, example: int) -> np.ndarray:
        """Codes (T,) of the true labels."""


@dataclass(frozen=True, kw_only=True)
class SequenceBound(CompiledModel, Tabulated):
    """A model bound to n sequences of T positions and K labels each; see :mod:`maxmargin.inference.recursion`."""

    capabilities: frozenset[str] = frozenset({"exact", "k_best", "marginals", "part_scores"})

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, T) and scores (m,) of the k best label sequences, best first; m < k when there are no more."""
        from maxmargin.inference.recursion import chain_k_best

        return chain_k_best(*self.tables(w, example), k)

    def marginals(self, w: np.ndarray, example: int) -> np.ndarray:
        """Probabilities (T, K) of the labels under the distribution proportional to exp(score)."""
        from maxmargin.inference.recursion import chain_marginals

        return chain_marginals(*self.tables(w, example), pairwise=False)[1]

    def part_scores(self, w: np.ndarray, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Score (positions, K) of every label at every position of all sequences, the neighbours as in ``codes``."""
        rows = []
        for i, y in enumerate(codes):
            unary, pairs = self.tables(w, i)
            steps = np.minimum(np.arange(max(len(y) - 1, 0)), len(pairs) - 1)  # one table for all steps, or one each
            unary[1:] += pairs[steps, y[:-1]]
            unary[:-1] += pairs[steps, :, y[1:]]
            rows.append(unary)
        return np.concatenate(rows)

    def log_partition(self, w: np.ndarray, example: int) -> float:
        """``ln sum exp(score)`` over all label sequences."""
        from maxmargin.inference.recursion import chain_marginals

        return chain_marginals(*self.tables(w, example), pairwise=False)[0]
