"""Find labelled spans in text, such as named entities: BIO labels, constraints, span F1, confidence.

The datasets include no corpus of named entities, so this example finds the phrases (noun, verb, ...) of CoNLL-2000. The
task has the same form, with labels ``B-NP``, ``I-NP``, ``O``. For entities, only the file changes: one token per line,
its columns side by side, the label last, and a blank line between sentences.

    MAXMARGIN_DATA=... python examples/named_entities.py                    # under a minute
    python examples/named_entities.py --train my.train --test my.test       # files of your own, word first, label last
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Auto, SequenceTagger, TextFeatures
from maxmargin.datasets import require
from maxmargin.datasets.columns import read_columns
from maxmargin.features.window import Lower, Prefix, Shape, Suffix, Window
from maxmargin.metrics import span_report, spans

Rows = list[list[tuple[str, ...]]]
Labels = list[list[str]]

WHERE = "the CoNLL-2000 shared task, as gzip text with a line 'word POS chunk' for each token"


def load(path: Path) -> tuple[Rows, Labels]:
    """All columns except the last, and the last column."""
    sentences = read_columns(path)
    if not sentences or len(sentences[0][0]) < 2:
        raise ValueError(f"{path} needs at least two columns in each line: the word first, the label last.")
    return [[row[:-1] for row in s] for s in sentences], [[row[-1] for row in s] for s in sentences]


def features(columns: int) -> TextFeatures:
    """Words, their affixes and shapes; for every further column (parts of speech, ...), a window with its pairs."""
    windows = [Window(0, bigrams=(-1, 0)), Window(0, (0,), of=Lower()), Window(0, (-1, 0, 1), of=Shape())]
    windows += [Window(0, (0,), of=Prefix(n)) for n in (2, 3)]
    windows += [Window(0, (0,), of=Suffix(n)) for n in (2, 3)]
    windows += [Window(column, bigrams=(-2, -1, 0, 1), trigrams=(-2, -1, 0)) for column in range(1, columns)]
    return TextFeatures(windows)


def bracketed(sentence: list[tuple[str, ...]], labels: list[str]) -> str:
    """The sentence with its spans in brackets: [NP the dog] [VP barks] ."""
    begins = {span.start: span.type for span in spans(labels)}
    ends = {span.end for span in spans(labels)}
    text = []
    for t, (word, *_) in enumerate(sentence):
        text.append((f"[{begins[t]} " if t in begins else "") + word + ("]" if t + 1 in ends else ""))
    return " ".join(text)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Find labelled spans in text.")
    parser.add_argument("--train", type=Path, help="column file for training; default: CoNLL-2000")
    parser.add_argument("--test", type=Path, help="column file in which to find spans")
    parser.add_argument("--sentences", type=int, help="train only on this many sentences")
    options = parser.parse_args(arguments)
    if (options.train is None) != (options.test is None):
        parser.error("give --train and --test together, or neither")
    try:
        if options.train is None:
            print("No file given: the spans are the phrases of CoNLL-2000 (noun, verb, prepositional, ...).")
        X_train, y_train = load(options.train or require("conll2000/train.txt.gz", WHERE))
        X_test, y_test = load(options.test or require("conll2000/test.txt.gz", WHERE))
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
    X_train, y_train = X_train[: options.sentences], y_train[: options.sentences]
    print(f"{len(X_train)} training sentences with {sum(map(len, X_train))} tokens, {len(X_test)} test sentences.")

    tagger = SequenceTagger(
        features=features(len(X_train[0][0])),
        C=0.1,
        constraints="bio",  # a span continues only after it has begun: I-NP only after B-NP or I-NP
        solver=Auto(visits=0.5, parts=1, cached_passes=2, certificate_every=100.0),
        tol=0.0,
        max_passes=7,
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # seven passes are what we want
        tagger.fit(X_train, y_train)
    print(f"Trained in {time.perf_counter() - begin:.1f} s: {len(tagger.classes_)} labels, certificate: ", end="")
    print(f"{tagger.certificate_}\n")
    found = tagger.predict(X_test)
    print(span_report(y_test, found))

    # the margin of the best labelling over the runner-up shows where to look for mistakes
    some = list(range(min(300, len(X_test))))
    margins = tagger.predict_margin([X_test[i] for i in some])
    right = np.array([found[i] == y_test[i] for i in some])
    sure = margins >= np.median(margins)
    print(
        f"\nOf the first {len(some)} sentences, {100 * right[sure].mean():.0f} % of the surer half are all right, "
        f"and {100 * right[~sure].mean():.0f} % of the other half."
    )
    print(bracketed(X_test[0], found[0]))


if __name__ == "__main__":
    main()
