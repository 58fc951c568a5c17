"""CoNLL-2000 from text to labels and from text to a model file: maxmargin and python-crfsuite, same features, one run.

    MAXMARGIN_DATA=... make bench-predict             # about two minutes

(a) Prediction from columns of text, (b) prediction from precomputed features, (c) one sentence per call, (d) training
from the raw files to a model file, (e) the model files. Times are processor seconds of one thread (a busy machine
stretches wall seconds), the best of several runs that take turns. :func:`chunking_features.string_features` makes the
features of CRFsuite column by column, which is faster than the usual function for one token. Precomputed features are
``Sequences`` for maxmargin and ``ItemSequence`` for CRFsuite, which looks up its strings in its model. Kernels are
loaded before the clocks start; the time that this takes is printed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from chunking_features import Sentence, chunk_labels, string_features
from machine import Others, machine_line
from maxmargin.datasets.columns import read_columns
from maxmargin.datasets.conll2000 import load_conll2000
from maxmargin.datasets.folder import data_home
from maxmargin.features.choose import default_words
from maxmargin.features.window import Ends, Window
from maxmargin.kernel import compile_seconds
from maxmargin.metrics import span_f1

C = 0.1  # chosen by cross-validation in chunking.py
FAST = {"parts": 1, "cached_passes": 2, "visits": 0.5, "certificate_every": 100.0}
FAST_PASSES = 7
PERCEPTRON_PASSES = 10
PREDICT_REPEATS, TRAIN_REPEATS = 7, 2
SINGLE = (22, 26)  # length in tokens of the sentences that are labelled one per call


def chunking_windows() -> list:
    """The templates of chunking_features; there are no features beyond the ends of a sentence."""
    return [
        Window(0, bigrams=(-1, 0), name="w", outside="drop"),
        Window(1, bigrams=(-2, -1, 0, 1), trigrams=(-2, -1, 0), name="pos", outside="drop"),
        Ends(),
    ]


def read(split: str) -> list[Sentence]:
    return read_columns(data_home() / "conll2000" / f"{split}.txt.gz")


def columns(sentences: list[Sentence]) -> list[list[tuple[str, str]]]:
    """The input of a tagger: words and parts of speech, no labels."""
    return [[token[:2] for token in sentence] for sentence in sentences]


def train_ours(path: Path, weights: str, features: Any = None) -> mm.SequenceTagger:
    """Read, make features, train, save."""
    sentences = read("train")
    tagger = mm.SequenceTagger(
        features=mm.TextFeatures(chunking_windows()) if features is None else features,
        C=C,
        weights=weights,
        solver=mm.Auto(**FAST),
        max_passes=FAST_PASSES,
        tol=0.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(columns(sentences), chunk_labels(sentences))
    tagger.save(path, precision="float32")
    return tagger


def train_crfsuite(path: Path) -> None:
    """Read, make features, train; CRFsuite saves its model at the end."""
    sentences = read("train")
    options = {"max_iterations": PERCEPTRON_PASSES}
    trainer = pycrfsuite.Trainer(algorithm="averaged-perceptron", params=options, verbose=False)
    for attributes, labels in zip(string_features(sentences), chunk_labels(sentences), strict=True):
        trainer.append(pycrfsuite.ItemSequence(attributes), labels)
    trainer.train(str(path))


def crfsuite_tagger(path: Path) -> Any:
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def check_same_features(tagger: mm.SequenceTagger, sentences: list[Sentence]) -> None:
    """Check that both sides see the same attributes of each token, except those not in the training data."""
    names = tagger.features_.names()
    known = set(names)
    rows = tagger.features_.transform(columns(sentences)).sparse
    tokens = [row for attributes in string_features(sentences) for row in attributes]
    for t, attributes in enumerate(tokens):
        ours = {names[k] for k in rows.indices[rows.indptr[t] : rows.indptr[t + 1]].tolist()}
        assert ours == known.intersection(attributes), (t, ours.symmetric_difference(attributes))


def take_turns(actions: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Best seconds and last answer of each action; they take turns, so a slow moment of the machine affects all."""
    best, answers = dict.fromkeys(actions, np.inf), {}
    for _ in range(repeats):
        for name, action in actions.items():
            begin = time.process_time()
            answers[name] = action()
            best[name] = min(best[name], time.process_time() - begin)
    return best, answers


def latency(tagger: Any, ours: dict[str, mm.SequenceTagger], sentences: list[Sentence]) -> None:
    """Milliseconds of a call with one sentence, from text and from precomputed features."""
    plain = columns(sentences)
    strings = [string_features([sentence])[0] for sentence in sentences]
    items = [pycrfsuite.ItemSequence(attributes) for attributes in strings]
    actions: dict[str, Callable[[], Any]] = {
        "crfsuite, text": lambda: [tagger.tag(string_features([s])[0]) for s in sentences],
        "crfsuite, lists of strings": lambda: [tagger.tag(s) for s in strings],
        "crfsuite, ItemSequence": lambda: [tagger.tag(s) for s in items],
    }
    for name, our in ours.items():
        ready = [our.features_.transform([s]) for s in plain]
        actions[f"{name}, text"] = lambda our=our: [our.predict([s]) for s in plain]
        actions[f"{name}, Sequences"] = lambda our=our, ready=ready: [our.predict(x) for x in ready]
    best, _ = take_turns(actions, PREDICT_REPEATS)
    tokens = sum(map(len, sentences)) / len(sentences)
    print(f"\n(c) one sentence per call, {len(sentences)} sentences of {tokens:.1f} tokens on average")
    for name, seconds in best.items():
        print(f"  {name:48} {1e3 * seconds / len(sentences):8.3f} ms per sentence", flush=True)


def report(title: str, best: dict[str, float], tokens: int) -> None:
    print(f"\n{title}")
    for name, seconds in best.items():
        print(f"  {name:38} {seconds:8.3f} s {tokens / seconds / 1e3:10.0f} thousand tokens per second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    print(machine_line())
    load_conll2000("test")  # fails with a message if the data is missing
    test = read("test")
    plain, y_test = columns(test), chunk_labels(test)
    tokens = sum(map(len, test))
    begin = time.perf_counter()
    warm = mm.SequenceTagger(features=mm.TextFeatures(chunking_windows()), solver=mm.Auto(**FAST), max_passes=3)
    for weights in ("all", "observed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warm.set_params(weights=weights).fit(plain[:50], y_test[:50]).predict(plain[:5])
    print(f"kernels: {compile_seconds():.2f} s to compile or load, {time.perf_counter() - begin:.2f} s with small fits")

    with tempfile.TemporaryDirectory() as name, Others() as others:
        folder = Path(name)
        ours_path, observed_path, theirs_path = (folder / f for f in ("all.mm", "observed.mm", "model.crfsuite"))
        training, fitted = take_turns(
            {
                "crfsuite": lambda: train_crfsuite(theirs_path),
                "all": lambda: train_ours(ours_path, "all"),
                "observed": lambda: train_ours(observed_path, "observed"),
            },
            TRAIN_REPEATS,
        )
        ours, observed, theirs = fitted["all"], fitted["observed"], crfsuite_tagger(theirs_path)
        check_same_features(ours, test[:300])

        X_test = ours.features_.transform(plain)
        items = [pycrfsuite.ItemSequence(attributes) for attributes in string_features(test)]
        text, found = take_turns(
            {
                "crfsuite": lambda: [theirs.tag(attributes) for attributes in string_features(test)],
                "all": lambda: ours.predict(plain),
                "observed": lambda: observed.predict(plain),
            },
            PREDICT_REPEATS,
        )
        ready, _ = take_turns(
            {
                "crfsuite": lambda: [theirs.tag(item) for item in items],
                "all": lambda: ours.predict(X_test),
                "observed": lambda: observed.predict(X_test),
            },
            PREDICT_REPEATS,
        )
        f1 = {key: 100 * span_f1(y_test, labels) for key, labels in found.items()}
        names = {
            "crfsuite": "crfsuite averaged perceptron",
            "all": 'maxmargin weights="all"',
            "observed": 'maxmargin weights="observed"',
        }
        report("(a) columns of text to labels", {names[k]: s for k, s in text.items()}, tokens)
        report("(b) precomputed features to labels", {names[k]: s for k, s in ready.items()}, tokens)
        by_words = train_ours(folder / "words.mm", "all", default_words())
        latency(
            theirs,
            {names["all"]: ours, names["observed"]: observed, "maxmargin default features of words": by_words},
            [sentence for sentence in test if SINGLE[0] <= len(sentence) <= SINGLE[1]],
        )

        print("\n(d) raw files to a model file: read, features, train, save")
        passes = {"crfsuite": PERCEPTRON_PASSES, "all": ours.n_iter_, "observed": observed.n_iter_}
        for key, seconds in training.items():
            print(f"  {names[key]:38} {seconds:8.2f} s {passes[key]:6.1f} passes   F1 {f1[key]:.2f}")

        print("\n(e) model files")
        sizes: dict[str, int] = {"crfsuite": theirs_path.stat().st_size}
        loading: dict[str, Callable[[], Any]] = {"crfsuite": lambda: crfsuite_tagger(theirs_path)}
        for key, tagger in (("all", ours), ("observed", observed)):
            for precision in ("float32", "float64"):
                path = tagger.save(folder / f"{key}.{precision}", precision=precision)
                sizes[f"{key} {precision}"] = path.stat().st_size
                loading[f"{key} {precision}"] = lambda path=path: mm.load(path)
        seconds, loaded = take_turns(loading, 5)
        for key, size in sizes.items():
            kind, _, precision = key.partition(" ")
            print(f"  {names[kind] + ' ' + precision:38} {size / 1e6:8.2f} MB  loads in {seconds[key]:6.3f} s")
        assert loaded["all float64"].predict(plain[:200]) == found["all"][:200]
        changed = sum(a != b for a, b in zip(loaded["all float32"].predict(plain), found["all"], strict=True))

    print(f"\nother processes kept {others.cores:.2f} cores busy")
    print("goals")
    for key in ("all", "observed"):
        small, load_seconds = sizes[f"{key} float32"], max(seconds[f"{key} {p}"] for p in ("float32", "float64"))
        print(
            f"  {key:9} text {text['crfsuite'] / text[key]:.2f} times as fast (goal 3), precomputed features "
            f"{ready['crfsuite'] / ready[key]:.2f} (goal 1), training {training['crfsuite'] / training[key]:.2f}; "
            f"file {small / sizes['crfsuite']:.2f} of CRFsuite's (goal 1), loads in {load_seconds:.3f} s (goal 0.2)"
        )
    print(f"  float32 weights change {changed} of {len(plain)} test sentences")


if __name__ == "__main__":
    main()
