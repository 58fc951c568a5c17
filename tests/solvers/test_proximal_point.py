"""The proximal point method against a conic solver on enumerated problems: every variant, every rule, odd inputs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from maxmargin.formulations.divergence import TableDivergence
from maxmargin.models.tables import Tables, reference_distribution
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.driver import run
from maxmargin.solvers.masters.joint import solve_jointly
from maxmargin.solvers.masters.newton import projected_newton
from maxmargin.solvers.proximal_point import ProximalPoint
from reference.generative import (
    BLOCKS,
    SUBSETS,
    ArrayOracle,
    generative_problem,
    objective,
    optimum,
    random_problem,
)
from reference.masters import Quadratic

VARIANTS = BLOCKS | {
    "groups in random order": {"blocks": 3, "visits": 2, "selection": "permutation"},
    "stream": {"blocks": SUBSETS, "visits": 1},
    "stream, several iterations": {"blocks": SUBSETS, "visits": 1, "repeats": 3},
}


def make(seed, C=0.7, squared=False, several=1, n=6, **words):
    planes, c, starts = random_problem(seed, n=n, **words)
    weight = np.full(n, float(C)) if np.isscalar(C) else np.asarray(C, float)
    problem = generative_problem(planes, weight, c, starts, squared, several=several)
    return problem, planes, c, starts


def solve(problem, tol=1e-6, max_passes=2000, callbacks=(), **settings):
    return run(
        ProximalPoint(**settings).engine(problem, 0), problem, tol=tol, max_passes=max_passes, callbacks=callbacks
    )


def check(result, problem, planes, c, starts, tol=1e-5):
    value, _ = optimum(planes, problem.weight, c, starts, squared=problem.squared)
    size = max(1.0, abs(value))
    for row in result.history:
        assert row["dual"] <= value + 1e-6 * size and value <= row["primal"] + 1e-6 * size
    assert result.certificate.primal == pytest.approx(value, abs=tol * size)
    here = objective(planes, problem.weight, c, result.weights, squared=problem.squared)
    assert here == pytest.approx(result.certificate.primal, abs=1e-9 * size)
    assert (problem.regulariser.tables.log_mass(result.weights) <= 1e-12).all()


@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_reaches_the_optimum(variant, squared):
    for seed in range(3):
        problem, *data = make(seed, squared=squared)
        result = solve(problem, **VARIANTS[variant])
        assert result.status.converged, result.status
        check(result, problem, *data)


@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
@pytest.mark.parametrize("variant", ["whole set", "groups in turn", "product", "stream"])
@pytest.mark.parametrize("pull", [1e-3, 0.1, 3.0])
def test_a_quadratic_pull_is_part_of_the_objective(pull, variant, squared):
    """``pull/2 |theta - ln c|^2`` beside the divergence, against the conic solver; bounds hold at every certificate."""
    for seed in range(2):
        problem, planes, c, starts = make(seed, squared=squared)
        problem = replace(problem, regulariser=replace(problem.regulariser, pull=pull))
        anchor = np.concatenate([np.log(c[a:b] / c[a:b].sum()) for a, b in pairwise(starts)])
        value, theta = optimum(planes, problem.weight, c, starts, squared=squared, gamma=pull, centre=anchor)
        result = solve(problem, **VARIANTS[variant])
        assert result.status.converged, result.status
        size = max(1.0, abs(value))
        for row in result.history:
            assert row["dual"] <= value + 1e-6 * size and value <= row["primal"] + 1e-6 * size
        assert result.certificate.primal == pytest.approx(value, abs=1e-5 * size)
        assert result.weights == pytest.approx(theta, abs=0.05 if pull < 0.01 else 0.01)


def test_theta_by_newton_is_theta_by_wrights_omega():
    problem, *data = make(4, C=1.5)
    closed, newton = solve(problem), solve(problem, theta="newton")
    check(newton, problem, *data)
    assert newton.certificate.primal == pytest.approx(closed.certificate.primal, rel=1e-6)
    with pytest.raises(ValueError, match='theta must be "closed" or "newton"'):
        solve(problem, theta="bisection")


@pytest.mark.parametrize("pull", [-1.0, np.nan, np.inf])
def test_a_senseless_pull_is_refused(pull):
    with pytest.raises(ValueError, match="pull must be a finite number >= 0"):
        replace(make(0)[0].regulariser, pull=pull)


@pytest.mark.parametrize("rule", ["gap", "improvement", "optimality", "paper"])
@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_every_rule_reaches_the_optimum(rule, decay):
    problem, *data = make(7, C=2.0)
    words = {"improvement": 1e-7} if rule == "improvement" else {}
    result = solve(problem, rule=rule, decay=decay, gamma=0.05, tol=1e-5, **words)
    assert result.state.centres > 0
    check(result, problem, *data, tol=1e-4)


def test_the_centre_only_moves_downhill():
    problem, *_ = make(3, C=1.0)
    state = solve(problem).state
    trace = np.array(state.trace)
    moves = np.flatnonzero(np.diff(trace[:, 1]) > 0)
    assert len(moves) > 1 and (np.diff(trace[moves, 7]) <= 0).all()


@pytest.mark.parametrize("gamma", [1e-8, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
def test_extreme_proximal_weights(gamma, squared):
    problem, *data = make(2, squared=squared)
    result = solve(problem, gamma=gamma, tol=1e-5, max_passes=3000)
    check(result, problem, *data, tol=1e-4)


@pytest.mark.parametrize("C", [1e-8, 1e-2, 30.0])
@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
def test_small_and_large_weights_of_the_losses(C, squared):
    problem, *data = make(4, C=C, squared=squared, n=3)
    result = solve(problem, tol=1e-5, max_passes=3000)
    check(result, problem, *data, tol=1e-4)


def test_tables_of_one_entry_and_uniform_references():
    problem, *data = make(5, sizes=(1, 3, 1, 2), uniform=True)
    check(solve(problem), problem, *data)


def test_references_with_zeros_get_a_floor():
    planes, c, starts = random_problem(6)
    tables = Tables(starts)
    counts = np.where(np.arange(len(c)) % 3 == 0, 0.0, 5.0)
    c = reference_distribution(tables, "ml", counts, floor=1e-6)
    problem = generative_problem(planes, np.full(len(planes), 0.5), c, starts)
    result = solve(problem, tol=1e-4, max_passes=3000)
    value, _ = optimum(planes, problem.weight, c, starts)
    assert result.certificate.dual - 1e-6 <= value <= result.certificate.primal + 1e-6
    assert result.certificate.relative_gap <= 1e-3


def test_weights_of_zero_and_examples_without_other_outputs():
    planes, c, starts = random_problem(8, n=3)
    planes.append((np.zeros((0, len(c))), np.zeros(0)))  # only the truth
    planes.append((planes[0][0], np.zeros(5)))  # all costs are 0
    problem = generative_problem(planes, [1.0, 0.0, 0.5, 1.0, 1.0], c, starts)
    for blocks in ("one", "product"):
        check(solve(problem, blocks=blocks), problem, planes, c, starts)
    idle = generative_problem(planes, np.zeros(5), c, starts)
    result = solve(idle)
    assert result.status.converged
    np.testing.assert_allclose(result.weights, np.log(c), atol=1e-9)


def test_several_planes_of_an_example_save_passes():
    looks = {1: 0, 4: 0}
    for seed in range(6):
        for several in looks:
            problem, *data = make(seed, C=2.0, n=8, outputs=30, several=several)
            result = solve(problem, blocks="product", limit=100, gamma=0.1)
            check(result, problem, *data)
            looks[several] += result.state.looks
    assert looks[4] < looks[1]


def test_a_stream_of_subsets_solves_the_problem_and_not_that_of_the_largest_subset():
    """The hull of the union of the subsets' dual sets has the penalty max_t sum_{k in t} loss_k: another optimum."""
    problem, planes, c, starts = make(2, C=1.0)
    subsets = [[0, 1], [2, 3], [4, 5]]
    value, _ = optimum(planes, problem.weight, c, starts)
    other, _ = optimum(planes, problem.weight, c, starts, penalty=subsets)
    assert value - other > 0.05 * value
    result = solve(problem, blocks=subsets, visits=1, limit=5)
    assert result.certificate.primal == pytest.approx(value, rel=1e-5)
    assert result.certificate.dual > other


def test_limits_keep_the_number_of_planes():
    problem, *_ = make(3, C=1.0, outputs=20)
    for limit in (1, 2, 5):
        for blocks in ("one", "auto"):
            result = solve(problem, blocks=blocks, limit=limit, tol=1e-3, max_passes=3000)
            assert result.state.inner.working_set.store.held.max() <= limit + 1
        assert result.certificate.relative_gap <= 1e-3


def test_the_dual_of_the_proximal_problem_never_falls_between_centre_changes():
    problem, *_ = make(5, C=2.0)
    trace = np.array(solve(problem, limit=3, tol=1e-4).state.trace)
    centre, value = trace[:, 1], trace[:, 11]
    same = centre[1:] == centre[:-1]
    # the first look after a change reports the value of the old centre
    same[1:] &= same[:-1]
    assert (np.diff(value)[same] >= -1e-7 * np.abs(value[1:][same])).all()


@pytest.mark.parametrize("settings", [{}, {"blocks": 2, "visits": 1, "selection": "permutation"}], ids=["one", "turns"])
@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
def test_a_saved_run_goes_on_exactly(settings, squared):
    problem, *_ = make(3, squared=squared)
    engine = ProximalPoint(**settings).engine(problem, 5)
    straight, halted = engine.init(problem), engine.init(problem)
    for state in (straight, halted):
        engine.certificate(state)
    for _ in range(6):
        engine.step(straight)
        engine.step(halted)
    resumed = engine.from_arrays(problem, halted.to_arrays())
    for _ in range(6):
        engine.step(straight)
        engine.step(resumed)
    assert np.array_equal(straight.best, resumed.best) and np.array_equal(straight.inner.w, resumed.inner.w)
    assert (straight.primal, straight.dual, straight.looks) == (resumed.primal, resumed.dual, resumed.looks)
    assert straight.oracle_calls == resumed.oracle_calls
    np.testing.assert_array_equal(np.delete(straight.trace, 6, axis=1), np.delete(resumed.trace, 6, axis=1))


def test_a_state_of_another_problem_is_refused():
    problem, *_ = make(3)
    other, *_ = make(3, C=0.3)
    engine = ProximalPoint().engine(problem)
    state = engine.init(problem)
    engine.certificate(state)
    with pytest.raises(ValueError, match="another problem"):
        engine.from_arrays(other, state.to_arrays())


@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
@pytest.mark.parametrize("blocks", ["one", "product"])
def test_warm_start_at_another_weight_of_the_losses(squared, blocks):
    problem, *_ = make(3, C=0.5, squared=squared)
    stronger, *data = make(3, C=1.5, squared=squared)
    engine = ProximalPoint(blocks=blocks).engine(problem, 0)
    before = run(engine, problem, tol=1e-6)
    result = run(engine, stronger, tol=1e-6, warm=before.state)
    check(result, stronger, *data)
    with pytest.raises(ValueError, match="warm start"):
        run(ProximalPoint(blocks=2).engine(stronger, 0), stronger, warm=before.state)


@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared"])
@pytest.mark.parametrize("blocks", ["one", 2, "product"])
def test_further_examples_without_the_first(squared, blocks):
    """Planes of examples that are gone go on counting: better than forgetting them, and the bound stays a bound."""
    planes, c, starts = random_problem(11, n=6)
    weight = np.full(6, 1.0)
    value, _ = optimum(planes, weight, c, starts, squared=squared)
    first, second = (generative_problem(part, np.ones(3), c, starts, squared) for part in (planes[:3], planes[3:]))
    engine = ProximalPoint(blocks=blocks).engine(first, 0)
    state = run(engine, first, tol=1e-6).state
    alone = run(engine, second, tol=1e-6).weights
    state = engine.init(second, replace(state, other_examples=True))
    engine.certificate(state)
    for _ in range(40):
        engine.step(state)
    certificate = engine.certificate(state)
    assert not certificate.certified
    assert certificate.dual <= value + 1e-6
    both = objective(planes, weight, c, engine.weights(state), squared=squared)
    assert value - 1e-6 <= both
    share = 0.7 if blocks == "one" else 0.2  # planes of single examples tell more about other weights
    assert both - value < share * (objective(planes, weight, c, alone, squared=squared) - value)
    assert certificate.primal <= both + 1e-6  # an estimate from below


def test_an_oracle_without_upper_bounds_is_not_certified():
    class Guessing(ArrayOracle):
        def planes(self, w, examples, most=1):
            planes = super().planes(w, examples)
            planes.bound[:] = np.inf
            return planes

    planes, c, starts = random_problem(2)
    problem = generative_problem(planes, np.ones(len(planes)), c, starts, oracle=Guessing)
    result = solve(problem, tol=1e-4)
    assert not result.certificate.certified and "estimate" in result.status.sentence


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "often"}, "rule must be"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"limit": 0}, "limit must be"),
        ({"share": 2.0}, "share must be"),
        ({"selection": "best"}, "selection must be"),
        ({"visits": 0}, "visits must be"),
        ({"blocks": "groups"}, "blocks must be"),
        ({"blocks": [[0, 1], [2, 3]]}, "example 4 is in no subset"),
        ({"blocks": [[0, 1, 2, 3, 4, 5], [6]]}, "names example 6"),
        ({"blocks": [[0, 1, 2, 3, 4, 5], []]}, "subset 1 of the stream has no examples"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_settings_that_can_not_be(settings, message):
    problem, *_ = make(0)
    with pytest.raises(ValueError, match=message):
        solve(problem, **settings)


def test_too_little_memory_is_refused():
    problem, *_ = make(0)
    with pytest.raises(MemoryError, match="Raise the solver's memory"):
        solve(problem, memory=100)


def test_too_many_blocks_at_once_are_refused():
    with pytest.raises(ValueError, match="too many for one master problem"):
        ProximalPoint(blocks="product").settings(3000, 100)
    assert ProximalPoint(blocks="product", visits=5).settings(3000, 100).selection == "cyclic"


def test_parameters_can_be_read_and_set():
    solver = ProximalPoint(limit=7)
    assert solver.get_params()["limit"] == 7 and solver.set_params(limit=3).limit == 3
    assert repr(solver) == "ProximalPoint(limit=3)"


def test_the_master_is_the_quadratic_one_where_no_table_binds():
    """Where no table binds R_n* is |u|^2 / (2 gamma) + u . (theta^n + c / gamma) + const."""
    from maxmargin.solvers.working_set import WorkingSet

    rng = np.random.default_rng(0)
    tables, c = Tables.of([3, 2]), np.full(5, 0.3)
    centre = tables.feasible(rng.normal(-4, 0.1, 5))  # far inside, so that no table binds
    A, b, gamma = rng.normal(size=(4, 5)), rng.random(4) * 3 + 10, 1e3
    proximal = TableDivergence(tables, c).proximal(centre, gamma)
    ws, u = WorkingSet(np.ones(1), 5, 5), np.zeros(5)
    for row, offset in zip(A, b, strict=True):
        wk.insert(ws.store, 0, np.arange(5, dtype=np.int32), row, offset, ws.table, 0, ws.dense)
    solve_jointly(ws, np.zeros(1, int), u, np.zeros(5), proximal, 5, 1 << 30, 1e-12)
    whole = np.vstack([A, np.zeros(5)])
    shifted = np.append(b, 0.0) - whole @ (centre + c / gamma)
    theirs = projected_newton(Quadratic(whole @ whole.T / gamma, shifted), np.zeros(5, int), np.ones(1))
    np.testing.assert_allclose(ws.store.alpha[ws.ids(np.zeros(1, int))], theirs.q[:4], atol=1e-6)
    np.testing.assert_allclose(u, theirs.q @ whole, atol=1e-5)
