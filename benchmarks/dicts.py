"""Features given as dicts: seconds of prediction, many sentences in one call and one per call, with python-crfsuite.

    MAXMARGIN_DATA=... make bench-dicts               # about a minute

CoNLL-2000, three kinds of tokens: the dicts of the tutorial of sklearn-crfsuite (text, numbers and booleans), the text
of these dicts alone, and lists of strings. The dicts are made before the clocks start, and both models are read from
their files. Times are processor seconds, the best of several runs that take turns.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pycrfsuite
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from chunking_features import Sentence, chunk_labels
from machine import Others, machine_line
from predict import crfsuite_tagger, read, take_turns

TRAINING, REPEATS = 3000, 7
SINGLE = (22, 26)  # length in tokens of the sentences that are labelled one per call


def tutorial(sentence: Sentence) -> list[dict[str, object]]:
    """The features of the tutorial of sklearn-crfsuite."""
    rows: list[dict[str, object]] = []
    for i, (word, tag) in enumerate(token[:2] for token in sentence):
        row: dict[str, object] = {
            "bias": 1.0, "word.lower()": word.lower(), "word[-3:]": word[-3:], "word[-2:]": word[-2:],
            "word.isupper()": word.isupper(), "word.istitle()": word.istitle(), "word.isdigit()": word.isdigit(),
            "postag": tag, "postag[:2]": tag[:2],
        }  # fmt: skip
        for step, end in ((-1, "BOS"), (1, "EOS")):
            if 0 <= i + step < len(sentence):
                near, near_tag = sentence[i + step][:2]
                row |= {
                    f"{step:+d}:word.lower()": near.lower(), f"{step:+d}:word.istitle()": near.istitle(),
                    f"{step:+d}:word.isupper()": near.isupper(), f"{step:+d}:postag": near_tag,
                    f"{step:+d}:postag[:2]": near_tag[:2],
                }  # fmt: skip
            else:
                row[end] = True
        rows.append(row)
    return rows


KINDS: dict[str, Callable[[dict[str, object]], object]] = {
    "text, numbers, booleans": lambda row: row,
    "text": lambda row: {key: value for key, value in row.items() if isinstance(value, str)},
    "lists of strings": lambda row: [f"{key}={value}" for key, value in row.items()],
}


def compare(kind: str, train: list[Sentence], test: list[Sentence], path: Path) -> None:
    X_train, X = ([[KINDS[kind](row) for row in tutorial(s)] for s in part] for part in (train, test))
    trainer = pycrfsuite.Trainer(algorithm="averaged-perceptron", params={"max_iterations": 5}, verbose=False)
    for rows, labels in zip(X_train, chunk_labels(train), strict=True):
        trainer.append(rows, labels)
    trainer.train(str(path))
    theirs = crfsuite_tagger(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = mm.SequenceTagger(weights="observed", C=0.1, max_passes=5).fit(X_train, chunk_labels(train))
    ours = mm.load(fitted.save(path.with_suffix(".mm")))
    single = [rows for rows in X if SINGLE[0] <= len(rows) <= SINGLE[1]]
    actions: dict[str, Callable[[], Any]] = {
        "crfsuite, all": lambda: [theirs.tag(rows) for rows in X],
        "maxmargin, all": lambda: ours.predict(X),
        "crfsuite, one": lambda: [theirs.tag(rows) for rows in single],
        "maxmargin, one": lambda: [ours.predict([rows]) for rows in single],
    }
    best, _ = take_turns(actions, REPEATS)
    many, one = best["maxmargin, all"] / best["crfsuite, all"], best["maxmargin, one"] / best["crfsuite, one"]
    print(f"\n{kind}: {sum(map(len, X))} tokens; {len(single)} sentences one per call")
    for name in ("crfsuite", "maxmargin"):
        per_call = 1e3 * best[f"{name}, one"] / len(single)
        print(f"  {name:12} {best[f'{name}, all']:8.3f} s in one call {per_call:8.3f} ms per call of one sentence")
    print(
        f"  maxmargin takes {many:.2f} of CRFsuite's time in one call, {one:.2f} with one sentence per call", flush=True
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(machine_line())
    train, test = read("train")[:TRAINING], read("test")
    with tempfile.TemporaryDirectory() as folder, Others() as others:
        for kind in KINDS:
            compare(kind, train, test, Path(folder) / "model")
    print(f"\nother processes kept {others.cores:.2f} cores busy")


if __name__ == "__main__":
    main()
