"""The proximal point method for L1 penalties by its name and settings; the engine is in ``recentred_engine.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import Problem
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.settings import Settings

if TYPE_CHECKING:
    from maxmargin.solvers.recentred_engine import RecentredEngine

__all__ = ["RecentredDual"]

MANY = 200  # examples from which solver="auto" is this method and not column generation


@dataclass(repr=False, eq=False)
class RecentredDual(BaseSolver):
    """The dual engine around a centre that follows the weights, for ``penalty="l1"``.

    Parameters
    ----------
    scale : "auto" or float
        t, the weight that an entry of ``sum alpha a`` beyond 1 makes. "auto" takes twice the median of the weight that
        a plane needs to be satisfied by itself. A larger one proves more and finds good weights later.
    visits : float
        Share of the examples in a sweep, drawn in proportion to their gaps.
    cached_passes : int
        Most passes over planes at hand after a sweep.
    max_steps : int
        Most pairs of multipliers that move in one visit of an example.
    certificate_every : float
        Passes of sweeps between looks at all examples.
    memory : int
        Bytes for the planes.

    References
    ----------
    Rockafellar 1976, Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
    """

    scale: str | float = "auto"
    visits: float = 0.2
    cached_passes: int = 5
    max_steps: int = 2
    certificate_every: float = 2.0
    memory: int = 4 << 30

    handles = frozenset({"l1", "signs"})

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Whether there are so many examples that this is faster than column generation."""
        return problem.n_examples >= MANY

    def engine(self, problem: Problem, random_state: int | np.random.Generator | None = None) -> RecentredEngine:
        """The outer loop around the dual engine with this setting."""
        from maxmargin.solvers.engine import DualEngine
        from maxmargin.solvers.recentred_engine import RecentredEngine

        if not (self.scale == "auto" or (isinstance(self.scale, (int, float, np.number)) and 0 < self.scale < 1e100)):
            raise ValueError(f'scale must be "auto" or a number > 0; got {self.scale!r}.')
        settings = self.setting(Settings, selection="gap", batch=8, patience=5, cached_share=0.18, parts=4)
        return RecentredEngine(DualEngine(settings, random_state), None if self.scale == "auto" else float(self.scale))
