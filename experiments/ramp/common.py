"""Shared by the experiments on the ramp loss: corpora, methods, fits, scores, outliers.

The methods are those of Mancev 2015: the sequential dual method (SDM), and stochastic Pegasos with and without (-WP)
the projection step, each with the hinge and with the ramp loss. His C_d is our C, and his lambda is ``1 / (C n)``. His
algorithm runs "# epoch" rounds of T passes over the data; the passes of hinge fits are from table 5.1. Passes are
counted like his epochs: those of certificates and of the concave part do not count.

The paper does not give the features; those here are the usual ones. Nor does it give the split of Brown; here, every
tenth document is for testing.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.metrics import span_f1, token_accuracy

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
AVERAGING = "tail"  # the paper averages all iterates; leaving out the first ones also suits later rounds
MANY = 100  # from this many labels on, only observed pairs have weights
SLOW_ROUNDS = 3  # a round continues while its objective is above that of the last one, up to this many times as long


@dataclass(frozen=True)
class Corpus:
    """Features and labels of a training and a test half; ``spans`` says whether the labels encode chunks."""

    name: str
    X: mm.Sequences
    y: list[list[str]]
    X_test: mm.Sequences
    y_test: list[list[str]]
    spans: bool

    @cached_property
    def labels(self) -> list[str]:
        return sorted({label for labels in self.y for label in labels})

    def __len__(self) -> int:
        return len(self.y)

    def with_labels(self, y: list[list[str]]) -> Corpus:
        """The same sentences with other labels for training."""
        return replace(self, y=y)

    def fold(self, number: int, folds: int) -> Corpus:
        """One fold of the training half as the test half, the others as the training half."""
        held = np.arange(len(self)) % folds == number
        inside = [labels for labels, h in zip(self.y, held, strict=True) if not h]
        outside = [labels for labels, h in zip(self.y, held, strict=True) if h]
        return Corpus(self.name, self.X[~held], inside, self.X[held], outside, self.spans)


def chunking(sentences: int | None = None) -> Corpus:
    """CoNLL-2000: words at -2..2 and two pairs, parts of speech at -2..2 with their pairs and triples."""
    from maxmargin.datasets.conll2000 import load_conll2000
    from maxmargin.features.window import Ends, Window

    train, test = load_conll2000("train")[:sentences], load_conll2000("test")[:sentences]
    features = mm.TextFeatures(
        [
            Window(0, bigrams=(-1, 0), name="w", outside="drop"),
            Window(1, bigrams=(-2, -1, 0, 1), trigrams=(-2, -1, 0), name="pos", outside="drop"),
            Ends(),
        ]
    )
    X, X_test = ([[token[:2] for token in sentence] for sentence in half] for half in (train, test))
    y, y_test = ([[token[2] for token in sentence] for sentence in half] for half in (train, test))
    return Corpus("chunking", features.fit_transform(X), y, features.transform(X_test), y_test, True)


def tagging(share: float, sentences: int | None = None) -> Corpus:
    """A share of the documents of Brown, with the features of ``benchmarks/brown.py``."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    from brown import features, split

    train, test = split(share)
    extractor = features()
    X, X_test = extractor.fit_transform(train.words[:sentences]), extractor.transform(test.words[:sentences])
    return Corpus("tagging", X, train.tags[:sentences], X_test, test.tags[:sentences], False)


@dataclass(frozen=True)
class Published:
    """A row of table 5.1: strength (C of SDM, lambda of Pegasos), T or the number of passes, rounds, and score."""

    strength: float
    passes: int
    rounds: int
    score: float


def _table(*rows: str) -> dict[tuple[str, str], Published]:
    """Rows of a solver, a loss, and what was published of them."""
    cells = [row.split() for row in rows]
    return {(c[0], c[1]): Published(float(c[2]), int(c[3]), int(c[4]), float(c[5])) for c in cells}


TABLE_5_1 = {
    "chunking": _table(
        "SDM hinge 0.1 100 1 96.084", "SDM ramp 0.1 10 4 96.076",
        "Pegasos hinge 2e-3 30 1 96.041", "Pegasos ramp 2e-3 5 7 96.072",
        "Pegasos-WP hinge 1e-3 100 1 96.082", "Pegasos-WP ramp 1e-3 10 10 96.086",
    ),
    "tagging": _table(
        "SDM hinge 0.1 200 1 95.292", "SDM ramp 0.1 20 4 95.216",
        "Pegasos hinge 1e-4 200 1 95.065", "Pegasos ramp 1e-4 20 10 95.079",
        "Pegasos-WP hinge 2e-3 200 1 95.320", "Pegasos-WP ramp 2e-3 20 10 95.319",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """How a tagger is fitted.

    Attributes
    ----------
    method : "SDM", "Pegasos", "Pegasos-WP" or "auto"
        "auto" is the accelerated solver for the problem that SDM solves.
    loss : "hinge" or "ramp"
    strength : float
        C, or lambda for Pegasos.
    passes, rounds : int
        Passes of the fit (hinge), or passes of a round and the number of rounds (ramp).
    early : bool
        Linearise the ramp first at the average of one pass of SDM, before wrong labels are memorised; otherwise at
        zero, so that the first round is the hinge.
    """

    method: str
    loss: str
    strength: float
    passes: int
    rounds: int = 1
    early: bool = False

    def C(self, n: int) -> float:
        return 1.0 / (self.strength * n) if self.method.startswith("Pegasos") else self.strength


@dataclass(frozen=True)
class Point:
    """A score during training, after some passes and finished rounds."""

    passes: int
    rounds: int
    score: float


class Watch(Callback):
    """Token accuracy on the test half of a corpus (in per cent) at every certificate."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def on_begin(self, run: Any) -> None:
        self.before, self.points = run.passes, []

    def on_certificate(self, run: Any) -> None:
        rounds = len(run.state.rounds or ())
        look = 2 if run.state.rounds is not None else 1  # argmaxes per example for a certificate
        passes = run.passes - self.before - look * (len(self.points) + 1)
        score = 100 * run.evaluate(run.weights(), self.corpus.X_test, self.corpus.y_test)
        self.points.append(Point(round(passes), rounds, score))


@dataclass(frozen=True)
class Fit:
    tagger: mm.SequenceTagger
    points: list[Point]
    seconds: float  # of processor time


def fit(setting: Setting, corpus: Corpus, *, seed: int = 0, every: int | None = None, watch: bool = False) -> Fit:
    """Fit on the training half; with ``watch``, also score the test half after every ``every`` passes."""
    from sklearn.exceptions import ConvergenceWarning

    every = setting.passes if every is None else min(every, setting.passes)
    watcher = Watch(corpus)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits end after their passes
        tagger = _tagger(setting, corpus, seed, every).set_params(callbacks=[watcher] if watch else None)
        if setting.early:
            first = Setting("SDM", "hinge", setting.C(len(corpus)), 1)
            tagger.set_params(loss__start=_tagger(first, corpus, seed, 1).fit(corpus.X, corpus.y))
        tagger.fit(corpus.X, corpus.y)
    return Fit(tagger, watcher.points if watch else [], time.process_time() - begin)


def _tagger(setting: Setting, corpus: Corpus, seed: int, every: int) -> mm.SequenceTagger:
    passes, project = setting.passes, setting.method == "Pegasos"
    if setting.method == "auto":
        solver: Any = mm.Auto()
    elif setting.method == "SDM":
        solver = mm.SequentialDual(certificate_every=every, averaging=AVERAGING)
    else:
        solver = mm.Pegasos(project=project, certificate_every=every, averaging=AVERAGING)
    if setting.loss == "hinge":
        looks = 0 if setting.method == "auto" else -(-passes // every) + project
        loss: Any = "hinge"
        most = passes + looks
    else:
        most = SLOW_ROUNDS * setting.rounds * (passes + 2)
        loss = mm.Ramp(max_rounds=setting.rounds, passes_per_round=passes)
    return mm.SequenceTagger(
        C=setting.C(len(corpus)), loss=loss, solver=solver, tol=0.0, random_state=seed, classes=corpus.labels,
        weights="observed" if len(corpus.labels) > MANY else "all", max_passes=most,
    )  # fmt: skip


def scores(tagger: mm.SequenceTagger, corpus: Corpus) -> tuple[float, float]:
    """Token accuracy and span F1 of the test half, in per cent; F1 is NaN where labels do not encode chunks."""
    found = tagger.predict(corpus.X_test)
    f1 = span_f1(corpus.y_test, found) if corpus.spans else np.nan
    return 100 * token_accuracy(corpus.y_test, found), 100 * f1


def with_outliers(y: list[list[str]], share: float, seed: int) -> list[list[str]]:
    """A copy in which a share of the sentences has every token relabelled uniformly at random."""
    rng = np.random.default_rng(seed)
    labels = sorted({label for sentence in y for label in sentence})
    y = [list(sentence) for sentence in y]
    for i in rng.permutation(len(y))[: round(share * len(y))]:
        y[i] = [labels[k] for k in rng.integers(len(labels), size=len(y[i]))]
    return y


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Mean of paired differences, and half the width of its 95 % interval by Student's t."""
    from scipy.stats import t

    n = len(differences)
    half = t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    return float(differences.mean()), float(half)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="use a small share of the data; about a minute")
    made.add_argument("--sentences", type=int, help="use only this many sentences for training, and for testing")
    made.add_argument("--outputs", type=Path, default=Path("outputs"), help="where the pictures go")
    return made


def picture(figure: Any, path: Path) -> None:
    """Write a matplotlib figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"picture: {path}")
