"""What a bound model may offer beyond the argmax. It declares a name in ``capabilities``, and has what the name says.

======================  ================================================================================
"exact"                 every argmax is certain: values are upper bounds too
"exact_if_positive"     exact where the weights of edges are kept >= 0
"k_best"                the methods of :class:`KBestModel`
"marginals"             the methods of :class:`MarginalsModel`
======================  ================================================================================
"""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np

from maxmargin.models.base import BoundModel

__all__ = ["KBestModel", "MarginalsModel", "gives_k_best", "gives_marginals"]


class KBestModel(Protocol):
    """Lists outputs in the order of their scores."""

    @property
    def n_examples(self) -> int: ...

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, T) and scores (m,) of the k best outputs, best first; m < k when there are no more."""
        ...


class MarginalsModel(Protocol):
    """Sums over outputs under the distribution proportional to exp(score)."""

    @property
    def n_examples(self) -> int: ...

    def marginals(self, w: np.ndarray, example: int) -> np.ndarray:
        """Probabilities (T, K) of the K labels of each of T parts of the output."""
        ...


def gives_k_best(bound: BoundModel) -> TypeGuard[KBestModel]:
    """Whether a bound model lists its k best outputs."""
    return "k_best" in bound.capabilities


def gives_marginals(bound: BoundModel) -> TypeGuard[MarginalsModel]:
    """Whether a bound model has marginals."""
    return "marginals" in bound.capabilities
