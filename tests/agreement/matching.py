"""A user's own model: items are matched with places, one each; all matchings are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from reference.problems import rescaled


def features(x, y) -> np.ndarray:
    """The features of each item (K, F) in the row of its place, (K F,)."""
    table = np.zeros_like(x)
    table[list(y)] = x
    return table.ravel()


def misplaced(truth, y) -> float:
    return float(sum(a != b for a, b in zip(truth, y, strict=True)))


@dataclass
class Matching:
    """The four functions, and the exact search for slack rescaling."""

    K: int
    F: int

    def n_weights(self, X, Y):
        return self.K * self.F

    def joint_features(self, x, y):
        return features(x, y)

    def cost(self, y_true, y):
        return misplaced(y_true, y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        def score(y):
            return w @ features(x, y) + (0.0 if y_true is None else cost_weight * misplaced(y_true, y))

        return max(permutations(range(self.K)), key=score)

    def slack_argmax(self, x, w, y_true):
        true = w @ features(x, y_true)
        return max(
            [y_true, *permutations(range(self.K))],
            key=lambda y: misplaced(y_true, y) * (1.0 - true + w @ features(x, y)),
        )


class WithoutSlackSearch(Matching):
    """The four functions alone."""

    slack_argmax = None


def matching_planes(X, Y, rescaling):
    """(A_i, b_i) over all matchings."""
    planes = []
    for x, truth in zip(X, Y, strict=True):
        every = list(permutations(range(len(truth))))
        psi = np.array([features(x, truth) - features(x, y) for y in every])
        planes.append(rescaled(psi, np.array([misplaced(truth, y) for y in every]), rescaling))
    return planes
