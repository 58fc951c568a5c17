"""The linear program by HiGHS: simplex, interior points, or its first-order method.

    min  1 . w+ + 1 . w- + sum_i C_i xi_i    over  A (w+ - w-) + xi_owner >= b,  w+, w-, xi >= 0

without the column of w- where a weight must be >= 0. On random programs this form takes half the time of the dual one
with ranged rows. What HiGHS says of its answer is not believed: a warm simplex is known to end as "optimal" at points
that are not. The bounds of :class:`~maxmargin.solvers.linear_programs.program.Program` decide, and a point that does
not have the gap asked for is computed again, cold and then by another method.

Huangfu, Hall 2018, Parallelizing the dual revised simplex method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.kernel import clock
from maxmargin.parameters import Parameters
from maxmargin.solvers.linear_programs.program import Basis, Point, Program
from maxmargin.solvers.settings import check_words

if TYPE_CHECKING:
    import highspy

__all__ = ["Highs", "MasterError"]

METHODS = ("auto", "simplex", "ipm", "pdlp")
SIMPLEX_BELOW, IPM_BELOW = 300_000, 3_000_000  # non-zeros: simplex pays below the first, factors fit below the second
FINE = 1e-9  # feasibility of simplex and interior points
ROUNDING = 1e-12  # relative gap below which no method is asked to go


class MasterError(RuntimeError):
    """No method could solve a linear program."""


class Columns(NamedTuple):
    """The program as a solver of linear programs in standard form has it: columns w+, w- of the free weights, xi."""

    cost: np.ndarray
    rows: sp.csr_array
    free: np.ndarray  # the weights with a column w-

    def weights(self, x: np.ndarray, d: int) -> np.ndarray:
        w = x[:d].copy()
        w[self.free] -= x[d : d + len(self.free)]
        return w


def columns_of(program: Program) -> Columns:
    """Columns and costs of a program."""
    m, d = program.A.shape
    free = np.arange(d) if program.positive is None else np.flatnonzero(~program.positive)
    own = sp.csr_array((np.ones(m), program.owner, np.arange(m + 1)), shape=(m, len(program.weight)))
    rows = sp.csr_array(sp.hstack([program.A, -program.A[:, free], own], format="csr"))
    return Columns(np.concatenate([np.ones(d + len(free)), program.weight]), rows, free)


@dataclass(repr=False, eq=False)
class Highs(Parameters):
    """Solves linear programs by HiGHS, through scipy where highspy is not installed.

    Parameters
    ----------
    method : {"auto", "simplex", "ipm", "pdlp"}
        Dual simplex from the rows and weights in use, interior points, or HiGHS' own first-order method. "auto" is by
        size; "pdlp" needs highspy (``pip install highspy``).
    max_seconds : float, optional
        The most that one solve may take; the point is then the best so far.
    crossover : bool
        Let interior points go on to a vertex, whose basis the simplex method can take up when rows have joined.
    """

    method: str = "auto"
    max_seconds: float | None = None
    crossover: bool = False

    def go_on(self, program: Program, start: Point, tol: float) -> Point | None:
        """The dual simplex method from the basis of ``start``, which rows and columns may have joined since.

        None where there is no basis or no highspy, and when so many steps as there are rows do not lead to the gap.
        """
        if start.basis is None or not has_highspy():
            return None
        point, _ = _run(program, start, "simplex", tol, np.inf, steps=len(program.b))
        return point if point is not None and program.bounds(point).relative_gap <= tol else None

    def solve(self, program: Program, start: Point, tol: float) -> Point:
        """See :class:`~maxmargin.solvers.linear_programs.program.Master`.

        A :class:`MasterError` when no method ends with finite numbers. Where none reaches the gap, which rounding may
        forbid, the best of the points found.
        """
        check_words("method", self.method, METHODS)
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be None or a number > 0, got {self.max_seconds!r}.")
        end = np.inf if self.max_seconds is None else clock() + self.max_seconds
        m, d = program.A.shape
        if m == 0:
            return Point(np.zeros(d), np.zeros(0))
        best, gap, words, solved = start, program.bounds(start).relative_gap, list[str](), False
        for method, warm in self._attempts(program, start):
            left = end - clock()
            if gap <= max(tol, ROUNDING) or left <= 0.0:
                return best
            point, word = _run(program, start if warm else None, method, tol, left, self.crossover)
            words.append(f"{method}: {word}")
            if point is not None:
                found, solved = program.bounds(point).relative_gap, True
                if found < gap:
                    best, gap = point, found
        if words and not solved and clock() < end:
            said = f"HiGHS could not solve a linear program of {m} rows and {d} weights ({'; '.join(words)})"
            raise MasterError(f'{said}. Scale the features or lower C, or use master="primal_dual".')
        return best

    def _attempts(self, program: Program, start: Point) -> list[tuple[str, bool]]:
        """Methods in turn, and whether each begins at the start."""
        known, size = start.alpha.any(), program.A.nnz
        first = self.method
        if first == "auto":
            first = "simplex" if size < SIMPLEX_BELOW else "ipm" if size < IPM_BELOW or not has_highspy() else "pdlp"
        others = [method for method in ("ipm", "simplex") if method != first]
        return ([(first, True)] if known and first == "simplex" else []) + [(name, False) for name in (first, *others)]


def has_highspy() -> bool:
    """Whether highspy is installed."""
    try:
        import highspy  # noqa: F401
    except ImportError:
        return False
    return True


def _run(
    program: Program, start: Point | None, method: str, tol: float, seconds: float, crossover: bool = False,
    steps: int | None = None,
) -> tuple[Point | None, str]:  # fmt: skip
    """One attempt: a point, None when there is no finite one, and what the library says of it."""
    columns, basis = columns_of(program), None
    if has_highspy():
        x, alpha, basis, word = _by_highspy(program, columns, start, method, tol, seconds, crossover, steps)
    elif method == "pdlp":
        raise ImportError('method="pdlp" needs highspy; install it with: pip install highspy')
    else:
        x, alpha, word = _by_scipy(program, columns, method, seconds)
    if x is None or alpha is None or not (np.isfinite(x).all() and np.isfinite(alpha).all()):
        return None, word
    return Point(columns.weights(x, program.A.shape[1]), np.maximum(alpha, 0.0), basis), word


def _by_highspy(
    program: Program, columns: Columns, start: Point | None, method: str, tol: float, seconds: float, crossover: bool,
    steps: int | None,
) -> tuple[np.ndarray | None, np.ndarray | None, Basis | None, str]:  # fmt: skip
    import highspy

    solver, rows = highspy.Highs(), columns.rows
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": method,
        "run_crossover": "on" if crossover else "off",
        "time_limit": seconds,
    }
    vertex = method == "simplex" or crossover
    fine = FINE if vertex else min(max(0.01 * tol, 1e-10), 1e-4)
    options |= {"primal_feasibility_tolerance": fine, "dual_feasibility_tolerance": fine}
    options |= {"pdlp_optimality_tolerance": fine, "ipm_optimality_tolerance": min(fine, max(0.01 * tol, 1e-12))}
    if steps is not None:
        options["simplex_iteration_limit"] = steps
    for name, value in options.items():
        solver.setOptionValue(name, value)
    lp, infinity = highspy.HighsLp(), highspy.kHighsInf
    lp.num_col_, lp.num_row_ = len(columns.cost), len(program.b)
    lp.col_cost_, lp.col_lower_ = columns.cost, np.zeros(len(columns.cost))
    lp.col_upper_ = np.full(len(columns.cost), infinity)
    lp.row_lower_, lp.row_upper_ = program.b, np.full(len(program.b), infinity)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        return None, None, None, "it refuses the numbers of the program"
    if start is not None:
        solver.setBasis(_basis(program, columns, start))
    run = solver.run()
    status, solution = solver.getModelStatus(), solver.getSolution()
    word = solver.modelStatusToString(status)
    if run == highspy.HighsStatus.kError or not solution.value_valid or not solution.dual_valid:
        return None, None, None, word
    basis = _basis_found(program, columns, solver.getBasis()) if vertex else None
    return np.array(solution.col_value), np.array(solution.row_dual), basis, word


def _basis(program: Program, columns: Columns, start: Point) -> highspy.HighsBasis:
    """That of the start. Without one weights and slacks that are not 0, and rows without a multiplier; HiGHS mends the
    rest."""
    import highspy

    basis, kinds = highspy.HighsBasis(), (highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kBasic)
    sign, slack, idle = start.basis or (np.sign(start.w), program.losses(start.w) > ROUNDING, start.alpha <= 0.0)
    inside = np.concatenate([sign > 0, sign[columns.free] < 0, slack])
    basis.col_status = [kinds[one] for one in inside.tolist()]
    basis.row_status = [kinds[one] for one in idle.tolist()]
    basis.valid = basis.alien = True
    return basis


def _basis_found(program: Program, columns: Columns, found: highspy.HighsBasis) -> Basis | None:
    """What HiGHS says is basic."""
    import highspy

    if not found.valid:
        return None
    kind, d = highspy.HighsBasisStatus.kBasic, program.A.shape[1]
    inside = np.array([one == kind for one in found.col_status])
    weights = inside[:d].astype(np.int8)
    weights[columns.free[inside[d : d + len(columns.free)]]] = -1
    return Basis(weights, inside[d + len(columns.free) :], np.array([one == kind for one in found.row_status]))


def _by_scipy(
    program: Program, columns: Columns, method: str, seconds: float
) -> tuple[np.ndarray | None, np.ndarray | None, str]:
    from scipy.optimize import linprog

    options = {"primal_feasibility_tolerance": FINE, "dual_feasibility_tolerance": FINE, "time_limit": seconds}
    found = linprog(
        columns.cost, A_ub=-columns.rows, b_ub=-program.b, method={"simplex": "highs-ds", "ipm": "highs-ipm"}[method],
        options=options,
    )  # fmt: skip
    if found.x is None or found.ineqlin.marginals is None:
        return None, None, str(found.message)
    return found.x, -found.ineqlin.marginals, str(found.message)
