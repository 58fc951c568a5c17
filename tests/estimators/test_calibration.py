"""Temperatures of marginals, against the enumeration of all label sequences."""

from __future__ import annotations

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, roc_auc_score

import maxmargin as mm
from maxmargin.estimators.calibration import negative_log_likelihood

CLASSES = ["a", "b", "c"]


def noisy(n, seed, noise=1.0):
    """Sequences of 1 to 5 tokens whose features tell the label only roughly."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 3, rng.integers(1, 6)) for _ in range(n)]
    X = [np.eye(3)[c] + noise * rng.normal(size=(len(c), 3)) for c in codes]
    return X, [[CLASSES[k] for k in c] for c in codes]


TRAIN, HELD = noisy(40, seed=0), noisy(30, seed=1)


@pytest.fixture(scope="module")
def tagger():
    return mm.SequenceTagger(C=3.0, tol=1e-3).fit(*TRAIN)


def scores_of_all(tagger, x):
    """Every labelling of a sequence, with its score from the weights as they are published."""
    for labels in product(range(3), repeat=len(x)):
        emission = sum(x[t] @ tagger.coef_[:, k] for t, k in enumerate(labels))
        yield labels, emission + sum(tagger.transition_[j, k] for j, k in pairwise(labels))


def enumerated(tagger, X, y, temperature):
    """Negative log-likelihood, and its derivative: expected minus observed score, times the derivative of 1/T."""
    value = slope = 0.0
    for x, labels in zip(X, y, strict=True):
        table = dict(scores_of_all(tagger, x))
        scores = np.array(list(table.values()))
        true = table[tuple(CLASSES.index(label) for label in labels)]
        log_partition = np.logaddexp.reduce(scores / temperature)
        value += log_partition - true / temperature
        expected = np.exp(scores / temperature - log_partition) @ scores
        slope += (expected - true) * -1 / temperature**2
    return value, slope


def height(tagger, X, y, temperature):
    codes = [np.array([CLASSES.index(label) for label in labels]) for labels in y]
    return negative_log_likelihood(tagger._bind_held_out(X, None), tagger.weights_, codes, temperature)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 3.7])
def test_likelihood_and_its_slope_are_those_of_the_enumeration(tagger, temperature):
    value, slope = enumerated(tagger, *HELD, temperature)
    assert height(tagger, *HELD, temperature) == pytest.approx(value, rel=1e-10)
    step = 1e-4 * temperature
    difference = height(tagger, *HELD, temperature + step) - height(tagger, *HELD, temperature - step)
    assert difference / (2 * step) == pytest.approx(slope, rel=1e-4)


def test_learned_temperature_is_the_bottom_of_the_valley(tagger):
    best = tagger.fit_temperature(*HELD).temperature_
    assert 0.01 < best < 100
    assert height(tagger, *HELD, best) <= height(tagger, *HELD, 1.0)
    assert enumerated(tagger, *HELD, 0.98 * best)[1] < 0 < enumerated(tagger, *HELD, 1.02 * best)[1]
    grid = [height(tagger, *HELD, t) for t in np.geomspace(0.01, 100, 60)]
    assert height(tagger, *HELD, best) <= min(grid) + 1e-9


def test_temperature_of_scaled_weights_scales_with_them(tagger):
    """Scores three times as large need three times the temperature."""
    scaled = mm.SequenceTagger(C=3.0, tol=1e-3).fit(*TRAIN)
    scaled.weights_ = 3 * tagger.weights_
    assert scaled.fit_temperature(*HELD).temperature_ == pytest.approx(
        3 * tagger.fit_temperature(*HELD).temperature_, rel=1e-3
    )


@pytest.mark.parametrize("temperature", [0.05, 1.0, 2.0, 50.0])
def test_marginals_are_those_of_the_enumeration(tagger, temperature):
    for x, found in zip(HELD[0], tagger.predict_marginals(HELD[0], temperature), strict=True):
        table = dict(scores_of_all(tagger, x))
        scores = np.array(list(table.values())) / temperature
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        wanted = np.zeros_like(found)
        for labels, share in zip(table, shares, strict=True):
            wanted[np.arange(len(x)), labels] += share
        np.testing.assert_allclose(found, wanted, atol=1e-10)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


def test_temperature_two_is_half_the_weights(tagger):
    halved = mm.SequenceTagger(C=3.0, tol=1e-3).fit(*TRAIN)
    halved.weights_ = tagger.weights_ / 2
    for ours, theirs in zip(
        tagger.predict_marginals(HELD[0], temperature=2.0), halved.predict_marginals(HELD[0], 1.0), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_learned_temperature_is_the_default_until_the_next_fit():
    tagger = mm.SequenceTagger(C=3.0).fit(*TRAIN)
    plain = tagger.predict_marginals(HELD[0])
    np.testing.assert_array_equal(plain[3], tagger.predict_marginals(HELD[0], temperature=1.0)[3])
    labels = tagger.predict(HELD[0])
    assert tagger.fit_temperature(*HELD) is tagger
    learned = tagger.predict_marginals(HELD[0])
    np.testing.assert_array_equal(learned[3], tagger.predict_marginals(HELD[0], tagger.temperature_)[3])
    assert np.abs(learned[3] - plain[3]).max() > 1e-3
    np.testing.assert_array_equal(plain[3], tagger.predict_marginals(HELD[0], 1)[3])
    assert tagger.predict(HELD[0]) == labels
    assert not hasattr(tagger.fit(*TRAIN), "temperature_")


def test_constraints_edges_and_text():
    X = [["a", "big", "dog"], ["the", "dog"], ["dog"], [], ["a", "dog", "the", "big", "cat"]] * 3
    y = [["O", "B-X", "I-X"], ["O", "B-X"], ["B-X"], [], ["O", "B-X", "O", "B-X", "I-X"]] * 3
    features = mm.TextFeatures("U00:%x[0,0]\nB01:%x[0,0]\n")
    tagger = mm.SequenceTagger(features=features, constraints="bio", C=0.05).fit(X, y)
    held = [["a", "big", "cat"], [], ["the"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tagger.fit_temperature([*held, *X], [["O", "O", "B-X"], [], ["B-X"], *y])
    for rows in tagger.predict_marginals(held):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        assert (rows[:1, tagger.classes_.index("I-X")] == 0).all()  # no span begins inside


def test_bounds_are_told():
    X, y = noisy(20, seed=3, noise=0.0)
    sure = mm.SequenceTagger(C=10.0).fit(X, y)
    with pytest.warns(UserWarning, match=r"lower bound, 0\.01: .* without a mistake"):
        assert sure.fit_temperature(X, y).temperature_ == pytest.approx(0.01, rel=0.02)
    turned = [[{"a": "b", "b": "c", "c": "a"}[label] for label in labels] for labels in y]
    with pytest.warns(UserWarning, match=r"upper bound, 100: .* by chance"):
        assert sure.fit_temperature(X, turned).temperature_ == pytest.approx(100, rel=0.02)


def test_refusals(tagger):
    X, y = HELD
    for temperature in (0, -1.0, np.nan, np.inf, "2"):
        with pytest.raises(ValueError, match=r"temperature must be a positive number"):
            tagger.predict_marginals(X, temperature)
    with pytest.raises(NotFittedError):
        mm.SequenceTagger().fit_temperature(X, y)
    with pytest.raises(ValueError, match=r"example 1 has the label 'q'"):
        tagger.fit_temperature(X[:2], [y[0], ["q"] * len(y[1])])
    with pytest.raises(ValueError, match=r"they must agree"):
        tagger.fit_temperature(X, y[:-1])
    with pytest.raises(ValueError, match=r"no label in the held-out examples"):
        tagger.fit_temperature([np.zeros((0, 3))], [[]])


def test_scores_that_tell_nothing_keep_their_temperature():
    X, y = HELD
    empty = mm.SequenceTagger(C=3.0).fit(*TRAIN)
    empty.weights_ = np.zeros_like(empty.weights_)
    assert empty.fit_temperature(X, y).temperature_ == 1.0


def test_the_temperature_travels_with_the_model_file(tmp_path):
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(4, 3)) for _ in range(12)]
    Y = [["abc"[k] for k in x.argmax(axis=1)] for x in X]
    tagger = mm.SequenceTagger(tol=0.01).fit(X, Y).fit_temperature(X, Y)
    loaded = mm.load(tagger.save(tmp_path / "tagger.mm"))
    assert loaded.temperature_ == tagger.temperature_
    np.testing.assert_allclose(loaded.predict_marginals(X)[0], tagger.predict_marginals(X)[0])


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = np.eye(3)[y] + 0.7 * rng.normal(size=(300, 3))
    return X, np.array(CLASSES)[y]


@pytest.mark.found("C: predict_proba")
def test_probabilities_of_classes(points, tmp_path):
    """Calibrated by the log-loss of scikit-learn; there are none before."""
    X, y = points
    model = mm.MulticlassClassifier(C=10.0).fit(X[:150], y[:150])
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError) as missing:
        _ = model.predict_proba
    assert "no probabilities; call fit_temperature with held-out examples first" in str(missing.value.__cause__)
    held, truth = X[150:225], y[150:225]
    before = model.predict(X)
    assert model.fit_temperature(held, truth) is model
    grid = [log_loss(truth, softmax(model.decision_function(held) / t, axis=1)) for t in np.geomspace(0.02, 50, 400)]
    found = model.predict_proba(held)
    assert log_loss(truth, found) <= min(grid) + 1e-9 < grid[200]
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(held)), found, atol=1e-12)
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], before)
    assert roc_auc_score(y[225:], model.predict_proba(X[225:]), multi_class="ovr") > 0.8
    loaded = mm.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(held), found)
    assert not hasattr(model.fit(X, y), "predict_proba")  # what was learned belongs to the earlier fit


def test_two_classes_have_two_columns(points):
    X, y = points
    two = y != "c"
    model = mm.MulticlassClassifier().fit(X[two][:80], y[two][:80]).fit_temperature(X[two][80:], y[two][80:])
    found, difference = model.predict_proba(X[:5]), model.decision_function(X[:5]) / model.temperature_
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-difference)), atol=1e-12)


def test_labels_that_cannot_calibrate_are_named(points):
    X, y = points
    model = mm.MulticlassClassifier().fit(X, y)
    with pytest.raises(ValueError, match="example 2 has the label 'd', which is not among the classes"):
        model.fit_temperature(X[:3], ["a", "b", "d"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit_temperature(X[:3], ["a", "b"])
