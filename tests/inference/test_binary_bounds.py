"""Roof duality and the branching with concave bounds, against a linear program and against trying all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from maxmargin.inference import box_search_kernel as bk
from maxmargin.inference.roof_kernel import roof, roof_sizes

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed, n, density, integral):
    rng = np.random.default_rng(seed)
    edges = np.array([(j, k) for j in range(n) for k in range(j + 1, n) if rng.random() < density], np.int32)
    edges = edges.reshape(-1, 2)
    numbers = rng.integers(-3, 4, n + len(edges)).astype(float) if integral else rng.normal(size=n + len(edges))
    return edges, numbers[:n], numbers[n:]


def matrix(n, edges, pair):
    P = np.zeros((n, n))
    P[edges[:, 0], edges[:, 1]] = P[edges[:, 1], edges[:, 0]] = pair
    return P


def all_values(gain, P):
    sets = np.array(list(product([0, 1], repeat=len(gain))))
    return sets, sets @ gain + 0.5 * np.einsum("zj,jk,zk->z", sets, P, sets)


def linear_relaxation(edges, gain, pair):
    """max gain z + pair y over y <= z_j, y <= z_k, y >= z_j + z_k - 1, 0 <= z, y <= 1, by HiGHS."""
    n, m = len(gain), len(pair)
    rows, right = [], []
    for e, (j, k) in enumerate(edges):
        for sign, at in ((1, (j,)), (1, (k,)), (-1, (j, k))):
            row = np.zeros(n + m)
            row[n + e] = sign
            row[list(at)] = -sign
            rows.append(row)
            right.append(0.0 if sign == 1 else 1.0)
    return -linprog(-np.concatenate([gain, pair]), rows or None, right or None, bounds=(0, 1)).fun


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 7), st.sampled_from([0.0, 0.5, 1.0]), st.booleans(), st.booleans())
def test_roof_duality_is_the_linear_relaxation(seed, n, density, integral, attractive):
    edges, gain, pair = drawn(seed, n, density, integral)
    if attractive:
        pair = np.abs(pair)
    ints, floats = roof_sizes(n, len(pair))
    iwork, one, other = np.zeros(ints, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    upper = roof(edges.ravel(), gain, pair, iwork, np.empty(floats), one, other)
    assert not iwork.any()
    assert upper == pytest.approx(linear_relaxation(edges, gain, pair), abs=1e-8)
    half = (one + other) / 2
    both = [
        min(half[j], half[k]) if p > 0 else max(half[j] + half[k] - 1, 0) for (j, k), p in zip(edges, pair, strict=True)
    ]
    assert gain @ half + pair @ np.array(both) == pytest.approx(upper, abs=1e-9)
    P = matrix(n, edges, pair)
    sets, values = all_values(gain, P)
    best = values.max()
    assert upper >= best - 1e-9
    agrees = (sets[:, one == other] == one[one == other]).all(axis=1)
    assert values[agrees].max() == pytest.approx(best, abs=1e-9)  # persistency
    if attractive:
        assert gain @ one + 0.5 * one @ P @ one == pytest.approx(upper, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 9), st.sampled_from([0.3, 1.0]), st.booleans())
def test_curvatures_make_the_pairs_concave(seed, n, density, integral):
    edges, gain, pair = drawn(seed, n, density, integral)
    P, D = matrix(n, edges, pair), np.zeros(n)
    bk.curvatures(P, D, np.empty((n, n)))
    assert np.linalg.eigvalsh(np.diag(D) - P).min() >= -1e-9 * max(1.0, D.max())
    if pair.any():
        assert D.max() <= 1.2 * n * np.abs(P).max()
    z, gradient, state = np.full(n, 0.5), np.empty(n), np.full(n, bk.FREE, np.int32)
    bk.start_box(gain, P, D, z, gradient)
    for sweeps in (1, 60):
        bound = bk.concave_bound(gain, P, D, state, z, gradient, -np.inf, sweeps)
        assert bound >= all_values(gain, P)[1].max() - 1e-9
    np.testing.assert_allclose(gradient, gain + P @ z + D / 2 - D * z, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    SEEDS,
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([0, 4, 40, 10**6]),
    st.sampled_from(["sum", 1.0, 0.5, 0.0]),
    st.sampled_from([-np.inf, 0.5, 0.9, 1.1]),
)
def test_branching_finds_the_best_or_bounds_it(seed, n, integral, most, power, share):
    edges, gain, pair = drawn(seed, n, 0.8, integral)
    rng = np.random.default_rng(seed)
    P, D, cost = matrix(n, edges, pair), np.zeros(n), rng.integers(0, 3, n) / 2.0
    mu, lam = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.5, 1.0]))
    aim = np.zeros(bk.AIM_SIZE)
    aim[[bk.MU, bk.LAM]] = mu, lam
    sets, h = all_values(gain, P)
    g = sets @ cost
    good = (g > 0) & (lam + h > 0)
    if power == "sum":
        aim[bk.POWER], objective, start = bk.SUM, h + mu * g, 0.0
    else:
        aim[bk.POWER], start = power, 0.0
        objective = np.where(good, (lam + h) * g ** float(power), 0.0)
    bk.curvatures(P, D, np.empty((n, n)))
    ints, floats = bk.search_sizes(n)
    fixed, best, iwork = np.full(n, bk.FREE, np.int32), np.zeros(n, np.int32), np.zeros(ints, np.int32)
    optimum = max(objective.max(), start)
    goal = share * optimum if optimum > 0.0 else -np.inf
    total, half, work = gain + mu * cost, np.full(n, 0.5), np.empty(floats)
    top, bound, parts = bk.branch(total, P, D, cost, aim, start, goal, fixed, most, half, best, iwork, work)
    assert parts <= most and not iwork.any()
    assert bound >= optimum - 1e-9
    if top > start:
        assert objective[(sets == best).all(axis=1)] == pytest.approx(top, abs=1e-9)
    if most > 40:
        assert bound == pytest.approx(max(optimum, goal), abs=1e-9)
        assert top == pytest.approx(optimum, abs=1e-9) or goal >= optimum - 1e-9
    first = bk.branch(total, P, D, cost, aim, start, -np.inf, fixed, most // 2, half, best, iwork, work)[1]
    top, bound = bk.branch_and_bound(total, P, D, cost, aim, start, np.inf, fixed, most, half, best, iwork, work)
    assert optimum - 1e-9 <= bound <= first + 1e-9 and not iwork.any()
    if most > 40:
        assert top == pytest.approx(optimum, abs=1e-9) and bound == top
