"""Workers on a Ray cluster: the same weights bit for bit, dead workers replaced, clear errors."""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import sys
import time

import numpy as np
import pytest
from tools.kills_workers import workers_of

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.execution import home, ray_workers
from maxmargin.execution.ray_workers import Ray
from maxmargin.features import TextFeatures
from maxmargin.persistence.mapped import mapped
from maxmargin.solvers.shard import Shard
from reference.own_models import Nearest
from reference.problems import random_chains

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

X, Y = random_chains(40, 4, 3, lengths=(1, 6), seed=0)
RNG = np.random.default_rng(1)
VECTORS, KINDS = list(RNG.normal(size=(50, 3))), RNG.integers(0, 4, 50).tolist()


def fit(executor="auto", n_jobs=None, callbacks=None, resume=None, **words):
    solver = mm.Sharded(shards=8, visits_per_round=5)
    words = {"C": 0.3, "solver": solver, "tol": 1e-3, "max_passes": 12} | words
    tagger = mm.SequenceTagger(executor=executor, n_jobs=n_jobs, callbacks=callbacks, **words)
    return tagger.fit(X, Y, resume=resume)


def own_model():
    """A model in plain Python whose class only this process knows: it travels by value."""

    class Own(Nearest):
        pass

    return Own()


class KillsAWorker(Callback):
    """Kills a worker of this process by its id, at the first certificates."""

    def __init__(self, executor, times):
        self.executor, self.times = executor, times

    def on_certificate(self, run):
        if self.times:
            self.times -= 1
            os.kill(workers_of(self.executor, os.getpid())[0], signal.SIGKILL)


class Stops(Callback):
    """At the first certificate."""

    def on_certificate(self, run):
        return "stop"


@pytest.fixture(scope="module")
def alone():
    return fit("serial")


@pytest.mark.parametrize(
    "n_jobs", [1, 2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)]
)
def test_weights_are_those_of_one_thread(cluster, alone, n_jobs):
    other = fit("ray", n_jobs)
    np.testing.assert_array_equal(other.weights_, alone.weights_)
    assert other.certificate_ == alone.certificate_ and other.oracle_calls_ == alone.oracle_calls_
    assert cluster.is_initialized()  # somebody else's cluster stays


def test_dead_actors_are_replaced_and_the_run_says_so(cluster, alone):
    other = fit("ray", 2, [KillsAWorker("ray", 1)])
    np.testing.assert_array_equal(other.weights_, alone.weights_)
    assert other.certificate_ == alone.certificate_
    assert "A worker died and was replaced" in other.status_.sentence
    assert other.history_["workers_replaced"].iloc[-1] == 1


def test_a_run_that_is_resumed_goes_on_exactly(cluster, alone, tmp_path):
    fit("processes", 2, [mm.Checkpoint(tmp_path / "run"), Stops()])
    for executor, n_jobs in (("ray", 2), ("threads", 2), ("processes", 2)):
        other = fit(executor, n_jobs, resume=tmp_path / "run")
        np.testing.assert_array_equal(other.weights_, alone.weights_)
        assert other.certificate_ == alone.certificate_


@pytest.mark.parametrize(
    "solver",
    ["auto", mm.Pegasos(shards=3), pytest.param(mm.Sharded(shards=3, visits_per_round=7), marks=pytest.mark.slow)],
    ids=["oracle", "passes", "shards"],
)
def test_a_model_of_ones_own_in_plain_python(cluster, solver):
    words = {"C": 0.5, "solver": solver, "max_passes": 5}
    one = mm.StructuredSVM(own_model(), executor="serial", **words).fit(VECTORS, KINDS)
    other = mm.StructuredSVM(own_model(), executor=Ray(), n_jobs=2, **words).fit(VECTORS, KINDS)
    assert one.weights_.any()
    np.testing.assert_array_equal(other.weights_, one.weights_)


PRIMAL = mm.Pegasos(shards=3, certificate_every=2.0)


class KillsAShard(Callback):
    """At the second certificate."""

    def on_certificate(self, run):
        if len(run.history) == 2:
            worker = run.executor._homes[run.state.inner.shards.homes[0]]
            worker.link.ray.kill(worker.link.handle)


def test_passes_of_shards(cluster, tmp_path):
    """Also with a dead actor, planes that a ramp subtracts, and resumed."""
    words = {"solver": PRIMAL, "loss": mm.Ramp(passes_per_round=2.0), "tol": 0.0, "max_passes": 15}
    one = fit("serial", **words)
    other = fit("ray", 2, [KillsAShard()], **words)
    np.testing.assert_array_equal(other.weights_, one.weights_)
    assert other.certificate_ == one.certificate_ and other.oracle_calls_ == one.oracle_calls_
    assert other.history_["workers_replaced"].iloc[-1] == 1
    fit("processes", 2, [mm.Checkpoint(tmp_path / "run"), Stops()], **words)
    resumed = fit("ray", 2, resume=tmp_path / "run", **words)
    np.testing.assert_array_equal(resumed.weights_, one.weights_)


class Resident:
    """Counts, fails and dies as it is told."""

    def __init__(self, name):
        self.name, self.total = name, 0

    def add(self, number):
        self.total += number
        return self.name, self.total

    def fail(self):
        raise ValueError(f"{self.name} fails")

    def double(self, array):
        return 2 * array

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def save(self):
        return self.total

    def load(self, saved):
        self.total = saved


def test_residents_of_a_cluster(cluster):
    executor = Ray().workers(2)
    a, b, c = executor.start([Resident("a"), Resident("b"), Resident("c")], {"add"})
    assert executor.call("add", [(b, (1,)), (a, (2,)), (c, (3,)), (b, (4,))]) == [
        ("b", 1),
        ("a", 2),
        ("c", 3),
        ("b", 5),
    ]
    with pytest.raises(ValueError, match="b fails"):
        executor.call("fail", [(a, ()), (b, ())][1:])
    large = np.arange(1 << 18)
    for found in executor.call("double", [(a, (large,)), (b, (large,))]):
        np.testing.assert_array_equal(found, 2 * large)
    os.kill(workers_of("ray", os.getpid())[0], signal.SIGKILL)
    assert executor.call("add", [(a, (1,)), (b, (1,)), (c, (1,))]) == [("a", 3), ("b", 6), ("c", 4)]
    assert executor.replaced == 1
    with pytest.raises(
        RuntimeError, match=r"a worker of the Ray cluster ended .* 5 times in a row; it may have run out"
    ):
        executor.call("die", [(a, ())])
    executor.recall()
    executor.close()
    assert executor.call("add", [(a, (1,)), (c, (1,))]) == [("a", 4), ("c", 5)]  # back here
    assert cluster.is_initialized()


def test_a_cluster_without_room_is_told(cluster):
    first = Ray().workers(2)
    first.start([Resident("a"), Resident("b")])
    second = Ray(wait=1.0).workers(2)
    with pytest.raises(TimeoutError, match=r"has not provided all workers within 1 s: it has 2 processors, 0 of them"):
        second.start([Resident("c"), Resident("d")])
    first.close()
    second.close()


def test_another_cluster_than_the_present_one_is_refused(cluster):
    with pytest.raises(ValueError, match="this process is connected to the Ray cluster at"):
        Ray(address="127.0.0.1:1").workers(1)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[ray\]"'):
        fit("ray")


@pytest.fixture
def unconnected(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_workers, "KNOCK", 1.0)


def test_an_address_where_nothing_listens(unconnected):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        begin = time.perf_counter()
        with pytest.raises(ConnectionError, match=rf"no Ray cluster answers at {address} .*ray start --head"):
            fit(Ray(address=address))
        assert time.perf_counter() - begin < 30.0


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
ANSWERS = {"silent": b"", "another server": b"HTTP/1.1 400 Bad Request\r\n", "HTTP/2, then nothing": SETTINGS}
ANSWERS["404"] = SETTINGS + bytes([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x8D])  # headers of one byte


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_address_where_something_else_listens(unconnected, answer, capfd):
    import threading

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            connection, _ = server.accept()
            if answer:
                connection.sendall(answer)
            time.sleep(1.5)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ConnectionError, match="no Ray cluster answers at"):
            fit(Ray(address=f"127.0.0.1:{server.getsockname()[1]}"))
        thread.join()
    assert capfd.readouterr() == ("", "")


def test_a_cluster_answers_the_knock(cluster, monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "0")
    ray_workers._knock(cluster.get_runtime_context().gcs_address)


@pytest.mark.parametrize("address", ["somewhere", "host:port", "ray://host"])
def test_what_is_no_address(unconnected, address):
    with pytest.raises(ValueError, match='address must be "host:port"'):
        fit(Ray(address=address))


def test_a_cluster_of_ones_own_is_gone_after_the_fit(monkeypatch, alone):
    """With Ray itself left out: it is started with the right words, left once, and its folder is removed."""
    ray, calls, places = pytest.importorskip("ray"), [], []
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **words: (calls.append(words), places.append(words["_temp_dir"])))
    monkeypatch.setattr(ray, "shutdown", lambda: calls.append("shutdown"))
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 3.0})
    executor = Ray().workers()
    assert executor.n_workers == 3 and calls[0]["address"] == "local" and os.path.isdir(places[0])
    executor.close()
    executor.close()
    assert calls[1:] == ["shutdown"] and not os.path.exists(places[0])


def test_model_files_keep_where_a_model_was_fitted(alone, tmp_path):
    alone.set_params(executor=Ray(address="somewhere:1", wait=5.0)).save(tmp_path / "model")
    alone.set_params(executor="serial")
    found = mm.load(tmp_path / "model").executor
    assert isinstance(found, Ray) and (found.address, found.wait) == ("somewhere:1", 5.0)


@pytest.mark.parametrize("executor", ["ray", "threads"])
def test_no_examples(executor):
    with pytest.raises(ValueError, match=r"no examples|at least one|empty"):
        mm.SequenceTagger(executor=executor, solver="sharded").fit([], [])


def test_a_pack_in_a_folder_is_mapped_by_the_workers(cluster, tmp_path, monkeypatch):
    """What is sent is the name of the pack; weights are those of one list."""
    for k in range(4):
        part = zip(X[10 * k : 10 * k + 10], Y[10 * k : 10 * k + 10], strict=True)
        lines = ("".join(f"w{np.argmax(row)} {label}\n" for row, label in zip(x, y, strict=True)) for x, y in part)
        (tmp_path / f"part-{k}.txt").write_text("\n".join(lines))
    sent, pack = [], ray_workers.pack

    def noted(residents, pickler):
        packed, arrays = pack(residents, pickler)
        found = {key: pickle.loads(array) for key, array in arrays.items()}
        sent.extend(home._Unpickler(io.BytesIO(data), found).load() for data, _ in packed.values())
        return packed, arrays

    monkeypatch.setattr(ray_workers, "pack", noted)
    words = {"solver": mm.Sharded(shards=4), "max_passes": 4, "tol": 1e-3}
    alone = mm.SequenceTagger(**words).fit_files(tmp_path / "part-*.txt", memory_map=tmp_path / "packed")
    other = mm.SequenceTagger(executor="ray", n_jobs=2, **words)
    for folder in (tmp_path / "packed", tmp_path / "new"):  # found there, and made
        sent.clear()
        other.fit_files(tmp_path / "part-*.txt", memory_map=folder)
        np.testing.assert_array_equal(other.weights_, alone.weights_)
        models = [own.state.problem.oracle.oracle.model for own in sent if isinstance(own, Shard)]
        assert [mapped(model.ints)[0] for model in models] == [folder / "pack" / "ints"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_parts_stay_with_the_workers(cluster, tmp_path, monkeypatch, kept):
    """The driver gets none; they are found in files on this machine, and read again where there are none."""
    words = [[(f"w{n % 13}", f"L{n % 3}") for n in range(k, k + 4000)] for k in range(30)]
    for k in range(3):
        sentences = ("".join(f"{x} {y}\n" for x, y in words[i]) for i in range(10 * k, 10 * k + 10))
        (tmp_path / f"part-{k}.txt").write_text("\n".join(sentences))
    settings = {"features": TextFeatures("U1:%x[0,0]\nU2:%x[-1,0]\n"), "max_passes": 6, "tol": 0.0}
    settings["solver"] = mm.Sharded(shards=3, visits_per_round=4, certificate_every=1.0)
    alone = mm.SequenceTagger(**settings).fit_files(tmp_path / "part-*.txt")
    sizes, fetch, take_over = [], ray_workers.Actor.fetch, mm.SequenceTagger._take_over

    def noted(actor, timeout=None):
        data = fetch(actor, timeout)
        sizes.append(len(data))
        return data

    def on_another_machine(tagger, made):
        take_over(tagger, made)
        files = list(made.bound.parts[0].folder.iterdir())
        assert len(files) == 6
        for path in () if kept else files:
            path.unlink()

    monkeypatch.setattr(ray_workers.Actor, "fetch", noted)
    monkeypatch.setattr(mm.SequenceTagger, "_take_over", on_another_machine)
    callbacks = [KillsAWorker("ray", 1)]
    other = mm.SequenceTagger(executor="ray", n_jobs=2, callbacks=callbacks, **settings)
    other.fit_files(tmp_path / "part-*.txt")
    np.testing.assert_array_equal(other.weights_, alone.weights_)
    assert other.certificate_ == alone.certificate_ and other.history_["workers_replaced"].max() >= 1
    assert max(sizes) < 10 * 4000 * 2 * 4  # bytes of the columns of one part alone
