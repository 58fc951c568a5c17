"""The general oracle that angular search asks: HiGHS with two rows more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf

import numpy as np
import scipy.sparse as sp

from maxmargin.inference.slack_search import Reply

__all__ = ["ConstrainedOracle", "kept_program", "pair_rows"]

ROUNDING = 1e-8  # relative: by so much a bound is above what HiGHS says
TOLERANCE = 1e-9  # of HiGHS
MOST_KEPT = 4  # programs
TINY = 1e-7  # the least h that is looked at, and the least g in the units of the largest, where it is not known

_kept = threading.local()


class ConstrainedOracle:
    """The point of largest ``h + lam g`` with ``low h <= g <= high h``, over a polytope or its integer points.

    Points are ``h = h_0 + <h, x>`` and ``g = g_0 + <g, x>`` for x in [0, 1]^n with ``lower <= A x <= upper``. A linear
    (with ``integer``, a mixed-integer) program with n + 2 columns, which stays in memory: another pair h, g changes two
    rows, another angle four entries. Both ends of an angle belong to it; HiGHS, with a tolerance of 1e-9, could not
    leave out a point on an end. So it is to be asked for ``wedge.closed()``, and angular search given ``strip`` and
    ``beyond``.

    Parameters
    ----------
    rows : sparse array (m, n)
        A.
    lower, upper : array (m,)
    integer : bool array (n,), optional
        Which entries of x must be whole numbers.
    nodes : int
        Of the search for whole numbers; where it ends before that, the bound is that of the nodes left.

    Attributes
    ----------
    beyond : float
        The most that points are worth which are never answered with: those with h or g below :data:`TINY`.
    """

    def __init__(
        self,
        rows: sp.csr_array,
        lower: np.ndarray,
        upper: np.ndarray,
        integer: np.ndarray | None = None,
        nodes: int = 2**31 - 1,
    ) -> None:
        try:
            import highspy
        except ImportError as error:
            raise ImportError("a constrained oracle needs HiGHS; pip install highspy.") from error
        m, n = rows.shape
        self.n, self.m = n, m
        self.program = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_max_nodes": nodes}
        for option, value in options.items():
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
        self.aimed, self.integer, self.beyond = False, integer is not None, 0.0

    def aim(self, h: np.ndarray, g: np.ndarray, h_0: float, g_0: float = 0.0, least: float = 0.0) -> None:
        """Set the two functions of x, (n,) each, and the least positive g of the points that matter."""
        program, n, m = self.program, self.n, self.m
        if self.aimed:
            program.deleteRows(2, np.array([m + 2, m + 3], np.int32))
        self.highest, self.dearest = h_0 + float(h.clip(0.0).sum()), g_0 + float(g.clip(0.0).sum())
        self.least = least if least > 0.0 else TINY * float(np.abs(g).max(initial=1.0))
        self.beyond = max(TINY * self.dearest, 0.0 if least > 0.0 else self.least * self.highest, 0.0)
        for column, (slopes, constant) in enumerate(((h, h_0), (g, g_0))):
            at = np.flatnonzero(slopes)
            index = np.append(at, n + column).astype(np.int32)
            program.addRow(constant, constant, len(index), index, np.append(-slopes[at], 1.0))
        self.aimed = True

    def __call__(self, lam: float, low: float = 0.0, high: float = inf) -> Reply[np.ndarray | None] | None:
        """The best point between two slopes, and its x; None where there is none.

        Where the nodes ended before a point was found there is only the bound, at h = g = 0.
        """
        program, n, m = self.program, self.n, self.m
        if low > high:
            return None
        program.changeColBounds(n + 1, self.least, inf)
        for row, slope, sign in ((m, low, 1.0), (m + 1, high, -1.0)):  # sign (g - slope h) >= 0, no entry above 1
            size = max(1.0, slope)
            program.changeCoeff(row, n, -sign * (slope / size if slope < inf else 1.0))
            program.changeCoeff(row, n + 1, sign / size)
        program.changeColCost(n, -1.0)
        program.changeColCost(n + 1, -lam)
        if self.integer:
            program.clearSolver()  # answers must not depend on what was asked before
        program.run()
        return self._reply(lam)

    def _reply(self, lam: float) -> Reply[np.ndarray | None] | None:
        from highspy import HighsModelStatus as Status

        program, n = self.program, self.n
        status, info = program.getModelStatus(), program.getInfo()
        if status in (Status.kInfeasible, Status.kUnboundedOrInfeasible):
            return None
        if status not in (Status.kOptimal, Status.kSolutionLimit):
            raise ValueError(f"HiGHS ended with {program.modelStatusToString(status)}; scale h and g to be near 1.")
        solution = program.getSolution()
        found = np.array(solution.col_value) if solution.value_valid else np.zeros(n + 2)
        h, g = max(float(found[n]), 0.0), max(float(found[n + 1]), 0.0)
        proven = -info.mip_dual_bound if self.integer else -info.objective_function_value
        bound = max(min(proven, self.highest + lam * self.dearest), h + lam * g)
        return Reply(h, g, bound + ROUNDING * abs(bound), found[:n] if h > 0.0 else None)


def kept_program(make: Callable[[], ConstrainedOracle], *key: object) -> ConstrainedOracle:
    """The program of a key, which each thread keeps: to make one takes longer than to aim it."""
    programs: dict[tuple[object, ...], ConstrainedOracle] = _kept.__dict__.setdefault("programs", {})
    if key not in programs:
        if len(programs) >= MOST_KEPT:
            programs.clear()
        programs[key] = make()
    return programs[key]


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
