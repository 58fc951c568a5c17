"""The table of :mod:`maxmargin.oracles.rescaling`, compiled; Python loops call the same function."""

from __future__ import annotations

import math

from maxmargin.kernel import kernel

MARGIN, SLACK, SQRT_SLACK, UNIT, NONE = range(5)


@kernel("UniTuple(float64, 2)(int64, float64, float64)", borrows=True)
def rescaled(rescaling, cost_weight, cost):
    """(scale, b) of the plane ``(scale psi, b)`` of an output."""
    if rescaling == MARGIN:
        return 1.0, cost_weight * cost
    if rescaling == SLACK:
        return cost, cost_weight * cost
    if rescaling == SQRT_SLACK:
        root = math.sqrt(cost)
        return root, cost_weight * root
    if rescaling == UNIT:
        return 1.0, cost_weight if cost > 0.0 else 0.0
    return 1.0, 0.0
