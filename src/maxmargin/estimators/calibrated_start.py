"""A calibrated classifier with one smoothness weight: where large-margin training of a segmenter begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import GridBound

__all__ = ["calibrated_weights"]

_MARGIN = 0.3  # a margin of 1 for log-odds of 3.3, a probability of 96 %
_WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0)
_FINER = (0.6, 1.6)
_RATIOS = (0.5, 2.0, 4.0)  # of the costs of wrong foreground and background
_DOUBT = 0.02  # gain in intersection over union for which other costs than equal ones are taken
_ENOUGH = 12  # images that the weight is tried on


def calibrated_weights(
    bound: GridBound, masks: Sequence[np.ndarray], log_odds: np.ndarray, ratio: float | None = None
) -> tuple[np.ndarray, float]:
    """The log-odds as scores of the pixels, the weight of one edge feature that gives the best masks, and a ratio.

    Formula: ``0.3 (log_odds + log ratio, s e_k)``, where the edge feature k and s > 0, or none, maximise the mean
    intersection over union with the true masks: the threshold and the smoothness of a calibrated classifier when a
    wrong pixel of foreground costs ``ratio`` times one of background; without a given one, 1, or 1/2, 2 or 4 where
    that gains 0.02. ``log_odds`` (F,) are the node weights, the constant last, whose scores are log-odds. Complexity:
    at most 24 cuts for each of five weights of each edge feature.
    """
    layout = bound.layout
    some = np.unique(np.linspace(0, len(masks) - 1, _ENOUGH).astype(int))
    truth = [np.ravel(masks[i]) for i in some]
    ratios = (ratio,) if ratio is not None else (1.0, *_RATIOS)

    def weights(feature: int, weight: float, ratio: float) -> np.ndarray:
        w = np.zeros(layout.n_weights)
        w[: layout.n_node] = log_odds
        w[layout.n_node - 1] += np.log(ratio)
        if layout.n_edge:
            layout.groups(w)["edge"][feature] = weight
        return w

    def best(tries: list[tuple[int, float, float]]) -> tuple[int, float, float]:
        def score(each: tuple[int, float, float]) -> float:
            found = mean_iou(truth, bound.argmax(weights(*each), some).outputs)
            return found - (_DOUBT if each[-1] != ratios[0] else 0.0)

        return max(tries, key=score)

    edges = [(0, 0.0), *((feature, weight) for feature in range(layout.n_edge) for weight in _WEIGHTS)]
    k, s, r = 0, 0.0, ratios[0]
    for _ in range(2 if len(ratios) > 1 else 1):  # one after the other: all pairs would take four times as long
        k, s, r = best([(*edge, r) for edge in edges])
        k, s, r = best([(k, s, r), *((k, s, each) for each in ratios if each != r)])
    k, s, r = best([(k, s, r), *((k, factor * s, r) for factor in _FINER if s)])
    return _MARGIN * weights(k, s, r), r
