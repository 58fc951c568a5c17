"""What workers elsewhere cost: fits in shards on threads, processes and Ray actors, and their memory over many rounds.

Two fits in two shards: a grid model of pictures of blobs in noise, whose changes are a few numbers, and a chain model
of artificial sentences, whose changes are tens of kilobytes in every round. Each runs on two threads and on two Ray
actors (``--processes``: also on two processes), in turn, ``--repeats`` times. The time of a fit includes the start of
its workers and their examples, but not that of the cluster. Weights must be identical to the last bit::

    python benchmarks/workers.py                   # a quiet machine
    python benchmarks/workers.py --memory 4000     # memory of driver and actors over 4,000 rounds, with a picture

Memory follows the planes that a fit keeps. So that there is something to see once these are settled, examples have few
outputs, and features of very different sizes: the fit goes on for thousands of rounds with changes as large as at its
beginning. The first ``--warm-up`` rounds, in which planes gather, do not count. The planes of each round are those of
the same fit in one process. Beside it, actors without maxmargin send and get as many bytes: what Ray itself needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import maxmargin as mm
from machine import machine_line, save_picture
from maxmargin.callbacks.base import Callback
from maxmargin.contracts import Executor
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.processes import Processes
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.problem import Problem
from maxmargin.solvers.driver import Result, Run, run
from scale import C, bound_corpus

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.kills_workers import descendants, workers_of

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
    weights, rounds = None, 0
    for _ in range(repeats):
        for name in names:
            spent, found = fit(name, problem, tol)
            seconds[name].append(spent)
            rounds = found.state.stamp
            print(f"{name:10} {spent:7.2f} s, {found.state.stamp} rounds; {found.status}", flush=True)
            weights = found.weights.copy() if weights is None else weights
            assert np.array_equal(weights, found.weights), "weights depend on the executor"
    base = statistics.median(seconds["threads"])
    for name in names[1:]:
        each = ", ".join(f"{b / a:.3f}" for a, b in zip(seconds["threads"], seconds[name], strict=True))
        middle = statistics.median(seconds[name])
        print(f"{name}: {middle / base:.3f} of the time on threads (pair by pair {each})")
        print(f"{name}: {1e3 * (middle - base) / rounds:.2f} ms more in each of {rounds} rounds")
    print("weights are identical", flush=True)


def pairs(n: int, features: int) -> Problem:
    """Pairs of tokens with random labels of three and with random features of sizes 1, 1/2, 1/3, ..."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, features)) / np.arange(1, features + 1) for _ in range(n)]
    return mm.MarginRescaling().problem(mm.Chain().bind(X, [rng.integers(0, 3, 2) for _ in range(n)]), C=100.0)


def own_memory(pid: int) -> float:
    """Megabytes of anonymous memory; what is mapped of the cluster's object store, of a fixed size, does not count."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


class Watch:
    """Notes the memory of this process and of others every fifth of a second, with a number that counts rounds."""

    def __init__(self, count: Callable[[], int], others: Sequence[int]) -> None:
        self.count, self.pids, self.rows, self.done = count, [os.getpid(), *others], [], threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.done.wait(0.2):
            self.rows.append([self.count(), *map(own_memory, self.pids)])

    def end(self) -> np.ndarray:
        """A row for each time: the round, and megabytes."""
        self.done.set()
        self.thread.join()
        return np.array(self.rows)


class Rounds(Callback):
    """Ends a run after so many rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def on_certificate(self, run: Run) -> str | None:
        return "stop" if run.state.stamp >= self.rounds else None


class Watched(Rounds):
    """Notes the memory of the driver and of all actors."""

    def on_begin(self, run: Run) -> None:
        self.watch = Watch(lambda: run.state.stamp, workers_of("ray", os.getpid()))

    def on_end(self, run: Run) -> None:
        self.rows = self.watch.end()


class Counted(Rounds):
    """Notes the number of planes of all shards at each certificate."""

    def on_begin(self, run: Run) -> None:
        self.rows: list[list[int]] = []

    def on_certificate(self, run: Run) -> str | None:
        planes = sum(shard.state.working_set.n_planes for shard in run.state.shards)
        self.rows.append([run.state.stamp, planes])
        return super().on_certificate(run)


def rounds_of(problem: Problem, executor: Executor, callback: Rounds) -> None:
    """A fit in four shards until the callback ends it."""
    try:
        spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor))
        solver = mm.Sharded(shards=4, visits_per_round=64).engine(spread, 0)
        run(solver, spread, tol=0.0, max_passes=1e6, callbacks=[callback], executor=executor)
    finally:
        executor.close()


def bare_rounds(size: int, rounds: int) -> np.ndarray:
    """Memory of this process and of two actors of Ray alone, which get 4 ``size`` bytes each and return 2 ``size``."""
    import ray

    class Bare:
        def answer(self, *data: bytes) -> bytes:
            return bytes(2 * size)

    actors = [ray.remote(Bare).options(num_cpus=1).remote() for _ in range(2)]
    ray.get([actor.answer.remote() for actor in actors])
    below, count = descendants(os.getpid()), 0
    watch = Watch(lambda: count, [pid for pid, name in below.items() if name.startswith("ray::Bare")])
    for number in range(1, rounds + 1):
        count = number
        sent = ray.put(bytes(4 * size))
        for answer in [actor.answer.remote(sent) for actor in actors]:
            ray.get(answer)
    for actor in actors:
        ray.kill(actor)
    return watch.end()


def memory(given: argparse.Namespace) -> None:
    problem, warm = pairs(given.pairs, given.features), given.warm_up
    size = 8 * problem.n_weights
    watched, counted = Watched(given.memory), Counted(given.memory)
    rounds_of(problem, mm.Ray().workers(2), watched)
    bare = bare_rounds(size, given.memory)  # afterwards: what Ray sets aside at its first use is not that of a fit
    rounds_of(problem, Serial(), counted)
    rows, planes = watched.rows, np.array(counted.rows)
    print(f"{problem.n_examples} examples in 4 shards on 2 actors; the changes of a shard are {size / 1000:.0f} kB")
    print("anonymous memory (RssAnon), MB, and planes kept")
    names = ["driver", *(f"actor {k}" for k in range(1, rows.shape[1] - 1))]
    print("".join(f"{name:>9}" for name in ["round", *names, "planes"]))
    for number in [0, *range(warm // 2, given.memory + 1, warm // 2)]:
        near = rows[np.abs(rows[:, 0] - number).argmin()]
        kept = planes[np.abs(planes[:, 0] - near[0]).argmin(), 1]
        print(f"{near[0]:9.0f}" + "".join(f"{megabytes:9.1f}" for megabytes in near[1:]) + f"{kept:9.0f}")
    print(f"growth in 1,000 rounds, after round {warm:,} (a line through all that was seen), MB")
    for name, k in zip(names, range(1, rows.shape[1]), strict=True):
        print(f"{name:>9} {slope(rows, k, warm):+7.2f} ({100 * slope(rows, k, warm) / rows[-1, k]:+.2f} %)")
    print("the same of Ray alone: " + ", ".join(f"{slope(bare, k, warm):+.2f}" for k in range(1, bare.shape[1])))
    draw(names, rows, planes, warm, given.out)


def slope(rows: np.ndarray, k: int, warm: int) -> float:
    """Megabytes of a column in 1,000 rounds, after the first ``warm``."""
    late = rows[rows[:, 0] > warm]
    return float(1000 * np.polyfit(late[:, 0], late[:, k], 1)[0])


def draw(names: list[str], rows: np.ndarray, planes: np.ndarray, warm: int, path: Path) -> None:
    """Memory against rounds, a line for each process, and planes below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, figsize=(7, 4.5), sharex=True, height_ratios=(2, 1), layout="constrained")
    for k, name in enumerate(names, 1):
        above.plot(rows[:, 0], rows[:, k], label=name)
    below.plot(*planes.T, color="0.3")
    for axes in (above, below):
        axes.axvline(warm, color="0.7", linestyle=":")
    above.set(ylabel="anonymous memory, MB", ylim=(0, None))
    below.set(xlabel="round", ylabel="planes kept", ylim=(0, None))
    above.legend(loc="lower right")
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=160)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--pairs", type=int, default=200, help="examples of --memory, and their features")
    parser.add_argument("--features", type=int, default=2_000)
    parser.add_argument("--warm-up", type=int, default=1_000, help="rounds of --memory that do not count")
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
