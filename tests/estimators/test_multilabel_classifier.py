"""MultilabelClassifier: forms of y, label names, scikit-learn's tools, files, streams, odd labels and bad input."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, milp
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.svm import LinearSVC

import maxmargin as mm
from persistence.forging import forge

X, Y = make_multilabel_classification(n_samples=60, n_features=5, n_classes=4, random_state=1)
X = X / X.max()
NAMES = ["art", "film", "news", "sport"]
SETS = [{NAMES[k] for k in np.flatnonzero(row)} for row in Y]


def test_labels_without_edges_are_separate_machines():
    ours = mm.MultilabelClassifier(C=2.0, tol=1e-8).fit(X, Y)
    theirs = OneVsRestClassifier(LinearSVC(loss="hinge", C=2.0, tol=1e-8, max_iter=1_000_000)).fit(X, Y)
    margins = np.where(Y, 1, -1) * theirs.decision_function(X)
    parts = [(np.square(m.coef_).sum() + np.square(m.intercept_).sum()) / 2 for m in theirs.estimators_]
    assert ours.certificate_.primal == pytest.approx(sum(parts) + 2.0 * np.maximum(0, 1 - margins).sum(), rel=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)


def forms():
    pd = pytest.importorskip("pandas")
    return {
        "array": Y,
        "bool": Y.astype(bool),
        "float": Y.astype(float),
        "fortran": np.asfortranarray(Y),
        "lists": Y.tolist(),
        "csr": sp.csr_matrix(Y),
        "csc": sp.csc_array(Y),
        "frame": pd.DataFrame(Y, columns=NAMES),
        "sets": SETS,
        "tuples": [tuple(sorted(s)) for s in SETS],
        "ragged lists": [sorted(s) for s in SETS],
        "series": pd.Series([frozenset(s) for s in SETS]),
        "objects": np.array([sorted(s) for s in SETS] + [None], dtype=object)[:-1],
    }


@pytest.mark.parametrize("form", list(forms()))
@pytest.mark.parametrize("graph", [None, "full"])
def test_predictions_have_the_form_of_y(graph, form):
    y = forms()[form]
    expected = mm.MultilabelClassifier(graph=graph).fit(X, Y)
    model = mm.MultilabelClassifier(graph=graph).fit(X, y)
    predicted = model.predict(X)
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    right = expected.predict(X)
    if form in ("sets", "tuples", "ragged lists", "series", "objects"):
        assert predicted == [{NAMES[k] for k in np.flatnonzero(row)} for row in right]
        assert model.classes_.tolist() == NAMES
    elif form in ("csr", "csc"):
        assert sp.issparse(predicted) and predicted.dtype == Y.dtype
        np.testing.assert_array_equal(predicted.toarray(), right)
    elif form == "frame":
        assert list(predicted.columns) == NAMES == model.classes_.tolist()
        np.testing.assert_array_equal(predicted.to_numpy(), right)
    else:
        assert isinstance(predicted, np.ndarray) and predicted.dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(predicted, right)
        assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.score(X, y) == accuracy_score(Y, right)


def test_frames_keep_names_and_index():
    pd = pytest.importorskip("pandas")
    features = pd.DataFrame(X, columns=list("abcde"), index=np.arange(60) * 10)
    labels = pd.DataFrame(Y, columns=NAMES, index=features.index)
    model = mm.MultilabelClassifier(graph="tree", positive="a").fit(features, labels)
    assert (model.coef_[:, 0] >= 0).all() and model.feature_names_in_.tolist() == list("abcde")
    assert model.predict(features).index.tolist() == features.index.tolist()
    assert model.score(features, labels[NAMES[::-1]]) == model.score(features, labels)  # columns in another order
    with pytest.raises(ValueError, match="columns of y differ from the labels, first by"):
        model.score(features, labels.rename(columns={"art": "arts"}))
    assert all({a, b} <= set(NAMES) for a, b in model.edges_) and len(model.edges_) == len(model.edge_coef_)


@pytest.mark.parametrize("values", [(1, 2), (-1.0, 1.0), (False, True)])
def test_a_single_column_may_hold_any_two_numbers(values, tmp_path):
    """As targets of binary classifiers do; the larger one is on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    on = X[:, :1] + 0.1 * rng.normal(size=(40, 1)) > 0
    y = np.where(on, values[1], values[0])
    model, plain = mm.MultilabelClassifier().fit(X, y), mm.MultilabelClassifier().fit(X, on.astype(int))
    expected = np.where(plain.predict(X) == 1, values[1], values[0])
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype and np.array_equal(predicted, expected)
    assert model.score(X, y) == plain.score(X, on.astype(int))
    assert 0 < model.score(X[on[:, 0]], y[on[:, 0]]) <= 1  # where one of the two does not occur
    model.save(tmp_path / "m.mm")
    loaded = mm.MultilabelClassifier.load(tmp_path / "m.mm").predict(X)
    assert loaded.dtype == y.dtype and np.array_equal(loaded, predicted)
    for forged in ([2.0, 1.0], [0.0], [0.5, 1e301], [0.0, "1"]):
        path = forge(model.save(tmp_path / "f.mm"), "fitted", lambda facts, forged=forged: facts.update(values=forged))
        with pytest.raises(ValueError, match=r"f.mm cannot be loaded: its '?(values|on)"):
            mm.MultilabelClassifier.load(path)
    streamed = mm.MultilabelClassifier(solver="pegasos").partial_fit(X, y).partial_fit(X[on[:, 0]], y[on[:, 0]])
    assert set(np.unique(streamed.predict(X))) <= set(values)
    with pytest.raises(ValueError, match=r"Unknown label type: y has .* in row 0, column 0; give a matrix of 0 and 1"):
        mm.MultilabelClassifier().fit(X, np.column_stack([y, y]) + 2)
    with pytest.raises(ValueError, match="Unknown label type: y has"):
        model.score(X, y + np.int64(5))


@pytest.mark.parametrize("graph", [None, "tree", "full"])
def test_decisions_agree_with_predictions(graph):
    model = mm.MultilabelClassifier(graph=graph, C=3.0).fit(X, Y)
    assert ((model.decision_function(X) > 0) == model.predict(X)).all()
    assert model.decision_function(sp.csr_array(X)) == pytest.approx(model.decision_function(X))


@pytest.mark.parametrize("graph", [None, "tree", "full", [(0, 1), (1, 2), (0, 2), (3, 4)]], ids=str)
def test_k_best_sets(graph):
    """Against all sets, scored by the attributes; the best is the prediction."""
    rng = np.random.default_rng(0)
    model = mm.MultilabelClassifier(graph=graph).fit(rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 5)))
    model.weights_[:] = rng.normal(size=len(model.weights_))
    new = rng.normal(size=(4, 3))
    for x, answers, best, lead in zip(
        new, model.predict_kbest(new, 7), model.predict(new), model.predict_margin(new), strict=True
    ):
        scored = []
        for on in product([0, 1], repeat=5):
            pairs = sum(v * on[j] * on[k] for (j, k), v in zip(model.edges_, model.edge_coef_, strict=True))
            scored.append((on @ (model.coef_ @ x + model.intercept_) + pairs, set(np.flatnonzero(on).tolist())))
        scored.sort(key=lambda pair: -pair[0])
        assert [labels for labels, _ in answers] == [labels for _, labels in scored[:7]]
        np.testing.assert_allclose([score for _, score in answers], [score for score, _ in scored[:7]])
        assert answers[0][0] == set(np.flatnonzero(best).tolist())
        assert lead == pytest.approx(scored[0][0] - scored[1][0])
    assert len(mm.MultilabelClassifier(graph=graph and "full").fit(X, Y[:, :2]).predict_kbest(X[:1], 9)[0]) == 4


def test_class_weight_multiplies_the_cost_of_missed_labels(tmp_path):
    weights = {"art": 3.0, "news": 0.5}
    frame = forms()["frame"]
    weighted = mm.MultilabelClassifier(graph="full", rescaling="slack", class_weight=weights, tol=1e-6).fit(X, frame)
    cost = mm.WeightedHammingCost(weights, by="true")
    expected = mm.MultilabelClassifier(graph="full", rescaling="slack", cost=cost, tol=1e-6).fit(X, frame)
    np.testing.assert_array_equal(weighted.weights_, expected.weights_)
    both = mm.MultilabelClassifier(class_weight=weights, cost={"art": 2.0}).fit(X, frame)
    assert both.layout_.cost({"art", "news"}, {"film"}) == 3.0 * 2.0 + 0.5 + 1.0
    balanced = mm.MultilabelClassifier(class_weight="balanced").fit(X, frame)
    missing = [balanced.layout_.cost({label}, set()) * Y[:, k].sum() for k, label in enumerate(NAMES)]
    np.testing.assert_allclose(missing, Y.sum() / 4)
    assert balanced.layout_.cost(set(), {"art"}) == 1.0
    again = mm.load(balanced.save(tmp_path / "model"))
    assert again.class_weight == "balanced"
    np.testing.assert_array_equal(again.fit(X, frame).weights_, balanced.weights_)
    with pytest.raises(ValueError, match='class_weight is for costs that add up over labels; cost="f1"'):
        mm.MultilabelClassifier(class_weight=weights, cost="f1").fit(X, frame)
    with pytest.raises(ValueError, match="class_weight of 'art' is -1"):
        mm.MultilabelClassifier(class_weight={"art": -1}).fit(X, frame)
    with pytest.raises(ValueError, match='partial_fit cannot know class_weight="balanced"'):
        mm.MultilabelClassifier(solver="sgd", class_weight="balanced").partial_fit(X, frame)


def test_a_graph_learns_what_goes_together():
    """The second label is on where the first is not; the features tell only that one of them is on."""
    rng = np.random.default_rng(0)
    first = rng.random(300) < 0.5
    noise = np.where(first, 0.3, -0.3) + rng.normal(size=300)
    labels = np.column_stack([first, ~first])
    apart = mm.MultilabelClassifier().fit(noise[:, None], labels)
    joined = mm.MultilabelClassifier(graph=[(0, 1)], rescaling="slack").fit(noise[:, None], labels)
    assert joined.edge_coef_[0] < -0.5
    assert joined.score(noise[:, None], labels) >= apart.score(noise[:, None], labels)
    assert (joined.predict(noise[:, None]).sum(axis=1) == 1).mean() > 0.9


def test_tools_of_scikit_learn():
    binarizer = MultiLabelBinarizer()
    indicator = binarizer.fit_transform(SETS)
    pipeline = make_pipeline(StandardScaler(), mm.MultilabelClassifier(graph="full"))
    assert cross_val_score(pipeline, X, indicator, cv=3, scoring="f1_micro", error_score="raise").mean() > 0.6
    search = GridSearchCV(mm.MultilabelClassifier(), {"C": [1e-6, 10.0]}, cv=3, scoring="f1_micro", error_score="raise")
    assert search.fit(X, indicator).best_params_ == {"C": 10.0}
    assert binarizer.inverse_transform(search.predict(X))[0] is not None
    assert search.fit(X, sp.csr_matrix(indicator)).predict(X).shape == indicator.shape
    folds = cross_val_score(mm.MultilabelClassifier(), X, SETS, cv=KFold(3), error_score="raise")
    np.testing.assert_allclose(folds, cross_val_score(mm.MultilabelClassifier(), X, indicator, cv=KFold(3)))
    np.testing.assert_allclose(folds, cross_val_score(mm.MultilabelClassifier(), X, SETS, cv=3, error_score="raise"))
    lists = [sorted(labels) for labels in SETS]
    np.testing.assert_allclose(folds, cross_val_score(mm.MultilabelClassifier(), X, lists, cv=KFold(3)))
    with pytest.raises(ValueError, match="legacy multi-label"):
        cross_val_score(mm.MultilabelClassifier(), X, lists, cv=3)


def test_sample_weights_repeat_examples():
    times = np.arange(60) % 3
    weighted = mm.MultilabelClassifier(graph="tree", rescaling="slack", tol=1e-8).fit(X, Y, times)
    kept = times > 0  # the tree is that of all examples
    edges = weighted.edges_
    repeated = mm.MultilabelClassifier(graph=edges, rescaling="slack", tol=1e-8)
    repeated.fit(np.repeat(X[kept], times[kept], axis=0), np.repeat(Y[kept], times[kept], axis=0))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    pd = pytest.importorskip("pandas")
    for other in (times.tolist(), pd.Series(times), times.astype(np.float32)):
        again = mm.MultilabelClassifier(graph="tree", rescaling="slack", tol=1e-8).fit(X, Y, other)
        np.testing.assert_array_equal(again.weights_, weighted.weights_)


@pytest.mark.parametrize("options", [{}, {"graph": [("film", "art")], "cost": {"art": 2.0}}, {"graph": "full"}])
@pytest.mark.parametrize("form", ["sets", "frame", "csr"])
def test_files_and_pickles(form, options, tmp_path):
    if form == "csr":
        options = {k: v for k, v in options.items() if k == "graph" and isinstance(v, str)}
    model = mm.MultilabelClassifier(**options).fit(X, forms()[form])
    for again in (mm.load(model.save(tmp_path / "model")), pickle.loads(pickle.dumps(model))):
        assert type(again) is mm.MultilabelClassifier and again.edges_ == model.edges_
        predicted, expected = again.predict(X), model.predict(X)
        assert type(predicted) is type(expected)
        if form == "sets":
            assert predicted == expected
        else:
            assert (predicted != expected).sum().sum() == 0
        np.testing.assert_array_equal(again.classes_, model.classes_)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert again.fit(X, forms()[form]).certificate_.primal == pytest.approx(model.certificate_.primal)


def test_streams():
    model = mm.MultilabelClassifier(solver="sgd", graph=[("art", "news")], C=1.0, random_state=0)
    for _ in range(30):
        for part in np.array_split(np.arange(60), 3):
            model.partial_fit(X[part], [SETS[i] for i in part], classes=NAMES)
    whole = mm.MultilabelClassifier(graph=[("art", "news")], C=1.0).fit(X, SETS)
    true = MultiLabelBinarizer(classes=NAMES).fit_transform(SETS)
    found, best = (MultiLabelBinarizer(classes=NAMES).fit_transform(m.predict(X)) for m in (model, whole))
    assert f1_score(true, found, average="micro") > f1_score(true, best, average="micro") - 0.1
    with pytest.raises(ValueError, match="give its edges"):
        mm.MultilabelClassifier(solver="sgd", graph="tree").partial_fit(X, Y)
    with pytest.raises(AttributeError, match="partial_fit"):
        mm.MultilabelClassifier().partial_fit(X, Y)


def test_labels_that_are_never_or_always_on():
    odd = np.column_stack([Y, np.zeros(60, int), np.ones(60, int)])
    for graph in (None, "tree", "full"):
        predicted = mm.MultilabelClassifier(graph=graph, C=10.0).fit(X, odd).predict(X)
        assert not predicted[:, 4].any() and predicted[:, 5].all()
    empty = mm.MultilabelClassifier().fit(X, np.zeros((60, 2)))
    assert not empty.predict(X).any()


@pytest.mark.parametrize("rescaling", ["margin", "slack", "sqrt_slack", "unit"])
@pytest.mark.parametrize("cost", ["hamming", "f1", "jaccard"])
def test_every_cost_and_rescaling_is_certified(cost, rescaling):
    model = mm.MultilabelClassifier(graph="full", cost=cost, rescaling=rescaling, C=0.5, tol=1e-4).fit(X, Y)
    assert model.status_.code == "converged" and model.certificate_.relative_gap <= 1e-4


def test_graphs_of_networkx():
    nx = pytest.importorskip("networkx")
    pairs = [("art", "film"), ("news", "film"), ("art", "film")]
    given = mm.MultilabelClassifier(graph=pairs).fit(X, SETS)
    for graph in (nx.Graph(pairs), nx.MultiGraph(pairs), nx.DiGraph(pairs)):
        model = mm.MultilabelClassifier(graph=graph).fit(X, SETS)
        assert model.edges_ == given.edges_ == [("art", "film"), ("film", "news")]
        np.testing.assert_array_equal(model.weights_, given.weights_)
    with pytest.raises(ValueError, match="graph has an edge to 'opera', which is not a label"):
        mm.MultilabelClassifier(graph=nx.Graph([("art", "opera")])).fit(X, SETS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_labels_without_negative_pairs_are_a_minimum_cut():
    """Against an integer program over labels and pairs."""
    rng, M = np.random.default_rng(0), 20
    features, many = rng.normal(size=(12, 3)), rng.integers(0, 2, (12, M))
    model = mm.MultilabelClassifier(graph="full", positive="edge", max_passes=2).fit(features, many)
    assert model.inference_ == "minimum cut"
    model.weights_[:] = rng.normal(size=len(model.weights_))
    assert model.inference_ == "branch and bound"
    edge = model.layout_.groups(model.weights_)["edge"]
    edge[:] = 0.2 * np.abs(edge)
    assert model.inference_ == "minimum cut" and not model.unproven(features).any()
    (j, k), E = model.layout_.edges.T, len(edge)
    rows = sp.vstack([sp.hstack([-sp.csr_array((np.ones(E), (range(E), end)), (E, M)), sp.eye(E)]) for end in (j, k)])
    both_on = LinearConstraint(rows, ub=0)
    for scores, on in zip(model.label_scores(features), model.predict(features), strict=True):
        best = milp(-np.append(scores, edge), constraints=both_on, bounds=(0, 1), integrality=np.ones(M + E))
        assert scores @ on + edge @ (on[j] * on[k]) == pytest.approx(-best.fun)


def test_many_labels_in_a_tree():
    rng = np.random.default_rng(0)
    many = (rng.random((40, 25)) < 0.3).astype(int)
    features = many @ rng.normal(size=(25, 8)) + 0.1 * rng.normal(size=(40, 8))
    model = mm.MultilabelClassifier(graph="tree", tol=1e-2).fit(features, many)
    assert model.status_.code == "converged" and model.predict(features).shape == (40, 25)
    assert ((model.decision_function(features) > 0) == model.predict(features)).all()


def test_ramp():
    model = mm.MultilabelClassifier(graph="tree", loss="ramp").fit(X, Y)
    assert model.status_.code == "converged" and model.predict(X).shape == Y.shape


BAD = X.copy()
BAD[3, 2] = np.nan
REFUSED = {
    "NaN features": (BAD, Y, "example 3 has NaN or infinite features"),
    "infinite features": (sp.csr_array(np.nan_to_num(BAD, nan=np.inf)), Y, "example 3 has NaN or infinite features"),
    "one label each": (X, Y[:, 0], "MulticlassClassifier is for one class per example"),
    "counts": (X, 3 * Y, r"y has 3 in row \d+, column \d; give a matrix of 0 and 1"),
    "NaN labels": (X, np.where(Y, np.nan, 0.0), "y contains NaN"),
    "masked": (X, np.ma.masked_equal(Y, 1), "y has masked entries"),
    "text": (X, ["art"] * 60, "example 0 has 'art' in place of a set of labels"),
    "a sentence": (X, "art", "y is 'art'; give a matrix"),
    "lengths": (X, Y[:-1], "X has 60 examples and Y has 59"),
    "unhashable": (X, [[["art"]]] * 60, "hashable"),
    "nothing": (X, None, "requires y to be passed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    features, labels, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        mm.MultilabelClassifier().fit(features, labels)


def test_refused_later():
    with pytest.raises(NotFittedError):
        mm.MultilabelClassifier().predict(X)
    model = mm.MultilabelClassifier().fit(X, SETS)
    with pytest.raises(ValueError, match="example 0 has the label 'opera'"):
        model.score(X[:1], [{"opera"}])
    with pytest.raises(ValueError, match="X has 2 examples and y has 1"):
        model.score(X[:2], SETS[:1])
    with pytest.raises(ValueError, match="5 features"):
        model.predict(X[:, :3])
