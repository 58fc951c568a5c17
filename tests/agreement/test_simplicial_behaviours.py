"""Restricted simplicial decomposition (Yu, Rousu 2007), behaviour by behaviour.

The table below names each behaviour of the method and the test that shows it; behaviours that are not part of this
release are named with what stands in their place, so that nothing is left out silently.
"""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, best, engine_of, solve
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.block_selection import POLICIES
from maxmargin.solvers.driver import run
from models.test_grid import enumerated

BEHAVIOURS = {
    1: ("the state is points (w_i, l_i), never outputs", "test_01_state_is_points"),
    2: ("margin rescaling with linear slacks", "test_02_margin_rescaling_linear"),
    3: ("slack rescaling with linear slacks", "test_03_slack_rescaling_linear"),
    4: ("squared slacks: a product of cones", "test_04_squared_slacks"),  # without the square-root scale of costs
    5: ("sign-constrained weights", "test_05_sign_constraints"),
    6: ("one simplex for all examples", "test_06_one_simplex"),
    7: ("one simplex on a working set, the others fixed", "test_07_one_simplex_on_a_working_set"),
    8: ("product of simplexes, on all examples or on a working set", "test_08_product"),
    9: ("dimension limit r: extreme points and at most one iterate", "test_09_dimension_limit"),
    10: ("replacement when full; r = 1 is Frank-Wolfe, no limit is simplicial decomposition", "test_10_replacement"),
    11: ("points of zero weight are dropped on request", "test_11_dropping"),
    12: ("finite convergence for r >= d + 1", "test_12_finite_convergence"),
    13: ("initial points: origin, or those of an earlier run", "test_13_initial_points"),
    14: ("stop: gap zero, or relative gap", "test_14_stopping"),
    15: ("master by projected Newton: simplex, product, orthant", "test_15_masters_agree"),
    16: ("cone: a ray only where the slope is positive", "test_16_rays_that_ascend"),
    17: ("cone with a limit: rays give way to the current point, no zero ray is stored", "test_17_cone_with_a_limit"),
    18: ("all extreme points kept while memory lasts", "test_18_everything_kept_while_memory_lasts"),
    19: ("key examples", "test_19_key_examples"),
    20: ("choice of the working set: cyclic, random, by gap", "test_20_choices_of_the_working_set"),
    21: ("loss-augmented min-cut on grids", "test_21_cuts_of_grids"),
    22: ("kernel evaluations instead of weights", None),  # not part of this release: planes are explicit vectors
}
CASE = Tiny("chain", cost="matrix", C=1.0, seed=1, n=5)


def stepped(preset, tiny, count):
    """The state after each of ``count`` steps, each with a look at all examples before it when one is due."""
    problem = tiny.problem()
    engine = engine_of(preset, problem)
    state = engine.init(problem)
    for _ in range(count):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
        yield state


def dual_of(state):
    return state.problem.dual(state.working_set.linear, state.u)


def test_every_behaviour_has_its_line():
    assert sorted(BEHAVIOURS) == list(range(1, 23))
    for number, (_, test) in BEHAVIOURS.items():
        assert test is None or test in globals(), f"behaviour {number} names a test that does not exist"
        assert test is None or test.startswith(f"test_{number:02d}_")


def test_01_state_is_points():
    """What a run stores is planes and multipliers: floats of length d (+ n), nothing that names an output."""
    *_, state = stepped(Simplicial("product"), CASE, 3)
    assert {array.dtype.kind for name, array in state.to_arrays().items() if "set/" in name} <= set("fiu")
    A, b, alpha, block = state.working_set.planes()
    for i, (every, costs) in enumerate(CASE.planes):
        own = block == i
        w_i, l_i = A[own].T @ alpha[own], b[own] @ alpha[own]
        # (w_i, l_i) lies in the hull of the enumerated corners: here each plane is one of them
        for row, offset in zip(A[own].toarray(), b[own], strict=True):
            assert (np.abs(every - row).max(axis=1) + np.abs(costs - offset)).min() <= 1e-12
        assert np.isfinite(w_i).all()
        assert l_i >= 0


def test_02_margin_rescaling_linear():
    for seed in range(4):
        tiny = replace(CASE, seed=seed)
        for blocks in ("one", "product"):
            assert solve(tiny, Simplicial(blocks), tol=1e-9).certificate.primal == pytest.approx(
                best(tiny).objective, rel=1e-6
            )


def test_03_slack_rescaling_linear():
    for seed in range(4):
        tiny = replace(CASE, cost="quarters", rescaling="slack", seed=seed)
        for blocks in ("one", "product"):
            assert solve(tiny, Simplicial(blocks), tol=1e-9).certificate.primal == pytest.approx(
                best(tiny).objective, rel=1e-6
            )


def test_04_squared_slacks():
    """Also that multipliers are free: their sum follows the loss, zeta_i = C_i loss_i at the optimum."""
    for seed in range(4):
        tiny = replace(CASE, loss="squared_hinge", seed=seed, weighted=True)
        for blocks in ("one", "product"):
            result = solve(tiny, Simplicial(blocks), tol=1e-9)
            assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)
        _, _, alpha, block = result.state.working_set.planes()
        zeta = np.bincount(block, weights=alpha, minlength=tiny.n)
        losses = np.array([(b - A @ result.weights).max() for A, b in tiny.planes])
        assert zeta == pytest.approx(tiny.example_weight * losses, abs=1e-4)


def test_05_sign_constraints():
    """Weights are the projection of sum alpha a, in the model and in the dual, at every step."""
    tiny = replace(CASE, signed=True)
    d = len(tiny.positive)
    for blocks in ("one", "product"):
        for state in stepped(Simplicial(blocks), tiny, 12):
            u, w = state.u[:d], state.w[:d]
            assert (w[tiny.positive] >= 0).all()
            assert np.array_equal(w, np.where(tiny.positive & (u < 0), 0.0, u))
            assert dual_of(state) == pytest.approx(state.working_set.linear - 0.5 * w @ w, rel=1e-12)
        assert (u[tiny.positive] < 0).any(), "no constraint was active: the case shows nothing"
        result = solve(tiny, Simplicial(blocks), tol=1e-9)
        assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)


def test_06_one_simplex():
    """One block whose points are sums of corners over all examples."""
    for state in stepped(Simplicial("one"), CASE, 1):
        assert state.working_set.n_blocks == 1
        A, b, _, _ = state.working_set.planes()
        corners = [
            (C * a[np.argmax(cost)], C * cost.max())
            for C, (a, cost) in zip(CASE.example_weight, CASE.planes, strict=True)
        ]
        assert A.toarray()[0] == pytest.approx(sum(a for a, _ in corners))  # at w = 0 the most expensive outputs
        assert b[0] == pytest.approx(sum(c for _, c in corners))


def test_07_one_simplex_on_a_working_set():
    """Groups of examples with a simplex each; a step changes one group's share of the weights only."""
    problem = CASE.problem()
    engine = engine_of(Simplicial("one", working_set=2), problem)
    state = engine.init(problem)
    assert [len(m) for m in state.members] == [2, 2, 1]
    for k in range(3):
        before = state.working_set.planes()
        engine.step(state)
        after = state.working_set.planes()
        for group in set(range(3)) - {k}:
            assert np.array_equal(before[2][before[3] == group], after[2][after[3] == group])
        assert (after[3] == k).any()
    assert solve(CASE, Simplicial("one", working_set=2), tol=1e-9).certificate.primal == pytest.approx(
        best(CASE).objective, rel=1e-6
    )


def test_08_product():
    for working_set in (None, 1, 2, 5, 99):
        result = solve(CASE, Simplicial("product", working_set=working_set), tol=1e-9, max_passes=2000)
        assert result.state.working_set.n_blocks == CASE.n
        assert result.certificate.primal == pytest.approx(best(CASE).objective, rel=1e-6)


def test_09_dimension_limit():
    for limit in (1, 2, 4):
        for state in stepped(Simplicial("one", limit=limit, drop=False), CASE, 25):
            store = state.working_set.store
            kinds = store.iterate[store.slots[0, : store.held[0]]]
            assert (kinds == 0).sum() <= limit
            assert (kinds == 1).sum() <= 1
        assert (kinds == 0).sum() == limit


def test_10_replacement():
    """The point of smallest weight leaves, the current point is stored: so no replacement lowers the dual."""
    for limit in (1, 2, 3):
        duals = [dual_of(state) for state in stepped(Simplicial("one", limit=limit), CASE, 30)]
        assert (np.diff(duals) >= -1e-12).all()
    frank = [dual_of(state) for state in stepped(mm.FrankWolfe(), CASE, 15)]
    assert frank == pytest.approx([dual_of(s) for s in stepped(Simplicial("one", limit=1), CASE, 15)], rel=1e-9)
    full = [dual_of(state) for state in stepped(mm.CuttingPlane("one", patience=1000), CASE, 15)]
    assert full == pytest.approx(
        [dual_of(s) for s in stepped(Simplicial("one", limit=None, drop=False), CASE, 15)], rel=1e-9
    )


def test_11_dropping():
    for drop in (True, False):
        *_, state = stepped(Simplicial("one", drop=drop), CASE, 15)
        _, _, alpha, _ = state.working_set.planes()
        assert (alpha > 0).all() == drop


def test_12_finite_convergence():
    for seed in range(4):
        tiny = Tiny("chain", cost="matrix", C=1.0, seed=seed, n=4, K=2, F=2)
        d = tiny.planes[0][0].shape[1]
        for limit in (d + 1, d + 2, "auto"):
            result = solve(tiny, Simplicial("one", limit=limit), tol=1e-10, max_passes=200)
            assert result.status.code == "converged"


def test_13_initial_points():
    """The origin, with dual 0; or the points of an earlier run, from which the same problem is solved at once."""
    problem = CASE.problem()
    engine = engine_of(Simplicial("product"), problem)
    start = engine.certificate(engine.init(problem))
    assert start.dual == 0
    assert start.primal == pytest.approx(sum(CASE.example_weight * np.array([b.max() for _, b in CASE.planes])))
    first = solve(CASE, Simplicial("product"), tol=1e-9)
    again = run(engine_of(Simplicial("product"), problem), problem, tol=1e-8, warm=first.state)
    assert again.history[0]["relative_gap"] <= 1e-8


def test_14_stopping():
    """At the relative gap asked for, not later; and with tolerance 0 when no step changes anything any more."""
    for tol in (1e-1, 1e-3, 1e-6):
        history = solve(CASE, Simplicial("one"), tol=tol).history
        assert history[-1]["relative_gap"] <= tol
        assert all(row["relative_gap"] > tol for row in history.rows[:-1])
    result = solve(CASE, Simplicial("product"), tol=0.0, max_passes=300)
    assert result.status.code in ("converged", "stalled")
    assert result.certificate.relative_gap <= 1e-9


def test_15_masters_agree():
    for loss in ("hinge", "squared_hinge"):
        for blocks in ("one", "product"):
            tiny = replace(CASE, loss=loss)
            newton, smo = (solve(tiny, Simplicial(blocks, master=m), tol=1e-9) for m in ("newton", "smo"))
            assert newton.weights == pytest.approx(smo.weights, abs=1e-4)
            assert len(newton.history) <= len(smo.history) + 2


def test_16_rays_that_ascend():
    """At the optimum no example's ray ascends: h_i = zeta_i / C_i, and a further look brings no new ray."""
    tiny = replace(CASE, loss="squared_hinge")
    problem = tiny.problem()
    engine = engine_of(Simplicial("one"), problem)
    result = run(engine, problem, tol=1e-13, max_passes=200)
    held, state = result.state.working_set.n_planes, result.state
    for _ in range(3):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
    assert state.working_set.n_planes <= held + 1
    assert dual_of(state) == pytest.approx(result.certificate.dual, rel=1e-12)


def test_17_cone_with_a_limit():
    tiny = replace(CASE, loss="squared_hinge")
    for blocks in ("one", "product"):
        previous = 0.0
        for state in stepped(Simplicial(blocks, limit=2), tiny, 30):
            store = state.working_set.store
            A, b, _, _ = state.working_set.planes()
            assert (np.abs(A.toarray()).max(axis=1) > 0).all(), "a zero ray"
            assert (b > 0).all()
            for i in range(state.working_set.n_blocks):
                assert (store.iterate[store.slots[i, : store.held[i]]] == 0).sum() <= 2
            assert dual_of(state) >= previous - 1e-12
            previous = dual_of(state)
        assert store.size[wk.MERGES] > 0


def test_18_everything_kept_while_memory_lasts():
    """limit="auto" with a product is no limit but memory; all extreme points found are there with drop=False."""
    problem = CASE.problem()
    engine = engine_of(Simplicial("product", drop=False), problem)
    state = engine.init(problem)
    seen = set()
    for _ in range(8):
        engine.certificate(state)
        for i, row, b in zip(state.pending.example, state.pending.to_csr().toarray(), state.pending.b, strict=True):
            if b - row @ state.w > 1e-9:
                seen.add((int(i), tuple(np.round(row, 9)), round(float(b), 9)))
        engine.step(state)
    A, b, _, block = state.working_set.planes()
    kept = {
        (int(i), tuple(np.round(row, 9)), round(float(c), 9)) for i, row, c in zip(block, A.toarray(), b, strict=True)
    }
    assert state.working_set.limit is None
    assert state.working_set.store.size[wk.MERGES] == 0
    # a plane that other blocks' moves have made harmless before its turn need not come in
    assert len(seen & kept) >= 0.7 * len(seen)


def test_19_key_examples():
    """Examples that are settled at the origin are left alone: the working sets are made of the others."""
    tiny = Tiny("multiclass", C=0.5, n=12, K=2, F=6, seed=3)
    result = solve(tiny, Simplicial("product", working_set=3, selection="key"), tol=1e-9, max_passes=500)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)
    store = result.state.working_set.store
    chosen = POLICIES["key"](store, np.random.default_rng(0), 12)
    idle = (store.gap <= 0) & ((store.held == 0) | (store.origin >= store.total))
    assert not idle[chosen].any() or idle.all()


@pytest.mark.parametrize("selection", ["cyclic", "random", "gap", "permutation", "key"])
def test_20_choices_of_the_working_set(selection):
    for blocks in ("one", "product"):
        preset = Simplicial(blocks, working_set=2, selection=selection)
        result = solve(CASE, preset, tol=1e-8, max_passes=2000)
        assert result.certificate.primal == pytest.approx(best(CASE).objective, rel=1e-6)
        again = solve(CASE, preset, tol=1e-8, max_passes=2000)
        assert np.array_equal(result.weights, again.weights)
    with pytest.raises(ValueError, match="selection must be one of"):
        solve(CASE, Simplicial("product", working_set=2, selection="best"), max_passes=3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_21_cuts_of_grids(loss):
    """The argmax is one cut, and no capacity is ever negative, because the dual works with the projected weights."""
    watched, problem, reference = enumerated(loss, C=0.5)
    for blocks in ("one", "product"):
        result = run(Simplicial(blocks).engine(problem, 0), problem, tol=1e-9, max_passes=5000)
        assert result.certificate.primal == pytest.approx(reference.objective, rel=1e-6)
        assert 0.0 <= watched.floats[-1] < np.inf


def test_arguments_out_of_range():
    for arguments, message in [
        ({"blocks": "two"}, "blocks must be"),
        ({"working_set": 0}, "working_set must be at least 1"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"limit": "many"}, "limit must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            solve(CASE, Simplicial(**arguments), max_passes=3)
