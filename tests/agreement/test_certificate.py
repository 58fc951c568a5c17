"""The certificate, recomputed from what a checkpoint holds and from all enumerated outputs."""

from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.saved import read
from agreement.tiny import PRESETS as tiny_presets
from agreement.tiny import Tiny, best, dual_state, engine_of, solve
from maxmargin import SimplicialDecomposition as Simplicial
from reference.certificate import recompute

PRESETS = {
    **tiny_presets,
    "one": Simplicial("one"),
    "one, limit 2": Simplicial("one", limit=2),
    "one, working set": Simplicial("one", working_set=2, limit=3),
    "product": Simplicial("product"),
    "product, limit 1": Simplicial("product", limit=1),
    "product, limit 2, smo": Simplicial("product", limit=2, working_set=2, master="smo", selection="gap"),
}
GRID = [
    Tiny(kind, loss, signed, "matrix" if weighted else "hamming", weighted, C, seed)
    for (kind, loss, signed), (weighted, C, seed) in product(
        product(["chain", "multiclass"], ["hinge", "squared_hinge"], [False, True]), [(False, 0.3, 6), (True, 4.0, 7)]
    )
]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("tiny", GRID, ids=str)
def test_certificate_from_a_file(tiny, name, tmp_path):
    """Stopped early, when the gap is wide: both values must be exact, not only near the optimum."""
    path = tmp_path / "run"
    result = solve(tiny, PRESETS[name], tol=1e-7, max_passes=5, callbacks=[mm.Checkpoint(path)])
    saved = read(path)
    d = tiny.planes[0][0].shape[1]
    positive = np.zeros(d, bool) if tiny.signed is False else tiny.positive

    # the dual, from planes and multipliers alone
    for alpha in saved.multipliers:
        assert (alpha >= 0).all()
    u = sum(A.T @ alpha for (A, _), alpha in zip(saved.planes, saved.multipliers, strict=True))
    linear = sum(b @ alpha for (_, b), alpha in zip(saved.planes, saved.multipliers, strict=True))
    weights, extra = np.where(positive & (u[:d] < 0), 0.0, u[:d]), u[d:]
    dual = linear - 0.5 * weights @ weights - 0.5 * extra @ extra  # extra_i^2 = zeta_i^2 / C_i
    assert saved.u == pytest.approx(u, abs=1e-9)
    assert saved.dual == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert result.weights == pytest.approx(weights, abs=1e-9)

    # the primal, from the weights and every output there is
    everything = recompute(weights, None, tiny.planes, tiny.example_weight, squared=tiny.squared)
    assert saved.primal == pytest.approx(everything.primal, rel=1e-9)
    assert result.certificate.primal == saved.primal
    assert result.certificate.dual == saved.dual
    assert result.certificate.gap == pytest.approx(everything.primal - dual, rel=1e-6, abs=1e-9 * everything.primal)

    # the planes are real: each is a convex combination of enumerated ones at best, so none lies above the loss
    blocks = len(saved.planes)
    for i, (A, b) in enumerate(saved.planes) if blocks == tiny.n else []:
        reached = max(0.0, (tiny.planes[i][1] - tiny.planes[i][0] @ weights).max())
        if not tiny.squared:
            assert ((b - A @ weights) <= reached + 1e-9).all()


@pytest.mark.parametrize("name", ["auto", "sequential", "cutting plane, n", "product"])
@pytest.mark.parametrize("tiny", [t for t in GRID], ids=str)
def test_reference_accepts_the_multipliers_output_by_output(tiny, name, tmp_path):
    """Without merged planes each saved plane is that of one output: give the multipliers back to the outputs."""
    preset = mm.Auto(parts=1) if name == "auto" else PRESETS[name]
    path = tmp_path / "run"
    result = solve(tiny, preset, tol=1e-7, max_passes=6, callbacks=[mm.Checkpoint(path, every=1)])
    saved = read(path)
    d = tiny.planes[0][0].shape[1]
    multipliers = []
    for i, (A, b) in enumerate(saved.planes):
        alpha = np.zeros(len(tiny.planes[i][1]))
        for row, offset, amount in zip(A[:, :d], b, saved.multipliers[i], strict=True):
            distance = np.abs(tiny.planes[i][0] - row).max(axis=1) + np.abs(tiny.planes[i][1] - offset)
            assert distance.min() <= 1e-12, "a plane that belongs to no output"
            alpha[distance.argmin()] += amount
        multipliers.append(alpha)
    check = recompute(
        result.weights, multipliers, tiny.planes, tiny.example_weight, squared=tiny.squared, positive=tiny.positive
    )
    assert result.certificate.primal == pytest.approx(check.primal, rel=1e-9)
    assert result.certificate.dual == pytest.approx(check.dual, rel=1e-9, abs=1e-12)
    assert result.weights == pytest.approx(check.weights, abs=1e-9)


def state_is_feasible(tiny, state):
    """Multipliers >= 0 with block sums equal to the total; weights equal to the sum they stand for."""
    store, ws = state.working_set.store, state.working_set
    A, b, alpha, block = ws.planes()
    assert (alpha >= 0).all()
    sums = np.bincount(block, weights=alpha, minlength=ws.n_blocks)
    bounded = np.isfinite(store.total)
    assert (store.origin >= 0).all()
    assert (sums + store.origin)[bounded] == pytest.approx(store.total[bounded], rel=1e-10, abs=1e-14)
    u = A.T @ alpha
    assert state.u == pytest.approx(u, abs=1e-9 * (1 + np.abs(u).max(initial=0)))
    assert ws.linear == pytest.approx(float(alpha @ b), rel=1e-9, abs=1e-12)
    if tiny.signed:
        d = tiny.planes[0][0].shape[1]
        assert (state.w[:d][tiny.positive] >= 0).all()
        assert state.w[:d] == pytest.approx(np.where(tiny.positive & (u[:d] < 0), 0, u[:d]), abs=1e-9)
    assert sum(store.held[store.total == 0]) == 0 or not alpha[store.total[block] == 0].any()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("tiny", GRID[::2] + GRID[1::4], ids=str)
def test_every_step_is_feasible_and_never_falls(tiny, name):
    problem = tiny.problem()
    engine = engine_of(PRESETS[name], problem)
    state = engine.init(problem)
    optimum = best(tiny).objective
    before = -1e-300
    for _ in range(25):
        if engine.certificate_due(state):
            certificate = engine.certificate(state).check()
            assert certificate.dual <= optimum * (1 + 1e-7)
            assert certificate.primal >= optimum * (1 - 1e-7)
        engine.step(state)
        whole = dual_state(state)
        state_is_feasible(tiny, whole)
        dual = problem.dual(whole.working_set.linear, whole.u)
        assert dual >= before - 1e-12 * abs(before)
        before = dual


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("tiny", GRID[::3], ids=str)
def test_history_is_a_proof_at_every_row(tiny, name):
    result = solve(tiny, PRESETS[name], tol=1e-9, max_passes=60)
    primal, dual = result.history.column("primal"), result.history.column("dual")
    optimum = best(tiny).objective
    assert (dual <= primal * (1 + 1e-12)).all()
    assert (dual <= optimum * (1 + 1e-7)).all()
    assert (primal >= optimum * (1 - 1e-7)).all()
    assert (np.diff(dual) >= -1e-12 * np.abs(dual[1:])).all()
    assert result.history.column("certified").all()
    assert result.certificate.gap == primal[-1] - dual[-1]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_block_gaps_add_up_to_the_gap(name, loss):
    """The gap of each block, from the enumerated planes and the saved multipliers, sums to primal - dual exactly."""
    tiny = Tiny(loss=loss, C=0.7, seed=3)
    problem = tiny.problem()
    engine = engine_of(PRESETS[name], problem)
    state = engine.init(problem)
    for _ in range(4):
        engine.step(state)
    certificate, whole = engine.certificate(state), dual_state(state)
    A, b, alpha, block = whole.working_set.planes()
    inner = np.bincount(block, weights=alpha * (b - A @ whole.w), minlength=whole.working_set.n_blocks)
    loss_i = np.array([(b_i - a_i @ engine.weights(state)).max() for a_i, b_i in tiny.planes])
    weight = tiny.example_weight
    if tiny.squared:
        extra = whole.w[len(tiny.planes[0][0][0]) :]
        total = (0.5 * weight * loss_i**2 - 0.5 * extra**2).sum() - inner.sum()
    else:
        total = weight @ loss_i - inner.sum()
    assert certificate.gap == pytest.approx(total, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_resumed_run_ends_where_an_unbroken_one_does(name, tmp_path):
    """Saved after 4 passes and resumed from the file: bit for bit the weights of a run that was never interrupted."""
    tiny = Tiny(C=0.5, seed=8)
    whole = solve(tiny, PRESETS[name], tol=1e-12, max_passes=16)
    path = tmp_path / "run"
    solve(tiny, PRESETS[name], tol=1e-12, max_passes=16, callbacks=[First(path)])
    resumed = solve(tiny, PRESETS[name], tol=1e-12, max_passes=16, resume=path)
    assert np.array_equal(whole.weights, resumed.weights)
    assert [row["dual"] for row in whole.history] == [row["dual"] for row in resumed.history]


class First:
    """Saves the second certificate and stops there."""

    def __init__(self, path):
        self.path = path

    def on_begin(self, run):
        pass

    def on_certificate(self, run):
        if len(run.history) == 2:
            run.save(self.path)
            return "stop"
        return None

    def on_end(self, run):
        pass
