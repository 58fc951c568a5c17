"""The colours of one picture as strokes tell them: what is foreground there, whatever other pictures look like."""

from __future__ import annotations

import numpy as np

from maxmargin.features.contrast import squared_steps
from maxmargin.features.mixtures import Mixture, n_components, quick_mixture

__all__ = ["StrokeColours"]

_COMPONENTS = 5
_PIXELS = 2000  # of each label that a mixture is fitted to
_ROUNDS, _MORE = 5, 1  # of fitting the first mixtures, and those of later masks: each mask is a guess
_STROKED = 0.25  # share of them that the strokes make up, by repetition
_MOST = 10.0  # largest log ratio
_SMOOTHNESS = 20.0  # what a pair of equal neighbours with different labels costs, in nats
_DEVIATION = 0.25  # of photographs with values from 0 to 1, which the mixtures are made for


class StrokeColours:
    """The colours of a picture (*shape, channels), with the steps (directions, 2 or 3) to its neighbours.

    ``capacities`` (directions, *shape) are ``20 exp(-|I_p - I_q|^2 / (2 mean)) / |p - q|``, with the mean over the
    picture of ``|I_p - I_q|^2``. Rother, Kolmogorov, Blake (2004), "GrabCut": interactive foreground extraction using
    iterated graph cuts.
    """

    def __init__(self, picture: np.ndarray, steps: np.ndarray) -> None:
        picture = picture * (_DEVIATION / max(float(picture.std()), 1e-9))
        self._pixels = picture.reshape(-1, picture.shape[-1])
        self._mixtures: dict[int, Mixture] = {}  # by label: the last ones, where the next begin
        squares = squared_steps(picture, steps)
        lengths = np.sqrt((steps**2).sum(axis=1)).reshape(-1, *[1] * steps.shape[1])
        self.capacities = _SMOOTHNESS * np.exp(-squares / max(2.0 * float(squares.mean()), 1e-12)) / lengths

    def log_ratio(self, mask: np.ndarray, scribble: np.ndarray) -> np.ndarray:
        """``log p(colour | 1) / p(colour | 0)`` of each pixel, (*shape): mixtures of the pixels of a mask and strokes.

        Both are arrays (*shape) of 0 and 1, the scribble with -1 where it says nothing. A label without pixels is
        anywhere. Complexity: O(pixels channels^2), and two mixtures of at most 2,500 pixels.
        """
        rng, densities = np.random.default_rng(0), []
        for label in (1, 0):
            inside, stroked = (np.flatnonzero(part == label) for part in (mask, scribble))
            inside = inside if len(inside) else np.arange(mask.size)
            some = rng.choice(inside, min(_PIXELS, len(inside)), replace=False)
            again = np.repeat(stroked, max(1, int(_STROKED * _PIXELS / max(1, len(stroked)))))
            pixels, found = self._pixels[np.concatenate([some, again])], self._mixtures.get(label)
            if found is None or len(found.weights) < n_components(len(pixels), _COMPONENTS):
                found = quick_mixture(pixels, _COMPONENTS, _ROUNDS)
            else:
                found = found.improved(pixels, _MORE)
            self._mixtures[label] = found
            densities.append(found.log_density(self._pixels))
        return np.clip(densities[0] - densities[1], -_MOST, _MOST).reshape(mask.shape)
