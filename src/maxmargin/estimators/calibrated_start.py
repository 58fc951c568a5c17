"""Where large-margin training of a segmenter begins, and how far it may go from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import GridBound

__all__ = ["calibrated_weights", "held_out_C"]

_MARGIN = 0.3  # a margin of 1 for log-odds of 3.3, a probability of 96 %
_WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
_BESIDE = (0.1, 0.3)  # tried for a weight that is zero, beside the best one
_FACTORS = (1.6, 1.3)
_WORTH = 2e-4  # gain in intersection over union for which a weight is moved: rounding and single pixels are none
_ENOUGH = 24  # images that weights are tried on
_C = (0.0, 0.1, 1.0, 10.0, 100.0)
_FOLDS = 3  # parts of the images that C is chosen on: halves learn from too few to show what a large C gains


def calibrated_weights(
    bound: GridBound, masks: Sequence[np.ndarray], log_odds: np.ndarray, ratio: float | None = None
) -> tuple[np.ndarray, float]:
    """The log-odds as scores of the pixels, with the edge weights that give the best masks, and a ratio of costs.

    Formula: ``0.3 (log_odds + log ratio, s)``, where the weights s >= 0 of the edge features are sought for the largest
    mean intersection over union with the true masks: first the one smoothness weight, of any feature, that is best,
    then each weight in turn, and the ratio too unless it is given, where that gains more than the standard error of the
    gain: many small gains on few images are chance. The ratio is what a wrong pixel of foreground costs by one of
    background, so log ratio is the threshold of a calibrated classifier that minimises the cost. ``log_odds`` (F,) are
    the node weights, the constant last, whose scores are log-odds. Complexity: at most 24 cuts for each of eight
    weights of each edge feature, and again for about six tries of each weight.
    """
    layout = bound.layout
    some = np.unique(np.linspace(0, len(masks) - 1, _ENOUGH).astype(int))
    truth = [np.ravel(masks[i]) for i in some]
    constant, edges = layout.n_node - 1, range(layout.n_node, layout.n_weights)
    start = np.zeros(layout.n_weights)
    start[: layout.n_node] = log_odds
    start[constant] += np.log(ratio or 1.0)

    def scores(w: np.ndarray) -> np.ndarray:
        found = bound.argmax(w, some).outputs
        return np.array([mean_iou([true], [mask]) for true, mask in zip(truth, found, strict=True)])

    def changed(w: np.ndarray, place: int, value: float) -> np.ndarray:
        w = w.copy()
        w[place] = value
        return w

    weights, best = start, scores(start)

    def keep_best(tries: list[np.ndarray], clearly: bool = True) -> None:
        nonlocal weights, best
        for w in tries:
            found = scores(w)
            gain = found - best
            if gain.mean() > max(_WORTH, _standard_error(gain) if clearly else 0.0):
                weights, best = w, found

    keep_best([changed(start, k, weight) for k in edges for weight in _WEIGHTS], clearly=False)
    for factor in _FACTORS:
        if ratio is None:
            keep_best([changed(weights, constant, weights[constant] + sign * np.log(factor)) for sign in (1, -1)])
        for k in edges:
            now = weights[k]
            values = (now * factor, now / factor, 0.0) if now else _BESIDE
            keep_best([changed(weights, k, value) for value in values])
    return _MARGIN * weights, float(np.exp(weights[constant] - log_odds[-1]))


def _standard_error(gains: np.ndarray) -> float:
    """Of the mean of gains (n,); 0 for a single one."""
    return float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0


def held_out_C(
    train: Callable[[float, np.ndarray], np.ndarray], bound: GridBound, masks: Sequence[np.ndarray], seed: int
) -> float:
    """The weight of the losses, of 0, 0.1, 1, 10 and 100, whose masks of held-out images are best; 0 keeps the centre.

    ``train(C, inside)`` gives the weights of a fit to the images of a bool mask (n,); each third is told of by a fit to
    the rest, and the largest mean intersection over union decides. A single image has to do with 0.1. Complexity: 12
    fits to two thirds of the images.
    """
    n = len(masks)
    if n < 2:
        return _C[1]
    part = np.random.default_rng(seed).permutation(n) % min(_FOLDS, n)
    scores = np.zeros((len(_C), n))
    for fold in range(min(_FOLDS, n)):
        inside, outside = part != fold, np.flatnonzero(part == fold)
        for k, C in enumerate(_C):
            for i, found in zip(outside.tolist(), bound.argmax(train(C, inside), outside).outputs, strict=True):
                scores[k, i] = mean_iou([np.ravel(masks[i])], [found])
    return _C[int(np.argmax(scores.mean(axis=1)))]
