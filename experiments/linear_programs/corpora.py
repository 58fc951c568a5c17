"""The recentred dual method away from the corpus on which its constants were chosen: passes to a certified 1 %.

CoNLL-2000 chunking (words and parts of speech of five tokens) and the letters of OCR words (128 pixels), unit margins
with an L1 penalty. Then the same at ``1.5 C``, from nothing and from the fit before (``warm_start=True``)::

    MAXMARGIN_DATA=... make experiment-lp-corpora
    python experiments/linear_programs/corpora.py --examples 2000 --corpus ocr
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin.datasets import load_conll2000, load_ocr_letters
from maxmargin.features.window import Window

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

Examples = tuple[mm.Sequences, list]


def conll2000(n: int) -> Examples:
    sentences = load_conll2000("train")[:n]
    features = mm.TextFeatures([Window(0), Window(1)])
    X = features.fit_transform([[token[:2] for token in sentence] for sentence in sentences])
    return X, [[token[2] for token in sentence] for sentence in sentences]


def ocr(n: int) -> Examples:
    X, y, folds = load_ocr_letters()
    chosen = np.flatnonzero(folds > 0)[:n]
    return mm.Sequences.of([X[i] for i in chosen]), [y[i] for i in chosen]


CORPORA: dict[str, tuple[Callable[[int], Examples], tuple[float, ...]]] = {
    "conll2000": (conll2000, (1.0, 10.0)), "ocr": (ocr, (0.1, 1.0)),
}  # fmt: skip


def fitted(tagger: mm.SequenceTagger, X: mm.Sequences, y: list, name: str) -> None:
    begin = time.process_time()
    tagger.fit(X, y)
    seconds, share = time.process_time() - begin, np.mean(tagger.weights_ != 0.0)
    reached = f"{tagger.n_iter_:7.1f} {seconds:8.1f} {tagger.certificate_.relative_gap:8.1e}"
    print(f"{name:34s} {reached} {100 * share:8.1f}% {100 * (1 - tagger.score(X, y)):8.2f}", flush=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--corpus", choices=CORPORA, action="append", help="only these")
    words.add_argument("--examples", type=int, default=10_000, help="the most of each corpus")
    words.add_argument("--seconds", type=float, default=600.0, help="the most that a fit may take, by the clock")
    given = words.parse_args()
    warnings.simplefilter("ignore")  # budgets that end a fit show in its gap
    print(machine_line())
    print(f"{'':34s} {'passes':>7s} {'seconds':>8s} {'gap':>8s} {'weights':>9s} {'training error %':>8s}")
    for corpus in given.corpus or CORPORA:
        read, grid = CORPORA[corpus]
        X, y = read(given.examples)
        tagger = mm.SequenceTagger(penalty="l1", solver="recentred_dual", tol=1e-2, random_state=0)
        tagger.set_params(max_seconds=given.seconds, ends=corpus == "ocr")
        for C in grid:
            fitted(tagger.set_params(C=C, warm_start=False), X, y, f"{corpus}, {len(y)} examples, C = {C:g}")
        fitted(tagger.set_params(C=1.5 * C, warm_start=True), X, y, f"  C = {1.5 * C:g}, from the fit before")
        fitted(tagger.set_params(warm_start=False), X, y, f"  C = {1.5 * C:g}, from nothing")


if __name__ == "__main__":
    main()
