"""Quadratic regularisers, seen by the dual through their conjugate.

R*(u) = max_w  u . w - R(w),      weights(u) = its maximiser,      curvature(A, u) = A H(u) A'  with H = R*''(u)

This file alone knows that R is ``1/2 |w|^2``; that of generative models is in
:mod:`maxmargin.formulations.divergence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

__all__ = ["DENSE_ABOVE", "Quadratic", "SignedQuadratic", "centred", "products"]

DENSE_ABOVE = 0.3  # share of the entries that are not 0, above which products of rows are faster when dense


def products(A: sp.csr_array, B: np.ndarray | sp.csr_array) -> np.ndarray:
    """``A B'``, dense (m, n)."""
    if A.nnz > DENSE_ABOVE * A.shape[0] * A.shape[1]:
        return A.toarray() @ (B if isinstance(B, np.ndarray) else B.toarray()).T
    return (A @ B.T).toarray()


def centred(centre: np.ndarray) -> tuple[np.ndarray, float]:
    """``1/2 |w - centre|^2 = 1/2 |w|^2 + shift . w + offset``: shift and offset."""
    return -centre, 0.5 * float(centre @ centre)


class _Quadratic:
    """What both have: ``R*(u) = 1/2 |weights(u)|^2``, finite everywhere: the dual itself is the proven bound."""

    fingerprint = ""  # multipliers of other signs are feasible all the same

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The weights that belong to ``u = sum alpha a``."""
        return u

    def conjugate(self, u: np.ndarray) -> float:
        w = self.weights(u)
        return 0.5 * float(w @ w)

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        return linear - self.conjugate(u), 1.0


@dataclass(frozen=True)
class Quadratic(_Quadratic):
    """``R(w) = 1/2 |w|^2``; ``R*(u) = 1/2 |u|^2``, ``weights(u) = u``."""

    traits = frozenset({"quadratic"})
    positive = None

    def value(self, w: np.ndarray) -> float:
        return 0.5 * float(w @ w)

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Gram matrix of the rows of A, (m, m)."""
        return products(sp.csr_array(A), A)

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Squared lengths of the rows of A, (m,)."""
        return np.asarray((A * A).sum(axis=1))

    def feasible(self, w: np.ndarray) -> np.ndarray:
        return w


@dataclass(frozen=True)
class SignedQuadratic(_Quadratic):
    """``R(w) = 1/2 |w|^2`` with ``w_j >= 0`` where ``positive``.

    ``R*(u) = 1/2 |P(u)|^2`` and ``weights(u) = P(u)``, where P cuts off the negative part on ``positive``; piecewise
    quadratic, H(u) the identity without the coordinates cut off. Yu & Rousu 2007, section 4.1.
    """

    positive: np.ndarray  # bool (n_columns,)

    traits = frozenset({"quadratic", "signs"})

    def value(self, w: np.ndarray) -> float:
        """R(w); inf where a sign is violated."""
        return np.inf if (w[self.positive[: len(w)]] < 0).any() else 0.5 * float(w @ w)

    def weights(self, u: np.ndarray) -> np.ndarray:
        """P(u)."""
        return np.where(self.positive & (u < 0), 0.0, u)

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Gram matrix of the rows of A without the coordinates that are cut off at u, (m, m)."""
        return products(self._kept(A, u), A)

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Squared lengths of the rows of A without these coordinates, (m,)."""
        return np.asarray((self._kept(A, u) * A).sum(axis=1))

    def _kept(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> sp.csr_array:
        return sp.csr_array(A * ~(self.positive & (u < 0)))

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """P(w)."""
        return np.where(self.positive[: len(w)], np.maximum(w, 0.0), w)
