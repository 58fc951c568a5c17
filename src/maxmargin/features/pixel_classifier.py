"""The probability of each pixel to be foreground, by logistic regression on products of its features.

A margin only asks that the true mask wins; log-odds say by how much, pixel by pixel, and are what a cut adds up. As one
more feature they give the large-margin model a start at least as good as a classifier with calibrated costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit
from threadpoolctl import threadpool_limits

__all__ = ["cross_fitted", "log_loss", "log_odds"]

_CLIP = 3.0  # deviations from the mean: products of outliers would decide alone
_RIDGES = (0.005, 0.03, 0.2, 1.0)  # tried; of the weight of all pixels
_STEPS = 10  # more follow the sample, not the pixels
_SURE = 8.0  # largest log-odds


def log_odds(features: np.ndarray, table: np.ndarray) -> np.ndarray:
    """``x' table x`` for each pixel of features (*shape, F) with a constant among them, and ``table`` (F, F).

    Complexity: O(pixels F^2).
    """
    x = np.clip(features, -_CLIP, _CLIP)
    return np.clip(np.einsum("...i,...i->...", x @ table, x), -_SURE, _SURE)


def log_loss(odds: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> float:
    """``- log p`` of the labels of each image, a mean over its pixels of label 0 and 1, summed over the images."""
    total = 0.0
    for odd, mask in zip(odds, masks, strict=True):
        known = (mask == 0) | (mask == 1)
        total += float(np.logaddexp(0.0, np.where(mask == 1, -odd, odd))[known].mean()) if known.any() else 0.0
    return total


class _Regression:
    """Quadratic logistic regressions on parts of one sample of pixels: features (n, F), labels 0 and 1, weights (n,).

    Formula: minimises ``sum_i weights_i log(1 + exp(-(2 labels_i - 1) x_i' T x_i)) + r/2 |T|^2`` over upper triangular
    tables T. With ``H = X' W X / 4 + r`` of the products X, which bounds the curvature and knows no labels, a change of
    variables makes the problem round, and a few steps of L-BFGS solve it. Complexity: O(n F^4) once, O(n F^2) a part.
    Boehning, Lindsay (1988), Monotonicity of quadratic-approximation algorithms.
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
        x = np.clip(features, -_CLIP, _CLIP).astype(np.float32)
        self.ridge = _RIDGES[0] * float(weights.sum())
        self.labels, self.weights = labels.astype(np.float32), weights.astype(np.float32)
        self.rows, self.columns = np.triu_indices(x.shape[1])
        products = x[:, self.rows] * x[:, self.columns]
        bound = products.T @ (products * (0.25 * self.weights[:, None]))
        bound[np.diag_indices_from(bound)] += self.ridge
        self.factor = cholesky(bound.astype(np.float64), lower=True).astype(np.float32)
        self.round = solve_triangular(self.factor, products.T, lower=True, overwrite_b=True).T

    def solution(self, part: np.ndarray) -> np.ndarray:
        """The solution in round variables for the pixels of a mask (n,)."""
        x, y, weights = self.round[part], self.labels[part], self.weights[part]

        def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
            odds = x @ v.astype(np.float32)
            back = solve_triangular(self.factor, v.astype(np.float32), lower=True, trans="T")
            loss = np.dot(weights, np.logaddexp(0.0, odds) - y * odds) + 0.5 * self.ridge * np.dot(back, back)
            slope = x.T @ (weights * (expit(odds) - y))
            slope += self.ridge * solve_triangular(self.factor, back, lower=True)
            return float(loss), slope.astype(np.float64)

        found = minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return found.x

    def loss(self, solution: np.ndarray, part: np.ndarray) -> float:
        """The log-loss of the pixels of a mask, without the ridge."""
        odds = np.clip(self.round[part] @ solution.astype(np.float32), -_SURE, _SURE)
        return float(self.weights[part] @ (np.logaddexp(0.0, odds) - self.labels[part] * odds))

    def table(self, solution: np.ndarray) -> np.ndarray:
        """The table (F, F) of a solution."""
        table = np.zeros((int(self.columns[-1]) + 1,) * 2)
        table[self.rows, self.columns] = solve_triangular(self.factor, solution, lower=True, trans="T")
        return table


def cross_fitted(
    features: Sequence[np.ndarray], masks: Sequence[np.ndarray], folds: int, sample: int, rng: np.random.Generator
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The table of all images, and the log-odds of each image by a table of other images.

    Log-odds of pixels that were learned by heart promise more than those of new images can keep; so the images are
    split into ``folds`` parts, each answered by a classifier of the rest, with the r of the least loss there. A single
    image has to answer for itself.

    Parameters
    ----------
    features : list of arrays (*shape, F)
    masks : list of int arrays (*shape)
        0 and 1; other pixels are left out.
    folds : int
    sample : int
        Maximum number of pixels of a label, the same number from each image; weights make up for the rest.
    """
    n = len(features)
    each = max(1, sample // n)
    x, y, weight, owner = [], [], [], []
    for i, (made, mask) in enumerate(zip(features, masks, strict=True)):
        flat, labels = made.reshape(-1, made.shape[-1]), np.ravel(mask)
        for label in (0, 1):
            where = np.flatnonzero(labels == label)
            chosen = rng.choice(where, min(each, len(where)), replace=False)
            x.append(flat[chosen])
            y.append(np.full(len(chosen), float(label)))
            weight.append(np.full(len(chosen), len(where) / max(len(chosen), 1)))
            owner.append(np.full(len(chosen), i))
    pixels, labels, weights, owners = (np.concatenate(part) for part in (x, y, weight, owner))
    weights /= weights.mean()
    part_of = rng.permutation(n) % min(folds, n)
    with threadpool_limits(1, "blas"):  # threads of small products wait for each other; and sums keep their order
        regression = _Regression(pixels, labels, weights)
        every, parts = np.ones(len(labels), bool), [part_of[owners] == part for part in range(min(folds, n))]
        rests = [every if len(np.unique(labels[~part])) < 2 else ~part for part in parts]
        tried = []
        for ridge in _RIDGES:
            regression.ridge = ridge * float(weights.sum())
            solutions = [regression.solution(rest) for rest in rests]
            loss = sum(regression.loss(found, part) for found, part in zip(solutions, parts, strict=True))
            tried.append((loss, regression.ridge, solutions))
        _, regression.ridge, solutions = min(tried, key=lambda one: one[0])
        tables = [regression.table(found) for found in solutions]
        whole = regression.table(regression.solution(every))
    return whole, [log_odds(made, tables[part]) for made, part in zip(features, part_of, strict=True)]
