"""Weights that must not be negative, named by group, feature or index, against the constrained reference."""

import numpy as np
import pandas as pd
import pytest

import maxmargin as mm
from reference.problems import chain_planes, multiclass_planes, random_chains, random_multiclass
from reference.qp import solve_primal

X, Y = random_chains(10, 3, 2, lengths=(1, 4), seed=3)
LISTS = [y.tolist() for y in Y]
TRANSITIONS = np.r_[np.zeros(6, bool), np.ones(9, bool)]


@pytest.mark.parametrize("given", ["transition", ["transition"], TRANSITIONS, np.arange(6, 15), list(range(6, 15))])
def test_groups_of_a_chain(given):
    best = solve_primal(chain_planes(X, Y, 3).planes, 0.2, positive=TRANSITIONS).objective
    for fitted in (
        mm.StructuredSVM(mm.Chain(), C=0.2, positive=given, tol=1e-8).fit(X, LISTS),
        mm.SequenceTagger(C=0.2, positive=given, tol=1e-8).fit(X, LISTS),
    ):
        assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
        assert fitted.layout_.groups(fitted.weights_)["transition"].min() >= 0


@pytest.mark.parametrize("given", [["b", "d"], [1, 3], np.array([1, 3])])
def test_features_of_a_classifier(given):
    inputs, classes = random_multiclass(20, 3, 4, seed=1)
    planes = multiclass_planes(inputs, classes, 3).planes
    mask = np.zeros((4, 3), bool)
    mask[[1, 3]] = True
    frame = pd.DataFrame(inputs, columns=list("abcd"))
    fitted = mm.MulticlassClassifier(C=0.5, positive=given, fit_intercept=False, tol=1e-8).fit(frame, classes)
    assert (fitted.coef_[:, [1, 3]] >= 0).all()
    assert (fitted.coef_[:, [0, 2]] < 0).any()
    best = solve_primal(planes, 0.5, positive=mask.ravel()).objective
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("given", "message"), [(["e"], "names the feature 'e'"), ([4], "names the feature 4")])
def test_unknown_features_are_named(given, message):
    inputs, classes = random_multiclass(20, 3, 4, seed=1)
    with pytest.raises(ValueError, match=message):
        mm.MulticlassClassifier(positive=given).fit(inputs, classes)


@pytest.mark.parametrize(
    ("given", "message"),
    [("transitions", "positive names 'transitions'"), ([15], "names weight 15"), ([-1], "names weight -1")],
)
def test_unknown_groups_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuredSVM(mm.Chain(), positive=given).fit(X, LISTS)
