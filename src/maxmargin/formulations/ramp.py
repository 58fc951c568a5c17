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
weights, and every majorant of it is smallest there: an exact round ends at zero. It is of use with few passes only, or
with a first cost weight above 0. Linearising r_i at some weights gives a convex *majorant* of J that touches it there:

    J(w') <= R(w') + w' . v + offset + C sum_i s_i h_i(w'),      v = sum_i C_i a_i,   offset = - sum_i C_i b_i

with (a_i, b_i) the plane of r_i there, over the examples with r_i > 0 (the *concave set*); the others have the zero
plane. CCCP minimises one majorant after the other; see :mod:`maxmargin.solvers.cccp`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.formulations.margin_rescaling import MarginRescaling, Problem
from maxmargin.models.base import BoundModel
from maxmargin.oracles.margin import MarginOracle
from maxmargin.parameters import Parameters
from maxmargin.planes import Planes, weighted_sum

__all__ = ["RAMPS", "Linearisation", "Ramp", "RampProblem"]

RAMPS = {"cost_diminished": (1.0, -1.0), "best_output": (1.0, 0.0), "cost_diminished_vs_best": (0.0, -1.0)}
TINY = 1e-12  # r_i at most this, relative to 1, counts as 0: ties go to the true output


@dataclass(frozen=True)
class Linearisation:
    """The planes of the concave part at some weights.

    Attributes
    ----------
    planes : Planes
        One for each example of the concave set, in the order of the examples.
    shift : float64 array (n_columns,)
        v.
    offset : float
    value : float
        ``sum_i C_i r_i`` at the weights.
    """

    planes: Planes
    shift: np.ndarray
    offset: float
    value: float

    def __len__(self) -> int:
        return len(self.planes)


@dataclass(frozen=True)
class RampProblem:
    """A ramp problem: a convex problem and the oracle of what is subtracted from it.

    Attributes
    ----------
    convex : Problem
        ``R(w) + sum_i C_i h_i(w)``.
    concave : oracle
        Planes of r_i.
    """

    convex: Problem
    concave: Any

    @property
    def n_examples(self) -> int:
        return self.convex.n_examples

    def linearise(self, w: np.ndarray) -> Linearisation:
        """The planes of the concave part at ``w``: one argmax an example."""
        weight = self.convex.weight
        found = self.concave.planes(w, np.arange(self.n_examples))
        # what is subtracted must be reached: an upper bound of r_i would make J too small
        reached = np.where(np.isfinite(found.bound), found.bound, found.violations(w))
        chosen = np.flatnonzero((reached > TINY) & (weight[found.example] > 0))
        lengths = np.diff(found.indptr)
        entries = np.repeat(np.isin(np.arange(len(found)), chosen), lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths[chosen])])
        planes = Planes(
            indptr,
            found.indices[entries],
            found.data[entries],
            found.b[chosen],
            found.example[chosen],
            reached[chosen],
            found.n_weights,
        )
        scale = weight[planes.example]
        return Linearisation(planes, weighted_sum(planes, scale), -float(scale @ planes.b), float(scale @ planes.bound))

    def none(self) -> Linearisation:
        """The linearisation at zero weights: the true outputs are best there, so nothing is subtracted."""
        empty = np.empty(0)
        planes = Planes.from_rows([], empty, empty, empty, self.convex.n_columns)
        return Linearisation(planes, np.zeros(self.convex.n_columns), 0.0, 0.0)

    def majorant(self, linearisation: Linearisation) -> Problem:
        """The convex problem above J that touches it where the linearisation was made."""
        return replace(
            self.convex,
            shift=linearisation.shift,
            offset=linearisation.offset,
            subtracted=linearisation.planes,
        )


class Ramp(Parameters):
    """Ramp losses.

    Parameters
    ----------
    ramp : {"cost_diminished", "best_output", "cost_diminished_vs_best"}, or (float, float)
        A name, or the pair of cost weights (lam+, lam-) with lam+ >= 0, lam+ > lam- and lam- <= 0.

    References
    ----------
    Mancev 2015, A sequential dual method for the structured ramp loss minimization. Do, Le, Teo, Chapelle, Smola 2008,
    Tighter bounds for structured estimation. Gimpel, Smith 2012, Structured ramp loss minimization for machine
    translation.
    """

    def __init__(self, ramp: Any = "cost_diminished") -> None:
        self.ramp = ramp

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
        self,
        model: BoundModel,
        *,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        positive: np.ndarray | None = None,
    ) -> RampProblem:
        """The problem of fitting a bound model; parameters as those of :meth:`MarginRescaling.problem`."""
        above, below = self.cost_weights()
        convex = MarginRescaling("hinge").problem(model, C=C, sample_weight=sample_weight, positive=positive)
        convex.oracle.cost_weight = above
        return RampProblem(convex, MarginOracle(model, cost_weight=below))
