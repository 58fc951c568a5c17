"""Scorers by name: counted by hand on fixed predictions, and inside searches of scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from maxmargin import SequenceTagger
from maxmargin.metrics import SCORERS, get_scorer

NAMES = ["span_f1", "span_precision", "span_recall", "token_accuracy", "sequence_accuracy"]
OF_SETS = ["subset_accuracy", "jaccard_accuracy", "micro_f1", "macro_f1", "example_f1", "neg_label_loss"]
WORDS = {"O": ["the", "saw", "of"], "B-X": ["big", "old"], "I-X": ["dog", "cat"]}


class Says:
    """Predicts what it was given."""

    def __init__(self, *labels):
        self.labels = [text.split() for text in labels]

    def predict(self, X):
        assert X == "input"
        return self.labels


def sentences(n=12):
    shapes = [["O", "B-X", "I-X"], ["B-X", "O", "O", "B-X"], ["O", "O", "B-X", "I-X", "I-X"]]
    y = [shapes[i % 3] for i in range(n)]
    return [[WORDS[label][(i + t) % len(WORDS[label])] for t, label in enumerate(s)] for i, s in enumerate(y)], y


@pytest.mark.parametrize(
    ("name", "score"),
    # true spans: 3; predicted: 4, of which 2 are right. Tokens: 4 of 7 right. Sequences: 1 of 3 right.
    [
        ("span_precision", 2 / 4),
        ("span_recall", 2 / 3),
        ("span_f1", 4 / 7),
        ("token_accuracy", 4 / 7),
        ("sequence_accuracy", 1 / 3),
    ],
)
def test_scores_counted_by_hand(name, score):
    y = [["B-X", "I-X", "O"], ["B-Y", "O"], ["B-X", "O"]]
    assert get_scorer(name)(Says("B-X I-X O", "B-Y B-X", "O B-X"), "input", y) == pytest.approx(score)


def test_names():
    assert sorted(SCORERS) == sorted(NAMES + OF_SETS)
    for name in SCORERS:
        assert get_scorer(name) == SCORERS[name]
        assert pickle.loads(pickle.dumps(SCORERS[name])) == SCORERS[name]
    for name in ("f1", None, ["span_f1"]):
        with pytest.raises(ValueError, match=r"is not a scorer; use one of span_f1, "):
            get_scorer(name)


def test_search_chooses_by_span_f1():
    X, y = sentences()
    folds = KFold(3)
    search = GridSearchCV(SequenceTagger(tol=0.01), {"C": [1e-6, 1.0]}, scoring=get_scorer("span_f1"), cv=folds)
    search.fit(X, y)
    # next to no weight on the losses leaves mistakes; these words tell their labels
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ == 1.0
    assert search.score(X, y) == 1.0


def test_several_scores_at_once():
    X, y = sentences()
    found = cross_validate(SequenceTagger(tol=0.01), X, y, scoring=SCORERS, cv=KFold(3), error_score="raise")
    for name in NAMES:
        assert found[f"test_{name}"].tolist() == [1.0] * 3


def test_import_needs_no_scikit_learn():
    code = "import sys, maxmargin.metrics; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
