"""Projected Newton against a conic solver, closed forms and degenerate inputs."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from maxmargin.solvers.masters.newton import DenseCurvature, projected_newton
from reference.masters import Quadratic, newton_orthant, newton_product, newton_simplex


def conic(a, b, block, total):
    """Optimal value of max b.q - |A'q|^2/2, q >= 0, block sums == total, by an interior point method.

    v = A'q is a variable of its own, so that the conic solver never sees the (possibly singular) Gram matrix.
    """
    m, d = a.shape
    closed = np.flatnonzero(np.isfinite(total) & (np.bincount(block, minlength=len(total)) > 0))
    p = sparse.block_diag([sparse.csc_matrix((m, m)), sparse.eye(d)], format="csc")
    membership = (block[None, :] == closed[:, None]).astype(float)
    rows = [
        sparse.hstack([sparse.csc_matrix(a.T), -sparse.eye(d)]),
        sparse.hstack([sparse.csc_matrix(membership), sparse.csc_matrix((len(closed), d))]),
        sparse.hstack([-sparse.eye(m), sparse.csc_matrix((m, d))]),
    ]
    right = np.concatenate([np.zeros(d), total[closed], np.zeros(m)])
    cones = [clarabel.ZeroConeT(d + len(closed)), clarabel.NonnegativeConeT(m)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    matrix = sparse.vstack(rows, format="csc")
    return -clarabel.DefaultSolver(p, np.concatenate([-b, np.zeros(d)]), matrix, right, cones, settings).solve().obj_val


def planes(rng, kind, m):
    d = {"full": 2 * m, "singular": max(1, m // 3), "equal": 3, "ill": m}[kind]
    a = rng.normal(size=(m, d))
    if kind == "equal":
        a = a[rng.integers(0, max(1, m // 2), m)]
    if kind == "ill":
        a *= 10.0 ** rng.uniform(-3, 3, d)
    return a, 3 * rng.random(m)


def assert_feasible(q, block, total):
    assert (q >= 0).all()
    for k, amount in enumerate(total):
        if np.isfinite(amount) and (block == k).any():
            assert q[block == k].sum() == pytest.approx(amount, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("kind", ["full", "singular", "equal", "ill"])
@pytest.mark.parametrize("seed", range(12))
def test_simplex_agrees_with_conic_solver(kind, seed):
    rng = np.random.default_rng(seed)
    m, total = int(rng.integers(1, 40)), 10.0 ** rng.uniform(-2, 2)
    a, b = planes(rng, kind, m)
    result = newton_simplex(a @ a.T, b, total, tol=1e-10)
    reference = conic(a, b, np.zeros(m, int), np.array([total]))
    assert result.value == pytest.approx(reference, rel=1e-7, abs=1e-7)
    assert result.status in ("converged", "stalled")
    assert result.gap <= 1e-6 * max(1.0, abs(reference))
    assert_feasible(result.q, np.zeros(m, int), np.array([total]))


@pytest.mark.parametrize("kind", ["full", "singular", "equal"])
@pytest.mark.parametrize("seed", range(12))
def test_product_with_orthants_and_empty_blocks(kind, seed):
    rng = np.random.default_rng(100 + seed)
    m, n_blocks = int(rng.integers(2, 40)), int(rng.integers(2, 12))
    a, b = planes(rng, kind, m)
    block = rng.integers(0, n_blocks, m)
    total = 10.0 ** rng.uniform(-2, 2, n_blocks)
    total[rng.random(n_blocks) < 0.2] = 0.0
    total[rng.random(n_blocks) < 0.3] = np.inf
    a = np.hstack([a, np.eye(m)])  # curvature of its own for each variable keeps the orthants bounded
    result = newton_product(a @ a.T, b, block, total, tol=1e-10)
    assert result.value == pytest.approx(conic(a, b, block, total), rel=1e-7, abs=1e-7)
    assert_feasible(result.q, block, total)
    assert (result.q[total[block] == 0] == 0.0).all()


@pytest.mark.parametrize("seed", range(12))
def test_orthant_of_squared_slacks(seed):
    """All planes of an example share one column 1/sqrt(C): singular in the planes, bounded through the column."""
    rng = np.random.default_rng(200 + seed)
    m = int(rng.integers(1, 50))
    a, b = planes(rng, ["full", "singular", "equal"][seed % 3], m)
    a = np.hstack([a, np.full((m, 1), 10.0 ** rng.uniform(-1, 1))])
    result = newton_orthant(a @ a.T, b, tol=1e-10)
    assert result.status == "converged"
    assert result.value == pytest.approx(conic(a, b, np.zeros(m, int), np.array([np.inf])), rel=1e-7, abs=1e-7)
    gradient = b - a @ (a.T @ result.q)
    assert gradient.max() <= 1e-5 and abs(gradient @ result.q) <= 1e-5


def test_closed_forms():
    gram, b = np.array([[4.0, 0.0], [0.0, 0.0]]), np.array([2.0, 0.0])  # one wrong plane and the zero plane
    for total in (0.1, 0.5, 10.0):
        q = newton_simplex(gram, b, total, tol=1e-12).q
        assert q == pytest.approx([min(total, 0.5), total - min(total, 0.5)], abs=1e-9)
    assert newton_orthant(np.array([[4.0]]), np.array([2.0])).q == pytest.approx([0.5])
    assert newton_orthant(np.array([[4.0]]), np.array([-2.0])).q.tolist() == [0.0]
    assert newton_simplex(np.array([[7.0]]), np.array([1.0]), 3.0).q.tolist() == [3.0]


def test_linear_objective():
    zero, b = np.zeros((4, 4)), np.array([1.0, 3.0, 3.0, -1.0])
    result = newton_simplex(zero, b, 2.0)
    assert result.status == "converged" and result.value == pytest.approx(6.0)
    assert result.q[[0, 3]].tolist() == [0.0, 0.0]
    assert newton_orthant(zero, b).status == "unbounded"
    assert newton_orthant(zero, -np.abs(b)).q.tolist() == [0.0] * 4
    mixed = newton_product(zero, b, np.array([0, 0, 1, 1]), np.array([1.0, np.inf]))
    assert mixed.status == "unbounded" and np.isfinite(mixed.q).all()


def test_unbounded_along_a_flat_ray_of_a_curved_objective():
    a = np.array([[1.0], [-1.0]])  # q1 == q2 costs nothing
    assert newton_orthant(a @ a.T, np.array([1.0, 1.0])).status == "unbounded"
    assert newton_orthant(a @ a.T, np.array([1.0, -1.0])).value == pytest.approx(0.5)


def test_no_variables_and_no_room():
    result = newton_product(np.zeros((0, 0)), np.zeros(0), np.zeros(0, int), np.array([1.0, np.inf]))
    assert result.status == "converged" and result.q.shape == (0,) and result.value == 0.0
    assert newton_simplex(np.eye(3), np.ones(3), 0.0).q.tolist() == [0.0] * 3


def test_monotone_and_warm_start():
    rng = np.random.default_rng(5)
    a, b = planes(rng, "singular", 60)
    gram, values, q = a @ a.T, [], None
    for _ in range(40):
        result = newton_simplex(gram, b, 5.0, q, tol=1e-11, max_iterations=1)
        values.append(result.value)
        q = result.q
    assert (np.diff(values) >= -1e-13).all()
    again = newton_simplex(gram, b, 5.0, newton_simplex(gram, b, 5.0, tol=1e-11).q, tol=1e-10)
    assert again.iterations <= 1
    assert values[-1] == pytest.approx(again.value, rel=1e-10)


def test_cut_variables_are_exact_zeros():
    rng = np.random.default_rng(1)
    a, b = planes(rng, "singular", 90)
    q = newton_simplex(a @ a.T, b, 2.0, tol=1e-11).q
    assert ((q == 0.0) | (q > 1e-12)).all() and (q > 0).sum() <= a.shape[1] + 1


class Signed:
    """b.q - |[A'q]_+|^2/2: the dual when all weights are >= 0. Piecewise quadratic, without curvature at q = 0."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def value(self, q):
        return float(self.b @ q - 0.5 * (np.maximum(self.a.T @ q, 0) ** 2).sum())

    def gradient(self, q):
        return self.b - self.a @ np.maximum(self.a.T @ q, 0)

    def hessian(self, q):
        return DenseCurvature((self.a * (self.a.T @ q > 0)) @ self.a.T)


@pytest.mark.parametrize("seed", range(20))
def test_piecewise_quadratic_objective(seed):
    """w = [v]_+ is w = v + u with u >= 0: the conic solver gets u as further free-of-charge variables."""
    rng = np.random.default_rng(300 + seed)
    m, d = int(rng.integers(2, 25)), int(rng.integers(1, 12))
    a, b = rng.normal(size=(m, d)), 3 * rng.random(m)
    block = rng.integers(0, 3, m)
    total = 10.0 ** rng.uniform(-1, 1, 3)
    result = projected_newton(Signed(a, b), block, total, tol=1e-10)
    extended = np.concatenate([block, np.full(d, 3)])
    reference = conic(np.vstack([a, np.eye(d)]), np.concatenate([b, np.zeros(d)]), extended, np.append(total, np.inf))
    assert result.value == pytest.approx(reference, rel=1e-7, abs=1e-7)


class Logarithmic:
    """sum_j c_j log(1 + q_j): smooth and not quadratic; on a simplex the answer is water filling."""

    def __init__(self, c):
        self.c = c

    def value(self, q):
        return float(self.c @ np.log1p(q))

    def gradient(self, q):
        return self.c / (1 + q)

    def hessian(self, q):
        return DenseCurvature(np.diag(self.c / (1 + q) ** 2))


@pytest.mark.parametrize("total", [0.1, 1.0, 30.0])
def test_water_filling(total):
    c = np.array([0.2, 1.0, 2.0, 5.0])
    result = projected_newton(Logarithmic(c), np.zeros(4, int), np.array([total]), tol=1e-12)
    low, high = 1e-9, 100.0  # price p: q_j = [c_j/p - 1]_+, decreasing in p
    for _ in range(200):
        price = 0.5 * (low + high)
        low, high = (price, high) if np.maximum(c / price - 1, 0).sum() > total else (low, price)
    assert result.q == pytest.approx(np.maximum(c / price - 1, 0), abs=1e-5)


def test_bad_arguments_are_named():
    objective = Quadratic(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="total has 1"):
        projected_newton(objective, np.array([0, 1]), np.array([1.0]))
    with pytest.raises(ValueError, match="block 0"):
        projected_newton(objective, np.array([0, 0]), np.array([-1.0]))
    with pytest.raises(ValueError, match="q0"):
        projected_newton(objective, np.array([0, 0]), np.array([1.0]), np.ones(3))
