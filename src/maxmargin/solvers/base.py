"""What every solver object of the public face is, and the one check of a solver against a problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from maxmargin.contracts import InnerSolver, Problem, require
from maxmargin.parameters import Parameters

__all__ = ["BaseSolver", "check_solver"]


class BaseSolver(Parameters):
    """A solver with its own words, to be put into an estimator; stopping belongs to the estimator.

    ``handles`` names the traits (:data:`maxmargin.contracts.TRAITS`) of the problems that it can solve, alone or inside
    an outer solver.
    """

    handles: frozenset[str] = frozenset()
    incremental: bool = False  # whether it learns example by example, so that there is partial_fit

    @abstractmethod
    def engine(self, problem: Problem, random_state: int | np.random.Generator | None = None) -> InnerSolver:
        """What the driver runs."""


def check_solver(name: str, handles: frozenset[str], problem: Problem, others: Mapping[str, frozenset[str]]) -> None:
    """Refuse a problem that a solver cannot handle, before the first pass.

    Parameters
    ----------
    name : str
        What the reader calls the solver.
    handles : frozenset of str
    problem : Problem
    others : mapping of str to frozenset of str
        Names of other solvers and what they handle, for the remedy.
    """
    able = [f'"{other}"' for other, traits in others.items() if problem.traits <= traits]
    remedy = f"use solver={' or '.join(able)}" if able else "write a solver that declares it in handles"
    require("this problem", problem.traits, name, handles, remedy)
