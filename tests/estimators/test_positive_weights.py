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


@pytest.mark.parametrize("given", [["b", "d"], ["x1", "x3"], "indices", "mask"], ids=str)
def test_features_of_a_classifier(given):
    inputs, classes = random_multiclass(20, 3, 4, seed=1)
    planes = multiclass_planes(inputs, classes, 3).planes
    mask = np.zeros((4, 3), bool)
    mask[[1, 3]] = True
    frame = pd.DataFrame(inputs, columns=list("abcd")) if "b" in given else inputs
    if isinstance(given, str):  # places in weights_, which has padding
        stride = mm.Multiclass().bind(inputs, classes).n_weights // 4
        given = (
            np.repeat([False, True, False, True], stride)
            if given == "mask"
            else np.r_[stride : stride + 3, 3 * stride : 3 * stride + 3]
        )
    fitted = mm.MulticlassClassifier(C=0.5, positive=given, fit_intercept=False, tol=1e-8).fit(frame, classes)
    assert (fitted.coef_[:, [1, 3]] >= 0).all()
    assert (fitted.coef_[:, [0, 2]] < 0).any()
    best = solve_primal(planes, 0.5, positive=mask.ravel()).objective
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("given", "message"), [(["e"], "names 'e'"), ([99], "names weight 99")])
def test_unknown_features_are_named(given, message):
    inputs, classes = random_multiclass(20, 3, 4, seed=1)
    with pytest.raises(ValueError, match=message):
        mm.MulticlassClassifier(positive=given).fit(inputs, classes)


@pytest.mark.parametrize(("given", "free"), [(True, "intercept"), ("coef", "intercept"), ("intercept", "coef")])
def test_groups_of_a_classifier(given, free):
    inputs, classes = random_multiclass(20, 3, 4, seed=1)
    fitted = mm.MulticlassClassifier(positive=given).fit(inputs, classes)
    groups = fitted.layout_.groups(fitted.weights_)
    assert groups.pop(free).min() < 0
    assert min(block.min() for block in groups.values()) >= 0


@pytest.mark.parametrize(
    ("given", "message"),
    [("transitions", "positive names 'transitions'"), ([15], "names weight 15"), ([-1], "names weight -1")],
)
def test_unknown_groups_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuredSVM(mm.Chain(), positive=given).fit(X, LISTS)


def picture(rng):
    """Pixels whose first feature speaks for the foreground and whose second speaks against it."""
    mask = np.zeros((6, 6), np.uint8)
    mask[1:4, 2:5] = 1
    sign = 2.0 * mask - 1.0
    node = np.stack([sign + rng.normal(size=mask.shape), -sign + rng.normal(size=mask.shape)], axis=-1)
    return {"node": node, "edge": np.ones((2, *mask.shape, 1))}, mask


@pytest.mark.parametrize("given", ["node", True, [0, 1], np.array([True, True, False])])
def test_segmenters_keep_further_weights_positive(given):
    rng = np.random.default_rng(0)
    images, masks = map(list, zip(*(picture(rng) for _ in range(6)), strict=True))
    free = mm.ImageSegmenter(C=10.0, tol=1e-6).fit(images, masks)
    bound = mm.ImageSegmenter(C=10.0, tol=1e-6, positive=given).fit(images, masks)
    assert free.node_coef_[1] < -0.1 and (free.edge_coef_ >= 0).all()
    assert bound.node_coef_[1] == 0 and bound.node_coef_[0] > 0 and (bound.edge_coef_ >= 0).all()
    assert bound.certificate_.relative_gap <= 1e-6
    assert bound.certificate_.dual > free.certificate_.primal  # a smaller set has a higher minimum


def test_segmenters_say_which_weights_there_are():
    image, mask = picture(np.random.default_rng(1))
    with pytest.raises(ValueError, match="positive names 'colour'; the weights are node, edge"):
        mm.ImageSegmenter(positive="colour").fit([image], [mask])


def test_a_grid_keeps_its_edges_positive_in_any_estimator():
    """Checkerboards would like them negative, and then an argmax is no cut."""
    rng = np.random.default_rng(0)
    board = np.indices((6, 6)).sum(0) % 2
    images = [{"node": rng.normal(size=(6, 6, 2)), "edge": np.ones((2, 6, 6, 1))} for _ in range(4)]
    fitted = mm.StructuredSVM(mm.Grid(), tol=1e-4).fit(images, [board] * 4)
    assert fitted.status_.code == "converged" and fitted.weights_[2] == 0


def test_an_empty_list_leaves_all_weights_free():
    """So that solvers without sign constraints serve too."""
    free = mm.SequenceTagger(solver="sgd", positive=[], max_passes=20, tol=0.5).fit(X, LISTS)
    np.testing.assert_array_equal(
        free.weights_, mm.SequenceTagger(solver="sgd", max_passes=20, tol=0.5).fit(X, LISTS).weights_
    )
