"""Every estimator writes a page about its fit, and about its predictions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import maxmargin as mm

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


class Signs:
    """A model in four plain functions: is a number positive?"""

    def n_weights(self, X, Y):
        return 1

    def joint_features(self, x, y):
        return np.array([x * y])

    def cost(self, y_true, y):
        return float(y != y_true)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        cost = lambda y: 0.0 if y_true is None else self.cost(y_true, y)  # noqa: E731
        return max((-1, 1), key=lambda y: float(w @ self.joint_features(x, y)) + cost_weight * cost(y))


def own():
    return mm.StructuredSVM(Signs()), ([1.0, -2.0], [1, -1]), ([1.0, -2.0], [1, -1])


MAKERS = [iris, tagger, label_sets, calibrated, pictures, graphs, hidden_markov, network, links, own]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_every_estimator_reports(maker, tmp_path):
    estimator, train, test = maker()
    with pytest.raises(NotFittedError):
        estimator.report(tmp_path / "early.html")
    target = {"target": "rain"} if maker is network else {}
    estimator.fit(*train, **target)
    path = estimator.report(tmp_path / "fit.html", *test)
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>") and len(text) < 300_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|@import|url\(", text)
    assert "Certificate" in text and "The objective of these weights is" in text and "Parameters" in text
    assert ("Score" in text) or ("Labels" in text)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_every_estimator_has_a_card_for_notebooks(maker):
    estimator, train, _ = maker()
    assert "Not fitted yet" in estimator._repr_html_()
    estimator.fit(*train, **({"target": "rain"} if maker is network else {}))
    shown = estimator._repr_mimebundle_(include=None, exclude=None)
    assert type(estimator).__name__ in shown["text/plain"]
    html = shown["text/html"]
    assert "The objective of these weights is" in html and len(html) < 40_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|@import|url\(", html)
    style = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    outside = re.sub(r"@media[^{]*", "", style)
    assert all(
        rule.lstrip("{} \n").startswith(".maxmargin-card") for rule in re.findall(r"([^{}]+)\{[^{}]*\}", outside)
    )
    with config_context(display="text"):
        assert "text/html" not in estimator._repr_mimebundle_()


def test_a_tagger_tells_where_it_is_wrong(tmp_path):
    model, train, test = tagger()
    text = model.fit(*train).report(tmp_path / "t.html", *test).read_text()
    assert "Example 0" in text and "position 0: V taken for D" in text
    assert "Hardest examples" in text and "Calibration" in text and "fit_temperature" in text


def test_suspicious_labels_are_shown_when_audited(tmp_path):
    X, y = load_iris(return_X_y=True)
    y[7] = 2
    table = mm.audit(mm.MulticlassClassifier(), X, y)
    text = mm.MulticlassClassifier().fit(X, y).report(tmp_path / "a.html", audit=table).read_text()
    assert "Suspicious labels" in text and '<td class="n">7</td>' in text


def test_a_loaded_model_reports_the_same_curves(tmp_path):
    model, train, _ = tagger()
    model.fit(*train).save(tmp_path / "t.mm")
    fresh, loaded = model.report(tmp_path / "a.html"), mm.load(tmp_path / "t.mm").report(tmp_path / "b.html")
    curves = [re.findall(r'points="([^"]*)"', path.read_text()) for path in (fresh, loaded)]
    assert curves[0] == curves[1] and len(curves[0]) == 6


def test_a_long_history_makes_a_short_page_and_a_short_file(tmp_path):
    model, train, _ = tagger()
    model.fit(*train)
    n = 100_000
    falling = 1.0 + 1.0 / (1.0 + np.arange(n))
    model.history_ = {"pass": np.arange(n), "seconds": np.arange(n) * 0.1, "primal": falling, "dual": np.ones(n)}
    assert model.report(tmp_path / "long.html").stat().st_size < 100_000
    assert model.save(tmp_path / "long.mm").stat().st_size < 40_000


def test_a_thousand_labels_make_a_short_page(tmp_path):
    n = 1_000
    X, y = np.eye(n), np.array([f"label {k}" for k in range(n)])
    model = mm.MulticlassClassifier(tol=0.5, max_passes=2, solver="perceptron")
    with pytest.warns(Warning):
        model.fit(X, y)
    path = model.report(tmp_path / "many.html", X, np.roll(y, 1))
    assert path.stat().st_size < 300_000 and "1000 labels" in path.read_text()


def test_labels_cannot_act(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    model = mm.SequenceTagger().fit([["a", "b"], ["b"]], [[evil, "V"], ["V"]])
    text = model.report(tmp_path / "evil.html", [["a", "b"]], [["V", evil]]).read_text()
    assert "<img src=x" not in text and "&lt;img src=x" in text
