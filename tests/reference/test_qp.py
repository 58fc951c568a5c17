"""The references agree with each other and with closed forms."""

import numpy as np
import pytest

from reference.certificate import recompute
from reference.problems import (
    chain_features,
    chain_planes,
    multiclass_planes,
    random_chains,
    random_cost_matrix,
    random_multiclass,
)
from reference.qp import objective, solve_dual, solve_primal


def clipped(multipliers, C):
    """Interior point multipliers overshoot their sum by 1e-12 or so; scale them back."""
    return [
        alpha * min(1.0, c / alpha.sum()) if alpha.sum() > 0 else alpha for alpha, c in zip(multipliers, C, strict=True)
    ]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_primal_and_dual_routes_agree(seed, squared, signed):
    rng = np.random.default_rng(seed)
    n, K, F = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    X, y = random_chains(n, K, F, lengths=(1, 3), seed=seed, integer=seed % 3 == 0)
    cost = "hamming" if seed % 2 else random_cost_matrix(K, seed=seed)
    problem = chain_planes(X, y, K, cost=cost, ends=bool(seed % 2), rescaling=["margin", "slack"][seed % 2])
    C = 10.0 ** rng.uniform(-2, 1, n)
    positive = rng.random(problem.n_weights) < 0.4 if signed else None
    primal = solve_primal(problem.planes, C, squared=squared, positive=positive)
    dual = solve_dual(problem.planes, C, squared=squared, positive=positive)
    assert primal.objective == pytest.approx(dual.objective, rel=1e-7, abs=1e-7)
    assert primal.weights == pytest.approx(dual.weights, abs=1e-4)
    for solution in (primal, dual):
        alpha = solution.multipliers if squared else clipped(solution.multipliers, C)
        check = recompute(primal.weights, alpha, problem.planes, C, squared=squared, positive=positive)
        assert -1e-9 <= check.gap <= 1e-6 * max(1.0, check.primal)
        assert check.weights == pytest.approx(primal.weights, abs=1e-4)


@pytest.mark.parametrize("C", [0.01, 0.3, 20.0])
def test_one_wrong_output(C):
    """alpha = min(C, cost/|psi|^2), slack rescaling min(C, 1/(cost |psi|^2)), squared cost/(|psi|^2 + 1/C)."""
    x, cost = np.array([0.5, -1.5]), np.array([[0.0, 0.7], [0.7, 0.0]])
    norm, delta = 2 * x @ x, 0.7
    for rescaling, scale in (("margin", 1.0), ("slack", delta)):
        planes = multiclass_planes([x], [0], 2, cost=cost, rescaling=rescaling).planes
        a = scale**2 * norm
        for solve in (solve_primal, solve_dual):
            assert solve(planes, C).multipliers[0][1] == pytest.approx(min(C, delta / a), rel=1e-5)
            assert solve(planes, C, squared=True).multipliers[0][1] == pytest.approx(delta / (a + 1 / C), rel=1e-5)


def test_weights_zero_cases():
    problem = multiclass_planes(*random_multiclass(4, 1, 3), 1)  # one class only
    assert solve_primal(problem.planes, 1.0).weights == pytest.approx(np.zeros(3), abs=1e-6)
    problem = multiclass_planes(*random_multiclass(4, 3, 2), 3)
    for squared in (False, True):
        for solve in (solve_primal, solve_dual):
            solution = solve(problem.planes, 0.0, squared=squared)
            assert solution.objective == pytest.approx(0.0, abs=1e-8)


def test_crammer_singer():
    svm = pytest.importorskip("sklearn.svm")
    X, y = random_multiclass(20, 3, 4, seed=3)
    y[:3] = [0, 1, 2]
    ours = solve_primal(multiclass_planes(X, y, 3).planes, 0.7)
    theirs = svm.LinearSVC(multi_class="crammer_singer", C=0.7, fit_intercept=False, tol=1e-10, max_iter=200000).fit(
        X, y
    )
    assert ours.weights.reshape(4, 3).T == pytest.approx(theirs.coef_, abs=1e-4)


def test_objective_bounds_any_weights():
    X, y = random_chains(3, 2, 2, seed=1)
    problem = chain_planes(X, y, 2)
    best = solve_primal(problem.planes, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = best.weights + rng.normal(size=problem.n_weights) * 0.3
        assert objective(problem.planes, 1.0, w) >= best.objective - 1e-9


def test_enumeration_is_complete_and_true_plane_is_zero():
    X, y = random_chains(4, 3, 2, lengths=(1, 3), seed=2)
    problem = chain_planes(X, y, 3, ends=True)
    for (a, b), outputs, truth in zip(problem.planes, problem.outputs, y, strict=True):
        assert len(set(outputs)) == len(b) == 3 ** len(truth)
        k = outputs.index(tuple(truth))
        assert not a[k].any() and b[k] == 0
        assert a.shape[1] == 2 * 3 + 3 * 3 + 2 * 3


def test_chain_features_by_hand():
    x = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    phi = chain_features(x, [1, 0, 1], 2, ends=True)
    assert phi.tolist() == [10, 101, 20, 202, 0, 1, 1, 0, 0, 1, 0, 1]


def test_infeasible_multipliers_are_refused():
    problem = multiclass_planes(*random_multiclass(2, 3, 2), 3)
    with pytest.raises(ValueError, match="example 1"):
        recompute(np.zeros(6), [np.zeros(3), np.full(3, 0.5)], problem.planes, 1.0)
    with pytest.raises(ValueError, match="example 0"):
        recompute(np.zeros(6), [np.array([0, -1e-3, 0]), np.zeros(3)], problem.planes, 1.0)
