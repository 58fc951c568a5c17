"""Calibrated probabilities: one temperature for all scores, learned on held-out examples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.models.labels import plain
from maxmargin.models.sequence_bound import SequenceBound

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import Labellings, SequenceInput, SequenceTagger

__all__ = ["best_temperature", "check_temperature", "fit_temperature", "negative_log_likelihood"]

COLDEST, HOTTEST = 1e-2, 1e2


def best_temperature(loss: Callable[[float], float], n_labels: int) -> float:
    """The temperature from 0.01 to 100 of least loss, which must be convex in its inverse.

    In its logarithm the loss then has one valley, which a bounded search finds to four digits, by about 25 evaluations.
    ``n_labels`` is the number of held-out labels that the loss judges.
    """
    from scipy.optimize import minimize_scalar

    def height(log_temperature: float) -> float:
        return loss(math.exp(log_temperature))

    if not n_labels:
        raise ValueError("there is no label in the held-out examples; pass some that training has not seen.")
    low, high = math.log(COLDEST), math.log(HOTTEST)
    found = minimize_scalar(height, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    heights = {t: height(t) for t in (0.0, low, high, float(found.x))}
    # where the valley is flat the search may end anywhere in it: 1 goes before a bound, a bound before what was found
    even = min(heights.values()) + 1e-9 * n_labels
    best = next(t for t, value in heights.items() if value <= even)
    if best in (low, high):
        side, why = ("lower", "without a mistake") if best == low else ("upper", "no better than by chance")
        found_at = f"at its {side} bound, {math.exp(best):g}: the held-out labels are predicted {why}"
        advice = "Pass more examples that training has not seen."
        warnings.warn(f"the temperature ended {found_at}. {advice}", stacklevel=4)
    return math.exp(best)


def fit_temperature(tagger: SequenceTagger, X: SequenceInput, y: Labellings) -> float:
    """The temperature that makes held-out labels most probable.

    Formula: ``min_T  sum_i log sum_y' exp(score(x_i, y') / T) - score(x_i, y_i) / T`` for T from 0.01 to 100.

    The sequences must not be those of training, whose labels the fitted tagger knows too well.

    Complexity: about 25 times that of the marginals of ``X``.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017 (temperature scaling).
    """
    y = [plain(labels) for labels in y]
    bound = tagger._bind_held_out(X, y)
    codes = [tagger.layout_.labels.encode(labels, i) for i, labels in enumerate(y)]
    weights = tagger._checked_weights()
    return best_temperature(lambda t: negative_log_likelihood(bound, weights, codes, t), sum(map(len, codes)))


def negative_log_likelihood(bound: SequenceBound, weights: np.ndarray, codes: list, temperature: float) -> float:
    """Of n label sequences (``codes``) under the distribution proportional to ``exp(score / temperature)``, in nats.

    Complexity: O(N K^2) for N tokens and K labels; memory for one sequence at a time.
    """
    from maxmargin.inference.recursion import chain_marginals

    weights = weights / temperature  # scores are linear in the weights
    total = 0.0
    for i, labels in enumerate(codes):
        if len(labels):
            unary, pairs = bound.tables(weights, i)
            steps = np.minimum(np.arange(len(labels) - 1), len(pairs) - 1)  # one table for all steps, or one for each
            score = unary[np.arange(len(labels)), labels].sum() + pairs[steps, labels[:-1], labels[1:]].sum()
            total += chain_marginals(unary, pairs, pairwise=False)[0] - score
    return float(total)


def check_temperature(temperature: object) -> float:
    """The temperature as a float; an error says what it may be."""
    if isinstance(temperature, (int, float, np.number)) and 0 < temperature < math.inf:
        return float(temperature)
    raise ValueError(f"temperature must be a positive number, got {temperature!r}; 1 leaves scores as they are.")
