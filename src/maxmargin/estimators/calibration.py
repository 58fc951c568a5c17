"""Calibrated probabilities: one temperature for all scores, learned on held-out sequences."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.models.base import writable
from maxmargin.models.labels import plain
from maxmargin.models.sequence_bound import SequenceBound

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import Labellings, SequenceInput, SequenceTagger

__all__ = ["check_temperature", "fit_temperature", "negative_log_likelihood"]

COLDEST, HOTTEST = 1e-2, 1e2


def fit_temperature(tagger: SequenceTagger, X: SequenceInput, y: Labellings) -> float:
    """The temperature that makes held-out labels most probable.

    Formula: ``min_T  sum_i log sum_y' exp(score(x_i, y') / T) - score(x_i, y_i) / T`` for T from 0.01 to 100. The sum
    is convex in 1 / T, so in log T it has one valley, which a bounded search finds to four digits.

    The sequences must not be those of training, whose labels the fitted tagger knows too well.

    Complexity: about 25 times that of the marginals of ``X``.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017 (temperature scaling).
    """
    from scipy.optimize import minimize_scalar

    y = [plain(labels) for labels in y]
    bound = tagger._bind_held_out(X, y)
    codes = [tagger.layout_.labels.encode(labels, i) for i, labels in enumerate(y)]
    if not any(map(len, codes)):
        raise ValueError("there is no token in the held-out sequences; pass some that training has not seen.")
    weights = writable(tagger.weights_)

    def height(log_temperature: float) -> float:
        return negative_log_likelihood(bound, weights, codes, math.exp(log_temperature))

    low, high = math.log(COLDEST), math.log(HOTTEST)
    found = minimize_scalar(height, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    heights = {t: height(t) for t in (0.0, low, high, float(found.x))}
    # where the valley is flat the search may end anywhere in it: 1 goes before a bound, a bound before what was found
    even = min(heights.values()) + 1e-9 * sum(map(len, codes))
    best = next(t for t, value in heights.items() if value <= even)
    if best in (low, high):
        side, why = ("lower", "without a mistake") if best == low else ("upper", "no better than by chance")
        found_at = f"at its {side} bound, {math.exp(best):g}: the held-out labels are predicted {why}"
        advice = "Pass more sequences that training has not seen."
        warnings.warn(f"the temperature ended {found_at}. {advice}", stacklevel=3)
    return math.exp(best)


def negative_log_likelihood(bound: SequenceBound, weights: np.ndarray, codes: list, temperature: float) -> float:
    """Of n label sequences (``codes``) under the distribution proportional to ``exp(score / temperature)``, in nats.

    Complexity: O(N K^2) for N tokens and K labels; memory for one sequence at a time.
    """
    from maxmargin.inference.recursion import marginals

    weights = weights / temperature  # scores are linear in the weights
    total = 0.0
    for i, labels in enumerate(codes):
        if len(labels):
            unary, pairs = bound.tables(weights, i)
            steps = np.minimum(np.arange(len(labels) - 1), len(pairs) - 1)  # one table for all steps, or one for each
            score = unary[np.arange(len(labels)), labels].sum() + pairs[steps, labels[:-1], labels[1:]].sum()
            total += marginals(unary, pairs, pairwise=False)[0] - score
    return float(total)


def check_temperature(temperature: object) -> float:
    """The temperature as a float; an error says what it may be."""
    if isinstance(temperature, (int, float, np.number)) and 0 < temperature < math.inf:
        return float(temperature)
    raise ValueError(f"temperature must be a positive number, got {temperature!r}; 1 leaves scores as they are.")
