"""What a first classifier says around each pixel, for a second one to learn from.

A pixel alone cannot tell the dark of a horse from the dark of a wood; that its surroundings look like a horse, and that
its colour is one which this image has where a horse is likely, can. Tu, Bai (2010), Auto-context and its application to
high-level vision tasks and 3D brain image segmentation.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import ndimage
from scipy.special import expit

from maxmargin.features.own_colours import PictureColours
from maxmargin.features.pixel_classifier import log_odds

__all__ = ["Surroundings", "surroundings"]

_SCALES = (1 / 75, 1 / 25, 1 / 11)  # of the usual side of an image: deviations of the weights around a pixel
_STEPS = (1 / 18, 1 / 7)  # of the same: how far the looks into all directions go
_LARGEST = 1e5  # side of an image that a file may speak of: filters get that long


def _ways(ndim: int) -> np.ndarray:
    """Unit vectors along the axes and the diagonals of the image, either way, (2 ndim + 2^ndim, ndim)."""
    axes = np.concatenate([np.eye(ndim), -np.eye(ndim)])
    return np.concatenate([axes, np.array([*product((-1.0, 1.0), repeat=ndim)]) / np.sqrt(ndim)])


def _elsewhere(image: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The value a step away from each pixel, the nearest one where that is outside."""
    for axis, (n, offset) in enumerate(zip(image.shape, np.rint(step).astype(int), strict=True)):
        image = image.take(np.clip(np.arange(n) + offset, 0, n - 1), axis=axis)
    return image


def surroundings(picture: np.ndarray, odds: np.ndarray, limits: np.ndarray, side: float) -> np.ndarray:
    """Features of each pixel from the log-odds ``odds`` (*shape) of a picture (*shape, channels), float32 (*shape, K).

    Formula: the log-odds; ``p = sigmoid(odds)`` smoothed at three scales; p smoothed and taken from two distances along
    the axes and diagonals; the position; the log ratio of the picture's colours where p is large and where it is small
    (:class:`~maxmargin.features.own_colours.PictureColours`, with its ``limits``), plain and smoothed. Scales and
    distances are shares of ``side`` pixels, the usual side of the training images. K is 24 for images and 37 for
    volumes. Complexity: O(pixels) times K and the lengths of the filters.
    """
    p = expit(odds)
    parts = [odds, *(ndimage.gaussian_filter(p, side * scale) for scale in _SCALES)]
    for share in _STEPS:
        smooth = ndimage.gaussian_filter(p, side * share / 2)
        parts += [_elsewhere(smooth, side * share * way) for way in _ways(p.ndim)]
    places = np.meshgrid(*[np.linspace(-1.0, 1.0, n) for n in p.shape], indexing="ij")
    ratio = PictureColours(picture, limits).log_ratio(p, 1.0 - p)
    return np.stack([*parts, *places, ratio, ndimage.gaussian_filter(ratio, 2.0)], axis=-1).astype(np.float32)


class Surroundings(NamedTuple):
    """A classifier of surroundings: the usual side, mean and scale (K,) of the features, its table (K + 1, K + 1)."""

    side: float
    mean: np.ndarray
    scale: np.ndarray
    table: np.ndarray

    def check(self, ndim: int) -> None:
        """Refuse what is no classifier of the surroundings in images of ``ndim`` axes: files may say anything."""
        K = 1 + len(_SCALES) + len(_STEPS) * len(_ways(ndim)) + ndim + 2
        if not (isinstance(self.side, float) and 1.0 <= self.side <= _LARGEST):
            raise ValueError(f"its context_ has a side that is not a number from 1 to {_LARGEST:g}")
        for array, shape in zip(self[1:], ((K,), (K,), (K + 1, K + 1)), strict=True):
            numeric = isinstance(array, np.ndarray) and array.dtype.kind == "f"
            if not numeric or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"its context_ does not hold finite numbers of shape {shape}")
        if not (self.scale > 0).all():
            raise ValueError("its context_ has scales that are not positive")

    def scaled(self, features: np.ndarray) -> np.ndarray:
        """Standardised features and a constant 1, float32 (*shape, K + 1)."""
        whole = np.ones((*features.shape[:-1], features.shape[-1] + 1), np.float32)
        whole[..., :-1] = (features - self.mean) / self.scale
        return whole

    def log_odds(self, picture: np.ndarray, odds: np.ndarray, limits: np.ndarray) -> np.ndarray:
        """The log-odds (*shape) of a picture whose first ones are ``odds``."""
        return log_odds(self.scaled(surroundings(picture, odds, limits, self.side)), self.table)
