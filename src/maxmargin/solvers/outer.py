"""The solver of a whole problem: the user's own, with the outer loops round it that the problem asks for."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import InnerSolver, Problem, Solver
from maxmargin.solvers.cccp import CCCP
from maxmargin.solvers.refits import Refits

__all__ = ["with_outer_loops"]

TIES = 0.1  # share of the tolerance that planes which count as ties may lack


def with_outer_loops(
    solver: InnerSolver,
    problem: Problem,
    *,
    tol: float,
    start: np.ndarray | str | None = None,
    max_rounds: int | None = None,
    passes_per_round: float | None = None,
    refits: int = 0,
    first_completion: np.ndarray | None = None,
) -> Solver:
    """CCCP around a convex solver for a ramp, refits around that for latent outputs; the problem's traits say which.

    ``start``, ``max_rounds`` and ``passes_per_round`` are of :class:`~maxmargin.solvers.cccp.CCCP`, ``refits`` and
    ``first_completion`` (its start) of :class:`~maxmargin.solvers.refits.Refits`, and ``tol`` is of both.
    """
    whole: Solver = solver
    if "ramp" in problem.traits:
        whole = CCCP(
            solver, max_rounds=max_rounds, passes_per_round=passes_per_round, start=start, tol=tol, ties=TIES * tol
        )
    if "latent" in problem.traits:
        whole = Refits(whole, refits, tol=tol, start=first_completion)
    return whole
