"""Sparse multiclass problems: maxmargin and liblinear's Crammer-Singer machine to the same objective.

    make bench-multiclass
    python benchmarks/multiclass.py --examples 3000 --repeats 1       # a quick run

Both minimise ``1/2 |W|^2 + C sum_i max_y [ 1(y != y_i) - (W[:, y_i] - W[:, y]) . x_i ]`` on the same matrices:

* ``text``: words drawn by Zipf's law and by topics of the classes, weights tf-idf, rows of length 1, a tenth of the
  labels replaced at random;
* ``codes``: a dozen features per row, all 1, classes of unequal size, many rows alike: categorical data, one-hot;
* ``tokens``: tokens of CoNLL-2000 with the features of their windows, to be told apart by their chunk labels, the
  commonest and a class for all others (needs MAXMARGIN_DATA; left out without it);
* ``genia``: words of GENIA with windows, affixes and shapes, to be told apart by their parts of speech, likewise.

liblinear (``LinearSVC(multi_class="crammer_singer")``) stops at several tolerances; ours
stops at the first certificate whose objective is at most liblinear's. Seconds are processor seconds of the whole call
of ``fit``, the best of interleaved repeats; objectives are computed here from the coefficients of both.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import maxmargin as mm
from machine import Others, machine_line
from maxmargin.callbacks.base import Callback

WORDS, FEATURES, TOPIC = 60, 50_000, 400  # words of an example, of the language, of the topic of a class
TOPICAL, NOISE = 0.15, 0.1  # share of words from the topic, share of labels replaced
COLUMNS, CATEGORIES, TYPICAL = 12, 5_000, 0.25  # columns of codes, their values, share that is typical of a class


def text_like(n: int, n_classes: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """A matrix (n, FEATURES) and labels (n,)."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, FEATURES + 1) ** 0.9
    words = rng.choice(FEATURES, size=(n, WORDS), p=frequency / frequency.sum())
    y = rng.integers(n_classes, size=n)
    topics = rng.integers(FEATURES, size=(n_classes, TOPIC))
    topical = topics[y[:, None], rng.integers(TOPIC, size=(n, WORDS))]
    words = np.where(rng.random((n, WORDS)) < TOPICAL, topical, words)
    starts = np.arange(0, n * WORDS + 1, WORDS)
    X = sp.csr_array((np.ones(n * WORDS), words.ravel(), starts), shape=(n, FEATURES))
    X.sum_duplicates()
    counts = np.bincount(X.indices, minlength=FEATURES)
    X.data = (1.0 + np.log(X.data)) * np.log((1 + n) / (1 + counts))[X.indices]
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what liblinear takes
    return X, np.where(rng.random(n) < NOISE, rng.integers(n_classes, size=n), y)


def codes(n: int, n_classes: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Columns of categories, one-hot: a matrix (n, 12 * CATEGORIES) and labels (n,)."""
    rng = np.random.default_rng(seed)
    sizes = 1.0 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, size=n, p=sizes / sizes.sum())
    common = rng.zipf(1.5, size=(n, COLUMNS)) % CATEGORIES
    typical = rng.integers(CATEGORIES, size=(n_classes, COLUMNS, 30))
    own = typical[y[:, None], np.arange(COLUMNS), rng.integers(30, size=(n, COLUMNS))]
    chosen = np.where(rng.random((n, COLUMNS)) < TYPICAL, own, common) + CATEGORIES * np.arange(COLUMNS)
    starts = np.arange(0, n * COLUMNS + 1, COLUMNS, dtype=np.int32)
    shape = (n, COLUMNS * CATEGORIES)
    return sp.csr_array((np.ones(n * COLUMNS), chosen.ravel().astype(np.int32), starts), shape=shape), y


def tokens(n: int, n_classes: int) -> tuple[sp.csr_array, np.ndarray]:
    """The first n tokens of CoNLL-2000."""
    from chunking_features import ChunkingVocabulary, chunk_labels
    from maxmargin.datasets.conll2000 import load_conll2000

    train = load_conll2000("train")
    found = ChunkingVocabulary().fit_transform(train)
    X = sp.csr_array(
        (np.ones(len(found.indices)), found.indices, found.indptr), shape=(len(found.indptr) - 1, found.n_features)
    )
    return first_tokens(X, np.concatenate(chunk_labels(train)), n, n_classes)


def genia(n: int, n_classes: int) -> tuple[sp.csr_array, np.ndarray]:
    """The first n words of GENIA. The constants of our method were not chosen on it."""
    from maxmargin.datasets.columns import read_columns
    from maxmargin.datasets.folder import require
    from maxmargin.features.choose import default_words

    found = require("genia_pos/train.tsv.xz", "lines 'word<TAB>tag', a blank line between sentences")
    words, tags = ([], [])  # type: ignore[var-annotated]
    for sentence in read_columns(found, separator="\t", comments="#doc "):
        words.append([token[0] for token in sentence])
        tags += [token[1] for token in sentence]
        if len(tags) >= n:
            break
    return first_tokens(default_words().fit_transform(words).sparse, np.array(tags), n, n_classes)


def first_tokens(features: sp.csr_array, labels: np.ndarray, n: int, n_classes: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of binary features and codes of labels: 0 for the commonest, n_classes - 1 for all but the commonest."""
    end = features.indptr[n]
    indices, indptr = features.indices[:end].astype(np.int32), features.indptr[: n + 1].astype(np.int32)
    X = sp.csr_array((np.ones(end), indices, indptr), shape=(n, features.shape[1]))
    _, y, counts = np.unique(labels[:n], return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return X, np.minimum(rank[y], n_classes - 1)


DATA: dict[str, Callable[[int, int], tuple[sp.csr_array, np.ndarray]]] = {
    "text": text_like, "codes": codes, "tokens": tokens, "genia": genia
}  # fmt: skip


def objective(model: LinearSVC | mm.MulticlassClassifier, X: sp.csr_array, y: np.ndarray, C: float) -> float:
    scores = X @ model.coef_.T + model.intercept_
    at = np.arange(len(y)), np.searchsorted(model.classes_, y)
    margins = 1.0 + scores - scores[at][:, None]
    margins[at] = 0.0
    squares = float((model.coef_**2).sum() + (model.intercept_**2).sum())
    return 0.5 * squares + C * float(margins.max(axis=1).sum())


class StopAt(Callback):
    """Ends a fit at the first certificate whose objective is low enough."""

    def __init__(self, objective: float) -> None:
        self.objective = objective

    def on_begin(self, run: object) -> None:
        pass

    def on_certificate(self, run) -> str | None:  # type: ignore[no-untyped-def]
        return "stop" if run.certificate.primal <= self.objective else None

    def on_end(self, run: object) -> None:
        pass


def timed(estimator, X: sp.csr_array, y: np.ndarray, C: float) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Processor seconds of a fit, and its objective."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits end early on purpose; multi_class is on its way out
        begin = time.process_time()
        estimator.fit(X, y)
        seconds = time.process_time() - begin
    return seconds, objective(estimator, X, y, C)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--examples", type=int, default=15_000)
    options.add_argument("--data", choices=DATA, nargs="+", default=list(DATA))
    options.add_argument("--classes", type=int, nargs="+", default=[5, 20])
    options.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    options.add_argument("--tol", type=float, nargs="+", default=[0.1, 1e-2, 1e-3], help="of liblinear")
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    print(machine_line())
    print(f"{given.examples} examples, processor seconds of fit, best of {given.repeats}")
    print("data   classes     C   tol of liblinear   liblinear   objective      ours   objective   ratio")
    worst = 0.0
    with Others() as others:
        for name in given.data:
            for n_classes in given.classes:
                try:
                    X, y = DATA[name](given.examples, n_classes)
                except FileNotFoundError as error:
                    print(f"{name}: left out ({error})")
                    break
                timed(mm.MulticlassClassifier(), X[:200], y[:200], 1.0)  # compiles
                for C in given.C:
                    for tol in given.tol:
                        worst = max(worst, compared(f"{name:6} {n_classes:7}", X, y, C, tol, given.repeats))
    print(f"largest ratio {worst:.2f}; other processes kept {others.cores:.1f} cores busy")


def compared(title: str, X: sp.csr_array, y: np.ndarray, C: float, tol: float, repeats: int) -> float:
    """Print a row of the table; our seconds over those of liblinear."""
    theirs, ours = [], []
    for _ in range(repeats):
        peer = LinearSVC(multi_class="crammer_singer", C=C, tol=tol, max_iter=100_000, random_state=0)
        theirs.append(timed(peer, X, y, C))
        stop = StopAt(theirs[-1][1])
        own = mm.MulticlassClassifier(C=C, tol=0.0, callbacks=[stop], random_state=0)
        ours.append(timed(own, X, y, C))
    ratio = min(ours)[0] / min(theirs)[0]
    row = f"{title} {C:5g} {tol:18g} {min(theirs)[0]:11.2f} {min(theirs)[1]:11.2f}"
    print(f"{row} {min(ours)[0]:9.2f} {min(ours)[1]:11.2f} {ratio:7.2f}", flush=True)
    return ratio


if __name__ == "__main__":
    main()
