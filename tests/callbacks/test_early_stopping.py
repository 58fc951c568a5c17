"""Best weights on held-out examples: what is restored, and whether its certificate is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    Chain,
    EarlyStopping,
    GraphLabeler,
    ImageSegmenter,
    MulticlassClassifier,
    SequenceTagger,
    StructuredSVM,
)
from maxmargin.callbacks import Callback
from reference.certificate import recompute
from reference.problems import chain_planes, random_chains

K = 3


class Watch(Callback):
    """Copies of the weights at each certificate."""

    def on_begin(self, run):
        self.weights = []

    def on_certificate(self, run):
        self.weights.append(np.array(run.weights()))


def fitted(scores, **options):
    """A tagger whose held-out scores are made up, the callbacks, and all planes of its problem."""
    X, y = random_chains(8, K, 4, seed=3)
    given = iter(scores)
    stopping, watch = EarlyStopping(lambda w: next(given), patience=2), Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = SequenceTagger(C=0.7, callbacks=[stopping, watch], classes=range(K), **options).fit(X, y)
    return tagger, stopping, watch, chain_planes(X, y, K).planes


def primal(tagger, planes, squared=False):
    weights = np.concatenate([tagger.coef_.ravel(), tagger.transition_.ravel()])
    return recompute(weights, None, planes, 1.4 if squared else 0.7, squared=squared).primal


@pytest.mark.parametrize(
    "options", [{}, {"solver": "bcfw"}, {"loss": "squared_hinge"}], ids=["auto", "bcfw", "squared"]
)
def test_restored_weights_have_the_certificate_that_enumeration_gives(options):
    tagger, stopping, watch, planes = fitted([0.1, 0.5, 0.9, 0.3, 0.2, 0.1], tol=0.0, **options)
    squared = "loss" in options
    final = tagger.certificate_
    assert final.primal == pytest.approx(primal(tagger, planes, squared), rel=1e-9)
    stopping.restore(tagger)
    assert np.array_equal(tagger.weights_, watch.weights[2]) and not np.array_equal(tagger.weights_, watch.weights[4])
    assert tagger.certificate_ != final and tagger.certificate_.dual <= final.dual * (1 + 1e-12)
    assert tagger.certificate_.primal == pytest.approx(primal(tagger, planes, squared), rel=1e-9)
    assert f"the weights of pass {stopping.best_pass_:.4g}" in tagger.status_.sentence
    assert f"{tagger.certificate_.relative_gap:.2g}." in tagger.status_.sentence
    row = tagger.history_[tagger.history_["score"] == 0.9].iloc[0]
    assert (row["pass"], row["primal"]) == (stopping.best_pass_, tagger.certificate_.primal)


def test_converged_means_the_weights_that_are_kept():
    earlier, stopping, _, _ = fitted([0.9, *[0.5] * 500], tol=0.05)
    stopping.patience = 1000
    X, y = random_chains(8, K, 4, seed=3)
    given = iter([0.9, *[0.5] * 500])
    stopping.score = lambda w: next(given)
    earlier.fit(X, y)
    assert earlier.status_.converged
    stopping.restore(earlier)
    assert earlier.certificate_.relative_gap > 0.05 and earlier.status_.code == "stopped by callback"

    later, stopping, _, _ = fitted(np.linspace(0, 1, 500), tol=0.05)
    weights, certificate = later.weights_.copy(), later.certificate_
    stopping.restore(later)
    assert later.status_.converged and later.certificate_ == certificate and np.array_equal(later.weights_, weights)


def test_nothing_to_restore():
    with pytest.raises(ValueError, match="fit the estimator with this callback first"):
        EarlyStopping(len).restore(SequenceTagger())
    tagger, stopping, _, _ = fitted([float("nan")] * 5, tol=0.0)
    with pytest.raises(ValueError, match="no score was a number"):
        stopping.restore(tagger)


def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    return rng.normal(size=(60, 2)) + 2.0 * np.eye(3)[y][:, :2], y


def grids():
    rng = np.random.default_rng(0)
    masks = [(np.indices((6, 6)).sum(axis=0) > 5).astype(np.uint8) for _ in range(4)]
    return [m[..., None] + 0.5 * rng.normal(size=(6, 6, 1)) for m in masks], masks


def rings():
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    y = [np.roll([0, 0, 1, 1, 2, 2], i) for i in range(8)]
    return [{"node": np.eye(3)[labels] + rng.normal(size=(6, 3)), "edges": edges} for labels in y], y


@pytest.mark.found("B8")
@pytest.mark.parametrize(
    ("estimator", "examples", "parts"),
    [
        (MulticlassClassifier(), blobs, ["coef_", "intercept_"]),
        (GraphLabeler(), rings, ["node_coef_", "edge_coef_"]),
        (ImageSegmenter(centre="zero", C=1.0), grids, ["node_coef_", "edge_coef_"]),
        (StructuredSVM(Chain()), lambda: random_chains(8, K, 4, seed=3), ["coef_"]),
        (SequenceTagger(), lambda: random_chains(8, K, 4, seed=3), ["coef_", "transition_"]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_coefficients_are_those_of_the_restored_weights(estimator, examples, parts):
    X, y = examples()
    given = iter([0.9] + [0.1] * 50)
    stopping = EarlyStopping(lambda w: next(given), patience=2, min_passes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.set_params(callbacks=[stopping], tol=0.0, max_passes=6).fit(X, y)
    before = [np.array(getattr(estimator, name)) for name in parts]
    stopping.restore(estimator)
    after = [np.asarray(getattr(estimator, name)) for name in parts]
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    estimator.weights_[:] = 0.0
    assert not any(np.any(getattr(estimator, name)) for name in parts)
