"""One image whose mask follows the strokes of a user."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.features.image_files import read_scribbles
from maxmargin.inference.min_cut import GridCut

__all__ = ["InteractiveSegmentation"]


class InteractiveSegmentation:
    """The best mask of one image that agrees with the strokes so far; made by ``ImageSegmenter.interactive(image)``.

    Features and capacities are computed once. A stroke changes costs only where it is, so the last cut is repaired
    (:class:`~maxmargin.inference.min_cut.GridCut`): an update takes about O(stroke) and a few looks at all pixels. The
    mask is that of ``predict([image], scribbles=[scribble])``, up to ties that rounding decides. Memory: 55 + 8
    neighbours bytes a pixel.

    ``excess`` (*shape) is what label 1 costs more than label 0 at each pixel, ``capacities`` (neighbours / 2, *shape)
    what different labels of ``neighbours`` cost; ``mask``, uint8 (*shape), is the present mask of 0 and 1.

    References
    ----------
    Boykov, Jolly (2001), Interactive graph cuts for optimal boundary and region segmentation of objects in N-D images.

    Examples
    --------
    >>> session = InteractiveSegmentation(np.ones((2, 3)), np.full((2, 2, 3), 0.9), neighbours=4)
    >>> session.mask.tolist()
    [[0, 0, 0], [0, 0, 0]]
    >>> session.update([[1, -1, -1], [1, -1, 0]]).tolist()  # -1: not touched
    [[1, 0, 0], [1, 0, 0]]
    """

    def __init__(self, excess: np.ndarray, capacities: np.ndarray, neighbours: int) -> None:
        self._excess = excess
        self._cut = GridCut(excess.shape, neighbours)
        self._fixed = 1.0 + 2.0 * neighbours * float(capacities.max(initial=0.0))  # neighbours cannot outweigh it
        self._unary = np.stack([np.zeros(excess.shape), excess], axis=-1)
        self._scribble = np.full(excess.shape, -1, np.int8)
        self.mask = self._cut.solve(self._unary, capacities)[0].astype(np.uint8)

    @property
    def scribble(self) -> np.ndarray:
        """All strokes so far (a copy): 0 and 1 where the label is known, -1 elsewhere."""
        return self._scribble.copy()

    def update(self, scribble: ArrayLike | str | os.PathLike[str], *, replace: bool = False) -> np.ndarray:
        """Add a stroke, an array (*shape) or path as in :meth:`ImageSegmenter.predict`; returns the new mask.

        Where strokes overlap the last one counts. ``replace`` forgets all earlier ones; to undo one, give those that
        stay.
        """
        (labels,) = read_scribbles([scribble])
        if labels.shape != self._excess.shape:
            advice = "Give a label for each pixel: 0 or 1 where it is known, -1 elsewhere."
            raise ValueError(f"the scribble has shape {labels.shape}; the image has {self._excess.shape}. {advice}")
        strange = np.argwhere((labels != -1) & (labels != 0) & (labels != 1))
        if len(strange):
            where = tuple(map(int, strange[0]))
            what = f"the label {labels[where]} at {where}"
            raise ValueError(f"the scribble has {what}; give 0 or 1 where the label is known and -1 elsewhere.")
        known = np.where(labels < 0, self._scribble, labels) if not replace else labels
        changed = known != self._scribble
        now = known[changed].astype(np.int8)
        self._unary[changed, 1] = np.where(now < 0, self._excess[changed], self._fixed * (1 - 2 * now))
        self._scribble[changed] = now
        self.mask = self._cut.solve(self._unary)[0].astype(np.uint8)
        return self.mask
