"""Exact slack rescaling of chains: what a pass costs compared with margin rescaling, on CoNLL-2000.

    MAXMARGIN_DATA=... make bench-slack               # all 8,936 sentences, a few minutes
    python benchmarks/slack.py --sentences 1000       # a quick run

Two fits to the same certified gap, then passes at the weights of each certificate of the slack fit: one answer for
every training sentence, by the exact search for the largest cost times violation and by the margin-rescaled argmax at
the same weights. The average counts the passes of the fit between two certificates. Processor seconds of one process,
passes the best of interleaved repeats.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import maxmargin as mm
from ablation import task
from machine import Others, machine_line
from maxmargin.callbacks.base import Callback, Run
from maxmargin.models.chain import Chain
from maxmargin.oracles.oracle import ModelOracle

REPEATS = 2
RESCALINGS = ("margin", "slack")


class Watch(Callback):
    """Keeps passes and weights of every certificate."""

    def on_begin(self, run: Run) -> None:
        self.passes, self.weights = [0.0], [np.array(run.weights())]

    def on_certificate(self, run: Run) -> None:
        self.passes.append(run.passes)
        self.weights.append(np.array(run.weights()))


def fit(X: mm.Sequences, y: list, rescaling: str, C: float, tol: float) -> Watch:
    """A fit, with what it costs."""
    watch = Watch()
    tagger = mm.SequenceTagger(rescaling=rescaling, C=C, tol=tol, callbacks=[watch])
    begin = time.process_time()
    tagger.fit(X, y)
    seconds, passes = time.process_time() - begin, watch.passes[-1]
    gap = 100 * tagger.certificate_.relative_gap
    print(f"{rescaling:8} {seconds:8.2f} s {passes:7.1f} passes {1e3 * seconds / passes:8.0f} ms each, gap {gap:.3f} %")
    return watch


def pass_seconds(oracles: list[ModelOracle], w: np.ndarray) -> list[float]:
    """Processor seconds of a pass of each oracle at the same weights."""
    every, best = np.arange(oracles[0].n_examples), [np.inf] * len(oracles)
    for _ in range(REPEATS):
        for i, oracle in enumerate(oracles):
            begin = time.process_time()
            oracle.planes(w, every)
            best[i] = min(best[i], time.process_time() - begin)
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sentences", type=int, default=None, help="default: all")
    options.add_argument("--C", type=float, default=None, help="default: that of the other benchmarks of this task")
    options.add_argument("--tol", type=float, default=1e-3)
    given = options.parse_args()
    print(machine_line())
    X, y, common = task("chunking")
    X, y = X[: given.sentences], y[: given.sentences]
    C = common["C"] if given.C is None else given.C
    bound = Chain().bind(X, y)
    oracles = [ModelOracle(bound, rescaling) for rescaling in RESCALINGS]
    pass_seconds(oracles, np.zeros(bound.n_weights))  # compiles
    for rescaling in RESCALINGS:
        mm.SequenceTagger(rescaling=rescaling, max_passes=2, tol=0.5).fit(X[:100], y[:100])
    with Others() as others:
        print(f"{len(X)} sentences, C = {C:g}, to {100 * given.tol:g} %")
        fits = {rescaling: fit(X, y, rescaling, C, given.tol) for rescaling in RESCALINGS}
        print("passes of the slack fit   margin pass   slack pass   ratio")
        watch, total = fits["slack"], np.zeros(2)
        for passes, before, w in zip(watch.passes[1:], watch.passes, watch.weights, strict=False):
            seconds = np.array(pass_seconds(oracles, w))
            total += (passes - before) * seconds
            margin, slack = 1e3 * seconds
            print(
                f"{before:10.1f} to {passes:6.1f} {margin:14.0f} ms {slack:9.0f} ms {slack / margin:7.2f}", flush=True
            )
    print(f"on average a slack pass takes {total[1] / total[0]:.2f} times a margin pass at the same weights")
    print(f"other processes kept {others.cores:.1f} cores busy")


if __name__ == "__main__":
    main()
