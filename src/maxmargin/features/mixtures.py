"""Gaussian mixtures of the colours of foreground and background."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Mixture", "fit_mixture"]


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
        parts = [
            np.log(weight) + np.log(np.diag(factor)).sum() - 0.5 * (((x - mean) @ factor) ** 2).sum(axis=1)
            for weight, mean, factor in zip(*self, strict=True)
        ]
        largest = np.max(parts, axis=0)
        return largest + np.log(np.exp(parts - largest).sum(axis=0)) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)


def fit_mixture(
    pixels: Sequence[np.ndarray], components: int, random_state: int, *, start: Mixture | None = None, rounds: int = 100
) -> Mixture:
    """The mixture of the rows of all arrays (n, d), with fewer components when there are few rows.

    At most ``rounds`` of expectation and maximisation, from the mixture ``start`` of similar rows if that has as many
    components, else from k-means.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    x = np.concatenate(pixels)
    n = min(components, max(1, len(x) // 20))
    mixture = GaussianMixture(n, reg_covar=1e-4, random_state=random_state, max_iter=rounds)
    if start is not None and len(start.weights) == n:
        inverse = start.factors @ start.factors.transpose(0, 2, 1)
        mixture.set_params(weights_init=start.weights, means_init=start.means, precisions_init=inverse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says how many rounds are enough
        mixture.fit(x if len(x) > 1 else np.zeros((2, x.shape[1])))
    return Mixture(mixture.weights_, mixture.means_, mixture.precisions_cholesky_)
