"""Checkpoints: a run that is stopped and resumed ends with the same weights, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.callbacks import Callback
from maxmargin.persistence.checkpoint import load_checkpoint
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = random_chains(40, 4, 3, lengths=(1, 6), seed=0)
LISTS = [y.tolist() for y in Y]
SOURCE = Path(__file__).parents[1] / "src"

SOLVERS = {
    "auto": mm.Auto(),
    "auto, small memory": mm.Auto(memory=150_000),
    "sharded": mm.Sharded(shards=3, visits_per_round=4),
    "sharded, rounds by cost": mm.Sharded(shards=2),
    "sharded, averaged": mm.Sharded(shards=3, visits_per_round=4, averaging="weighted"),
    "strands": mm.Sharded(strands=3),
    "sequential_dual": mm.SequentialDual(certificate_every=2.0),
    "bcfw, random": mm.BCFW(sampling="random", certificate_every=2.0),
    "bcfw, gap": mm.BCFW(sampling="gap", certificate_every=2.0),
    "bcfw, cyclic": mm.BCFW(sampling="cyclic", certificate_every=1.0),
    "frank_wolfe": mm.FrankWolfe(),
    "cutting_plane": mm.CuttingPlane(),
    "cutting_plane, n": mm.CuttingPlane("n"),
    "simplicial, one": mm.SimplicialDecomposition(blocks="one", limit=5),
    "simplicial, groups": mm.SimplicialDecomposition(blocks="one", working_set=10, limit=5),
    "simplicial, product": mm.SimplicialDecomposition(limit=3),
    "simplicial, working set": mm.SimplicialDecomposition(working_set=9, selection="random"),
}
DIALS = {"C": 1.0, "tol": 1e-9, "max_passes": 30, "random_state": 3}


class SaveAt(Callback):
    """Keeps the arrays of one certificate, and ends the run there if asked."""

    def __init__(self, certificate, path=None, stop=False):
        self.certificate, self.path, self.stop, self.arrays = certificate, path, stop, None

    def on_certificate(self, run):
        if len(run.history) == self.certificate:
            self.arrays = run.to_arrays()
            if self.path is not None:
                run.save(self.path)
            return "stop" if self.stop else None
        return None


def same(resumed, whole):
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert resumed.certificate_ == whole.certificate_
    assert resumed.oracle_calls_ == whole.oracle_calls_
    assert resumed.status_.code == whole.status_.code
    columns = ["pass", "oracle_calls", "argmax_calls", "primal", "dual", "certified"]
    assert resumed.history_[columns].equals(whole.history_[columns])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_resuming_continues_bit_for_bit(solver, loss, tmp_path):
    settings = DIALS | {"solver": SOLVERS[solver], "loss": loss}
    for certificate in (1, 2):
        path = tmp_path / f"{certificate}.npz"
        save = SaveAt(certificate, path)
        whole = mm.SequenceTagger(**settings, callbacks=[save]).fit(X, Y)
        assert len(whole.history_) > certificate, "nothing is left to resume"
        same(mm.SequenceTagger(**settings).fit(X, Y, resume=path), whole)
        same(mm.SequenceTagger(**settings).fit(X, Y, resume=save.arrays), whole)


@pytest.mark.parametrize("solver", ["auto", "bcfw, random", "cutting_plane"])
def test_resuming_with_sign_constraints_and_sample_weights(solver, tmp_path):
    settings = DIALS | {"solver": SOLVERS[solver], "positive": "transition"}
    weight = np.linspace(0.0, 2.0, len(X))
    save = SaveAt(2, tmp_path / "c")
    whole = mm.SequenceTagger(**settings, callbacks=[save]).fit(X, Y, weight)
    same(mm.SequenceTagger(**settings).fit(X, Y, weight, resume=save.path), whole)


def test_resuming_a_run_that_was_stopped_from_outside(tmp_path):
    settings = DIALS | {"solver": SOLVERS["bcfw, random"]}
    whole = mm.SequenceTagger(**settings).fit(X, Y)
    path = tmp_path / "checkpoint"
    stopped = mm.SequenceTagger(**settings, callbacks=[mm.Checkpoint(path), SaveAt(3, stop=True)]).fit(X, Y)
    assert stopped.status_.code == "stopped by callback"
    resumed = mm.SequenceTagger(**settings).fit(X, Y, resume=str(path))
    same(resumed, whole)
    assert resumed.seconds_["total"] > stopped.seconds_["total"]


def test_resuming_with_another_number_of_workers_and_a_longer_budget(tmp_path):
    path = tmp_path / "checkpoint"
    settings = DIALS | {"solver": mm.Auto(batch=32)}
    whole = mm.SequenceTagger(**settings).fit(X, Y)
    mm.SequenceTagger(**settings | {"max_passes": 10}, callbacks=[mm.Checkpoint(path, every=1)]).fit(X, Y)
    resumed = mm.SequenceTagger(**settings, n_jobs=3).fit(X, Y, resume=path)
    assert resumed.oracle_calls_ <= DIALS["max_passes"] * len(X)
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-2)
    assert resumed.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-2)


def test_a_finished_run_resumes_to_its_end(tmp_path):
    path = tmp_path / "checkpoint"
    settings = {"C": 0.1, "solver": "sequential_dual"}
    first = mm.SequenceTagger(**settings, callbacks=[mm.Checkpoint(path)]).fit(X, Y)
    again = mm.SequenceTagger(**settings).fit(X, Y, resume=path)
    assert again.status_.converged and again.oracle_calls_ == first.oracle_calls_
    np.testing.assert_array_equal(first.weights_, again.weights_)
    tighter = mm.SequenceTagger(**settings, tol=1e-6).fit(X, Y, resume=path)
    assert tighter.certificate_.relative_gap <= 1e-6 and tighter.oracle_calls_ > first.oracle_calls_


OTHER = {
    "fewer examples": (X[:-1], Y[:-1], {}),
    "another C": (X, Y, {"C": 2.0}),
    "more features": ([np.hstack([x, x]) for x in X], Y, {}),
    "another loss": (X, Y, {"loss": "squared_hinge"}),
    "other features": ([-x for x in X], Y, {}),
    "other labels": (X, [(y + 1) % 4 for y in Y], {}),
    "another cost": (X, Y, {"cost": 2.0 - 2.0 * np.eye(4)}),
    "another order": (X[::-1], Y[::-1], {}),
    "other blocks": (X, Y, {"solver": mm.CuttingPlane()}),
}


@pytest.mark.parametrize("case", OTHER)
def test_resuming_on_another_problem_is_refused(case, tmp_path):
    path = tmp_path / "checkpoint"
    mm.SequenceTagger(**DIALS | {"max_passes": 6}, callbacks=[mm.Checkpoint(path)]).fit(X, Y)
    inputs, labels, params = OTHER[case]
    with pytest.raises(ValueError, match=r"the saved state belongs to another problem"):
        mm.SequenceTagger(**DIALS | params).fit(inputs, labels, resume=path)


def test_resuming_from_what_is_not_a_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError):
        mm.SequenceTagger().fit(X, Y, resume=tmp_path / "nothing")
    (tmp_path / "text").write_text("not a checkpoint")
    with pytest.raises(ValueError, match=r"cannot be read as a checkpoint"):
        mm.SequenceTagger().fit(X, Y, resume=tmp_path / "text")
    with pytest.raises(ValueError, match=r"resume holds no run"):
        mm.SequenceTagger().fit(X, Y, resume={"w": np.zeros(3)})


# --- the process is killed --------------------------------------------------------------------------------------------

SCRIPT = """
    import sys, time
    import numpy as np
    import maxmargin as mm
    from maxmargin.callbacks import Callback

    class Slow(Callback):
        def on_certificate(self, run):
            print(len(run.history), flush=True)
            time.sleep(float(sys.argv[2]))

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 3)) for T in rng.integers(1, 7, 40)]
    Y = [rng.integers(0, 4, len(x)).tolist() for x in X]
    solver = eval(sys.argv[3])
    resume = sys.argv[4] if len(sys.argv) > 4 else None
    fitted = mm.SequenceTagger(
        C=1.0, tol=1e-9, max_passes=40, random_state=5, solver=solver, callbacks=[mm.Checkpoint(sys.argv[1]), Slow()]
    ).fit(X, Y, resume=resume)
    np.save(sys.argv[1] + ".weights", fitted.weights_)
"""


def start(tmp_path, name, pause, solver, *resume):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path / name), str(pause), solver, *map(str, resume)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(
    "solver", ["mm.SequentialDual(certificate_every=1.0)", "mm.BCFW(sampling='random', certificate_every=2.0)"]
)
def test_killed_in_mid_run(solver, tmp_path):
    whole = start(tmp_path, "whole", 0, solver)
    killed = start(tmp_path, "killed", 0.2, solver)
    for line in killed.stdout:  # a line for each certificate; the checkpoint of the one before is on disk
        if int(line) == 4:
            break
    time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait(30) == -signal.SIGKILL
    killed.stdout.close()
    assert whole.wait(60) == 0
    whole.stdout.close()
    rows = len(load_checkpoint(tmp_path / "killed")["history/primal"])
    assert 3 <= rows <= 5
    assert not (tmp_path / "killed.weights.npy").exists()
    resumed = start(tmp_path, "resumed", 0, solver, tmp_path / "killed")
    told = resumed.communicate(timeout=240)[0]
    assert resumed.returncode == 0
    assert int(told.split()[0]) == rows + 1
    np.testing.assert_array_equal(np.load(tmp_path / "whole.weights.npy"), np.load(tmp_path / "resumed.weights.npy"))


def test_interrupted_and_resumed(tmp_path):
    """Ctrl-C in the middle of a step leaves a state that can be saved, resumed, and converges to the same optimum."""

    class Interrupt(Callback):
        def on_certificate(self, run):
            if len(run.history) == 2:
                raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    estimator = mm.SequenceTagger(**DIALS, callbacks=[mm.Checkpoint(path), Interrupt()])
    with pytest.warns(ConvergenceWarning, match=r"fit again with a warm start, or resume, to continue"):
        estimator.fit(X, Y)
    resumed = mm.SequenceTagger(**DIALS).fit(X, Y, resume=path)
    whole = mm.SequenceTagger(**DIALS).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


@pytest.mark.parametrize("solver", [mm.Pegasos(certificate_every=2.0), mm.MIRA(passes=99), mm.FrankWolfe()])
def test_the_checkpoint_of_a_finished_run_gives_its_weights(solver, tmp_path):
    """A process may be killed after its last checkpoint and before it has written its result."""
    settings = DIALS | {"solver": solver, "max_passes": 9}
    whole = mm.SequenceTagger(**settings, callbacks=[mm.Checkpoint(tmp_path / "end")]).fit(X, Y)
    same(mm.SequenceTagger(**settings).fit(X, Y, resume=tmp_path / "end"), whole)
