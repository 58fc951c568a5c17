"""Callbacks in real runs of a small solver: the certificate after k steps is (1 + 2^-k, 1), a step is a pass."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.callbacks import Callback, Checkpoint, EarlyStopping, JsonLog, Progress
from maxmargin.callbacks.progress import seconds_left
from maxmargin.certificate import Certificate
from maxmargin.persistence.checkpoint import load_checkpoint
from maxmargin.solvers.base import Engine
from maxmargin.solvers.driver import run

PROBLEM = SimpleNamespace(n_examples=4, traits=frozenset())


class State(SimpleNamespace):
    def to_arrays(self):
        return {"steps": np.array(self.steps), "w": self.w}


class Halving(Engine):
    handles = frozenset()

    def init(self, problem, warm=None):
        return State(steps=0, w=np.zeros(2), oracle_calls=0, argmax_calls=0, unproven=0, seconds={})

    def certificate_due(self, state):
        return True

    def step_calls(self, state):
        return 4

    def from_arrays(self, problem, arrays):
        steps = int(arrays["steps"])
        return State(
            steps=steps, w=np.array(arrays["w"]), oracle_calls=4 * steps, argmax_calls=4 * steps, unproven=0, seconds={}
        )

    def certificate(self, state):
        return Certificate(1 + 2.0**-state.steps, 1.0)

    def step(self, state):
        state.steps += 1
        state.oracle_calls += 4
        state.argmax_calls += 4
        state.w += 1.0  # in place, as real solvers do

    def weights(self, state):
        return state.w


def test_base_callback_does_nothing():
    assert run(Halving(), PROBLEM, tol=0.1, callbacks=[Callback()]).status.code == "converged"


def test_early_stopping_keeps_the_best_weights():
    scores = iter([0.1, 0.5, 0.4, 0.9, 0.8, 0.9, 0.7, 0.99])
    stopping = EarlyStopping(lambda w: next(scores), patience=3)
    result = run(Halving(), PROBLEM, tol=0.0, callbacks=[stopping])
    assert result.status.code == "stopped by callback" and result.state.steps == 6
    # the second 0.9 does not make it wait longer, but its weights are nearer to the optimum
    assert stopping.best_score_ == 0.9 and stopping.best_weights_.tolist() == [5.0, 5.0] and stopping.best_pass_ == 5
    assert stopping.best_certificate_ == Certificate(1 + 2.0**-5, 1.0)
    assert result.weights.tolist() == [6.0, 6.0]
    assert result.history.column("score").tolist() == [0.1, 0.5, 0.4, 0.9, 0.8, 0.9, 0.7] == stopping.scores_


def test_early_stopping_dials():
    scores = iter([0.50, 0.505, 0.509, 0.6, 0.601, float("nan"), 0.0])
    stopping = EarlyStopping(lambda w: next(scores), patience=2, min_delta=0.01, min_passes=4)
    result = run(Halving(), PROBLEM, tol=0.0, callbacks=[stopping])
    assert result.state.steps == 5 and stopping.best_score_ == 0.6
    with pytest.raises(ValueError, match="patience"):
        EarlyStopping(len, patience=0)


def test_checkpoint_and_resume(tmp_path):
    path = tmp_path / "run.ckpt"
    run(Halving(), PROBLEM, tol=0.0, max_passes=5, callbacks=[Checkpoint(path)])
    resumed = run(Halving(), PROBLEM, tol=0.0, max_passes=9, resume=path)
    straight = run(Halving(), PROBLEM, tol=0.0, max_passes=9)
    assert resumed.weights.tolist() == straight.weights.tolist() == [9.0, 9.0]
    assert resumed.history.column("primal").tolist() == straight.history.column("primal").tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]


@pytest.mark.parametrize(
    ("dials", "saved"),
    [({}, [0, 1, 2, 3, 4]), ({"every": 2}, [1, 3, 4]), ({"seconds": 3600}, [4]), ({"seconds": 0}, [0, 1, 2, 3, 4])],
)
def test_checkpoint_intervals(tmp_path, dials, saved):
    seen = []

    class Watch(Callback):
        def look(self):
            if path.exists():
                seen.append(int(load_checkpoint(path)["state/steps"]))

        def on_certificate(self, run):
            self.look()

        def on_end(self, run):
            self.look()

    path = tmp_path / "c"
    run(Halving(), PROBLEM, tol=0.0, max_passes=4, callbacks=[Checkpoint(path, **dials), Watch()])
    assert sorted(set(seen)) == saved


def test_checkpoint_of_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "c"
    run(Halving(), PROBLEM, tol=0.0, max_passes=2, callbacks=[Checkpoint(path)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="truncated"):
        run(Halving(), PROBLEM, resume=path)


def test_checkpoint_folder_is_checked_first(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it"):
        run(Halving(), PROBLEM, callbacks=[Checkpoint(tmp_path / "no" / "c")])
    with pytest.raises(ValueError, match="every"):
        Checkpoint("x", every=0)


def test_json_log(tmp_path):
    path = tmp_path / "log.jsonl"
    run(Halving(), PROBLEM, tol=0.3, callbacks=[JsonLog(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["begin", *["certificate"] * 3, "end"]
    assert [line["primal"] for line in lines[1:-1]] == [2.0, 1.5, 1.25]
    assert lines[0] == {"event": "begin", "solver": "Halving", "n_examples": 4, "tol": 0.3}
    assert lines[-1]["status"] == "converged" and "total" in lines[-1]["seconds"]


def test_json_log_is_strict_and_leaves_open_files_open():
    class NoDual(Halving):
        def certificate(self, state):
            return Certificate(1.0, -np.inf)

    out = io.StringIO()
    run(NoDual(), PROBLEM, max_passes=1, callbacks=[EarlyStopping(lambda w: np.float32(0.5)), JsonLog(out)])

    def refuse(name):
        raise AssertionError(name)

    rows = [json.loads(line, parse_constant=refuse) for line in out.getvalue().splitlines()]
    assert rows[1]["dual"] is None and rows[1]["relative_gap"] is None and rows[1]["score"] == 0.5


def test_progress_lines():
    out = io.StringIO()
    result = run(Halving(), PROBLEM, tol=0.3, callbacks=[Progress(out)])
    lines = out.getvalue().splitlines()
    assert len(lines) == 5 and lines[0].split()[0] == "pass" and lines[-1] == result.status.sentence
    assert lines[2].split()[3:] == ["1.5", "1", "3.33e-01"]


def test_progress_on_a_terminal():
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    result = run(Halving(), PROBLEM, tol=0.01, callbacks=[Progress(out, rows=3)])
    assert "relative gap" in out.getvalue() and " left" in out.getvalue() and result.status.sentence in out.getvalue()


def test_time_left():
    """A gap that falls tenfold each second needs three more from 1e-1 to 1e-4; budgets may end the run before."""
    rows = [{"pass": 2 * t, "oracle_calls": 20 * t, "seconds": t, "relative_gap": 10.0 ** (3 - t)} for t in range(5)]
    assert seconds_left(rows, 1e-4, {}) == pytest.approx(3.0)
    assert seconds_left(rows, 1e-4, {"max_passes": 10}) == pytest.approx(1.0)
    assert seconds_left(rows, 1e-4, {"max_oracle_calls": 120, "max_seconds": 5.5}) == pytest.approx(1.5)
    assert seconds_left(rows, 0.0, {}) is None and seconds_left([], 1e-4, {}) is None
    assert seconds_left([*rows, {**rows[-1], "seconds": 5}], 1e-4, {}) == pytest.approx(6.0)  # halved its pace
    still = [{**row, "relative_gap": float("inf")} for row in rows]
    assert seconds_left(still, 1e-4, {}) is None


@pytest.mark.found("A5")
def test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(tmp_path, monkeypatch):
    path = tmp_path / "run"
    saved = []

    def save_once(run, place):
        saved.append(place)
        if len(saved) > 1:
            raise OSError(28, "No space left on device")
        place.write_text("the first")

    monkeypatch.setattr("maxmargin.solvers.driver.Run.save", save_once)
    with pytest.warns(RuntimeWarning, match=r"No space left on device.*the checkpoint before it stays.*Make room"):
        result = run(Halving(), PROBLEM, tol=0.1, callbacks=[Checkpoint(path)])
    assert result.status.converged and path.read_text() == "the first" and len(saved) > 2
