"""What several workers gain in a whole fit: the default against the sharded solver, on one and two threads.

On CoNLL-2000 chunking, words of handwritten letters, and 160 pictures of horses, to a certified gap of 0.1 %: the
default solver on one thread, then the sharded solver on one and two, and with more strands on one. Its weights must be
identical to the last bit, and its seconds are compared with those of the default. For chunking, ten passes of
CRFsuite's averaged perceptron on the same features follow in the same run. If other processes keep the cores busy,
threads that wait for each other lose far more than their share: compare passes and processor seconds of one thread.::

    python benchmarks/shards.py           # needs MAXMARGIN_DATA; --tasks ocr --examples 2000 for a part
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from chunking_features import chunk_labels, string_features
from machine import Others, cores, machine_line
from maxmargin.datasets import load_conll2000
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.features.images import ImageFeatures
from maxmargin.inference.min_cut import directions
from maxmargin.solvers.driver import run
from maxmargin.solvers.sharded_engine import ShardedState
from peers import train_peer
from threads import C, load

sys.path.insert(0, str(Path(__file__).parents[1]))

TOL, MOST_PASSES = 1e-3, 40
MORE_STRANDS = 4, 8  # for as many threads: what they cost on one, once
ROWS = (mm.Auto(), 1), (mm.Sharded(), 1), (mm.Sharded(), 2)  # solver and threads
HEAD = f"{'':32} {'passes':>7} {'rounds':>7} {'processor':>10} {'wall':>8} {'rel. gap':>11}"


def fit(problem: Any, solver: Any, workers: int = 1, **budget: float) -> dict[str, Any]:
    """A fit by a solver on so many threads: passes, gap, processor and wall seconds, rounds and weights."""
    executor = Threads(workers) if workers > 1 else Serial()
    spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor))
    begin, wall = time.process_time(), time.perf_counter()
    result = run(solver.engine(spread, 0), spread, tol=TOL, **({"max_passes": MOST_PASSES} | budget))
    executor.close()
    return {
        "passes": result.state.oracle_calls / problem.n_examples,
        "gap": result.certificate.relative_gap,
        "processor": time.process_time() - begin,
        "wall": time.perf_counter() - wall,
        "rounds": result.state.stamp if isinstance(result.state, ShardedState) else 0,
        "weights": result.weights.copy(),
    }


def chunking(sentences: int | None) -> tuple[Any, Any]:
    """Sentences of CoNLL-2000: the problem, and a small one for the kernels."""
    X, y = load(sentences)
    return tuple(mm.MarginRescaling().problem(mm.Chain().bind(X[:n], y[:n]), C=C) for n in (len(y), min(200, len(y))))


def ocr(words: int | None) -> tuple[Any, Any]:
    """Folds 1 to 9; C as chosen on held-out words by ``benchmarks/ocr.py``."""
    from ocr import load_splits

    split = load_splits()["large"]
    model, n = mm.Chain(ends=True), words or len(split.y)
    return tuple(mm.MarginRescaling().problem(model.bind(split.X[:m], split.y[:m]), C=0.3) for m in (n, 200))


def horses(images: int | None) -> tuple[Any, Any]:
    """The first split of ``experiments/segmentation/horses.py``, with its features, neighbours, cost and C.

    Pixels weigh alike in all images, and the weights of edges must not be negative.
    """
    from experiments.segmentation import horses as experiment

    pictures, masks = experiment.load()
    chosen = np.random.default_rng(experiment.FIRST_SEED).permutation(len(pictures))[: images or 160]
    y = [masks[i] for i in chosen]
    X = ImageFeatures(**experiment.PIXELS).fit_transform([pictures[i] for i in chosen], y, directions(8))

    def problem(m: int) -> Any:
        bound = mm.Grid(8, cost="balanced").bind(X[:m], y[:m])
        per_pixel, positive = np.array([1.0 / mask.size for mask in y[:m]]), bound.layout.positive()
        return mm.MarginRescaling().problem(bound, C=100.0, sample_weight=per_pixel, positive=positive)

    return problem(len(y)), problem(4)


TASKS = {"chunking": chunking, "ocr": ocr, "horses": horses}


def row(name: str, found: dict[str, Any]) -> None:
    figures = f"{found['passes']:7.1f} {found['rounds']:7d} {found['processor']:10.2f} {found['wall']:8.2f}"
    print(f"{name:32} {figures} {100 * found['gap']:9.3f} %", flush=True)


def perceptron_seconds() -> float:
    """Wall seconds of ten passes of CRFsuite's averaged perceptron over the sentences of CoNLL-2000."""
    train = load_conll2000("train")
    strings, few = string_features(train), load_conll2000("test")[:10]
    peer = train_peer("averaged-perceptron-10", strings, chunk_labels(train), string_features(few), chunk_labels(few))
    return float(peer.seconds)


def fastest(fits: list[dict[str, Any]]) -> dict[str, Any]:
    """The fit that took the least wall time; all must have ended at the same weights."""
    assert all(np.array_equal(found["weights"], fits[0]["weights"]) for found in fits), "weights differ between runs"
    return min(fits, key=lambda found: found["wall"])


def compare(task: str, examples: int | None, repeats: int) -> None:
    """Rows of one task, and the ratios."""
    problem, small = TASKS[task](examples)
    for solver in (mm.Auto(), mm.Sharded()):  # kernels
        fit(small, solver)
    print(f"\n{task}, {problem.n_examples} examples, the fastest of {repeats} fits in turn\n{HEAD}")
    with Others() as others:
        rounds = [[fit(problem, solver, workers) for solver, workers in ROWS] for _ in range(repeats)]
    whole, one, two = (fastest(list(fits)) for fits in zip(*rounds, strict=True))
    assert np.array_equal(one["weights"], two["weights"]), "weights depend on the workers"
    row("auto", whole)
    row("sharded, one thread", one)
    row("sharded, two threads", two)
    print(f"one thread: {one['processor'] / whole['processor']:.2f} times the processor time of auto")
    ratios = (
        f"{whole['wall'] / two['wall']:.2f} times as fast as auto, {one['wall'] / two['wall']:.2f} times one thread"
    )
    print(f"two threads: {ratios}; {others.cores:.2f} of {cores()} cores were busy with other processes", flush=True)
    for strands in MORE_STRANDS if task != "horses" else ():  # blocks with signs are visited one after the other
        row(f"{strands} strands, one thread", fit(problem, mm.Sharded(strands=strands)))
    if task == "chunking" and examples is None:
        seconds = perceptron_seconds()
        ratio = f"two threads: {two['wall'] / seconds:.2f} times that"
        print(f"CRFsuite, 10 passes of the averaged perceptron: {seconds:.2f} s; {ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--examples", type=int, default=None, help="only so many of each task")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each row, in turn")
    options = parser.parse_args()
    print(machine_line())
    for task in options.tasks:
        compare(task, options.examples, options.repeats)


if __name__ == "__main__":
    main()
