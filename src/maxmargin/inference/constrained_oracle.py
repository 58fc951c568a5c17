"""Oracles that angular search asks: HiGHS with two rows more, and one for convex sets that asks plain queries."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from maxmargin.inference.slack_search import Reply, Wedge

if TYPE_CHECKING:
    import highspy

__all__ = ["ConstrainedOracle", "HullOracle", "pair_rows"]

ASIDE = 1e-7  # relative: how far inside an angle its open ends are; what HiGHS calls inside must not reach them
ROUNDING = 1e-11  # relative
TOLERANCE = 1e-9  # of HiGHS
TINY = 1e-7  # a positive h, and a positive g in the units of the largest


class ConstrainedOracle:
    """The point of largest ``h + lam g`` with ``low h <= g <= high h``, over a polytope or its integer points.

    Points are ``h = h_0 + <h, x>`` and ``g = g_0 + <g, x>`` for x in [0, 1]^n with ``lower <= A x <= upper``. A linear
    (with ``integer``, a mixed-integer) program with n + 2 columns, which stays in memory: another pair h, g changes two
    rows, another angle four entries. Bounds hold up to the tolerance of HiGHS, 1e-9.

    Parameters
    ----------
    rows : sparse array (m, n)
        A.
    lower, upper : array (m,)
    integer : bool array (n,), optional
        Which entries of x must be whole numbers.
    """

    def __init__(
        self, rows: sp.csr_array, lower: np.ndarray, upper: np.ndarray, integer: np.ndarray | None = None
    ) -> None:
        try:
            import highspy
        except ImportError as error:
            raise ImportError("a constrained oracle needs HiGHS; pip install 'maxmargin[lp]'.") from error
        m, n = rows.shape
        self.n, self.m = n, m
        self.program = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0)):
            self.program.setOptionValue(option, value)
        for kind in ("primal", "dual", "mip"):  # far below TINY, or points without h or g would pass
            self.program.setOptionValue(f"{kind}_feasibility_tolerance", TOLERANCE)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n + 2, m + 2
        lp.col_cost_ = np.zeros(n + 2)
        lp.col_lower_ = np.append(np.zeros(n), [TINY, 0.0])  # h and g of the points that matter are positive
        lp.col_upper_ = np.append(np.ones(n), [inf, inf])
        # behind the rows given: g - low h >= 0 and high h - g >= 0
        whole = sp.vstack([sp.hstack([rows, sp.csr_array((m, 2))]), sp.csr_array(([1.0, 1.0], ([0, 1], [n + 1, n])))])
        whole = sp.csr_array(whole)
        lp.row_lower_, lp.row_upper_ = np.append(lower, [0.0, 0.0]), np.append(upper, [inf, inf])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = whole.indptr, whole.indices, whole.data
        if integer is not None:
            kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
            lp.integrality_ = [kinds[int(whole)] for whole in np.append(integer, [False, False])]
        self.program.passModel(lp)
        self.aimed = False

    def aim(self, h: np.ndarray, g: np.ndarray, h_0: float, g_0: float = 0.0, least: float = 0.0) -> None:
        """Set the two functions of x, (n,) each, and the least positive g of the points that matter."""
        program, n, m = self.program, self.n, self.m
        if self.aimed:
            program.deleteRows(2, np.array([m + 2, m + 3], np.int32))
        self.least = max(least, TINY * float(np.abs(g).max(initial=1.0)))
        for column, (slopes, constant) in enumerate(((h, h_0), (g, g_0))):
            at = np.flatnonzero(slopes)
            index = np.append(at, n + column).astype(np.int32)
            program.addRow(constant, constant, len(index), index, np.append(-slopes[at], 1.0))
        self.aimed = True

    def __call__(self, lam: float, wedge: Wedge = Wedge(0.0, inf, False, True)) -> Reply[np.ndarray] | None:  # noqa: B008
        """The best point inside a wedge, and its x; None where there is none."""
        program, n, m = self.program, self.n, self.m
        low = wedge.low if wedge.closed_below else wedge.low * (1.0 + ASIDE)
        high = wedge.high if wedge.closed_above else wedge.high * (1.0 - ASIDE)
        program.changeColBounds(n + 1, self.least, inf)
        for row, slope, sign in ((m, low, 1.0), (m + 1, high, -1.0)):  # sign (g - slope h) >= 0, no entry above 1
            size = max(1.0, slope)
            program.changeCoeff(row, n, -sign * (slope / size if slope < inf else 1.0))
            program.changeCoeff(row, n + 1, sign / size)
        program.changeColCost(n, -1.0)
        program.changeColCost(n + 1, -lam)
        program.run()
        found = self._found(program)
        if found is None:
            return None
        h, g = float(found[n]), float(found[n + 1])
        return Reply(h, g, h + lam * g, found[:n]) if h > 0.0 and g > 0.0 else None

    def _found(self, program: highspy.Highs) -> np.ndarray | None:
        import highspy

        status = program.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return np.array(program.getSolution().col_value)
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return None
        raise ValueError(f"HiGHS ended with {program.modelStatusToString(status)}; scale h and g to be near 1.")


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

    def __call__(self, lam: float, wedge: Wedge = Wedge(0.0, inf, False, True)) -> Reply[np.ndarray] | None:  # noqa: B008
        """The best point inside a wedge, and its output; None where there is none."""
        low = max(wedge.low if wedge.closed_below else wedge.low * (1.0 + ASIDE), TINY)
        high = min(wedge.high if wedge.closed_above else wedge.high * (1.0 - ASIDE), 1.0 / TINY)
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


def pair_rows(n: int, edges: np.ndarray) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Rows for x = (z, y): y_e between ``max(0, z_j + z_k - 1)`` and ``min(z_j, z_k)``; A (3 m, n + m), lower, upper.

    Over [0, 1] they describe the linear relaxation of sets with pairs of labels (m edges), with whole z the sets.
    """
    m = len(edges)
    each, (j, k) = np.arange(m), edges.T
    one = np.ones(m)
    blocks = [
        sp.csr_array((np.concatenate([one, *(-one for _ in ends)]), (np.tile(each, len(ends) + 1), _at(n, each, ends))),
                     shape=(m, n + m))
        for ends in ((j,), (k,), (j, k))
    ]  # fmt: skip
    lower = np.concatenate([np.full(2 * m, -inf), np.full(m, -1.0)])
    return sp.csr_array(sp.vstack(blocks)), lower, np.concatenate([np.zeros(2 * m), np.full(m, inf)])


def _at(n: int, each: np.ndarray, ends: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.concatenate([n + each, *ends])
