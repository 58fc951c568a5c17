"""How training scales with threads, on CoNLL-2000 chunking.

The first measurement is one full oracle pass (the planes of all training sentences, spread over the workers) at trained
weights: the best of several repeats that alternate between one and two threads. If other processes keep a core busy
meanwhile, the ratio says nothing about threads; this is measured as well, and the verdict is then withheld. The second
measurement is a short fit with each number of threads, whose weights must be identical to the last bit::

    python benchmarks/threads.py          # needs MAXMARGIN_DATA
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from chunking_features import ChunkingVocabulary, chunk_labels
from machine import Others, cores, machine_line
from maxmargin import Chain, MarginRescaling, Sequences, SequenceTagger
from maxmargin.datasets import load_conll2000
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.kernel import compile_seconds

C = 0.1
GOAL = 1.3
QUIET = 0.2  # cores that other processes may keep busy in a valid measurement
THREADS = (1, 2)


def load(n_sentences: int | None = None) -> tuple[Sequences, list[list[str]]]:
    """Binary features of the training sentences and their chunk labels."""
    sentences = load_conll2000("train")[:n_sentences]
    features = ChunkingVocabulary().fit_transform(sentences)
    shape = (len(features.indptr) - 1, features.n_features)
    tokens = sp.csr_array((np.ones(len(features.indices)), features.indices, features.indptr), shape=shape)
    return Sequences(features.offsets, sparse=tokens), chunk_labels(sentences)


def fit(X: Sequences, y: list[list[str]], n_jobs: int, passes: float) -> SequenceTagger:
    return SequenceTagger(C=C, tol=0.0, max_passes=passes, n_jobs=n_jobs, random_state=0).fit(X, y)


def pass_seconds(X: Sequences, y: list[list[str]], weights: np.ndarray, repeats: int) -> tuple[dict[int, float], float]:
    """Best seconds of one full oracle pass by number of threads, and the cores that other processes used meanwhile."""
    oracle = MarginRescaling().problem(Chain().bind(X, y), C=C).oracle
    everyone = np.arange(oracle.n_examples)
    executors: dict[int, Any] = {n: Serial() if n == 1 else Threads(n) for n in THREADS}
    sharded = {n: ShardedOracle(oracle, executor) for n, executor in executors.items()}
    answers = {n: each.planes(weights, everyone) for n, each in sharded.items()}  # warms kernels, workers, scratch
    for name in ("indptr", "indices", "data", "b", "example", "bound"):
        for n in THREADS[1:]:
            assert np.array_equal(getattr(answers[n], name), getattr(answers[1], name)), f"{name} depends on threads"
    best = dict.fromkeys(THREADS, np.inf)
    with Others() as others:
        for _ in range(repeats):
            for n, each in sharded.items():
                begin = time.perf_counter()
                each.planes(weights, everyone)
                best[n] = min(best[n], time.perf_counter() - begin)
    for executor in executors.values():
        executor.close()
    return best, others.cores


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How training scales with threads.")
    parser.add_argument("--sentences", type=int, default=None, help="use only this many sentences (default: all 8,936)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=float, default=8.0, help="length of the fits")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # the fits are meant to end by their budget
    print(machine_line(threads=" and ".join(map(str, THREADS))))
    if cores() < max(THREADS):
        print(f"note: only {cores()} core here, so threads cannot help")
    with threadpool_limits(1):  # the threads of BLAS are not measured
        X, y = load(options.sentences)
        few = np.arange(50)
        fit(X[few], y[:50], 2, 4.0)
        print(f"{len(X)} sentences, {X.n_tokens} tokens")
        print(f"kernels: {compile_seconds():.1f} s to compile or load, not counted below")

        fitted, seconds = {}, {}
        for n in THREADS:
            begin = time.perf_counter()
            fitted[n] = fit(X, y, n, options.passes)
            seconds[n] = time.perf_counter() - begin
        best, disturbance = pass_seconds(X, y, fitted[1].weights_, options.repeats)

    for n in THREADS:
        print(f"one oracle pass, {n} thread{'s' * (n > 1)}: {best[n]:.3f} s (best of {options.repeats}, interleaved)")
    ratio = best[1] / best[2]
    verdict = "met" if ratio >= GOAL else "missed"
    if disturbance > QUIET:
        verdict = "undecided, the machine was busy; run again when it is idle"
    print(f"other processes kept {disturbance:.2f} cores busy meanwhile")
    print(f"oracle pass: {ratio:.2f} times as fast with 2 threads (goal {GOAL}: {verdict})")
    for n in THREADS:
        split = fitted[n].seconds_
        print(
            f"fit of {fitted[n].n_iter_:.1f} passes, n_jobs={n}: {seconds[n]:.2f} s "
            f"(oracle {split['oracle']:.2f}, solver {split['solver']:.2f}), {fitted[n].certificate_}"
        )
    print(f"whole fit: {seconds[1] / seconds[2]:.2f} times as fast with n_jobs=2")
    assert np.array_equal(fitted[1].weights_, fitted[2].weights_), "the weights depend on n_jobs"
    print("weights with n_jobs=1 and n_jobs=2: identical")


if __name__ == "__main__":
    main()
