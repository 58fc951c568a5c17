"""The masters by name."""

from __future__ import annotations

from maxmargin.solvers.linear_programs.program import Master

__all__ = ["MASTERS", "master_named"]

MASTERS = ("auto", "highs")


def master_named(master: object) -> Master:
    """A master from its name, or the object given."""
    if isinstance(master, Master) and not isinstance(master, type):
        return master
    if not isinstance(master, str) or master not in MASTERS:
        known = ", ".join(f'"{name}"' for name in MASTERS)
        raise ValueError(f"master must be one of {known} or an object with solve(program, start, tol); got {master!r}.")
    from maxmargin.solvers.linear_programs.highs import Highs

    return Highs()
