"""Workers that die while they start, and what is kept so that others can take over."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.execution import remote
from maxmargin.execution.processes import Processes
from reference.problems import random_chains

X, Y = random_chains(60, 4, 3, lengths=(1, 7), seed=0)


class Doomed:
    """Adds up numbers; a process that begins to do so dies as often as a file says, or at a number below 0."""

    def __init__(self, file: Path) -> None:
        self.file, self.total = file, 0.0

    def add(self, number: float) -> float:
        left = int(self.file.read_text())
        if self.total == 0.0 and left:
            self.file.write_text(str(left - 1))
            os._exit(3)
        if number < 0.0:
            os._exit(4)
        self.total += number
        return self.total

    def keep(self, data: bytes) -> None:
        """Answers nothing."""

    def save(self) -> float:
        return self.total

    def load(self, saved: float) -> None:
        self.total = saved


@pytest.fixture
def doomed(tmp_path, monkeypatch):
    """A worker that has been asked once; its home; and the file that says how many after it die at their start."""
    monkeypatch.setattr(remote, "AT_LEAST", 1e9)  # a state that is saved would spare them the call in which they die
    file = tmp_path / "deaths"
    file.write_text("0")
    executor = Processes(1)
    (home,) = executor.start([Doomed(file)], {"add", "keep"})
    assert executor.call("add", [(home, (1.0,))]) == [1.0]
    yield executor, home, file
    executor.close()


def kill(executor, home):
    process = executor._homes[home].link.process
    process.kill()
    process.join()


def test_deaths_of_workers_that_were_starting_are_forgiven(doomed):
    executor, home, file = doomed
    for k in range(3):
        file.write_text("8")
        kill(executor, home)
        assert executor.call("add", [(home, (1.0,))]) == [k + 2.0]
    assert executor.replaced == 3 * 9


def test_a_worker_that_never_starts_ends_the_run(doomed):
    executor, home, file = doomed
    file.write_text("1000")
    kill(executor, home)
    with pytest.raises(RuntimeError, match=r"code 3, 20 times in a row before it could be asked anything; it may have"):
        executor.call("add", [(home, (1.0,))])
    assert executor.replaced == 1 + 20 and file.read_text() == "980"


def test_a_call_that_always_ends_its_worker_ends_the_run_even_if_some_die_before(doomed):
    executor, home, file = doomed
    file.write_text("8")
    kill(executor, home)
    with pytest.raises(RuntimeError, match=r"code 4, 5 times in a row; it may have run out of memory"):
        executor.call("add", [(home, (-1.0,))])
    assert executor.replaced == 8 + 5


def test_journals_stay_bounded(doomed, monkeypatch):
    monkeypatch.setattr(remote, "AT_LEAST", np.inf)  # never because of the time
    monkeypatch.setattr(remote, "SMALL_JOURNAL", 10_000)
    executor, home, _ = doomed
    (worker,) = executor._workers
    kept = []
    for _ in range(100):
        executor.call("keep", [(home, (os.urandom(1_000),))])
        kept.append(sum(len(argument) for message in worker.journal for argument in message.arguments))
    assert 9_000 < max(kept) <= 10_000
    assert sum(later < earlier for earlier, later in pairwise(kept)) >= 9  # it was cut short
    kill(executor, home)
    assert executor.call("add", [(home, (1.0,))]) == [2.0]


class Saves(Callback):
    """Saves all shards at every certificate; how many entries were saved, and how many the planes have."""

    def __init__(self) -> None:
        self.saved: list[int] = []
        self.live: list[int] = []

    def on_certificate(self, run):
        for shard in run.state.shards:
            (store, *_), *_ = pickle.loads(pickle.dumps(shard.save()))
            names = type(shard.state.working_set.store)._fields
            arrays = dict(zip(names, store, strict=True))
            ids = np.concatenate([slots[:n] for slots, n in zip(arrays["slots"], arrays["held"], strict=True)])
            self.saved.append(len(arrays["columns"]))
            self.live.append(int(arrays["length"][ids].sum()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_saved_shards_hold_their_planes_and_no_more_and_saving_changes_nothing():
    def fit(*callbacks):
        solver = mm.Sharded(shards=3, visits_per_round=5)
        return mm.SequenceTagger(C=10.0, solver=solver, tol=1e-9, max_passes=60, callbacks=list(callbacks)).fit(X, Y)

    saves = Saves()
    disturbed, alone = fit(saves), fit()
    assert saves.saved == saves.live and min(saves.live[3:]) > 0
    np.testing.assert_array_equal(disturbed.weights_, alone.weights_)
    assert disturbed.certificate_ == alone.certificate_
