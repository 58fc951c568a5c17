"""Masks of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli.demos.outcome import FALSE, GREEN, MISSED
from maxmargin.datasets.small import load_leaves
from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.metrics.segmentation import mean_iou

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Segmented", "run"]


@dataclass(frozen=True)
class Segmented:
    """Pictures with their masks, and those that were found."""

    model: ImageSegmenter
    images: list[np.ndarray]
    truth: list[np.ndarray]
    found: list[np.ndarray]

    def lines(self) -> Iterator[str]:
        """How well the masks fit, and which weight of the losses was chosen."""
        yield f"intersection over union  {mean_iou(self.truth, self.found):5.3f}"
        yield f"chosen C                 {self.model.C_:g}"

    def draw(self, figure: Figure) -> None:
        """The pictures, and below each its mask: what is right, missed and false."""
        from matplotlib.colors import ListedColormap

        colours = ListedColormap(["0.93", GREEN, MISSED, FALSE])
        axes = figure.subplots(2, len(self.images))
        for (above, below), image, truth, found in zip(axes.T, self.images, self.truth, self.found, strict=True):
            above.imshow(image)
            kind = np.where(truth == 1, np.where(found == 1, 1, 2), np.where(found == 1, 3, 0))
            below.imshow(kind, cmap=colours, vmin=0, vmax=3)
            above.axis("off")
            below.axis("off")
        figure.suptitle("Leaves, and their masks: right (green), missed (yellow), false (red)")


def run() -> Segmented:
    """Pictures: learn the masks of 14 leaves, find those of 6 others."""
    leaves = load_leaves()
    segmenter = ImageSegmenter().fit(leaves.data[:14], leaves.target[:14])
    found = segmenter.predict(leaves.data[14:])
    return Segmented(segmenter, leaves.data[14:], leaves.target[14:], found)
