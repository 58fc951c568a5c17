"""Averages of the dual solvers: naive means of what every visit left behind, with certificates of their own."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import J, next_minimum, ramp_problem, solve_ramp
from agreement.tiny import Tiny, best, engine_of
from maxmargin.solvers.driver import run
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.settings import Settings
from reference.qp import objective

RULES = ("uniform", "weighted", "tail")
PROBLEMS = [
    Tiny("chain", cost="matrix", C=1.0, seed=1, n=4),
    Tiny("chain", cost="matrix", signed=True, C=1.0, seed=2, n=4),
    Tiny("multiclass", cost="matrix", weighted=True, C=3.0, seed=3, n=6),
    Tiny("chain", "squared_hinge", cost="matrix", C=0.5, seed=4, n=4),
    Tiny("multiclass", "squared_hinge", signed=True, C=0.5, seed=5, n=4),
]
# one block per step, so that every visit can be seen from outside; certificates leave no visits behind
METHODS = {
    "sequential": Settings(patience=0, tau=1e-10, reuse=False),
    "bcfw": Settings(limit=1, rule="iterate", keep_origin=False, patience=1 << 30, tau=0.0, reuse=False),
    "little room": Settings(limit=2, rule="merge", reuse=False),
    "cyclic": Settings(selection="cyclic", reuse=False),
}


def visits(tiny, settings, rule, count, seed=3):
    """(engine, state, visits): the state after each of ``count`` visits, and (u, sum alpha b) after all so far."""
    problem = tiny.problem()
    engine = DualEngine(replace(settings, averaging=rule, visits=1.0 / tiny.n), seed)
    state, seen = engine.init(problem), []
    for _ in range(count):
        engine.step(state)
        seen.append((state.u.copy(), state.working_set.linear))
        yield engine, state, seen


def mean(seen, weights):
    return np.average([u for u, _ in seen], axis=0, weights=weights), np.average([l for _, l in seen], weights=weights)


def is_mean(point, seen, weights):
    u, linear = mean(seen, weights)
    scale = 1e-9 * (1 + np.abs(u).max())
    return np.abs(point[1] - u).max() <= scale and abs(point[0] - linear) <= 1e-9 * (1 + abs(linear))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_uniform_and_weighted_averages(tiny, name):
    """sum rho_k u_k / sum rho_k with rho_k = 1 or k, for u and for sum alpha b, from visit to visit."""
    for rule in ("uniform", "weighted"):
        for engine, state, seen in visits(tiny, METHODS[name], rule, 12 * tiny.n):
            weights = np.ones(len(seen)) if rule == "uniform" else np.arange(1.0, len(seen) + 1)
            assert is_mean(engine.dual_point(state), seen, weights), (rule, len(seen))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_tail_averages(tiny, name):
    """The plain mean of the visits from one of them on, of the later half of all at least; never the last one alone."""
    for engine, state, seen in visits(tiny, METHODS[name], "tail", 12 * tiny.n):
        point = engine.dual_point(state)
        suffixes = [first for first in range(len(seen) // 2 + 1) if is_mean(point, seen[first:], None)]
        assert suffixes, f"after {len(seen)} visits"
    assert max(suffixes) > 0, "nothing was left out"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_the_average_has_its_own_certificate(tiny, name, rule):
    """Its weights are those of its multipliers, its primal and dual are its own, and both bracket the optimum."""
    optimum, d = best(tiny).objective, tiny.planes[0][0].shape[1]
    for engine, state, seen in visits(tiny, METHODS[name], rule, 10 * tiny.n):
        if len(seen) % tiny.n:
            continue
        linear, u, _ = engine.dual_point(state)
        w = u[:d] if tiny.positive is None else np.where(tiny.positive & (u[:d] < 0), 0.0, u[:d])
        assert engine.weights(state) == pytest.approx(w, abs=1e-12)
        certificate = engine.certificate(state).check()
        primal = objective(tiny.planes, tiny.example_weight, w, squared=tiny.squared)
        assert certificate.primal == pytest.approx(primal, rel=1e-9)
        assert certificate.dual == pytest.approx(linear - 0.5 * w @ w - 0.5 * u[d:] @ u[d:], rel=1e-9, abs=1e-12)
        assert certificate.dual <= optimum * (1 + 1e-7)
        assert certificate.primal >= optimum * (1 - 1e-7)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("preset", [mm.SequentialDual, mm.BCFW], ids=lambda preset: preset.__name__)
def test_averages_do_not_change_the_path(preset, rule):
    """Behind the average the run is the same, visit by visit; and no rule means no average."""
    for tiny in PROBLEMS[:2]:
        paths = []
        for averaging in (None, rule):
            problem = tiny.problem()
            engine = engine_of(preset(averaging=averaging, certificate_every=3.0), problem, 5)
            state, path = engine.init(problem), []
            for _ in range(12):
                if engine.certificate_due(state):
                    engine.certificate(state)
                engine.step(state)
                path.append(state.u.copy())
            paths.append(path)
            assert np.array_equal(engine.weights(state), state.w[: problem.n_weights]) == (averaging is None)
        if preset is mm.SequentialDual:  # whose certificates leave no planes behind
            assert all(np.array_equal(a, b) for a, b in zip(*paths, strict=True))
        else:
            assert all(np.array_equal(a, b) for a, b in zip(paths[0][:3], paths[1][:3], strict=True))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("preset", [mm.SequentialDual, mm.BCFW], ids=lambda preset: preset.__name__)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_averaged_runs_are_certified_all_the_way(tiny, preset, rule):
    problem, optimum = tiny.problem(), best(tiny).objective
    engine = engine_of(preset(averaging=rule, certificate_every=2.0), problem)
    result = run(engine, problem, tol=0.02, max_passes=600)
    assert all(row["dual"] <= optimum * (1 + 1e-7) <= row["primal"] * (1 + 2e-7) for row in result.history)
    assert result.status.code == "converged" or rule == "uniform", str(result.status)
    value = objective(tiny.planes, tiny.example_weight, result.weights, squared=tiny.squared)
    assert result.certificate.primal == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tiny", [PROBLEMS[0], PROBLEMS[1], PROBLEMS[3]], ids=str)
def test_averages_survive_saving(tiny, rule):
    problem = tiny.problem()
    engine = engine_of(mm.BCFW(averaging=rule, certificate_every=3.0), problem)
    state, twins = engine.init(problem), []
    for _ in range(9):
        if engine.certificate_due(state):
            engine.certificate(state)
        twins.append(engine.from_arrays(problem, state.to_arrays()))
        engine.step(state)
        for twin in twins:
            if twin.certificates < state.certificates:
                engine.certificate(twin)
            engine.step(twin)
            assert np.array_equal(engine.weights(twin), engine.weights(state))
            assert engine.dual_point(twin)[0] == engine.dual_point(state)[0]


@pytest.mark.parametrize("rule", RULES)
def test_warm_starts_begin_a_new_average(rule):
    tiny = PROBLEMS[0]
    problem = tiny.problem()
    first = run(engine_of(mm.SequentialDual(), problem), problem, tol=1e-8, max_passes=300)
    engine = engine_of(mm.SequentialDual(averaging=rule), problem)
    state = engine.init(problem, warm=first.state)
    assert engine.weights(state) == pytest.approx(best(tiny).weights, abs=1e-3)
    engine.step(state)  # at the optimum nothing moves, and so the average is the optimum
    assert engine.weights(state) == pytest.approx(best(tiny).weights, abs=1e-3)


@pytest.mark.parametrize("rule", RULES)
def test_rounds_of_a_ramp_begin_new_averages(rule):
    """Iterates of the round before stand for another problem: the first visit of a round is an average of one."""
    tiny = Tiny("chain", cost="matrix", C=3.0, seed=1)
    problem = ramp_problem(tiny, "best_output")
    engine = DualEngine(Settings(averaging=rule, visits=1.0 / tiny.n, reuse=False), 0)
    state = engine.init(problem.convex)
    for _ in range(3):
        for _ in range(15):
            engine.step(state)
        engine.move(state, problem.majorant(problem.linearise(3.0 * engine.weights(state))))
        assert np.array_equal(engine.weights(state), state.w)
        engine.step(state)
        assert engine.weights(state) == pytest.approx(state.w, abs=1e-12)
    result = solve_ramp(tiny, mm.BCFW(averaging=rule), "best_output", tol=0.05, max_passes=800)
    value = J(tiny, result.weights, "best_output")
    assert result.certificate.primal == pytest.approx(value, rel=1e-9)
    assert result.certificate.dual <= next_minimum(tiny, result.weights, "best_output").objective * (1 + 1e-7)


def test_rules_that_do_not_exist():
    for make in (Settings, mm.BCFW, mm.SequentialDual):
        with pytest.raises(ValueError, match=r"averaging must be None, .*, got 'mean'"):
            solver = make(averaging="mean")
            solver.settings(3, 3)
