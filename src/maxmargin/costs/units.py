"""Costs as whole multiples of one number, so that the best score for every cost can be tabulated."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

import numpy as np

__all__ = ["unit_of"]

FINEST = 1000  # ratios of costs are fractions with denominators up to this


def unit_of(costs: np.ndarray) -> float | None:
    """The largest number of which all costs are whole multiples; 0 when all are 0, None when there is none.

    Ratios to the smallest cost must be fractions with denominators up to :data:`FINEST`, to within 1e-9.
    """
    positive = np.unique(costs[costs > 0.0])
    if len(positive) == 0:
        return 0.0
    with np.errstate(over="ignore"):
        ratios = positive / positive[0]
    if not np.isfinite(ratios[-1]):
        return None
    if (ratios == np.rint(ratios)).all():
        parts = [Fraction(int(ratio)) for ratio in ratios]
    else:
        parts = [Fraction(float(ratio)).limit_denominator(FINEST) for ratio in ratios]
    if any(abs(float(part) - ratio) > 1e-9 * ratio for part, ratio in zip(parts, ratios, strict=True)):
        return None
    below = lcm(*(part.denominator for part in parts))
    return float(positive[0]) * gcd(*(int(part * below) for part in parts)) / below
