"""SMO on one block against projected Newton and a conic solver; the line search over kinks against scipy."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import smo
from maxmargin.solvers.masters.smo_signed_kernel import signed_step, smo_signed, soft_step
from maxmargin.solvers.working_set import WorkingSet
from reference.masters import newton_orthant, newton_simplex
from reference.qp import solve_dual


def block_of(A, b, total):
    """A working set with one block that holds the rows of A, all weight on the origin."""
    m, d = A.shape
    ws = WorkingSet(np.array([total]), d, d)
    ws.grow(0, m + 1, (m + 1) * d)
    for row, offset in zip(A, b, strict=True):
        index = np.flatnonzero(row).astype(np.int32)
        assert wk.insert(ws.store, 0, index, row[index], float(offset), ws.table, ws.bits, ws.dense) >= 0
    return ws


def solve(ws, positive=None, tau=1e-13, max_steps=200_000):
    """Solve the block; returns (u, w, gain)."""
    u = np.zeros(ws.n_columns)
    wk.rebuild(ws.store, u)
    signs = np.empty(0, np.int8) if positive is None else positive.astype(np.int8)
    w = u if positive is None else np.where(positive, np.maximum(u, 0), u)
    wk.gradients(ws.store, 0, w, ws.g)
    visit = wk.Visit(wk.NO_LIMIT, wk.MERGE, 1, tau, max_steps, 1 << 30, ws.bits, ws.table, ws.dense, ws.g, ws.change)
    gain = (smo if positive is None else smo_signed)(ws.store, 0, wk.Point(u, w, signs), visit)
    return u, w, gain


def random_block(seed, kind):
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, 12)), int(rng.integers(1, 8))
    A = rng.normal(size=(m, d))
    if kind == "sparse":
        A *= rng.random((m, d)) < 0.4
    if kind == "integer":
        A = rng.integers(-2, 3, (m, d)).astype(float)
        A = np.unique(A, axis=0)
        m = len(A)
    return A, np.round(3 * rng.random(m), 1 if kind == "integer" else 12) + 0.1, 10.0 ** rng.uniform(-2, 1.5)


def assert_consistent(ws, u, w, gain, A, b, positive=None):
    alpha = ws.store.alpha[ws.store.slots[0, : ws.store.held[0]]]
    assert (alpha >= 0).all()
    assert u == pytest.approx(A.T @ alpha, abs=1e-10 * (1 + np.abs(u).max()))
    assert ws.linear == pytest.approx(b @ alpha, rel=1e-10, abs=1e-14)
    assert gain == pytest.approx(b @ alpha - 0.5 * w @ w, rel=1e-8, abs=1e-12)
    if np.isfinite(ws.store.total[0]):
        assert alpha.sum() + ws.store.origin[0] == pytest.approx(ws.store.total[0], rel=1e-12)
    return alpha


@pytest.mark.parametrize("kind", ["dense", "sparse", "integer"])
@pytest.mark.parametrize("seed", range(12))
def test_simplex_with_origin(seed, kind):
    A, b, total = random_block(seed, kind)
    ws = block_of(A, b, total)
    u, w, gain = solve(ws)
    alpha = assert_consistent(ws, u, w, gain, A, b)
    padded, offsets = np.vstack([A, np.zeros(A.shape[1])]), np.append(b, 0.0)
    newton = newton_simplex(padded @ padded.T, offsets, total, tol=1e-12)
    assert gain == pytest.approx(newton.value, rel=1e-8, abs=1e-12)
    assert gain == pytest.approx(solve_dual([(A, b)], [total]).objective, rel=1e-6, abs=1e-8)
    g = b - A @ u  # optimality: what carries weight has the largest gradient
    top = max(0.0, g.max())
    assert (g[alpha > 0] >= top - 1e-9 * (1 + top)).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "integer"])
@pytest.mark.parametrize("seed", range(12))
def test_orthant(seed, kind):
    """Squared slacks: an extra column 1/sqrt(C), no sum constraint."""
    A, b, C = random_block(100 + seed, kind)
    lifted = np.hstack([A, np.full((len(A), 1), 1 / np.sqrt(C))])
    ws = block_of(lifted, b, np.inf)
    u, w, gain = solve(ws)
    assert_consistent(ws, u, w, gain, lifted, b)
    assert gain == pytest.approx(newton_orthant(lifted @ lifted.T, b, tol=1e-15).value, rel=1e-8)
    assert gain == pytest.approx(solve_dual([(A, b)], [C], squared=True).objective, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_sign_constraints(seed, squared):
    rng = np.random.default_rng(seed)
    A, b, C = random_block(200 + seed, ["dense", "sparse"][seed % 2])
    positive = rng.random(A.shape[1]) < 0.6
    rows, mask, total = A, positive, C
    if squared:
        rows, mask = np.hstack([A, np.full((len(A), 1), 1 / np.sqrt(C))]), np.append(positive, False)
        total = np.inf
    ws = block_of(rows, b, total)
    u, w, gain = solve(ws, mask)
    assert_consistent(ws, u, w, gain, rows, b)
    assert w == pytest.approx(np.where(mask, np.maximum(u, 0), u))
    reference = solve_dual([(A, b)], [C], squared=squared, positive=positive)
    assert gain == pytest.approx(reference.objective, rel=1e-6, abs=1e-7)


def test_closed_origin_leaves_a_simplex_of_the_planes_alone():
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(5, 9)) * 3, 0.1 * rng.random(5)  # with the origin, most weight would stay there
    ws = block_of(A, b, 2.0)
    ws.store.open[0], ws.store.origin[0] = 0, 0.0
    ws.store.alpha[ws.store.slots[0, 0]] = 2.0
    solve(ws)
    alpha = ws.store.alpha[ws.store.slots[0, :5]]
    assert alpha.sum() == pytest.approx(2.0, rel=1e-12)
    newton = newton_simplex(A @ A.T, b, 2.0, tol=1e-13)
    assert b @ alpha - 0.5 * np.sum((alpha @ A) ** 2) == pytest.approx(newton.value, rel=1e-9)


def test_closed_form_of_one_plane():
    """alpha = min(C, b / |a|^2)."""
    a, b = np.array([[0.5, -1.5]]), np.array([0.7])
    for total in (0.01, 0.3, 20.0, np.inf):
        ws = block_of(a, b, total)
        solve(ws)
        assert ws.store.alpha[ws.store.slots[0, 0]] == pytest.approx(min(total, 0.7 / 2.5), rel=1e-14)


def test_degenerate_planes():
    """A plane of no length and positive cost takes everything; on an orthant nothing bounds it, so it is left alone."""
    A, b = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([1.0, 0.2])
    ws = block_of(A, b, 3.0)
    solve(ws)
    assert ws.store.alpha[ws.store.slots[0, :2]] == pytest.approx([3.0, 0.0])
    ws = block_of(A, b, np.inf)
    u, _, gain = solve(ws)
    assert np.isfinite(u).all()
    assert np.isfinite(gain)
    ws = block_of(A, b, 0.0)  # an example of weight 0
    solve(ws)
    assert not ws.store.alpha[ws.store.slots[0, :2]].any()


def test_number_of_steps_is_respected_and_each_one_gains():
    A, b, _ = random_block(7, "dense")
    gains = []
    for steps in range(1, 8):
        ws = block_of(A, b, 5.0)
        gains.append(solve(ws, max_steps=steps)[2])
        assert ws.store.size[wk.STEPS] <= steps
    assert (np.diff(gains) >= 0).all()
    assert gains[0] > 0


def projected_value(t, u, delta, positive, slope):
    v = u + t * delta
    return slope * t - 0.5 * np.sum(np.where(positive, np.maximum(v, 0), v) ** 2)


@pytest.mark.parametrize("seed", range(150))
def test_line_search_over_kinks(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    u = rng.normal(size=d) * (rng.random(d) < 0.8)  # some coordinates sit on their kink
    delta = rng.normal(size=d) * (rng.random(d) < 0.9)
    positive = rng.random(d) < [0.0, 0.5, 1.0][seed % 3]
    slope, available = 3 * rng.normal(), 10.0 ** rng.uniform(-2, 1.5)
    index = np.arange(d, dtype=np.int32)
    step = signed_step(u, positive.astype(np.int8), index, delta, d, slope, available)
    assert 0 <= step <= available

    def negative(t):
        return -projected_value(t, u, delta, positive, slope)

    found = minimize_scalar(negative, bounds=(0, available), method="bounded", options={"xatol": 1e-13})
    grid = np.append(np.linspace(0, available, 4001), found.x)
    best = min(negative(t) for t in grid)
    assert negative(step) <= best + 1e-12 * (1 + abs(best))


def test_line_search_without_end():
    """On an orthant the step may be unbounded: inf when nothing turns the value down, else the turning point."""
    index, ones = np.arange(2, dtype=np.int32), np.ones(2, np.int8)
    down = np.array([-1.0, -1.0])
    assert signed_step(np.zeros(2), ones, index, down, 2, 1.0, np.inf) == np.inf
    assert signed_step(np.zeros(2), np.zeros(2, np.int8), index, down, 2, 1.0, np.inf) == pytest.approx(0.5)
    # u starts at -3 on both: free until t = 3, then 2 (t - 3) = 1
    assert signed_step(np.full(2, -3.0), ones, index, -down, 2, 1.0, np.inf) == pytest.approx(3.5)
    assert signed_step(np.zeros(2), ones, index, down, 2, -1.0, 5.0) == 0.0


@pytest.mark.parametrize("seed", range(100))
def test_line_search_over_thresholds(seed):
    rng = np.random.default_rng(seed)
    d, threshold, scale = int(rng.integers(1, 9)) if seed % 10 else 60, 0.7, 0.3
    u = rng.normal(size=d)
    u = np.where(rng.random(d) < 0.8, u, threshold * np.sign(u))  # some coordinates sit on their kink
    delta = rng.normal(size=d) * (rng.random(d) < 0.9)
    positive = rng.random(d) < [0.0, 0.5, 1.0][seed % 3]
    slope, available = 3 * rng.normal(), 10.0 ** rng.uniform(-2, 1.5)
    point = wk.Point(u, np.zeros(d), positive.astype(np.int8), threshold=threshold, scale=scale)
    index, scratch = np.arange(d, dtype=np.int32), np.empty((2, 2 * d))
    step = soft_step(point, index, delta, d, slope, available, *scratch)
    assert 0 <= step <= available

    def negative(t):
        v = u + t * delta
        soft = np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
        return 0.5 * scale * np.sum(np.where(positive, np.maximum(soft, 0.0), soft) ** 2) - slope * t

    found = minimize_scalar(negative, bounds=(0, available), method="bounded", options={"xatol": 1e-13})
    grid = np.append(np.linspace(0, available, 4001), found.x)
    best = min(negative(t) for t in grid)
    assert negative(step) <= best + 1e-12 * (1 + abs(best))
