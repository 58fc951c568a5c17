"""First-order masters against an independent solver of the whole linear program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from maxmargin.solvers.linear_programs.extragradient import Extragradient
from maxmargin.solvers.linear_programs.primal_dual import PrimalDual
from maxmargin.solvers.linear_programs.primal_dual_kernel import project
from maxmargin.solvers.linear_programs.program import Point, Program

MASTERS = [(PrimalDual(), 1e-7), (Extragradient(), 1e-7), (Extragradient("frobenius", max_steps=10**6), 1e-6)]


def random_program(seed: int, rows: int = 12, columns: int = 8, examples: int = 4, signs: bool = False) -> Program:
    rng = np.random.default_rng(seed)
    A = sp.csr_array(rng.integers(-2, 3, size=(rows, columns)) * (rng.random((rows, columns)) < 0.6), dtype=float)
    owner, weight = rng.integers(0, examples, rows), rng.choice([0.0, 0.3, 1.0, 2.0], examples)
    b = rng.choice([0.0, 1.0, 1.0, 3.0], rows)
    return Program(A, b, owner, weight, rng.random(columns) < 0.5 if signs else None)


def optimum(program: Program) -> float:
    return reference(program)[0]


def reference(program: Program) -> tuple[float, np.ndarray]:
    """Optimum and multipliers by HiGHS, with every slack and both signs of each weight as variables."""
    d, n = program.A.shape[1], len(program.weight)
    A, owners = program.A.toarray(), np.eye(n)[program.owner]
    negative = np.full(d, np.inf) if program.positive is None else np.where(program.positive, 0.0, np.inf)
    tops = np.concatenate([np.full(d, np.inf), negative, np.full(n, np.inf)])
    cost = np.concatenate([np.ones(2 * d), program.weight])
    found = linprog(
        cost, -np.hstack([A, -A, owners]), -program.b, bounds=list(zip(np.zeros(2 * d + n), tops, strict=True))
    )
    assert found.status == 0
    return float(found.fun), -found.ineqlin.marginals


def zero(program: Program) -> Point:
    return Point(np.zeros(program.A.shape[1]), np.zeros(len(program.b)))


@pytest.mark.parametrize(("master", "tol"), MASTERS, ids=repr)
@pytest.mark.parametrize("signs", [False, True])
def test_the_optimum_of_small_programs(master, tol, signs):
    for seed in range(5):
        program = random_program(seed, signs=signs)
        point = master.solve(program, zero(program), tol)
        bounds, best = program.bounds(point), optimum(program)
        assert bounds.dual - 1e-9 <= best <= bounds.primal + 1e-9
        assert bounds.relative_gap <= tol
        assert program.positive is None or (point.w[program.positive] >= 0).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 9), columns=st.integers(1, 6), signs=st.booleans())
def test_bounds_hold_at_any_point(seed, rows, columns, signs):
    program, rng = random_program(seed, rows, columns, 3, signs), np.random.default_rng(seed)
    bounds = program.bounds(Point(rng.normal(size=columns) * 3, rng.normal(size=rows) * 3))
    best = optimum(program)
    assert bounds.dual - 1e-9 <= best <= bounds.primal + 1e-9


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 9), columns=st.integers(1, 6), signs=st.booleans())
def test_multipliers_become_feasible_and_prove_at_least_what_scaling_proves(seed, rows, columns, signs):
    program, rng = random_program(seed, rows, columns, 3, signs), np.random.default_rng(seed)
    alpha = np.maximum(rng.normal(size=rows), 0.0)
    sums = np.bincount(program.owner, alpha, minlength=3)
    alpha *= (np.minimum(sums, program.weight) / np.where(sums > 0.0, sums, 1.0))[program.owner]
    u = program.A.T @ alpha
    size = np.abs(u) if program.positive is None else np.where(program.positive, u, np.abs(u))
    found = program.feasible(alpha)
    assert program.b @ found >= program.b @ alpha / max(1.0, size.max()) - 1e-12
    assert (found >= 0.0).all()
    assert (np.bincount(program.owner, found, minlength=3) <= program.weight + 1e-12).all()
    u = program.A.T @ found
    assert (u <= 1.0 + 1e-12).all()
    assert (u[~program.positive] >= -1.0 - 1e-12).all() if signs else (u >= -1.0 - 1e-12).all()


def test_one_column_that_is_out_costs_its_own_rows_only():
    program = Program(sp.csr_array(np.diag([4.0, 0.5, 0.5])), np.ones(3), np.arange(3), np.ones(3))
    assert program.feasible(np.ones(3)).tolist() == [0.25, 1.0, 1.0]


def test_multipliers_that_are_nearly_optimal_prove_nearly_the_optimum():
    for seed in range(4):  # most columns are at their walls, where 1 % of noise puts every other one out
        rng, m, d, n = np.random.default_rng(seed), 600, 150, 200
        A = sp.csr_array(
            (rng.choice([-1.0, 1.0], 6 * m), rng.integers(0, d, 6 * m), np.arange(0, 6 * m + 1, 6)), (m, d)
        )
        A.sum_duplicates()
        program = Program(A, np.ones(m), rng.integers(0, n, m), np.full(n, 10.0))
        best, alpha = reference(program)
        noisy = np.maximum(alpha, 0.0) * (1.0 + 0.01 * rng.normal(size=m))
        assert program.b @ noisy / program.prices(noisy).max() < 0.8 * best  # what scaling proves
        assert 0.993 * best <= program.b @ program.feasible(noisy) <= best + 1e-6  # if they only fell: 0.986 to 0.991


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 30), columns=st.integers(1, 12), signs=st.booleans())
def test_the_primal_dual_method_solves_any_program(seed, rows, columns, signs):
    program = random_program(seed, rows, columns, 5, signs)
    bounds = program.bounds(PrimalDual().solve(program, zero(program), 1e-5))
    assert bounds.relative_gap <= 1e-5
    assert bounds.dual - 1e-9 <= optimum(program) <= bounds.primal + 1e-9


@pytest.mark.parametrize("master", [PrimalDual(), Extragradient()], ids=repr)
def test_a_solved_program_needs_no_step(master):
    program = random_program(3, 40, 20, 8)
    point = master.solve(program, zero(program), 1e-6)
    again = type(master)(max_steps=1).solve(program, point, 1.5e-6)
    assert program.bounds(again).relative_gap <= 1.5e-6


def test_columns_of_any_size_are_scaled():
    """Features in other units, from hundredths to hundreds: the weights and their prices differ as much."""
    program = random_program(4, 60, 30, 10)
    units = 10.0 ** np.random.default_rng(0).uniform(-2.0, 2.0, 30)
    uneven = Program(sp.csr_array(program.A * units), program.b, program.owner, program.weight)
    bounds = uneven.bounds(PrimalDual().solve(uneven, zero(uneven), 1e-5))
    assert bounds.relative_gap <= 1e-5
    assert bounds.dual - 1e-9 <= optimum(uneven) <= bounds.primal + 1e-9


def test_few_steps_leave_an_honest_gap():
    program = random_program(5, 60, 30, 10)
    bounds = program.bounds(PrimalDual(max_steps=3).solve(program, zero(program), 1e-9))
    assert bounds.relative_gap > 1e-9
    assert bounds.dual - 1e-9 <= optimum(program) <= bounds.primal + 1e-9


def test_pricing_brings_in_the_columns_that_matter():
    """Of many columns only some have a price near 1 at first; the optimum is that of all of them."""
    rng = np.random.default_rng(0)
    A = sp.csr_array(rng.normal(size=(120, 900)) * (rng.random((120, 900)) < 0.05))
    program = Program(sp.csr_array(A), np.ones(120), np.repeat(np.arange(30), 4), np.ones(30))
    bounds = program.bounds(PrimalDual().solve(program, zero(program), 1e-6))
    assert bounds.relative_gap <= 1e-6
    assert bounds.primal == pytest.approx(optimum(program), rel=2e-6)


def test_the_printed_stopping_rule_stops():
    program = random_program(2, 30, 10, 6)
    point = Extragradient(stop="paper").solve(program, zero(program), 1e-4)
    assert program.bounds(point).relative_gap < 0.05


@pytest.mark.parametrize(("step", "ends"), [(0.0, False), (0.99, True), (1.0, False), (1.01, False)])
def test_the_ends_of_the_printed_steps_do_not_converge(step, ends):
    """Theorem 4.1 of the paper includes steps of 0 and 1 / K, K the Lipschitz constant; min max x y has K = 1."""
    x, y = 1.0, 1.0
    for _ in range(5000):
        ahead = x - step * y, y + step * x
        x, y = x - step * ahead[1], y + step * ahead[0]
    assert (np.hypot(x, y) < 1e-6) == ends


@pytest.mark.parametrize(("word", "value"), [("step", "long"), ("stop", "never")])
def test_refuse_unknown_words(word, value):
    program = random_program(0)
    with pytest.raises(ValueError, match=f"{word} must be"):
        Extragradient(**{word: value}).solve(program, zero(program), 1e-3)


def test_projections_end_where_rounding_brings_a_multiplier_back():
    """Multipliers at the cut: whether they lie above it changed from one look to the next, for ever."""
    alpha = np.array(
        [0.9063384177542189, 0.4206691638328386, 0.42066916383283876, 0.9349999099114583, 0.4206691638328386]
    )
    project(np.array([0, 5]), np.ones(1), alpha)
    assert alpha.sum() == pytest.approx(1.0) and (alpha >= 0).all()
