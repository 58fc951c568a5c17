"""Gaussian mixtures of the colours of foreground and background."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Mixture", "fit_mixture", "n_components", "quick_mixture"]

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
        from maxmargin.features.mixtures_kernel import log_densities

        found, factors = np.empty(len(x)), np.ascontiguousarray(self.factors, np.float64)
        log_densities(np.ascontiguousarray(x.T, np.float64), self._heights(), self._shifts(), factors, found)
        return found

    def improved(self, x: np.ndarray, rounds: int) -> Mixture:
        """The mixture after ``rounds`` of expectation and maximisation on the rows of x (n, d); O(n K d^2) each.

        As scikit-learn's GaussianMixture from that start, without looking whether the likelihood still grows.
        """
        mixture, products = self, _products(x)
        for _ in range(rounds):
            parts = mixture._log_parts(x)
            shares = np.exp(parts - parts.max(axis=0))
            mixture = _mixture_of(shares / shares.sum(axis=0), x, products)
        return mixture

    def _log_parts(self, x: np.ndarray) -> np.ndarray:
        """Logarithm of each component's part of the density at each row of x, (K, n)."""
        K, d = self.means.shape
        z = (x @ self.factors.transpose(1, 0, 2).reshape(d, K * d) - self._shifts().ravel()).reshape(-1, K, d)
        return self._heights()[:, None] - 0.5 * np.einsum("nkd,nkd->kn", z, z)

    def _shifts(self) -> np.ndarray:
        """The means seen through the factors, (K, d)."""
        return np.einsum("kd,kde->ke", self.means, self.factors)

    def _heights(self) -> np.ndarray:
        """Logarithm of each component's part of the density at its mean, (K,)."""
        roots = np.diagonal(self.factors, axis1=1, axis2=2)
        return np.log(self.weights) + np.log(roots).sum(axis=1) - 0.5 * roots.shape[1] * np.log(2.0 * np.pi)


def n_components(rows: int, most: int) -> int:
    """Components of a mixture: at least 20 rows each."""
    return min(most, max(1, rows // 20))


def fit_mixture(pixels: Sequence[np.ndarray], components: int, random_state: int) -> Mixture:
    """The mixture of the rows of all arrays (n, d), with fewer components when there are few rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    x = np.concatenate(pixels)
    n = n_components(len(x), components)
    mixture = GaussianMixture(n, reg_covar=_LEAST, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred rounds are enough
        mixture.fit(x if len(x) > 1 else np.zeros((2, x.shape[1])))
    return Mixture(mixture.weights_, mixture.means_, mixture.precisions_cholesky_)


def quick_mixture(x: np.ndarray, components: int, rounds: int) -> Mixture:
    """A mixture of the rows of x (n, d) by k-means and a few rounds of expectation and maximisation.

    As scikit-learn's GaussianMixture, whose checks take most of the time where rows and rounds are few.
    """
    from sklearn.cluster import KMeans

    n = n_components(len(x), components)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different colours than components
        found = KMeans(n, n_init=1, random_state=0).fit(x).labels_
    return _mixture_of((found == np.arange(n)[:, None]).astype(np.float64), x, _products(x)).improved(x, rounds)


def _products(x: np.ndarray) -> np.ndarray:
    """All products of two columns of x (n, d), (n, d^2)."""
    return (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)


def _mixture_of(shares: np.ndarray, x: np.ndarray, products: np.ndarray) -> Mixture:
    """The mixture whose components have such shares (K, n) of the rows of x (n, d)."""
    d, counts = x.shape[1], shares.sum(axis=1) + 1e-12
    means = shares @ x / counts[:, None]
    squares = (shares @ products / counts[:, None]).reshape(-1, d, d) - means[:, :, None] * means[:, None, :]
    roots = np.linalg.cholesky(squares + _LEAST * np.eye(d))
    return Mixture(counts / counts.sum(), means, np.linalg.inv(roots).transpose(0, 2, 1))
