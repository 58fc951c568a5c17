"""Mistakes of a first try end with an error that names the example and says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import SequenceTagger

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

Y = [["a", "b"], ["b"], ["a", "a", "b"]]
WORDS = [["x" + label for label in labels] for labels in Y]
DICTS = [[{"word": word} for word in s] for s in WORDS]
NUMBERS = [np.eye(2)[["ab".index(label) for label in labels]] for labels in Y]
FRAME = pd.DataFrame([(i, word) for i, s in enumerate(WORDS) for word in s], columns=["sentence", "word"])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (WORDS, [label for labels in Y for label in labels], "they must agree: one list of labels for each sequence"),
        (WORDS, [Y[0], [float("nan")], Y[2]], "example 1 has the label nan; give the token a label"),
        (WORDS[0], Y[0], r"if X is one sentence of words, pass \[X\]"),
        ([[], []], [[], []], "every sequence is empty; at least one token with a label is needed"),
        (FRAME.assign(length=2.5), Y, "column 1 is 2.5 .* Numbers are features in dicts, or in frames"),
        (FRAME.rename(columns={"sentence": "id"}), Y, "no column 'sentence'; .* Name yours: maxmargin.features.Tokens"),
    ],
)
def test_fit(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SequenceTagger(features=None).fit(X, y)


@pytest.mark.parametrize(
    ("train", "X", "message"),
    [
        (NUMBERS, DICTS, "the tagger was fitted on arrays of numbers; give these"),
        (NUMBERS, WORDS, "the tagger was fitted on arrays of numbers; give these"),
        (WORDS, DICTS, "sentence 0, token 0 is .* tokens are all strings"),
        (DICTS, WORDS, "sentence 0, token 0: a token must be a dict"),
        (DICTS, DICTS[0], r"sentence 0 is a dict; .* pass \[X\]"),
    ],
)
def test_predict(train, X, message):
    tagger = SequenceTagger().fit(train, Y)
    with pytest.raises((TypeError, ValueError), match=message):
        tagger.predict(X)


def test_weights_that_users_set():
    """Also where a few sentences are labelled without a look at all weights."""
    tagger = SequenceTagger().fit(WORDS, Y)
    tagger.weights_[:] = np.nan
    with pytest.raises(ValueError, match=r"weight 0 is nan; .* Set it to such a number, or fit again"):
        tagger.predict(WORDS)
    tagger = SequenceTagger().fit(WORDS, Y)
    tagger.weights_ = tagger.weights_[:-1]
    with pytest.raises(ValueError, match="weights"):
        tagger.predict(WORDS)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("estimator", [SequenceTagger(), mm.MulticlassClassifier(), mm.MultilabelClassifier()], ids=str)
def test_a_warning_names_the_line_of_the_fit(estimator):
    X, y = (NUMBERS, Y) if "Sequence" in str(estimator) else (np.eye(4), [["a"], ["b"], ["a"], ["b"]])
    y = [labels[0] for labels in y] if "Multiclass" in str(estimator) else y
    with pytest.warns(ConvergenceWarning) as told:
        estimator.set_params(solver="pegasos", max_passes=1, tol=1e-9).fit(X, y)
    assert [warning.filename for warning in told] == [__file__]
