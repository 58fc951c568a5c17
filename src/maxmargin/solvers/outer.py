"""The solver of a whole problem: the user's own, with the outer loops round it that the problem asks for."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import InnerSolver, Problem, Solver
from maxmargin.solvers.cccp import CCCP
from maxmargin.solvers.refits import Refits

__all__ = ["with_outer_loops"]


def with_outer_loops(
    solver: InnerSolver,
    problem: Problem,
    *,
    tol: float,
    start: np.ndarray | str | None = None,
    max_rounds: int | None = None,
    passes_per_round: float | None = None,
    refits: int = 0,
) -> Solver:
    """CCCP round a convex solver for a ramp, refits round that for latent outputs.

    Parameters
    ----------
    solver : InnerSolver
    problem : Problem
        Its traits say which loops there are.
    tol : float
        Relative gap of rounds that must be solved before the next begins.
    start : array (n_weights,), "hinge" or None
        Where a ramp fit or a latent one begins.
    max_rounds, passes_per_round
        Of :class:`~maxmargin.solvers.cccp.CCCP`.
    refits : int
        Of :class:`~maxmargin.solvers.refits.Refits`.
    """
    latent = "latent" in problem.traits
    whole: Solver = solver
    if "ramp" in problem.traits:
        begin = None if latent and not isinstance(start, str) else start
        whole = CCCP(solver, max_rounds=max_rounds, passes_per_round=passes_per_round, start=begin, tol=tol)
    if latent:
        whole = Refits(whole, refits, tol=tol, start=None if isinstance(start, str) else start)
    return whole
