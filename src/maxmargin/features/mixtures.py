"""Gaussian mixtures of the colours of foreground and background."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Mixture", "fit_mixture", "n_components"]

_LEAST = 1e-4  # added to the variances: a single colour has none


class Mixture(NamedTuple):
    """A mixture of Gaussians: weights (K,), means (K, d), and factors (K, d, d) of the inverse covariances."""

    weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray  # upper triangular, P with P P' the inverse covariance

    def check(self, d: int) -> None:
        """Refuse anything but a mixture over ``d`` dimensions."""
        K = np.size(self.weights)
        for array, shape in zip(self, ((K,), (K, d), (K, d, d)), strict=True):
            if not isinstance(array, np.ndarray) or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"a mixture of its mixtures_ is not {K} finite Gaussians over {d} dimensions")
        if not K or not (self.weights > 0).all() or not (np.diagonal(self.factors, axis1=1, axis2=2) > 0).all():
            raise ValueError("a mixture of its mixtures_ has weights or covariances that are not positive")

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Logarithm of the density at each row of x (n, d); O(n K d^2)."""
        parts = self._log_parts(x)
        largest = parts.max(axis=0)
        return largest + np.log(np.exp(parts - largest).sum(axis=0))

    def improved(self, x: np.ndarray, rounds: int) -> Mixture:
        """The mixture after ``rounds`` of expectation and maximisation on the rows of x (n, d); O(n K d^2) each.

        As scikit-learn's GaussianMixture from that start, without looking whether the likelihood still grows.
        """
        mixture, d = self, x.shape[1]
        products = (x[:, :, None] * x[:, None, :]).reshape(-1, d * d)
        for _ in range(rounds):
            parts = mixture._log_parts(x)
            shares = np.exp(parts - parts.max(axis=0))
            shares /= shares.sum(axis=0)
            counts = shares.sum(axis=1) + 1e-12
            means = shares @ x / counts[:, None]
            squares = (shares @ products / counts[:, None]).reshape(-1, d, d) - means[:, :, None] * means[:, None, :]
            roots = np.linalg.cholesky(squares + _LEAST * np.eye(d))
            mixture = Mixture(counts / counts.sum(), means, np.linalg.inv(roots).transpose(0, 2, 1))
        return mixture

    def _log_parts(self, x: np.ndarray) -> np.ndarray:
        """Logarithm of each component's part of the density at each row of x, (K, n)."""
        K, d = self.means.shape
        shifts = np.einsum("kd,kde->ke", self.means, self.factors).ravel()
        z = (x @ self.factors.transpose(1, 0, 2).reshape(d, K * d) - shifts).reshape(-1, K, d)
        heights = np.log(self.weights) + np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        return (heights - 0.5 * d * np.log(2.0 * np.pi))[:, None] - 0.5 * np.einsum("nkd,nkd->kn", z, z)


def n_components(rows: int, most: int) -> int:
    """Components of a mixture: at least 20 rows each."""
    return min(most, max(1, rows // 20))


def fit_mixture(pixels: Sequence[np.ndarray], components: int, random_state: int, *, rounds: int = 100) -> Mixture:
    """The mixture of the rows of all arrays (n, d), with fewer components when there are few rows.

    At most ``rounds`` of expectation and maximisation, from k-means.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    x = np.concatenate(pixels)
    n = n_components(len(x), components)
    mixture = GaussianMixture(n, reg_covar=_LEAST, random_state=random_state, max_iter=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says how many rounds are enough
        mixture.fit(x if len(x) > 1 else np.zeros((2, x.shape[1])))
    return Mixture(mixture.weights_, mixture.means_, mixture.precisions_cholesky_)
