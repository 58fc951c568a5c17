"""Weights of generative estimators at the optimum: every output written out, solved by a conic solver.

Tables that sum to 1 at the optimum are unique there, so the log-probabilities themselves must agree, not only the
objective. Counts, costs and planes are computed here, from the definition.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from maxmargin import DiscriminativeBayesNet, DiscriminativeHMM
from reference.generative import optimum

STATES, SYMBOLS = 2, 3


def planes_of(count, truths, outputs, inputs):
    """(A_k, b_k) of each example: ``counts(truth) - counts(other)`` and the Hamming distance, for all other outputs."""
    planes = []
    for x, y in zip(inputs, truths, strict=True):
        others = [other for other in outputs(x) if other != y]
        A = np.array([count(x, y) - count(x, other) for other in others])
        planes.append((A, np.array([float(sum(a != b for a, b in zip(y, other, strict=True))) for other in others])))
    return planes


def check(model, planes, starts):
    _, theta = optimum(planes, np.full(len(planes), model.C), model.reference_, starts)
    assert model.status_.converged
    likely = theta > -8.0  # what is rarer hardly counts in the objective, and the conic solver leaves it anywhere
    assert likely.sum() >= 0.7 * len(theta)
    np.testing.assert_allclose(model.weights_[likely], theta[likely], atol=2e-3)
    moved = np.abs(theta - np.log(model.reference_))[likely].max()
    assert moved > 0.05, "training had nothing to do"


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("reference", ["smoothed", "uniform"])
def test_hidden_markov_model(reference, C):
    rng = np.random.default_rng(3)
    y = [tuple(rng.integers(STATES, size=n).tolist()) for n in rng.integers(1, 5, 12)]
    X = [tuple(int(s) if rng.random() < 0.6 else int(rng.integers(SYMBOLS)) for s in states) for states in y]
    solved = DiscriminativeHMM(C=C, reference=reference, classes=STATES, symbols=SYMBOLS, tol=1e-9, max_passes=3000)
    model = solved.fit(X, y)
    at = model.layout_.groups(np.arange(len(model.weights_)))

    def count(x, states):
        counts = np.zeros(len(model.weights_))
        counts[at["initial"][states[0]]] += 1
        for a, b in pairwise(states):
            counts[at["transition"][a, b]] += 1
        for state, symbol in zip(states, x, strict=True):
            counts[at["emission"][state, symbol]] += 1
        return counts

    planes = planes_of(count, y, lambda x: product(range(STATES), repeat=len(x)), X)
    check(model, planes, model.layout_.tables.starts)


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("reference", ["smoothed", "uniform"])
def test_bayesian_network(reference, C):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 20)
    X = np.where(rng.random((20, 3)) < 0.5, y[:, None], rng.integers(0, 3, (20, 3)))
    model = DiscriminativeBayesNet(C=C, reference=reference, tol=1e-9, max_passes=3000).fit(X, y)
    at = model.network_.groups(np.arange(len(model.weights_)))
    columns = [name for name in model.network_.names if name != "class"]

    def count(x, label):
        counts = np.zeros(len(model.weights_))
        counts[at["class"][label[0]]] += 1
        for name, value in zip(columns, x, strict=True):
            counts[at[name][label[0], value]] += 1
        return counts

    planes = planes_of(count, [(int(k),) for k in y], lambda x: product(range(3), repeat=1), X)
    check(model, planes, model.network_.tables.starts)
