"""The dual in shards: shares of changes, a dual that never falls, workers, warm starts, interrupts, refusals."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, best, solve
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.driver import run
from maxmargin.solvers.shard_kernel import best_shares, products
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = random_chains(60, 4, 3, lengths=(1, 6), seed=0)


def chains(C=0.3, **words):
    return RescaledHinge(**words).problem(mm.Chain().bind(X, Y), C=C)


def dual_of(state):
    """The dual value of the multipliers of all shards, from the planes alone."""
    A, b, alpha, block = state.joined().working_set.planes()
    u = A.T @ alpha - (0.0 if state.problem.shift is None else state.problem.shift)
    spent = np.bincount(block, alpha, minlength=state.problem.n_examples)
    assert alpha.min(initial=0.0) >= 0.0 and (spent <= state.problem.total * (1 + 1e-12)).all()
    w = u if state.problem.positive is None else np.where(state.problem.positive, np.maximum(u, 0.0), u)
    return float(alpha @ b - 0.5 * w @ w)


@pytest.mark.parametrize("seed", range(20))
def test_best_shares_are_those_of_an_enumeration(seed):
    """Over a box, each coordinate of the optimum is 0, 1 or free; 3^K linear systems find it."""
    rng, K = np.random.default_rng(seed), 4
    changes = rng.normal(size=(K, 6)) + 2.0 * rng.normal(size=6)  # which pull at the same weights
    slope, gram = rng.normal(size=K) + 3.0, changes @ changes.T
    most = -np.inf
    for kind in itertools.product((0, 1, 2), repeat=K):
        free, x = np.flatnonzero(np.array(kind) == 2), np.array(kind, float)
        x[free] = 0.0
        x[free] = np.linalg.solve(gram[np.ix_(free, free)], (slope - gram @ x)[free])
        if ((x >= 0) & (x <= 1)).all():
            most = max(most, slope @ x - 0.5 * x @ gram @ x)
    shares = np.zeros(K)
    best_shares(slope, gram, shares)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert slope @ shares - 0.5 * shares @ gram @ shares == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize("sizes", [[5], [0, 3], [4, 20, 0, 11, 20]])
def test_products_of_changes(sizes):
    rng, d = np.random.default_rng(0), 20
    columns = [rng.permutation(d)[:m].astype(np.int32) for m in sizes]
    values, scratch = [rng.normal(size=m) for m in sizes], np.zeros(d)
    dense = np.zeros((len(sizes), d))
    for row, at, value in zip(dense, columns, values, strict=True):
        row[at] = value
    gram = np.diag(np.einsum("ij,ij->i", dense, dense))
    products(np.cumsum(sizes), np.concatenate(columns), np.concatenate(values), scratch, gram)
    np.testing.assert_allclose(gram, dense @ dense.T, atol=1e-12)
    assert not scratch.any()


@pytest.mark.parametrize("visits_per_round, sparse", [(1, True), (60, False)])
def test_changes_travel_in_the_smaller_form(visits_per_round, sparse):
    """A visit changes the weights of two of 30 classes; many change those of most, and then columns are not sent."""
    rng = np.random.default_rng(0)
    problem = RescaledHinge().problem(mm.Multiclass().bind(rng.normal(size=(240, 5)), np.arange(240) % 30), C=1.0)
    engine = mm.Sharded(shards=2, visits_per_round=visits_per_round).engine(problem, 0)
    state = engine.init(problem)
    for _ in range(3):
        engine.step(state)
        for change in state.changes:
            columns, values = change.entries()
            assert (change.columns is not None) == sparse == (12 * np.count_nonzero(values) < 8 * len(state.inner.u))
            assert len(np.unique(columns)) == len(values)
    assert dual_of(state) > 0.0


def test_a_change_that_moves_nothing_stays():
    shares = np.zeros(2)
    best_shares(np.array([1.0, 0.0]), np.zeros((2, 2)), shares)
    assert shares.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "words, combine",
    [({}, "exact"), ({"loss": "squared_hinge"}, "exact"), ({"positive": True}, "exact"), ({}, "cocoa+")],
    ids=str,
)
@pytest.mark.parametrize("visits_per_round", [3, 60])
def test_the_dual_never_falls(words, combine, visits_per_round, monkeypatch):
    """Round by round, even where all examples are the same and every shard wants what the others want."""
    words, positive = dict(words), None
    bound = mm.Chain().bind([X[3]] * 24, [Y[3]] * 24)
    if words.pop("positive", False):
        positive = np.arange(bound.n_weights) % 2 == 0
    problem = RescaledHinge(**words).problem(bound, C=1.0, positive=positive)
    engine = mm.Sharded(shards=4, visits_per_round=visits_per_round, combine=combine).engine(problem, 0)
    duals, combined = [0.0], engine._combine

    def watched(state, changes):
        gain = combined(state, changes)
        state.gather()  # settles the round
        duals.append(dual_of(state))
        assert gain >= 0.0 and duals[-1] >= duals[-2] + gain - 1e-10 * abs(duals[-1])
        state.current = False
        return gain

    monkeypatch.setattr(engine, "_combine", watched)
    result = run(engine, problem, tol=1e-6, max_passes=100)
    assert result.status.code == "converged" and len(duals) > 10


def test_adding_may_lose_where_the_best_shares_do_not():
    bound = mm.Chain().bind([X[3]] * 24, [Y[3]] * 24)
    problem = RescaledHinge().problem(bound, C=1.0)
    first = {}
    for combine in ("exact", "average", "add"):
        engine = mm.Sharded(shards=8, visits_per_round=3, combine=combine).engine(problem, 0)
        state = engine.init(problem)
        engine.step(state)
        first[combine] = dual_of(state)
    assert first["exact"] >= (1 - 1e-12) * first["average"] > 0.0 > first["add"]


@pytest.mark.parametrize(
    "words", [{}, {"loss": "squared_hinge"}, {"loss": mm.Ramp()}, {"positive": ["transition"]}], ids=str
)
def test_weights_do_not_depend_on_the_workers(words):
    solver = mm.Sharded(shards=4, visits_per_round=5)
    fits = [
        mm.SequenceTagger(C=0.3, solver=solver, tol=1e-4, max_passes=40, n_jobs=n, **words).fit(X, Y)
        for n in (1, 2, 4, 8)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.weights_, fits[0].weights_)
        assert other.certificate_ == fits[0].certificate_ and other.oracle_calls_ == fits[0].oracle_calls_


@pytest.mark.parametrize(
    "words, combine",
    [({}, "exact"), ({"loss": "squared_hinge"}, "exact"), ({"positive": ["transition"]}, "exact"), ({}, "cocoa+")],
    ids=str,
)
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_any_number_of_shards_has_the_optimum_of_the_default(words, combine, shards):
    whole = mm.SequenceTagger(C=0.3, tol=1e-6, **words).fit(X, Y)
    solver = mm.Sharded(shards=shards, visits_per_round=4, combine=combine)
    cut = mm.SequenceTagger(C=0.3, tol=1e-6, solver=solver, max_passes=500, **words).fit(X, Y)
    assert cut.status_.code == "converged"
    assert cut.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=3e-6)
    assert (np.diff(cut.history_["dual"]) >= -1e-9 * abs(cut.certificate_.dual)).all()


def test_shards_of_single_examples():
    """As many shards as there are examples, and no more."""
    whole = mm.SequenceTagger(C=0.3, tol=1e-3).fit(X, Y)
    cut = mm.SequenceTagger(C=0.3, tol=1e-3, solver=mm.Sharded(shards=1000)).fit(X, Y)
    assert cut.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-3)
    assert len(cut.state_.shards) == len(X)


def test_a_model_in_plain_python_is_sharded_too():
    tiny = Tiny("own", C=0.5)
    result = solve(tiny, mm.Sharded(shards=2, visits_per_round=2), tol=1e-9, max_passes=3000)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)


def test_warm_starts_go_both_ways():
    problem = chains()
    shards = mm.Sharded(shards=3, visits_per_round=5)
    first = run(mm.Auto().engine(problem, 0), problem, tol=1e-5)
    second = run(shards.engine(problem, 0), problem, tol=1e-5, warm=first.state)
    assert len(second.history) == 1  # it was good enough already
    np.testing.assert_allclose(second.weights, first.weights, atol=1e-12)
    again = run(shards.engine(problem, 0), problem, tol=1e-5, warm=second.state)
    assert len(again.history) == 1
    back = run(mm.Auto().engine(problem, 0), problem, tol=1e-5, warm=second.state.joined())
    assert len(back.history) == 1
    other = chains(C=0.6)
    moved = run(shards.engine(other, 0), other, tol=1e-6, max_passes=500, warm=second.state)
    cold = run(mm.Auto().engine(other, 0), other, tol=1e-6)
    assert moved.certificate.primal == pytest.approx(cold.certificate.primal, rel=3e-6)


@pytest.mark.parametrize("executor", [Serial, lambda: Threads(2)], ids=["serial", "threads"])
@pytest.mark.parametrize("when", ["before", "after", "between"])
def test_an_interrupted_round_counts_for_nothing(executor, when, monkeypatch):
    here = executor()
    problem = chains().with_oracles(lambda oracle: ShardedOracle(oracle, here))
    engine = mm.Sharded(shards=4, visits_per_round=5).engine(problem, 0)
    state = engine.init(problem)
    engine.step(state)
    dual, shard = dual_of(state), state.shards[2]
    work, settle = shard.round, shard.settle

    def interrupted(order, changes):
        if when == "between":
            settle(order.shares, changes)
        if when == "after":
            work(order, changes)
        raise KeyboardInterrupt

    monkeypatch.setattr(shard, "round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.step(state)
    assert dual_of(state) >= dual - 1e-12
    A, _, alpha, _ = state.joined().working_set.planes()
    np.testing.assert_allclose(state.inner.u, A.T @ alpha, atol=1e-12)
    for other in state.shards:
        np.testing.assert_array_equal(other.state.u, state.inner.u)
    here.close()


def test_copies_of_the_weights_stay_together():
    problem = chains()
    engine = mm.Sharded(shards=3, visits_per_round=4).engine(problem, 0)
    state = engine.init(problem)
    for _ in range(5):
        engine.step(state)
        for shard in state.shards:
            shard.settle(state.shares, state.changes)
        state.shares, state.changes = [1.0] * 3, []
        copies = [shard.state.u for shard in state.shards]
        A, _, alpha, _ = state.joined().working_set.planes()
        for copy in copies:
            np.testing.assert_allclose(copy, A.T @ alpha, atol=1e-10)


@pytest.mark.parametrize(
    "words, message",
    [
        ({"shards": "many"}, 'shards must be a whole number >= 1 or "auto"'),
        ({"shards": 0}, "shards must be a whole number >= 1, got 0"),
        ({"visits_per_round": 0}, "visits_per_round must be a whole number >= 1, got 0"),
        ({"visits_per_round": "few"}, "visits_per_round must be a whole number >= 1 or \"auto\", got 'few'"),
        ({"combine": "best"}, 'combine must be "exact", "add", "average" or "cocoa\\+"'),
        ({"sampling": "cyclic"}, 'sampling must be "gap", "permutation" or "random"'),
    ],
)
def test_wrong_parameters_are_named(words, message):
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(solver=mm.Sharded(**words)).fit(X, Y)


def test_too_little_memory_is_refused_with_a_remedy():
    with pytest.raises(MemoryError, match='memory, or use solver="auto"'):
        mm.SequenceTagger(solver=mm.Sharded(shards=2, memory=100_000), C=1.0, tol=1e-9).fit(X, Y)


def test_what_is_not_handled_is_refused():
    with pytest.raises(ValueError, match="l1"):
        mm.SequenceTagger(solver="sharded", penalty="l1").fit(X, Y)


def test_cocoa_with_positive_weights_is_refused():
    with pytest.raises(ValueError, match='positive: use combine="exact"'):
        mm.SequenceTagger(solver=mm.Sharded(combine="cocoa+"), positive=["transition"]).fit(X, Y)


def test_the_number_of_shards_follows_the_examples():
    assert [mm.Sharded().count(n) for n in (0, 1, 99_999, 100_000, 10**6)] == [1, 1, 1, 2, 8]
    assert mm.Sharded(shards=5).count(3) == 3
