"""The generative formulation: theta, lambda, derivatives, the closed dual and its bounds, against general tools."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import wrightomega

from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.generative import Generative
from maxmargin.formulations.generative_kernel import newton_theta, wright_omega
from maxmargin.models.tables import Tables
from reference.generative import generative_problem, objective, optimum, random_problem

GAMMAS = (1e-8, 1e-3, 0.1, 1.0, 1e3)


def a_proximal(seed, gamma=0.1, sizes=(3, 1, 4)):
    rng = np.random.default_rng(seed)
    tables = Tables.of(sizes)
    c = rng.dirichlet(np.ones(tables.n_weights)) + 0.01
    centre = tables.feasible(rng.normal(-1.5, 1.0, tables.n_weights))
    return TableDivergence(tables, c).proximal(centre, gamma), rng


def test_omega_is_scipys():
    z = np.concatenate([np.linspace(-60, 60, 5001), 10.0 ** np.linspace(1, 15, 50), -(10.0 ** np.linspace(1, 2, 20))])
    mine = np.array([wright_omega(x) for x in z])
    np.testing.assert_allclose(mine, wrightomega(z), rtol=1e-13)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_theta_by_newton_solves_its_equation(gamma):
    rng = np.random.default_rng(0)
    s = np.concatenate([rng.normal(size=500) * scale for scale in (1e-3, 1.0, 30.0)]) + gamma * -3.0
    lam = 10.0 ** rng.uniform(-8, 4, len(s))
    x = np.array([newton_theta(*pair, gamma) for pair in zip(s, np.log(lam), strict=True)])
    residual = np.abs(lam * np.exp(x) + gamma * x - s)
    assert (residual <= 1e-10 * np.maximum(1.0, np.abs(s))).all()


def test_newton_also_ends_where_that_of_the_paper_crawls():
    for lam in (1.0, 1e-3, 1e3):
        s = 1e-3 * np.log(2.0) + 2.0 * lam
        assert newton_theta(s, np.log(lam), 1e-3) == pytest.approx(np.log(2.0), abs=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("size", [0.0, 0.3, 30.0])
@pytest.mark.parametrize("newton", [False, True])
def test_tables_are_solved_with_lambda_eliminated(gamma, size, newton):
    proximal, rng = a_proximal(3, gamma)
    proximal = replace(proximal, newton=newton)
    for _ in range(20):
        u = size * rng.normal(size=8)
        theta, lam = proximal.solve(u)
        spread = lam[proximal.divergence.tables.table]
        s = proximal.divergence.reference + u + gamma * proximal.centre
        assert np.abs(spread * np.exp(theta) + gamma * theta - s).max() <= 1e-10 * max(1.0, np.abs(s).max())
        mass = np.exp(proximal.divergence.tables.log_mass(theta))
        assert (mass <= 1 + 1e-12).all() and (lam >= 0).all()
        assert np.abs(mass[lam > 0] - 1).max(initial=0.0) <= 1e-12


def test_lambda_is_the_root_that_a_bracketing_method_finds():
    proximal, rng = a_proximal(5, 0.2, (4,))
    u = rng.normal(size=4) + 1.0
    s = proximal.divergence.reference + u + 0.2 * proximal.centre

    def theta(s, lam):
        return brentq(lambda x: lam * np.exp(x) + 0.2 * x - s, -200.0, 100.0, xtol=1e-14)

    def excess(lam):
        return np.exp([theta(x, lam) for x in s]).sum() - 1.0

    assert proximal.solve(u).lam[0] == pytest.approx(brentq(excess, 0.0, 100.0, xtol=1e-13), abs=1e-10)


def test_derivatives_of_the_divergence_itself():
    proximal, rng = a_proximal(4)
    divergence, u = proximal.divergence, 0.1 * rng.random(8)
    for R in (divergence, replace(divergence, pull=0.3)):
        step, eye = 1e-6, np.eye(8)
        gradient = [(R.conjugate(u + step * e) - R.conjugate(u - step * e)) / (2 * step) for e in eye]
        np.testing.assert_allclose(R.weights(u), gradient, atol=1e-6)
        hessian = [(R.weights(u + step * e) - R.weights(u - step * e)) / (2 * step) for e in eye]
        np.testing.assert_allclose(R.curvature(eye, u), hessian, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gamma", [0.03, 2.0])
def test_derivatives_are_finite_differences(seed, gamma):
    proximal, rng = a_proximal(seed, gamma)
    u = rng.normal(size=8) * 0.5
    step, eye = 1e-6, np.eye(8)
    gradient = [(proximal.conjugate(u + step * e) - proximal.conjugate(u - step * e)) / (2 * step) for e in eye]
    np.testing.assert_allclose(proximal.weights(u), gradient, atol=1e-7)
    hessian = [(proximal.weights(u + step * e) - proximal.weights(u - step * e)) / (2 * step) for e in eye]
    np.testing.assert_allclose(proximal.curvature(eye, u), hessian, atol=1e-5)


def test_conjugate_is_what_a_conic_solver_finds():
    proximal, rng = a_proximal(2, 0.5)
    u = rng.normal(size=8)
    c, starts = proximal.divergence.reference, proximal.divergence.tables.starts
    value, theta = optimum([], [], c, starts, gamma=0.5, centre=proximal.centre, u=u)
    assert proximal.conjugate(u) == pytest.approx(-value, abs=1e-7)
    np.testing.assert_allclose(proximal.weights(u), theta, atol=1e-4)


def test_dual_is_closed_inside_its_domain_and_minus_infinity_outside():
    planes, c, starts = random_problem(0)
    problem = generative_problem(planes, np.ones(len(planes)), c, starts)
    u = 0.5 * c * np.linspace(-1.9, 4.0, len(c))
    assert problem.dual(0.7, u) == pytest.approx(0.7 + optimum([], [], c, starts, u=u)[0], abs=1e-7)
    assert problem.dual(0.7, -1.01 * c) == -np.inf


def test_without_losses_the_reference_is_optimal():
    planes, c, starts = random_problem(1)
    problem = generative_problem(planes, np.zeros(len(planes)), c, starts)
    assert problem.primal(problem.regulariser.first(), np.full(len(planes), 3.0)) == 0.0
    assert problem.lower_bound(0.0, np.zeros(len(c))) == 0.0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(0.0, 3.0), squared=st.booleans())
def test_any_multipliers_bound_the_optimum_from_below(seed, size, squared):
    planes, c, starts = random_problem(seed % 40)
    C = np.full(len(planes), 0.8)
    value, _ = optimum(planes, C, c, starts, squared=squared)
    rng = np.random.default_rng(seed)
    alpha = [rng.random(len(b)) * (rng.random(len(b)) < 0.5) * size for _, b in planes]
    if not squared:
        alpha = [a * min(1.0, 0.8 / max(a.sum(), 1e-12)) for a in alpha]
    u = sum(A.T @ a for (A, _), a in zip(planes, alpha, strict=True))
    linear = sum(float(b @ a) for (_, b), a in zip(planes, alpha, strict=True))
    u = np.concatenate([u, [a.sum() / np.sqrt(0.8) for a in alpha]]) if squared else u
    problem = generative_problem(planes, C, c, starts, squared)
    bound, scale = problem.regulariser.lower_bound(linear, u)
    assert bound == problem.lower_bound(linear, u)
    assert bound <= value + 1e-6 and 0 <= scale <= 1
    for t in np.linspace(0, 1, 50):  # and it is the best along the segment
        assert problem.dual(t * linear, t * u) <= bound + 1e-9


def test_the_paper_s_estimate_is_no_bound_and_says_so():
    """All the multipliers on the worst plane: the projected dual lies above the optimum, the certified bound below."""
    above = 0
    for seed in range(20):
        planes, c, starts = random_problem(seed)
        C = np.full(len(planes), 3.0)
        value, _ = optimum(planes, C, c, starts)
        u = sum(3.0 * A[np.argmax(b)] for A, b in planes)
        linear = sum(3.0 * b.max() for _, b in planes)
        problem = generative_problem(planes, C, c, starts)
        estimate, outside = problem.regulariser.estimate(linear, u)
        assert problem.lower_bound(linear, u) <= value + 1e-6
        if estimate > value + 1e-3:
            above += 1
            assert outside > 0
    assert above > 0


def test_primal_is_the_objective_written_out():
    planes, c, starts = random_problem(4)
    theta = Tables(starts).feasible(np.random.default_rng(0).normal(size=len(c)))
    losses = np.array([max(0.0, (b - A @ theta).max()) for A, b in planes])
    for squared in (False, True):
        problem = generative_problem(planes, np.arange(1.0, 5.0), c, starts, squared)
        expected = objective(planes, np.arange(1.0, 5.0), c, theta, squared=squared)
        assert problem.primal(theta, losses) == pytest.approx(expected)


def test_problems_that_can_not_be_are_refused():
    planes, c, starts = random_problem(0)
    with pytest.raises(ValueError, match="reference must be"):
        generative_problem(planes, np.ones(4), np.where(np.arange(len(c)) == 2, 0.0, c), starts)
    with pytest.raises(ValueError, match="start must be"):
        TableDivergence(Tables(starts), c, start=np.full(len(c), -np.inf)).first()
    with pytest.raises(ValueError, match="the model has 3 weights, the tables hold 4"):
        Generative(tables=Tables.of([2, 2])).problem(SimpleNamespace(n_examples=4, n_weights=3))
    with pytest.raises(ValueError, match="loss must be"):
        Generative(loss="log").problem(SimpleNamespace(n_examples=4))
    with pytest.raises(ValueError, match="C must be"):
        Generative().problem(SimpleNamespace(n_examples=4), C=-1.0)
    with pytest.raises(ValueError, match="not positive"):
        Generative().problem(SimpleNamespace(n_examples=4), positive=np.ones(3))


def test_the_divergence_turned_round_is_not_convex():
    """``sum e^theta (theta - ln q)``, which the paper allows in section 3.2, bends downwards below ln q - 2."""
    at, h = np.log(0.5) - np.array([1.0, 3.0]), 1e-3

    def turned(theta):
        return np.exp(theta) * (theta - np.log(0.5))

    bends = (turned(at + h) - 2 * turned(at) + turned(at - h)) / h**2
    assert bends[0] > 0 > bends[1]
