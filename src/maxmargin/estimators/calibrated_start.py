"""Weights of a calibrated classifier with one smoothness weight: where large-margin training of a segmenter begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import GridBound

__all__ = ["calibrated_weights"]

_MARGIN = 0.3  # a margin of 1 for log-odds of 3.3, a probability of 96 %
_WEIGHTS = (0.1, 0.3, 1.0, 3.0)
_FINER = (0.6, 1.6)
_ENOUGH = 12  # images that the weight is tried on


def calibrated_weights(bound: GridBound, masks: Sequence[np.ndarray], log_odds: np.ndarray) -> np.ndarray:
    """The log-odds as scores of the pixels, and the weight of one edge feature that gives the best masks.

    Formula: ``0.3 (log_odds, s e_k)``, where the edge feature k and s > 0, or none, maximise the mean intersection over
    union with the true masks. ``log_odds`` (F,) are the node weights whose scores are log-odds. Complexity: at most 12
    cuts for each of four weights of each edge feature.
    """
    layout = bound.layout
    some = np.unique(np.linspace(0, len(masks) - 1, _ENOUGH).astype(int))
    truth = [np.ravel(masks[i]) for i in some]

    def weights(feature: int, weight: float) -> np.ndarray:
        w = np.zeros(layout.n_weights)
        w[: layout.n_node] = log_odds
        if layout.n_edge:
            layout.groups(w)["edge"][feature] = weight
        return w

    def best(tries: list[tuple[int, float]]) -> tuple[int, float]:
        return max(tries, key=lambda each: mean_iou(truth, bound.argmax(weights(*each), some).outputs))

    feature, weight = best([(0, 0.0), *((k, weight) for k in range(layout.n_edge) for weight in _WEIGHTS)])
    feature, weight = best([(feature, weight), *((feature, factor * weight) for factor in _FINER if weight)])
    return _MARGIN * weights(feature, weight)
