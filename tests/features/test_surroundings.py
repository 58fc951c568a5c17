"""A second classifier that sees the log-odds of the first around each pixel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from scipy.special import expit

from maxmargin.features.images import ImageFeatures
from maxmargin.features.pixel_classifier import log_loss
from maxmargin.features.surroundings import surroundings
from maxmargin.inference.min_cut import directions

PLAIN = {"position": False, "texture": False, "orientation": False, "ridge": False, "mixture": 0, "own": False}


def squares(n, seed, noise):
    """Squares under noise that no pixel sees through alone."""
    rng, masks = np.random.default_rng(seed), []
    for _ in range(n):
        mask = np.zeros((24, 28), int)
        top, left = rng.integers(1, 10), rng.integers(1, 12)
        mask[top : top + 12, left : left + 13] = 1
        masks.append(mask)
    return [0.3 + 0.3 * mask + rng.normal(scale=noise, size=mask.shape) for mask in masks], masks


def held_out_loss(features, images, masks):
    odds = [x["node"] @ features.log_odds_weights() for x in features.transform(images)]
    return log_loss(odds, masks) / len(masks)


@pytest.mark.parametrize("shape", [(9, 12), (6, 7, 8)])
def test_looks_into_all_directions(shape):
    """The parts that look away from a pixel, one pixel at a time."""
    odds = np.random.default_rng(0).normal(scale=2.0, size=shape)
    found = surroundings(expit(odds)[..., None], odds, np.array([[0.0], [1.0]]), 36.0)
    ndim = len(shape)
    assert found.shape == (*shape, {2: 24, 3: 37}[ndim]) and found.dtype == np.float32
    np.testing.assert_allclose(found[..., 0], odds, rtol=1e-6)
    near = ndimage.gaussian_filter(expit(odds), 1.0)  # a step of 2 = 36 / 18 pixels
    for place in np.ndindex(*shape):
        before, behind = (
            tuple(min(max(p + way * 2 * (axis == 0), 0), shape[axis] - 1) for axis, p in enumerate(place))
            for way in (-1, 1)
        )
        corner = tuple(max(p - 1, 0) for p in place)  # 2 / sqrt(2) and 2 / sqrt(3), rounded
        np.testing.assert_allclose(found[(*place, 4)], near[behind], rtol=1e-5)
        np.testing.assert_allclose(found[(*place, 4 + ndim)], near[before], rtol=1e-5)
        np.testing.assert_allclose(found[(*place, 4 + 2 * ndim)], near[corner], rtol=1e-5)


def test_surroundings_help_where_pixels_are_noisy():
    images, masks = squares(20, 0, noise=0.4)
    fits = [
        ImageFeatures(**PLAIN, context=context).fit(images[:12], masks[:12], directions(4)) for context in (False, True)
    ]
    alone, both = (held_out_loss(features, images[12:], masks[12:]) for features in fits)
    assert fits[1].context_ and both < 0.6 * alone


@pytest.mark.parametrize(("n", "alone"), [(12, True), (11, False)], ids=["no help", "few images"])
def test_surroundings_are_left_out(n, alone):
    images, masks = squares(n, 0, noise=0.4)
    if alone:  # no pixel tells of another
        rng = np.random.default_rng(0)
        masks = [rng.integers(2, size=(20, 20)) for _ in range(n)]
        images = [mask + rng.normal(scale=0.5, size=mask.shape) for mask in masks]
    features = ImageFeatures(**PLAIN)
    made = features.fit_transform(images, masks, directions(4))
    plain = ImageFeatures(**PLAIN, context=False)
    assert not features.context_
    for x, z in zip(made, plain.fit_transform(images, masks, directions(4)), strict=True):
        np.testing.assert_array_equal(x["node"], z["node"])


def test_files_keep_the_second_classifier_and_refuse_others():
    images, masks = squares(12, 1, noise=0.4)
    features = ImageFeatures(**PLAIN)
    features.fit(images, masks, directions(4))
    parameters, learned = features.to_state()
    again = ImageFeatures.from_state(parameters, learned)
    for x, z in zip(features.transform(images), again.transform(images), strict=True):
        np.testing.assert_array_equal(x["node"], z["node"])
    ((side, mean, scale, table),) = learned["context_"]
    for second, words in [
        ((np.nan, mean, scale, table), "a side that is not a number"),
        ((1e9, mean, scale, table), "a side that is not a number"),
        ((side, mean[:-1], scale, table), "finite numbers of shape"),
        ((side, mean, scale, np.full_like(table, np.inf)), "finite numbers of shape"),
        ((side, mean, -scale, table), "scales that are not positive"),
    ]:
        with pytest.raises(ValueError, match=words):
            ImageFeatures.from_state(parameters, {**learned, "context_": [second]})
    with pytest.raises(ValueError, match="without a classifier or context"):
        ImageFeatures.from_state(parameters, {**learned, "context_": 2 * learned["context_"]})
