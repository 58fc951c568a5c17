"""An oracle of angles for convex sets that asks plain queries alone."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from maxmargin.inference.constrained_oracle import TINY
from maxmargin.inference.slack_search import Reply

ROUNDING = 1e-11  # relative


class HullOracle:
    """The point of largest ``h + lam g`` with ``low h <= g <= high h`` over a convex set, by plain queries alone.

    The points (h, g) of a convex set are a convex region of the plane, so the best point of an angle is a corner of the
    region, or lies where an end of the angle leaves it: on an edge, found between corners on either side by asking for
    what is farthest beyond the line through them. All corners seen are kept, so later angles take fewer queries.

    Parameters
    ----------
    support : function of two numbers
        ``support(a, b)`` answers with the point of largest ``a h + b g``, for a and b of any sign. Some point, as that
        of the truth, has h > 0 and g = 0.
    """

    def __init__(self, support: Callable[[float, float], Reply[np.ndarray]]) -> None:
        self.support = support
        self.corners: list[Reply[np.ndarray]] = []

    def __call__(self, lam: float, low: float = 0.0, high: float = inf) -> Reply[np.ndarray] | None:
        """The best point between two slopes, and its output; None where there is none."""
        low, high = max(low, TINY), min(high, 1.0 / TINY)
        best: Reply[np.ndarray] | None = self._corner(1.0, lam)
        assert best is not None
        if best.g < low * best.h:
            best = self._exit(low)
        elif best.g > high * best.h:
            best = self._exit(high)
        return None if best is None else best._replace(bound=(best.h + lam * best.g) * (1.0 + ROUNDING))

    def _corner(self, a: float, b: float) -> Reply[np.ndarray]:
        self.corners.append(self.support(a, b))
        return self.corners[-1]

    def _exit(self, slope: float) -> Reply[np.ndarray] | None:
        """Where the ray of a slope leaves the region; None where it does not meet it."""
        for side in (1.0, -1.0):
            if all(side * (point.g - slope * point.h) <= 0.0 for point in self.corners):
                farthest = self._corner(-side * slope, side)
                if side * (farthest.g - slope * farthest.h) < 0.0:
                    return None
        while True:
            below, above, point = self._crossing(slope)
            a, b = above.g - below.g, below.h - above.h
            seen, beyond = {(corner.h, corner.g) for corner in self.corners}, self._corner(a, b)
            size = abs(a) * (abs(below.h) + abs(above.h)) + abs(b) * (below.g + above.g)
            gain = a * (beyond.h - below.h) + b * (beyond.g - below.g)
            if gain <= ROUNDING * size or (beyond.h, beyond.g) in seen:
                return point if point.h > 0.0 else None

    def _crossing(self, slope: float) -> tuple[Reply[np.ndarray], Reply[np.ndarray], Reply[np.ndarray]]:
        """The farthest point of a ray between two corners, behind the two."""
        found = []
        heights = [(point.g - slope * point.h, point) for point in self.corners]
        for under, below in heights:
            for over, above in heights:
                if under <= 0.0 <= over and under < over:
                    t = -under / (over - under)
                    found.append((below.h + t * (above.h - below.h), t, below, above))
        h, t, below, above = max(found, key=lambda candidate: candidate[0])
        return below, above, Reply(h, slope * h, 0.0, (1.0 - t) * below.output + t * above.output)
