"""Graphs of regions: nodes and edges from a label image, which gives the region of each pixel.

segments = superpixels(image)                  # or any other label image
x = region_graph(segments, image)              # "node", "edges", "edge", for GraphLabeler
y = region_labels(segments, mask)              # one label per region
labels[segments]                               # from labels of regions to labels of pixels
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import picture_block

__all__ = ["region_graph", "region_labels", "region_sizes", "superpixels"]


def superpixels(
    image: ArrayLike, n_segments: int = 200, *, compactness: float = 0.1, iterations: int = 6, smallest: float = 0.25
) -> np.ndarray:
    """Regions of similar colour and about equal size, connected, numbered from 0; needs scikit-image.

    Formula: each pixel joins the nearest of the centres around it, by ``|colour - c|^2 + compactness^2 |place - p|^2 /
    step^2``; centres move to the means of their pixels. Pieces smaller than ``smallest`` of a cell go to a neighbour.

    Complexity: O(iterations pixels channels). Achanta et al. (2012), SLIC superpixels compared to state-of-the-art
    superpixel methods.

    Parameters
    ----------
    image : array (height, width) or (height, width, channels)
        Colours are stretched to the range from 0 to 1.
    n_segments : int
        Approximate number of regions.
    compactness : float
        Weight of a step of one cell relative to a difference in colour.
    iterations : int
    smallest : float

    Returns
    -------
    int32 array (height, width)
    """
    colours = picture_block(image, "the image", 2, 255.0)
    pixels = colours.shape[0] * colours.shape[1]
    if not 1 <= n_segments <= pixels:
        raise ValueError(f"n_segments is {n_segments}; give a number from 1 to the {pixels} pixels.")
    try:
        from skimage.segmentation import slic
    except ImportError:
        raise ImportError("superpixels need scikit-image; install it with: pip install scikit-image") from None
    options = {"convert2lab": False, "min_size_factor": smallest, "start_label": 0}
    return slic(colours, n_segments, compactness, iterations, **options).astype(np.int32)


def region_graph(segments: ArrayLike, image: ArrayLike, *, contrast: float = 4.0) -> dict[str, np.ndarray]:
    """Nodes and edges of the regions of a label image, as :class:`~maxmargin.models.graph.Graph` takes them.

    Parameters
    ----------
    segments : int array ``(*shape)``
        Regions numbered 0, 1, ... without gaps; any number of axes.
    image : array ``(*shape)`` or ``(*shape, channels)``
        Whole numbers count as 0 to 255.
    contrast : float
        Sharpness of the edge feature for similar neighbours.

    Returns
    -------
    dict
        ``"node"`` (n, 2 channels + axes + 2): mean and deviation of the colours, place from 0 to 1 on each axis, share
        of the image, 1. ``"edges"`` (m, 2): regions with a common boundary, the smaller number first. ``"edge"`` (m,
        3), none negative: 1, length of the boundary relative to a square of the smaller region's size, and that times
        ``exp(-contrast |difference of mean colours|^2 / mean of the same)``.
    """
    regions = _checked_segments(segments)
    colours = picture_block(image, "the image", regions.ndim, 255.0)
    if colours.shape[:-1] != regions.shape:
        raise ValueError(f"the image has shape {colours.shape[:-1]}, the label image {regions.shape}; they must agree.")
    flat, sizes = regions.ravel(), region_sizes(regions)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(flat, weights=values.ravel()) / sizes

    channels = np.moveaxis(colours, -1, 0)
    colour = np.stack([mean(channel) for channel in channels], 1)
    spread = np.stack([np.sqrt(np.maximum(mean(c**2) - mean(c) ** 2, 0.0)) for c in channels], 1)
    axes = zip(np.indices(regions.shape), regions.shape, strict=True)
    place = np.stack([mean((axis + 0.5) / n) for axis, n in axes], 1)
    share = sizes[:, None] / flat.size
    edges, length = _neighbours(regions)
    smaller = sizes[edges].min(axis=1)
    difference = ((colour[edges[:, 0]] - colour[edges[:, 1]]) ** 2).sum(axis=1)
    typical = difference.mean() if len(difference) and difference.mean() > 0 else 1.0
    relative = length / (2 * regions.ndim * smaller ** (1 - 1 / regions.ndim))
    edge = np.stack([np.ones(len(edges)), relative, relative * np.exp(-contrast * difference / typical)], 1)
    node = np.concatenate([colour, spread, place, share, np.ones((len(sizes), 1))], axis=1)
    return {"node": node, "edges": edges, "edge": edge}


def region_sizes(segments: ArrayLike) -> np.ndarray:
    """Number of pixels per region, float64 (n,); use it as ``node_cost`` to count mistakes by pixel."""
    return np.bincount(_checked_segments(segments).ravel()).astype(np.float64)


def region_labels(segments: ArrayLike, mask: ArrayLike, *, ignore: object = None) -> np.ndarray:
    """The most frequent label in each region, (n,); ``ignore`` only where no pixel has another label."""
    regions, labels = _checked_segments(segments), np.asarray(mask)
    if labels.shape != regions.shape:
        raise ValueError(f"the mask has shape {labels.shape} and the label image {regions.shape}; they must agree.")
    classes, codes = np.unique(labels.ravel(), return_inverse=True)
    counts = np.zeros((int(regions.max()) + 1, len(classes)))
    np.add.at(counts, (regions.ravel(), codes.ravel()), 1.0)
    if ignore is not None:
        counts[:, classes == ignore] *= 1e-9  # wins only without competition
    return classes[counts.argmax(axis=1)]


def _checked_segments(segments: ArrayLike) -> np.ndarray:
    regions = np.asarray(segments)
    if regions.size == 0 or regions.dtype.kind not in "iu" or regions.min() < 0:
        raise ValueError(f"the label image is {regions.dtype} of shape {regions.shape}; give whole numbers >= 0.")
    empty = np.flatnonzero(np.bincount(regions.ravel()) == 0)
    if len(empty):
        raise ValueError(f"no pixel belongs to region {empty[0]}; number the regions 0, 1, ... without gaps.")
    return regions


def _neighbours(regions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regions with a common boundary, (m, 2), the smaller number first, and its length in pixels."""
    sides = []
    for axis in range(regions.ndim):
        rest = (slice(None),) * axis
        sides.append(np.stack([regions[(*rest, slice(None, -1))].ravel(), regions[(*rest, slice(1, None))].ravel()], 1))
    pairs = np.concatenate(sides)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    edges, length = np.unique(pairs, axis=0, return_counts=True)
    return edges.reshape(-1, 2).astype(np.int32), length.astype(np.float64)
