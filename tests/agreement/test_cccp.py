"""CCCP round every solver: monotone, certified, and ending in stationary points that enumeration confirms."""

from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import (
    CASES,
    COST_WEIGHTS,
    EVERY,
    EXACT,
    PRIMAL,
    SLOW,
    UNSIGNED,
    J,
    Weights,
    grid,
    names,
    next_minimum,
    solve_ramp,
)  # fmt: skip
from agreement.tiny import Tiny, best, random_tiny
from reference.ramp import global_minimum
from trajectories.sdm import ramp_rounds

# --- where it ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("case", CASES, ids=names)
def test_ends_in_a_stationary_point(case, name):
    tiny, ramp = case
    result = solve_ramp(tiny, EXACT[name], ramp)
    assert result.status.code == "converged", str(result.status)
    w = result.weights
    assert result.certificate.primal == pytest.approx(J(tiny, w, ramp), rel=1e-9)
    following = next_minimum(tiny, w, ramp)
    assert J(tiny, w, ramp) == pytest.approx(following.objective, rel=1e-7)
    assert w == pytest.approx(following.weights, abs=1e-4)
    assert len(result.state.rounds) > 1 and result.state.rounds[0]["concave"] == 0
    if tiny.signed:
        assert (w[tiny.positive] >= 0).all()


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("case", CASES[::2], ids=names)
def test_solvers_of_slow_convergence_come_near_one(case, name):
    tiny, ramp = case
    result = solve_ramp(tiny, SLOW[name], ramp, tol=0.02, max_passes=1500)
    assert result.status.code == "converged", str(result.status)
    value, following = J(tiny, result.weights, ramp), next_minimum(tiny, result.weights, ramp)
    assert value - following.objective <= 0.02 * value
    assert result.certificate.relative_gap <= 0.02


@pytest.mark.parametrize("name", PRIMAL)
@pytest.mark.parametrize("case", UNSIGNED, ids=names)
def test_the_primal_family_lowers_the_objective(case, name):
    """Round by round; how near a stationary point they come depends on the passes they are given."""
    tiny, ramp = case
    result = solve_ramp(tiny, PRIMAL[name], ramp, tol=1e-3, max_passes=400)
    value = J(tiny, result.weights, ramp)
    assert result.certificate.primal == pytest.approx(value, rel=1e-9)
    assert value < 0.95 * J(tiny, 0 * result.weights, ramp)
    assert len(result.state.rounds) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_stationary_points_of_many_problems(seed):
    tiny = random_tiny(np.random.default_rng(seed), seed)
    for (name, preset), ramp in product(EXACT.items(), ("cost_diminished", "best_output")):
        result = solve_ramp(tiny, preset, ramp, tol=1e-8)
        following = next_minimum(tiny, result.weights, ramp)
        assert J(tiny, result.weights, ramp) <= following.objective + 1e-6 * abs(following.objective), (name, ramp)
        objectives = [row["objective"] for row in result.state.rounds]
        assert all(b <= a * (1 + 1e-9) for a, b in pairwise(objectives)), (name, ramp)


@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize("seed", range(3))
def test_against_the_global_minimum(seed, ramp):
    """3 examples of 4 labels: all 64 choices of concave outputs, each a convex problem."""
    tiny = Tiny("multiclass", cost="matrix" if seed else "hamming", C=2.0, seed=seed, n=3, K=4)
    lowest = global_minimum(tiny.planes, tiny.example_weight, *COST_WEIGHTS[ramp])
    assert lowest.objective == pytest.approx(J(tiny, lowest.weights, ramp), rel=1e-9)
    d = len(lowest.weights)
    starts = [None, best(tiny).weights, *(3.0 * np.random.default_rng(s).normal(size=d) for s in range(8))]
    values = []
    for start, preset in zip(starts, [mm.Auto(), mm.SequentialDual(tau=1e-11)] * 5, strict=True):
        w = solve_ramp(tiny, preset, ramp, tol=1e-8, start=start).weights
        values.append(J(tiny, w, ramp))
        assert w == pytest.approx(next_minimum(tiny, w, ramp).weights, abs=1e-4)
    assert min(values) >= lowest.objective * (1 - 1e-7)
    assert min(values) == pytest.approx(lowest.objective, rel=1e-6), "ten starts, and none has found it"
    # and it stays where it cannot be bettered
    stayed = solve_ramp(tiny, mm.Auto(), ramp, start=lowest.weights)
    assert J(tiny, stayed.weights, ramp) == pytest.approx(lowest.objective, rel=1e-7)


# --- on the way ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "name"), grid(3))
def test_every_certificate_is_valid(case, name):
    """The primal is J; the dual is below the minimum of the next majorant, which is what it promises."""
    tiny, ramp = case
    seen = Weights()
    result = solve_ramp(tiny, EVERY[name], ramp, tol=1e-7, max_passes=30, callbacks=[seen], passes_per_round=4.0)
    assert len(seen.seen) >= 2
    for w, primal, dual in seen.seen[:: max(1, len(seen.seen) // 6)]:
        assert primal == pytest.approx(J(tiny, w, ramp), rel=1e-9)
        assert dual <= next_minimum(tiny, w, ramp).objective + 1e-7 * abs(primal)
    assert result.certificate.primal == pytest.approx(J(tiny, result.weights, ramp), rel=1e-9)


@pytest.mark.parametrize("passes", [None, 1.0, 3.0])
@pytest.mark.parametrize(("case", "name"), grid(5))
def test_the_objective_never_increases(case, name, passes):
    """Also when rounds are cut short: then a round goes on until it has made up for what it lost."""
    tiny, ramp = case
    result = solve_ramp(tiny, EVERY[name], ramp, tol=1e-6, max_passes=60, passes_per_round=passes)
    objectives = [row["objective"] for row in result.state.rounds]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))
    assert result.certificate.primal <= min(objectives, default=np.inf) * (1 + 1e-6)
    assert result.certificate.primal == pytest.approx(J(tiny, result.weights, ramp), rel=1e-9)


@pytest.mark.parametrize(("case", "name"), grid(5))
def test_what_is_called_converged_is(case, name):
    """The gap of the weights that come back, not of others."""
    tiny, ramp = case
    for seed in range(3):
        result = solve_ramp(tiny, EVERY[name], ramp, tol=0.05, max_passes=150, seed=seed)
        value = J(tiny, result.weights, ramp)
        assert result.certificate.primal == pytest.approx(value, rel=1e-9)
        if result.status.code == "converged":
            assert result.certificate.relative_gap <= 0.05
            assert value - next_minimum(tiny, result.weights, ramp).objective <= 0.05 * value


def test_rounds_say_what_happened():
    tiny, ramp = CASES[1]
    seen = Weights()
    result = solve_ramp(tiny, mm.Auto(), ramp, callbacks=[seen])
    rows = result.state.rounds
    assert [row["round"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 1
    by_value = {primal: (w, dual) for w, primal, dual in seen.seen}
    concave = 0  # the first round begins at zero weights
    for row in rows:
        w, dual = by_value[row["objective"]]
        assert row["objective"] == pytest.approx(J(tiny, w, ramp), rel=1e-9)
        assert row["gap"] == pytest.approx(row["objective"] - dual)
        assert row["concave"] == concave
        concave = sum((-psi @ w).max() > 1e-12 for psi, _ in tiny.planes)
    assert all(a["pass"] < b["pass"] for a, b in pairwise(rows))


def test_the_printed_algorithm_runs_away_and_this_one_does_not():
    """Without the old linear term added back the third round is harmless at best, and later ones are lost."""
    for tiny, ramp in UNSIGNED:
        above, below = COST_WEIGHTS[ramp]
        planes, costs = [(psi, above * cost) for psi, cost in tiny.planes], [cost for _, cost in tiny.planes]
        rng = np.random.default_rng(0)
        orders = [[i for _ in range(10) for i in rng.permutation(tiny.n)] for _ in range(8)]
        right, printed = (
            [
                J(tiny, w, ramp)
                for w in ramp_rounds(planes, costs, tiny.example_weight, below, orders, add_back=add_back)
            ]
            for add_back in (True, False)
        )
        assert printed[:2] == pytest.approx(right[:2])  # nothing to add back yet
        assert printed[-1] > 10 * printed[0] and right[-1] < right[0]
        ours = solve_ramp(tiny, mm.SequentialDual(), ramp, tol=0.0, max_rounds=8, max_passes=200, passes_per_round=10.0)
        assert max(row["objective"] for row in ours.state.rounds[1:]) <= right[0]
        assert ours.certificate.primal < right[0]
