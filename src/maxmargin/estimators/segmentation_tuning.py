"""The parameters of a segmenter by held-out images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from maxmargin.estimators.calibrated_start import calibrated_starts, clearly_best
from maxmargin.estimators.image_segmenter import Image, ImageSegmenter
from maxmargin.features.image_files import Picture, read_images, read_masks
from maxmargin.features.images import ImageFeatures
from maxmargin.inference.min_cut import directions
from maxmargin.metrics.segmentation import mean_iou

__all__ = ["HeldOutScore", "best_score", "held_out_scores"]


@dataclass(frozen=True)
class HeldOutScore:
    """Intersection over union on held-out images for one C, tolerance and centre, one entry of ``scores`` per image."""

    C: float
    tolerance: float
    centre: str | ArrayLike
    scores: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.std(self.scores, ddof=1) / np.sqrt(len(self.scores))) if len(self.scores) > 1 else 0.0


def held_out_scores(
    segmenter: ImageSegmenter,
    X: Sequence[Image],
    y: Sequence[Picture],
    *,
    C: Sequence[float] = (0.0, 0.1, 1.0, 10.0, 100.0),
    tolerance: Sequence[float] | None = None,
    folds: int = 3,
    after_fit: Callable[[], None] | None = None,
) -> list[HeldOutScore]:
    """Cross-validated scores of all C, tolerances and centres; :func:`best_score` says which to take.

    Like scikit-learn's GridSearchCV over these parameters, but features, classifier and centres are learned once a
    fold. Centres are "smooth" and "calibrated" where the segmenter has ``centre="auto"`` and its features have a
    classifier, else the one that it has. Complexity: ``folds * len(C) * len(tolerance)`` fits for each.

    Parameters
    ----------
    segmenter : ImageSegmenter
        With all other parameters; it is not fitted.
    X, y : images and masks, as in :meth:`ImageSegmenter.fit`
    C, tolerance : sequence of float
        The values to try; None: the tolerance that the segmenter has.
    folds : int
        Parts into which the images are split at random (``random_state``).
    after_fit : callable without arguments, optional
        Called ``folds`` times for each score, to show progress.
    """
    if not 2 <= folds <= len(X):
        raise ValueError(f"folds is {folds} with {len(X)} images; give a number from 2 to that of the images.")
    masks = read_masks(y)
    tolerances = [segmenter.tolerance] if tolerance is None else tolerance
    both = isinstance(segmenter.centre, str) and segmenter.centre == "auto" and segmenter.has_centre()
    both = both and not isinstance(X[0], Mapping) and (segmenter.features or ImageFeatures()).classifier
    centres: Sequence[str | ArrayLike] = ("smooth", "calibrated") if both else (segmenter.centre,)
    found = [HeldOutScore(float(c), float(t), centre) for centre, t, c in product(centres, tolerances, C)]
    seed = segmenter.random_state if isinstance(segmenter.random_state, (int, np.integer)) else 0
    part = np.random.default_rng(seed).permutation(len(X)) % folds
    for fold in range(folds):
        inside, outside = (np.flatnonzero(part != fold), np.flatnonzero(part == fold))
        truth = [masks[i] for i in outside]
        for one, predicted in zip(found, _fold(segmenter, X, masks, inside, outside, found), strict=True):
            one.scores.extend(mean_iou([a], [b]) for a, b in zip(truth, predicted, strict=True))
            if after_fit is not None:
                after_fit()
    return found


def best_score(scores: Sequence[HeldOutScore]) -> HeldOutScore:
    """The best mean; but the first, if that is not clearly outdone (:func:`clearly_best`)."""
    return scores[clearly_best(np.array([one.scores for one in scores]))]


def _fold(
    segmenter: ImageSegmenter, X: Sequence[Image], masks: list[np.ndarray], inside: np.ndarray, outside: np.ndarray,
    tries: list[HeldOutScore],
) -> Iterator[list[np.ndarray]]:  # fmt: skip
    """The masks of the images outside by fits on those inside, one list per try."""
    train, test, y = [X[i] for i in inside], [X[i] for i in outside], [masks[i] for i in inside]
    plain = clone(segmenter)
    learned: dict[str, dict[str, ArrayLike]] = {}  # parameters that stand for a named centre
    if not isinstance(train[0], Mapping):
        features = copy(ImageFeatures() if segmenter.features is None else segmenter.features)
        made = features.fit_transform(read_images(train), y, directions(segmenter.neighbours))
        held: Sequence[Image] = features.transform(read_images(test))
        plain.set_params(features=None)
        if features.classifier and plain.has_centre():
            bound = plain.grid().bind(made, y)
            auto = isinstance(plain.cost, str) and plain.cost == "auto"
            given = None if auto else bound.layout.class_cost[1] / bound.layout.class_cost[0]
            for name, start in calibrated_starts(bound, y, features.log_odds_weights(), given)._asdict().items():
                learned[name] = {"centre": start.weights, **({"cost": (1.0, start.ratio)} if auto else {})}
        train, test = made, held
    for one in tries:
        known = learned.get(one.centre, {}) if isinstance(one.centre, str) else {}
        yield plain.set_params(C=one.C, tolerance=one.tolerance, **known).fit(train, y).predict(test)
