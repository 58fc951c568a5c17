"""Tiny structured problems with every output enumerated: chains and multiclass.

Layout of the weights of a chain: emission (F, K) row by row, then transition (K, K) [left, right] row by row, then,
with ``ends``, start (K,) and end (K,). Multiclass is the emission part alone.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np


class Enumerated(NamedTuple):
    """All planes of a problem: planes[i] = (A_i, b_i) has one row for each of outputs[i], the true one included."""

    planes: list[tuple[np.ndarray, np.ndarray]]
    outputs: list[list[tuple[int, ...]]]
    costs: list[np.ndarray]
    n_weights: int


def chain_features(x, y, K: int, *, ends: bool = False) -> np.ndarray:
    """Joint features of one sequence x (T, F) and its labels y (T,)."""
    x = np.asarray(x, float)
    emission, transition = np.zeros((x.shape[1], K)), np.zeros((K, K))
    for t, label in enumerate(y):
        emission[:, label] += x[t]
        if t > 0:
            transition[y[t - 1], label] += 1
    parts = [emission.ravel(), transition.ravel()]
    if ends:
        start, end = np.zeros(K), np.zeros(K)
        start[y[0]], end[y[-1]] = 1, 1
        parts += [start, end]
    return np.concatenate(parts)


def multiclass_features(x, y: int, K: int) -> np.ndarray:
    table = np.zeros((len(x), K))
    table[:, y] = x
    return table.ravel()


def sequence_cost(truth, y, cost="hamming", *, normalize: bool = False) -> float:
    """Hamming cost, or the sum of matrix[true label, label]; divided by the length with ``normalize``."""
    total = sum(
        float(a != b) if isinstance(cost, str) and cost == "hamming" else float(cost[a][b])
        for a, b in zip(truth, y, strict=True)
    )
    return total / len(truth) if normalize else total


def chain_planes(
    X, y, K: int, *, cost="hamming", ends: bool = False, rescaling: str = "margin", normalize: bool = False
) -> Enumerated:
    """Planes of all K**T label sequences of each chain."""
    planes, outputs, costs = [], [], []
    for x, truth in zip(X, y, strict=True):
        every = list(product(range(K), repeat=len(truth)))
        true_features = chain_features(x, truth, K, ends=ends)
        psi = np.array([true_features - chain_features(x, labels, K, ends=ends) for labels in every])
        delta = np.array([sequence_cost(truth, labels, cost, normalize=normalize) for labels in every])
        planes.append(rescaled(psi, delta, rescaling))
        outputs.append(every)
        costs.append(delta)
    return Enumerated(planes, outputs, costs, planes[0][0].shape[1])


def multiclass_planes(X, y, K: int, *, cost="hamming", rescaling: str = "margin") -> Enumerated:
    """Planes of all K classes of each example."""
    planes, outputs, costs = [], [], []
    for x, truth in zip(X, y, strict=True):
        psi = np.array([multiclass_features(x, truth, K) - multiclass_features(x, label, K) for label in range(K)])
        delta = np.array([sequence_cost([truth], [label], cost) for label in range(K)])
        planes.append(rescaled(psi, delta, rescaling))
        outputs.append([(label,) for label in range(K)])
        costs.append(delta)
    return Enumerated(planes, outputs, costs, planes[0][0].shape[1])


def random_chains(n: int, K: int, F: int, *, lengths=(1, 4), seed: int = 0, integer: bool = False):
    """(X, y): Gaussian features (small integers with ``integer``, for ties) and random labels."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(lengths[0], lengths[1] + 1, n)
    X = [rng.integers(-1, 2, (T, F)).astype(float) if integer else rng.normal(size=(T, F)) for T in sizes]
    return X, [rng.integers(0, K, T) for T in sizes]


def random_multiclass(n: int, K: int, F: int, *, seed: int = 0):
    """(X (n, F), y (n,)): Gaussian features and random classes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, F)), rng.integers(0, K, n)


def random_cost_matrix(K: int, *, seed: int = 0, integer: bool = False) -> np.ndarray:
    """(K, K) costs [true, label] >= 0 with zero diagonal, not symmetric; some wrong labels are free."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 4, (K, K)).astype(float) if integer else 2 * rng.random((K, K))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def rescaled(psi: np.ndarray, delta: np.ndarray, rescaling: str) -> tuple[np.ndarray, np.ndarray]:
    if rescaling == "margin":
        return psi, delta
    if rescaling in ("slack", "sqrt_slack"):
        scale = delta if rescaling == "slack" else np.sqrt(delta)
        return scale[:, None] * psi, scale
    raise ValueError(f"rescaling must be 'margin', 'slack' or 'sqrt_slack', got {rescaling!r}")
