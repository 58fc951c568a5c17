"""The colours of a single image: which of them occur where foreground is likely.

The colours of objects vary more between images than a mixture over all images can express, but their positions are
similar. So the colours of an image are counted twice, weighted by the probability of each pixel to be foreground and
background; the log ratio of the two histograms separates the colours of the object in this image from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.special import expit, logit

__all__ = ["PictureColours", "colour_range", "own_colours", "place_of_foreground", "places_of_foreground"]

_BINS = {1: 64, 2: 32, 3: 16}  # per channel, by the number of channels
_CELLS = 24  # per side of the map of positions
_MOST = 6.0  # largest log ratio: a few pixels of a colour prove little
_SURE = 0.02  # smallest probability at any position


def place_of_foreground(masks: Sequence[ArrayLike], ndim: int) -> np.ndarray:
    """How often each position is foreground, on a coarse map (24, ..., 24) to which all images are stretched."""
    return places_of_foreground(masks, ndim)[0]


def places_of_foreground(masks: Sequence[ArrayLike], ndim: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The map of :func:`place_of_foreground`, and for each image that of all the others."""
    shares = np.zeros((2, len(masks), *(_CELLS,) * ndim))
    for i, mask in enumerate(map(np.asarray, masks)):
        for label in (0, 1):
            smooth = ndimage.gaussian_filter((mask == label).astype(np.float64), 3.0)
            shares[label, i] = _stretched(smooth, (_CELLS,) * ndim)
    back, front = shares.sum(axis=1)

    def place(front: np.ndarray, back: np.ndarray) -> np.ndarray:
        return np.clip(front / np.maximum(front + back, 1e-9), _SURE, 1.0 - _SURE)

    whole = place(front, back)
    others = [place(front - shares[1, i], back - shares[0, i]) for i in range(len(masks))]
    return whole, others if len(masks) > 1 else [whole]


def colour_range(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Range of the histogram bins per channel, (2, channels): all values but one in 200 at either end."""
    some = np.concatenate([p.reshape(-1, p.shape[-1])[::37] for p in pictures])
    low, high = np.quantile(some, [0.005, 0.995], axis=0)
    return np.stack([low, np.maximum(high, low + 1e-6)])


class PictureColours:
    """The colours of one picture (*shape, channels), counted in bins between ``limits`` (2, channels).

    With more than three channels their mean is counted.
    """

    def __init__(self, picture: np.ndarray, limits: np.ndarray) -> None:
        if picture.shape[-1] not in _BINS:
            picture, limits = picture.mean(axis=-1, keepdims=True), limits.mean(axis=1, keepdims=True)
        self._bins = (_BINS[picture.shape[-1]],) * picture.shape[-1]
        scaled = (picture - limits[0]) / (limits[1] - limits[0])
        codes = np.clip(scaled * self._bins, 0, self._bins[0] - 1).astype(np.int64)
        self._code = np.ravel_multi_index(tuple(np.moveaxis(codes, -1, 0)), self._bins)

    def log_ratio(self, front: np.ndarray, back: np.ndarray) -> np.ndarray:
        """``log h1(c) / h0(c)`` at each pixel, (*shape), for histograms weighted by ``front`` and ``back`` (*shape)."""
        return np.clip((self._log_histogram(front) - self._log_histogram(back))[self._code], -_MOST, _MOST)

    def _log_histogram(self, weight: np.ndarray) -> np.ndarray:
        counts = np.bincount(self._code.ravel(), weight.ravel(), minlength=int(np.prod(self._bins)))
        smooth = ndimage.gaussian_filter(counts.reshape(self._bins), 1.0, mode="nearest").ravel()
        return np.log(smooth / max(smooth.sum(), 1e-9) + 1e-6)


def own_colours(picture: np.ndarray, place: np.ndarray, limits: np.ndarray, rounds: int = 3) -> np.ndarray:
    """Features of each pixel from the histograms of its image.

    Formula: ``r(c) = log h1(c) / h0(c)``, the histograms h1 and h0 weighted by p and 1 - p, and
    ``p = sigmoid(smooth(logit place + r))`` in the next round; the first round uses the position alone. For a picture
    (*shape, channels), ``place`` of :func:`place_of_foreground` and ``limits`` of :func:`colour_range` they are
    (*shape, 4): r after the first and after the last round, ``logit place``, and the smoothed sum of the last two.

    Rother, Kolmogorov, Blake (2004), "GrabCut": interactive foreground extraction using iterated graph cuts; with the
    usual position instead of a user's rectangle.
    """
    colours = PictureColours(picture, limits)
    usual = np.clip(_stretched(place, picture.shape[:-1]), _SURE, 1.0 - _SURE)
    here = logit(usual)
    likely, ratios, total = usual, [], here
    for _ in range(rounds):
        ratios.append(colours.log_ratio(likely, 1.0 - likely))
        total = ndimage.gaussian_filter(here + ratios[-1], 2.0)
        likely = expit(total)
    return np.stack([ratios[0], ratios[-1], here, total], axis=-1)


def _stretched(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Resample an array linearly at the cell centres of a grid of another shape."""
    axes = [(np.arange(n) + 0.5) / n * m - 0.5 for n, m in zip(shape, array.shape, strict=True)]
    return ndimage.map_coordinates(array, np.meshgrid(*axes, indexing="ij"), order=1, mode="nearest")
