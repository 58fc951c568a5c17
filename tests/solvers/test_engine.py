"""The engine's contract with the driver: counting, resuming, warm starts, growing, settings at their ends."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import PRESETS as tiny_presets
from agreement.tiny import Tiny, best, dual_state, engine_of, solve
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.execution.executors import make_executor
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.solvers.driver import run
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.settings import Settings

PRESETS = {
    **tiny_presets,
    "one, working set": Simplicial("one", working_set=2),
    "product, working set": Simplicial("product", working_set=2, selection="gap"),
}


@pytest.mark.parametrize("name", PRESETS)
def test_steps_make_the_calls_they_announce(name):
    problem = Tiny(n=6).problem()
    engine = engine_of(PRESETS[name], problem)
    state = engine.init(problem)
    for _ in range(12):
        if engine.certificate_due(state):
            before = state.oracle_calls
            engine.certificate(state)
            assert state.oracle_calls == before + 6
            assert not engine.certificate_due(state), "its planes have to be used first"
        before, announced = state.oracle_calls, engine.step_calls(state)
        engine.step(state)
        assert state.oracle_calls - before + 6 == pytest.approx(announced, abs=1)  # and a certificate behind it
        assert state.argmax_calls == state.oracle_calls
    assert state.seconds["oracle"] >= 0
    assert state.seconds["solver"] > 0


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_state_goes_through_arrays_at_any_point(name, loss, signed):
    """Saved before and after certificates: what follows is the same, bit for bit."""
    problem = Tiny(loss=loss, signed=signed, seed=2).problem()
    engine = engine_of(PRESETS[name], problem)
    state = engine.init(problem)
    for k in range(8):
        if engine.certificate_due(state):
            engine.certificate(state)
        if k in (3, 4):
            arrays = state.to_arrays()
            assert all(not array.dtype.hasobject for array in arrays.values())
            twin = engine.from_arrays(problem, arrays)
            assert (dual_state(twin).pending is None) == (dual_state(state).pending is None)
        engine.step(state)
    for k in range(4, 8):
        if k > 4 and engine.certificate_due(twin):
            engine.certificate(twin)
        engine.step(twin)
    assert np.array_equal(engine.weights(state), engine.weights(twin))
    assert state.oracle_calls == twin.oracle_calls


def test_state_of_another_problem_is_refused():
    one, other, wider = Tiny(C=1.0), Tiny(C=2.0), Tiny(F=3)
    engine = engine_of(mm.Auto(), one.problem())
    arrays = engine.init(one.problem()).to_arrays()
    for tiny in (other, wider):
        with pytest.raises(ValueError, match="another problem"):
            engine.from_arrays(tiny.problem(), arrays)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("preset", [mm.Auto(), mm.SequentialDual(tau=1e-10), Simplicial(), mm.BCFW()], ids=str)
def test_warm_start_at_another_weight_of_the_losses(preset, loss, signed):
    """Feasible at once, with a dual above 0, and with the optimum of the new problem at the end."""
    tiny = Tiny(loss=loss, signed=signed, C=1.0, seed=4)
    first = solve(tiny, preset, tol=1e-4, max_passes=200)
    for C in (0.2, 1.0, 6.0):
        other = replace(tiny, C=C)
        problem = other.problem()
        engine = engine_of(preset, problem)
        state = engine.init(problem, warm=first.state)
        A, _, alpha, block = state.working_set.planes()
        assert (alpha >= 0).all()
        if loss == "hinge":
            assert (np.bincount(block, weights=alpha, minlength=5) <= other.example_weight * (1 + 1e-12)).all()
        assert state.u == pytest.approx(A.T @ alpha, abs=1e-12)
        certificate = engine.certificate(state).check()
        assert 0 < certificate.dual <= best(other).objective * (1 + 1e-7)
        result = run(engine_of(preset, problem), problem, tol=1e-3, max_passes=400, warm=first.state)
        # one example at a time is slow where examples share all their features, as here
        exact = isinstance(preset, mm.Auto | Simplicial)
        assert result.certificate.primal == pytest.approx(best(other).objective, rel=1e-3 if exact else 0.1)


def test_warm_start_needs_the_same_examples():
    first = solve(Tiny(n=5), mm.Auto(), tol=1e-3)
    for other, preset in [(Tiny(n=4), mm.Auto()), (Tiny(F=3), mm.Auto()), (Tiny(loss="squared_hinge"), mm.Auto())]:
        problem = other.problem()
        with pytest.raises(ValueError, match="warm start needs the same"):
            engine_of(preset, problem).init(problem, warm=first.state)
    problem = Tiny(n=5).problem()
    with pytest.raises(ValueError, match="same blocks"):
        engine_of(mm.FrankWolfe(), problem).init(problem, warm=first.state)
    one = solve(Tiny(n=5), mm.CuttingPlane("one"), tol=1e-3)
    problem = Tiny(n=5).problem()
    problem = replace(problem, weight=problem.weight * np.arange(1.0, 6.0))
    with pytest.raises(ValueError, match="one factor within a block"):
        engine_of(mm.CuttingPlane("one"), problem).init(problem, warm=one.state)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("signed", [False, True])
def test_the_number_of_workers_changes_nothing(name, signed):
    tiny = Tiny("chain", signed=signed, n=40, seed=1)
    weights = []
    for workers in (1, 2):
        problem = tiny.problem()
        engine = engine_of(PRESETS[name], problem)
        executor = make_executor(workers, compiled=True)
        try:
            sharded = replace(problem, oracle=ShardedOracle(problem.oracle, executor))
            weights.append(run(engine, sharded, tol=1e-6, max_passes=8).weights.copy())
        finally:
            executor.close()
    assert np.array_equal(*weights)


def test_sets_grow_far_beyond_their_first_size():
    """Long runs that drop nothing: blocks of dozens of planes, the pool and the table of planes grown several times."""
    tiny = Tiny("chain", cost="matrix", C=5.0, n=20, K=4, F=4, seed=3)
    problem = tiny.problem()
    engine = DualEngine(Settings(patience=1 << 30, tau=1e-12), 0)
    state = engine.init(problem)
    first = sum(array.nbytes for array in state.working_set.store)
    for _ in range(60):
        engine.step(state)
    ws = state.working_set
    assert ws.store.held.max() > 4
    assert sum(array.nbytes for array in ws.store) > first
    A, _, alpha, _ = ws.planes()
    assert state.u == pytest.approx(A.T @ alpha, abs=1e-10)
    assert problem.dual(ws.linear, state.u) == pytest.approx(best(tiny).objective, rel=5e-2)


def test_weights_are_rebuilt_now_and_then_without_a_visible_change():
    tiny = Tiny(C=50.0, seed=1)
    problem = tiny.problem()
    engine = engine_of(mm.BCFW(certificate_every=1.0), problem)
    state = engine.init(problem)
    for _ in range(130):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
    assert state.certificates > 40
    assert state.drift <= 1e-9 * (1 + np.abs(state.u).max())


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 9])
def test_groups_of_examples(groups):
    """Any number of groups, also more than examples; all reach the optimum."""
    tiny = Tiny(n=5, weighted=True, C=1.0, seed=6)
    problem = tiny.problem()
    settings = Settings(blocks=groups, batch=None, master="newton", cached_blocks="all", selection="cyclic")
    engine = DualEngine(settings, 0)
    state = engine.init(problem)
    assert len(state.members) == min(groups, 5)
    assert np.array_equal(np.concatenate(state.members), np.arange(5))
    result = run(engine, problem, tol=1e-8, max_passes=500)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)


def test_one_example_and_one_output():
    """n = 1, and a single label: nothing to learn, no division by anything."""
    for preset in PRESETS.values():
        result = solve(Tiny(n=1, seed=2), preset, tol=1e-6, max_passes=300)
        assert result.certificate.relative_gap <= 1e-1
        nothing = solve(Tiny("chain", n=3, K=1), preset)
        assert nothing.status.code == "converged"
        assert nothing.certificate.primal == 0
        assert not nothing.weights.any()


@pytest.mark.parametrize("name", PRESETS)
def test_costs_that_are_all_zero(name):
    """Wrong outputs for free: w = 0 is the optimum and every method sees it at once."""
    X, y = Tiny("multiclass").data
    bound = mm.Multiclass(cost=np.zeros((3, 3)), classes=[0, 1, 2]).bind(X, y.tolist())
    problem = mm.MarginRescaling().problem(bound, C=1.0)
    result = run(engine_of(PRESETS[name], problem), problem, tol=1e-6, max_passes=20)
    assert result.status.code == "converged"
    assert not result.weights.any()


def test_a_block_drawn_twice_is_visited_once():
    """Sampling with replacement may repeat a block within a batch; at the same weights it has nothing new to say."""
    tiny = Tiny("chain", cost="matrix", weighted=True, C=1.0, seed=1, n=4, ends=True)
    preset = Simplicial("product", working_set=4, selection="random", master="smo")
    settings = replace(preset.settings(4, 21), selection="random", visits=8.0, certificate_every=2.0)
    problem = tiny.problem()
    result = run(DualEngine(settings, 0), problem, tol=1e-8, max_passes=500, max_seconds=20)
    assert result.status.code == "converged"


def test_gaps_of_blocks_are_noted():
    """The noted gap of a block is that of enumeration at the weights of its visit."""
    tiny = Tiny("multiclass", C=1.0, n=4, seed=3)
    problem = tiny.problem()
    engine = engine_of(mm.CuttingPlane("n"), problem)
    state = engine.init(problem)
    assert np.isinf(state.working_set.store.gap).all()
    engine.certificate(state)
    engine.step(state)
    # the first block was visited at w = 0, where its gap is C times the largest cost
    assert state.working_set.store.gap[0] == pytest.approx(tiny.example_weight[0] * tiny.planes[0][1].max())
    assert (state.working_set.store.gap >= 0).all()
