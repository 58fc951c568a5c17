"""Latent parts of the true outputs: after each fit the best completion at its weights takes the place of the truth.

    y_i^(k)  = argmax of the score at w^(k) over the outputs that agree with what is known of example i
    w^(k+1)  = the fit of any convex (or ramp) formulation to y^(k)

Each round is a problem of its own with a certificate of its own; the weights depend on where the first one begins. Yu,
Joachims 2009, Learning structural SVMs with latent variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maxmargin.contracts import BoundModel, Oracle, Problem
from maxmargin.formulations.outer_problem import OuterProblem

__all__ = ["LatentProblem"]


@dataclass(frozen=True)
class LatentProblem(OuterProblem[Problem]):
    """A sequence of problems.

    ``first`` has the outputs as they were given, ``complete`` makes the examples with the best completions at weights
    as true outputs, ``problem_of`` is the formulation, and ``wrap`` what the oracles of each round are asked through.
    """

    trait: ClassVar[str] = "latent"

    complete: Callable[[np.ndarray], BoundModel]
    problem_of: Callable[[BoundModel], Problem]
    wrap: Callable[[Oracle], Oracle] | None = None

    def with_oracles(self, wrap: Callable[[Oracle], Oracle]) -> LatentProblem:
        return replace(self, first=self.first.with_oracles(wrap), wrap=wrap)

    def at(self, w: np.ndarray) -> Problem:
        """The problem whose true outputs are the best completions at ``w``."""
        problem = self.problem_of(self.complete(w))
        return problem if self.wrap is None else problem.with_oracles(self.wrap)
