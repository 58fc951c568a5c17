"""The oracle that angular search asks, for any outputs that linear rows describe: HiGHS with two rows more."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from maxmargin.inference.slack_search import Reply, Wedge

if TYPE_CHECKING:
    import highspy

__all__ = ["ConstrainedOracle", "pair_rows"]

ASIDE = 1e-9  # relative: how far inside an angle its open ends are
TINY = 1e-7  # a positive g, in the units of the largest


class ConstrainedOracle:
    """The point of largest ``h + lam g`` with ``low h <= g <= high h``, over a polytope or its integer points.

    Points are ``h = h_0 + <h, x>`` and ``g = g_0 + <g, x>`` for x in [0, 1]^n with ``lower <= A x <= upper``. A linear
    (with ``integer``, a mixed-integer) program with n + 2 columns, which stays in memory: another pair h, g changes two
    rows, another angle four entries. Bounds hold up to the tolerances of HiGHS, 1e-7 (1e-6 with ``integer``).

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
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n + 2, m + 2
        lp.col_cost_ = np.zeros(n + 2)
        lp.col_lower_ = np.append(np.zeros(n), [0.0, 0.0])  # h and g of the points that matter are positive
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
        program.changeCoeff(m, n, -low)
        bounded = high < inf
        program.changeCoeff(m + 1, n, high if bounded else 1.0)
        program.changeCoeff(m + 1, n + 1, -1.0 if bounded else 0.0)
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
