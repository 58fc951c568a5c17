"""Restricted simplexes: when they end, and what happens when memory is short."""

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, best, engine_of, solve
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.solvers import working_set_kernel as wk


def columns(tiny):
    return tiny.planes[0][0].shape[1] + (tiny.n if tiny.squared else 0)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(5))
def test_limit_above_the_dimension_ends(seed, loss, signed):
    """r >= d + 2: relative gap 1e-10 within 200 iterations."""
    kind, C = ["chain", "multiclass"][seed % 2], [0.1, 1.0, 10.0][seed % 3]
    tiny = Tiny(kind, loss, signed, "matrix" if seed > 2 else "hamming", C=C, seed=seed, n=4, K=2 + seed % 2)
    for extra in (2, 5):
        result = solve(tiny, Simplicial("one", limit=columns(tiny) + extra), tol=1e-10, max_passes=200)
        assert result.status.code == "converged", str(result.status)
        assert len(result.history) <= 200
    automatic = solve(tiny, Simplicial("one"), tol=1e-10, max_passes=200)
    assert automatic.state.working_set.limit == columns(tiny) + 2
    assert np.array_equal(automatic.weights, solve(tiny, Simplicial("one", limit=columns(tiny) + 2), tol=1e-10).weights)


@pytest.mark.parametrize("seed", range(4))
def test_few_points_do_not_end_but_many_do(seed):
    """The finite regime is the limit's doing: with r = 1 the same problem is far from done after 200 iterations."""
    tiny = Tiny("chain", cost="matrix", C=1.0, seed=seed, n=5)
    many = solve(tiny, Simplicial("one"), tol=1e-10, max_passes=200)
    few = solve(tiny, Simplicial("one", limit=1), tol=1e-10, max_passes=200)
    assert many.certificate.relative_gap <= 1e-10 < 1e-6 < few.certificate.relative_gap


def test_at_most_d_plus_one_points_carry_weight():
    for seed in range(6):
        tiny = Tiny("chain", cost="matrix", C=3.0, seed=seed, n=5, K=2, F=1)
        state = solve(tiny, Simplicial("one", limit=None, drop=False), tol=1e-11, max_passes=200).state
        _, _, alpha, _ = state.working_set.planes()
        assert (alpha > 0).sum() <= columns(tiny) + 1


# planes of up to a hundred non-zeros, so that kilobytes matter
WIDE = Tiny("chain", cost="matrix", C=1.0, n=12, K=4, F=30, seed=3)
HUNGRY = [Simplicial("one"), Simplicial("product", drop=False)]


@pytest.mark.parametrize("preset", HUNGRY, ids=str)
def test_short_memory_restricts_and_goes_on(preset):
    """A budget below what the method would like: points are merged, both bounds still hold, the dual never falls."""
    wanted = solve(WIDE, preset, tol=1e-6, max_passes=400)
    assert wanted.status.code == "converged"
    limit, merges = wanted.state.working_set.limit, wanted.state.working_set.store.size[wk.MERGES]
    assert merges == 0
    for share in np.linspace(1.0, 0.1, 37):  # the first budget that is too small, but not hopeless
        budget = int(share * sum(array.nbytes for array in wanted.state.working_set.store))
        short = type(preset)(**{**preset.get_params(), "memory": budget})
        try:
            result = solve(WIDE, short, tol=1e-6, max_passes=150)
        except MemoryError:
            continue
        if result.state.working_set.limit != limit:
            break
    ws = result.state.working_set
    assert ws.limit >= 2
    assert ws.store.size[wk.MERGES] > 0
    assert ws.store.held.max() <= ws.limit + 1
    assert sum(array.nbytes for array in ws.store) <= budget
    optimum = best(WIDE).objective
    assert result.certificate.dual <= optimum * (1 + 1e-7) <= result.certificate.primal * (1 + 2e-7)
    assert result.certificate.primal == pytest.approx(optimum, rel=0.1)
    assert (np.diff(result.history.column("dual")) >= -1e-12).all()


@pytest.mark.parametrize("preset", [*HUNGRY, mm.Auto()], ids=str)
def test_hopeless_memory(preset):
    """Not even two planes per block: an error that says what to do, instead of a run that cannot move."""
    with pytest.raises(MemoryError, match=r"two planes per block.*[Rr]aise the solver's memory, or use fewer examples"):
        solve(WIDE, type(preset)(**{**preset.get_params(), "memory": 1000}), max_passes=50)


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("master", ["newton", "smo"])
@pytest.mark.parametrize("blocks", ["one", "product"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_full_block_never_stalls(blocks, master, limit, loss):
    """Whatever the limit, a positive gap means that the next step raises the dual."""
    tiny = Tiny("chain", loss, cost="matrix", C=2.0, seed=7, n=4)
    problem = tiny.problem()
    engine = engine_of(Simplicial(blocks, limit=limit, master=master), problem)
    state, primals = engine.init(problem), []
    for _ in range(60):
        before = engine.certificate(state)
        engine.step(state)
        dual = problem.dual(state.working_set.linear, state.u)
        if before.relative_gap > 1e-7:
            assert dual > before.dual
        primals.append(before.primal)  # which goes up and down
    assert before.dual > 0.8 * min(primals)


@pytest.mark.parametrize("rule", ["merge", "iterate"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_both_rules_of_a_full_block_converge(limit, rule):
    """Sequential visits with little room: merging and replacing both keep going up to the optimum."""
    from maxmargin.solvers.driver import run
    from maxmargin.solvers.engine import DualEngine
    from maxmargin.solvers.settings import Settings

    tiny = Tiny("chain", cost="matrix", C=0.5, seed=2, n=4)
    problem = tiny.problem()
    settings = Settings(limit=limit, rule=rule, tau=1e-12, certificate_every=5.0)
    result = run(DualEngine(settings, 0), problem, tol=1e-7, max_passes=1500)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6 if limit > 1 else 1e-2)
