"""A few sequences at a time give what many at once give, which is tested against enumeration elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SequenceTagger
from maxmargin.features.sequences import Sequences
from maxmargin.models.base import FEW
from maxmargin.models.chain_few import best_of_few

LABELS = ["O", "B-x", "I-x", "B-y", "I-y"]
KINDS = {
    "all": ("sparse", {}),
    "observed": ("sparse", {"weights": "observed"}),
    "observed with ends": ("sparse", {"weights": "observed", "ends": True}),
    "observed with dense and edges": ("sparse dense edge", {"weights": "observed"}),
    "dense": ("dense", {"ends": True}),
    "edges": ("sparse edge", {}),
    "bio": ("sparse", {"constraints": "bio", "weights": "observed"}),
}


def sequences(kinds, n=3 * FEW, seed=0):
    """Random features; labels that obey BIO."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(1, 9, n):
        codes = rng.integers(5, size=length)
        for t in range(length):
            if codes[t] in (2, 4) and (t == 0 or codes[t - 1] not in (codes[t] - 1, codes[t])):
                codes[t] -= 1
        dense = np.where(rng.random((length, 600)) < 0.01, rng.random((length, 600)), 0.0)
        parts = {"sparse": sp.csr_array(dense)}
        parts["dense"] = rng.normal(size=(length, 3))
        parts["edge"] = sp.csr_array(rng.integers(0, 2, (length - 1, 4)).astype(float))
        X.append({kind: part for kind, part in parts.items() if kind in kinds.split()})
        y.append([LABELS[k] for k in codes])
    return X, y


def fitted(name):
    kinds, options = KINDS[name]
    X, y = sequences(kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SequenceTagger(C=1.0, max_passes=5, classes=LABELS, **options).fit(X, y), kinds


@pytest.mark.parametrize("name", KINDS)
def test_one_by_one_is_all_at_once(name):
    tagger, kinds = fitted(name)
    X, _ = sequences(kinds, seed=1)
    together = tagger.predict(X)
    assert len(X) > FEW and len({label for labels in together for label in labels}) > 1
    assert [tagger.predict([x])[0] for x in X] == together
    assert tagger.predict(X[:FEW]) == together[:FEW]
    assert tagger.predict(X[:0]) == []


@pytest.mark.parametrize("name", ["all", "observed", "bio"])
def test_fixed_labels(name):
    tagger, kinds = fitted(name)
    X, y = sequences(kinds, seed=2)
    known = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    together = tagger.predict(X, fixed=known)
    assert [tagger.predict([x], fixed=[k])[0] for x, k in zip(X, known, strict=True)] == together


def test_what_is_not_allowed_is_named():
    tagger, kinds = fitted("bio")
    X, _ = sequences(kinds, seed=3)
    impossible = [["I-x", *[None] * (x["sparse"].shape[0] - 1)] for x in X]  # nothing before it
    for n in (2, len(X)):
        with pytest.raises(ValueError, match="example 0: the constraints and fixed labels together allow no output"):
            tagger.predict(X[:n], fixed=impossible[:n])


@pytest.mark.parametrize("name", KINDS)
def test_without_binding(name):
    """What is found without binding the sequences is what is found after it."""
    tagger, kinds = fitted(name)
    X = Sequences.of(sequences(kinds, seed=4)[0][:5])
    bound = tagger.model_.bind(X, layout=tagger.layout_)
    found = best_of_few(tagger.layout_, X, tagger.weights_)
    for a, b in zip(bound.argmax(tagger.weights_).outputs, found, strict=True):
        assert np.array_equal(a, b)


def test_wrong_width_is_told():
    tagger, _ = fitted("observed")
    with pytest.raises(ValueError, match="X has 7 sparse features a token; the model was fitted with 600"):
        tagger.predict([sp.csr_array(np.ones((2, 7)))])
