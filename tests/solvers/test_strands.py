"""Strands: blocks visited several at a time. Feasible multipliers, a dual that never falls, workers, full stores."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.callbacks import Callback
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.kernel import kernel
from maxmargin.planes import Planes
from maxmargin.solvers import strands
from maxmargin.solvers.driver import run
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.working_set import WorkingSet
from maxmargin.team_kernel import wait_for_all
from reference.problems import random_chains

X, Y = random_chains(60, 4, 3, lengths=(1, 6), seed=0)
WHOLE = random_chains(60, 4, 3, lengths=(1, 6), seed=0, integer=True)  # planes in packed words
SAME = [X[3]] * 40, [Y[3]] * 40  # every block wants what all others want


def problem_of(data=(X, Y), workers=1, C=0.3, **words):
    problem = RescaledHinge(**words).problem(mm.Chain().bind(*data), C=C)
    return problem.with_oracles(lambda oracle: ShardedOracle(oracle, Threads(workers) if workers > 1 else Serial()))


def engine_of(problem, count=4, **changes):
    """Blocks solved by visits alone, so that strands do all of the work."""
    settings = mm.Auto(extrapolate=False).settings(problem.n_examples, problem.n_columns)
    return DualEngine(replace(settings, master="smo", strands=count, **changes), 0)


@pytest.fixture
def teams(monkeypatch):
    """The teams that a test makes; a run that has ended keeps none."""
    found, init = [], strands.Team.__init__

    def noted(team, *arguments):
        found.append(team)
        init(team, *arguments)

    monkeypatch.setattr(strands.Team, "__init__", noted)
    return found


def settled(state):
    """The state with what strands know."""
    if state.team is not None:
        state.team.settle(state)
    return state


def dual_of(state):
    """The dual value from planes and multipliers alone, which must be feasible and agree with u."""
    A, b, alpha, block = state.working_set.planes()
    store, u = state.working_set.store, A.T @ alpha
    np.testing.assert_allclose(u, state.u, atol=1e-12 * max(1.0, abs(u).max()))
    bounded = np.isfinite(store.total)
    spent = np.bincount(block, alpha, minlength=len(store.total))[bounded] + store.origin[bounded]
    np.testing.assert_allclose(spent, store.total[bounded], rtol=1e-12)
    assert alpha.min(initial=0.0) >= 0.0 and store.origin.min() >= 0.0
    assert state.working_set.linear == pytest.approx(float(alpha @ b), rel=1e-10, abs=1e-12)
    return float(alpha @ b - 0.5 * u @ u)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("data", [(X, Y), WHOLE, SAME], ids=["random", "whole", "same"])
@pytest.mark.parametrize("per_round", [4, 16, 64])
def test_the_dual_never_falls_and_reaches_the_optimum(loss, data, per_round, monkeypatch):
    """However many blocks are visited in a round, even where each of them wants what all others want."""
    monkeypatch.setattr(strands, "PER_SHORT_ROUND", per_round)
    problem = problem_of(data, C=1.0, loss=loss)
    engine, duals = engine_of(problem), [0.0]
    state = engine.init(problem)
    for _ in range(40):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
        duals.append(dual_of(state))
        assert duals[-1] >= duals[-2] - 1e-10 * abs(duals[-1])
    result = run(mm.Auto().engine(problem, 0), problem, tol=1e-9, max_passes=2000)
    assert duals[-1] <= result.certificate.primal * (1 + 1e-9)
    cut = run(engine_of(problem), problem, tol=1e-4, max_passes=3000)
    assert cut.certificate.primal == pytest.approx(result.certificate.primal, rel=1.1e-4)


def test_a_pass_whose_changes_collide_is_taken_back_in_part(teams):
    """Equal examples: the sum of the best steps of strands is far beyond the optimum, and a share of it is not."""
    problem = problem_of(SAME, C=1.0)
    result = run(engine_of(problem), problem, tol=1e-6, max_passes=30)
    assert teams[0].retreats > 0 and result.state.team is None


def test_rounds_that_were_too_long_are_tried_less_and_less_often():
    """Where long rounds lose whole passes and those half as long gain nearly all, few of many passes are lost."""
    team, lost = strands.Team(None, 4), 0
    for _ in range(200):
        too_long = team.finer == 1
        lost += too_long
        team._adjust(0.0 if too_long else 0.95, 1.0)
    assert lost <= 8


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X, Y), {}), (WHOLE, {}), ((X, Y), {"loss": "squared_hinge"}), ((X, Y), {"loss": mm.Ramp()}),
        ((X, Y), {"positive": ["transition"]}),
    ],
    ids=["random", "whole", "squared", "ramp", "signs"],
)  # fmt: skip
def test_weights_do_not_depend_on_the_workers(data, words, monkeypatch):
    monkeypatch.setattr(strands.os, "cpu_count", lambda: 8)
    fits = [
        mm.SequenceTagger(C=0.3, solver=mm.Sharded(strands=8), tol=1e-4, max_passes=40, n_jobs=n, **words).fit(*data)
        for n in (1, 2, 4, 8)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.weights_, fits[0].weights_)
        assert other.certificate_ == fits[0].certificate_ and other.oracle_calls_ == fits[0].oracle_calls_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("n", "seed", "tol", "words"),
    [
        (120, 753513, 1e-7, {"C": 10.0, "loss": "squared_hinge"}),  # late jumps, whose sums are all rounding
        (300, 1, 1e-3, {"C": 1.0, "solver": mm.Sharded(shards=1, memory=288_000)}),  # less than strands ask for
    ],
    ids=["jumps", "short memory"],
)
def test_weights_do_not_depend_on_workers_beside_those_of_the_strands(n, seed, tol, words, monkeypatch):
    """With more workers than strands, all of them answer the questions."""
    monkeypatch.setattr(strands.os, "cpu_count", lambda: 8)
    words = {"solver": mm.Sharded(shards=1), "tol": tol, "max_passes": 60, "random_state": 0} | words
    one, three = (
        mm.SequenceTagger(n_jobs=k, **words).fit(*random_chains(n, 4, 3, lengths=(1, 6), seed=seed)) for k in (1, 3)
    )
    np.testing.assert_array_equal(one.weights_, three.weights_)
    assert one.certificate_ == three.certificate_ and one.oracle_calls_ == three.oracle_calls_


@pytest.mark.parametrize("C", [1e-8, 1e-6, 1e-4])
def test_a_jump_whose_gain_is_below_rounding_is_noticed(C):
    """Multipliers have moved all the same: the sums that a certificate rests on stay those of the multipliers."""
    problem = problem_of(random_chains(70, 4, 3, lengths=(1, 6), seed=5), C=C, loss="squared_hinge")
    engine = mm.Sharded(shards=1).engine(problem, 0)
    engine.settings = replace(engine.settings, master="smo")
    state = engine.init(problem)
    for _ in range(40):
        if engine.certificate_due(state):
            certificate = engine.certificate(state)
            assert certificate.dual <= certificate.primal * (1 + 1e-12)
        engine.step(state)
        dual_of(state)


@pytest.mark.parametrize("count", [1, 2])
def test_further_examples_find_the_steps_and_gaps_of_those_before(count):
    """Squared slacks: the columns of examples that are gone stand behind those of the present ones."""
    first, second = (problem_of((X[part], Y[part]), C=1.0, loss="squared_hinge") for part in (slice(30), slice(30, 60)))
    engine = engine_of(first, count)
    state = engine.init(first)
    for _ in range(6):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
    engine.certificate(state)
    before = dual_of(state)
    engine.extend(state, second)
    assert dual_of(state) > before  # planes that waited have joined
    for i in range(30):
        planes = state.oracle.planes(state.w[: second.n_columns].copy(), np.array([i]))
        A, b, alpha, block = state.working_set.planes()
        inner = float((alpha * (b - A @ state.u))[block == i].sum())
        own, loss = state.u[second.n_weights + i], float(planes.losses(30)[i])
        engine.take_in(state, planes)
        dual_of(settled(state))
        gap = max(0.5 * second.weight[i] * loss**2 - 0.5 * own**2 - inner, 0.0)
        assert state.working_set.store.gap[i] == pytest.approx(gap, abs=1e-9)


def test_words_take_both_forms(monkeypatch):
    """Entries or numbers that packed words cannot hold, from the beginning or from a later plane on: same weights."""
    problem = problem_of(WHOLE)
    whole = run(engine_of(problem), problem, tol=1e-5, max_passes=500)
    kernel, forms = strands.vk.is_small_and_whole, []
    for most in (1, 10, 1 << 22):
        monkeypatch.setattr(strands.vk, "MOST", most)
        monkeypatch.setattr(strands.vk, "is_small_and_whole", lambda entries, most=most: most > 1 and kernel(entries))
        mask, begin = [], strands.Team._write

        def noted(team, *arguments, mask=mask, begin=begin):
            begin(team, *arguments)
            mask.append(int(team.words.mask[0]))

        monkeypatch.setattr(strands.Team, "_write", noted)
        other = run(engine_of(problem), problem, tol=1e-5, max_passes=500)
        forms.append(mask[-1])
        assert other.certificate == whole.certificate
        np.testing.assert_array_equal(other.weights, whole.weights)
    assert forms == [strands.vk.PLAIN, strands.vk.PLAIN, strands.vk.PACKED]


def test_entries_that_become_too_large_while_planes_join(teams):
    """Real numbers in one example only: words that were packed are made again, and the fit ends where others do."""
    counts, labels = [x.copy() for x in WHOLE[0]], WHOLE[1]
    counts[int(np.argmax([len(y) for y in labels]))] += 0.25
    problem = problem_of((counts, labels))
    result = run(engine_of(problem), problem, tol=1e-5, max_passes=500)
    assert result.certificate.relative_gap <= 1e-5
    assert teams[0].words.mask[0] == strands.vk.PLAIN
    plain = run(mm.Auto().engine(problem, 0), problem, tol=1e-5, max_passes=500)
    assert result.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-5)


def test_quotas_that_are_too_small_grow(monkeypatch):
    """Strands that find no room in their part of the working set go on where they were with a larger one."""
    problem, tries = problem_of(), []
    whole = run(engine_of(problem), problem, tol=1e-5, max_passes=500)
    asked, own = strands.Team._asked, strands.Team._own

    def tight(team, *arguments):
        room, join = asked(team, *arguments)
        tries.append([])
        return room._replace(rows=3, entries=20, wide=1), join

    def counted(team, ws, rows, *arguments):
        if rows > 0 and tries:
            tries[-1].append(rows)
        return own(team, ws, rows, *arguments)

    monkeypatch.setattr(strands.Team, "_asked", tight)
    monkeypatch.setattr(strands.Team, "_own", counted)
    short = run(engine_of(problem), problem, tol=1e-5, max_passes=500)
    assert any(rows[:3] == [3, 6, 12] for rows in tries) and short.certificate == whole.certificate
    assert short.state.oracle.argmax_calls == whole.state.oracle.argmax_calls  # nothing is asked twice
    np.testing.assert_array_equal(short.weights, whole.weights)


def test_memory_that_ends_while_planes_join_is_left_to_others(monkeypatch):
    """Some have joined and have words by then."""
    problem = problem_of()
    engine, reserve, calls = engine_of(problem), WorkingSet.reserve, [0]
    state = engine.init(problem)
    asked = strands.Team._asked

    def tight(team, *arguments):
        room, join = asked(team, *arguments)
        calls[0] = 0
        return room._replace(rows=6, entries=60), join

    def refusing(ws, *arguments, **words):
        calls[0] += 1
        return calls[0] == 2 or reserve(ws, *arguments, **words)

    monkeypatch.setattr(strands.Team, "_asked", tight)
    monkeypatch.setattr(WorkingSet, "reserve", refusing)
    duals = [0.0]
    for _ in range(15):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
        duals.append(dual_of(state))
        assert duals[-1] >= duals[-2] - 1e-10 * abs(duals[-1])


def test_planes_of_an_example_may_come_apart(monkeypatch):
    """Pending planes of a resumed run lie before those of a new look."""
    problem, kernel = problem_of(), strands.sk.bring_in
    engine = engine_of(problem)
    state = engine.init(problem)
    engine.step(state)
    first = state.oracle.planes(state.w, np.arange(len(Y)), 1)
    second = state.oracle.planes(np.random.default_rng(0).normal(size=len(state.w)), np.arange(len(Y)), 1)

    def sorted_only(*arguments):
        assert (np.diff(arguments[1]) >= 0).all()
        return kernel(*arguments)

    monkeypatch.setattr(strands.sk, "bring_in", sorted_only)
    before = dual_of(state)
    engine.take_in(state, Planes.concatenate([first, second]))
    state.team.settle(state)
    assert dual_of(state) > before


def test_strands_ask_as_workers_that_share_the_questions_do(teams, monkeypatch):
    """More workers than strands share out the questions themselves; the answers join in the same order."""
    monkeypatch.setattr(strands.os, "cpu_count", lambda: 8)
    problems = [problem_of(), problem_of(workers=3)]
    one, three = (run(engine_of(p, count=2), p, tol=1e-5, max_passes=500) for p in problems)
    assert [team.shared_out for team in teams] == [False, True]
    assert one.certificate == three.certificate and one.state.oracle_calls == three.state.oracle_calls
    assert one.state.oracle.argmax_calls == three.state.oracle.argmax_calls
    np.testing.assert_array_equal(one.weights, three.weights)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["revisit_rounds", "forget_all", "ask"])
@pytest.mark.parametrize("call", [1, 5])
def test_an_interrupted_round_keeps_nobody_waiting(name, call, late, monkeypatch):
    """Ctrl-C comes to the thread that runs the first strand; the other one must not wait for it for ever."""
    problem, left = problem_of(workers=2), [call]

    def interrupting(act):
        def acting(self, kernel, *arguments):
            if arguments[-2] == 0 and (name == "ask" or kernel is getattr(strands.sk, name, None)):
                left[0] -= 1
            if arguments[-2] != 0 or left[0] != 0:
                return act(self, kernel, *arguments)
            if late:
                act(self, kernel, *arguments)
            left[0] = -1
            raise KeyboardInterrupt

        return acting

    verb = "ask" if name == "ask" else "work"
    monkeypatch.setattr(strands._Worker, verb, interrupting(getattr(strands._Worker, verb)))
    monkeypatch.setattr(strands.os, "cpu_count", lambda: 2)
    result = run(engine_of(problem, count=2), problem, tol=1e-9, max_passes=100)
    assert left[0] < 0 and result.status.code == "interrupted" and result.certificate.certified
    assert dual_of(result.state) == pytest.approx(result.certificate.dual)
    assert result.certificate.gap > 0.0


def test_an_error_in_one_thread_keeps_nobody_waiting(monkeypatch):
    """The first strand waits in compiled code for the other one, which fails before it begins."""
    problem, work = problem_of(workers=2), strands._Worker.work

    class Failing:
        def __init__(self, rounds):
            self.rounds = rounds

        def __call__(self, *arguments):
            if arguments[-2] == 1:
                raise MemoryError("no memory for this strand")
            return self.rounds(*arguments)

    def failing(self, rounds, *arguments):
        return work(self, Failing(rounds) if rounds is strands.sk.revisit_rounds else rounds, *arguments)

    monkeypatch.setattr(strands._Worker, "work", failing)
    monkeypatch.setattr(strands.os, "cpu_count", lambda: 2)
    with pytest.raises(MemoryError, match="this strand"):
        run(engine_of(problem, count=2), problem, tol=1e-9, max_passes=100)


@pytest.mark.parametrize("data", [(X, Y), WHOLE], ids=["random", "whole"])
def test_a_resumed_run_ends_with_the_same_weights(data):
    """What strands know beyond planes and multipliers ends with each certificate."""
    problem, saved = problem_of(data), []

    class Keep(Callback):
        def on_certificate(self, run):
            saved.append(run.to_arrays())

    whole = run(engine_of(problem), problem, tol=1e-6, max_passes=200, callbacks=[Keep()])
    assert len(saved) > 3
    for arrays in saved[:-1]:
        again = run(engine_of(problem), problem, tol=1e-6, max_passes=200, resume=arrays)
        np.testing.assert_array_equal(again.weights, whole.weights)
        assert again.certificate == whole.certificate


def test_too_little_memory_is_left_to_merging():
    """How little is too little depends on rounding: from enough downwards."""
    for memory in range(70_000, 50_000, -1_000):
        solver = mm.Sharded(memory=memory)
        fit = mm.SequenceTagger(C=0.3, solver=solver, tol=1e-2, max_passes=200).fit(X, Y)
        assert fit.certificate_.relative_gap <= 0.05
        if fit.state_.working_set.limit is not None:
            return
    raise AssertionError("memory was never too little")


@kernel("void(int64[::1], float64[::1], int64, int64)")
def _relay(arrived, sums, worker, workers):
    """Each worker adds what its neighbour has last written; a wait that lets one run ahead spoils the sums."""
    waits = 0
    for turn in range(2000):
        before = sums[(turn % 2) * 64 + 8 * ((worker + 1) % workers)]
        sums[((turn + 1) % 2) * 64 + 8 * worker] = before + 1.0
        waits += 1
        wait_for_all(arrived, waits, workers)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_wait_for_each_other(workers):
    arrived, sums = np.zeros(8, np.int64), np.zeros(128)
    team = [threading.Thread(target=_relay, args=(arrived, sums, k, workers)) for k in range(workers)]
    for member in team:
        member.start()
    for member in team:
        member.join()
    assert sums[: 8 * workers : 8].tolist() == [2000.0] * workers
