"""How often an L1-regularised large-margin model may err on new examples: the bound of Wang and Shawe-Taylor.

With probability ``confidence`` over the training examples, the share of new ones that are outscored is at most

    2 / s (bits + log2(2 / (1 - confidence)))       bits = log2 N(2 s, margin / 2)

    log2 N(l, r) <= 36 (c b / r)^2 (1 + ln(d + n)) log2(2 ceil(4 c b / r + 2) l + 1)

where c is the objective ``|w|_1 + C sum_i xi_i``, b is at least 1/C and every ``|phi(x, y) - phi(x, y')|_j``, d counts
the features, those of free sign twice (as ``phi`` and ``-phi``), n the examples, and s the sample. The paper has every
pair of a good and a bad output as a sample, which makes s exponential in the length of a sequence. Pairs of one example
are not drawn independently, as its theorem 6.1 needs, so that by default s is n. Then the bound of most fits is above 1
and says nothing: c grows with the examples that keep a loss, and its square is there.

Wang, Shawe-Taylor 2009, section 6. Zhang 2002, Covering number bounds of certain regularized linear function classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from maxmargin.estimators.large_margin import LargeMargin

__all__ = ["Generalisation", "error_bound", "generalisation"]

MARGIN = 1.0
X = TypeVar("X")
Y = TypeVar("Y")


class Generalisation(NamedTuple):
    """The bound and what it is made of."""

    bound: float  # on the probability of an error
    bits: float  # log2 of the covering number
    objective: float  # c
    largest: float  # b
    n_features: int  # d
    n_examples: int

    def __str__(self) -> str:
        says = "" if self.bound < 1.0 else " (above 1: it says nothing)"
        made_of = f"objective {self.objective:.4g}, largest difference {self.largest:.4g}, {self.n_features} features"
        return f"at most {self.bound:.4g} errors per new example{says}; {made_of}, {self.n_examples} examples"


def error_bound(
    objective: float, largest: float, n_features: int, n_examples: int, sample: int, confidence: float = 0.95
) -> Generalisation:
    """The bound from its numbers; ``sample`` is s, a whole number of any size. O(1)."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
    if not (sample > 0 and largest > 0.0 and objective >= 0.0 and math.isfinite(objective * largest)):
        raise ValueError("sample and largest must be above 0, the objective finite and not below 0.")
    ratio = objective * largest / (0.5 * MARGIN)
    size = math.log2(2 * math.ceil(4.0 * ratio + 2.0) * 2 * sample + 1)
    bits = 36.0 * ratio**2 * (1.0 + math.log(n_features + n_examples)) * size
    bound = 2.0 ** (1.0 - math.log2(sample)) * (bits + math.log2(2.0 / (1.0 - confidence)))
    return Generalisation(bound, bits, objective, largest, n_features, n_examples)


def generalisation(
    estimator: LargeMargin[X, Y], X: X, y: Y, *, largest: float, confidence: float = 0.95, pairs: int | None = None
) -> Generalisation:
    """The bound of a model with ``penalty="l1"`` and unit margins; one pass over its training examples.

    Parameters
    ----------
    estimator : fitted
    X, y : its training examples
    largest : float
        A number that no entry of ``phi(x, y) - phi(x, y')`` exceeds in size, on new examples either: with features of
        0 and 1 the length of the longest sequence.
    confidence : float
    pairs : int, optional
        All pairs of a good and a bad output, to count them as the paper does; by default examples count.

    Examples
    --------
    >>> from maxmargin import MulticlassClassifier
    >>> from maxmargin.reports import generalisation
    >>> X, y = [[0.0], [1.0]] * 20, ["low", "high"] * 20
    >>> classifier = MulticlassClassifier(penalty="l1", C=1.0).fit(X, y)
    >>> generalisation(classifier, X, y, largest=1.0).bound > 1
    True
    """
    from maxmargin.estimators.large_margin import rescaling_of
    from maxmargin.formulations.rescaled_hinge import RescaledHinge

    if estimator.penalty != "l1" or rescaling_of(estimator.penalty, estimator.rescaling) != "unit":
        raise ValueError('the bound is that of penalty="l1" with unit margins; fit with these.')
    w, bound = estimator._checked_weights(), estimator._bind_held_out(X, y)
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(bound, C=estimator.C)
    objective = problem.primal(w, problem.oracle.planes(w, np.arange(bound.n_examples)).losses(bound.n_examples))
    features = len(w) if estimator.positive is True else 2 * len(w)
    b = max(float(largest), 1.0 / estimator.C)
    sample = bound.n_examples if pairs is None else pairs
    return error_bound(objective, b, features, bound.n_examples, sample, confidence)
