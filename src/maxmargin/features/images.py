"""Features of the pixels and edges of images and volumes.

Each function takes one image as float64 (*shape, channels), where shape is (height, width) or (depth, height, width),
and returns node features (*shape, F) or edge features (directions, *shape, G).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from maxmargin.door import numbers, picture_block
from maxmargin.features.contrast import contrast_edges, relative_steps
from maxmargin.features.mixtures import Mixture, fit_mixture
from maxmargin.features.own_colours import colour_range, own_colours, places_of_foreground
from maxmargin.features.pixel_classifier import cross_fitted, log_loss, log_odds
from maxmargin.features.stroke_colours import StrokeColours
from maxmargin.features.surroundings import Surroundings, surroundings
from maxmargin.features.textures import orientations, ridges, textures
from maxmargin.parameters import Parameters

__all__ = ["ImageFeatures", "colours", "positions"]

Arrays = list[np.ndarray]
_LEARNED = ("steps_", "n_channels_", "mean_", "scale_", "beta_", "place_", "limits_", "odds_", "whole_", "largest_")
_ENOUGH = 12  # images for a second classifier: fewer do not show how much surroundings differ between images
_ALIKE = 8.0  # times the largest training value: images beyond that are scaled differently


def colours(image: np.ndarray) -> np.ndarray:
    """The channels; for three of them also chroma (the first two over the sum) and saturation (the range)."""
    if image.shape[-1] != 3:
        return image
    chroma = (image[..., :2] + 1e-3) / (image.sum(axis=-1, keepdims=True) + 3e-3)
    spread = image.max(axis=-1, keepdims=True) - image.min(axis=-1, keepdims=True)
    return np.concatenate([image, chroma, spread], axis=-1)


def positions(shape: tuple[int, ...]) -> np.ndarray:
    """Coordinates from -1 to 1 along each axis, and their products of degree two."""
    axes = np.meshgrid(*[np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1) for n in shape], indexing="ij")
    products = [a * b for i, a in enumerate(axes) for b in axes[i:]]
    return np.stack([*axes, *products], axis=-1)


@dataclass(kw_only=True, repr=False, eq=False)
class ImageFeatures(Parameters):
    """Node and edge features of images, standardised on the training images.

    Parameters
    ----------
    colour, position, texture, orientation, ridge : bool
        See :func:`colours`, :func:`positions` and :mod:`maxmargin.features.textures`.
    mixture : int
        Components of the Gaussian mixtures whose log-likelihood ratios, foreground against background, are features:
        one over the channels, one over channels, smoothed channels and position. 0 leaves them out.
    own : bool
        Add log ratios of the histograms of each image; see :func:`~maxmargin.features.own_colours.own_colours`.
    classifier : bool
        Add the log-odds of a classifier on all these features; see :mod:`maxmargin.features.pixel_classifier`. Those
        of training images come from classifiers of other images, so ``fit_transform(X, y)`` is not
        ``fit(X, y).transform(X)``.
    context : bool
        Let a second classifier see the log-odds of the first around each pixel, and give its own instead; see
        :mod:`maxmargin.features.surroundings`. It is left out with fewer than 12 images, and where its log-loss on
        held-out images is not lower.
    folds : int
        Parts into which the training images are split for that.
    contrast : sequence of float
        Sharpness of the contrast-sensitive edge features, in units of one over twice the mean squared step.
    contrasts : sequence of {"pixels", "image", "local", "smooth", "odds"}
        Kinds of steps; see :func:`~maxmargin.features.contrast.relative_steps`. There is one feature per kind and
        sharpness. None stands for pixels, and odds where there is a classifier.
    strength : float
        Factor of the edge features: the regulariser shrinks all weights alike, but edges need larger ones than nodes.
    edges : bool
        Whether to make edge features; without them each pixel is labelled by itself.
    sample : int
        Maximum number of pixels of each label to fit the mixtures and the classifier on.
    random_state : int

    Attributes
    ----------
    mean_, scale_ : array (F - 1,)
        Mean and scale of the node features, which are standardised; a constant 1 comes last.
    beta_ : array (contrasts,)
        One over twice the mean squared step, per kind.
    place_ : array
        How often each position is foreground.
    odds_ : array (F - 1, F - 1)
        Of the classifier: ``x' odds_ x`` are the log-odds of a pixel with the other standardised features x.
    context_ : list of at most one Surroundings
        The second classifier.
    """

    colour: bool = True
    position: bool = True
    texture: bool = True
    orientation: bool = True
    ridge: bool = True
    mixture: int = 5
    own: bool = True
    classifier: bool = True
    context: bool = True
    folds: int = 4
    contrast: Sequence[float] = (1.0, 4.0)
    contrasts: Sequence[str] | None = None
    strength: float = 10.0
    edges: bool = True
    sample: int = 20_000
    random_state: int = 0

    def fit(self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray) -> Self:
        """Learn mixtures, scales and contrast.

        Parameters
        ----------
        images : list of arrays ``(*shape)`` or ``(*shape, channels)``
            Whole numbers are divided by 255 or 65535, whichever they fit into.
        masks : list of int arrays ``(*shape)``
            0 and 1; other pixels are left out of the mixtures.
        steps : int array (directions, 2 or 3)
            Steps to the neighbours of a pixel, with as many dimensions as the images.
        """
        self._fit(images, masks, steps)
        return self

    def transform(self, images: Sequence[ArrayLike]) -> list[dict[str, np.ndarray]]:
        """Features of each image as float32: ``node``, ``(*shape, F)``, and, unless left out, ``edge``."""
        if "mean_" not in vars(self):
            raise ValueError("these ImageFeatures are not fitted yet; call fit with images and masks first.")
        pictures = self._pictures(images)
        self._check_channels(pictures)
        for i, picture in enumerate(pictures):
            if np.abs(picture).max() > _ALIKE * self.largest_:
                usual = f"{self.largest_:.4g} (whole numbers divided by {self.whole_:g})"
                found = f"image {i} has values up to {np.abs(picture).max():.4g}, the training images up to {usual}"
                raise ValueError(f"{found}; scale all images the same way.")
        return [self._transformed(picture) for picture in pictures]

    def fit_transform(self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray) -> list[dict]:
        """Fit, and features of the same images, with log-odds by classifiers that have not seen them."""
        return [self._features(*made) for made in zip(*self._fit(images, masks, steps), strict=True)]

    def colours_of(self, image: ArrayLike) -> StrokeColours:
        """The colours of one image, for strokes to tell which are foreground."""
        (picture,) = self._pictures([image])
        return StrokeColours(picture, self.steps_)

    def log_odds_weights(self) -> np.ndarray:
        """Node weights (F,) whose scores are the log-odds of the classifier."""
        weights = np.zeros(len(self.mean_) + 1)
        weights[-2:] = self.scale_[-1], self.mean_[-1]
        return weights

    def to_state(self) -> tuple[dict[str, object], dict[str, object]]:
        """Constructor arguments and learned attributes, as plain values and arrays."""
        learned = {name: vars(self)[name] for name in _LEARNED}
        mixtures = [[tuple(m) for m in pair] for pair in self.mixtures_]
        return self.get_params(), {**learned, "mixtures_": mixtures, "context_": [tuple(s) for s in self.context_]}

    @classmethod
    def from_state(cls, parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> Self:
        """The fitted features that :meth:`to_state` described."""
        none = {"orientation": False, "ridge": False, "classifier": False, "context": False}  # older files lack these
        features = cls(**{**none, **parameters})
        learned = {"whole_": 255.0, "largest_": np.inf, "odds_": np.empty((0, 0)), "context_": [], **learned}
        vars(features).update({name: learned[name] for name in _LEARNED})
        features.mixtures_ = [(Mixture(*front), Mixture(*back)) for front, back in learned["mixtures_"]]
        features.context_ = [Surroundings(*parts) for parts in learned["context_"]]
        features._check_learned()
        return features

    def _check_learned(self) -> None:
        """Refuse what cannot have been learned: files may say anything."""
        steps, n = np.asarray(self.steps_), self.n_channels_
        if steps.dtype.kind not in "iu" or steps.ndim != 2 or steps.shape[1] not in (2, 3) or (np.abs(steps) > 1).any():
            raise ValueError("its steps_ are not those to the neighbours of a pixel")
        if type(n) is not int or n < 1:
            raise ValueError(f"its n_channels_ is {str(n)[:40]!r}")
        ndim, size, own = steps.shape[1], np.size(self.mean_), bool(self.own)
        place = np.shape(self.place_) if own and np.ndim(self.place_) == ndim else (0,)
        limits = (2, n) if self._counts_colours() else (0,)
        for name, shape, low, high in (
            ("mean_", (size,), -np.inf, np.inf),
            ("scale_", (size,), 1e-300, np.inf),
            ("beta_", (len(self._kinds()),), 1e-300, np.inf),
            ("place_", place, 0.0, 1.0),
            ("limits_", limits, -np.inf, np.inf),
            ("odds_", (size, size) if self.classifier else (0, 0), -np.inf, np.inf),
            ("whole_", (), 0.0, np.inf),
            ("largest_", (), 0.0, np.inf),
        ):
            array = np.asarray(getattr(self, name))
            if array.dtype.kind != "f" or array.shape != shape or not ((array >= low) & (array <= high)).all():
                raise ValueError(f"its {name} are not numbers of shape {shape} from {low:g} to {high:g}")
            if shape != () and not np.isfinite(array).all():
                raise ValueError(f"its {name} are not all finite")
        if len(limits) > 1 and not (self.limits_[0] < self.limits_[1]).all():
            raise ValueError("its limits_ do not rise")
        if len(self.mixtures_) not in (0, 2):
            raise ValueError("its mixtures_ are not those of two views")
        for pair, d in zip(self.mixtures_, (n, 2 * n + ndim), strict=False):
            for mixture in pair:
                mixture.check(d)
        if len(self.context_) > bool(self.classifier and self.context):
            raise ValueError("its context_ is there without a classifier or context, or more than once")
        for second in self.context_:
            second.check(ndim)

    def _fit(
        self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray
    ) -> tuple[Arrays, Arrays, Sequence[np.ndarray | None]]:
        """Learn everything; returns the pictures, their scaled node features, and their log-odds."""
        self.steps_ = np.asarray(steps)
        self.whole_ = _whole_range(images)
        pictures = self._pictures(images)
        if not pictures:
            raise ValueError("no images were given; give at least one.")
        self.n_channels_ = pictures[0].shape[-1]
        self._check_channels(pictures)
        self.largest_ = max(float(np.abs(picture).max()) for picture in pictures)
        self.mixtures_ = self._fit_mixtures(pictures, masks) if self.mixture else []
        self.place_, places = np.empty(0), [np.empty(0)] * len(pictures)
        if self.own:  # an image is told where the others have their foreground, as a new one will be
            self.place_, places = places_of_foreground(masks, self.steps_.shape[1])
        self.limits_ = colour_range(pictures) if self._counts_colours() else np.empty(0)
        raws = [self._raw(picture, place) for picture, place in zip(pictures, places, strict=True)]
        self.mean_, self.scale_ = _mean_and_scale(raws)
        bases = [self._scaled(raw) for raw in raws]
        del raws
        odds: Sequence[np.ndarray | None] = [None] * len(pictures)
        self.odds_ = np.empty((0, 0))
        self.context_: list[Surroundings] = []
        if self.classifier:
            rng = np.random.default_rng(self.random_state)
            labels = [np.asarray(mask) for mask in masks]
            self.odds_, found = cross_fitted(bases, labels, self.folds, self.sample, rng)
            if self.context and len(pictures) >= _ENOUGH:
                found = self._fit_context(pictures, labels, found)
            every = np.concatenate([odd.ravel() for odd in found])
            self.mean_ = np.append(self.mean_, every.mean())
            self.scale_ = np.append(self.scale_, max(float(every.std()), 1e-6))
            odds = found
        jumps = [
            [relative_steps(picture, self.steps_, kind, odd).mean() for kind in self._kinds()]
            for picture, odd in zip(pictures, odds, strict=True)
        ]
        self.beta_ = 1.0 / (2.0 * np.maximum(np.mean(jumps, axis=0), 1e-12))
        return pictures, bases, odds

    def _transformed(self, picture: np.ndarray) -> dict[str, np.ndarray]:
        raw = self._raw(picture, self.place_)
        known = len(self.mean_) - bool(self.classifier)
        if raw.shape[-1] != known:
            what = f"there are {raw.shape[-1]} features of a pixel where {known} were learned"
            raise ValueError(f"{what}; fit again, parameters may not change after that.")
        base = self._scaled(raw)
        if not self.classifier:
            return self._features(picture, base, None)
        odds = log_odds(base, self.odds_)
        for second in self.context_:
            odds = second.log_odds(picture, odds, self.limits_)
        return self._features(picture, base, odds)

    def _counts_colours(self) -> bool:
        """Whether the colours of each image are counted, by position or by log-odds."""
        return self.own or (self.classifier and self.context)

    def _fit_context(self, pictures: Arrays, labels: Arrays, first: Arrays) -> Arrays:
        """Learn the second classifier; returns its log-odds of each image, by a table of other images."""
        side = float(np.exp(np.mean([np.log(odds.shape).mean() for odds in first])))
        seen = [surroundings(picture, odds, self.limits_, side) for picture, odds in zip(pictures, first, strict=True)]
        second = Surroundings(side, *_mean_and_scale(seen), np.empty((0, 0)))
        rng = np.random.default_rng(self.random_state)  # the parts of the first classifier again
        table, found = cross_fitted([second.scaled(x) for x in seen], labels, self.folds, self.sample, rng)
        if log_loss(found, labels) >= log_loss(first, labels):
            return first
        self.context_ = [second._replace(table=table)]
        return found

    def _scaled(self, raw: np.ndarray) -> np.ndarray:
        """Standardised node features and a constant 1, float32, without the log-odds."""
        n = raw.shape[-1]
        base = np.ones((*raw.shape[:-1], n + 1), np.float32)
        base[..., :n] = (raw - self.mean_[:n]) / self.scale_[:n]
        return base

    def _features(self, picture: np.ndarray, base: np.ndarray, odds: np.ndarray | None) -> dict[str, np.ndarray]:
        node = base
        if odds is not None:
            scaled = ((odds - self.mean_[-1]) / self.scale_[-1])[..., None]
            node = np.concatenate([base[..., :-1], scaled.astype(np.float32), base[..., -1:]], axis=-1)
            odds = odds.astype(np.float32)
        if not self.edges:
            return {"node": node}
        betas = np.multiply.outer(self.beta_, numbers(self.contrast, "contrast"))
        edge = contrast_edges(picture.astype(np.float32), self.steps_, betas, self._kinds(), odds)
        edge *= np.float32(self.strength)
        return {"node": node, "edge": edge}

    def _kinds(self) -> Sequence[str]:
        return self.contrasts if self.contrasts is not None else ("pixels", "odds")[: 1 + bool(self.classifier)]

    def _pictures(self, images: Sequence[ArrayLike]) -> list[np.ndarray]:
        return [picture_block(x, f"image {i}", self.steps_.shape[1], self.whole_) for i, x in enumerate(images)]

    def _check_channels(self, pictures: list[np.ndarray]) -> None:
        for i, picture in enumerate(pictures):
            if picture.shape[-1] != self.n_channels_:
                found = f"image {i} has {picture.shape[-1]} channels; the first training image has {self.n_channels_}"
                raise ValueError(f"{found}. Convert all to the same number, for instance to colour.")

    def _raw(self, picture: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Node features before scaling, float32 to save memory."""
        parts = [colours(picture)] if self.colour else []
        parts += [positions(picture.shape[:-1])] if self.position else []
        parts += [textures(picture)] if self.texture else []
        parts += [orientations(picture)] if self.orientation else []
        parts += [ridges(picture)] if self.ridge else []
        parts += [own_colours(picture, place, self.limits_)] if self.own else []
        for (front, back), view in zip(self.mixtures_, _views(picture) if self.mixtures_ else (), strict=True):
            flat = view.reshape(-1, view.shape[-1])
            ratio = np.clip(front.log_density(flat) - back.log_density(flat), -10.0, 10.0)
            parts.append(ratio.reshape(*picture.shape[:-1], 1))
        shape = picture.shape[:-1]
        return np.concatenate(parts, axis=-1).astype(np.float32) if parts else np.zeros((*shape, 0), np.float32)

    def _fit_mixtures(self, pictures: list[np.ndarray], masks: Sequence[ArrayLike]) -> list[tuple[Mixture, Mixture]]:
        """A foreground and a background mixture for each view of the pixels."""
        rng = np.random.default_rng(self.random_state)
        each = max(1, self.sample // len(pictures))
        samples: list[tuple[list, list]] = [([], []), ([], [])]  # by view; foreground, background
        for picture, mask in zip(pictures, masks, strict=True):
            flat = np.asarray(mask).ravel()
            views = [view.reshape(len(flat), -1) for view in _views(picture)]
            for kind, label in enumerate((1, 0)):
                chosen = np.flatnonzero(flat == label)
                chosen = rng.choice(chosen, min(each, len(chosen)), replace=False)
                for view, both in zip(views, samples, strict=True):
                    both[kind].append(view[chosen])
        front_and_back = [[fit_mixture(pixels, self.mixture, self.random_state) for pixels in both] for both in samples]
        return [(front, back) for front, back in front_and_back]


def _views(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of the two mixtures: channels; channels, smoothed channels and position."""
    ndim = picture.ndim - 1
    smooth = ndimage.gaussian_filter(picture, (*[3.0] * ndim, 0.0))
    return picture, np.concatenate([picture, smooth, positions(picture.shape[:-1])[..., :ndim]], axis=-1)


def _mean_and_scale(features: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation (F,) over the pixels of all images (*shape, F); 1 where there is next to no deviation."""
    count = sum(x[..., :1].size for x in features)
    mean = np.sum([x.sum(axis=tuple(range(x.ndim - 1)), dtype=np.float64) for x in features], axis=0) / count
    squares = np.sum([((x - mean) ** 2).sum(axis=tuple(range(x.ndim - 1))) for x in features], axis=0)
    spread = np.sqrt(squares / count)
    return mean, np.where(spread > 1e-6, spread, 1.0)


def _whole_range(images: Sequence[ArrayLike]) -> float:
    """Divisor of whole numbers: 255 or 65535 if all images fit into it, else the largest value."""
    largest = 0.0
    for image in map(np.asarray, images):
        if image.dtype.kind in "iu" and image.size:
            largest = max(largest, float(np.abs(image.astype(np.float64)).max()))
    return next((limit for limit in (255.0, 65535.0) if largest <= limit), largest)
