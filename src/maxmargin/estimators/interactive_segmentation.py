"""One image whose mask follows the strokes of a user."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.features.image_files import read_scribbles
from maxmargin.features.stroke_colours import StrokeColours
from maxmargin.inference.min_cut import GridCut

__all__ = ["InteractiveSegmentation"]

_BELIEVED = 10.0  # stroked pixels of each label that the learned scores count as half right before the first


class InteractiveSegmentation:
    """The best mask of one image that agrees with the strokes so far; made by ``ImageSegmenter.interactive(image)``.

    Features and capacities are computed once. A stroke changes costs only where it is, so the last cut is repaired
    (:class:`~maxmargin.inference.min_cut.GridCut`): an update takes about O(stroke) and a few looks at all pixels. The
    mask is that of ``predict([image], scribbles=[scribble])``, up to ties that rounding decides. Memory: 55 + 8
    neighbours bytes a pixel.

    ``excess``, ``(*shape)``, is what label 1 costs more than label 0 at each pixel, ``capacities``,
    ``(neighbours / 2, *shape)``, what different labels of ``neighbours`` cost, ``colours`` those of the image, where it
    has any; ``mask``, uint8 ``(*shape)``, is the present mask of 0 and 1.

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
        self, excess: np.ndarray, capacities: np.ndarray, neighbours: int, colours: StrokeColours | None = None
    ) -> None:
        self._learned, self._colours = (excess, capacities), colours
        self._cut = GridCut(excess.shape, neighbours)
        self._unary = np.stack([np.zeros(excess.shape), excess], axis=-1)
        self._scribble = np.full(excess.shape, -1, np.int8)
        self.mask = np.zeros(excess.shape, np.uint8)
        self._cut_anew(excess, capacities)

    @property
    def scribble(self) -> np.ndarray:
        """All strokes so far (a copy): 0 and 1 where the label is known, -1 elsewhere."""
        return self._scribble.copy()

    def update(self, scribble: ArrayLike | str | os.PathLike[str], *, replace: bool = False) -> np.ndarray:
        """Add a stroke and return the new mask; ``scribble`` is an array ``(*shape)`` or path, as for ``predict``.

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

    def learn_colours(self, rounds: int = 4) -> np.ndarray:
        """Let the strokes so far and the mask teach the colours of this image; returns the new mask.

        There are at most ``rounds``, fewer when the mask stays. Formula: in each, label 1 costs ``t e - (1 - t) k r``
        more than label 0, and different labels of neighbours cost ``t c + (1 - t) k v``, where e and c are learned, r
        is the log ratio of the colours inside and outside the mask
        (:class:`~maxmargin.features.stroke_colours.StrokeColours`), v its contrast, k the deviation of e by that of r;
        and ``t = max(0, 2 a - 1)``, where a is the share of the stroked pixels, averaged over the labels, that the
        learned scores get right. So a model that knows this kind of image is trusted, and on a foreign one the strokes
        decide, beginning with no foreground but theirs. Later strokes keep the costs. Complexity: two mixtures and one
        cut per round. Rother, Kolmogorov, Blake (2004), "GrabCut": interactive foreground extraction using iterated
        graph cuts.
        """
        if self._colours is None:
            raise ValueError("there are no colours to learn: the image came as feature arrays; give it as pixels.")
        learned, capacities = self._learned
        strokes = [self._scribble == label for label in (0, 1)]
        right = [stroke & ((learned < 0) == label) for label, stroke in enumerate(strokes)]
        shares = [
            (np.count_nonzero(hit) + 0.5 * _BELIEVED) / (np.count_nonzero(stroke) + _BELIEVED)
            for hit, stroke in zip(right, strokes, strict=True)
        ]
        trust = max(0.0, float(np.sum(shares)) - 1.0)
        mask = np.where(self._scribble >= 0, self._scribble, self.mask if trust >= 0.5 else 0)
        for _ in range(rounds):
            ratio = self._colours.log_ratio(mask, self._scribble)
            own = (1.0 - trust) * float(learned.std()) / max(float(ratio.std()), 1e-9)
            self._cut_anew(trust * learned - own * ratio, trust * capacities + own * self._colours.capacities)
            if np.array_equal(self.mask, mask):
                break
            mask = self.mask
        return self.mask

    def _cut_anew(self, excess: np.ndarray, capacities: np.ndarray) -> None:
        """The mask of other costs than before, by a cut from the start."""
        self._excess = excess
        self._fixed = 1.0 + 2.0 * self._cut.neighbours * float(capacities.max(initial=0.0))  # cannot be outweighed
        known = self._scribble
        self._unary[..., 1] = np.where(known < 0, excess, self._fixed * (1.0 - 2.0 * known))
        self.mask = self._cut.solve(self._unary, capacities)[0].astype(np.uint8)

    def _cut_again(self, changed: np.ndarray) -> np.ndarray:
        now = self._scribble[changed]
        self._unary[changed, 1] = np.where(now < 0, self._excess[changed], self._fixed * (1.0 - 2.0 * now))
        self.mask = self._cut.solve(self._unary)[0].astype(np.uint8)
        return self.mask
