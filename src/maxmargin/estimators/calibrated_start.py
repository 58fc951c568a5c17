"""Where large-margin training of a segmenter begins, and how far it may go from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import GridBound

__all__ = ["Start", "Starts", "calibrated_starts", "clearly_best", "held_out_choice"]

_MARGIN = 0.3  # a margin of 1 for log-odds of 3.3, a probability of 96 %
_WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
_BESIDE = (0.1, 0.3)  # tried for a weight that is zero, beside the best one
_FACTORS = (1.6, 1.3)
_WORTH = 2e-4  # gain in intersection over union for which a weight is moved: rounding and single pixels are none
_ENOUGH = 24  # images that weights are tried on
_C = (0.0, 1.0, 10.0, 100.0)
_ALONE = 0.1  # C of a single image
_FOLDS = 3  # parts of the images that C is chosen on: halves learn from too few to show what a large C gains
_CLEARLY = 0.5  # standard errors by which the first choice has to be outdone


class Start(NamedTuple):
    """Weights that training begins at and stays near, and what wrong foreground then costs by wrong background."""

    weights: np.ndarray
    ratio: float


class Starts(NamedTuple):
    """One smoothness weight only; and with a threshold and several edge weights."""

    smooth: Start
    calibrated: Start


def calibrated_starts(
    bound: GridBound,
    masks: Sequence[np.ndarray],
    log_odds: np.ndarray,
    ratio: float | None = None,
    among: np.ndarray | None = None,
) -> Starts:
    """The log-odds as scores of the pixels, with the edge weights that give the best masks, and a ratio of costs.

    Formula: ``0.3 (log_odds + log ratio, s)``, where the weights s >= 0 of the edge features are sought for the largest
    mean intersection over union with the true masks: first the one smoothness weight, of any feature, that is best
    (the start "smooth"), then each weight in turn, and the ratio too unless it is given, where that gains more than the
    standard error of the gain: many small gains on few images are chance. The ratio is what a wrong pixel of foreground
    costs by one of background, so log ratio is the threshold of a calibrated classifier that minimises the cost.
    ``log_odds`` (F,) are the node weights, the constant last, whose scores are log-odds; ``among`` are the images to
    learn from, by default all. Complexity: at most 24 cuts for each of ten weights of each edge feature, and again for
    about six tries of each weight.
    """
    layout = bound.layout
    among = np.arange(len(masks)) if among is None else among
    some = among[np.unique(np.linspace(0, len(among) - 1, _ENOUGH).astype(int))]
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
            its = scores(w)
            gain = its - best
            if gain.mean() > max(_WORTH, _standard_error(gain) if clearly else 0.0):
                weights, best = w, its

    def found() -> Start:
        return Start(_MARGIN * weights, float(np.exp(weights[constant] - log_odds[-1])))

    keep_best([changed(start, k, weight) for k in edges for weight in _WEIGHTS], clearly=False)
    smooth = found()
    for factor in _FACTORS:
        if ratio is None:
            keep_best([changed(weights, constant, weights[constant] + sign * np.log(factor)) for sign in (1, -1)])
        for k in edges:
            now = weights[k]
            values = (now * factor, now / factor, 0.0) if now else _BESIDE
            keep_best([changed(weights, k, value) for value in values])
    return Starts(smooth, found())


def _standard_error(gains: np.ndarray) -> float:
    """Of the mean of gains (n,); 0 for a single one."""
    return float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0


def clearly_best(scores: np.ndarray) -> int:
    """The row of ``scores`` (k, n) with the largest mean; the first, unless outdone by half a standard error.

    The standard error is that of the differences of the n columns: choosing the best of many on few images is more
    often luck than gain.
    """
    best = int(np.argmax(scores.mean(axis=1)))
    gain = scores[best] - scores[0]
    return best if gain.mean() > _CLEARLY * _standard_error(gain) else 0


def held_out_choice(
    starts: Callable[[np.ndarray], Sequence[Start]],
    train: Callable[[Start, float, np.ndarray], np.ndarray],
    bound: GridBound,
    masks: Sequence[np.ndarray],
    seed: int,
) -> tuple[int, float]:
    """Which start, and then which weight C of the losses, gives the best masks of held-out images; C = 0 keeps it.

    ``starts(images)`` are the starts that these images teach, the simplest first, and ``train(start, C, inside)`` the
    weights of a fit to the images of a bool mask (n,). Each third of the images is told of by the rest. C is 0, 1, 10,
    and 100 where 10 was better than 1. The largest mean intersection over union decides both times
    (:func:`clearly_best`, so that few images keep to the first start and to C = 0). A single image has to do with the
    last start and 0.1. Complexity: at most 9 fits to two thirds of the images.
    """
    n = len(masks)
    if n < 2:
        return -1, _ALONE
    part = np.random.default_rng(seed).permutation(n) % min(_FOLDS, n)
    folds = [(part != fold, np.flatnonzero(part == fold)) for fold in range(min(_FOLDS, n))]
    begins = [starts(np.flatnonzero(inside)) for inside, _ in folds]

    def scores(k: int, C: float) -> np.ndarray:
        found = np.zeros(n)
        for (inside, outside), begin in zip(folds, begins, strict=True):
            told = bound.argmax(train(begin[k], C, inside), outside).outputs
            found[outside] = [mean_iou([np.ravel(masks[i])], [m]) for i, m in zip(outside.tolist(), told, strict=True)]
        return found

    still = np.array([scores(k, 0.0) for k in range(len(begins[0]))])
    k = clearly_best(still)
    tried = [still[k], *(scores(k, C) for C in _C[1:-1])]
    if tried[-1].mean() > tried[-2].mean():
        tried.append(scores(k, _C[-1]))
    return k, _C[clearly_best(np.array(tried))]
