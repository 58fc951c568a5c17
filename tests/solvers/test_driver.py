"""The driver with a small solver whose every certificate is known; certificate, history and status."""

import builtins
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from maxmargin.certificate import Certificate, WeakDualityError
from maxmargin.solvers.base import Engine
from maxmargin.solvers.driver import run
from maxmargin.solvers.history import History
from maxmargin.solvers.status import Status


class Problem:
    n_examples = 10
    traits = frozenset()


@dataclass
class HalvingState:
    steps: int = 0
    oracle_calls: int = 0
    argmax_calls: int = 0
    unproven: int = 0
    seconds: dict = field(default_factory=lambda: {"oracle": 0.0, "solver": 0.0})

    def to_arrays(self):
        return {"steps": np.array(self.steps), "calls": np.array([self.oracle_calls, self.argmax_calls])}


class Halving(Engine):
    """After k steps the certificate is (1 + 2^-k, 1): relative gap 2^-k / (1 + 2^-k). A step is a pass."""

    handles = frozenset()

    def __init__(self, every=1, on_step=None, on_certificate=None):
        self.every, self.on_step, self.on_certificate = every, on_step, on_certificate

    def init(self, problem, warm=None):
        return HalvingState(steps=0 if warm is None else warm)

    def certificate_due(self, state):
        return state.steps % self.every == 0

    def certificate(self, state):
        if self.on_certificate:
            self.on_certificate(state)
        return Certificate(1 + 2.0**-state.steps, 1.0)

    def step_calls(self, state):
        return 10

    def step(self, state):
        state.oracle_calls += 10
        state.argmax_calls += 20
        state.steps += 1
        state.seconds["oracle"] += 0.25
        if self.on_step:
            self.on_step(state)

    def weights(self, state):
        return np.array([float(state.steps)])

    def from_arrays(self, problem, arrays):
        calls = arrays["calls"]
        return HalvingState(int(arrays["steps"]), int(calls[0]), int(calls[1]))


class Listener:
    def __init__(self, stop_at=None):
        self.events, self.stop_at = [], stop_at

    def on_begin(self, run):
        self.events.append("begin")

    def on_certificate(self, run):
        self.events.append(run.state.steps)
        return "stop" if run.state.steps == self.stop_at else None

    def on_end(self, run):
        self.events.append("end")
        self.status = run.status


def gap(k):
    return 2.0**-k / (1 + 2.0**-k)


class Listed(Halving):
    """Certificates as they are listed, the last again and again."""

    def __init__(self, *pairs):
        super().__init__()
        self.pairs = pairs

    def certificate(self, state):
        return Certificate(*self.pairs[min(state.steps, len(self.pairs) - 1)])


def test_an_optimum_of_zero_is_reached_by_rounding():
    result = run(Listed((28.0, 0.0), (1.0, 0.0), (1e-13, 0.0)), Problem(), tol=1e-3, max_passes=9)
    assert result.status.code == "converged" and result.state.steps == 2


def test_a_bound_that_was_wide_open_makes_no_later_gap_small():
    """A search may bound a loss by 1e15 once; that is no size of the problem."""
    result = run(Listed((28.0, 0.0), (1.8e15, 0.1), (16.7, 0.3), (16.6, 0.4)), Problem(), tol=1e-3, max_passes=9)
    assert result.status.code == "stalled" and result.certificate.relative_gap > 0.9


def test_converges_at_the_first_certificate_below_tol():
    result = run(Halving(), Problem(), tol=1e-3)
    assert result.status.code == "converged" and result.status.converged
    assert gap(10) <= 1e-3 < gap(9) and result.state.steps == 10
    assert result.history.column("pass").tolist() == list(range(11))
    assert result.history.column("argmax_calls")[-1] == 200
    assert result.history.column("relative_gap") == pytest.approx([gap(k) for k in range(11)])
    assert result.certificate.relative_gap == result.history[-1]["relative_gap"]
    assert result.weights.tolist() == [10.0]
    assert set(result.seconds) == {"total", "oracle", "solver", "compile"} and result.seconds["oracle"] == 2.5
    assert "0.00098" in result.status.sentence and "tol 0.001" in result.status.sentence


@pytest.mark.parametrize(
    ("budget", "steps"),
    [({"max_passes": 3}, 3), ({"max_passes": 2.5}, 2), ({"max_oracle_calls": 41}, 4), ({"max_passes": 0}, 0)],
)
def test_budgets(budget, steps):
    result = run(Halving(), Problem(), tol=1e-9, **budget)
    (name,) = budget
    assert result.status.code == name and result.state.steps == steps
    assert name in result.status.sentence and f"(now {budget[name]:g})" in result.status.sentence
    assert result.certificate.relative_gap == gap(steps) and len(result.history) == steps + 1


def test_time_budget_still_ends_with_a_certificate():
    result = run(Halving(every=1000, on_step=lambda state: time.sleep(0.005)), Problem(), tol=0.0, max_seconds=0.02)
    assert result.status.code == "max_seconds"
    assert result.certificate.primal == 1 + 2.0**-result.state.steps  # of the final weights, not of the first ones
    assert len(result.history) == 2


def test_final_certificate_may_show_convergence():
    result = run(Halving(every=7), Problem(), tol=1e-3, max_passes=12)
    assert result.status.code == "converged" and result.history.column("pass").tolist() == [0, 7, 12]


def test_callback_stops_and_all_callbacks_hear_it():
    first, second = Listener(stop_at=4), Listener()
    result = run(Halving(every=2), Problem(), tol=1e-9, callbacks=[first, second])
    assert result.status.code == "stopped by callback" and result.state.steps == 4
    assert first.events == second.events == ["begin", 0, 2, 4, "end"]
    assert second.status is result.status


def test_stalled():
    class Still(Halving):
        def certificate(self, state):
            return Certificate(2.0, 1.0)

    result = run(Still(), Problem(), tol=1e-3)
    assert result.status.code == "stalled" and len(result.history) == 4
    assert "raise tol" in result.status.sentence


def interrupt_at(step):
    def act(state):
        if state.steps == step:
            raise KeyboardInterrupt

    return act


def test_interrupted_step_keeps_its_work():
    listener = Listener()
    result = run(Halving(on_step=interrupt_at(3)), Problem(), tol=1e-9, callbacks=[listener])
    assert result.status.code == "interrupted" and result.state.steps == 3
    assert result.certificate == Certificate(1 + 2.0**-3, 1.0)
    assert listener.events == ["begin", 0, 1, 2, 3, "end"]


def test_interrupted_certificate_is_made_again():
    seen = []

    def act(state):
        seen.append(state.steps)
        if seen == [0, 1, 2]:
            raise KeyboardInterrupt

    result = run(Halving(on_certificate=act), Problem(), tol=1e-9)
    assert result.status.code == "interrupted" and seen == [0, 1, 2, 2]
    assert result.certificate.certified and result.certificate.primal == 1.25


def test_second_interrupt_gives_up_the_final_certificate():
    def act(state):
        if state.steps == 3:
            raise KeyboardInterrupt

    result = run(Halving(on_step=interrupt_at(3), on_certificate=act), Problem(), tol=1e-9)
    assert result.status.code == "interrupted"
    assert result.certificate == Certificate(np.inf, 1.0, certified=False)
    assert result.certificate.relative_gap == np.inf and "unknown" in result.status.sentence
    assert result.weights.tolist() == [3.0]


def test_interrupt_before_the_first_certificate():
    def act(state):
        raise KeyboardInterrupt

    result = run(Halving(on_certificate=act), Problem(), tol=1e-9)
    assert result.certificate == Certificate(np.inf, -np.inf, certified=False)
    assert result.status.code == "interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_real_signal():
    script = textwrap.dedent(
        """
        import sys, time
        sys.path.insert(0, sys.argv[1])
        from test_driver import Halving, Problem
        from maxmargin.solvers.driver import run

        def slow(state):
            print("step", flush=True)
            time.sleep(0.05)

        result = run(Halving(every=10**9, on_step=slow), Problem(), tol=0.0, max_seconds=60)
        print(result.status.code, result.certificate.primal == 1 + 2.0**-result.state.steps, result.state.steps > 0)
        """
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    process = subprocess.Popen(
        [sys.executable, "-c", script, os.path.dirname(__file__)], stdout=subprocess.PIPE, text=True, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    assert process.stdout.readline() == "step\n"
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0 and output.splitlines()[-1] == "interrupted True True"


def test_weak_duality_violation_stops_the_run():
    class Wrong(Halving):
        def certificate(self, state):
            return Certificate(1.0, 1.0 + 1e-3 * (state.steps == 2))

    listener = Listener()
    with pytest.raises(WeakDualityError, match="argmax"):
        run(Wrong(), Problem(), tol=0.0, warm=2, callbacks=[listener])
    assert listener.events == ["begin", "end"] and listener.status is None


def test_resume_equals_one_long_run():
    long = run(Halving(every=2), Problem(), tol=1e-9, max_passes=20)
    saved = []

    class Save(Listener):
        def on_certificate(self, run):
            saved.append(run.to_arrays())

    run(Halving(every=2), Problem(), tol=1e-9, max_passes=8, callbacks=[Save()])
    resumed = run(Halving(every=2), Problem(), tol=1e-9, max_passes=20, resume=saved[-1])
    assert resumed.certificate == long.certificate and resumed.status.code == long.status.code
    for name in ("pass", "oracle_calls", "primal", "dual"):
        assert resumed.history.column(name).tolist() == long.history.column(name).tolist()
    assert (np.diff(resumed.history.column("seconds")) >= 0).all()
    again = run(Halving(every=2), Problem(), tol=0.5, resume=saved[-1])
    assert again.state.steps == 8 and again.status.code == "converged"


def test_uncertified_gap_is_never_sold_as_a_proof():
    class Estimate(Halving):
        def certificate(self, state):
            return Certificate(0.5, 1.0, certified=False)  # an estimate may lie below the dual

    result = run(Estimate(), Problem(), tol=1e-3)
    assert not result.certificate.certified and "not a proof" in result.status.sentence


def test_bad_arguments():
    with pytest.raises(ValueError, match="tol"):
        run(Halving(), Problem(), tol=float("nan"))
    with pytest.raises(ValueError, match="max_passes"):
        run(Halving(), Problem(), max_passes=-1)
    with pytest.raises(ValueError, match="exclude"):
        run(Halving(), Problem(), warm=1, resume={})
    with pytest.raises(ValueError, match="resume holds no run"):
        run(Halving(), Problem(), resume={"x": np.zeros(2)})


def test_gap_in_both_units():
    certificate = Certificate(4.0, 3.0)
    assert certificate.gap == 1.0 and certificate.relative_gap == 0.25
    assert Certificate(1.0, -4.0).relative_gap == 5.0 / 4.0
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(1.0, 1.0 + 1e-15).relative_gap == 0.0


def test_unknown_values_have_an_infinite_gap():
    for certificate in (Certificate(math.inf, 1.0), Certificate(1.0, -math.inf), Certificate(math.inf, -math.inf)):
        assert certificate.relative_gap == math.inf


def test_check_allows_rounding_only():
    assert Certificate(1.0, 1.0 + 1e-12).check().gap < 0
    Certificate(1e9, 1e9 + 0.1).check()
    with pytest.raises(WeakDualityError, match=r"by 0\.001"):
        Certificate(1.0, 1.001).check()
    Certificate(1.0, 1.001).check(tolerance=0.01)
    Certificate(1.0, 1.001, certified=False).check()
    with pytest.raises(WeakDualityError, match="not a number"):
        Certificate(math.nan, 1.0).check()


def make_history(n):
    history = History()
    for k in range(n):
        history.record(Certificate(2.0, 1.0 + k / n), passes=k, oracle_calls=5 * k, argmax_calls=9 * k, seconds=0.1 * k)
    return history


def test_frame_and_columns():
    history = make_history(3)
    history.annotate(score=0.5)
    frame = history.to_frame()
    assert list(frame.columns)[:3] == ["pass", "oracle_calls", "argmax_calls"] and list(frame.columns)[-1] == "score"
    assert frame["gap"].tolist() == pytest.approx([1.0, 2 / 3, 1 / 3])
    assert np.isnan(history.column("score")[:2]).all() and history.column("score")[2] == 0.5
    assert len(history) == 3 and history[-1]["oracle_calls"] == 10


def test_without_pandas(monkeypatch):
    genuine = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    history = make_history(3)
    history.annotate(note="last")
    table = history.to_frame()
    assert isinstance(table, dict) and table["pass"].tolist() == [0.0, 1.0, 2.0] and table["certified"].dtype == bool
    assert table["note"][2] == "last" and np.isnan(table["note"][0])


def test_round_trip_and_table():
    history = make_history(30)
    history.annotate(score=np.float64(0.25), note="x")
    again = History.from_arrays(history.to_arrays())
    assert again.rows == history.rows
    table = repr(history).splitlines()
    assert "rel. gap" in table[0] and len(table) == 14 and "18 rows" in table[5]
    assert History.from_arrays(History().to_arrays()).rows == []


def test_extras_cannot_hide_columns():
    with pytest.raises(ValueError, match="primal"):
        make_history(1).annotate(primal=3)


def test_status_codes_are_closed():
    with pytest.raises(ValueError, match="max_passes"):
        Status("done", "?")
    assert str(Status("stalled", "Because.")) == "Because."
