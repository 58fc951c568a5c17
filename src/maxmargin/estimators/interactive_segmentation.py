"""One image whose mask follows the strokes of a user."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.features.image_files import read_scribbles
from maxmargin.features.own_colours import PictureColours
from maxmargin.inference.min_cut import GridCut

__all__ = ["InteractiveSegmentation"]

_STROKE = 20.0  # times as much as another pixel counts a stroked one among the colours
_TRUST = 0.01  # share of the pixels that the learned scores count as right before the first stroke
_COLOURS = 0.3  # deviation of the colours' scores, where learned ones count for nothing, by that of learned ones


class InteractiveSegmentation:
    """The best mask of one image that agrees with the strokes so far; made by ``ImageSegmenter.interactive(image)``.

    Features and capacities are computed once. A stroke changes costs only where it is, so the last cut is repaired
    (:class:`~maxmargin.inference.min_cut.GridCut`): an update takes about O(stroke) and a few looks at all pixels. The
    mask is that of ``predict([image], scribbles=[scribble])``, up to ties that rounding decides. Memory: 55 + 8
    neighbours bytes a pixel.

    ``excess`` (*shape) is what label 1 costs more than label 0 at each pixel, ``capacities`` (neighbours / 2, *shape)
    what different labels of ``neighbours`` cost, ``colours`` those of the image, where it has any; ``mask``, uint8
    (*shape), is the present mask of 0 and 1.

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

    def __init__(
        self, excess: np.ndarray, capacities: np.ndarray, neighbours: int, colours: PictureColours | None = None
    ) -> None:
        self._learned, self._excess, self._colours = excess, excess, colours
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
        self._scribble[changed] = known[changed]
        return self._cut_again(changed)

    def learn_colours(self, rounds: int = 2) -> np.ndarray:
        """Let the strokes so far and the mask teach the colours of this image; returns the new mask.

        Formula: in each round label 1 costs ``t e - (1 - t) r`` more than label 0, where e is the learned excess, r the
        log ratio of the colours inside and outside the mask, stroked pixels counted 20 times, scaled to 0.3 times the
        deviation of e; and ``t = max(0, 2 a - 1)``, where a is the share of the stroked pixels, averaged over the
        labels, that the learned scores get right. So a model that knows this kind of image is trusted, and on a foreign
        one the strokes decide. Later strokes keep the costs. Complexity: O(pixels) and one repaired cut a round.
        Rother, Kolmogorov, Blake (2004), "GrabCut": interactive foreground extraction using iterated graph cuts.
        """
        if self._colours is None:
            raise ValueError("there are no colours to learn: the image came as feature arrays; give it as pixels.")
        strokes = [self._scribble == label for label in (0, 1)]
        right = [stroke & ((self._learned < 0) == label) for label, stroke in enumerate(strokes)]
        believed = 0.5 * _TRUST * self._scribble.size
        shares = [
            (np.count_nonzero(hit) + believed) / (np.count_nonzero(stroke) + believed)
            for hit, stroke in zip(right, strokes, strict=True)
        ]
        trust = max(0.0, float(np.sum(shares)) - 1.0)
        for _ in range(rounds):
            ratio = self._colours.log_ratio(self.mask + _STROKE * strokes[1], 1 - self.mask + _STROKE * strokes[0])
            scale = _COLOURS * float(self._learned.std()) / max(float(ratio.std()), 1e-9)
            self._excess = trust * self._learned - (1.0 - trust) * scale * ratio
            self._cut_again(np.ones(self.mask.shape, bool))
        return self.mask

    def _cut_again(self, changed: np.ndarray) -> np.ndarray:
        now = self._scribble[changed]
        self._unary[changed, 1] = np.where(now < 0, self._excess[changed], self._fixed * (1.0 - 2.0 * now))
        self.mask = self._cut.solve(self._unary)[0].astype(np.uint8)
        return self.mask
