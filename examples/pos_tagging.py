"""Tag words with their parts of speech, and show which tags get confused.

The features are those that a tagger makes from plain words by default: the words around a token, their pairs, affixes
and shapes. The corpus is UD English EWT (17 tags); ``--corpus genia`` uses GENIA (biomedical text, 42 tags).

    MAXMARGIN_DATA=... python examples/pos_tagging.py        # under a minute
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter

from sklearn.exceptions import ConvergenceWarning

from maxmargin import Auto, SequenceTagger
from maxmargin.datasets import require
from maxmargin.datasets.columns import read_columns
from maxmargin.metrics import sequence_accuracy, token_accuracy

Words = list[list[str]]

CORPORA = {
    "ewt": (
        "ud_english_ewt",
        "the repository UD_English-EWT of Universal Dependencies, as xz text with a line "
        "'form<TAB>UPOS<TAB>XPOS<TAB>head<TAB>deprel' for each word and a blank line between sentences",
    ),
    "genia": (
        "genia_pos",
        "the GENIA treebank, as xz text with a line 'word<TAB>tag' for each word, a blank line between sentences and "
        "lines '#doc <id>' between documents",
    ),
}
SHOWN = 8  # confusions


def load(corpus: str, half: str) -> tuple[Words, Words]:
    """Words and tags of the sentences of one half of a corpus."""
    folder, where = CORPORA[corpus]
    sentences = read_columns(require(f"{folder}/{half}.tsv.xz", where), separator="\t", comments="#doc ")
    return [[token[0] for token in s] for s in sentences], [[token[1] for token in s] for s in sentences]


def confusions(y_true: Words, y_found: Words) -> list[tuple[tuple[str, str], int]]:
    """Pairs (true tag, predicted tag), the most frequent first."""
    pairs = (pair for true, found in zip(y_true, y_found, strict=True) for pair in zip(true, found, strict=True))
    return Counter(pair for pair in pairs if pair[0] != pair[1]).most_common()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Tag words with their parts of speech.")
    parser.add_argument("--corpus", choices=CORPORA, default="ewt")
    parser.add_argument("--sentences", type=int, help="train only on this many sentences")
    options = parser.parse_args(arguments)
    try:
        (X_train, y_train), (X_test, y_test) = load(options.corpus, "train"), load(options.corpus, "test")
    except FileNotFoundError as error:
        sys.exit(str(error))
    X_train, y_train = X_train[: options.sentences], y_train[: options.sentences]
    print(f"{len(X_train)} training sentences with {sum(map(len, X_train))} words, {len(X_test)} test sentences.")

    # settings for a good model soon, not for a tight certificate: longer sweeps, one plane per argmax, one certificate
    solver = Auto(visits=0.5, parts=1, cached_passes=2, certificate_every=100.0)
    tagger = SequenceTagger(C=0.1, weights="observed", solver=solver, tol=0.0, max_passes=7)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # seven passes are what we want
        tagger.fit(X_train, y_train)
    trained = time.perf_counter()
    found = tagger.predict(X_test)
    seconds = time.perf_counter() - trained
    print(f"Trained in {trained - begin:.1f} s: {len(tagger.classes_)} tags, {tagger.features_.n_features_} features.")
    print(f"Certificate: {tagger.certificate_}")
    print(f"Tagged {sum(map(len, X_test))} words in {seconds:.2f} s.\n")

    print(f"words right      {100 * token_accuracy(y_test, found):6.2f} %")
    known = {word for sentence in X_train for word in sentence}
    new = [
        (true, tag)
        for sentence, tags, guesses in zip(X_test, y_test, found, strict=True)
        for word, true, tag in zip(sentence, tags, guesses, strict=True)
        if word not in known
    ]
    if new:
        print(f"new words right  {100 * sum(a == b for a, b in new) / len(new):6.2f} %  ({len(new)} words)")
    print(f"sentences right  {100 * sequence_accuracy(y_test, found):6.2f} %\n")
    print("most confused: true tag, predicted tag, count")
    for (true, tag), count in confusions(y_test, found)[:SHOWN]:
        print(f"  {true:8} {tag:8} {count:5d}")

    sentence = "We can fish in the can".split()
    print("\n" + " ".join(f"{word}/{tag}" for word, tag in zip(sentence, tagger.predict([sentence])[0], strict=True)))


if __name__ == "__main__":
    main()
