"""Examples in all the forms in which users have them, and predictions that scikit-learn can put together."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, cross_val_predict

from maxmargin import (
    Chain,
    DictFeatures,
    DiscriminativeHMM,
    GraphLabeler,
    ImageSegmenter,
    SequenceTagger,
    StructuredSVM,
    TextFeatures,
)
from maxmargin.compat.sklearn_crfsuite import CRF
from maxmargin.estimators.examples import Predictions
from maxmargin.metrics import span_f1, token_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LETTERS = "abc"


def sentences(n=12, seed=0):
    """Labels; words, dicts and numbers that tell them."""
    rng = np.random.default_rng(seed)
    y = [[LETTERS[k] for k in rng.integers(3, size=length)] for length in rng.integers(2, 7, n)]
    words = [[label + str(rng.integers(3)) for label in labels] for labels in y]
    dicts = [[{"word": w, "first": w[0], "number": int(w[1]), "upper": False} for w in s] for s in words]
    numbers = [np.eye(3)[[LETTERS.index(label) for label in labels]] for labels in y]
    return y, {"words": words, "dicts": dicts, "numbers": numbers}


def objects(examples):
    array = np.empty(len(examples), object)
    for i, example in enumerate(examples):
        array[i] = example
    return array


def tagger(**options):
    return SequenceTagger(max_passes=20, **options)


Y, X = sentences()


def graphs():
    chains = [np.stack([np.arange(len(y) - 1), np.arange(1, len(y))], 1) for y in Y]
    return [{"node": x, "edges": edges} for x, edges in zip(X["numbers"], chains, strict=True)]


@pytest.mark.found("C: cross_val_predict")
@pytest.mark.parametrize(
    ("estimator", "examples"),
    [
        (tagger(), X["dicts"]),
        (tagger(), X["words"]),
        (tagger(), X["numbers"]),
        (DiscriminativeHMM(unknown="missing"), X["words"]),
        (StructuredSVM(Chain(), max_passes=20), X["numbers"]),
        (GraphLabeler(max_passes=20), graphs()),
        (CRF(), X["dicts"]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_cross_val_predict(estimator, examples):
    found = cross_val_predict(estimator, examples, Y, cv=3)
    assert found.shape == (len(Y),) and found.dtype == object
    want = []
    for inside, out in KFold(3).split(Y):
        fold = clone(estimator).fit([examples[i] for i in inside], [Y[i] for i in inside])
        want += [list(labels) for labels in fold.predict([examples[i] for i in out])]
    assert [list(labels) for labels in found] == want
    assert token_accuracy(Y, found) > 0.8


@pytest.mark.found("C: cross_val_predict")
def test_cross_val_predict_of_masks():
    rng = np.random.default_rng(0)
    masks = [(rng.random((4, width)) < 0.5).astype(int) for width in (5, 6, 5, 7, 5, 6)]
    images = [{"node": np.dstack([mask - 0.5, np.ones(mask.shape)])} for mask in masks]
    found = cross_val_predict(ImageSegmenter(C=1.0), images, objects(masks), cv=3)
    assert found.shape == (len(masks),) and found.dtype == object
    assert all(np.array_equal(mask, got) for mask, got in zip(masks, found, strict=True))
    same = cross_val_predict(ImageSegmenter(C=1.0), [images[0]] * 3, [masks[0]] * 3, cv=3)
    assert same.shape == (3,) and np.array_equal(same[2], masks[0])


@pytest.mark.found("C: cross_val_predict")
def test_predictions_are_lists_to_python_and_arrays_to_numpy():
    fitted = tagger().fit(X["words"], Y)
    found = fitted.predict(X["words"])
    assert isinstance(found, list) and found == Y and found[0] == Y[0] and repr(found) == repr(Y)
    same_lengths = Predictions([["a", "b"], ["c", "d"]])
    for parts in ([found, found], [same_lengths, found], [Predictions([["a"]]), same_lengths], [Predictions()] * 2):
        array = np.concatenate(parts)
        assert array.shape == (len(parts[0]) + len(parts[1]),) and array.dtype == object
        assert array.tolist() == list(parts[0]) + list(parts[1])
    assert np.concatenate(found).tolist() == [label for labels in Y for label in labels]
    assert np.array_equal(same_lengths, [["a", "b"], ["c", "d"]]) and np.shape(same_lengths) == (2, 2)
    assert np.stack([same_lengths, same_lengths]).shape == (2, 2, 2) and np.unique(same_lengths).tolist() == [*"abcd"]
    bio = Predictions([["B-x", "O"], ["O"]])
    assert span_f1(bio, np.concatenate([Predictions(bio[:1]), Predictions(bio[1:])])) == 1.0


@pytest.mark.found("C: object arrays and frames")
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("words", objects),
        ("dicts", objects),
        ("numbers", objects),
        ("words", lambda sentences: [np.array(s) for s in sentences]),
        ("words", lambda sentences: [np.array(s, object) for s in sentences]),
        ("dicts", lambda sentences: objects([objects(s) for s in sentences])),
        ("dicts", lambda sentences: [pd.DataFrame(s) for s in sentences]),
        ("numbers", lambda sentences: [pd.DataFrame(s) for s in sentences]),
        ("words", lambda sentences: [pd.Series(s) for s in sentences]),
        ("words", pd.Series),
        ("dicts", pd.Series),
        ("words", tuple),
    ],
)
def test_forms_of_sentences(kind, form):
    """Every form gives the weights of plain lists, in fit and in predict, of many sentences and of one."""
    plain = tagger().fit(X[kind], Y)
    given, y = form(X[kind]), objects(Y) if form is objects else Y
    fitted = tagger().fit(given, y)
    assert np.array_equal(fitted.weights_, plain.weights_)
    assert fitted.predict(given) == Y and fitted.predict(given[:1]) == Y[:1]
    assert fitted.score(given, y) == 1.0
    search = GridSearchCV(tagger(), {"C": [0.1, 1.0]}, cv=2, error_score="raise").fit(given, y)
    assert search.best_score_ > 0.8


@pytest.mark.found("C: object arrays and frames")
def test_frames_with_missing_values():
    """What is missing in a row of a frame is no feature of it."""
    rows = [[{"word": "a", "bias": 1.0}, {"word": "b"}], [{"word": "b"}, {"bias": 2.5}]]
    frames = [pd.DataFrame(s) for s in rows]
    features, same = DictFeatures(), DictFeatures()
    assert (features.fit_transform(frames).sparse != same.fit_transform(rows).sparse).nnz == 0
    assert features.names() == same.names()


@pytest.mark.found("C: object arrays and frames")
def test_frames_of_text_columns():
    """Explicit templates read the columns of a frame per sentence in their order, as those of tuples."""
    template = "U00:%x[0,0]\nU01:%x[0,1]\n"
    rows = [[("the", "D"), ("dog", "N")], [("a", "D")]]
    frames = [pd.DataFrame(s, columns=["word", "tag"]) for s in rows]
    features, same = TextFeatures(template), TextFeatures(template)
    assert (features.fit_transform(frames).sparse != same.fit_transform(rows).sparse).nnz == 0
    assert features.names() == same.names()


def test_one_frame_with_labels_in_a_column():
    rows = [
        (i, word, label)
        for i, (s, y) in enumerate(zip(X["words"], Y, strict=True))
        for word, label in zip(s, y, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["sentence", "word", "label"])
    columns = frame[["sentence", "word"]]
    fitted = tagger().fit(columns, frame["label"])
    assert np.array_equal(fitted.weights_, tagger().fit(X["words"], Y).weights_)
    assert fitted.predict(columns) == Y
    assert fitted.score(columns, frame["label"]) == fitted.score(columns, Y) == 1.0
    with pytest.warns(UserWarning, match="predicted without a mistake"):
        fitted.fit_temperature(columns, frame["label"])
    single = frame.groupby("sentence").head(1)  # sentences of one token each
    assert tagger().fit(single[["sentence", "word"]], single["label"]).score(X["words"][:1], Y[:1]) <= 1.0
    with pytest.raises(ValueError, match=r"X has 12 sequences and Y has 3; they must agree"):
        tagger().fit(columns, frame["label"][:3])
    scores = [
        tagger().fit(columns.iloc[a], frame["label"].iloc[a]).score(columns.iloc[b], frame["label"].iloc[b])
        for a, b in LeaveOneGroupOut().split(columns, groups=frame["sentence"] % 2)
    ]
    assert min(scores) > 0.8


@pytest.mark.found("C: generators")
@pytest.mark.parametrize("kind", ["words", "dicts", "numbers"])
def test_generators_are_read_once(kind):
    plain = tagger(class_weight="balanced").fit(X[kind], Y)
    fitted = tagger(class_weight="balanced").fit((s for s in X[kind]), (labels for labels in Y))
    assert np.array_equal(fitted.weights_, plain.weights_)
    assert fitted.predict(s for s in X[kind]) == Y
    assert fitted.score((s for s in X[kind]), (labels for labels in Y)) == 1.0
    if kind != "numbers":
        inside = tagger(class_weight="balanced").fit([iter(s) for s in X[kind]], [iter(labels) for labels in Y])
        assert np.array_equal(inside.weights_, plain.weights_)


@pytest.mark.found("C: generators")
@pytest.mark.parametrize(
    ("estimator", "examples"),
    [
        (StructuredSVM(Chain(), max_passes=20), X["numbers"]),
        (DiscriminativeHMM(unknown="missing"), X["words"]),
        (GraphLabeler(max_passes=20), graphs()),
        (CRF(), X["dicts"]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_generators_elsewhere(estimator, examples):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = estimator.fit(iter(examples), iter(Y)).predict(iter(examples))
    assert [list(labels) for labels in found] == Y
