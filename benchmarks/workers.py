"""What workers elsewhere cost: fits in shards on threads, processes and Ray actors, and their memory over many rounds.

Two fits in two shards: a grid model of pictures of blobs in noise, whose changes are a few numbers, and a chain model
of artificial sentences, whose changes are tens of kilobytes in every round. Each runs on two threads and on two Ray
actors (``--processes``: also on two processes), in turn, ``--repeats`` times. The time of a fit includes the start of
its workers and their examples, but not that of the cluster. Weights must be identical to the last bit::

    python benchmarks/workers.py                   # a quiet machine
    python benchmarks/workers.py --memory 1000     # memory of driver and actors over 1,000 rounds, with a picture
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import maxmargin as mm
from machine import machine_line, save_picture
from maxmargin.callbacks.base import Callback
from maxmargin.execution.executors import Threads
from maxmargin.execution.processes import Processes
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.problem import Problem
from maxmargin.solvers.driver import Result, Run, run
from scale import C, bound_corpus

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.kills_workers import workers_of

MAKE = {"threads": lambda: Threads(2), "processes": lambda: Processes(2), "ray": lambda: mm.Ray().workers(2)}


def pictures(n: int, size: int) -> Problem:
    """Blobs in much noise, to be segmented."""
    rng = np.random.default_rng(0)
    masks = [(gaussian_filter(rng.normal(size=(size, size)), size / 12) > 0).astype(np.uint8) for _ in range(n)]
    X = []
    for mask in masks:
        seen = np.stack([mask + rng.normal(scale=2.0, size=mask.shape), np.ones(mask.shape)], -1)
        X.append({"node": seen, "edge": np.ones((2, *mask.shape, 1))})
    bound = mm.Grid().bind(X, masks)
    return mm.MarginRescaling().problem(bound, C=1.0 / size**2, positive=bound.layout.positive())


def sentences(n: int) -> Problem:
    """Artificial sentences with words, affixes and shapes as features."""
    with tempfile.TemporaryDirectory() as folder:
        bound, _ = bound_corpus(Path(folder), n)
    return mm.MarginRescaling().problem(bound, C=C)


def fit(executor: str, problem: Problem, tol: float) -> tuple[float, Result]:
    """Seconds of a fit on two workers, with their start, and the result."""
    workers = MAKE[executor]()  # Ray: and a cluster
    try:
        begin = time.perf_counter()
        spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, workers))
        solver = mm.Sharded(shards=2, visits_per_round="auto").engine(spread, 0)
        result = run(solver, spread, tol=tol, max_passes=200, executor=workers)
        workers.recall()
        return time.perf_counter() - begin, result
    finally:
        workers.close()


def overhead(given: argparse.Namespace) -> None:
    names = ["threads", "ray", *(["processes"] if given.processes else [])]
    tasks = {
        "pictures": (pictures, (given.pictures, given.size), (4, given.size), given.tol),
        "sentences": (sentences, (given.sentences,), (100,), given.sentences_tol),
    }
    for task, (make, whole, few, tol) in tasks.items():
        compare(task, make(*whole), make(*few), tol, names, given.repeats)


def compare(task: str, problem: Problem, small: Problem, tol: float, names: list[str], repeats: int) -> None:
    """Fits of one task by all executors in turn, and the ratios of their times."""
    print(f"{task}: {problem.n_examples} examples, {problem.n_weights} weights, to a relative gap of {tol:g}")
    for name in names:  # kernels
        fit(name, small, 0.1)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    weights = None
    for _ in range(repeats):
        for name in names:
            spent, found = fit(name, problem, tol)
            seconds[name].append(spent)
            print(f"{name:10} {spent:7.2f} s, {found.state.stamp} rounds; {found.status}", flush=True)
            weights = found.weights.copy() if weights is None else weights
            assert np.array_equal(weights, found.weights), "weights depend on the executor"
    base = statistics.median(seconds["threads"])
    for name in names[1:]:
        each = ", ".join(f"{b / a:.3f}" for a, b in zip(seconds["threads"], seconds[name], strict=True))
        print(f"{name}: {statistics.median(seconds[name]) / base:.3f} of the time on threads (pair by pair {each})")
    print("weights are identical", flush=True)


def random_chains(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Ten tokens with 50 features each, and random labels."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(10, 50)) for _ in range(n)], [rng.integers(0, 8, 10) for _ in range(n)]


def own_memory(pid: int) -> float:
    """Megabytes of anonymous memory; what is mapped of the cluster's object store, of a fixed size, does not count."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


class Watch(Callback):
    """Notes the memory of the driver and of all actors, with the number of the round, until enough rounds are done."""

    def __init__(self, rounds: int) -> None:
        self.rounds, self.rows, self.done = rounds, [], threading.Event()

    def on_begin(self, run: Run) -> None:
        self.run = run
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        actors = workers_of("ray", os.getpid())
        while not self.done.wait(0.2):
            pids = [os.getpid(), *actors]
            self.rows.append([self.run.state.stamp, *map(own_memory, pids)])

    def on_certificate(self, run: Run) -> str | None:
        return "stop" if run.state.stamp >= self.rounds else None

    def on_end(self, run: Run) -> None:
        self.done.set()
        self.thread.join()


def memory(given: argparse.Namespace) -> None:
    X, y = random_chains(given.chains)
    problem = mm.MarginRescaling().problem(mm.Chain().bind(X, y), C=1.0)
    watch, executor = Watch(given.memory), mm.Ray().workers(2)
    try:
        spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor))
        solver = mm.Sharded(shards=4, visits_per_round=16).engine(spread, 0)
        run(solver, spread, tol=0.0, max_passes=1e6, callbacks=[watch], executor=executor)
    finally:
        executor.close()
    rows = np.array(watch.rows)
    names = ["driver", *(f"actor {k}" for k in range(1, rows.shape[1] - 1))]
    rounds, middle = rows[:, 0], int(np.searchsorted(rows[:, 0], rows[-1, 0] / 2))
    print(f"anonymous memory (RssAnon), MB, at rounds {rounds[0]:.0f}, {rounds[middle]:.0f} and {rounds[-1]:.0f}")
    print(f"{'':10} {'first':>8} {'middle':>8} {'last':>8}  growth over the last half of the rounds")
    for k, name in enumerate(names, 1):
        first, half, last = rows[[0, middle, -1], k]
        print(f"{name:10} {first:8.1f} {half:8.1f} {last:8.1f} {last - half:+8.1f} ({100 * (last / half - 1):+.1f} %)")
    draw(names, rows, given.out)


def draw(names: list[str], rows: np.ndarray, path: Path) -> None:
    """Memory against rounds, a line for each process."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for k, name in enumerate(names, 1):
        axes.plot(rows[:, 0], rows[:, k], label=name)
    axes.set(xlabel="round", ylabel="anonymous memory, MB", ylim=(0, None))
    axes.legend()
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=160)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--chains", type=int, default=1000, help="examples of --memory")
    parser.add_argument("--tol", type=float, default=1e-7, help="of the pictures")
    parser.add_argument("--sentences", type=int, default=6_000)
    parser.add_argument("--sentences-tol", type=float, default=5e-3)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--memory", type=int, default=None, metavar="ROUNDS")
    parser.add_argument("--out", type=Path, default=Path("build/workers_memory.png"))
    given = parser.parse_args()
    print(machine_line())
    (overhead if given.memory is None else memory)(given)


if __name__ == "__main__":
    main()
