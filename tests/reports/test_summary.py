"""The paragraph about a fit states what is true of the fit."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from maxmargin import MulticlassClassifier, SequenceTagger
from maxmargin.reports.summary import conversions, summary


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    return X, np.argmax(X[:, :3] + 0.5 * rng.standard_normal((30, 3)), axis=1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("C", "n"), [(0.3, 7), (2.0, 50)])
def test_conversions_scale_the_objective(loss, C, n):
    """The three objectives are multiples of each other at any weights, so they share their minimiser."""
    rng = np.random.default_rng(1)
    other = conversions(C, n)
    ratios = []
    for _ in range(3):
        w, losses = rng.standard_normal(5), rng.random(n)
        slack = np.sum(losses**2 if loss == "squared_hinge" else losses)
        ours = 0.5 * w @ w + C * slack
        over_n = 0.5 * w @ w + other["over_n"] / n * slack
        with_lambda = other["lambda"] / 2 * w @ w + slack / n
        ratios.append((over_n / ours, with_lambda / ours))
    assert np.ptp(ratios, axis=0) == pytest.approx([0, 0], abs=1e-12)


def test_paragraph(data):
    X, y = data
    fitted = MulticlassClassifier(C=0.5, tol=1e-4).fit(X, y)
    text = summary(fitted)
    assert "\n" not in text
    assert text.startswith("MulticlassClassifier on 30 examples. Converged: ")
    assert str(fitted.certificate_) in text
    assert "C = 0.5 " in text and "C' = 15 " in text and "lambda = 0.06667 " in text
    assert re.search(r"oracle [\d.]+ s \(\d+ %\), solver .* compile ", text)
    assert summary(pickle.loads(pickle.dumps(fitted))) == text  # the count of examples survives


def test_sequences_and_squared_losses(data):
    X, y = data
    words, labels = [X[:10], X[10:25], X[25:]], [y[:10], y[10:25], y[25:]]
    with pytest.warns(UserWarning):
        fitted = SequenceTagger(loss="squared_hinge", tol=0.0, max_passes=4).fit(words, labels)
    text = summary(fitted)
    assert "SequenceTagger on 3 examples. Stopped at max_passes" in text
    assert "sum loss^2" in text


def test_not_fitted():
    with pytest.raises(ValueError, match=r"SequenceTagger is not fitted yet; call fit"):
        summary(SequenceTagger())
