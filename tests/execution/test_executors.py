"""Workers: the order of answers, and weights that are the same bit for bit whatever their number."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.execution import remote
from maxmargin.execution.executors import Serial, Threads, make_executor, worker_count
from maxmargin.execution.home import Home
from maxmargin.execution.processes import Pipe, Processes
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.models.chain import Chain
from maxmargin.models.user import PythonModel
from maxmargin.oracles.oracle import ModelOracle
from reference.own_models import Nearest
from reference.problems import random_chains


class Failing(Nearest):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return None


X, Y = random_chains(60, 4, 3, lengths=(1, 7), seed=0)
RNG = np.random.default_rng(1)
VECTORS, KINDS = list(RNG.normal(size=(50, 3))), RNG.integers(0, 4, 50).tolist()

SOLVERS = {
    "auto": mm.Auto(),
    "auto, large batches": mm.Auto(batch=32),
    "auto, whole sweeps": mm.Auto(batch=64, visits=1.0),
    "sharded": mm.Sharded(shards=3, visits_per_round=5),
    "sharded, rounds by cost": mm.Sharded(shards=2),
    "cutting_plane": mm.CuttingPlane(),
    "cutting_plane, n": mm.CuttingPlane("n"),
    "frank_wolfe": mm.FrankWolfe(),
    "bcfw": mm.BCFW(),
    "sequential_dual": mm.SequentialDual(),
    "simplicial": mm.SimplicialDecomposition(),
    "simplicial, groups": mm.SimplicialDecomposition(blocks="one", working_set=20),
    "simplicial, working set": mm.SimplicialDecomposition(working_set=17, selection="random"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_weights_do_not_depend_on_the_number_of_threads(solver, loss):
    one, *others = [
        mm.SequenceTagger(C=0.1, loss=loss, solver=SOLVERS[solver], tol=1e-3, max_passes=12, n_jobs=n).fit(X, Y)
        for n in (1, 2, 3, None)
    ]
    assert one.weights_.any()
    for other in others:
        np.testing.assert_array_equal(one.weights_, other.weights_)
        assert one.certificate_ == other.certificate_
        assert one.oracle_calls_ == other.oracle_calls_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "sharded", "cutting_plane", "frank_wolfe"])
def test_the_weights_do_not_depend_on_the_number_of_processes(solver):
    one, *others = [
        mm.StructuredSVM(Nearest(), C=0.5, solver=SOLVERS[solver], max_passes=8, n_jobs=n).fit(VECTORS, KINDS)
        for n in (1, 2, 3)
    ]
    assert one.weights_.any()
    for other in others:
        np.testing.assert_array_equal(one.weights_, other.weights_)
        assert one.certificate_ == other.certificate_


def test_an_error_in_another_process_arrives_with_its_message():
    with pytest.raises(ValueError, match=r"example \d+: argmax returned None"):
        mm.StructuredSVM(Failing(), n_jobs=2, solver="cutting_plane").fit(VECTORS, KINDS)


class Counter:
    """Answers late or early, and knows how often it was asked."""

    def __init__(self, name):
        self.name, self.asked = name, 0

    def answer(self, delay, value):
        time.sleep(delay)
        self.asked += 1
        return self.name, value, self.asked

    def fail(self):
        raise ValueError(f"{self.name} fails")

    def large(self, array):
        return np.concatenate([array, array])

    def end(self):
        os._exit(3)


@pytest.mark.parametrize(
    "executor",
    [Serial(), Threads(2), Threads(3), Processes(2)],
    ids=["serial", "two threads", "three threads", "processes"],
)
def test_residents_keep_their_state_and_answers_come_in_the_order_of_the_calls(executor):
    first, second = executor.start([Counter("a"), Counter("b")])
    calls = [(first, (0.05, 0)), (second, (0.0, 1)), (second, (0.02, 2)), (first, (0.0, 3))]
    answers = executor.call("answer", calls)
    assert [(name, value) for name, value, _ in answers] == [("a", 0), ("b", 1), ("b", 2), ("a", 3)]
    assert sorted(asked for _, _, asked in executor.call("answer", [(first, (0, 4)), (second, (0, 5))])) == [3, 3]
    with pytest.raises(ValueError, match="b fails"):
        executor.call("fail", [(second, ())])
    megabytes = np.arange(1 << 19)  # more than a pipe holds, twice over, both ways
    for copy in executor.call("large", [(first, (megabytes,)), (first, (megabytes,)), (second, (megabytes,))]):
        np.testing.assert_array_equal(copy[: len(megabytes)], megabytes)
    executor.close()
    (third,) = executor.start([Counter("c")])  # starts again
    assert executor.call("answer", [(third, (0.0, 7))]) == [("c", 7, 1)]
    executor.close()
    executor.close()


def test_a_worker_that_dies_is_told():
    executor = Processes(1)
    (home,) = executor.start([Counter("a")])
    with pytest.raises(RuntimeError, match="a worker process ended with code 3"):
        executor.call("end", [(home, ())])
    executor.close()


class Counted(Counter):
    """Whose state can be saved."""

    def save(self):
        return self.asked

    def load(self, saved):
        self.asked = saved


def killed(executor, home):
    process = executor._homes[home].link.process
    process.kill()
    process.join()


@pytest.mark.parametrize("always_saved", [False, True], ids=["journal", "saved"])
def test_a_worker_that_dies_is_replaced_where_it_stood(always_saved, monkeypatch):
    if always_saved:
        monkeypatch.setattr(remote, "AT_LEAST", -1.0)
        monkeypatch.setattr(remote, "PATIENCE", 0.0)
    executor = Processes(2)
    homes = executor.start([Counted(name) for name in "abc"], {"answer"})
    for k in range(1, 8):
        answers = executor.call("answer", [(home, (0.0, k)) for home in homes])
        assert answers == [("a", k, k), ("b", k, k), ("c", k, k)]
        if k in (2, 3, 5):
            killed(executor, homes[k % 3])
    assert executor.replaced == 3
    assert all(bool(worker.saved) == always_saved for worker in executor._workers)
    assert all(len(worker.journal) == (0 if always_saved else 7) for worker in executor._workers)
    executor.recall()
    executor.close()
    assert executor.call("answer", [(homes[0], (0.0, 9))]) == [("a", 9, 8)]


def test_a_message_that_comes_again_is_answered_from_memory():
    home = Home({5: Counter("a")})
    arguments = [pickle.dumps(0.0), pickle.dumps(7)]
    first = home.answer(1, "answer", [(5, (0, 1))], *arguments)
    assert home.answer(1, "answer", [(5, (0, 1))], *arguments) == first
    assert pickle.loads(first) == [(True, ("a", 7, 1))]
    assert pickle.loads(home.answer(2, "answer", [(5, (0, 1))], *arguments)) == [(True, ("a", 7, 2))]


class Waiting:
    """Waits until it is told not to, except the first, whom an interrupt keeps from coming."""

    def __init__(self):
        self.over = threading.Event()

    def wait(self, number):
        if number == 0:
            raise KeyboardInterrupt
        assert self.over.wait(20)

    def let_go(self):
        self.over.set()


def test_threads_that_wait_for_one_who_never_comes_are_let_go():
    executor, resident, begin = Threads(3), Waiting(), time.perf_counter()
    homes = executor.start([resident] * 3)
    with pytest.raises(KeyboardInterrupt):
        executor.call("wait", [(home, (k,)) for k, home in enumerate(homes)])
    assert time.perf_counter() - begin < 10
    executor.close()


def test_an_interrupt_while_calls_are_handed_out_keeps_nobody_waiting(monkeypatch):
    executor, resident = Threads(3), Waiting()
    homes = executor.start([resident] * 3)
    executor.call("let_go", [(home, ()) for home in homes])  # the threads exist
    resident.over.clear()
    pool = executor._pool
    submit, left = pool.submit, [2]

    def interrupted(*arguments):
        future = submit(*arguments)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return future

    monkeypatch.setattr(pool, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        executor.call("wait", [(home, (k + 1,)) for k, home in enumerate(homes)])
    assert resident.over.is_set()
    executor.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_calls_have_no_answers(workers):
    assert Threads(workers).call("anything", []) == []


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_threads_answer_in_the_order_of_the_calls(workers):
    """Also where calls are many, and this thread takes over some that no other has begun."""
    executor = Threads(workers)
    homes = executor.start([Counted(str(k)) for k in range(12)])
    calls = [(home, (0.002 * (k % 3), k)) for k, home in enumerate(homes)]
    for _ in range(5):
        assert [answer[:2] for answer in executor.call("answer", calls)] == [(str(k), k) for k in range(12)]
    executor.close()


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_leaves_no_answer_behind(times, monkeypatch):
    """One Ctrl-C waits for all answers; a second one does not, and the workers begin anew before the next call."""
    executor = Processes(2)
    homes = executor.start([Counted("a"), Counted("b")], {"answer"})
    assert executor.call("answer", [(home, (0.0, 0)) for home in homes]) == [("a", 0, 1), ("b", 0, 1)]
    fetch, left = Pipe.fetch, [times]

    def interrupted(self):
        if left[0]:
            left[0] -= 1
            raise KeyboardInterrupt
        return fetch(self)

    monkeypatch.setattr(Pipe, "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        executor.call("answer", [(home, (0.05, 1)) for home in homes])
    asked = 3 if times == 1 else 2  # what nobody has waited for counts for nothing
    assert executor.call("answer", [(home, (0.0, 2)) for home in homes]) == [("a", 2, asked), ("b", 2, asked)]
    assert executor.replaced == 0
    executor.close()


def test_what_is_released_is_let_go():
    executor = Processes(1)
    executor.start([Counter("a"), Counter("b")])
    executor.release([0, 1])
    (other,) = executor.start([Counter("c")])
    assert len(executor._workers) == 1
    assert executor.call("answer", [(other, (0.0, 1))]) == [("c", 1, 1)]
    executor.close()


class Odd:
    def local(self):
        class Strange(Exception):
            pass

        raise Strange("of a class that nobody else knows")

    def unsendable(self):
        return lambda: None


def test_what_cannot_travel_is_told():
    executor = Processes(1)
    (home,) = executor.start([Odd()])
    with pytest.raises(RuntimeError, match="Strange: of a class that nobody else knows"):
        executor.call("local", [(home, ())])
    with pytest.raises(TypeError, match="what a worker has found cannot be sent back"):
        executor.call("unsendable", [(home, ())])
    executor.close()


class Greedy:
    """Asks the system for more memory than it gives."""

    def limit(self, megabytes):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20),) * 2)

    def take(self, megabytes):
        return len(np.zeros(megabytes << 17))

    def answer(self, megabytes):
        return np.zeros(megabytes << 17)


class TooLarge:
    """Cannot be unpickled for want of memory."""

    def __reduce__(self):
        return refuse, ()


def refuse():
    raise MemoryError


def test_messages_and_examples_for_which_there_is_no_memory():
    home, packed = Home({5: Counter("a")}), pickle.dumps(TooLarge())
    (good, error), _ = pickle.loads(home.answer(1, "answer", [(5, (0, 1)), (5, (0, 1))], pickle.dumps(0.0), packed))
    assert not good and type(error) is MemoryError and "a worker ran out of memory. Use fewer workers" in str(error)
    assert str(pickle.loads(home.settle([6], [], packed))) == str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is told from /proc")
def test_a_worker_without_memory_says_so_and_what_to_do():
    executor, refused = Processes(1), r"^a worker ran out of memory.*Use fewer workers \(n_jobs\).*memory_map"
    (home,) = executor.start([Greedy()])
    executor.call("limit", [(home, (200,))])
    with pytest.raises(MemoryError, match=refused) as caught:
        executor.call("take", [(home, (400,))])
    assert "Unable to allocate 400. MiB" in str(caught.value)
    with pytest.raises(MemoryError, match=refused):  # it fits once, but not with its pickled copy
        executor.call("answer", [(home, (150,))])
    assert executor.call("take", [(home, (20,))]) == [20 << 17] and executor.replaced == 0
    executor.close()


def test_too_little_memory_of_the_solver_is_not_taken_for_that_of_a_worker():
    solver = mm.Sharded(shards=2, memory=100_000)
    with pytest.raises(MemoryError, match=r'^a shard needs more than its .* memory, or use solver="auto"'):
        mm.SequenceTagger(solver=solver, C=1.0, tol=1e-9, executor="processes", n_jobs=2).fit(X, Y)


class KillsAWorker(Callback):
    def __init__(self):
        self.times = 1

    def on_certificate(self, run):
        if self.times:
            self.times -= 1
            killed(run.executor, run.state.homes[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "words",
    [
        {}, {"loss": "squared_hinge"}, {"positive": ["transition"]}, {"loss": "ramp"},
        {"solver": mm.Sharded(shards=8, visits_per_round=5, averaging="tail")},
    ],
    ids=str,
)  # fmt: skip
def test_shards_in_processes_have_the_weights_of_one_thread(words):
    words = {"C": 0.3, "solver": mm.Sharded(shards=8, visits_per_round=5), "tol": 1e-5, "max_passes": 15} | words
    one = mm.SequenceTagger(executor="serial", **words).fit(X, Y)
    for n in (1, 2, 4, 8):
        dies = [KillsAWorker()] if n == 2 and "loss" not in words else None
        other = mm.SequenceTagger(executor="processes", n_jobs=n, callbacks=dies, **words).fit(X, Y)
        np.testing.assert_array_equal(other.weights_, one.weights_)
        assert other.certificate_ == one.certificate_ and other.oracle_calls_ == one.oracle_calls_
        if dies:
            assert "A worker died and was replaced" in other.status_.sentence
            assert other.history_["workers_replaced"].iloc[-1] == 1
    again = other.set_params(warm_start=True, executor="serial", callbacks=None).fit(X, Y)  # from shards that came back
    assert again.certificate_.primal <= one.certificate_.primal * (1 + 1e-9)


@pytest.mark.parametrize("name", ["rays", 3, None])
def test_unknown_executors_are_refused(name):
    with pytest.raises(
        ValueError, match=r'executor must be "auto", "serial", "threads", "processes" or "ray", or Ray\('
    ):
        mm.SequenceTagger(executor=name).fit(X, Y)


def test_executors_by_name():
    for name, kind in (("serial", Serial), ("threads", Threads), ("processes", Processes)):
        assert type(make_executor(2, compiled=True, executor=name)) is kind
    assert type(make_executor(1, compiled=True, executor="processes")) is Processes
    assert type(make_executor(None, compiled=False, executor="threads")) is Serial


def test_processes_hold_the_oracle():
    bound = PythonModel(Nearest()).bind(VECTORS, KINDS)
    oracle = ModelOracle(bound)
    executor = Processes(2)
    w = RNG.normal(size=bound.n_weights)
    try:
        homes = executor.start([oracle, oracle])
        answers = executor.call("planes", [(homes[i % 2], (w, np.array([i]))) for i in range(5)])
    finally:
        executor.close()
    for i, planes in enumerate(answers):
        np.testing.assert_array_equal(
            planes.to_csr().toarray(), oracle.planes(w, np.array([i])).to_csr().toarray(), strict=True
        )


@pytest.mark.parametrize("n", [1, 3, 7, 8, 15, 16, 31, 32, 60])
def test_sharded_planes_and_sums_are_those_of_one_worker(n):
    bound = Chain().bind(X, Y)
    oracle = ModelOracle(bound)
    rng = np.random.default_rng(n)
    w, examples, scale = rng.normal(size=bound.n_weights), rng.permutation(60)[:n], rng.random(n)
    results = []
    for executor in (Serial(), Threads(2), Threads(3), Threads(5)):
        sharded = ShardedOracle(oracle, executor)
        results.append((sharded.planes(w, examples, 3), sharded.sum(w, examples, scale)))
        executor.close()
        assert (sharded.n_examples, sharded.n_columns, sharded.longest) == (60, bound.n_weights, oracle.longest)
    planes, (a, b, losses, counts) = results[0]
    direct = oracle.planes(w, examples, 3)
    for name in ("indptr", "indices", "data", "b", "example", "bound"):
        np.testing.assert_array_equal(getattr(planes, name), getattr(direct, name))
        for other, _ in results[1:]:
            np.testing.assert_array_equal(getattr(planes, name), getattr(other, name), strict=True)
    for _, (a_, b_, losses_, counts_) in results[1:]:
        assert counts == counts_
        np.testing.assert_array_equal(a, a_)
        np.testing.assert_array_equal(losses, losses_)
        assert b == b_
    whole = oracle.sum(w, examples, scale)
    np.testing.assert_allclose(a, whole[0], atol=1e-10)
    np.testing.assert_array_equal(losses, whole[2])


def test_worker_counts():
    assert worker_count(None) == worker_count(1) == 1
    assert worker_count(np.int64(3)) == 3
    assert worker_count(-1) >= 1 and worker_count(-1000) == 1
    assert isinstance(make_executor(None, compiled=True), Serial)
    assert isinstance(make_executor(2, compiled=True), Threads)
    assert isinstance(make_executor(2, compiled=False), Processes)


def test_no_worker_is_left_behind():
    before = threading.active_count()
    mm.SequenceTagger(C=0.1, n_jobs=3, solver=mm.CuttingPlane("n"), tol=0.1).fit(X, Y)
    assert threading.active_count() == before
