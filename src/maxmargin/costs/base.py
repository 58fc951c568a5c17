"""What all costs share: parameters, and a validated table over the classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import LARGEST_FEATURE
from maxmargin.parameters import Parameters

__all__ = ["Cost", "is_integral"]


def is_integral(table: ArrayLike) -> bool:
    """Whether all costs are whole numbers, so that the best score for every cost value can be tabulated."""
    values = np.asarray(table, np.float64)
    return bool(np.all(np.abs(values) < 2.0**53) and np.all(values == np.rint(values)))


class Cost(Parameters):
    """A cost that adds up over positions: ``cost(y_true, y) = sum_t table[y_true_t, y_t]``.

    With ``normalize`` the sum, but not the table, is divided by the number of positions. A subclass stores its
    constructor arguments unchanged under their own names; they are checked when the table is made.
    """

    normalize: bool

    @abstractmethod
    def _fill(self, classes: list) -> ArrayLike:
        """Cost of each label (column) for each true label (row), (K, K), before the checks of :meth:`table`."""

    def table(self, classes: Sequence[Hashable]) -> np.ndarray:
        """Costs ``table[true, label]`` (K, K) over K distinct classes: 0 on the diagonal, finite and >= 0 elsewhere."""
        labels = list(classes)
        if len(set(labels)) != len(labels):
            twice = next(label for i, label in enumerate(labels) if label in labels[:i])
            raise ValueError(f"class {twice!r} appears twice; give each class once")
        table = np.array(self._fill(labels), np.float64).reshape(len(labels), len(labels))
        bad = ~(table <= LARGEST_FEATURE) | (table < 0)
        np.fill_diagonal(bad, np.diag(table) != 0)
        if bad.any():
            true, label = map(int, np.argwhere(bad)[0])
            others = f"costs must be at most {LARGEST_FEATURE:g} and not negative"
            rule = "the cost of the true label must be 0" if true == label else others
            what = (
                f"{self!r} puts the cost {table[true, label]} on label {labels[label]!r} where {labels[true]!r} is true"
            )
            raise ValueError(f"{what}; {rule}. Correct that entry.")
        return table
