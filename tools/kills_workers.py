"""Kills workers at random moments: every fit must end with the weights and certificate of one that nobody disturbs.

    python tools/kills_workers.py [--kills 100] [--seed 0] [--executor ray] [--drivers 5] [--minutes 20]

A fit of thousands of rounds in shards runs again and again while random workers of it (Ray actors or processes) are
killed by their process id (SIGKILL), each at a random moment after all workers are there: while they work, wait, or
catch up with those before them. A kill counts when the fit had to replace the worker. Then the process that fits is
killed at a random moment and resumed from its checkpoint, ``--drivers`` times; one that ends before it is killed does
not count. Weights and certificates must be those of an undisturbed fit. If the time is over before all kills are done,
the run is incomplete and fails. Nothing but own descendants is killed.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# ruff: noqa: E402
import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

import maxmargin as mm

LONGEST = {"ray": 3.0, "processes": 1.0}  # seconds from when all workers are there to the next kill
WORKERS = 2


def examples() -> tuple[list, list]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 6)) for T in rng.integers(1, 9, 80)]
    return X, [rng.integers(0, 4, len(x)).tolist() for x in X]


def fit(executor: str, passes: int, checkpoint: Path | None = None) -> mm.SequenceTagger:
    """A fit of many short rounds that converges slowly; from a checkpoint where there is one."""
    callbacks = [] if checkpoint is None else [mm.Checkpoint(checkpoint)]
    solver = mm.Sharded(shards=4, visits_per_round=10)
    words = {"tol": 1e-12, "max_passes": passes, "n_jobs": WORKERS, "executor": executor, "callbacks": callbacks}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resume = checkpoint if checkpoint is not None and checkpoint.exists() else None
        return mm.SequenceTagger(C=100.0, solver=solver, **words).fit(*examples(), resume=resume)


def descendants(pid: int) -> dict[int, str]:
    """Processes below a process, and what they call themselves."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                names[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, ValueError):  # it has ended meanwhile
                continue
    found: dict[int, str] = {}
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level and child not in found}
        found |= {child: names.get(child, "") for child in level}
    return found


def workers_of(executor: str, pid: int) -> list[int]:
    """Processes of the workers of a fit: actors by their name, or all children that were forked."""
    below = descendants(pid)
    if executor == "ray":
        return [child for child, name in below.items() if name.startswith("ray::Home")]
    own = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return [child for child, name in below.items() if name == own]


class Killer(threading.Thread):
    """Kills random workers of this process at random moments, until there are enough or it is told to stop."""

    def __init__(self, executor: str, rng: np.random.Generator, most: int) -> None:
        super().__init__(daemon=True)
        self.executor, self.rng, self.most, self.done = executor, rng, most, threading.Event()

    def run(self) -> None:
        while self.most and not self.done.wait(0.02):
            if len(workers_of(self.executor, os.getpid())) < WORKERS:
                continue
            self.done.wait(self.rng.uniform(0.0, LONGEST[self.executor]))
            workers = [] if self.done.is_set() else workers_of(self.executor, os.getpid())
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(int(self.rng.choice(workers)), signal.SIGKILL)
                    self.most -= 1


def outcome(found: mm.SequenceTagger) -> np.ndarray:
    """What must not depend on kills: weights and certificate."""
    certificate = found.certificate_
    return np.array([*found.weights_, certificate.primal, certificate.dual, certificate.certified])


def kill_workers(executor: str, given: argparse.Namespace, rng: np.random.Generator) -> tuple[int, int]:
    """Runs with killed workers; how many workers were killed and replaced, and how many runs ended otherwise."""
    whole, done, faults, runs = outcome(fit("serial", given.passes)), 0, 0, 0
    end = time.monotonic() + 60.0 * given.minutes
    while done < given.kills and time.monotonic() < end:
        killer = Killer(executor, rng, given.kills - done)
        killer.start()
        try:
            found = fit(executor, given.passes)
        finally:
            killer.done.set()
            killer.join()
        replaced = int(np.nanmax(found.history_["workers_replaced"])) if "workers_replaced" in found.history_ else 0
        same = np.array_equal(outcome(found), whole)
        done, runs, faults = done + replaced, runs + 1, faults + (not same)
        print(f"run {runs}: {replaced} workers killed and replaced, {said(same)}", flush=True)
    return done, faults


def said(same: bool) -> str:
    return "the same weights and certificate" if same else "OTHER WEIGHTS OR CERTIFICATE"


def kill_drivers(executor: str, given: argparse.Namespace, rng: np.random.Generator) -> tuple[int, int]:
    """Fits killed as a whole and resumed; how many there were, and how many ended otherwise."""
    whole, environment = outcome(fit("serial", given.passes)), dict(os.environ)
    if executor == "ray":
        import ray

        environment["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    done, faults, latest, end = 0, 0, 3.0, time.monotonic() + 60.0 * given.minutes
    while done < given.drivers and time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint, result = Path(folder) / "run", Path(folder) / "result.npy"
            command = [sys.executable, __file__, "--fit", executor, str(checkpoint), str(result), str(given.passes)]
            process = subprocess.Popen(command, env=environment)
            while not checkpoint.exists() and process.poll() is None:
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, latest))
            process.kill()
            code = process.wait()
            if code not in (0, -signal.SIGKILL):
                raise RuntimeError(f"a fit that nobody had killed yet ended with code {code}; its message is above.")
            if result.exists():
                latest /= 2.0
                print("a driver had ended before it was killed; it does not count", flush=True)
                continue
            subprocess.run(command, env=environment, check=True)
            same = np.array_equal(np.load(result), whole)
            done, faults = done + 1, faults + (not same)
            print(f"driver {done}: killed and resumed, {said(same)}", flush=True)
    return done, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--drivers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=300, help="at most; 300 converge")
    parser.add_argument(
        "--minutes", type=float, default=20.0, help="for workers, and again for drivers, of an executor"
    )
    parser.add_argument("--executor", choices=sorted(LONGEST), action="append")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        executor, checkpoint, result, passes = given.fit
        np.save(result, outcome(fit(executor, int(passes), Path(checkpoint))))
        return 0
    good, rng = True, np.random.default_rng(given.seed)
    for executor in given.executor or sorted(LONGEST):
        if executor == "ray":
            import ray

            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        workers, wrong = kill_workers(executor, given, rng)
        drivers, wrong_drivers = kill_drivers(executor, given, rng)
        faults, complete = wrong + wrong_drivers, workers >= given.kills and drivers >= given.drivers
        end = f"{faults} FAULTS" if faults else "every run ended as if undisturbed"
        if not complete:
            end += f"; INCOMPLETE, the time was over before {given.kills} and {given.drivers}: raise --minutes"
        print(f"{executor}: {workers} kills of workers, {drivers} of drivers; {end}", flush=True)
        good &= complete and not faults
        if executor == "ray":
            ray.shutdown()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
