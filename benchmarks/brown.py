"""Brown parts of speech, up to 472 labels: maxmargin and python-crfsuite's averaged perceptron on the same features.

    MAXMARGIN_DATA=... make bench-brown               # the whole corpus, more than half an hour, most of it CRFsuite's
    python benchmarks/brown.py --share 0.1            # every tenth document, for a quick run
    python benchmarks/brown.py --only lean            # one side alone: fast, lean or crfsuite

Every tenth of the chosen documents is for testing. Each side runs in its own process, so that its peak memory is its
own. maxmargin is measured twice: with the fast setting of the default solver, which keeps planes, and with averaged
Pegasos, which keeps only weights. maxmargin reads the corpus and makes the features. CRFsuite reads a file of
precomputed attributes (the names of our features, token by token), so that neither Python lists nor our arrays count as
its memory. Seconds are processor seconds of training on one thread, because most machines do other work during runs
this long. Ours include making features and packing; CRFsuite's exclude reading and appending.
"""

from __future__ import annotations

import argparse
import json
import lzma
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from machine import machine_line
from maxmargin.datasets.columns import read_columns
from maxmargin.datasets.folder import require
from maxmargin.metrics import token_accuracy

Sentence = list[tuple[str, ...]]

C = 0.1
FAST = {"parts": 1, "cached_passes": 2, "visits": 0.5, "certificate_every": 100.0}
FAST_PASSES = 7
LEAN_PASSES = 16
PERCEPTRON_PASSES = 10
HELD_OUT = 10  # every tenth document is for testing


def documents() -> Iterator[list[Sentence]]:
    """The documents of the corpus one by one; each is a list of sentences, each a list of (word, tag)."""
    path = require(
        "brown/brown.tsv.xz",
        "the corpus 'brown' of nltk_data, as xz text with a line 'word<TAB>tag' for each token, a blank line between "
        "sentences and a line '#doc <id> <category>' before each document",
    )
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


@dataclass
class Half:
    """Words and tags of sentences; equal strings are one object, or they would take most of the memory."""

    words: list[list[str]] = field(default_factory=list)
    tags: list[list[str]] = field(default_factory=list)

    def add(self, document: list[Sentence]) -> None:
        self.words += [[sys.intern(token[0]) for token in sentence] for sentence in document]
        self.tags += [[sys.intern(token[1]) for token in sentence] for sentence in document]


def split(share: float) -> tuple[Half, Half]:
    """Train and test sentences of a share of the documents, spread over the corpus."""
    train, test = Half(), Half()
    for number, document in enumerate(islice(documents(), 0, None, max(1, round(1 / share)))):
        (test if number % HELD_OUT == HELD_OUT - 1 else train).add(document)
    return train, test


def features() -> mm.TextFeatures:
    """Words at -2..2 and two pairs, affixes of up to four letters, shapes of the neighbours."""
    from maxmargin.features.window import Ends, Lower, Prefix, Shape, Suffix, Window

    windows: list[Any] = [Window(0, bigrams=(-1, 0), name="w"), Window(0, (0,), of=Lower(), name="lower"), Ends()]
    windows += [Window(0, (0,), of=Prefix(n), name=f"prefix{n}") for n in (1, 2, 3, 4)]
    windows += [Window(0, (0,), of=Suffix(n), name=f"suffix{n}") for n in (1, 2, 3, 4)]
    windows += [Window(0, (-1, 1), of=Suffix(3), name="suffix3"), Window(0, (-1, 0, 1), of=Shape(True), name="shape")]
    return mm.TextFeatures(windows)


def write_attributes(folder: Path, share: float) -> dict[str, Any]:
    """The features of both halves as lines ``label<TAB>attribute<TAB>...``, a blank line after each sentence."""
    train, test = split(share)
    extractor = features()
    halves = {"train": (extractor.fit_transform(train.words), train.tags)}
    halves["test"] = (extractor.transform(test.words), test.tags)
    names = extractor.names()
    for half, (X, labels) in halves.items():
        rows, indices, begin = X.sparse.indptr.tolist(), X.sparse.indices, 0
        with open(folder / half, "w", encoding="utf-8", newline="\n") as file:
            for sentence in labels:
                for t, label in enumerate(sentence, start=begin):
                    attributes = (names[k] for k in indices[rows[t] : rows[t + 1]].tolist())
                    file.write("\t".join((label, *attributes)) + "\n")
                file.write("\n")
                begin += len(sentence)
    return {
        "sentences": [len(train.words), len(test.words)],
        "tokens": [X.n_tokens for X, _ in halves.values()],
        "labels": len({label for sentence in train.tags for label in sentence}),
        "features": extractor.n_features_,
    }


def read_attributes(path: Path) -> Iterator[tuple[list[list[str]], list[str]]]:
    """The sentences of :func:`write_attributes`, one by one."""
    attributes: list[list[str]] = []
    labels: list[str] = []
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            if line == "\n":
                yield attributes, labels
                attributes, labels = [], []
            else:
                label, *rest = line.removesuffix("\n").split("\t")
                labels.append(label)
                attributes.append(rest)


def run_fast(folder: Path, share: float) -> dict[str, Any]:
    return run_ours(mm.Auto(**FAST), FAST_PASSES, share)


def run_lean(folder: Path, share: float) -> dict[str, Any]:
    return run_ours(mm.Pegasos(averaging="tail", certificate_every=1000.0), LEAN_PASSES, share)


def run_ours(solver: Any, passes: int, share: float) -> dict[str, Any]:
    from sklearn.exceptions import ConvergenceWarning

    def tagger() -> mm.SequenceTagger:
        return mm.SequenceTagger(
            C=C, weights="observed", solver=solver, max_passes=passes, tol=0.0, features=features()
        )

    warnings.simplefilter("ignore", ConvergenceWarning)
    train, test = split(share)
    tagger().fit(train.words[:20], train.tags[:20]).predict(test.words[:5])  # kernels
    before = peak()
    fitted, training = timed(lambda: tagger().fit(train.words, train.tags))
    highest = peak()  # before the test sentences come in
    found, predicting = timed(lambda: fitted.predict(test.words))
    return {
        "seconds": training,
        "passes": fitted.n_iter_,
        "feature_seconds": 0.0,
        "predict_seconds": predicting,
        "accuracy": token_accuracy(test.tags, found),
        "before": before,
        "peak": highest,
        "weights": int(np.count_nonzero(fitted.weights_)),
    }


def run_crfsuite(folder: Path, share: float) -> dict[str, Any]:
    import pycrfsuite

    before = peak()
    options = {"max_iterations": PERCEPTRON_PASSES}
    trainer = pycrfsuite.Trainer(algorithm="averaged-perceptron", params=options, verbose=False)
    begin = time.process_time()
    for attributes, labels in read_attributes(folder / "train"):
        trainer.append(pycrfsuite.ItemSequence(attributes), labels)
    appending = time.process_time() - begin
    _, training = timed(lambda: trainer.train(str(folder / "model")))
    highest = peak()  # before the test sentences come in
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model"))
    right = total = 0
    predicting = 0.0
    for attributes, labels in read_attributes(folder / "test"):
        items = pycrfsuite.ItemSequence(attributes)
        found, seconds = timed(lambda items=items: tagger.tag(items))
        predicting += seconds
        right += sum(a == b for a, b in zip(found, labels, strict=True))
        total += len(labels)
    info = tagger.info()
    return {
        "seconds": training,
        "passes": len(trainer.logparser.iterations),
        "feature_seconds": appending,
        "predict_seconds": predicting,
        "accuracy": right / total,
        "before": before,
        "peak": highest,
        "weights": len(info.state_features) + len(info.transitions),
    }


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """The result of an action, and the processor seconds it took."""
    begin = time.process_time()
    return action(), time.process_time() - begin


def peak() -> float:
    """Peak memory of this process, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


RUNS = {"attributes": write_attributes, "fast": run_fast, "lean": run_lean, "crfsuite": run_crfsuite}
TITLES = {"fast": "maxmargin fast", "lean": "maxmargin lean", "crfsuite": "crfsuite perceptron"}


def apart(run: str, folder: Path, share: float) -> dict[str, Any]:
    """Run one of :data:`RUNS` in its own process."""
    command = [sys.executable, __file__, "--run", run, "--folder", str(folder), "--share", str(share)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the process for {run!r} ended with {done.returncode}; its message is above.")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="share of the documents, 1 for all")
    parser.add_argument("--only", choices=TITLES, action="append", help="default: all")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 0.02 <= options.share <= 1:
        parser.error("--share must be between 0.02, which leaves one document for testing, and 1")
    if options.run:
        print(json.dumps(RUNS[options.run](options.folder, options.share)))
        return
    print(machine_line())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = apart("attributes", folder, options.share)
        print(
            f"{sizes['sentences'][0]} + {sizes['sentences'][1]} sentences, {sizes['tokens'][0]} + {sizes['tokens'][1]} "
            f"tokens, {sizes['labels']} labels, {sizes['features']} features",
            flush=True,
        )
        print(f"{'':22}{'train':>9}{'passes':>8}{'per pass':>9}{'memory':>10}{'before it':>14}{'accuracy':>10}")
        results = {}
        for key, title in TITLES.items():
            if options.only and key not in options.only:
                continue
            results[key] = r = apart(key, folder, options.share)
            print(
                f"{title:22}{r['seconds']:7.1f} s{r['passes']:8.1f}{r['seconds'] / r['passes']:7.2f} s"
                f"{r['peak']:7.0f} MB{r['before']:11.0f} MB{100 * r['accuracy']:8.2f} %   "
                f"(features {r['feature_seconds']:.1f} s, prediction {r['predict_seconds']:.1f} s, "
                f"{r['weights']} non-zero weights)",
                flush=True,
            )
    theirs = results.get("crfsuite")
    for key in ("fast", "lean"):
        if theirs is not None and key in results:
            ours = results[key]
            print(
                f"{key}: training {theirs['seconds'] / ours['seconds']:.2f} times as fast, a pass "
                f"{theirs['seconds'] / theirs['passes'] / (ours['seconds'] / ours['passes']):.2f} times, memory "
                f"{ours['peak'] / theirs['peak']:.2f} of CRFsuite's, accuracy "
                f"{100 * (ours['accuracy'] - theirs['accuracy']):+.2f} points"
            )


if __name__ == "__main__":
    main()
