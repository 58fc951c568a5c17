"""Masks that follow strokes, against all labelings of tiny images and against cuts from the start."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.estimators.interactive_segmentation import InteractiveSegmentation
from maxmargin.features.images import ImageFeatures
from maxmargin.inference.min_cut import directions, grid_cut

KINDS = [(4, (31, 40)), (8, (25, 33)), (6, (7, 12, 15)), (26, (6, 9, 11))]


def energies(excess, capacities, neighbours, masks):
    """Energy of each mask (k, *shape), pair by pair."""
    total = (masks * excess).sum(axis=tuple(range(1, masks.ndim)))
    for step, capacity in zip(directions(neighbours), capacities, strict=True):
        for place in np.ndindex(*excess.shape):
            other = tuple(np.add(place, step))
            if all(0 <= i < n for i, n in zip(other, excess.shape, strict=True)):
                total = total + capacity[place] * (masks[:, *place] != masks[:, *other])
    return total


def stroke(rng, shape):
    """A box of one label at a random place, thin along the first axis."""
    scribble = np.full(shape, -1)
    corner = rng.integers(0, shape)
    sides = [2, *rng.integers(2, 9, len(shape) - 1)]
    scribble[tuple(slice(c, c + s) for c, s in zip(corner, sides, strict=True))] = rng.integers(2)
    return scribble


@pytest.mark.parametrize("neighbours, shape", [(4, (3, 4)), (8, (3, 3)), (6, (2, 2, 3)), (26, (2, 3, 2))])
def test_the_best_of_all_masks_that_agree(neighbours, shape):
    rng = np.random.default_rng(neighbours)
    masks = np.array(list(itertools.product((0, 1), repeat=int(np.prod(shape))))).reshape(-1, *shape)
    for _ in range(5):
        excess = rng.integers(-4, 5, shape).astype(float)
        capacities = rng.integers(0, 4, (neighbours // 2, *shape)).astype(float)
        every = energies(excess, capacities, neighbours, masks)
        session = InteractiveSegmentation(excess, capacities, neighbours)
        known = np.full(shape, -1)
        for _ in range(6):
            place, label = tuple(rng.integers(0, shape)), int(rng.integers(2))
            scribble = np.full(shape, -1)
            known[place] = scribble[place] = label
            mask = session.update(scribble)
            agree = ((masks == known) | (known == -1)).all(axis=tuple(range(1, masks.ndim)))
            assert agree[(masks == mask).all(axis=tuple(range(1, masks.ndim)))].all()
            assert every[(masks == mask).all(axis=tuple(range(1, masks.ndim)))].item() == every[agree].min()
            np.testing.assert_array_equal(session.scribble, known)


@pytest.fixture(scope="module", params=KINDS, ids=str)
def segmenter_and_image(request):
    neighbours, shape = request.param
    rng = np.random.default_rng(0)
    mask = np.zeros(shape, int)
    mask[tuple(slice(n // 4, 3 * n // 4) for n in shape)] = 1
    images = [mask[..., None] + rng.normal(scale=1.2, size=(*shape, 2)) for _ in range(3)]
    segmenter = ImageSegmenter(features=ImageFeatures(mixture=0), neighbours=neighbours, tol=0.05)
    return segmenter.fit(images[:2], [mask] * 2), images[2]


def test_the_mask_is_that_of_predict_and_of_a_cut_from_the_start(segmenter_and_image):
    segmenter, image = segmenter_and_image
    rng = np.random.default_rng(1)
    session = segmenter.interactive(image)
    np.testing.assert_array_equal(session.mask, segmenter.predict([image])[0])
    (x,) = segmenter.features_.transform([image])
    one = -(x["node"].astype(float) @ segmenter.node_coef_)
    capacities = x["edge"].astype(float) @ segmenter.edge_coef_
    assert capacities.max() > 0
    changes = 0
    for round in range(25):
        before = session.mask.copy()
        mask = session.update(stroke(rng, one.shape), replace=round % 8 == 7)
        changes += not np.array_equal(before, mask)
        unary = np.stack([np.zeros_like(one), one], axis=-1)
        unary[session.scribble == 1, 0] = unary[session.scribble == 0, 1] = np.inf
        np.testing.assert_array_equal(mask, grid_cut(unary, capacities, segmenter.neighbours)[0])
        np.testing.assert_array_equal(
            mask, segmenter.predict([image], scribbles=[session.scribble], learn_colours=False)[0]
        )
        assert mask.dtype == np.uint8
        assert mask is session.mask
    assert changes > 10


def test_strokes_add_up_and_are_undone(segmenter_and_image):
    segmenter, image = segmenter_and_image
    session = segmenter.interactive(image)
    first = session.mask.copy()
    nothing = np.full(first.shape, -1)
    block, line = nothing.copy(), nothing.copy()
    block[:2] = 1
    line[1] = 0
    session.update(block)
    mask = session.update(line)
    assert (mask[0] == 1).all() and (mask[1] == 0).all()  # the last one counts
    session.scribble[:] = 1  # a copy
    np.testing.assert_array_equal(session.update(nothing), mask)
    np.testing.assert_array_equal(
        session.update(block, replace=True), segmenter.predict([image], scribbles=[block], learn_colours=False)[0]
    )
    np.testing.assert_array_equal(session.update(nothing, replace=True), first)
    assert (session.scribble == -1).all()
    for kind in (bool, np.uint8, float):  # labels of any type; here every pixel is known
        np.testing.assert_array_equal(session.update(first.astype(kind), replace=True), first)


def test_features_and_models_without_edges():
    rng = np.random.default_rng(2)
    X = [{"node": rng.normal(size=(6, 7, 3))} for _ in range(3)]
    masks = [(x["node"][..., 0] > 0).astype(int) for x in X]
    segmenter = ImageSegmenter(tol=0.1).fit(X, masks)
    session = segmenter.interactive(X[0])
    scribble = np.full((6, 7), -1)
    scribble[2, 3] = 1 - session.mask[2, 3]
    expected = session.mask.copy()
    expected[2, 3] = scribble[2, 3]
    np.testing.assert_array_equal(session.update(scribble), expected)
    with pytest.raises(ValueError, match="fitted on mappings of feature arrays"):
        segmenter.interactive(np.zeros((6, 7)))


def test_files(tmp_path, segmenter_and_image):
    segmenter, image = segmenter_and_image
    np.save(tmp_path / "image.npy", image)
    session = segmenter.interactive(tmp_path / "image.npy")
    scribble = stroke(np.random.default_rng(3), session.mask.shape)
    np.save(tmp_path / "scribble.npy", scribble)
    expected = segmenter.predict([image], scribbles=[scribble], learn_colours=False)[0]
    np.testing.assert_array_equal(session.update(tmp_path / "scribble.npy"), expected)


def test_what_is_wrong_is_named(segmenter_and_image):
    segmenter, image = segmenter_and_image
    session = segmenter.interactive(image)
    mask, known = session.mask.copy(), session.scribble
    scribble = known.copy()
    with pytest.raises(ValueError, match=r"the scribble has shape .* the image has .* 0 or 1 where it is known"):
        session.update(scribble[1:])
    scribble.flat[1] = 7
    with pytest.raises(ValueError, match=r"the scribble has the label 7 at \(0, .*1\); give 0 or 1"):
        session.update(scribble)
    with pytest.raises(ValueError, match="the label nan at"):
        session.update(np.full(mask.shape, np.nan))
    np.testing.assert_array_equal(session.mask, mask)
    np.testing.assert_array_equal(session.scribble, known)
    with pytest.raises(NotFittedError, match="fit"):
        ImageSegmenter().interactive(image)
