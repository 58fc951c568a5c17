"""A small fit of every estimator, with what its report is asked about."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import maxmargin as mm
from reference.own_models import Signs

SENTENCES = [["the", "dog", "runs"], ["a", "cat", "sleeps", "well"], ["dogs", "run"]] * 4
TAGS = [["D", "N", "V"], ["D", "N", "V", "A"], ["N", "V"]] * 4


def iris():
    X, y = load_iris(return_X_y=True)
    return mm.MulticlassClassifier(), (X, y), (X, y)


def tagger():
    wrong = [list(tags) for tags in TAGS]
    wrong[0][0] = "V"
    return mm.SequenceTagger(), (SENTENCES, TAGS), (SENTENCES, wrong)


def label_sets():
    X, y = load_iris(return_X_y=True)
    sets = np.stack([y > 0, y > 1], 1).astype(int)
    return mm.MultilabelClassifier(), (X, sets), (X, sets)


def calibrated():
    model, *rest = label_sets()
    return mm.CalibratedLabels(estimator=model), *rest


def pictures():
    rng = np.random.default_rng(0)
    masks = [np.pad(np.ones((6, 8), int), ((k, 6 - k), (4, 2))) for k in range(4)]
    images = [
        np.repeat((200 * mask + rng.integers(0, 55, mask.shape))[..., None], 3, 2).astype(np.uint8) for mask in masks
    ]
    return mm.ImageSegmenter(C=1.0), (images, masks), (images, masks)


def graphs():
    rng = np.random.default_rng(0)
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    y = [np.roll([0, 0, 1, 1, 2, 2], k) for k in range(6)]
    X = [{"node": np.eye(3)[labels] + rng.normal(scale=0.3, size=(6, 3)), "edges": ring} for labels in y]
    return mm.GraphLabeler(), (X, y), (X, y)


def hidden_markov():
    X, y = [["walk", "shop", "clean"], ["clean", "clean", "walk"]], [["sun", "sun", "rain"], ["rain", "rain", "sun"]]
    return mm.DiscriminativeHMM(C=1.0), (X, y), (X, y)


def network():
    rng = np.random.default_rng(0)
    rain = rng.integers(0, 2, 60)
    frame = {"rain": rain.tolist(), "wet": (rain | (rng.random(60) < 0.2)).astype(int).tolist()}
    return mm.DiscriminativeBayesNet(structure=[("rain", "wet")], C=1.0), (frame,), (frame,)


def links():
    pairs = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book"), ("ein Haus", "a house")]
    return mm.Aligner(), (pairs, ["0-0 1-1"] * 4), (pairs, ["0-0 1-1"] * 4)


def own():
    return mm.StructuredSVM(Signs()), ([1.0, -2.0], [1, -1]), ([1.0, -2.0], [1, -1])


def lists():
    first = mm.Lattice.from_nbest(["a house", "a the house"], [[-1.0, 2.0], [-2.0, 3.0]])
    second = mm.Lattice.from_nbest(["is small", "small"], [[-1.5, 2.0], [-1.0, 1.0]])
    return mm.LatticeRanker(C=10.0), ([first, second], ["a house", "is small"]), ([first, second], ["a house", "small"])


def fitted(maker):
    """The fitted estimator, and its test examples."""
    estimator, train, test = maker()
    return estimator.fit(*train, **({"target": "rain"} if maker is network else {})), test


def long_history(n=100_000):
    """A history of so many rows, of a gap that falls."""
    falling = 1.0 + 1.0 / (1.0 + np.arange(n))
    return {"pass": np.arange(n), "seconds": np.arange(n) * 0.1, "primal": falling, "dual": np.ones(n)}


def many_labels(name, n=1_000):
    """A classifier of so many labels, whose names begin with ``name``, and test examples on which it errs."""
    X, y = np.eye(n), np.array([f"{name} {k}" for k in range(n)])
    model = mm.MulticlassClassifier(tol=0.5, max_passes=2, solver="perceptron")
    with pytest.warns(Warning):
        model.fit(X, y)
    return model, (X, np.roll(y, 1))


MAKERS = [iris, tagger, label_sets, calibrated, pictures, graphs, hidden_markov, network, links, lists, own]
