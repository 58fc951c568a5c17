"""Kills fits at random moments and resumes them: they must end as if nothing had happened, and leave nothing behind.

    python tools/kills.py [--kills 300] [--seed 0] [--only auto --only hmm] [--warm]

Every family of solvers is fitted once without a kill. Then processes that fit it and save checkpoints are killed
(SIGKILL) at random moments and resumed from what is on the disk, in a folder that is almost full for every fifth run.
Further kills hit new processes that have to compile kernels because a source was edited (not with ``--warm``).

A run is good when its weights are those of the fit without a kill, bit for bit, when no unfinished file is left after
it, and when the kernel cache answers a further process without compiling anything.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before numpy: pools of threads do not survive a fork

# ruff: noqa: E402
import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from maxmargin.formulations.ramp import Ramp

SOURCES = Path(mm.__file__).parent
MOST_KILLS = 5  # of one run
COLD_SHARE = 0.1  # kills of processes that compile
OUTCOMES = ("runs", "kills", "resumed", "unfinished files", "other weights", "files left", "broken")


@dataclass
class Job:
    """A fit, and what it gives when nobody kills it."""

    estimator: mm.SequenceTagger
    X: object
    y: object
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))
    seconds: float = 0.0

    def fit(self, checkpoint: Path | None) -> np.ndarray:
        """The weights of the fit, resumed where there is a checkpoint."""
        callbacks = [] if checkpoint is None else [mm.Checkpoint(checkpoint)]
        resume = checkpoint if checkpoint is not None and checkpoint.exists() else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return clone(self.estimator).set_params(callbacks=callbacks).fit(self.X, self.y, resume=resume).weights_


def jobs() -> dict[str, Job]:
    """One for each family of solvers."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 6)) for T in rng.integers(1, 9, 60)]
    y = [rng.integers(0, 4, len(x)).tolist() for x in X]
    words = [["abcd"[a] for a in rng.integers(0, 4, 8)] for _ in range(40)]
    states = [rng.integers(0, 3, 8).tolist() for _ in range(40)]
    marks = rng.integers(0, 2, (sum(map(len, X)), 5))
    links = [rng.normal(size=(5, 4, 3)) for _ in range(30)]
    nearest = [[(i, i) for i in range(4) if x[i, i, 0] > 0.0] for x in links]
    said = ["a b c", "b c", "a c b", "c"]
    lists = [mm.Lattice.from_nbest(said, rng.normal(size=(4, 6))) for _ in range(40)]
    told = [said[int(k)] for k in rng.integers(0, 4, 40)]
    table, target = rng.integers(0, 3, (80, 5)).astype(str), rng.integers(0, 3, 80)
    sparse = sp.csr_array((rng.random((300, 2000)) < 0.005).astype(float))
    classes, tree = rng.integers(0, 4, 300), [(0, 1), (0, 2), (2, 3), (2, 4)]
    closed = mm.with_ancestors(marks, tree)
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    graphs = [{"node": rng.normal(size=(6, 3)), "edges": ring} for _ in range(20)]
    nodes = [rng.integers(0, 3, 6) for _ in graphs]
    masks = [(rng.random((12, 12)) < 0.5).astype(np.uint8) for _ in range(5)]
    images = [mask + rng.normal(scale=0.5, size=mask.shape) for mask in masks]
    hard = {"tol": 1e-9, "max_passes": 60, "random_state": 0}
    tagger = partial(mm.SequenceTagger, C=1.0, **hard)
    searched = mm.GraphLabeler(rescaling="slack", slack_search="angular", **hard | {"max_passes": 10})
    solvers = {
        "auto": "auto", "sequential dual": mm.SequentialDual(certificate_every=1.0), "frank-wolfe": "frank_wolfe",
        "bcfw": mm.BCFW(sampling="random", averaging="tail", certificate_every=2.0), "cutting plane": "cutting_plane",
        "simplicial": mm.SimplicialDecomposition(blocks="one", working_set=10, limit=5),
        "pegasos": mm.Pegasos(certificate_every=2.0, averaging="tail"), "sgd": mm.SGD(certificate_every=2.0),
        "perceptron": mm.Perceptron(passes=200), "mira": mm.MIRA(passes=200), "shards": mm.Sharded(shards=3),
    }  # fmt: skip
    found = {name: Job(tagger(solver=solver), X, y) for name, solver in solvers.items()}
    return found | {
        "squared": Job(tagger(loss="squared_hinge"), X, y),
        "ramp": Job(tagger(loss=Ramp(start="hinge")), X, y),
        "ramp by pegasos": Job(tagger(loss=Ramp(), solver=mm.Pegasos(certificate_every=2.0)), X, y),
        "ramp in shards": Job(tagger(loss=Ramp(), solver=mm.Sharded(shards=3)), X, y),
        "linear program": Job(tagger(penalty="l1"), X, y),
        "recentred dual": Job(tagger(penalty="l1", solver="recentred_dual"), X, y),
        "multiclass": Job(mm.MulticlassClassifier(**hard), np.vstack(X), np.concatenate(y)),
        "multiclass, sparse": Job(mm.MulticlassClassifier(**hard), sparse, classes),
        "hierarchy": Job(mm.MultilabelClassifier(hierarchy=tree, **hard), np.vstack(X), closed),
        "label sets": Job(mm.MultilabelClassifier(rescaling="slack", **hard), np.vstack(X), marks),
        "matching": Job(mm.Aligner(max_links=2, **hard), links, nearest),
        "neighbours": Job(mm.Aligner(max_links=2, neighbours=True, **hard), links, nearest),
        "lattice": Job(mm.LatticeRanker(**hard), lists, told),
        "lattice, several": Job(mm.LatticeRanker(n_good=2, **hard), lists, told),
        "graph, searches": Job(searched, graphs, nodes),
        "graph": Job(mm.GraphLabeler(**hard | {"max_passes": 30}), graphs, nodes),
        "segmenter": Job(mm.ImageSegmenter(tolerance=1.0, **hard | {"max_passes": 15}), images, masks),
        "hmm": Job(mm.DiscriminativeHMM(C=0.1, **hard), words, states),
        "hmm, ramp": Job(mm.DiscriminativeHMM(C=0.1, loss=Ramp(), **hard), words, states),
        "bayes net": Job(mm.DiscriminativeBayesNet(C=0.1, structure="tan", **hard), table, target),
    }


class Counts(dict[str, dict[str, int]]):
    """Outcomes by family."""

    def add(self, name: str, outcome: str, count: int = 1) -> None:
        self.setdefault(name, dict.fromkeys(OUTCOMES, 0))[outcome] += count

    def __str__(self) -> str:
        rows = [["", *OUTCOMES], *([name, *map(str, row.values())] for name, row in self.items())]
        rows.append(["all", *(str(sum(row[outcome] for row in self.values())) for outcome in OUTCOMES)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if k else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


# --- warm: the kernels are loaded, a process is a fork ----------------------------------------------------------------


@contextmanager
def folder_of(size: int | None) -> Iterator[Path]:
    """A folder, on a disk of so many bytes where one can be made."""
    with tempfile.TemporaryDirectory(prefix="kills") as name:
        mounted = False
        if size is not None and shutil.which("mount"):
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", name]
            mounted = subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
        try:
            yield Path(name)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", name], check=True)


def fork(work: Callable[[], None]) -> int:
    """Work in a process of its own; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        print(f"a fit failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def killed(child: int, seconds: float) -> bool:
    """Wait so long, then kill; whether that was in time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return False
        time.sleep(min(0.002, max(0.0, end - time.perf_counter())))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def run_warm(name: str, job: Job, rng: np.random.Generator, counts: Counts, most: int, almost_full: bool) -> int:
    """One fit, killed up to ``most`` times; returns how often."""
    kills, size = 0, None
    if almost_full:  # room for one checkpoint and most of a second
        with tempfile.TemporaryDirectory() as trial:
            job.fit(Path(trial) / "run")
            size = int(1.7 * (Path(trial) / "run").stat().st_size) + (1 << 15)
    with folder_of(size) as folder, tempfile.TemporaryDirectory() as elsewhere:
        checkpoint, result = folder / "run", Path(elsewhere) / "weights.npy"

        def work() -> None:
            weights = job.fit(checkpoint)
            np.save(result, weights)

        counts.add(name, "runs")
        while kills < most:
            counts.add(name, "resumed", int(checkpoint.exists()))
            if not killed(fork(work), rng.uniform(0.0, 1.1 * job.seconds)):
                break
            kills += 1
            counts.add(name, "kills")
            counts.add(name, "unfinished files", int(any(folder.glob("*.part"))))
        result.unlink(missing_ok=True)
        _, status = os.waitpid(fork(work), 0)
        if status or not result.exists():
            counts.add(name, "broken")
        elif not np.array_equal(np.load(result), job.weights):
            counts.add(name, "other weights")
        counts.add(name, "files left", len(list(folder.glob("*.part"))))
    return kills


# --- cold: new processes compile what an edit has changed -------------------------------------------------------------

COLD = """
    import sys, warnings
    import numpy as np
    import maxmargin as mm
    from numba.core.dispatcher import Dispatcher

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 2)) for T in rng.integers(1, 5, 10)]
    y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    fitted = mm.SequenceTagger(solver="sequential_dual", tol=1e-9, max_passes=20, random_state=0).fit(X, y)
    kernels = {id(k): k for m in list(sys.modules.values()) for k in vars(m).values() if isinstance(k, Dispatcher)}
    np.save(sys.argv[1], [sum(sum(k.stats.cache_misses.values()) for k in kernels.values()), *fitted.weights_])
"""


def run_cold(kills: int, rng: np.random.Generator, counts: Counts) -> None:
    """Kill processes that have to compile, some of them with a cache on an almost full disk."""
    name = "compiling after an edit"
    with tempfile.TemporaryDirectory(prefix="kills") as place:
        tree, cache, result = Path(place) / "src", Path(place) / "cache", Path(place) / "found.npy"
        shutil.copytree(SOURCES, tree / "maxmargin", ignore=shutil.ignore_patterns("__pycache__"))
        script = Path(place) / "fit.py"
        script.write_text(textwrap.dedent(COLD))
        edited = tree / "maxmargin" / "solvers" / "visit_kernel.py"

        def start(folder: Path) -> subprocess.Popen:
            result.unlink(missing_ok=True)
            environment = os.environ | {
                "PYTHONPATH": str(tree),
                "MAXMARGIN_KERNEL_CACHE": str(folder),
                "MAXMARGIN_QUIET": "1",
            }
            return subprocess.Popen([sys.executable, str(script), str(result)], env=environment)

        def finish(folder: Path) -> np.ndarray:
            begin = time.perf_counter()
            if start(folder).wait() or not result.exists():
                counts.add(name, "broken")
                return np.empty(0)
            nonlocal seconds
            seconds = time.perf_counter() - begin
            return np.load(result)

        seconds = 0.0
        finish(cache)  # compiles all
        whole = finish(cache)  # loads all
        loading = seconds
        done, i = 0, 0
        while done < kills and i < 3 * kills:
            edited.write_text(edited.read_text() + f"\n# edit {i}\n")
            process = start(cache)
            try:
                process.wait(rng.uniform(0.2, 4.0) * loading)
            except subprocess.TimeoutExpired:
                process.kill()
                done += 1
                counts.add(name, "kills")
            process.wait()
            counts.add(name, "unfinished files", len(list(cache.rglob("*.part"))))
            counts.add(name, "runs")
            i += 1
            if i % 4 == 0 or done == kills:
                found, again = finish(cache), finish(cache)
                counts.add(name, "other weights", int(not np.array_equal(found[1:], whole[1:])))
                counts.add(
                    name, "broken", int(again.size == 0 or again[0] != 0)
                )  # the cache must answer everything now
                counts.add(name, "files left", len(list(cache.rglob("*.part"))))
        with folder_of(100_000) as small:
            counts.add("compiling, disk full", "runs")
            found = finish(small / "cache")
            counts.add("compiling, disk full", "other weights", int(not np.array_equal(found[1:], whole[1:])))
            counts.add("compiling, disk full", "files left", len(list(small.rglob("*.part"))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="a family; may be given again")
    parser.add_argument("--warm", action="store_true", help="no kills of processes that compile")
    given = parser.parse_args()
    rng, counts, done, run = np.random.default_rng(given.seed), Counts(), 0, 0
    chosen = {name: job for name, job in jobs().items() if given.only is None or name in given.only}
    for job in chosen.values():
        job.fit(None)  # compiles
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            job.weights = job.fit(Path(folder) / "run")
        job.seconds = time.perf_counter() - begin
    cold = 0 if given.warm else round(COLD_SHARE * given.kills)
    while done < given.kills - cold:
        name = list(chosen)[run % len(chosen)]
        most = min(MOST_KILLS, given.kills - cold - done)
        done += run_warm(name, chosen[name], rng, counts, most, almost_full=run % 5 == 4)
        run += 1
    if cold:
        run_cold(cold, rng, counts)
    print(counts)
    wrong = sum(row[outcome] for row in counts.values() for outcome in OUTCOMES[4:])
    print("every run ended as if it had not been killed" if not wrong else f"{wrong} FAULTS")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
