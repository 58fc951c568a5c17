"""Averages of the dual in shards: naive means of the multipliers behind every round, with certificates of their own."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import J, next_minimum, ramp_problem, solve_ramp
from agreement.tiny import Tiny, best
from maxmargin.callbacks import Callback
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.driver import run
from maxmargin.solvers.shard_sets import gathered
from maxmargin.solvers.sharded_engine import ShardedState
from reference.certificate import recompute
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RULES = ("uniform", "weighted", "tail")
PROBLEMS = [
    Tiny("chain", cost="matrix", C=1.0, seed=1, n=7),
    Tiny("chain", cost="matrix", signed=True, C=1.0, seed=2, n=7),
    Tiny("multiclass", cost="matrix", weighted=True, C=3.0, seed=3, n=8),
    Tiny("chain", "squared_hinge", cost="matrix", C=0.5, seed=4, n=7),
    Tiny("multiclass", "squared_hinge", signed=True, C=0.5, seed=5, n=8),
]
X, Y = random_chains(60, 4, 3, lengths=(1, 6), seed=0)


def solver(rule, shards=3, visits=2, **words):
    return mm.Sharded(shards=shards, visits_per_round=visits, averaging=rule, **words)


class Seen:
    """What every round of a run in this process left behind: its visits, and the planes with their multipliers."""

    def __init__(self, engine, state):
        self.visits, self.points, self.sums, self._state, self._asked = [], [], [], state, []
        for shard in state.shards:
            shard.round = self._counted(shard, shard.round)
        engine._combine = self._noted(engine._combine)

    def _counted(self, shard, work):
        def counted(order, changes):
            plan = shard.plan[order.number] if order.number < len(shard.plan) else []
            self._asked.append(len(np.unique(getattr(plan, "example", plan))))
            return work(order, changes)

        return counted

    def _noted(self, combine):
        def noted(state, changes):
            gain = combine(state, changes)
            self.note()
            return gain

        return noted

    def note(self):
        """A round has been combined."""
        self.visits.append(sum(self._asked))
        self._asked.clear()
        self.points.append(self._settled())
        A, b, alpha, _ = self.points[-1]
        self.sums.append((A.T @ alpha, b @ alpha))

    def _settled(self):
        """(A, b, alpha, block) of all shards, from copies of them: the run does not notice."""
        sets = []
        for shard in self._state.shards:
            other, ws = copy(shard), shard.state.working_set.copy()
            other.state = replace(shard.state, working_set=ws)
            other.settle(self._state.shares, ())
            sets.append((ws, np.arange(ws.n_blocks)))
        return gathered(sets, 1 << 30).planes()

    def weights(self, rule, first=0):
        """The weight of each round: how many visits it has had, or what their numbers add up to."""
        rounds = np.repeat(np.arange(len(self.visits)), self.visits)
        numbers = np.arange(1.0, len(rounds) + 1) if rule == "weighted" else np.ones(len(rounds))
        return np.bincount(rounds, numbers)[first:]

    def mean(self, rule, first=0):
        """(u, sum alpha b) averaged over the rounds from ``first`` on."""
        us, linears = zip(*self.sums[first:], strict=True)
        weights = self.weights(rule, first)
        return np.average(us, axis=0, weights=weights), np.average(linears, weights=weights)

    def multipliers(self, tiny, rule, first=0):
        """Averaged multipliers of all outputs of a tiny problem, example by example."""
        weights, d = self.weights(rule, first), tiny.planes[0][0].shape[1]
        sums = [np.zeros(len(b)) for _, b in tiny.planes]
        for weight, (A, b, alpha, block) in zip(weights, self.points[first:], strict=True):
            for row, offset, amount, i in zip(A.toarray()[:, :d], b, alpha, block, strict=True):
                distance = np.abs(tiny.planes[i][0] - row).max(axis=1) + np.abs(tiny.planes[i][1] - offset)
                assert distance.min() <= 1e-12, "a plane that belongs to no output"
                sums[i][distance.argmin()] += weight * amount / weights.sum()
        return sums


def watched(engine, problem):
    state = engine.init(problem)
    return state, Seen(engine, state)


def certificates(engine, state, count):
    """Certificates when they are due, between steps; the run may go on from each."""
    while count:
        if engine.certificate_due(state):
            yield engine.certificate(state).check()
            count -= 1
        engine.step(state)


def is_mean(point, mean):
    scale = 1e-10 * (1 + np.abs(mean[0]).max())
    return np.abs(point.u - mean[0]).max() <= scale and abs(point.linear - mean[1]) <= 1e-10 * (1 + abs(mean[1]))


@pytest.mark.parametrize("rule", ["uniform", "weighted"])
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_the_certificate_is_that_of_averaged_multipliers(tiny, rule):
    """The multipliers of all outputs, averaged by hand, are feasible and have the primal and dual of the run."""
    problem, optimum = tiny.problem(), best(tiny).objective
    engine = solver(rule).engine(problem, 3)
    state, seen = watched(engine, problem)
    for certificate in certificates(engine, state, 3):
        w = engine.weights(state)
        check = recompute(
            w, seen.multipliers(tiny, rule), tiny.planes, tiny.example_weight, squared=tiny.squared,
            positive=tiny.positive,
        )  # fmt: skip
        assert w == pytest.approx(check.weights, abs=1e-10)
        assert certificate.primal == pytest.approx(check.primal, rel=1e-10)
        assert certificate.dual == pytest.approx(check.dual, rel=1e-10, abs=1e-12)
        assert certificate.dual <= optimum * (1 + 1e-7) and certificate.primal >= optimum * (1 - 1e-7)
        for shard in state.shards:  # they go on from where they were
            assert np.array_equal(shard.state.w, state.inner.w)
    assert len(seen.points) > 40 and not np.allclose(w, state.inner.w[: len(w)])


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_a_tail_is_the_later_half_or_more(tiny):
    problem, left_out = tiny.problem(), []
    engine = solver("tail").engine(problem, 3)
    state, seen = watched(engine, problem)
    for certificate in certificates(engine, state, 5):
        point, half = engine.dual_point(state), 0.5 * sum(seen.visits)
        halves = [r for r in range(len(seen.points)) if sum(seen.visits[r:]) >= half]
        fits = [r for r in halves if is_mean(point, seen.mean("tail", r))]
        assert fits, f"after {len(seen.points)} rounds"
        left_out.append(fits[0])
        check = recompute(
            engine.weights(state), seen.multipliers(tiny, "tail", fits[0]), tiny.planes, tiny.example_weight,
            squared=tiny.squared, positive=tiny.positive,
        )  # fmt: skip
        assert certificate.primal == pytest.approx(check.primal, rel=1e-10)
        assert certificate.dual == pytest.approx(check.dual, rel=1e-10, abs=1e-12)
    assert left_out[0] == 0 < left_out[-1]


@pytest.mark.parametrize("rule", ["uniform", "weighted"])
@pytest.mark.parametrize("combine", ["exact", "add", "average", "cocoa+"])
def test_what_stays_of_a_change_counts(combine, rule):
    """Examples that all pull at the same weights: of every change, as much as the rule of combination keeps."""
    problem = RescaledHinge().problem(mm.Chain().bind([X[3]] * 24, [Y[3]] * 24), C=1.0)
    engine = solver(rule, shards=4, visits=3, combine=combine).engine(problem, 0)
    state, seen = watched(engine, problem)
    for _ in range(4):
        engine.step(state)
    assert combine == "add" or min(map(len, seen.points)) > 0
    assert is_mean(engine.dual_point(state), seen.mean(rule))


@pytest.mark.parametrize(("visits", "sparse"), [(1, True), (60, False)])
def test_sparse_and_dense_changes_count_alike(visits, sparse):
    rng = np.random.default_rng(0)
    problem = RescaledHinge().problem(mm.Multiclass().bind(rng.normal(size=(240, 5)), np.arange(240) % 30), C=1.0)
    engine = solver("weighted", shards=2, visits=visits, cached_passes=0).engine(problem, 0)
    state, seen = watched(engine, problem)
    for _ in range(3):
        engine.step(state)
        assert all((change.columns is not None) == sparse for change in state.changes)
    assert is_mean(engine.dual_point(state), seen.mean("weighted"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_resuming_is_exact_at_every_certificate(tiny, rule):
    """Also without shards, which have the same average and then one of their own path."""
    problem = tiny.problem()
    engine, whole = solver(rule).engine(problem, 5), solver(rule, shards=1).engine(problem, 5)
    state, twins = engine.init(problem), []
    for certificate in certificates(engine, state, 4):
        for twin in twins:
            assert next(certificates(engine, twin, 1)) == certificate
            assert np.array_equal(engine.weights(twin), engine.weights(state))
        arrays = state.to_arrays()
        twins.append(engine.from_arrays(problem, arrays))
        assert np.array_equal(engine.weights(twins[-1]), engine.weights(state))
        one = whole.from_arrays(problem, arrays)
        assert whole.dual_point(one).linear == pytest.approx(engine.dual_point(state).linear, rel=1e-12)
        np.testing.assert_allclose(whole.weights(one), engine.weights(state), atol=1e-13)
        back = engine.from_arrays(problem, one.to_arrays() | {"sharded": arrays["sharded"]})
        assert np.array_equal(engine.weights(back), engine.weights(state))


class SaveAll(Callback):
    def __init__(self):
        self.arrays = []

    def on_certificate(self, run):
        self.arrays.append(run.to_arrays())


@pytest.mark.parametrize("words", [{}, {"positive": ["transition"]}, {"loss": mm.Ramp("best_output")}], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_whole_fits_resume_to_the_same_weights(rule, words):
    dials = {"C": 3.0, "solver": solver(rule, visits=7), "tol": 1e-9, "max_passes": 15, "random_state": 1} | words
    save = SaveAll()
    fitted = mm.SequenceTagger(callbacks=[save], **dials).fit(X, Y)
    for arrays in save.arrays[1:4]:
        resumed = mm.SequenceTagger(**dials).fit(X, Y, resume=arrays)
        assert np.array_equal(resumed.weights_, fitted.weights_)
        assert resumed.history_[["primal", "dual"]].equals(fitted.history_[["primal", "dual"]])


@pytest.mark.parametrize(
    "words", [{}, {"loss": "squared_hinge"}, {"loss": mm.Ramp("best_output")}, {"positive": ["transition"]}], ids=str
)
@pytest.mark.parametrize("rule", RULES)
def test_averages_do_not_depend_on_the_workers(rule, words):
    dials = {"C": 3.0, "solver": solver(rule, shards=4, visits=7), "tol": 1e-4, "max_passes": 16} | words
    one = mm.SequenceTagger(executor="serial", **dials).fit(X, Y)
    places = [("threads", 1), ("threads", 2)] + ([("processes", 1), ("processes", 2)] if rule == "tail" else [])
    for executor, n in places:
        other = mm.SequenceTagger(executor=executor, n_jobs=n, **dials).fit(X, Y)
        assert np.array_equal(other.weights_, one.weights_)
        assert other.certificate_ == one.certificate_ and other.oracle_calls_ == one.oracle_calls_


@pytest.mark.parametrize("rule", RULES)
def test_strands_share_out_the_argmaxes_of_an_average(rule):
    dials = {"C": 1.0, "solver": mm.Sharded(strands=3, averaging=rule), "max_passes": 20, "tol": 1e-4}
    one, two = (mm.SequenceTagger(n_jobs=n, **dials).fit(X, Y) for n in (1, 2))
    assert np.array_equal(one.weights_, two.weights_) and one.certificate_ == two.certificate_
    assert one.state_.working_set.store.moment.any() and not np.array_equal(one.weights_, one.state_.w)


@pytest.mark.parametrize("rule", RULES)
def test_warm_starts_begin_a_new_average_with_shards_or_without(rule):
    tiny = PROBLEMS[0]
    problem = tiny.problem()
    plain, sharded = mm.Auto().engine(problem, 0), solver(rule).engine(problem, 0)
    first = run(plain, problem, tol=1e-9, max_passes=300)
    state = sharded.init(problem, warm=first.state)
    assert sharded.weights(state) == pytest.approx(first.weights, abs=1e-12)
    sharded.step(state)  # at the optimum nothing moves, and so the average is the optimum
    assert sharded.weights(state) == pytest.approx(best(tiny).weights, abs=1e-3)
    for engine, warm in ((sharded, state), (plain, state.joined())):
        again = engine.init(problem, warm=warm)
        assert engine.weights(again) == pytest.approx(state.inner.u[: problem.n_weights], abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_rounds_of_a_ramp_begin_new_averages(rule):
    """Iterates of the round before stand for another problem."""
    tiny = Tiny("chain", cost="matrix", C=3.0, seed=1)
    problem = ramp_problem(tiny, "best_output")
    engine = solver(rule, shards=2).engine(problem.convex, 0)
    state = engine.init(problem.convex)
    for _ in range(3):
        for _ in range(6):
            engine.step(state)
        engine.move(state, problem.majorant(problem.linearise(3.0 * engine.weights(state))))
        assert np.array_equal(engine.weights(state), state.inner.w[: state.problem.n_weights])
        seen = Seen(engine, state)
        engine.step(state)
        if rule == "uniform":
            u, linear = seen.mean(rule)
            assert is_mean(engine.dual_point(state), (u - state.problem.shift, linear))
    for signed in (False, True):
        tiny = Tiny("chain", signed=signed, cost="matrix", C=3.0, seed=1)
        result = solve_ramp(tiny, solver(rule, shards=2), "best_output", tol=0.05, max_passes=800)
        assert result.certificate.primal == pytest.approx(J(tiny, result.weights, "best_output"), rel=1e-9)
        bound = next_minimum(tiny, result.weights, "best_output").objective
        assert result.certificate.dual <= bound + 1e-6 * abs(bound)


@pytest.mark.parametrize("when", ["before", "after", "before the average", "behind it"])
def test_an_interrupted_round_is_in_the_average_or_not_at_all(when, monkeypatch):
    """It is where it had been combined; the multipliers of all rounds that count are known from outside."""
    problem = PROBLEMS[0].problem()
    engine = solver("weighted", visits=1).engine(problem, 0)
    state, seen = watched(engine, problem)
    engine.step(state)
    shard, work, average = state.shards[1], state.shards[1].round, ShardedState.average
    times = [3]

    def now():
        times[0] -= 1
        return times[0] == 0

    def interrupted_round(*arguments):
        if now():
            if when == "after":
                work(*arguments)
            raise KeyboardInterrupt
        return work(*arguments)

    def interrupted_average(self):
        last = now()
        if not last or when == "behind it":
            average(self)
        if last:
            seen.note()
            raise KeyboardInterrupt

    if when in ("before", "after"):
        monkeypatch.setattr(shard, "round", interrupted_round)
    else:
        monkeypatch.setattr(ShardedState, "average", interrupted_average)
    with pytest.raises(KeyboardInterrupt):
        engine.step(state)
    monkeypatch.undo()
    assert times[0] <= 0
    assert is_mean(engine.dual_point(state), seen.mean("weighted"))
    seen._asked.clear()
    engine.step(state)
    assert is_mean(engine.dual_point(state), seen.mean("weighted"))


@pytest.mark.parametrize("shards", [1, 2])
def test_rules_that_do_not_exist(shards):
    with pytest.raises(ValueError, match=r'averaging must be None, "uniform", "weighted" or "tail", got \'mean\''):
        mm.SequenceTagger(solver=solver("mean", shards=shards)).fit(X, Y)


@pytest.mark.parametrize("rule", RULES)
def test_a_checkpoint_of_another_rule_is_refused(rule):
    problem = PROBLEMS[0].problem()
    engine = solver(rule).engine(problem, 0)
    state = engine.init(problem)
    next(certificates(engine, state, 1))
    arrays = state.to_arrays()
    for other in {None, "uniform", "weighted"} - {"uniform" if rule == "tail" else rule}:
        with pytest.raises(ValueError, match=r"set/(moment|mean) of the checkpoint"):
            solver(other).engine(problem, 0).from_arrays(problem, arrays)
