"""MultilabelClassifier with a hierarchy: coherent answers in every form, files, scikit-learn, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin.metrics import hierarchical_f1, micro_average_precision

NAMES = ["animal", "bird", "cat", "stone", "thing"]
PAIRS = [("thing", "animal"), ("thing", "stone"), ("animal", "bird"), ("animal", "cat")]
PARENT = np.array([4, 0, 0, 4, -1])
rng = np.random.default_rng(0)
LEAF = rng.integers(3, size=80)
Y = mm.with_ancestors(np.eye(5, dtype=int)[np.array([1, 2, 3])[LEAF]], PARENT)
X = np.eye(3)[LEAF] + 0.6 * rng.normal(size=(80, 3))
SETS = [{NAMES[k] for k in np.flatnonzero(row)} for row in Y]


def coherent(on):
    return all((on[:, k] <= on[:, p]).all() for k, p in enumerate(PARENT) if p >= 0)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("options", [{}, {"leaves_only": True}, {"paths": "single"}])
def test_answers_are_coherent_and_agree_with_decisions(options, rescaling):
    model = mm.MultilabelClassifier(hierarchy=PARENT, rescaling=rescaling, **options).fit(X, Y)
    predicted, decisions = model.predict(X), model.decision_function(X)
    assert model.status_.code == "converged" and coherent(predicted) and coherent(decisions)
    np.testing.assert_array_equal(decisions > 0, predicted)
    assert f1_score(Y, predicted, average="micro") > 0.85
    if options:
        assert (predicted[:, [1, 2, 3]].sum(axis=1) <= 1).all() or "leaves_only" in options


def test_every_form_of_hierarchy_and_of_labels():
    networkx, pd = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    expected = mm.MultilabelClassifier(hierarchy=PARENT).fit(X, Y)
    parents = {child: parent for parent, child in PAIRS}
    for hierarchy in (PAIRS, parents, networkx.DiGraph(PAIRS), PARENT.tolist()):
        for y in (SETS, pd.DataFrame(Y, columns=NAMES)):
            model = mm.MultilabelClassifier(hierarchy=hierarchy).fit(X, y)
            assert model.classes_.tolist() == NAMES
            np.testing.assert_array_equal(model.weights_, expected.weights_)
    assert model.fit(X, sp.csr_matrix(Y)).predict(X).shape == Y.shape


def test_tools_of_scikit_learn():
    model = mm.MultilabelClassifier(hierarchy=PARENT, leaves_only=True)
    assert clone(model).get_params()["leaves_only"] is True
    grid = {"C": [1e-6, 1.0], "paths": ["single", "multiple"]}
    search = GridSearchCV(model, grid, cv=3, scoring="f1_micro", error_score="raise").fit(X, Y)
    assert search.best_params_["C"] == 1.0 and coherent(search.predict(X))


@pytest.mark.parametrize("options", [{}, {"leaves_only": True}, {"paths": "single"}, {"cost": {"cat": 2.0}}])
def test_files_and_pickles(options, tmp_path):
    model = mm.MultilabelClassifier(hierarchy=PAIRS, **options).fit(X, SETS)
    for again in (mm.load(model.save(tmp_path / "model")), pickle.loads(pickle.dumps(model))):
        assert again.predict(X) == model.predict(X)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert again.fit(X, SETS).certificate_.primal == pytest.approx(model.certificate_.primal)
    own = mm.StructuredSVM(mm.LabelSet(hierarchy=PAIRS, **options)).fit(X, SETS)
    assert mm.load(own.save(tmp_path / "own")).predict(X) == own.predict(X)


def test_graphs_are_stored_as_pairs(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([*PAIRS, ("stone", "cat")])  # a petrified cat is both
    y = mm.with_ancestors(SETS, graph)
    model = mm.MultilabelClassifier(hierarchy=graph).fit(X, y)
    again = mm.load(model.save(tmp_path / "model"))
    assert again.predict(X) == model.predict(X)
    assert again.fit(X, y).certificate_.primal == pytest.approx(model.certificate_.primal)


def test_labels_that_never_or_always_occur():
    with_root = np.column_stack([Y, np.zeros(80, int)])  # label 5, below the cat, never occurs; label 4 always does
    model = mm.MultilabelClassifier(hierarchy=[*PARENT, 2], C=10.0).fit(X, with_root)
    predicted = model.predict(X)
    assert not predicted[:, 5].any() and predicted[:, 4].all()


NAN = X.copy()
NAN[7, 1] = np.nan
OPEN = Y.copy()
OPEN[3, 4] = 0
REFUSED = {
    "cycle": (X, Y, {"hierarchy": [(0, 1), (1, 0)]}, "cycle: 0 -> 1 -> 0"),
    "open": (X, OPEN, {"hierarchy": PARENT}, r"example 3 has the label \d without its parent 4; add all ancestors"),
    "NaN": (NAN, Y, {"hierarchy": PARENT}, "NaN"),
    "unknown": (X, SETS, {"hierarchy": [("thing", "cat")], "cost": {"dog": 1.0}}, "weighs 'dog', which is not a label"),
    "paths": (X, Y, {"paths": "single"}, "paths and leaves_only are about a hierarchy"),
    "graph": (X, Y, {"hierarchy": PARENT, "graph": "tree"}, "graph and hierarchy cannot be combined"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    features, labels, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        mm.MultilabelClassifier(**options).fit(features, labels)


def test_metrics():
    true, found = [{"cat"}, {"stone"}], [{"bird"}, {"stone"}]
    assert hierarchical_f1(true, found) == 0.5 and hierarchical_f1(true, [set(), set()]) == 0.0
    # with ancestors: {thing, animal, cat} against {thing, animal, bird}, and {thing, stone} twice
    parents = {child: parent for parent, child in PAIRS}
    assert hierarchical_f1(true, found, parents) == pytest.approx(2 * (2 + 2) / (5 + 5))
    leaves = np.eye(5, dtype=int)[[2, 3]], np.eye(5, dtype=int)[[1, 3]]
    assert hierarchical_f1(*leaves, PARENT) == pytest.approx(0.8)
    assert hierarchical_f1(Y, Y[::-1]) == pytest.approx(f1_score(Y, Y[::-1], average="micro"))
    scores = rng.normal(size=Y.shape)
    assert micro_average_precision(Y, scores) == pytest.approx(average_precision_score(Y, scores, average="micro"))
    rest = average_precision_score(Y[:, :4], scores[:, :4], average="micro")
    assert micro_average_precision(Y, scores, skip=[4]) == pytest.approx(rest)
    with pytest.raises(ValueError, match="skip has 9, which is not the number of a column"):
        micro_average_precision(Y, scores, skip=[9])
    with pytest.raises(ValueError, match="they must agree"):
        micro_average_precision(Y, scores[:, :2])
    with pytest.raises(ValueError, match="no example has one of the labels"):
        micro_average_precision(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="2 examples and y_pred has 1"):
        hierarchical_f1(true, found[:1])
