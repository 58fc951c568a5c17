"""Synthetic datasets whose best weights are known in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Chains", "Multiclass", "make_chains", "make_multiclass"]


@dataclass(frozen=True)
class Chains:
    """Labels (``y[i]`` (T_i,) int64) of sequences (``X[i]`` (T_i, F)) and the weights of their exact posterior.

    ``emission`` (F, K) has the weight of a feature (row) with a label (column), ``transition`` (K, K) of a label
    (column) after a label (row).
    """

    X: list[np.ndarray]
    y: list[np.ndarray]
    emission: np.ndarray
    transition: np.ndarray


@dataclass(frozen=True)
class Multiclass:
    """Points with one label each (``X`` (n, F), ``y`` (n,) int64) and the weights (F, K) of their exact posterior."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray


def make_chains(
    n: int = 100,
    n_labels: int = 4,
    n_features: int = 10,
    lengths: int | tuple[int, int] = (3, 8),
    random_state: int | np.random.Generator | None = None,
    *,
    distance: float = 3.0,
    noise: float = 1.0,
) -> Chains:
    r"""Draw chains from a hidden Markov model whose posterior is a linear chain model.

    Labels follow a Markov chain with uniform start and probabilities P; features are Gaussian around the mean of their
    label, and all means m_k have the same norm. So, up to a term that does not depend on the labels,

    .. math:: \log p(y \mid x) = \sum_t x_t \cdot m_{y_t} / \sigma^2 + \sum_{t > 0} \log P_{y_{t-1} y_t}

    which is ``score(x, y)`` of a chain with ``emission = m' / sigma^2`` and ``transition = log P``: no other weights
    label these chains better.

    Parameters
    ----------
    n : int
        Number of chains.
    n_labels, n_features : int
        K and F.
    lengths : int or (int, int)
        Length of all chains, or shortest and longest (both included, drawn uniformly).
    random_state : int, Generator or None
        Random seed.
    distance : float
        Norm of the means: how far apart the labels are.
    noise : float
        Standard deviation sigma > 0 of each feature.
    """
    low, high = (lengths, lengths) if isinstance(lengths, int | np.integer) else lengths
    _check(n=n, n_labels=n_labels, n_features=n_features, shortest=low)
    if high < low:
        raise ValueError(f"lengths must be (shortest, longest), got {lengths}")
    rng = np.random.default_rng(random_state)
    means = _means(n_labels, n_features, distance, noise, rng)
    probability = rng.dirichlet(np.ones(n_labels), size=n_labels) + 0.01  # no transition is impossible
    probability /= probability.sum(axis=1, keepdims=True)
    X, y = [], []
    for length in rng.integers(low, high + 1, size=n):
        labels = np.empty(length, dtype=np.int64)
        labels[0] = rng.integers(n_labels)
        for t in range(1, length):
            labels[t] = rng.choice(n_labels, p=probability[labels[t - 1]])
        y.append(labels)
        X.append(means[labels] + noise * rng.standard_normal((length, n_features)))
    return Chains(X, y, np.ascontiguousarray(means.T) / noise**2, np.log(probability))


def make_multiclass(
    n: int = 100,
    n_labels: int = 4,
    n_features: int = 10,
    random_state: int | np.random.Generator | None = None,
    *,
    distance: float = 3.0,
    noise: float = 1.0,
) -> Multiclass:
    """Draw points around one mean per label: :func:`make_chains` with chains of length one.

    Labels are equally likely and all means have the same norm, so ``x @ weights`` with
    ``weights = means' / sigma^2`` is the log-posterior up to a term that does not depend on the label.
    """
    _check(n=n, n_labels=n_labels, n_features=n_features)
    rng = np.random.default_rng(random_state)
    means = _means(n_labels, n_features, distance, noise, rng)
    y = rng.integers(n_labels, size=n)
    X = means[y] + noise * rng.standard_normal((n, n_features))
    return Multiclass(X, y, np.ascontiguousarray(means.T) / noise**2)


def _means(n_labels: int, n_features: int, distance: float, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Means (K, F) of norm ``distance`` in random directions."""
    if noise <= 0 or distance < 0:
        raise ValueError(f"noise must be positive and distance not negative, got {noise} and {distance}")
    means = rng.standard_normal((n_labels, n_features))
    return distance * means / np.linalg.norm(means, axis=1, keepdims=True)


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
