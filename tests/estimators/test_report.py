"""Every estimator writes a page about its fit, and about its predictions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from reference.reported import MAKERS, SENTENCES, TAGS, fitted, long_history, many_labels, tagger


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_every_estimator_reports(maker, tmp_path):
    estimator, _, _ = maker()
    with pytest.raises(NotFittedError):
        estimator.report(tmp_path / "early.html")
    estimator, test = fitted(maker)
    path = estimator.report(tmp_path / "fit.html", *test)
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>") and len(text) < 300_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|@import|url\(", text)
    assert "Certificate" in text and "The objective of these weights is" in text and "Parameters" in text
    assert ("Score" in text) or ("Labels" in text)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_every_estimator_has_a_card_for_notebooks(maker):
    estimator, _, _ = maker()
    assert "Not fitted yet" in estimator._repr_html_()
    estimator, _ = fitted(maker)
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
    assert "Example 0: the [V → D] dog runs<" in text and "more than the true ones" in text
    assert "Hardest examples" in text and "Calibration" in text and "fit_temperature" in text


def test_tokens_that_are_no_words_are_told_by_their_places(tmp_path):
    rows = [np.eye(3)[[0, 1]], np.eye(3)[[2, 1]]]
    model = mm.SequenceTagger().fit(rows, [["a", "b"], ["c", "b"]])
    assert "Example 1: position 0 [a → c]<" in model.report(tmp_path / "t.html", rows, [["a", "b"]] * 2).read_text()
    columns = [[(word, "x") for word in words] for words in SENTENCES]
    model.set_params(features=mm.TextFeatures("U00:%x[0,0]\n")).fit(columns, TAGS)
    long = [[*columns[1] * 20], columns[0]]
    wrong = [[*TAGS[1] * 19, *TAGS[1][:3], "V"], TAGS[0]]
    text = model.report(tmp_path / "t.html", long, wrong).read_text()
    assert re.search(r"Example 0: … (?:\w+ ){15}well \[V → A\]<", text)


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
    model.history_ = long_history()
    assert model.report(tmp_path / "long.html").stat().st_size < 100_000
    assert model.save(tmp_path / "long.mm").stat().st_size < 40_000


def test_a_thousand_labels_make_a_short_page(tmp_path):
    model, test = many_labels("label")
    path = model.report(tmp_path / "many.html", *test)
    assert path.stat().st_size < 300_000 and "1000 labels" in path.read_text()


def test_labels_cannot_act(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    model = mm.SequenceTagger().fit([["a", "b"], ["b"]], [[evil, "V"], ["V"]])
    text = model.report(tmp_path / "evil.html", [["a", "b"]], [["V", evil]]).read_text()
    assert "<img src=x" not in text and "&lt;img src=x" in text


def test_labels_that_cannot_be_hashed_are_named(tmp_path):
    fitted = mm.SequenceTagger(max_passes=20).fit(SENTENCES, TAGS)
    wrong = [TAGS[0], [["D"], *TAGS[1][1:]], *TAGS[2:]]
    with pytest.raises(ValueError, match="example 1 has a label that cannot be hashed"):
        fitted.report(tmp_path / "page.html", SENTENCES, wrong)
    assert not list(tmp_path.iterdir())
