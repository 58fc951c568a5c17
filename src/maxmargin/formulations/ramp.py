"""Ramp losses: the difference of two maxima, bounded however wrong a label is.

    J(w) = R(w) + C sum_i s_i [ h_i(w) - r_i(w) ]

    h_i(w) = max_y  lam+ cost_i(y) - w . psi_i(y)         (convex)
    r_i(w) = max_y  lam- cost_i(y) - w . psi_i(y)         (subtracted: concave)

===========================  =====  =====  ==============================================  ============================
``ramp``                     lam+   lam-   bounds of h_i - r_i                             known from
===========================  =====  =====  ==============================================  ============================
``cost_diminished``          1      -1     2 cost(y-) <= . <= 2 cost(y+)                   Mancev 2015
``best_output``              1      0      cost(y0) <= . <= cost(y+)                       Do et al. 2008
``cost_diminished_vs_best``  0      -1     cost(y-) <= . <= cost(y0)                       Gimpel, Smith 2012
===========================  =====  =====  ==============================================  ============================

where y+, y0, y- are the outputs that maximise the score with cost weight 1, 0 and -1. The third ramp is zero at zero
weights, and every majorant of it is smallest there: an exact round ends at zero. It is of use with few passes only,
with a first cost weight above 0, or where small weights of the losses meet a regulariser that is least elsewhere, as
that of generative models. Linearising r_i at some weights gives a convex *majorant* of J that touches it there:

    J(w') <= R(w') + w' . v + offset + C sum_i s_i h_i(w'),      v = sum_i C_i a_i,   offset = - sum_i C_i b_i

with (a_i, b_i) the plane of r_i there, over the examples with r_i > 0 (the *concave set*); the others have the zero
plane. CCCP minimises one majorant after the other; see :mod:`maxmargin.solvers.cccp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from maxmargin.contracts import BoundModel, Mask, Oracle, SampleWeight
from maxmargin.formulations.generative import Generative
from maxmargin.formulations.outer_problem import OuterProblem
from maxmargin.formulations.problem import LinearTerm, Problem
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.parameters import Parameters
from maxmargin.planes import Planes, weighted_sum

__all__ = ["RAMPS", "Linearisation", "Ramp", "RampProblem"]

RAMPS = {"cost_diminished": (1.0, -1.0), "best_output": (1.0, 0.0), "cost_diminished_vs_best": (0.0, -1.0)}
TINY = 1e-12  # r_i at most this, relative to 1, counts as 0: ties go to the true output


@dataclass(frozen=True)
class Linearisation:
    """The planes of the concave part at some weights, one for each example of the concave set."""

    term: LinearTerm  # what they make of it: ``w . v + offset``
    value: float  # ``sum_i C_i r_i`` at the weights

    def __len__(self) -> int:
        return len(self.term.planes)

    def same(self, other: Linearisation) -> bool:
        """Whether both make the same majorant."""
        return self.term.offset == other.term.offset and np.array_equal(self.term.shift, other.term.shift)

    @staticmethod
    def of(planes: Planes, weight: np.ndarray, value: float) -> Linearisation:
        """From the planes that are subtracted and the weights C_i of all examples."""
        scale = weight[planes.example]
        return Linearisation(LinearTerm(weighted_sum(planes, scale), -float(scale @ planes.b), planes), value)


@dataclass(frozen=True)
class RampProblem(OuterProblem[Problem]):
    """A ramp problem: a convex problem and the oracle of what is subtracted from it.

    ``first``, also called ``convex``, is ``R(w) + sum_i C_i h_i(w)``, ``concave`` gives the planes of r_i, and
    ``below`` is its cost weight lam-, which a warm start or a checkpoint must share. ``hinge`` has cost weight 1: a
    ramp fit may start from its solution; it is the convex problem itself when lam+ is 1.
    """

    trait: ClassVar[str] = "ramp"

    concave: Oracle
    below: float
    hinge: Problem

    def with_oracles(self, wrap: Callable[[Oracle], Oracle]) -> RampProblem:
        convex = self.convex.with_oracles(wrap)
        hinge = convex if self.hinge is self.convex else self.hinge.with_oracles(wrap)
        return replace(self, first=convex, concave=wrap(self.concave), hinge=hinge)

    @property
    def convex(self) -> Problem:
        """The problem of a round in which nothing is subtracted."""
        return self.first

    def linearise(self, w: np.ndarray, known: Planes | None = None) -> Linearisation:
        """The planes of the concave part at ``w``: one argmax per example.

        ``known`` planes, those of the round at hand, can be reached too: a rough argmax that finds less than they have
        would put J above the majorant.
        """
        weight = self.convex.weight
        found = self.concave.planes(w, np.arange(self.n_examples))
        reached, most = (
            found.violations(w),
            found.losses(self.n_examples),
        )  # what is subtracted must be: an upper bound of r_i would make J too small
        found = replace(found, bound=reached)
        if known is not None:
            known = replace(known, bound=known.violations(w))
            # none that is true lies above what the oracle proves; a changed checkpoint may hold others
            possible = known.bound <= most[known.example] + TINY * np.maximum(1.0, np.abs(known.bound))
            found = _better(found, known.take(np.flatnonzero(possible)), self.n_examples)
        planes = found.take(np.flatnonzero((found.bound > TINY) & (weight[found.example] > 0)))
        return Linearisation.of(planes, weight, float(weight[planes.example] @ planes.bound))

    def keep_ties(
        self, known: Linearisation, found: Linearisation, w: np.ndarray, slack: float
    ) -> tuple[Linearisation, float]:
        """``found`` with planes of ``known`` where these are nearly as good at ``w``, and what they lack together.

        Planes that tie at w differ widely, although either makes a majorant that touches J there. Those that lack
        least are kept, as many as lack ``slack`` together.
        """
        weight, n = self.convex.weight, self.n_examples
        old, new = np.zeros(n), np.zeros(n)
        old[known.term.planes.example] = known.term.planes.violations(w)
        new[found.term.planes.example] = found.term.planes.bound
        lack = weight * np.maximum(new - old, 0.0)
        order = np.argsort(lack, kind="stable")
        kept = order[: np.searchsorted(np.cumsum(lack[order]), slack, side="right")]
        if len(kept) == n:
            return known, float(lack.sum())
        is_kept = np.zeros(n, bool)
        is_kept[kept] = True
        parts = [
            known.term.planes.take(np.flatnonzero(is_kept[known.term.planes.example])),
            found.term.planes.take(np.flatnonzero(~is_kept[found.term.planes.example])),
        ]
        missing = float(lack[kept].sum())
        return Linearisation.of(Planes.concatenate(parts), weight, found.value - missing), missing

    def none(self) -> Linearisation:
        """The linearisation at zero weights: the true outputs are best there, so nothing is subtracted."""
        planes = Planes.from_rows([], np.empty(0), np.empty(0), np.empty(0), self.convex.n_columns)
        return Linearisation.of(planes, self.convex.weight, 0.0)

    def majorant(self, linearisation: Linearisation) -> Problem:
        """The convex problem above J that touches it where the linearisation was made."""
        return replace(self.convex, term=linearisation.term)


def _better(found: Planes, known: Planes, n_examples: int) -> Planes:
    """One plane per example: the one found, or the known one where that is better. Bounds are the values reached."""
    reached = np.zeros(n_examples)
    reached[found.example] = found.bound
    better = np.flatnonzero(known.bound > reached[known.example] + TINY * np.maximum(1.0, np.abs(known.bound)))
    if len(better) == 0:
        return found
    kept = np.flatnonzero(~np.isin(found.example, known.example[better]))
    both = Planes.concatenate([found.take(kept), known.take(better)])
    return both.take(np.argsort(both.example, kind="stable"))


@dataclass(repr=False, eq=False)
class Ramp(Parameters):
    """Ramp losses.

    Parameters
    ----------
    ramp : {"cost_diminished", "best_output", "cost_diminished_vs_best"}, or (float, float)
        A name, or the pair of cost weights (lam+, lam-) with lam+ >= 0, lam+ > lam- and lam- <= 0.
    start : {"zero", "hinge"}, fitted estimator or array (n_weights,)
        Where training begins: at zero weights (its first round is then the hinge; generative models begin with nothing
        subtracted), from a hinge fit, or from given weights.
    max_rounds : int or None
        The most convex fits.
    passes_per_round : float or None
        Passes of each convex fit; None lets the gap decide.
    convex : RescaledHinge or Generative, optional
        The formulation with the hinge that the ramp is made of; margin rescaling when missing.

    References
    ----------
    Mancev 2015, A sequential dual method for the structured ramp loss minimization. Do, Le, Teo, Chapelle, Smola 2008,
    Tighter bounds for structured estimation. Gimpel, Smith 2012, Structured ramp loss minimization for machine
    translation.
    """

    ramp: str | Sequence[float] = "cost_diminished"
    start: object = "zero"
    max_rounds: int | None = None
    passes_per_round: float | None = None
    convex: RescaledHinge | Generative | None = None

    def __sklearn_clone__(self) -> Ramp:
        """As scikit-learn does it, but a fitted model to start from stays fitted."""
        twin = copy(self)
        twin.convex = copy(self.convex)
        return twin

    def with_convex(self, convex: RescaledHinge | Generative) -> Ramp:
        """The same ramp of another hinge, unless it has one of its own."""
        twin = copy(self)
        twin.convex = convex if self.convex is None else self.convex
        return twin

    def cost_weights(self) -> tuple[float, float]:
        """(lam+, lam-), checked."""
        if isinstance(self.ramp, str) and self.ramp in RAMPS:
            return RAMPS[self.ramp]
        try:
            above, below = (float(x) for x in self.ramp)
            good = np.isfinite([above, below]).all() and above >= 0.0 >= below and above > below
        except (TypeError, ValueError):
            good = False
        if isinstance(self.ramp, str) or not good:
            raise ValueError(
                f"ramp must be one of {', '.join(RAMPS)}, or a pair of cost weights (first >= 0 >= second, not both "
                f"0); got {self.ramp!r}."
            )
        return above, below

    def problem(
        self, model: BoundModel, *, C: float = 1.0, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> RampProblem:
        """The problem of fitting a bound model; see :class:`~maxmargin.contracts.Formulation`."""
        rounds, passes = self.max_rounds, self.passes_per_round
        if rounds is not None and not (isinstance(rounds, (int, np.integer)) and rounds >= 1):
            raise ValueError(f"max_rounds must be a whole number >= 1 or None, got {rounds!r}.")
        if passes is not None and not (isinstance(passes, (int, float, np.number)) and passes > 0):
            raise ValueError(f"passes_per_round must be a positive number or None, got {passes!r}.")
        if self.start is None or (isinstance(self.start, str) and self.start not in ("zero", "hinge")):
            raise ValueError(f'start must be "zero", "hinge", a fitted estimator or an array; got {self.start!r}.')
        above, below = self.cost_weights()
        formulation = RescaledHinge() if self.convex is None else self.convex
        if isinstance(formulation, (RescaledHinge, Generative)) and formulation.rescaling != "margin":
            raise ValueError('the ramp has no slack-rescaled form; use loss="hinge" or rescaling="margin".')
        if formulation.loss != "hinge":
            raise ValueError('the ramp is made of the hinge; give its convex part loss="hinge".')
        hinge = convex = formulation.problem(model, C=C, sample_weight=sample_weight, positive=positive)
        if above != 1.0:
            convex = replace(hinge, oracle=replace(cast(ModelOracle, hinge.oracle), cost_weight=above))
        return RampProblem(convex, ModelOracle(model, cost_weight=below), below, hinge)
