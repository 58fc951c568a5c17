"""Graphs of regions: by hand, by plain loops over pixels, and the promises of the segmentation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from maxmargin.features.regions import region_graph, region_labels, region_sizes, superpixels

SEGMENTS = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 2, 2]])


def test_by_hand():
    image = np.where(SEGMENTS == 1, 1.0, 0.0)
    x = region_graph(SEGMENTS, image)
    assert x["edges"].tolist() == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_allclose(x["node"][:, 0], [0, 1, 0])  # mean colour
    np.testing.assert_allclose(x["node"][:, 1], 0)  # deviation
    np.testing.assert_allclose(x["node"][:, 2], [1 / 3, 1 / 3, 5 / 6])  # down
    np.testing.assert_allclose(x["node"][:, 3], [1 / 4, 3 / 4, 1 / 2])  # across
    np.testing.assert_allclose(x["node"][:, 4], 1 / 3)  # share
    np.testing.assert_allclose(x["edge"][:, 1], 2 / 8)  # two pixels against the 4 x 2 of a square of four
    np.testing.assert_allclose(x["edge"][:, 2], [np.exp(-6) / 4, 1 / 4, np.exp(-6) / 4])  # 4 * 1 / (2 / 3)
    assert region_sizes(SEGMENTS).tolist() == [4, 4, 4]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 6), (1, 7), (3, 4, 3)]), st.integers(1, 6))
def test_against_loops_over_pixels(seed, shape, n):
    rng = np.random.default_rng(seed)
    segments = np.unique(rng.integers(0, n, shape), return_inverse=True)[1].reshape(shape)
    image = rng.random((*shape, 2))
    x = region_graph(segments, image)
    lengths = {}
    for p in np.ndindex(shape):
        for axis in range(len(shape)):
            q = list(p)
            q[axis] += 1
            if q[axis] < shape[axis] and segments[p] != segments[tuple(q)]:
                pair = tuple(sorted((segments[p], segments[tuple(q)])))
                lengths[pair] = lengths.get(pair, 0) + 1
    assert [tuple(e) for e in x["edges"].tolist()] == sorted(lengths)
    for k in range(segments.max() + 1):
        np.testing.assert_allclose(x["node"][k, :2], image[segments == k].mean(axis=0))
        np.testing.assert_allclose(x["node"][k, 2:4], image[segments == k].std(axis=0), atol=1e-7)
    axes = len(shape)
    for e, (p, q) in enumerate(x["edges"]):
        square = 2 * axes * min((segments == p).sum(), (segments == q).sum()) ** ((axes - 1) / axes)
        assert x["edge"][e, 1] == pytest.approx(lengths[p, q] / square)
    assert (x["edge"] >= 0).all()


def test_majority_labels():
    mask = np.array([[3, 3, 7, 7], [3, 7, 7, 3], [255, 255, 255, 3]])
    assert region_labels(SEGMENTS, mask).tolist() == [3, 7, 255]
    assert region_labels(SEGMENTS, mask, ignore=255).tolist() == [3, 7, 3]
    assert region_labels(SEGMENTS, np.full((3, 4), 255), ignore=255).tolist() == [255, 255, 255]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([(20, 30), (7, 40), (13, 1)]))
def test_superpixels_are_connected_and_numbered(seed, n, shape):
    pytest.importorskip("skimage")
    rng = np.random.default_rng(seed)
    image = ndimage.gaussian_filter(rng.random((*shape, 3)), (2, 2, 0))
    segments = superpixels(image, min(n, shape[0] * shape[1]))
    assert segments.shape == shape and (np.bincount(segments.ravel()) > 0).all()
    for k in range(segments.max() + 1):
        assert ndimage.label(segments == k)[1] == 1


def test_superpixels_follow_edges():
    pytest.importorskip("skimage")
    image = np.zeros((40, 60, 3), np.uint8)
    image[8:30, 13:44] = (200, 30, 90)
    segments = superpixels(image, 60)
    inside = image[..., 0] > 0
    purity = [max(inside[segments == k].mean(), 1 - inside[segments == k].mean()) for k in range(segments.max() + 1)]
    assert np.average(purity, weights=region_sizes(segments)) > 0.99
    assert 30 <= segments.max() + 1 <= 90


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: superpixels(np.zeros(5)), r"give numbers of shape \(height, width\)"),
        (lambda: superpixels(np.full((3, 3), np.nan)), "NaN or infinite pixels"),
        (lambda: superpixels(np.zeros((3, 3)), 10), "from 1 to the 9 pixels"),
        (lambda: region_graph(SEGMENTS, np.zeros((2, 4))), "they must agree"),
        (lambda: region_graph(SEGMENTS * 2, np.zeros((3, 4))), "belongs to region 1"),
        (lambda: region_graph(SEGMENTS - 1, np.zeros((3, 4))), "whole numbers >= 0"),
        (lambda: region_labels(SEGMENTS, np.zeros((2, 2))), "they must agree"),
    ],
    ids=["flat", "nan", "many", "shape", "gap", "negative", "mask"],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
