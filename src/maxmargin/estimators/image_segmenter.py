"""Foreground and background of images and volumes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch, Structured
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.examples import Predictions
from maxmargin.estimators.interactive_segmentation import InteractiveSegmentation
from maxmargin.estimators.large_margin import LargeMargin
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.features.image_files import Picture, picture_list, read_images, read_masks, read_scribbles
from maxmargin.features.images import ImageFeatures
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.inference.min_cut import directions
from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import IGNORE, Grid, GridBound, GridLayout, sure_labels
from maxmargin.pages.html import Section
from maxmargin.pages.png import overlays
from maxmargin.solvers.status import Status

if TYPE_CHECKING:
    from maxmargin.estimators.calibrated_start import Start

__all__ = ["ImageSegmenter"]

Image = Picture | Mapping[str, ArrayLike]


@parameters
class ImageSegmenter(WithMarginals[Sequence[Image], np.ndarray], LargeMargin[Sequence[Image], Sequence[Picture]]):
    """A mask for every image, by a minimum cut whose weights are learned with a large margin.

    Minimises ``1/2 |w - c|^2 + C sum_i s_i loss_i(w)`` over the weights of the grid model
    (:mod:`maxmargin.models.grid`), those of the edges kept >= 0 by the dual itself, so that every argmax is one cut.
    Training stops with a certificate.

    Parameters
    ----------
    features : ImageFeatures or None
        How features are made of images; None takes mappings of ``"node"`` and ``"edge"`` arrays as they are, and images
        with the default :class:`~maxmargin.features.images.ImageFeatures`.
    neighbours : {4, 8, 6, 18, 26}
        4 or 8 for images, the others for volumes.
    C : float or None
        Weight of the losses. None: with a centre, and losses per pixel, the one of 0, 1, 10 and 100 that is best on
        training images held out (:func:`~maxmargin.estimators.calibrated_start.held_out_choice`; 0 keeps the centre),
        else 1. ``C_`` says which.
    cost : {"auto", "hamming", "balanced", "balanced_image"} or pair of float
        What wrong pixels cost: 1 each, or so much that both labels together cost the same, over all masks or in each;
        or what a wrong pixel of background and of foreground costs, the class weights: (1, 4) values a thin foreground.
        "auto": with a calibrated centre those with which its masks have the largest intersection over union, as
        :meth:`score` measures it, else 1 each.
    centre : {"auto", "smooth", "calibrated", "zero"} or array (n_weights,)
        The weights c that those of small C stay near. "smooth": the log-odds of the classifier among the features, with
        the one smoothness weight whose masks of the training images are best; "calibrated": also with a threshold and
        weights of several edge features (:func:`~maxmargin.estimators.calibrated_start.calibrated_starts`). Training
        improves on that as far as C lets it. "auto" is zero where the features have no classifier or the loss is not
        convex, else calibrated, or smooth where C is chosen and smooth is better on the images held out.
    boundary, width : float
        Pixels next to the true boundary cost ``1 + boundary`` times as much, with a reach of ``width`` pixels.
    tolerance : float
        Pixels by which the true boundaries may be off. When positive, labels that near to the boundary are latent:
        after each fit the best mask that agrees with the others takes the place of the truth, and the fit is repeated
        ``refits`` times; the certificate is that of the last. Without it the truth has to outdo masks that follow the
        edges of the image better than it does, and the learned edges come out too weak. What comes out depends on the
        first fit.
    refits : int
        How often the fit is repeated.
    start : fitted ImageSegmenter or array (n_weights,), optional
        Where a fit with a tolerance begins: its masks take the place of the first fit, as those of a calibrated centre
        do. (Where a ramp begins is said by the ramp: ``loss=Ramp(start=...)``.)
    per_pixel : bool
        Divide the loss of an image by its number of pixels: large images then count no more than small ones, and C
        does not depend on the size.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    node_coef_ : array (F,)
    edge_coef_ : array (G,)
        Not negative.
    C_ : float
        The weight of the losses that was used.
    centre_ : array (n_weights,) or None
        The centre that was used; None is zero. Not saved.

    References
    ----------
    Yu, Rousu (2007), An efficient method for large margin parameter optimization in structured prediction problems. Yu,
    Joachims (2009), Learning structural SVMs with latent variables: what ``tolerance`` does.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.image_segmenter import ImageSegmenter
    >>> rng = np.random.default_rng(0)
    >>> mask = np.zeros((12, 16), int)
    >>> mask[3:9, 4:12] = 1
    >>> images = [mask + rng.normal(scale=0.5, size=mask.shape) for _ in range(4)]
    >>> segmenter = ImageSegmenter(tol=0.01).fit(images[:3], [mask] * 3)
    >>> segmenter.predict(images[3:])[0].shape
    (12, 16)
    >>> bool((segmenter.edge_coef_ >= 0).all())
    True
    """

    scored: ClassVar[str] = "mean intersection over union of the foregrounds"

    features: ImageFeatures | None = None
    neighbours: int = 4
    cost: str | tuple[float, float] = "auto"
    centre: str | ArrayLike = "auto"
    boundary: float = 0.0
    width: float = 3.0
    tolerance: float = 0.0
    refits: int = 2
    start: Structured | ArrayLike | None = None
    per_pixel: bool = True
    C: float | None = None  # type: ignore[assignment]  # the others have a number
    tol: float = 1e-2

    def fit(
        self,
        X: Sequence[Image],
        y: Sequence[Picture],
        sample_weight: SampleWeight = None,
        *,
        pixel_cost: Sequence[ArrayLike] | None = None,
        resume: Resume = None,
    ) -> Self:
        """Learn from images and their masks.

        Parameters
        ----------
        X : list of n images
            Arrays (height, width), (height, width, channels) or with a depth in front; or paths of files (Pillow's
            formats, NIfTI, .npy); or mappings of feature arrays, see :meth:`maxmargin.models.grid.Grid.bind`.
        y : list of n masks
            Arrays of 0, 1 and 255 (ignored), or paths; where no mask has any 1, white (255) is the foreground.
        sample_weight : array (n,), optional
        pixel_cost : list of n arrays, optional
            Multiplies the cost of each pixel.
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        """
        begin = Stopwatch()
        latent = self._check_tolerance()
        self._check_budgets()
        self.model_ = self.grid()
        steps = directions(self.neighbours)
        single = any(_one_picture(given, steps.shape[1], None) for given in (X, y))
        X, masks = _images(X, single), read_masks(y)
        if not X:
            raise ValueError("there are no images; give at least one.")
        made = self.features is None and isinstance(X[0], Mapping)
        self.features_ = None if made else copy(ImageFeatures() if self.features is None else self.features)
        if self.features_ is not None:
            images = read_images(cast(Sequence[Picture], X))
            _check_masks(images, masks, steps.shape[1])
            X = self.features_.fit_transform(images, masks, steps)
        bound = self.model_.bind(X, masks, pixel_cost=pixel_cost)
        del X  # the features are packed now, and are the largest thing there is
        self.layout_ = bound.layout
        starts = self._starts(bound, masks)
        weights = check_sample_weight(sample_weight, bound.n_examples)
        if self.per_pixel:
            weights = weights / np.array([max(1, np.count_nonzero(mask != IGNORE)) for mask in masks])
        sure = [sure_labels(mask, self.tolerance) for mask in masks] if latent else None

        def train(
            segmenter: Self,
            start: Start | None,
            C: float,
            weights: np.ndarray,
            resume: Resume = None,
            begin: Stopwatch | None = None,
        ) -> None:
            priced = bound if start is None or start.ratio == 1.0 else bound.with_costs(1.0, start.ratio)
            segmenter.layout_ = priced.layout
            known = None if sure is None else priced.with_fixed(sure)
            centre = None if start is None else start.weights
            segmenter._train(
                priced,
                sample_weight=weights,
                positive=self._positive(priced),
                latent=None if known is None else lambda w: priced.with_truth(known.argmax(w).outputs),
                refits=self.refits,
                first_completion=self.start if self.start is not None or centre is None or not centre.any() else centre,
                formulation=None if centre is None else self._hinge().centred(centre),
                resume=resume,
                begin=begin,
                C=C,
            )

        stopped: Status | None = None  # of a fit that Ctrl-C has ended: C is no longer chosen then

        def weights_inside(start: Start, C: float, inside: np.ndarray) -> np.ndarray:
            nonlocal stopped
            left = None if self.max_seconds is None else 0.5 * self.max_seconds - begin.seconds()  # half for the choice
            if C == 0.0 or stopped is not None or (left is not None and left <= 0.0):
                return start.weights
            quiet = clone(self).set_params(callbacks=None, verbose=0, warm_start=False, max_seconds=left)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                train(quiet, start, C, weights * inside)
            stopped = quiet.status_ if quiet.status_.code == "interrupted" else None
            return quiet.weights_

        chosen, C = -1, self.C
        if C is None and starts is not None and self.per_pixel:
            from maxmargin.estimators.calibrated_start import held_out_choice

            seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
            chosen, C = held_out_choice(starts, weights_inside, bound, masks, int(seed))
        self.C_ = 0.0 if stopped is not None else 1.0 if C is None else C
        start = None if starts is None else starts(np.arange(len(masks)))[chosen]
        self.centre_ = None if start is None else start.weights
        train(self, start, self.C_, weights, resume=resume, begin=begin)
        if stopped is not None:
            self.status_ = stopped
        self._set_fitted(self.layout_, self.weights_)
        return self

    def predict(
        self, X: Sequence[Image], scribbles: Sequence[Picture] | None = None, *, learn_colours: bool = True
    ) -> Predictions[np.ndarray]:
        """Masks of 0 and 1 (uint8), one per image; with ``scribbles`` the best that agree with them.

        These are arrays or paths: labels that are known, 0 or 1, and -1 elsewhere. In picture files white is 1, black 0
        and grey unknown. Unless the image came as feature arrays, or without ``learn_colours``, they also teach its
        colours (:meth:`~maxmargin.estimators.interactive_segmentation.InteractiveSegmentation.learn_colours`).
        """
        self._check_fitted()
        if scribbles is None or not learn_colours or self.features_ is None:
            return Predictions(self._predict_codes(self.weights_, X, scribbles))
        images, known = self._images(X), picture_list(scribbles, "scribbles")
        if len(images) != len(known):
            raise ValueError(f"there are {len(images)} images and {len(known)} scribbles; give one for each image.")
        masks: Predictions[np.ndarray] = Predictions()
        for image, scribble in zip(images, known, strict=True):
            session = self.interactive(image)
            session.update(scribble)
            masks.append(session.learn_colours())
        return masks

    def interactive(self, image: Image) -> InteractiveSegmentation:
        """The mask of one ``image`` that follows strokes: ``session.mask``, then ``session.update(scribble)``.

        Keeps the features and the cut, so that each stroke is answered far faster than by :meth:`predict`. The image is
        an array, a path or a mapping of feature arrays, as one of those in fit.
        """
        weights = self._checked_weights()
        self.layout_.check_weights(weights)
        if self.features_ is not None:
            image = read_images([cast(Picture, image)])[0]
        energy = self._bound([image]).energy(weights, 0)
        colours = None if self.features_ is None else self.features_.colours_of(cast(np.ndarray, image))
        return InteractiveSegmentation(*energy, self.layout_.neighbours, colours)

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, {"C": float(self.C_)}, features=self.features_)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(GridLayout, fitted.layout)
        features = fitted.features
        assert features is None or isinstance(features, ImageFeatures)
        self.model_, self.features_ = self.grid(), features
        self.C_ = (
            fitted.state.number("C") if "C" in fitted.facts else float(self.C or 0.0)
        )  # older files: the parameter
        self._set_fitted(layout, fitted.weights)
        if self.layout_.neighbours != self.neighbours:
            raise ValueError(f"its weights are for {self.layout_.neighbours} neighbours, its parameters say otherwise")
        if features is not None and not np.array_equal(features.steps_, directions(self.neighbours)):
            raise ValueError(f"its features are not those of {self.neighbours} neighbours")

    def grid(self) -> Grid:
        """The model that the parameters describe."""
        cost = "hamming" if isinstance(self.cost, str) and self.cost == "auto" else self.cost
        return Grid(self.neighbours, cost=cost, boundary=self.boundary, width=self.width)

    def _set_fitted(self, layout: GridLayout, weights: np.ndarray) -> None:
        """What predict needs besides features, and the weights by group."""
        self.layout_, self.weights_, groups = layout, weights, layout.groups(weights)
        self.node_coef_, self.edge_coef_ = groups["node"], groups["edge"]

    def has_centre(self) -> bool:
        """Whether the parameters ask for a calibrated centre, where there is a classifier."""
        return isinstance(self.centre, str) and self.centre != "zero" and self._ramp() is None

    def _starts(self, bound: GridBound, masks: list[np.ndarray]) -> Callable[[np.ndarray], Sequence[Start]] | None:
        """From images to the starts that they teach, one of which the regulariser pulls to; None: it pulls to zero."""
        from maxmargin.estimators.calibrated_start import Start, calibrated_starts

        if not isinstance(self.centre, str):
            if self._ramp() is not None:
                raise ValueError('a ramp has no centre; set centre="zero" or a convex loss.')
            weights = self._weights_of(self.centre, bound.n_weights)
            assert weights is not None
            self.layout_.check_weights(weights)
            return lambda images: [Start(weights, 1.0)]
        features = self.features_
        able = features is not None and features.classifier and self.has_centre()
        if self.centre in ("smooth", "calibrated") and not able:  # auto goes without
            needs = "features made of images with ImageFeatures(classifier=True), and a convex loss"
            raise ValueError(f'centre="{self.centre}" needs {needs}; set centre="zero" to go without.')
        if self.centre not in ("auto", "smooth", "calibrated", "zero"):
            names = '"auto", "smooth", "calibrated", "zero"'
            raise ValueError(f"centre must be {names} or an array, got {self.centre!r}.")
        if not able or features is None:
            return None
        back, front = bound.layout.class_cost
        given = None if isinstance(self.cost, str) and self.cost == "auto" else front / back

        def found(images: np.ndarray) -> list[Start]:
            both = calibrated_starts(bound, masks, features.log_odds_weights(), given, images)
            wanted = [both.smooth] if self.centre == "smooth" else [both.calibrated]
            wanted = [*both] if self.centre == "auto" else wanted
            return [start if given is None else start._replace(ratio=1.0) for start in wanted]  # costs have it already

        return found

    def _check_tolerance(self) -> bool:
        """Whether there are latent labels."""
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance is {self.tolerance!r}; give a finite number of pixels >= 0.")
        if not (isinstance(self.refits, (int, np.integer)) and self.refits >= 0):
            raise ValueError(f"refits must be a whole number >= 0, got {self.refits!r}.")
        if isinstance(self.start, str):
            advice = "where a ramp begins, the ramp itself says: loss=Ramp(start=...)."
            raise ValueError(f"start must be a fitted ImageSegmenter or an array, got {self.start!r}; {advice}")
        latent = self.tolerance > 0 and self.refits > 0
        if latent and self.warm_start:
            changed = "tolerance > 0 changes it; set tolerance=0."
            raise ValueError(f"warm_start needs the same truth in every fit, and {changed}")
        return latent

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn does it, but a fitted model to start from stays fitted."""
        twin = super().__sklearn_clone__()
        twin.start = self.start if isinstance(self.start, Structured) else twin.start
        return twin

    def _bound_scores(self, X: Sequence[Image]) -> tuple[GridBound, np.ndarray]:
        weights = self._checked_weights()
        return self._bound(self._images(X)), weights

    def _bound(self, X: Sequence[Image], scribbles: Sequence[Picture] | None = None) -> GridBound:
        if self.features_ is not None:
            X = self.features_.transform(read_images(cast(Sequence[Picture], X)))
        elif not (X and isinstance(X[0], Mapping)):
            raise ValueError("the model was fitted on mappings of feature arrays; give those, not images.")
        known = None if scribbles is None else read_scribbles(scribbles)
        return self.model_.bind(X, None, layout=self.layout_, fixed=known)

    def _images(self, X: Sequence[Image]) -> list[Image]:
        channels = None if self.features_ is None else self.features_.n_channels_
        return _images(X, _one_picture(X, directions(self.neighbours).shape[1], channels))

    def _predict_codes(
        self, weights: np.ndarray, X: Sequence[Image], scribbles: Sequence[Picture] | None = None
    ) -> list[np.ndarray]:
        X = self._images(X)
        if not X:
            return []
        self.layout_.check_weights(weights)
        bound = self._bound(X, scribbles)
        codes = bound.argmax(weights).outputs
        return [code.reshape(shape).astype(np.uint8) for code, shape in zip(codes, bound.shapes, strict=True)]

    def _example_sections(self, X: object, y: object) -> list[Section]:
        images, masks = self._images(cast(Sequence[Image], X)), read_masks(cast(Sequence[Picture], y))
        pictures = None if self.features_ is None else read_images(cast(Sequence[Picture], images))
        return [*super()._example_sections(images, masks), overlays(pictures, masks, self.predict(images))]

    def _score_predictions(self, y: Sequence[Picture], predicted: list, weights: np.ndarray | None = None) -> float:
        return mean_iou(read_masks(y), predicted, weights)


def _one_picture(given: object, ndim: int, channels: int | None) -> bool:
    """Whether an array is one image or mask on ``ndim`` axes, with so many channels, and no stack of them."""
    if not isinstance(given, np.ndarray) or given.dtype == object:
        return False
    return given.ndim == ndim or (given.ndim == ndim + 1 and given.shape[-1] == channels)


def _images(X: Sequence[Image], single: bool) -> list[Image]:
    """A list of images; one path is not a list of letters, and one image not a list of rows."""
    if single:
        raise ValueError("X is one image; give a list of images, and of masks, also for one: [image], [mask].")
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(f"X is the path {os.fspath(X)!r}; give a list of images or paths, also for one.")
    return list(X)


def _check_masks(images: list[np.ndarray], masks: list[np.ndarray], ndim: int) -> None:
    """What would go wrong in the feature makers otherwise; the model checks the rest."""
    if len(images) != len(masks):
        raise ValueError(f"there are {len(images)} images and {len(masks)} masks; give one for each image.")
    for i, (image, mask) in enumerate(zip(images, masks, strict=True)):
        if image.shape[:ndim] != mask.shape:
            hint = " For volumes set neighbours=6, 18 or 26." if ndim == 2 and mask.ndim == 3 else ""
            raise ValueError(f"the mask of image {i} has shape {mask.shape}; the image has {image.shape[:ndim]}.{hint}")
    for label, name in ((1, "foreground (label 1)"), (0, "background (label 0)")):
        if not any((mask == label).any() for mask in masks):
            check = f"Check how the masks were read, and that {IGNORE} (ignored) is what you mean where it stands."
            raise ValueError(f"no mask has any {name}; there is nothing to learn. {check}")
