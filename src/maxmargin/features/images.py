"""Features of the pixels and edges of images and volumes.

Each function takes one image as float64 (*shape, channels), where shape is (height, width) or (depth, height, width),
and returns node features (*shape, F) or edge features (directions, *shape, G).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.special import logsumexp

from maxmargin.door import picture_block
from maxmargin.features.own_colours import colour_range, own_colours, place_of_foreground
from maxmargin.parameters import Parameters

__all__ = ["CONTRASTS", "ImageFeatures", "colours", "contrast_edges", "positions", "squared_steps", "textures"]

CONTRASTS = ("pixels", "image", "local")
_LEARNED = ("steps_", "n_channels_", "mean_", "scale_", "beta_", "place_", "limits_", "whole_", "largest_")
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


def textures(image: np.ndarray, scales: Sequence[float] = (1.5, 4.0)) -> np.ndarray:
    """Local mean, local deviation and gradient magnitude of the mean channel, at each scale."""
    grey = image.mean(axis=-1)
    parts = []
    for scale in scales:
        mean = ndimage.gaussian_filter(grey, scale)
        variance = ndimage.gaussian_filter(grey**2, scale) - mean**2
        parts += [mean, np.sqrt(np.maximum(variance, 0.0)), ndimage.gaussian_gradient_magnitude(grey, scale)]
    return np.stack(parts, axis=-1)


def squared_steps(image: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Squared colour distance between each pixel and its neighbour in each direction; 0 beyond the image."""
    shape = image.shape[:-1]
    out = np.zeros((len(steps), *shape))
    for j, step in enumerate(steps):
        first = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, shape, strict=True))
        second = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, shape, strict=True))
        out[j][first] = ((image[first] - image[second]) ** 2).sum(axis=-1)
    return out


def relative_steps(image: np.ndarray, steps: np.ndarray, contrast: str) -> np.ndarray:
    """Squared steps, (directions, *shape): plain, or relative to their mean over the image or the neighbourhood.

    Relative steps give an edge in soft light or on smooth ground the same strength as one in the sun or in grass.
    """
    squares = squared_steps(image, steps)
    mean = squares.mean() + 1e-9
    if contrast == "image":
        return squares / mean
    if contrast == "local":
        around = ndimage.gaussian_filter(squares.mean(axis=0), 8.0)
        return squares / (around + 0.2 * mean)
    if contrast != "pixels":
        raise ValueError(f"contrasts must be among {', '.join(CONTRASTS)}; got {contrast!r}.")
    return squares


def contrast_edges(
    image: np.ndarray, steps: np.ndarray, betas: Sequence[float], contrasts: Sequence[str] = ("pixels",)
) -> np.ndarray:
    """Edge features: a constant, and for each beta ``exp(-beta |I_p - I_q|^2)``, all divided by the step's length.

    Boykov, Jolly (2001), Interactive graph cuts for optimal boundary and region segmentation of objects in N-D images.

    Parameters
    ----------
    image : array (*shape, channels)
    steps : int array (directions, 2 or 3)
        Steps to the neighbours; see :func:`maxmargin.inference.min_cut.directions`.
    betas : sequence of float, or one such sequence per contrast
    contrasts : sequence of {"pixels", "image", "local"}
        What to use for ``|I_p - I_q|^2``: the squared step, or that divided by its mean over the image or nearby.

    Returns
    -------
    array (directions, *shape, 1 + len(betas) * len(contrasts))
    """
    parts = [np.ones((len(steps), *image.shape[:-1]))]
    rows = np.broadcast_to(np.asarray(betas, np.float64), (len(contrasts), np.shape(betas)[-1]))
    for contrast, row in zip(contrasts, rows, strict=True):
        squares = relative_steps(image, steps, contrast)
        parts += [np.exp(-beta * squares) for beta in row]
    length = np.sqrt((steps**2).sum(axis=1)).reshape(-1, *[1] * image.ndim)
    return np.stack(parts, axis=-1) / length


class Mixture(NamedTuple):
    """A mixture of Gaussians: weights (K,), means (K, d), and factors (K, d, d) of the inverse covariances."""

    weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray  # upper triangular, P with P P' the inverse covariance

    def check(self, d: int) -> None:
        """Refuse what is no mixture over ``d`` dimensions."""
        K = np.size(self.weights)
        for array, shape in zip(self, ((K,), (K, d), (K, d, d)), strict=True):
            if not isinstance(array, np.ndarray) or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"a mixture of its mixtures_ is not {K} finite Gaussians over {d} dimensions")
        if not K or not (self.weights > 0).all() or not (np.diagonal(self.factors, axis1=1, axis2=2) > 0).all():
            raise ValueError("a mixture of its mixtures_ has weights or covariances that are not positive")

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Logarithm of the density at each row of x (n, d); O(n K d^2)."""
        parts = [
            np.log(weight) + np.log(np.diag(factor)).sum() - 0.5 * (((x - mean) @ factor) ** 2).sum(axis=1)
            for weight, mean, factor in zip(*self, strict=True)
        ]
        return np.asarray(logsumexp(parts, axis=0)) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)


@dataclass(kw_only=True, repr=False, eq=False)
class ImageFeatures(Parameters):
    """Node and edge features of images, standardised on the training images.

    Parameters
    ----------
    colour, position, texture : bool
        See :func:`colours`, :func:`positions` and :func:`textures`.
    mixture : int
        Components of the Gaussian mixtures whose log-likelihood ratios, foreground against background, are features:
        one over the channels, one over channels, smoothed channels and position. 0 leaves them out.
    own : bool
        Add log ratios of the histograms of each image; see :func:`~maxmargin.features.own_colours.own_colours`.
    contrast : sequence of float
        Sharpness of the contrast-sensitive edge features, in units of one over twice the mean squared step.
    contrasts : sequence of {"pixels", "image", "local"}
        Kinds of steps; see :func:`contrast_edges`. There is one feature per kind and sharpness.
    strength : float
        Factor of the edge features: the regulariser shrinks all weights alike, but edges need larger ones than nodes.
    edges : bool
        Whether to make edge features; without them each pixel is labelled by itself.
    sample : int
        Maximum number of pixels per label to fit the mixtures on.
    random_state : int

    Attributes
    ----------
    mean_, scale_ : array (F - 1,)
        Mean and scale of the node features, which are standardised; a constant 1 comes last.
    beta_ : array (contrasts,)
        One over twice the mean squared step, per kind.
    place_ : array
        How often each position is foreground.
    """

    colour: bool = True
    position: bool = True
    texture: bool = True
    mixture: int = 5
    own: bool = True
    contrast: Sequence[float] = (1.0, 4.0)
    contrasts: Sequence[str] = ("pixels",)
    strength: float = 10.0
    edges: bool = True
    sample: int = 20_000
    random_state: int = 0

    def fit(self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray) -> Self:
        """Learn mixtures, scales and contrast.

        Parameters
        ----------
        images : list of arrays (*shape) or (*shape, channels)
            Whole numbers are divided by 255 or 65535, whichever they fit into.
        masks : list of int arrays (*shape)
            0 and 1; other pixels are left out of the mixtures.
        steps : int array (directions, 2 or 3)
            Steps to the neighbours of a pixel, with as many dimensions as the images.
        """
        self._fit(images, masks, steps)
        return self

    def transform(self, images: Sequence[ArrayLike]) -> list[dict[str, np.ndarray]]:
        """Features of each image as float32: ``node`` (*shape, F) and, unless left out, ``edge``."""
        if "mean_" not in vars(self):
            raise ValueError("these ImageFeatures are not fitted yet; call fit with images and masks first.")
        pictures = self._pictures(images)
        self._check_channels(pictures)
        for i, picture in enumerate(pictures):
            if np.abs(picture).max() > _ALIKE * self.largest_:
                usual = f"{self.largest_:.4g} (whole numbers divided by {self.whole_:g})"
                found = f"image {i} has values up to {np.abs(picture).max():.4g}, the training images up to {usual}"
                raise ValueError(f"{found}; scale all images the same way.")
        return [self._features(picture, self._raw(picture)) for picture in pictures]

    def fit_transform(self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray) -> list[dict]:
        """Fit, then transform the same images."""
        return [self._features(picture, raw) for picture, raw in zip(*self._fit(images, masks, steps), strict=True)]

    def to_state(self) -> tuple[dict[str, object], dict[str, object]]:
        """Constructor arguments and learned attributes, as plain values and arrays."""
        learned = {name: vars(self)[name] for name in _LEARNED}
        return self.get_params(), {**learned, "mixtures_": [[tuple(m) for m in pair] for pair in self.mixtures_]}

    @classmethod
    def from_state(cls, parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> Self:
        """The fitted features that :meth:`to_state` described."""
        features = cls(**parameters)
        learned = {"whole_": 255.0, "largest_": np.inf, **learned}  # older files lack these
        vars(features).update({name: learned[name] for name in _LEARNED})
        features.mixtures_ = [(Mixture(*front), Mixture(*back)) for front, back in learned["mixtures_"]]
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
        limits = (2, n) if own else (0,)
        for name, shape, low, high in (
            ("mean_", (size,), -np.inf, np.inf),
            ("scale_", (size,), 1e-300, np.inf),
            ("beta_", (len(self.contrasts),), 1e-300, np.inf),
            ("place_", place, 0.0, 1.0),
            ("limits_", limits, -np.inf, np.inf),
            ("whole_", (), 0.0, np.inf),
            ("largest_", (), 0.0, np.inf),
        ):
            array = np.asarray(getattr(self, name))
            if array.dtype.kind != "f" or array.shape != shape or not ((array >= low) & (array <= high)).all():
                raise ValueError(f"its {name} are not numbers of shape {shape} from {low:g} to {high:g}")
            if shape != () and not np.isfinite(array).all():
                raise ValueError(f"its {name} are not all finite")
        if own and not (self.limits_[0] < self.limits_[1]).all():
            raise ValueError("its limits_ do not rise")
        if len(self.mixtures_) not in (0, 2):
            raise ValueError("its mixtures_ are not those of two views")
        for pair, d in zip(self.mixtures_, (n, 2 * n + ndim), strict=False):
            for mixture in pair:
                mixture.check(d)

    def _fit(self, images: Sequence[ArrayLike], masks: Sequence[ArrayLike], steps: np.ndarray) -> tuple[list, list]:
        """Learn everything; returns the pictures and their node features before scaling."""
        self.steps_ = np.asarray(steps)
        self.whole_ = _whole_range(images)
        pictures = self._pictures(images)
        if not pictures:
            raise ValueError("no images were given; give at least one.")
        self.n_channels_ = pictures[0].shape[-1]
        self._check_channels(pictures)
        self.largest_ = max(float(np.abs(picture).max()) for picture in pictures)
        self.mixtures_ = self._fit_mixtures(pictures, masks) if self.mixture else []
        self.place_ = place_of_foreground(masks, self.steps_.shape[1]) if self.own else np.empty(0)
        self.limits_ = colour_range(pictures) if self.own else np.empty(0)
        raws = [self._raw(picture) for picture in pictures]
        count = sum(picture[..., 0].size for picture in pictures)
        axes = tuple(range(self.steps_.shape[1]))
        self.mean_ = np.sum([raw.sum(axis=axes, dtype=np.float64) for raw in raws], axis=0) / count
        squares = np.sum([((raw - self.mean_) ** 2).sum(axis=axes) for raw in raws], axis=0)
        spread = np.sqrt(squares / count)
        self.scale_ = np.where(spread > 1e-6, spread, 1.0)
        jumps = [[relative_steps(p, self.steps_, kind).mean() for kind in self.contrasts] for p in pictures]
        self.beta_ = 1.0 / (2.0 * np.maximum(np.mean(jumps, axis=0), 1e-12))
        return pictures, raws

    def _features(self, picture: np.ndarray, raw: np.ndarray) -> dict[str, np.ndarray]:
        scaled = (raw - self.mean_) / self.scale_
        node = np.concatenate([scaled, np.ones((*scaled.shape[:-1], 1))], axis=-1)
        if not self.edges:
            return {"node": node.astype(np.float32)}
        betas = np.multiply.outer(self.beta_, np.asarray(self.contrast, np.float64))
        edge = self.strength * contrast_edges(picture, self.steps_, betas, self.contrasts)
        return {"node": node.astype(np.float32), "edge": edge.astype(np.float32)}

    def _pictures(self, images: Sequence[ArrayLike]) -> list[np.ndarray]:
        return [picture_block(x, f"image {i}", self.steps_.shape[1], self.whole_) for i, x in enumerate(images)]

    def _check_channels(self, pictures: list[np.ndarray]) -> None:
        for i, picture in enumerate(pictures):
            if picture.shape[-1] != self.n_channels_:
                found = f"image {i} has {picture.shape[-1]} channels; the first training image has {self.n_channels_}"
                raise ValueError(f"{found}. Convert all to the same number, for instance to colour.")

    def _raw(self, picture: np.ndarray) -> np.ndarray:
        """Node features before scaling, float32 to save memory."""
        parts = [colours(picture)] if self.colour else []
        parts += [positions(picture.shape[:-1])] if self.position else []
        parts += [textures(picture)] if self.texture else []
        parts += [own_colours(picture, self.place_, self.limits_)] if self.own else []
        for (front, back), view in zip(self.mixtures_, _views(picture) if self.mixtures_ else (), strict=True):
            flat = view.reshape(-1, view.shape[-1])
            ratio = np.clip(front.log_density(flat) - back.log_density(flat), -10.0, 10.0)
            parts.append(ratio.reshape(*picture.shape[:-1], 1))
        shape = picture.shape[:-1]
        return np.concatenate(parts, axis=-1).astype(np.float32) if parts else np.zeros((*shape, 0), np.float32)

    def _fit_mixtures(self, pictures: list[np.ndarray], masks: Sequence[ArrayLike]) -> list[tuple[Mixture, Mixture]]:
        """A foreground and a background mixture for each view of the pixels."""
        from sklearn.mixture import GaussianMixture

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
        fitted = []
        for both in samples:
            pair = []
            for pixels in map(np.concatenate, both):
                n = min(self.mixture, max(1, len(pixels) // 20))
                mixture = GaussianMixture(n, reg_covar=1e-4, random_state=self.random_state)
                mixture.fit(pixels if len(pixels) > 1 else np.zeros((2, pixels.shape[1])))
                pair.append(Mixture(mixture.weights_, mixture.means_, mixture.precisions_cholesky_))
            fitted.append((pair[0], pair[1]))
        return fitted


def _views(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of the two mixtures: channels; channels, smoothed channels and position."""
    ndim = picture.ndim - 1
    smooth = ndimage.gaussian_filter(picture, (*[3.0] * ndim, 0.0))
    return picture, np.concatenate([picture, smooth, positions(picture.shape[:-1])[..., :ndim]], axis=-1)


def _whole_range(images: Sequence[ArrayLike]) -> float:
    """Divisor of whole numbers: 255 or 65535 if all images fit into it, else the largest value."""
    largest = 0.0
    for image in map(np.asarray, images):
        if image.dtype.kind in "iu" and image.size:
            largest = max(largest, float(np.abs(image.astype(np.float64)).max()))
    return next((limit for limit in (255.0, 65535.0) if largest <= limit), largest)
