"""A cost for every pair of labels, given as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from maxmargin.costs.base import Cost

__all__ = ["FunctionCost"]


@dataclass(repr=False, eq=False)
class FunctionCost(Cost):
    """Cost ``function(true_label, label)``, tabulated once over all pairs of classes.

    Parameters
    ----------
    function : callable
        ``function(true_label, label) -> float``, not negative, 0 for the true label.
    normalize : bool
    """

    function: Callable[..., float]
    normalize: bool = False

    def _fill(self, classes: list) -> list[list[float]]:
        return [[self._call(true, label) for label in classes] for true in classes]

    def _call(self, true: object, label: object) -> float:
        value = self.function(true, label)
        try:
            return float(value)
        except (TypeError, ValueError):
            what = f"the cost function returned {value!r} for label {label!r} where {true!r} is true"
            raise ValueError(f"{what}; it must return a number") from None
