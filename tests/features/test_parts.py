"""Features of many tokens are made in parts; the parts must not show."""

import numpy as np
import pytest

from maxmargin.features import extractor
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.window import CharNGrams, Ends, Suffix, Window
from maxmargin.models import chain
from maxmargin.models.chain import Chain


def sentences(n=60, seed=0):
    rng = np.random.default_rng(seed)
    words = [f"w{k}" for k in range(40)]
    return [[words[k] for k in rng.integers(0, 40, rng.integers(0, 9))] for _ in range(n)]


def named(features, X):
    """Each token's features as a set of names: numbering may differ, what a token has may not."""
    names = features.names()
    rows = X.sparse
    return [{names[k] for k in rows.indices[rows.indptr[t] : rows.indptr[t + 1]]} for t in range(rows.shape[0])]


@pytest.mark.parametrize("at_once", [1, 7, 50])
@pytest.mark.parametrize("min_count", [1, 3])
def test_parts_give_the_same_features(monkeypatch, at_once, min_count):
    template = [Window(0, bigrams=(-1, 0)), Window(0, (0,), of=Suffix(1), name="s"), Ends()]
    template.append(Window(0, (0,), of=CharNGrams(2), name="grams"))
    text = sentences()
    whole = TextFeatures(template, min_count=min_count)
    expected = named(whole, whole.fit_transform(text))
    again = named(whole, whole.transform(text))
    monkeypatch.setattr(extractor, "AT_ONCE", at_once)
    parts = TextFeatures(template, min_count=min_count)
    assert named(parts, parts.fit_transform(text)) == expected == again
    assert named(parts, parts.transform(text)) == expected
    assert parts.n_features_ == whole.n_features_


@pytest.mark.parametrize("at_once", [1, 10])
def test_observed_pairs_in_parts(monkeypatch, at_once):
    text = [s for s in sentences(30, 1) if s]
    rng = np.random.default_rng(2)
    tags = [["abc"[k] for k in rng.integers(0, 3, len(s))] for s in text]
    X = TextFeatures(Window(0)).fit_transform(text)
    whole = Chain(weights="observed").bind(X, tags).layout
    monkeypatch.setattr(chain, "TOKENS_AT_ONCE", at_once)
    parts = Chain(weights="observed").bind(X, tags).layout
    assert np.array_equal(whole.pair_rows, parts.pair_rows)
    assert np.array_equal(whole.pair_labels, parts.pair_labels)
