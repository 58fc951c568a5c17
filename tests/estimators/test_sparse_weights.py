"""``penalty="l1"`` on every estimator with linear scores: it converges, most weights are 0, files are small."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.features.template import Template
from maxmargin.features.window import Window
from maxmargin.solvers.linear_programs.highs import Highs

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 40)
TABLE = np.eye(3, 12)[LABELS] + 0.3 * RNG.normal(size=(40, 12))
SETS = (RNG.random((40, 4)) < 0.4).astype(int)
CHAINS = [np.array_split(TABLE, 10), [part.tolist() for part in np.array_split(LABELS, 10)]]
GRAPHS = [{"node": part, "edges": np.array([[t, t + 1] for t in range(3)])} for part in CHAINS[0]]
ESTIMATORS = [
    (mm.SequenceTagger(), *CHAINS),
    (mm.MulticlassClassifier(), TABLE, LABELS),
    (mm.MultilabelClassifier(), SETS + 0.3 * RNG.normal(size=SETS.shape), SETS),
    (mm.GraphLabeler(rescaling="margin"), GRAPHS, CHAINS[1]),
    (mm.StructuredSVM(mm.Chain()), *CHAINS),
]


@pytest.mark.parametrize(("estimator", "X", "y"), ESTIMATORS, ids=lambda x: type(x).__name__)
def test_every_estimator_learns_sparse_weights(estimator, X, y, tmp_path):
    sparse = clone(estimator).set_params(penalty="l1", C=2.0, tol=1e-4).fit(X, y)
    dense = clone(estimator).set_params(C=2.0, tol=1e-4).fit(X, y)
    assert sparse.status_.converged
    assert (sparse.weights_ != 0).sum() < (dense.weights_ != 0).sum()
    assert sparse.score(X, y) > dense.score(X, y) - 0.1
    sparse.save(tmp_path / "sparse.mm")
    loaded = mm.load(tmp_path / "sparse.mm")
    assert loaded.penalty == "l1" and np.array_equal(loaded.predict(X), sparse.predict(X))


def test_solver_objects_travel_with_a_model(tmp_path):
    solver = mm.ColumnGeneration(Highs("ipm"), rows=3)
    tagger = mm.SequenceTagger(penalty="l1", solver=solver).fit(*CHAINS)
    tagger.save(tmp_path / "tagger.mm")
    loaded = mm.load(tmp_path / "tagger.mm")
    assert repr(loaded.solver) == repr(solver)
    again = tagger.set_params(solver=mm.ColumnGeneration(start=tagger.weights_)).fit(*CHAINS)
    again.save(tmp_path / "again.mm")
    assert mm.load(tmp_path / "again.mm").solver.start == "zero"  # weights to start from are not stored


def test_unit_margins_are_the_default_of_the_penalty():
    default = mm.SequenceTagger(penalty="l1", tol=1e-6).fit(*CHAINS)
    assert default.get_params()["rescaling"] is None
    unit = mm.SequenceTagger(penalty="l1", rescaling="unit", tol=1e-6).fit(*CHAINS)
    margin = mm.SequenceTagger(penalty="l1", rescaling="margin", tol=1e-6).fit(*CHAINS)
    assert default.certificate_ == unit.certificate_ != margin.certificate_


def test_files_of_before_have_the_quadratic_penalty(tmp_path):
    tagger = mm.SequenceTagger(rescaling="margin").fit(*CHAINS)
    tagger.save(tmp_path / "old.mm")
    assert (mm.load(tmp_path / "old.mm").penalty, mm.load(tmp_path / "old.mm").rescaling) == ("l2", "margin")


def test_sgd_does_not_take_the_penalty():
    with pytest.raises(ValueError, match=r'penalty="l1".*solver="sgd"'):
        mm.SequenceTagger(penalty="l1", solver="sgd").fit(*CHAINS)
    with pytest.raises(ValueError, match=r'penalty="l1"'):
        mm.MulticlassClassifier(penalty="l1", solver="sgd").partial_fit(TABLE, LABELS, classes=[0, 1, 2])


WORDS = [[f"w{RNG.integers(60)}", f"x{label}"] for label in LABELS]
TEXTS = [[WORDS[i : i + 4] for i in range(0, 40, 4)], [part.tolist() for part in np.array_split(LABELS, 10)]]


TEMPLATE = ["U0:%x[0,0]/%x[-1,1]", "U1:%x[0,1]", "U2:%x[0,0]"]


@pytest.mark.parametrize(
    "features", [None, mm.TextFeatures([Window(1, (0,)), Window(0)]), mm.TextFeatures(Template(TEMPLATE))], ids=repr
)
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_files_hold_the_features_that_have_weights(features, weights, tmp_path):
    X, y = TEXTS
    if features is not None:
        X = [[tuple(token) for token in sentence] for sentence in X]
    tagger = mm.SequenceTagger(features=features, weights=weights, penalty="l1", C=0.5).fit(X, y)
    tagger.save(tmp_path / "few.mm")
    loaded = mm.load(tmp_path / "few.mm")
    assert loaded.predict(X) == tagger.predict(X)
    assert loaded.predict(X[:1]) == tagger.predict(X[:1])
    rows = np.asarray((tagger.coef_ != 0).sum(axis=1)) > 0
    used = [name for name, row in zip(tagger.features_.names(), rows, strict=True) if row]
    assert 0 < len(used) < len(rows) / 2
    assert set(loaded.features_.names()) - {tagger.features_.names()[0]} == set(used) - {tagger.features_.names()[0]}
    loaded.save(tmp_path / "again.mm")
    assert (tmp_path / "again.mm").read_bytes() == (tmp_path / "few.mm").read_bytes()
