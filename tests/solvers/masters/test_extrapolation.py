"""Jumps behind passes over blocks: the best point of a hull where that is feasible, never a worse or infeasible one."""

import numpy as np
import pytest

from maxmargin.formulations.regularisers import Quadratic, SignedQuadratic
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation import POINTS, Extrapolation, pays
from maxmargin.solvers.masters.smo_kernel import smo_pass
from maxmargin.solvers.masters.smo_signed_kernel import smo_signed_pass
from maxmargin.solvers.working_set import WorkingSet
from solvers.test_working_set import add, random_set

FOREVER = 1 << 30


def crawling(seed, m=6, d=8, total=np.inf):
    """Blocks of one plane each that pull nearly the same way; the maximum lies inside. Returns (ws, u, A, b, best)."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=d) + 0.3 * rng.normal(size=(m, d))
    best = rng.uniform(1.0, 2.0, m)
    b = A @ A.T @ best
    ws = WorkingSet(np.full(m, total), d, d)
    for block in range(m):
        assert add(ws, block, A[block], b[block]) == 0
    return ws, np.zeros(d), A, b, best


def one_pass(ws, u, w, positive=None, tau=1e-13):
    signs = np.empty(0, np.int8) if positive is None else positive.astype(np.int8)
    blocks = np.arange(ws.n_blocks)
    rules = (wk.NO_LIMIT, wk.MERGE, 1, tau, 1000, FOREVER, ws.bits, ws.table, ws.dense, ws.g, ws.change)
    solve = smo_signed_pass if len(signs) else smo_pass
    solve(ws.store, blocks, wk.Point(u, w, signs), wk.Visit(*rules), 0)


@pytest.mark.parametrize("total", [np.inf, 100.0])
@pytest.mark.parametrize("seed", range(10))
def test_jump_is_the_maximum_over_the_hull_of_the_points(seed, total):
    ws, u, A, b, _ = crawling(seed, total=total)
    jumps, points, compared = Extrapolation(ws, u, u, Quadratic()), [], 0
    for _ in range(9):
        one_pass(ws, u, u)
        alpha = ws.planes()[2].copy()
        points = [*points, alpha][-POINTS:]
        before = b @ alpha - 0.5 * u @ u
        gain = jumps.after_pass()
        after = ws.planes()[2]
        assert b @ after - 0.5 * u @ u - before == pytest.approx(gain, abs=1e-9)
        if len(points) < 3 or np.array_equal(after, alpha):
            continue
        E = np.diff(points, axis=0)  # the maximum over alpha + c E, from the planes themselves
        root = E @ A
        c = np.linalg.lstsq(root @ root.T, E @ (b - A @ (A.T @ alpha)), rcond=1e-10)[0]
        hull = alpha + c @ E
        if (hull >= 0).all() and (hull <= total).all():
            compared += 1
            assert b @ after - 0.5 * u @ u >= b @ hull - 0.5 * (A.T @ hull) @ (A.T @ hull) - 1e-9 * abs(before)
    assert compared >= 1


def test_fewer_passes_to_the_optimum():
    needed = {}
    for jumping in (False, True):
        ws, u, _, b, best = crawling(3, m=8, d=12)
        jumps = Extrapolation(ws, u, u, Quadratic())
        needed[jumping] = 0
        while 0.5 * b @ best - (ws.linear - 0.5 * u @ u) > 1e-9 * (b @ best) and needed[jumping] < 20_000:
            one_pass(ws, u, u)
            needed[jumping] += 1
            if jumping:
                jumps.after_pass()
    print(needed)
    assert 5 * needed[True] < needed[False] < 20_000


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", ["simplexes", "orthants", "both"])
@pytest.mark.parametrize("seed", range(20))
def test_jumps_stay_feasible_and_never_fall(seed, kind, signed):
    rng = np.random.default_rng(seed)
    total = rng.uniform(0.5, 2.0, 6)
    if kind != "simplexes":
        total[:: 1 if kind == "orthants" else 2] = np.inf
    ws, u = random_set(seed, n=6, d=10, total=total)
    positive = rng.random(10) < 0.5 if signed else None
    regulariser = SignedQuadratic(positive) if signed else Quadratic()
    w = regulariser.weights(u).copy() if signed else u
    jumps = Extrapolation(ws, u, w, regulariser)
    for _ in range(12):
        one_pass(ws, u, w, positive)
        if np.abs(u).max() > 1e6:  # the dual of orthants may be unbounded
            break
        before = ws.linear - regulariser.conjugate(u)
        gain = jumps.after_pass()
        A, b, alpha, block = ws.planes()
        scale = 1 + np.abs(alpha).max() * np.abs(A.toarray()).max()
        assert (alpha >= 0).all()
        used = np.bincount(block, alpha, 6) + np.where(np.isfinite(total), ws.store.origin, 0.0)
        assert used[np.isfinite(total)] == pytest.approx(total[np.isfinite(total)], rel=1e-11)
        assert np.isinf(ws.store.origin[np.isinf(total)]).all()
        assert u == pytest.approx(A.T @ alpha, abs=1e-11 * scale)
        assert w == pytest.approx(regulariser.weights(u), abs=1e-15)
        assert ws.linear == pytest.approx(b @ alpha, rel=1e-11)
        assert gain >= 0
        assert ws.linear - regulariser.conjugate(u) - before == pytest.approx(gain, abs=1e-9 * scale**2)
        assert not ws.dense.any()


@pytest.mark.parametrize("seed", range(5))
def test_weights_held_at_zero_do_not_count(seed):
    """Columns that every plane pulls below zero, where weights must be >= 0, leave all as it is without them."""
    plain, u, A, b, _ = crawling(seed)
    A = np.hstack([A, -np.random.default_rng(seed).uniform(1.0, 3.0, (len(A), 3))])
    positive = np.arange(A.shape[1]) >= len(u)
    signed, v = WorkingSet(np.full(len(A), np.inf), A.shape[1], A.shape[1]), np.zeros(A.shape[1])
    for block in range(len(A)):
        add(signed, block, A[block], b[block])
    w, jumped = v.copy(), False
    one, other = Extrapolation(plain, u, u, Quadratic()), Extrapolation(signed, v, w, SignedQuadratic(positive))
    for _ in range(7):
        one_pass(plain, u, u)
        one_pass(signed, v, w, positive)
        gain = one.after_pass()
        assert other.after_pass() == pytest.approx(gain, rel=1e-6, abs=1e-9)
        assert w[: len(u)] == pytest.approx(u, rel=1e-7)
        jumped = jumped or gain > 1e-6
    assert jumped


def test_averages_do_not_see_jumps():
    """A jump is no visit: the sum of the iterates so far, ``mean + TOTAL u``, stays."""
    ws, u, _, _, _ = crawling(0)
    ws.restart_mean(wk.UNIFORM)
    jumps = Extrapolation(ws, u, u, Quadratic())
    moved = False
    for _ in range(5):
        one_pass(ws, u, u)
        moment, point = ws.store.moment, u.copy()
        total = ws.store.mean + moment[wk.TOTAL] * u
        linear = moment[wk.LINEAR] + moment[wk.TOTAL] * ws.linear
        jumps.after_pass()
        moved = moved or not np.array_equal(point, u)
        assert ws.store.mean + moment[wk.TOTAL] * u == pytest.approx(total, rel=1e-12)
        assert moment[wk.LINEAR] + moment[wk.TOTAL] * ws.linear == pytest.approx(linear, rel=1e-12)
    assert moved


def test_pays_where_weights_are_few_beside_planes():
    ws = WorkingSet(np.ones(10), 4, 4)
    for block in range(10):  # ten planes of four entries beside four weights
        assert not pays(ws)
        add(ws, block, np.arange(1.0, 5.0), 1.0)
    assert pays(ws)
