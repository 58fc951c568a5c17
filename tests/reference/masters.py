"""Quadratic master problems by the names of their domains, for tests."""

import numpy as np

from maxmargin.solvers.masters.newton import Quadratic, projected_newton


def newton_product(gram, b, block, total, *words, **options):
    """Maximise b.q - q'Gq/2 over a product of simplexes and orthants."""
    return projected_newton(Quadratic(gram, b), block, total, *words, **options)


def newton_simplex(gram, b, total, *words, **options):
    """... over q >= 0, sum q = total."""
    return newton_product(gram, b, np.zeros(len(b), int), np.array([total], float), *words, **options)


def newton_orthant(gram, b, *words, **options):
    """... over q >= 0."""
    return newton_product(gram, b, np.zeros(len(b), int), np.array([np.inf]), *words, **options)
