"""The generic estimator: compiled models, models in plain Python, and that they are the same thing."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations import RescaledHinge
from reference.problems import chain_planes, random_chains, random_multiclass
from reference.qp import solve_primal

from .plain_chain import PlainChain

X, Y = random_chains(10, 3, 2, lengths=(1, 4), seed=3)
LISTS = [y.tolist() for y in Y]
SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_chain_is_a_sequence_tagger(solver):
    svm = mm.StructuredSVM(mm.Chain(ends=True), C=0.2, solver=solver, tol=1e-2).fit(X, LISTS)
    tagger = mm.SequenceTagger(ends=True, C=0.2, solver=solver, tol=1e-2).fit(X, LISTS)
    np.testing.assert_array_equal(svm.coef_, tagger.weights_)
    assert svm.certificate_ == tagger.certificate_
    assert svm.predict(X) == tagger.predict(X)


def test_multiclass_is_the_classifier():
    inputs, classes = random_multiclass(20, 4, 3, seed=1)
    svm = mm.StructuredSVM(mm.Multiclass(fit_intercept=True)).fit(inputs, classes)
    classifier = mm.MulticlassClassifier().fit(inputs, classes)
    np.testing.assert_array_equal(svm.coef_, classifier.weights_)
    assert svm.predict(inputs) == classifier.predict(inputs).tolist()
    assert svm.score(inputs, classes) == pytest.approx(classifier.score(inputs, classes) - 1)


@pytest.mark.filterwarnings("error")
def test_files_keep_the_model_and_the_formulation(tmp_path):
    inputs, classes = random_multiclass(20, 4, 3, seed=1)
    sets = [{label, "all"} for label in classes]
    formulation = RescaledHinge(rescaling="unit")
    for model, outputs in ((mm.Multiclass(), classes), (mm.LabelSet(graph="tree"), sets)):
        svm = mm.StructuredSVM(model, formulation=formulation).fit(inputs, outputs)
        svm.save(tmp_path / "model.mm")
        loaded = mm.StructuredSVM.load(tmp_path / "model.mm")
        assert loaded.predict(inputs) == svm.predict(inputs)
        assert loaded.formulation.get_params() == formulation.get_params()
        assert type(loaded.model) is type(model)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_chain_in_plain_python_reaches_the_compiled_optimum(solver, loss):
    tol = {"bcfw": 1e-2, "frank_wolfe": 5e-2}.get(solver, 1e-5)
    compiled = mm.StructuredSVM(mm.Chain(), C=0.2, loss=loss, tol=1e-8).fit(X, LISTS).certificate_
    plain = mm.StructuredSVM(PlainChain(3), C=0.2, loss=loss, solver=solver, tol=tol).fit(X, LISTS)
    assert plain.status_.converged
    assert compiled.dual * (1 - 1e-9) <= plain.certificate_.primal <= compiled.primal * (1 + tol)
    assert plain.certificate_.dual <= compiled.primal * (1 + 1e-9)


def test_a_chain_in_plain_python_predicts_the_same():
    plain = mm.StructuredSVM(PlainChain(3), C=0.2, tol=1e-8).fit(X, LISTS)
    compiled = mm.SequenceTagger(C=0.2, tol=1e-8).fit(X, LISTS)
    expected = np.concatenate([compiled.coef_.ravel(), compiled.transition_.ravel()])
    np.testing.assert_allclose(plain.coef_, expected, atol=1e-4)
    assert plain.predict(X) == compiled.predict(X)
    wrong = sum(a != b for y, found in zip(LISTS, plain.predict(X), strict=True) for a, b in zip(y, found, strict=True))
    assert plain.score(X, LISTS) == pytest.approx(-wrong / len(X))


def test_early_stopping_and_warm_start_of_a_plain_model():
    stopping = mm.EarlyStopping((X, LISTS), patience=100)
    svm = mm.StructuredSVM(PlainChain(3), C=0.2, callbacks=[stopping], warm_start=True).fit(X, LISTS)
    assert stopping.scores_[-1] == pytest.approx(svm.score(X, LISTS))
    passes = svm.n_iter_
    assert svm.fit(X, LISTS).n_iter_ < passes
    with pytest.raises(ValueError, match=r"warm start needs the same examples"):
        svm.fit(X, [[(k + 1) % 3 for k in y] for y in LISTS])


def test_an_inexact_argmax_gives_an_estimate_and_says_so():
    class Rough(PlainChain):
        exact = False

    svm = mm.StructuredSVM(Rough(3), C=0.2, max_passes=10)
    with pytest.warns(UserWarning):
        svm.fit(X, LISTS)
    assert not svm.certificate_.certified
    best = solve_primal(chain_planes(X, Y, 3).planes, 0.2).objective
    assert svm.certificate_.dual <= best * (1 + 1e-9)


def test_positive_weights_by_mask_and_by_index():
    positive = np.r_[np.zeros(6, bool), np.ones(9, bool)]
    best = solve_primal(chain_planes(X, Y, 3).planes, 0.2, positive=positive)
    for given in (positive, np.flatnonzero(positive), list(range(6, 15))):
        svm = mm.StructuredSVM(PlainChain(3), C=0.2, positive=given, tol=1e-8).fit(X, LISTS)
        assert svm.certificate_.primal == pytest.approx(best.objective, rel=1e-6)
        assert (svm.coef_[6:] >= 0).all()
    with pytest.raises(ValueError, match=r"positive has shape \(3,\); the model has 15 weights"):
        mm.StructuredSVM(PlainChain(3), positive=np.ones(3, bool)).fit(X, LISTS)
    with pytest.raises(ValueError, match=r"positive names weight 15; the model has weights 0 to 14"):
        mm.StructuredSVM(PlainChain(3), positive=[15]).fit(X, LISTS)


def test_a_formulation_takes_the_place_of_the_loss():
    by_name = mm.StructuredSVM(mm.Chain(), loss="squared_hinge").fit(X, LISTS)
    by_object = mm.StructuredSVM(mm.Chain(), formulation=mm.MarginRescaling("squared_hinge")).fit(X, LISTS)
    np.testing.assert_array_equal(by_name.coef_, by_object.coef_)
    searched = mm.StructuredSVM(mm.Chain(), formulation=mm.MarginRescaling()).set_params(
        formulation__loss="squared_hinge"
    )
    assert searched.formulation.loss == "squared_hinge"
