"""Quality of masks: overlap, accuracy and boundaries, each averaged over images.

Masks are arrays of 0 and 1 with any number of dimensions; pixels with another true label are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["boundary_f", "mean_dice", "mean_iou", "pixel_accuracy"]


def mean_iou(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike], sample_weight: ArrayLike | None = None) -> float:
    """Intersection over union of the foregrounds, ``|A & B| / |A | B|``; 1 where both are empty.

    ``sample_weight`` (n,) says how much each image counts in the mean.
    """

    def iou(true: np.ndarray, found: np.ndarray) -> float:
        union = np.count_nonzero(true | found)
        return np.count_nonzero(true & found) / union if union else 1.0

    return _mean(iou, y_true, y_pred, sample_weight)


def mean_dice(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike]) -> float:
    """Dice coefficient of the foregrounds, ``2 |A & B| / (|A| + |B|)``; 1 where both are empty."""

    def dice(true: np.ndarray, found: np.ndarray) -> float:
        both = np.count_nonzero(true) + np.count_nonzero(found)
        return 2.0 * np.count_nonzero(true & found) / both if both else 1.0

    return _mean(dice, y_true, y_pred)


def pixel_accuracy(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike]) -> float:
    """Share of pixels with the right label; 1 for an image whose pixels are all ignored."""
    return _mean(lambda true, found: float(np.mean(true == found)) if true.size else 1.0, y_true, y_pred)


def boundary_f(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike], tolerance: float = 2.0) -> float:
    """F1 of the boundaries: a boundary pixel is right when the other boundary is at most ``tolerance`` away.

    Boundary pixels are foreground pixels with a neighbour (along an axis) in the background; the edge of the image
    does not count. An image scores 1 if neither mask has a boundary, and 0 if only one has.

    References
    ----------
    Martin, Fowlkes, Malik (2004), Learning to detect natural image boundaries using local brightness, color, and
    texture cues; matched here by distance, as Csurka et al. (2013) do.
    """
    from scipy.ndimage import binary_erosion, distance_transform_edt

    scores = []
    for true, found in _pairs(y_true, y_pred):
        used = (true == 0) | (true == 1)
        masks = [(mask == 1) & used for mask in (true, found)]
        edges = [mask & ~binary_erosion(mask, border_value=1) for mask in masks]
        counts = [np.count_nonzero(edge) for edge in edges]
        if not all(counts):
            scores.append(float(counts[0] == counts[1]))
            continue
        near = [distance_transform_edt(~edge) <= tolerance for edge in edges]
        recall = np.count_nonzero(edges[0] & near[1]) / counts[0]
        precision = np.count_nonzero(edges[1] & near[0]) / counts[1]
        scores.append(2.0 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return float(np.mean(scores))


def _mean(
    score: Callable[[np.ndarray, np.ndarray], float], y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike],
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    values = []
    for true, found in _pairs(y_true, y_pred):
        used = (true == 0) | (true == 1)
        values.append(score(true[used] == 1, found[used] == 1))
    return float(np.average(values, weights=None if sample_weight is None else np.asarray(sample_weight)))


def _pairs(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike]) -> list[tuple[np.ndarray, np.ndarray]]:
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} masks and y_pred has {len(y_pred)}: pass one per image")
    if len(y_true) == 0:
        raise ValueError("there are no masks to score: pass at least one")
    pairs = [(np.asarray(true), np.asarray(found)) for true, found in zip(y_true, y_pred, strict=True)]
    for i, (true, found) in enumerate(pairs):
        if true.shape != found.shape:
            raise ValueError(f"mask {i} of y_true has shape {true.shape}, y_pred {found.shape}: pass equal shapes")
    return pairs
