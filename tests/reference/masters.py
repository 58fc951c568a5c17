"""Quadratic master problems by the names of their domains, for tests."""

from dataclasses import dataclass

import numpy as np

from maxmargin.solvers.masters.newton import DenseCurvature, projected_newton


@dataclass(frozen=True)
class Quadratic:
    """f(q) = b.q - q'Gq/2 with gram G (m, m) and b (m,)."""

    gram: np.ndarray
    b: np.ndarray

    def value(self, q: np.ndarray) -> float:
        return float(q @ (self.b - 0.5 * (self.gram @ q)))

    def gradient(self, q: np.ndarray) -> np.ndarray:
        return self.b - self.gram @ q

    def hessian(self, q: np.ndarray) -> DenseCurvature:
        return DenseCurvature(self.gram)


def newton_product(gram, b, block, total, *words, **options):
    """Maximise b.q - q'Gq/2 over a product of simplexes and orthants."""
    return projected_newton(Quadratic(gram, b), block, total, *words, **options)


def newton_simplex(gram, b, total, *words, **options):
    """... over q >= 0, sum q = total."""
    return newton_product(gram, b, np.zeros(len(b), int), np.array([total], float), *words, **options)


def newton_orthant(gram, b, *words, **options):
    """... over q >= 0."""
    return newton_product(gram, b, np.zeros(len(b), int), np.array([np.inf]), *words, **options)
