"""Features of the edges between neighbouring pixels: how alike the two are.

Images are arrays (*shape, channels), where shape is (height, width) or (depth, height, width).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

__all__ = ["CONTRASTS", "contrast_edges", "relative_steps", "squared_steps"]

CONTRASTS = ("pixels", "image", "local", "smooth", "odds")


def squared_steps(image: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Squared colour distance between each pixel and its neighbour in each direction; 0 beyond the image."""
    shape = image.shape[:-1]
    out = np.zeros((len(steps), *shape), image.dtype)
    for j, step in enumerate(steps):
        first = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, shape, strict=True))
        second = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, shape, strict=True))
        difference = image[first] - image[second]
        out[j][first] = np.einsum("...c,...c->...", difference, difference)
    return out


def relative_steps(image: np.ndarray, steps: np.ndarray, contrast: str, odds: np.ndarray | None = None) -> np.ndarray:
    """Squared steps, (directions, *shape), of one kind of ``CONTRASTS``.

    "pixels" are plain steps. Relative to their mean over the image or over the neighbourhood ("image", "local"), an
    edge in soft light or on smooth ground is as strong as one in the sun or in grass. The steps of a slightly blurred
    image ("smooth") are not drowned by noise. Those of the log-odds of a classifier, ``odds`` (*shape), are large along
    thin structures too, whose sides differ little in colour ("odds").
    """
    if contrast == "odds":
        if odds is None:
            raise ValueError('contrasts has "odds", which needs a classifier; set classifier=True or leave it out.')
        return squared_steps(odds[..., None], steps)
    if contrast == "smooth":
        image = ndimage.gaussian_filter(image, (*[1.0] * (image.ndim - 1), 0.0))
    squares = squared_steps(image, steps)
    if contrast == "image":
        return squares / (squares.mean() + 1e-9)
    if contrast == "local":
        around = ndimage.gaussian_filter(squares.mean(axis=0), 8.0)
        return squares / (around + 0.2 * (squares.mean() + 1e-9))
    if contrast not in CONTRASTS:
        raise ValueError(f"contrasts must be among {', '.join(CONTRASTS)}; got {contrast!r}.")
    return squares


def contrast_edges(
    image: np.ndarray,
    steps: np.ndarray,
    betas: Sequence[float] | np.ndarray,
    contrasts: Sequence[str] = ("pixels",),
    odds: np.ndarray | None = None,
) -> np.ndarray:
    """Edge features: a constant, and for each beta ``exp(-beta |I_p - I_q|^2)``, all divided by the step's length.

    Boykov, Jolly (2001), Interactive graph cuts for optimal boundary and region segmentation of objects in N-D images.

    Parameters
    ----------
    image : array (*shape, channels)
    steps : int array (directions, 2 or 3)
        Steps to the neighbours; see :func:`maxmargin.inference.min_cut.directions`.
    betas : sequence of float, or one such sequence per contrast
    contrasts : sequence of {"pixels", "image", "local", "smooth", "odds"}
        What to use for ``|I_p - I_q|^2``; see :func:`relative_steps`.
    odds : array (*shape), optional

    Returns
    -------
    array (directions, *shape, 1 + len(betas) * len(contrasts)) of the image's type
    """
    rows = np.broadcast_to(np.asarray(betas, image.dtype), (len(contrasts), np.shape(betas)[-1]))
    out = np.ones((len(steps), *image.shape[:-1], 1 + rows.size), image.dtype)
    for k, (contrast, row) in enumerate(zip(contrasts, rows, strict=True)):
        squares = relative_steps(image, steps, contrast, odds)
        for i, beta in enumerate(row):
            np.exp(-beta * squares, out=out[..., 1 + k * len(row) + i])
    out /= np.sqrt((steps**2).sum(axis=1)).astype(image.dtype).reshape(-1, *[1] * image.ndim)
    return out
