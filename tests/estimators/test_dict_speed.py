"""Dicts of features are labelled quickly, compared with CRFsuite's tagger; `make bench-dicts` has the figures."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SequenceTagger

pycrfsuite = pytest.importorskip("pycrfsuite")

# shares of CRFsuite's time that a busy machine leaves room for; without the quick ways they were 1.2 and 5
MANY, ALONE = 1.1, 1.8


def token(word):
    return {
        "bias": 1.0, "word": word, "suffix": word[-2:], "prefix": word[:1], "even": len(word) % 2 == 0, "title": False,
        "length": float(len(word) % 2), "shape": "x" * len(word), "w+s": word + word[-1:], "p": word[:2], "s": word[1:],
    }  # fmt: skip


def seconds(action):
    best = np.inf
    for _ in range(5):
        begin = time.process_time()
        action()
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.found("B7")
def test_no_slower_than_crfsuite(tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(2, 6))) for _ in range(400)]
    sentences = [[str(w) for w in rng.choice(words, size=20)] for _ in range(250)]
    X = [[token(word) for word in sentence] for sentence in sentences]
    y = [[word[0] for word in sentence] for sentence in sentences]
    trainer = pycrfsuite.Trainer(algorithm="averaged-perceptron", params={"max_iterations": 2}, verbose=False)
    for rows, labels in zip(X[:100], y[:100], strict=True):
        trainer.append(rows, labels)
    trainer.train(str(tmp_path / "model"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "model"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = SequenceTagger(weights="observed", max_passes=3).fit(X[:100], y[:100])
    assert ours.predict(X) == [ours.predict([rows])[0] for rows in X]
    peer = seconds(lambda: [theirs.tag(rows) for rows in X])
    assert seconds(lambda: ours.predict(X)) < MANY * peer
    assert seconds(lambda: [ours.predict([rows]) for rows in X]) < ALONE * peer
