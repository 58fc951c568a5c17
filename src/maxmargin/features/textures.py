"""Texture of the pixels of images and volumes: how grey values vary around each, at several scales.

Each function takes one image as float64 (*shape, channels), where shape is (height, width) or (depth, height, width),
and returns features (*shape, F) of the mean channel. Complexity: O(pixels F) filters of a few taps per axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from scipy import ndimage

__all__ = ["orientations", "ridges", "textures"]


def textures(image: np.ndarray, scales: Sequence[float] = (1.5, 4.0)) -> np.ndarray:
    """Local mean, local deviation and gradient magnitude, at each scale."""
    grey = image.mean(axis=-1)
    parts = []
    for scale in scales:
        mean = ndimage.gaussian_filter(grey, scale)
        variance = ndimage.gaussian_filter(grey**2, scale) - mean**2
        parts += [mean, np.sqrt(np.maximum(variance, 0.0)), ndimage.gaussian_gradient_magnitude(grey, scale)]
    return np.stack(parts, axis=-1)


def orientations(image: np.ndarray, scales: Sequence[float] = (2.0, 6.0)) -> np.ndarray:
    """Strength and direction of the gradients around each pixel, from the structure tensor at each scale.

    Formula: with ``J = smooth(g g')`` of the gradients g, the square root of its trace, then its entries on and above
    the diagonal divided by the trace, without the last one, which the others determine: 3 per scale for images, 6 for
    volumes. Bigun, Granlund (1987), Optimal orientation detection of linear symmetry.
    """
    grey = image.mean(axis=-1)
    gradient = [ndimage.gaussian_filter(grey, 1.0, order=order) for order in np.eye(grey.ndim, dtype=int)]
    parts = []
    for scale in scales:
        trace = sum(ndimage.gaussian_filter(g * g, scale) for g in gradient)
        parts.append(np.sqrt(trace))
        for first, second in [*combinations_with_replacement(gradient, 2)][:-1]:
            parts.append(ndimage.gaussian_filter(first * second, scale) / (trace + 1e-4))
    return np.stack(parts, axis=-1)


def ridges(image: np.ndarray, scales: Sequence[float] = (1.0, 2.0, 4.0)) -> np.ndarray:
    """Eigenvalues of the Hessian at each scale, falling: large ones tell dark lines, low ones bright lines.

    Formula: those of ``scale^2 H``, 2 per scale for images and 3 for volumes. Frangi et al. (1998), Multiscale vessel
    enhancement filtering.
    """
    grey = image.mean(axis=-1)
    axes, parts = np.eye(grey.ndim, dtype=int), []
    for scale in scales:
        hessian = np.empty((*grey.shape, grey.ndim, grey.ndim))
        for i, j in combinations_with_replacement(range(grey.ndim), 2):
            second = scale**2 * ndimage.gaussian_filter(grey, scale, order=axes[i] + axes[j])
            hessian[..., i, j] = hessian[..., j, i] = second
        parts.append(_eigenvalues(hessian))
    return np.concatenate(parts, axis=-1)


def _eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """Those of symmetric matrices (..., d, d), falling; by formula for d = 2, where LAPACK takes ten times as long."""
    if matrices.shape[-1] != 2:
        return np.linalg.eigvalsh(matrices)[..., ::-1]
    first, mixed, last = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    middle, half = 0.5 * (first + last), np.hypot(0.5 * (first - last), mixed)
    return np.stack([middle + half, middle - half], axis=-1)
