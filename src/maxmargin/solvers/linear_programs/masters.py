"""The masters by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from maxmargin.parameters import Parameters
from maxmargin.solvers.linear_programs.highs import Highs, has_highspy
from maxmargin.solvers.linear_programs.program import Master, Point, Program

__all__ = ["MASTERS", "AutoMaster", "master_named"]

FEW = 2_000  # non-zeros of a program that HiGHS solves in next to no time,
MANY = 50_000  # and of one that it may take minutes for
FINE = 1e-4  # relative gap from which on vertices pay, whose basis goes on when rows join


@dataclass(repr=False, eq=False)
class AutoMaster(Parameters):
    """HiGHS for small programs, the restarted primal-dual method for others, and HiGHS again where that is slow.

    Fine solutions of programs of middle size are vertices by HiGHS' interior points. Where HiGHS has left a basis, the
    dual simplex method goes on from it, in few steps or not at all. Of a large program that stays unsolved the best
    point is enough: the next round goes on from it.

    Parameters
    ----------
    max_steps : int
        The most steps of the primal-dual method in one solve.
    """

    max_steps: int = 5_000

    def solve(self, program: Program, start: Point, tol: float) -> Point:
        """See :class:`~maxmargin.solvers.linear_programs.program.Master`."""
        if program.A.nnz <= FEW:
            return Highs().solve(program, start, tol)
        if program.A.nnz <= MANY and tol <= FINE and has_highspy():
            again = Highs().go_on(program, start, tol)
            return Highs("ipm", crossover=True).solve(program, start, tol) if again is None else again
        point = _primal_dual(self.max_steps).solve(program, start, tol)
        solved = program.A.nnz > MANY or program.bounds(point).relative_gap <= tol
        return point if solved else Highs().solve(program, point, tol)


def _primal_dual(max_steps: int = 100_000) -> Master:
    from maxmargin.solvers.linear_programs.primal_dual import PrimalDual

    return PrimalDual(max_steps)


def _extragradient() -> Master:
    from maxmargin.solvers.linear_programs.extragradient import Extragradient

    return Extragradient()


MASTERS: dict[str, Callable[[], Master]] = {
    "auto": AutoMaster,
    "highs": Highs,
    "extragradient": _extragradient,
    "primal_dual": _primal_dual,
}


def master_named(master: object) -> Master:
    """A master from its name, or the object given."""
    if isinstance(master, Master) and not isinstance(master, type):
        return master
    if not isinstance(master, str) or master not in MASTERS:
        known = ", ".join(f'"{name}"' for name in MASTERS)
        raise ValueError(f"master must be one of {known} or an object with solve(program, start, tol); got {master!r}.")
    return MASTERS[master]()
