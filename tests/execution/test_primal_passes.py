"""Passes of the primal family in shards on workers: the same weights bit for bit, wherever these are."""

from __future__ import annotations

import os

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.execution.executors import Serial
from maxmargin.execution.processes import Pipe, Processes
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.user import PythonModel
from reference.own_models import Nearest
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = random_chains(60, 4, 3, lengths=(1, 7), seed=0)
RNG = np.random.default_rng(1)
VECTORS, KINDS = list(RNG.normal(size=(50, 3))), RNG.integers(0, 4, 50).tolist()

PRIMAL = {
    "pegasos": mm.Pegasos(shards=4, certificate_every=2.0),
    "pegasos, batches": mm.Pegasos(shards=3, batch=4, averaging=None, certificate_every=2.0),
    "perceptron": mm.Perceptron(shards=3, passes=4),
    "mira": mm.MIRA(shards=5, passes=4, averaging="tail"),
}


RAMP = mm.Ramp(passes_per_round=2.0)  # several rounds, each of which subtracts other planes


class KillsAShard(Callback):
    """At the second certificate."""

    def on_certificate(self, run):
        if len(run.history) == 2:
            state = getattr(run.state, "inner", run.state)
            process = run.executor._homes[state.shards.homes[0]].link.process
            process.kill()
            process.join()


def passes_of_shards(plain, executor, n_jobs=None, callbacks=None, resume=None, **words):
    words = {"C": 0.5, "solver": PRIMAL["pegasos"], "tol": 0.0, "max_passes": 9, **words}
    words |= {"executor": executor, "n_jobs": n_jobs, "callbacks": callbacks}
    if plain:
        return mm.StructuredSVM(Nearest(), **words).fit(VECTORS, KINDS, resume=resume)
    return mm.SequenceTagger(**words).fit(X, Y, resume=resume)


def assert_same(one, other):
    np.testing.assert_array_equal(other.weights_, one.weights_)
    assert other.certificate_ == one.certificate_ and other.oracle_calls_ == one.oracle_calls_
    assert other.state_.argmax_calls == one.state_.argmax_calls
    assert min(other.state_.seconds.values()) >= 0.0 < other.state_.seconds["oracle"]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    "words",
    [*({"solver": solver} for solver in PRIMAL.values()), {"loss": "squared_hinge"}, {"loss": RAMP, "max_passes": 20}],
    ids=[*PRIMAL, "squared_hinge", "ramp"],
)
def test_passes_of_shards_have_the_weights_of_one_thread(words, plain):
    one = passes_of_shards(plain, "serial", **words)
    assert one.weights_.any()
    for executor, n_jobs in [("threads", 2), ("threads", 3), ("processes", 1), ("processes", 2), ("processes", 3)]:
        assert_same(one, passes_of_shards(plain, executor, n_jobs, **words))


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("words", [{}, {"loss": RAMP, "max_passes": 20}], ids=["hinge", "ramp"])
def test_a_shard_that_dies_passes_on_from_where_it_stood(words, plain):
    one = passes_of_shards(plain, "serial", **words)
    other = passes_of_shards(plain, "processes", 2, [KillsAShard()], **words)
    assert_same(one, other)
    assert "A worker died and was replaced" in other.status_.sentence
    more = {"warm_start": True, "max_passes": 4, "executor": "serial", "callbacks": None}
    again = [fit.set_params(**more) for fit in (one, other)]
    assert_same(*(fit.fit(*(VECTORS, KINDS) if plain else (X, Y)) for fit in again))


def test_positive_weights_in_shards():
    words = {"positive": ["transition"], "max_passes": 4}
    one = passes_of_shards(False, "serial", **words)
    assert_same(one, passes_of_shards(False, "processes", 2, **words))


class Stops(Callback):
    """At the second certificate."""

    def on_certificate(self, run):
        return "stop" if len(run.history) == 2 else None


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("loss", ["hinge", RAMP], ids=["hinge", "ramp"])
def test_passes_of_shards_are_resumed_on_other_workers(plain, loss, tmp_path):
    words = {"loss": loss, "max_passes": 20}
    one = passes_of_shards(plain, "serial", **words)
    passes_of_shards(plain, "processes", 2, [mm.Checkpoint(tmp_path / "run"), Stops()], **words)
    for executor in ("serial", "threads", "processes"):
        other = passes_of_shards(plain, executor, 2, resume=tmp_path / "run", **words)
        np.testing.assert_array_equal(other.weights_, one.weights_)
        assert other.certificate_ == one.certificate_


class Failing(Nearest):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return None


class Elsewhere(Nearest):
    """Answers in other processes only."""

    def __init__(self):
        self.home = os.getpid()

    def argmax(self, *arguments, **words):
        assert os.getpid() != self.home
        return super().argmax(*arguments, **words)


class Asked(Processes):
    """Notes which verbs are called."""

    def __init__(self, n_workers):
        super().__init__(n_workers)
        self.verbs = []

    def call(self, verb, calls):
        self.verbs += [verb] * len(calls)
        return super().call(verb, calls)


def stepping(model, executor, solver=PRIMAL["pegasos"]):
    """An engine and a state whose passes run on workers."""
    problem = RescaledHinge().problem(PythonModel(model).bind(VECTORS, KINDS), C=0.5)
    problem = problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor))
    engine = solver.engine(problem, 0)
    return engine, engine.init(problem)


def test_passes_of_shards_run_on_the_workers_and_go_with_the_state():
    executor = Asked(2)
    engine, state = stepping(Elsewhere(), executor)
    here, same = stepping(Nearest(), Serial())
    for _ in range(3):
        engine.step(state)
        here.step(same)
    np.testing.assert_array_equal(engine.weights(state), here.weights(same))
    assert engine.certificate(state) == here.certificate(same)
    assert executor.verbs == ["work"] * 3 * 4 + ["losses"] * 4 and len(executor._homes) == 4
    assert state.oracle_calls == same.oracle_calls == 4 * len(VECTORS)
    del state
    assert not executor._homes
    executor.close()


def test_an_interrupted_pass_of_shards_counts_for_nothing(monkeypatch):
    executor = Processes(2)
    engine, state = stepping(Nearest(), executor)
    engine.step(state)
    before, fetch, left = engine.weights(state), Pipe.fetch, [1]

    def interrupted(self):
        if left[0]:
            left[0] -= 1
            raise KeyboardInterrupt
        return fetch(self)

    monkeypatch.setattr(Pipe, "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.step(state)
    np.testing.assert_array_equal(engine.weights(state), before)
    again = engine.from_arrays(state.problem, state.to_arrays())
    engine.step(state)
    engine.step(again)
    np.testing.assert_array_equal(engine.weights(state), engine.weights(again))
    assert engine.certificate(state) == engine.certificate(again)
    executor.close()


def test_an_error_in_a_shard_elsewhere_arrives_with_its_message():
    with pytest.raises(ValueError, match=r"example \d+: argmax returned None"):
        mm.StructuredSVM(Failing(), n_jobs=2, solver=mm.Pegasos(shards=3)).fit(VECTORS, KINDS)
