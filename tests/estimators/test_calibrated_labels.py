"""Probabilities of labels: curves against scikit-learn's logistic regression, labels that tell of others, coherence."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import maxmargin as mm
from maxmargin.estimators.calibrated_labels import _curves


@pytest.fixture(scope="module")
def decisions():
    rng = np.random.default_rng(0)
    d = rng.normal(size=(4000, 3))
    on = rng.random(d.shape) < expit(d * [2.0, 1.0, 0.3] + [-1.0, 0.5, -3.0])
    return d, on.astype(float)


def test_curves_of_each_label_are_those_of_logistic_regression(decisions):
    d, on = decisions
    found = _curves(d, on, np.ones(len(d)), pull=1e-9)
    for k in range(3):
        known = LogisticRegression(C=1e9, tol=1e-10).fit(d[:, [k]], on[:, k])
        np.testing.assert_allclose([found.slope[k], found.intercept[k]], [known.coef_[0, 0], known.intercept_[0]], 2e-3)


def test_a_strong_pull_leaves_the_common_slope_of_a_joint_regression(decisions):
    d, on = decisions
    design = np.vstack([np.column_stack([d[:, k], np.tile(np.eye(3)[k], (len(d), 1))]) for k in range(3)])
    known = LogisticRegression(C=1e9, tol=1e-10, fit_intercept=False, max_iter=1000).fit(design, on.T.ravel()).coef_[0]
    found = _curves(d, on, np.ones(len(d)), pull=1e9)
    np.testing.assert_allclose(found.slope, known[0], rtol=2e-3)
    np.testing.assert_allclose(found.intercept, known[1:], rtol=5e-3)


def test_weights_count_as_copies(decisions):
    d, on = decisions
    weights = np.random.default_rng(1).integers(0, 3, len(d))
    copies = _curves(np.repeat(d, weights, axis=0), np.repeat(on, weights, axis=0), np.ones(weights.sum()), 5.0)
    np.testing.assert_allclose(_curves(d, on, weights.astype(float), 5.0), copies, rtol=1e-9)


def test_labels_tell_of_labels_that_their_own_scores_cannot():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(600, 1))
    sides = np.hstack([x > 1.5, x < -1.5])
    Y = np.column_stack([sides, sides.any(axis=1)]).astype(int)  # the last is no linear function of x
    areas = []
    simple = mm.MultilabelClassifier(hierarchy=[2, 2, -1], C=0.01)
    for sharing in (None, 0.1):
        model = mm.CalibratedLabels(estimator=simple, of="scores", folds=2, sharing=sharing).fit(x[:400], Y[:400])
        areas.append(average_precision_score(Y[400:, 2], model.predict_proba(x[400:])[:, 2]))
    assert areas[0] < 0.8 and areas[1] > 0.95, areas


@pytest.mark.parametrize("of", ["decisions", "scores"])
def test_what_features_do_not_tell_leaves_the_share_of_each_label(of):
    """A fold with many examples of a label leaves few to the fit of the others; curves must not learn from that."""
    Y = np.zeros((90, 3), int)
    Y[:40, 0] = Y[5:20, 1] = Y[50:54, 2] = 1
    model = mm.CalibratedLabels(estimator=mm.MultilabelClassifier(hierarchy=[-1] * 3, C=1e-3), of=of).fit(
        np.zeros((90, 1)), Y
    )
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 1)))[0], Y.mean(axis=0), atol=0.01)


def test_no_label_is_more_probable_than_its_parents():
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(80, 3)), [("a", "c"), ("b", "c"), ("c", "d")]
    words = [{k for k, score in zip("abcd", row @ rng.normal(size=(3, 4)), strict=True) if score > 1} for row in X]
    y = mm.with_ancestors(words, pairs)
    model = mm.CalibratedLabels(estimator=mm.MultilabelClassifier(hierarchy=pairs), folds=2, sharing=0.01).fit(X, y)
    likely = model.predict_proba(X)
    a, b, c, d = likely.T
    assert ((c <= a) & (c <= b) & (d <= c)).all() and (0 <= likely).all() and (likely <= 1).all()
    assert model.classes_.tolist() == list("abcd") and isinstance(model.predict(X)[0], set)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "at least 2"),
        ({"of": "margins"}, '"decisions" or "scores"'),
        ({"pull": 0.0}, "positive number"),
        ({"sharing": -1.0}, "None for curves alone"),
        ({"folds": 9}, "set folds lower"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        mm.CalibratedLabels(estimator=mm.MultilabelClassifier(), **options).fit(np.eye(4), np.eye(4, 2, dtype=int))
    with pytest.raises(TypeError, match="give a MultilabelClassifier"):
        mm.CalibratedLabels(estimator=LogisticRegression()).fit(np.eye(4), np.eye(4, 2, dtype=int))
