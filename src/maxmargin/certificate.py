"""The certificate: a primal value, a dual value, and so a proven distance from the optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Certificate", "WeakDualityError"]


class WeakDualityError(ArithmeticError):
    """The dual value lies above the primal value: one of the two was computed wrongly."""


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimal objective: dual <= optimum <= primal.

    Parameters
    ----------
    primal : float
        Objective of the weights, with the oracle's upper bounds of the losses; inf when it is not known.
    dual : float
        Dual objective of the multipliers; -inf for solvers without multipliers.
    certified : bool
        False when the primal is only an estimate, because the oracle gives no upper bound of the losses, or when
        it was not computed to the end.
    """

    primal: float
    dual: float
    certified: bool = True

    @property
    def gap(self) -> float:
        """primal - dual, an upper bound of the distance of either from the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """gap / max(|primal|, |dual|); 0 when the gap is 0 or below (rounding).

        No objective holds a constant that training cannot change (regularisers are 0 at their least), so this is
        relative to what training is about.
        """
        gap = self.gap
        if gap <= 0:
            return 0.0
        return gap / max(abs(self.primal), abs(self.dual)) if math.isfinite(gap) else gap

    def violates_duality(self, tolerance: float = 1e-9) -> bool:
        """Whether a certified primal lies below the dual by more than rounding of that relative size explains."""
        return self.certified and self.gap < -tolerance * max(1.0, abs(self.primal), abs(self.dual))

    def check(self, tolerance: float = 1e-9) -> Certificate:
        """Return the certificate itself, or raise a :class:`WeakDualityError` when weak duality is violated.

        That is, when a value is NaN or the wrong infinity, or when a certified primal lies below the dual by more than
        an allowance for rounding, ``tolerance`` relative to max(1, |primal|, |dual|).
        """
        if math.isnan(self.primal) or math.isnan(self.dual) or self.dual == math.inf or self.primal == -math.inf:
            raise WeakDualityError(
                f"the certificate is not a number (primal {self.primal}, dual {self.dual}): look for NaN or infinite "
                "features, costs or sample weights, or for a C that is too large"
            )
        if self.violates_duality(tolerance):
            raise WeakDualityError(
                f"weak duality is violated: primal {self.primal:.12g} < dual {self.dual:.12g}, by {-self.gap:.3g}. "
                "The usual cause is an argmax that misses the best output, or a cost that differs between argmax and "
                "planes; check the model on a few examples by enumeration"
            )
        return self

    def __str__(self) -> str:
        note = "" if self.certified else " (not certified)"
        return f"primal {self.primal:.6g}, dual {self.dual:.6g}, relative gap {self.relative_gap:.2g}{note}"
