"""Formulation: weights of the examples, primal and dual values, the lift of squared slacks, regularisers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.formulations.absolute import ElasticNet
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.formulations.regularisers import Quadratic, SignedQuadratic
from maxmargin.formulations.rescaled_hinge import MarginRescaling
from maxmargin.models.chain import Chain
from reference.certificate import recompute
from reference.problems import chain_planes, random_chains
from reference.qp import objective, solve_dual

X, Y = random_chains(5, 3, 2, lengths=(1, 3), seed=2)
BOUND = Chain().bind(X, Y)
EVERY = chain_planes(X, Y, 3).planes
S = np.array([1.0, 0.0, 2.0, 0.5, 1.0])


@pytest.mark.parametrize("positive", [None, np.arange(15) >= 6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_primal_and_dual_values_against_enumeration(loss, positive):
    """C sum s loss^2 is LinearSVC's convention, so the reference solver's C is 2 C s there."""
    squared, C = loss == "squared_hinge", 0.3
    problem = MarginRescaling(loss).problem(BOUND, C=C, sample_weight=S, positive=positive)
    weight = (2 if squared else 1) * C * S
    np.testing.assert_allclose(problem.weight, weight)
    np.testing.assert_array_equal(problem.total, np.where(weight > 0, np.inf, 0.0) if squared else weight)
    rng = np.random.default_rng(0)
    w = rng.normal(size=15)
    w = w if positive is None else np.where(positive, np.abs(w), w)
    losses = np.array([(b - A @ w).max() for A, b in EVERY])
    column = np.concatenate([w, rng.normal(size=problem.n_columns - 15)])  # what follows the weights must not matter
    assert problem.primal(column, losses) == pytest.approx(objective(EVERY, weight, w, squared=squared))

    best = solve_dual(EVERY, weight, squared=squared, positive=positive)
    cut = 1.0 if squared else 1 - 1e-9  # off the boundary, where rounding would make the multipliers infeasible
    multipliers = [cut * alpha * (C_i > 0) for alpha, C_i in zip(best.multipliers, weight, strict=True)]
    expected = recompute(best.weights, multipliers, EVERY, weight, squared=squared, positive=positive)
    u, linear = np.zeros(problem.n_columns), 0.0
    for i, ((A, b), alpha) in enumerate(zip(EVERY, multipliers, strict=True)):
        u[:15] += alpha @ A
        linear += alpha @ b
        if squared and weight[i] > 0:
            u[15 + i] = alpha.sum() / np.sqrt(weight[i])
    assert problem.dual(linear, u) == pytest.approx(expected.dual, rel=1e-9)


def test_infinite_bounds_of_examples_without_weight_do_not_spoil_the_primal():
    problem = MarginRescaling().problem(BOUND, sample_weight=S)
    losses = np.array([1.0, np.inf, 1.0, 1.0, 1.0])
    assert problem.primal(np.zeros(15), losses) == pytest.approx(4.5)


def test_negative_losses_count_as_zero():
    """The true output is always among the outputs."""
    assert MarginRescaling().problem(BOUND).primal(np.zeros(15), -np.ones(5)) == 0.0


EVEN = np.arange(6) % 2 == 0
REGULARISERS = [Quadratic(), SignedQuadratic(EVEN), ElasticNet(None, 0.3), ElasticNet(EVEN, 2.0)]


def test_lift_of_squared_slacks():
    problem = MarginRescaling("squared_hinge").problem(BOUND, C=0.5, sample_weight=S)
    np.testing.assert_allclose(problem.oracle.lift, [1.0, 0.0, 1 / np.sqrt(2), np.sqrt(2), 1.0])
    assert problem.n_columns == 20 and problem.n_weights == 15 and problem.n_examples == 5


@pytest.mark.parametrize("regulariser", REGULARISERS, ids=lambda r: type(r).__name__)
def test_conjugate_is_the_best_of_linear_minus_regulariser(regulariser):
    rng = np.random.default_rng(1)
    for _ in range(50):
        u = 2.0 * rng.normal(size=6)
        w = regulariser.weights(u)
        assert regulariser.conjugate(u) == pytest.approx(u @ w - regulariser.value(w))
        for other in w + 0.3 * rng.normal(size=(20, 6)):
            assert u @ other - regulariser.value(other) <= regulariser.conjugate(u) + 1e-12


@pytest.mark.parametrize("regulariser", REGULARISERS, ids=lambda r: type(r).__name__)
def test_curvature_is_the_derivative_of_the_weights(regulariser):
    rng = np.random.default_rng(2)
    A, u, h = rng.normal(size=(4, 6)), 2.0 * rng.normal(size=6), 1e-6
    numeric = np.array([(regulariser.weights(u + h * a) - regulariser.weights(u - h * a)) / (2 * h) for a in A]) @ A.T
    np.testing.assert_allclose(regulariser.curvature(sp.csr_array(A), u), numeric, atol=1e-6)


def test_refused():
    with pytest.raises(ValueError, match=r"positive must have one entry per weight, \(15,\); got \(3,\)"):
        MarginRescaling().problem(BOUND, positive=np.ones(3, bool))
    with pytest.raises(ValueError, match=r"loss must be one of hinge, squared_hinge, or .* ramp; got 'log'"):
        MarginRescaling("log").problem(BOUND)
    with pytest.raises(ValueError, match=r"C must be a finite number >= 0, got 'big'"):
        MarginRescaling().problem(BOUND, C="big")
    with pytest.raises(ValueError, match=r"sample_weight of example 2 is nan"):
        check_sample_weight([1, 1, np.nan], 3)
    assert check_sample_weight(None, 3).tolist() == [1, 1, 1]
