"""The scikit-learn contract: parameters, clones, pickles, searches, pipelines."""

from __future__ import annotations

import copy
import doctest
import importlib
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import _enforce_estimator_tags_y, parametrize_with_checks

import maxmargin as mm
from maxmargin.compat.sklearn_crfsuite import CRF

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(RNG.integers(2, 6), 3)) for _ in range(24)]
Y = [["abc"[k] for k in (x @ np.eye(3)).argmax(axis=1)] for x in X]
SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")


OF_NETWORKS = {
    "check_sample_weight_equivalence_on_dense_data": "gives numbers between whole ones, which are no categories",
    "check_positive_only_tag_during_fit": "gives numbers between whole ones, which are no categories",
    "check_sample_weights_pandas_series": "has columns without names, and variables need names",
    "check_sample_weights_not_an_array": "has neither an array nor a frame",
}


def expected_failures(estimator):
    """Weights and repetitions of examples make the same ramp, but two fits of it agree to their tolerance only."""
    if isinstance(estimator, mm.DiscriminativeBayesNet):
        return OF_NETWORKS
    if isinstance(estimator, (mm.MultilabelClassifier, mm.CalibratedLabels)):
        return OF_SETS if isinstance(estimator, mm.MultilabelClassifier) else OF_SETS | OF_PROBABILITIES
    if not isinstance(estimator, mm.MulticlassClassifier) or not isinstance(estimator.loss, mm.Ramp):
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": "compares to 1e-7, tol is 1e-3" for kind in kinds}


@pytest.mark.found("B6")
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_weights_are_repetitions_at_the_default_tolerance(C):
    """Small fits of labels are solved to rounding, so that equal problems have equal solutions."""
    rng = np.random.default_rng(1)
    X, y, weight = rng.normal(size=(25, 6)), rng.integers(3, size=25), rng.integers(0, 4, 25)
    weighted = mm.MulticlassClassifier(C=C).fit(X, y, sample_weight=weight)
    repeated = mm.MulticlassClassifier(C=C).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-7)


OF_SETS = dict.fromkeys(
    ("check_classifiers_classes", "check_class_weight_classifiers"), "has y of one dimension, whatever the tags say"
) | {"check_classifiers_train": "wants a vector of predictions where y is a column"}
OF_PROBABILITIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "copies of an example are in several folds, its weight in one"
    for kind in ("dense", "sparse")
} | {
    f"check_estimator_sparse_{kind}": "wants two probabilities of a single label, as of two classes"
    for kind in ("array", "matrix")
}
SETS = mm.MultilabelClassifier(graph="full", rescaling="slack", tol=1e-12)
CALIBRATED = mm.CalibratedLabels(estimator=SETS, folds=2)
ARRAYS = (
    # scikit-learn 1.6 gives it classes such as 1 and 2 in nearly all checks
    *((SETS, CALIBRATED) if _enforce_estimator_tags_y(SETS, np.array([1, 0])).max() == 1 else ()),
    mm.MulticlassClassifier(), mm.MulticlassClassifier(tol=1e-12),
    mm.MulticlassClassifier(loss="squared_hinge", tol=1e-12),
    mm.MulticlassClassifier(loss=mm.Ramp()), mm.MulticlassClassifier(rescaling="slack", tol=1e-12),
    mm.DiscriminativeBayesNet(unknown="missing"),
)  # fmt: skip
OTHERS = (  # their inputs are not arrays (n_examples, n_features), and their tags say so
    mm.SequenceTagger(), mm.StructuredSVM(mm.Chain()), mm.ImageSegmenter(), mm.GraphLabeler(), mm.DiscriminativeHMM(),
    mm.LatticeRanker(),
)  # fmt: skip


@parametrize_with_checks([*ARRAYS, *OTHERS], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


MODULES = (
    "sequence_tagger", "structured_svm", "multiclass_classifier", "multilabel_classifier", "path", "base",
    "image_segmenter", "graph_labeler", "discriminative_hmm", "discriminative_bayes_net", "lattice_ranker",
    "calibrated_labels",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_docstrings(module):
    result = doctest.testmod(importlib.import_module(f"maxmargin.estimators.{module}"))
    assert result.failed == 0
    assert result.attempted > 0 or module in ("path", "base")


ALL = (
    mm.SequenceTagger(), mm.MulticlassClassifier(), mm.MultilabelClassifier(), mm.StructuredSVM(mm.Chain()),
    mm.ImageSegmenter(), mm.GraphLabeler(), mm.DiscriminativeHMM(), mm.DiscriminativeBayesNet(), CRF(),
    mm.LatticeRanker(),
    CALIBRATED,
)  # fmt: skip


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_constructors_store_what_they_are_given(estimator):
    params = estimator.get_params(deep=False)
    marks = {name: object() for name in params}
    marked = type(estimator)(**marks)
    assert all(getattr(marked, name) is mark for name, mark in marks.items())


def test_clone_copies_components_and_forgets_the_fit():
    estimator = mm.SequenceTagger(C=2.0, solver=mm.Auto(parts=2), cost=mm.HammingCost(normalize=True)).fit(X, Y)
    copied = clone(estimator)
    assert not hasattr(copied, "weights_")
    assert copied.C == 2.0
    assert copied.solver is not estimator.solver and copied.solver.parts == 2
    assert copied.cost.normalize is True
    np.testing.assert_array_equal(copied.fit(X, Y).weights_, estimator.weights_)


def test_parameters_of_components():
    estimator = mm.StructuredSVM(mm.Chain(cost=mm.HammingCost()), solver=mm.SimplicialDecomposition())
    estimator.set_params(solver__limit=7, model__ends=True, model__cost__normalize=True, C=3.0)
    params = estimator.get_params()
    assert params["solver__limit"] == estimator.solver.limit == 7
    assert params["model__ends"] is estimator.model.ends is True
    assert params["model__cost__normalize"] is True and params["C"] == 3.0
    with pytest.raises(ValueError, match=r"SimplicialDecomposition has no parameter 'limits'; it has blocks, working"):
        estimator.set_params(solver__limits=3)
    with pytest.raises(ValueError, match=r"Invalid parameter 'gamma'"):
        estimator.set_params(gamma=3)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(mm.SequenceTagger()) == "SequenceTagger()"
    shown = repr(mm.SequenceTagger(C=2, solver=mm.SimplicialDecomposition(limit=3)))
    assert shown == "SequenceTagger(C=2, solver=SimplicialDecomposition(limit=3))"
    assert "limit" in mm.SequenceTagger(solver=mm.SimplicialDecomposition(limit=3))._repr_html_()
    assert repr(mm.MatrixCost(np.zeros((3, 3)))) == "MatrixCost(matrix=<array of shape (3, 3)>)"


FITTED = {
    "tagger": lambda: mm.SequenceTagger(ends=True).fit(X, Y),
    "observed": lambda: mm.SequenceTagger(weights="observed").fit([sp.csr_array(x > 0) for x in X], Y),
    "svm": lambda: mm.StructuredSVM(mm.Chain()).fit(X, Y),
    "interrupted": lambda: mm.SequenceTagger(callbacks=[mm.EarlyStopping((X, Y), patience=1)]).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", FITTED)
def test_pickles_predict_the_same(kind):
    fitted = FITTED[kind]()
    inputs = [sp.csr_array(x > 0) for x in X] if kind == "observed" else X
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert again.predict(inputs) == fitted.predict(inputs)
        assert again.certificate_ == fitted.certificate_ and again.status_ == fitted.status_
        np.testing.assert_array_equal(again.weights_, fitted.weights_)


def test_a_pickle_does_not_carry_the_examples():
    small = len(pickle.dumps(mm.SequenceTagger().fit(X[:4], Y[:4])))
    large = len(pickle.dumps(mm.SequenceTagger().fit(X * 20, Y * 20)))
    assert large < 1.5 * small


def test_weights_in_a_read_only_memory_map(tmp_path):
    fitted = mm.SequenceTagger().fit(X, Y)
    joblib.dump(fitted, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert not mapped.weights_.flags.writeable
    assert mapped.predict(X) == fitted.predict(X)
    assert mapped.predict_kbest(X, 2) == fitted.predict_kbest(X, 2)
    np.testing.assert_array_equal(mapped.predict_marginals(X)[0], fitted.predict_marginals(X)[0])


def test_read_only_examples():
    frozen = [x.copy() for x in X]
    for x in frozen:
        x.flags.writeable = False
    weight = np.ones(len(X))
    weight.flags.writeable = False
    expected = mm.SequenceTagger().fit(X, Y).weights_
    np.testing.assert_array_equal(mm.SequenceTagger().fit(frozen, Y, weight).weights_, expected)
    stacked = mm.Sequences.of(X)
    stacked.dense.flags.writeable = stacked.offsets.flags.writeable = False
    np.testing.assert_array_equal(mm.SequenceTagger().fit(stacked, Y).weights_, expected)


@pytest.mark.parametrize("form", ["list", "Sequences", "sparse", "mappings"])
def test_searches_and_cross_validation_over_sequences(form):
    inputs = {
        "list": X,
        "Sequences": mm.Sequences.of(X),
        "sparse": [sp.csr_array(x) for x in X],
        "mappings": [{"dense": x[:, :1], "sparse": sp.csr_array(x[:, 1:])} for x in X],
    }[form]
    scores = cross_validate(mm.SequenceTagger(), inputs, Y, cv=3, error_score="raise")["test_score"]
    by_hand = []
    for k in range(3):  # KFold without shuffling: consecutive thirds
        test = range(8 * k, 8 * k + 8)
        train = [i for i in range(24) if i not in test]
        fitted = mm.SequenceTagger().fit([X[i] for i in train], [Y[i] for i in train])
        by_hand.append(fitted.score([X[i] for i in test], [Y[i] for i in test]))
    np.testing.assert_allclose(scores, by_hand, atol=0.05)
    search = GridSearchCV(
        mm.SequenceTagger(solver=mm.SimplicialDecomposition()),
        {"C": [1e-6, 1.0], "solver__limit": [4, None]},
        cv=3,
        error_score="raise",
    ).fit(inputs, Y)
    assert search.best_params_["C"] == 1.0
    assert search.predict(inputs) == search.best_estimator_.predict(inputs)


def test_search_over_solvers_by_name_and_with_sample_weights():
    search = GridSearchCV(mm.SequenceTagger(tol=0.05), {"solver": list(SOLVERS)}, cv=3, error_score="raise")
    search.fit(X, Y, sample_weight=np.linspace(0.5, 1.5, len(X)))
    scores = search.cv_results_["mean_test_score"]
    assert scores.min() > 0.8 and scores.max() - scores.min() < 0.1


def test_search_in_processes():
    scores = [cross_val_score(mm.SequenceTagger(), X, Y, cv=2, n_jobs=n, error_score="raise") for n in (1, 2)]
    np.testing.assert_array_equal(*scores)


def test_pipeline():
    iris = load_iris()
    pipeline = make_pipeline(StandardScaler(), mm.MulticlassClassifier(solver=mm.Auto()))
    assert cross_val_score(pipeline, iris.data, iris.target, cv=3, error_score="raise").min() > 0.9
    search = GridSearchCV(
        pipeline,
        {"multiclassclassifier__C": [1e-6, 1.0], "multiclassclassifier__solver__parts": [1, 8]},
        error_score="raise",
    )
    assert search.fit(iris.data, iris.target).best_params_["multiclassclassifier__C"] == 1.0
    assert is_classifier(pipeline)


def parts():
    """Estimators whose outputs have parts, each with noisy examples."""
    rng = np.random.default_rng(3)
    noisy = [[label if rng.random() < 0.7 else "abc"[rng.integers(3)] for label in labels] for labels in Y]
    words = [[str(int(value > 0)) for value in x[:, 0]] for x in X]
    chains = [{"node": x, "edges": np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], 1)} for x in X]
    images = [{"node": rng.normal(size=(4, 5, 2))} for _ in X]
    masks = [(image["node"][..., 0] + rng.normal(size=(4, 5)) > 0).astype(int) for image in images]
    tables = [rng.normal(size=(3, 4, 2)) for _ in X]
    links = [[(int(i), int(j)) for i, j in np.argwhere(rng.random((3, 4)) < 0.3)] for _ in X]
    yield mm.Aligner(), tables, links
    texts = [["a b", "a c", "b"], ["b c a", "c"], ["a b c d", "a b d c", "d c b a"]] * 8
    yield (
        mm.LatticeRanker(),
        [mm.Lattice.from_nbest(t, rng.normal(size=(len(t), 2))) for t in texts],
        [t[0] for t in texts],
    )
    yield mm.SequenceTagger(), X, noisy
    yield mm.StructuredSVM(mm.Chain()), X, noisy
    yield mm.DiscriminativeHMM(), words, noisy
    yield mm.GraphLabeler(), chains, noisy
    yield mm.ImageSegmenter(C=0.1), images, masks


@pytest.mark.parametrize("estimator, examples, outputs", [*parts()], ids=lambda value: type(value).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_of_scores_are_repetitions(estimator, examples, outputs):
    weight = np.random.default_rng(4).integers(0, 4, len(examples))
    fitted = clone(estimator).set_params(max_passes=3).fit(examples, outputs)
    repeated = [[one for one, n in zip(given, weight, strict=True) for _ in range(n)] for given in (examples, outputs)]
    found = fitted.score(examples, outputs, sample_weight=weight)
    assert found == pytest.approx(fitted.score(*repeated), abs=1e-12)
    assert abs(found - fitted.score(examples, outputs)) > 1e-6
    with pytest.raises(ValueError, match="sample_weight must have one entry per example"):
        fitted.score(examples, outputs, sample_weight=weight[1:])
