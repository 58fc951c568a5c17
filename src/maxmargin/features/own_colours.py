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

__all__ = ["colour_range", "own_colours", "place_of_foreground"]

_BINS = {1: 64, 2: 32, 3: 16}  # per channel, by the number of channels
_CELLS = 24  # per side of the map of positions
_MOST = 6.0  # largest log ratio: a few pixels of a colour prove little
_SURE = 0.02  # smallest probability at any position


def place_of_foreground(masks: Sequence[ArrayLike], ndim: int) -> np.ndarray:
    """How often each position is foreground, on a coarse map (24, ..., 24) to which all images are stretched."""
    ones, counts = np.zeros((_CELLS,) * ndim), np.zeros((_CELLS,) * ndim)
    for mask in map(np.asarray, masks):
        for label in (0, 1):
            share = _stretched(ndimage.gaussian_filter((mask == label).astype(np.float64), 3.0), ones.shape)
            ones += label * share
            counts += share
    return np.clip(ones / np.maximum(counts, 1e-9), _SURE, 1.0 - _SURE)


def colour_range(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Range of the histogram bins per channel, (2, channels): all values but one in 200 at either end."""
    some = np.concatenate([p.reshape(-1, p.shape[-1])[::37] for p in pictures])
    low, high = np.quantile(some, [0.005, 0.995], axis=0)
    return np.stack([low, np.maximum(high, low + 1e-6)])


def own_colours(picture: np.ndarray, place: np.ndarray, limits: np.ndarray, rounds: int = 3) -> np.ndarray:
    """Features of each pixel from the histograms of its image.

    Formula: ``r(c) = log h1(c) / h0(c)``, the histograms h1 and h0 weighted by p and 1 - p, and
    ``p = sigmoid(smooth(logit place + r))`` in the next round; the first round uses the position alone. For a picture
    (*shape, channels), ``place`` of :func:`place_of_foreground` and ``limits`` of :func:`colour_range` they are
    (*shape, 4): r after the first and after the last round, ``logit place``, and the smoothed sum of the last two.

    Rother, Kolmogorov, Blake (2004), "GrabCut": interactive foreground extraction using iterated graph cuts; with the
    usual position instead of a user's rectangle.
    """
    shape, channels = picture.shape[:-1], picture.shape[-1]
    if channels not in _BINS:  # too many channels for a histogram
        picture, limits, channels = picture.mean(axis=-1, keepdims=True), limits.mean(axis=1, keepdims=True), 1
    bins = _BINS[channels]
    scaled = (picture - limits[0]) / (limits[1] - limits[0])
    codes = np.clip(scaled * bins, 0, bins - 1).astype(np.int64)
    code = np.ravel_multi_index(tuple(np.moveaxis(codes, -1, 0)), (bins,) * channels)
    usual = np.clip(_stretched(place, shape), _SURE, 1.0 - _SURE)
    here = logit(usual)
    likely, ratios, total = usual, [], here
    for _ in range(rounds):
        front, back = (_log_histogram(code, weight, bins, channels) for weight in (likely, 1.0 - likely))
        ratios.append(np.clip((front - back)[code], -_MOST, _MOST))
        total = ndimage.gaussian_filter(here + ratios[-1], 2.0)
        likely = expit(total)
    return np.stack([ratios[0], ratios[-1], here, total], axis=-1)


def _log_histogram(code: np.ndarray, weight: np.ndarray, bins: int, channels: int) -> np.ndarray:
    counts = np.bincount(code.ravel(), weight.ravel(), minlength=bins**channels).reshape((bins,) * channels)
    smooth = ndimage.gaussian_filter(counts, 1.0, mode="nearest").ravel()
    return np.log(smooth / smooth.sum() + 1e-6)


def _stretched(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Resample an array linearly at the cell centres of a grid of another shape."""
    axes = [(np.arange(n) + 0.5) / n * m - 0.5 for n, m in zip(shape, array.shape, strict=True)]
    return ndimage.map_coordinates(array, np.meshgrid(*axes, indexing="ij"), order=1, mode="nearest")
