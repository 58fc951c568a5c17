"""The regulariser ``|w|_1``, which leaves most weights at 0, seen by the dual through its conjugate; and one near it.

R*(u) = 0  where |u_j| <= 1 for all j  (u_j <= 1 where w_j must be >= 0),  and infinite elsewhere

The dual is a linear program: ``max sum alpha b`` over multipliers whose ``u = sum alpha a`` lies in that box. Any
multipliers >= 0 become feasible by scaling. Wang, Shawe-Taylor 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.regularisers import products

__all__ = ["Absolute", "ElasticNet"]

ROUNDING = 1e-12


@dataclass(frozen=True)
class Absolute:
    """``R(w) = |w|_1``, with ``w_j >= 0`` where ``positive`` (bool (n_columns,); None when all are free)."""

    positive: np.ndarray | None = None

    fingerprint = " l1"  # multipliers of other signs can be scaled to be feasible

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({"l1"} if self.positive is None else {"l1", "signs"})

    def value(self, w: np.ndarray) -> float:
        """R(w); inf where a sign is violated."""
        wrong = self.positive is not None and bool((w[self.positive[: len(w)]] < 0).any())
        return np.inf if wrong else float(np.abs(w).sum())

    def _prices(self, u: np.ndarray) -> np.ndarray:
        """How far each coordinate of u is out: |u_j|, or u_j where w_j must be >= 0; at most 1 in the domain of R*."""
        return np.abs(u) if self.positive is None else np.where(self.positive, u, np.abs(u))

    def conjugate(self, u: np.ndarray) -> float:
        return 0.0 if self._prices(u).max(initial=0.0) <= 1.0 + ROUNDING else np.inf

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """R* is 0 or infinite: as far along the way to u as it is 0."""
        scale = 1.0 / max(1.0, float(self._prices(u).max(initial=0.0)))
        return max(scale * linear, 0.0), scale

    def feasible(self, w: np.ndarray) -> np.ndarray:
        return w if self.positive is None else np.where(self.positive[: len(w)], np.maximum(w, 0.0), w)

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The part of the contract that a linear program has no answer to: u does not determine the weights."""
        raise NotImplementedError("R* has no gradient where weights are not 0; solve the linear program.")

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """None of R*: see :meth:`weights`."""
        return np.zeros((A.shape[0], A.shape[0]))

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """None of R*: see :meth:`weights`."""
        return np.zeros(A.shape[0])


@dataclass(frozen=True)
class ElasticNet(Absolute):
    """``R(w) = |w|_1 + |w|^2 / (2 scale)``, with ``w_j >= 0`` where ``positive``: R* is finite everywhere.

    ``weights(u) = scale soft(u)``, where soft takes 1 off |u_j|, all of it below 1, and cuts off what is negative on
    ``positive``. ``R*(u) = scale/2 |soft(u)|^2`` is piecewise quadratic, H(u) the identity times the scale without the
    coordinates that are 0. With the linear term ``- w . c / scale`` R is ``|w|_1`` and the proximal term of a centre c.
    Zou, Hastie 2005.
    """

    scale: float = 1.0

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({"quadratic", "threshold"} if self.positive is None else {"quadratic", "threshold", "signs"})

    def value(self, w: np.ndarray) -> float:
        """R(w); inf where a sign is violated."""
        return super().value(w) + 0.5 / self.scale * float(w @ w)

    def weights(self, u: np.ndarray) -> np.ndarray:
        """``scale soft(u)``."""
        low = u < -1.0 if self.positive is None else ~self.positive & (u < -1.0)
        return self.scale * (np.maximum(u - 1.0, 0.0) + np.where(low, u + 1.0, 0.0))

    def conjugate(self, u: np.ndarray) -> float:
        w = self.weights(u)
        return 0.5 / self.scale * float(w @ w)

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """The dual itself, which is finite everywhere."""
        return linear - self.conjugate(u), 1.0

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Gram matrix of the rows of A over the weights that are not 0 at u, times the scale, (m, m)."""
        return self.scale * products(self._kept(A, u), A)

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Squared lengths of the rows of A over these weights, times the scale, (m,)."""
        return self.scale * np.asarray((self._kept(A, u) * A).sum(axis=1))

    def _kept(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> sp.csr_array:
        return sp.csr_array(A * (self.weights(u) != 0.0))
