"""Dict features against a plain implementation and scikit-learn's DictVectorizer."""

from __future__ import annotations

import io
import json
from collections import Counter, OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import DictVectorizer

from features.naive import rows_of
from maxmargin.features import dicts
from maxmargin.features.dicts import DictFeatures

KEY = st.sampled_from(["w", "w=a", "pos", "é"])
TEXT = st.sampled_from(["a", "b", "", "a=b"])
FLAT = st.one_of(TEXT, st.booleans(), st.integers(-3, 3), st.floats(-2, 2))
LISTED = st.one_of(st.lists(TEXT, max_size=3), st.frozensets(TEXT, max_size=3), st.tuples(TEXT))
NESTED = st.recursive(st.one_of(FLAT, LISTED, st.none()), lambda inner: st.dictionaries(KEY, inner, max_size=3))
TOKEN = st.one_of(st.dictionaries(KEY, NESTED, max_size=4), st.lists(TEXT, max_size=4))


def naive(token):
    """Name -> value of one token."""
    if not isinstance(token, dict):
        return Counter(token)
    found = Counter()

    def add(key, value):
        if isinstance(value, str):
            found[f"{key}={value}"] += 1
        elif isinstance(value, dict):
            for inner, part in value.items():
                add(f"{key}:{inner}", part)
        elif isinstance(value, (list, tuple, frozenset)):
            for part in value:
                found[f"{key}={part}"] += 1
        elif value is not None:
            found[key] += float(value)

    for key, value in token.items():
        add(key, value)
    return found


def as_dicts(X, names):
    rows = []
    for t in range(X.sparse.shape[0]):
        row = Counter()
        for p in range(X.sparse.indptr[t], X.sparse.indptr[t + 1]):
            row[names[X.sparse.indices[p]]] += float(X.sparse.data[p])
        rows.append({name: value for name, value in row.items() if value})
    return rows


@given(st.lists(st.lists(TOKEN, max_size=4), min_size=1, max_size=4), st.lists(TOKEN, max_size=3))
@settings(deadline=None, max_examples=200)
def test_values_of_each_token(sentences, unseen):
    features = DictFeatures()
    want = [{k: v for k, v in naive(token).items() if v} for s in sentences for token in s]
    try:
        X = features.fit_transform(sentences)
    except ValueError as error:
        assert "no feature occurs min_count" in str(error)
        assert not any(want)
        return
    names = features.names()
    assert as_dicts(X, names) == want
    Z = features.transform([unseen])
    assert as_dicts(Z, names) == [{k: v for k, v in naive(t).items() if v and k in names} for t in unseen]


@given(st.lists(st.dictionaries(KEY, FLAT, max_size=4), min_size=1, max_size=8))
@settings(deadline=None)
def test_numbers_of_scikit_learn(tokens):
    theirs = DictVectorizer()
    want = theirs.fit_transform(tokens).toarray() if any(tokens) else np.zeros((len(tokens), 0))
    columns = dict(zip(theirs.get_feature_names_out(), want.T, strict=True)) if any(tokens) else {}
    if not want.any():
        return
    features = DictFeatures()
    ours = features.fit_transform([tokens]).sparse.toarray()
    mine = dict(zip(features.names(), ours.T, strict=True))
    for name in columns | mine:  # a feature that is always 0 has a column there, none here
        assert np.array_equal(columns.get(name, np.zeros(len(tokens))), mine.get(name, np.zeros(len(tokens))))


def test_order_min_count_and_kinds_of_numbers():
    sentences = [
        [["b", "a"], ["a"], {"a": True, "n": np.float32(2.5)}],
        [OrderedDict(c="x", n=np.int64(3), z=np.False_)],
    ]
    features = DictFeatures(min_count=2)
    X = features.fit_transform(sentences)
    assert features.names() == ["a", "n"]
    assert X.sparse.toarray().tolist() == [[1, 0], [1, 0], [1, 2.5], [0, 3]]
    assert DictFeatures().fit_transform([[["a"]]]).sparse.data.dtype == np.int8


def test_state_comes_back():
    features = DictFeatures(min_count=1)
    sentences = [[{"w": "é\ud800", "n": 0.5}, {"w": "", "l": {"x", "y"}}], []]
    X = features.fit_transform(sentences)
    arrays, facts = features.to_state()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    again = DictFeatures.from_state(dict(np.load(file, allow_pickle=False)), json.loads(json.dumps(facts)))
    assert again.names() == features.names()
    assert rows_of(again.transform(sentences).sparse, again.names()) == rows_of(X.sparse, features.names())
    assert again.min_count == 1
    for broken in (
        (arrays | {"text_ends": arrays["text_ends"][::-1]}, facts),
        (arrays | {"text_ends": arrays["text_ends"][:-1]}, facts),
        ({}, facts),
        (arrays, {"version": 9}),
    ):
        with pytest.raises(ValueError, match=r"stored|upgrade"):
            DictFeatures.from_state(*broken)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": 1}, "list of sentences"),
        (["abc"], "sentence 0 is a str"),
        ([[["a"]], [["a"], 3]], "sentence 1, token 1: a token must be"),
        ([[["a"]], ["ab"]], "sentence 1, token 0: a token must be"),
        ([[{"a": float("nan")}]], "sentence 0, token 0: feature 'a' is nan"),
        ([[{"a": 10**400}]], "sentence 0, token 0: feature 'a' is inf"),
        ([[{"a": object()}]], "sentence 0, token 0: feature 'a' is a object"),
        ([[{"a": [1]}]], "lists and sets may hold only strings"),
        ([[{3: "a"}]], "the key 3 is not a string"),
        ([[{"a": {3: "a"}}]], "the key 3 inside 'a'"),
        ([[[3]]], "may hold only strings"),
    ],
)
def test_messages_name_the_place(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DictFeatures().fit(X)


def test_questions_out_of_turn():
    with pytest.raises(AttributeError, match="not fitted"):
        DictFeatures().names()
    with pytest.raises(ValueError, match="min_count must be"):
        DictFeatures(min_count=0).fit([[["a"]]])
    with pytest.raises(IndexError, match="no feature 7"):
        DictFeatures().fit([[["a"]]]).names([7])
    assert DictFeatures().fit([[["a"]]]).transform([]).sparse.shape == (0, 1)


def test_odd_tokens_among_quick_ones(monkeypatch):
    """Nested values and numbers amid plain ones, unknown ones later, and values that are equal but of other types."""
    features = DictFeatures()
    X = features.fit_transform([[{"a": "x", "n": {"b": "y"}, "v": 2.5}, {"a": "x", "v": True}, {"v": np.float64(1)}]])
    assert as_dicts(X, features.names()) == [{"a=x": 1, "n:b=y": 1, "v": 2.5}, {"a=x": 1, "v": 1}, {"v": 1}]
    again = features.transform([[{"a": np.str_("x"), "v": 0, "new": False}, {"v": 1, "a": "z", "w": 7.5}]])
    assert as_dicts(again, features.names()) == [{"a=x": 1}, {"v": 1}]
    monkeypatch.setattr(dicts, "MOST_UNKNOWN", 200)
    for i in range(1000):  # a stream of new text is not kept
        features.transform([[{"a": f"new {i}", f"key {i}": False, "v": i / 7}]])
    assert len(features._items) < 300
