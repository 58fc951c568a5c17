"""Probabilities of labels: curves against scikit-learn's logistic regression, labels that tell of others, coherence."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin.estimators.calibrated_labels import _curves
from maxmargin.estimators.feature_columns import feature_names
from persistence.forging import forge, forge_tensor, forge_text, plain


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


@pytest.fixture(scope="module")
def kinds():
    """Fitted: matrices and a hierarchy; sets of words, names of columns, no sharing."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    X, tree = rng.normal(size=(40, 3)), [-1, 0, 0]
    Y = mm.with_ancestors((X > 0.3).astype(int), tree)
    frame, words = (
        pandas.DataFrame(X, columns=list("uvw")),
        [{k for k, on in zip("abc", y, strict=True) if on} for y in Y],
    )
    simple = mm.CalibratedLabels(
        estimator=mm.MultilabelClassifier(graph="tree", C=0.5), folds=2, sharing=None, of="scores"
    )
    return {
        "hierarchy": (mm.CalibratedLabels(estimator=mm.MultilabelClassifier(hierarchy=tree), folds=3).fit(X, Y), X, Y),
        "frame": (simple.fit(frame, words), frame, words),
    }


@pytest.mark.parametrize("kind", ["hierarchy", "frame"])
def test_files(kinds, kind, tmp_path):
    model, X, y = kinds[kind]
    path = model.save(tmp_path / "m")
    for again in (mm.load(path), mm.CalibratedLabels.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.score(X, y) == model.score(X, y) and again.n_features_in_ == 3
        assert repr(again) == repr(model) and again.estimator_.certificate_ == model.estimator_.certificate_
        assert feature_names(again) == feature_names(model) == (list("uvw") if kind == "frame" else None)
    loaded = mm.load(path)
    assert loaded.save(tmp_path / "again").read_bytes() == path.read_bytes()
    np.testing.assert_allclose(loaded.fit(X, y).predict_proba(X), model.predict_proba(X), atol=1e-9)
    single = mm.load(model.save(tmp_path / "single", "float32"))
    np.testing.assert_allclose(single.predict_proba(X), model.predict_proba(X), atol=1e-5)
    with pytest.raises(ValueError, match="holds a CalibratedLabels, not a MultilabelClassifier"):
        mm.MultilabelClassifier.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["parameters"].update(folds=1), "folds is 1"),
        (lambda f: f["parameters"].update(folds="3"), "'folds' must be a whole number"),
        (lambda f: f["parameters"].update(sharing=None), "'shared' has dtype"),
        (lambda f: f["fitted"].pop("slopes"), "'slopes' is missing"),
        (lambda f: f["fitted"].update(means=f["fitted"]["shared"]), "cannot be understood|expected"),
        (lambda f: f.clear(), "'parameters' is missing"),
    ],
)
def test_forged_files_are_refused(kinds, tmp_path, change, words):
    path = kinds["hierarchy"][0].save(tmp_path / "m")
    with pytest.raises(ValueError, match=rf"m cannot be loaded: .*({words})"):
        mm.load(forge(path, "around", change))


def test_forged_curves_are_refused(kinds, tmp_path):
    path = kinds["hierarchy"][0].save(tmp_path / "m")
    names = [name for name in plain(path)[1] if name.startswith("around.")]
    assert len(names) == 5
    for name in names:
        for spoil in (lambda a: a * np.nan, lambda a: a[1:], lambda a: a + 1e200):
            whole = path.read_bytes()
            with pytest.raises(ValueError, match="m cannot be loaded: its tensor"):
                mm.load(forge_tensor(path, name, spoil))
            path.write_bytes(whole)
    with pytest.raises(ValueError, match="m cannot be loaded: its outer estimator is not a mapping"):
        mm.load(
            forge_text(
                mm.MultilabelClassifier().fit(np.eye(2), np.eye(2, dtype=int)).save(path), "kind", "CalibratedLabels"
            )
        )


def test_an_estimator_before_fit_says_so(tmp_path):
    model = mm.CalibratedLabels(estimator=mm.MultilabelClassifier())
    for verb in (lambda: model.predict_proba(np.eye(2)), lambda: model.save(tmp_path / "m")):
        with pytest.raises(NotFittedError, match="call fit"):
            verb()


def test_searches_reach_the_parameters_of_the_estimator(kinds):
    _, X, Y = kinds["hierarchy"]
    model = mm.CalibratedLabels(estimator=mm.MultilabelClassifier(hierarchy=[-1, 0, 0]), folds=2)
    search = GridSearchCV(model, {"estimator__C": [1e-6, 1.0], "sharing": [None, 1.0]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert search.best_params_["estimator__C"] == 1.0 and search.predict_proba(X).shape == (40, 3)


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": "x"}, "folds is 'x'; give a whole number of at least 2"),
        ({"folds": 2.5}, "folds is 2.5; give a whole number"),
        ({"pull": "x"}, "pull is 'x'; give a positive number"),
        ({"pull": np.inf}, "pull is inf; give a positive number"),
        ({"sharing": "x"}, "sharing is 'x'; give a positive number, or None"),
    ],
)
def test_parameters_of_another_kind_are_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        mm.CalibratedLabels(estimator=mm.MultilabelClassifier(), **options).fit(np.eye(6), np.eye(6, dtype=int))


def test_features_that_are_no_numbers_are_named():
    X = np.eye(6)
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="example 2 has NaN or infinite features"):
        mm.CalibratedLabels(estimator=mm.MultilabelClassifier()).fit(X, np.eye(6, dtype=int))
