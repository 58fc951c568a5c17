"""Kills workers at random moments: every fit must end with the weights and certificate of one that nobody disturbs.

    python tools/kills_workers.py [--kills 100] [--seed 0] [--executor ray] [--drivers 5] [--minutes 20]

A fit in shards runs again and again while random workers of it (Ray actors or processes) are killed by their process id
(SIGKILL) at random moments, until there have been so many kills. Then the process that fits is killed at a random
moment and resumed from its checkpoint, ``--drivers`` times. Nothing but own descendants is killed.
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
from pathlib import Path

import numpy as np

import maxmargin as mm

PAUSES = {"ray": (0.3, 3.0), "processes": (0.05, 1.0)}  # seconds between kills: a new actor needs some to begin


def examples() -> tuple[list, list]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 6)) for T in rng.integers(1, 9, 80)]
    return X, [rng.integers(0, 4, len(x)).tolist() for x in X]


def fit(executor: str, passes: int, checkpoint: Path | None = None) -> mm.SequenceTagger:
    """A fit of many short rounds; from a checkpoint where there is one."""
    callbacks = [] if checkpoint is None else [mm.Checkpoint(checkpoint)]
    solver = mm.Sharded(shards=4, visits_per_round=10)
    words = {"tol": 1e-12, "max_passes": passes, "n_jobs": 2, "executor": executor, "callbacks": callbacks}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resume = checkpoint if checkpoint is not None and checkpoint.exists() else None
        return mm.SequenceTagger(C=1.0, solver=solver, **words).fit(*examples(), resume=resume)


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
    """Kills a random worker of this process after random pauses, until it is told to stop."""

    def __init__(self, executor: str, rng: np.random.Generator, most: int) -> None:
        super().__init__(daemon=True)
        self.executor, self.rng, self.most, self.kills, self.done = executor, rng, most, 0, threading.Event()

    def run(self) -> None:
        while self.kills < self.most and not self.done.wait(self.rng.uniform(*PAUSES[self.executor])):
            workers = workers_of(self.executor, os.getpid())
            if workers:
                try:
                    os.kill(int(self.rng.choice(workers)), signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    pass


def kill_workers(executor: str, kills: int, passes: int, rng: np.random.Generator, end: float) -> tuple[int, int]:
    """Runs with killed workers; how many kills there were and how many runs ended otherwise."""
    whole, done, faults, runs = fit("serial", passes), 0, 0, 0
    while done < kills and time.monotonic() < end:
        killer = Killer(executor, rng, kills - done)
        killer.start()
        begin = time.monotonic()
        found = fit(executor, passes)
        seconds = time.monotonic() - begin
        killer.done.set()
        killer.join()
        done, runs = done + killer.kills, runs + 1
        same = np.array_equal(found.weights_, whole.weights_) and found.certificate_ == whole.certificate_
        faults += not same
        replaced = found.history_["workers_replaced"].max() if "workers_replaced" in found.history_ else 0
        state = "the same weights and certificate" if same else "OTHER WEIGHTS OR CERTIFICATE"
        print(f"run {runs}: {killer.kills} kills, {replaced:.0f} replaced, {seconds:.1f} s, {state}", flush=True)
    return done, faults


def kill_drivers(executor: str, drivers: int, passes: int, rng: np.random.Generator) -> int:
    """Fits killed as a whole and resumed; how many ended otherwise."""
    whole, faults, environment = fit("serial", passes), 0, dict(os.environ)
    if executor == "ray":
        import ray

        environment["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    for number in range(drivers):
        with tempfile.TemporaryDirectory() as folder:
            checkpoint, result = Path(folder) / "run", Path(folder) / "weights.npy"
            command = [sys.executable, __file__, "--fit", executor, str(checkpoint), str(result), str(passes)]
            process = subprocess.Popen(command, env=environment)
            while not checkpoint.exists() and process.poll() is None:
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, 3.0))
            process.kill()
            process.wait()
            in_time = not result.exists()
            subprocess.run(command, env=environment, check=True)
            same = np.array_equal(np.load(result), whole.weights_)
            faults += not same
            when = "killed and resumed" if in_time else "had ended before it was killed"
            print(f"driver {number + 1}: {when}, {'the same weights' if same else 'OTHER WEIGHTS'}", flush=True)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--drivers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=20.0, help="no new run begins after that")
    parser.add_argument("--executor", choices=sorted(PAUSES), action="append")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        executor, checkpoint, result, passes = given.fit
        np.save(result, fit(executor, int(passes), Path(checkpoint)).weights_)
        return 0
    faults, rng = 0, np.random.default_rng(given.seed)
    for executor in given.executor or sorted(PAUSES):
        if executor == "ray":
            import ray

            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        end = time.monotonic() + 60.0 * given.minutes
        done, wrong = kill_workers(executor, given.kills, given.passes, rng, end)
        wrong += kill_drivers(executor, given.drivers, given.passes, rng)
        end_of_all = f"{wrong} FAULTS" if wrong else "every run ended as if undisturbed"
        print(f"{executor}: {done} kills of workers, {given.drivers} of drivers; {end_of_all}", flush=True)
        faults += wrong
        if executor == "ray":
            ray.shutdown()
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
