"""What the experiments on the ramp loss share: corpora, methods, corruption, scores.

Methods are those of Mancev 2015: the sequential dual method (SDM) and stochastic Pegasos with and without (WP) the
projection step, each with the hinge and the ramp, all with averaged weights. His C_d is our C; his lambda is
``1 / (C n)``. A ramp fit has T rounds of CCCP with some epochs each; the first begins at zero weights, where it is the
hinge. "early" rounds begin instead from an averaged fit of one pass, before wrong labels are learned by heart.
"""

from __future__ import annotations

import lzma
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.datasets.columns import read_columns
from maxmargin.datasets.conll2000 import load_conll2000
from maxmargin.datasets.folder import require
from maxmargin.features.window import Ends, Prefix, Shape, Suffix, Window

AVERAGED = "uniform"
NEVER = 1e9  # passes between certificates: only the last one


class Corpus:
    """Training and test sentences as features and labels."""

    def __init__(self, name: str, train: Any, test: Any, features: mm.TextFeatures, column: int) -> None:
        self.name = name
        self.y, self.y_test = ([[token[column] for token in s] for s in part] for part in (train, test))
        words = [[[token[:column] for token in s] for s in part] for part in (train, test)]
        self.X = features.fit_transform(words[0])
        self.X_test = features.transform(words[1])
        self.labels = sorted({label for s in self.y for label in s})

    @property
    def n(self) -> int:
        return len(self.y)


def chunking(sentences: int | None = None) -> Corpus:
    """CoNLL-2000: words and parts of speech at -2..2 and their pairs."""
    features = mm.TextFeatures(
        [Window(0, bigrams=(-1, 0), name="w"), Window(1, bigrams=(-2, -1, 0, 1), name="p"), Ends()]
    )
    return Corpus("CoNLL-2000", load_conll2000("train")[:sentences], load_conll2000("test"), features, 2)


def brown(share: float = 0.1) -> Corpus:
    """Brown: words, affixes and shapes; every tenth of the chosen documents is for testing."""
    windows: list[Any] = [Window(0, bigrams=(-1, 0), name="w"), Ends(), Window(0, (0,), of=Shape(True), name="shape")]
    windows += [Window(0, (0,), of=kind(n), name=f"{kind.__name__}{n}") for kind in (Prefix, Suffix) for n in (2, 3, 4)]
    train: list = []
    test: list = []
    step = max(1, round(1 / share))
    for k, document in enumerate(list(_documents())[::step]):
        (test if k % 10 == 9 else train).extend(document)
    return Corpus("Brown", train, test, mm.TextFeatures(windows), 1)


def _documents() -> Iterator[list]:
    path = require("brown/brown.tsv.xz", "the corpus 'brown' of nltk_data as xz text, 'word<TAB>tag' lines")
    lines: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("#doc "):
                if lines:
                    yield read_columns(lines, separator="\t")
                lines = []
            else:
                lines.append(line)
    yield read_columns(lines, separator="\t")


def solver(method: str, every: float = NEVER) -> Any:
    """The solver behind a name (SDM, Pegasos, Pegasos-WP), with a certificate every so many passes."""
    if method == "SDM":
        return mm.SequentialDual(tau=1e-3, certificate_every=every, averaging=AVERAGED)
    return mm.Pegasos(project=method == "Pegasos", certificate_every=every, averaging="tail")


def fit(
    corpus: Corpus,
    y: list,
    method: str,
    loss: str,
    C: float,
    *,
    epochs: int = 10,
    rounds: int = 4,
    early: bool = False,
    seed: int = 0,
    callbacks: list | None = None,
    X: Any = None,
    every: float = NEVER,
) -> mm.SequenceTagger:
    """A fit by one of the methods: ``epochs`` passes (hinge), or ``rounds`` of ``epochs`` passes (ramp)."""
    X = corpus.X if X is None else X
    weights = "observed" if len(corpus.labels) > 100 else "all"
    common = {"C": C, "tol": 0.0, "weights": weights, "random_state": seed, "classes": corpus.labels}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if loss == "hinge":
            tagger = mm.SequenceTagger(solver=solver(method, every), max_passes=epochs + 1, **common)
            return tagger.set_params(callbacks=callbacks).fit(X, y)
        start: Any = "zero"
        if early:
            start = mm.SequenceTagger(solver=solver(method), max_passes=2, **common).fit(X, y)
        return mm.SequenceTagger(
            solver=solver(method, every), loss="ramp", max_rounds=rounds, passes_per_round=epochs, start=start,
            max_passes=4 * rounds * (epochs + 2), callbacks=callbacks, **common,
        ).fit(X, y)  # fmt: skip


def corrupt(y: list, labels: list, share: float, seed: int) -> list:
    """Labels in which a share of the sentences has every token relabelled uniformly at random."""
    rng = np.random.default_rng(seed)
    y = [list(s) for s in y]
    for i in rng.choice(len(y), round(share * len(y)), replace=False):
        y[i] = [labels[k] for k in rng.integers(0, len(labels), len(y[i]))]
    return y


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Mean and half width of the 95 % interval (Student) of paired differences."""
    from scipy.stats import t

    n = len(differences)
    return float(differences.mean()), float(
        t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    ) if n > 1 else 0.0
