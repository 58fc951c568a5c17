"""What every solver object of the public face is: parameters, and the engine they stand for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from maxmargin.parameters import Parameters

__all__ = ["NamedSolver"]


class NamedSolver(Parameters):
    """A solver with its own words, to be put into an estimator; stopping belongs to the estimator."""

    generative = False  # whether it is for models whose weights are log-probabilities, rather than for all others

    @abstractmethod
    def engine(self, problem: Any, random_state: Any = None) -> Any:
        """What the driver runs: an object with the verbs of :class:`maxmargin.solvers.driver.Solver`."""
