"""Shared by the experiments with few labelled sequences: draws, cross-validation, intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student


class Data(NamedTuple):
    """Sequences of symbols and of states."""

    X: list[list[str]]
    y: list[list[str]]

    def take(self, rows: np.ndarray) -> Data:
        return Data([self.X[i] for i in rows], [self.y[i] for i in rows])

    def draw(self, n: int, seed: int) -> Data:
        """n sequences drawn at random without replacement."""
        return self.take(np.random.default_rng([seed, n]).permutation(len(self.X))[:n])


def cross_validated(
    make: Callable[[float], Any], values: tuple[float, ...], data: Data, seed: int, folds: int
) -> float:
    """The value whose models label most positions of the held-out folds right; the first one in case of a tie."""
    fold = np.random.default_rng([seed, 7]).permutation(len(data.X)) % folds
    right = np.zeros(len(values))
    for held in range(folds):
        inside, outside = data.take(np.flatnonzero(fold != held)), data.take(np.flatnonzero(fold == held))
        for k, value in enumerate(values):
            found = make(value).fit(*inside).predict(outside.X)
            right[k] += sum(a == b for y, f in zip(outside.y, found, strict=True) for a, b in zip(y, f, strict=True))
    return values[int(np.argmax(right))]


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval by Student's t distribution."""
    n = len(values)
    half = student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else float("nan")
    return float(values.mean()), float(half)
