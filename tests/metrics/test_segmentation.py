"""Overlap, accuracy and boundaries of masks by hand and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, jaccard_score

from maxmargin.metrics.segmentation import boundary_f, mean_dice, mean_iou, pixel_accuracy

METRICS = [mean_iou, mean_dice, pixel_accuracy, boundary_f]


def square(size, top, left, side):
    mask = np.zeros((size, size), int)
    mask[top : top + side, left : left + side] = 1
    return mask


@pytest.mark.parametrize("shape", [(6, 7), (3, 4, 5)])
@pytest.mark.parametrize("ours, theirs", [(mean_iou, jaccard_score), (mean_dice, f1_score)])
def test_overlap_and_accuracy_agree_with_a_peer(ours, theirs, shape):
    rng = np.random.default_rng(0)
    true = [rng.choice([0, 1, 255], shape, p=[0.5, 0.3, 0.2]) for _ in range(5)]
    found = [rng.integers(0, 2, shape) for _ in range(5)]
    used = [(t[t != 255], f[t != 255]) for t, f in zip(true, found, strict=True)]
    assert ours(true, found) == pytest.approx(np.mean([theirs(t, f) for t, f in used]))
    assert pixel_accuracy(true, found) == pytest.approx(np.mean([accuracy_score(t, f) for t, f in used]))


def test_by_hand():
    assert mean_iou([[[1, 1, 0]]], [[[1, 0, 1]]]) == pytest.approx(1 / 3)
    assert mean_dice([[[1, 1, 0]]], [[[1, 0, 1]]]) == pytest.approx(1 / 2)
    assert pixel_accuracy([[[1, 1, 0]]], [[[1, 0, 1]]]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("metric", METRICS)
def test_same_masks_and_empty_masks_count_one(metric):
    mask = square(9, 2, 3, 4)
    assert metric([mask, np.zeros((3, 3))], [mask, np.zeros((3, 3))]) == 1.0


def test_boundary_moved_within_and_beyond_the_tolerance():
    mask = square(30, 8, 8, 10)
    assert boundary_f([mask], [square(30, 8, 10, 10)], tolerance=2) == 1.0
    assert boundary_f([mask], [square(30, 8, 10, 10)], tolerance=1) < 1.0
    assert boundary_f([mask], [square(30, 20, 20, 5)], tolerance=1) == 0.0
    assert boundary_f([mask], [np.zeros_like(mask)]) == 0.0


def test_boundary_by_hand():
    # a row: the boundary pixels are those at the ends of the runs, the edge of the image is none
    true, found = np.array([[0, 1, 1, 1, 0, 0, 0, 0]]), np.array([[0, 1, 1, 1, 1, 1, 1, 0]])
    assert boundary_f([true], [found], tolerance=0) == pytest.approx(0.5)
    assert boundary_f([true], [found], tolerance=3) == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_errors_name_the_mask(metric):
    with pytest.raises(ValueError, match="mask 1 of y_true has shape"):
        metric([np.ones((2, 2)), np.ones((2, 2))], [np.ones((2, 2)), np.ones((2, 3))])
    with pytest.raises(ValueError, match="2 masks and y_pred has 1"):
        metric([np.ones((2, 2))] * 2, [np.ones((2, 2))])
    with pytest.raises(ValueError, match="no masks"):
        metric([], [])
