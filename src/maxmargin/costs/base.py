"""What every cost shares: parameters, a validated table over the classes, and its properties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.parameters import Parameters

__all__ = ["Cost", "is_integral"]


def is_integral(table: ArrayLike) -> bool:
    """Whether all costs are whole numbers, so that the best score for every cost value can be tabulated."""
    values = np.asarray(table, np.float64)
    return bool(np.all(np.abs(values) < 2.0**53) and np.all(values == np.rint(values)))


class Cost(Parameters):
    """A cost that adds up over positions: ``cost(y_true, y) = sum_t table[y_true_t, y_t]``.

    With ``normalize`` the sum is divided by the number of positions (the table itself is not touched). A subclass takes
    its parameters in the constructor and stores them under their own names, unchanged; they are checked when the table
    is made.
    """

    decomposes = True
    """Whether the cost is a sum over positions."""

    normalize: bool

    @abstractmethod
    def _fill(self, classes: list) -> ArrayLike:
        """Cost of each label (column) where each label (row) is true, (K, K), before the checks of :meth:`table`."""

    @abstractmethod
    def _values(self) -> ArrayLike | None:
        """The numbers that any table of this cost is made of, or None when they are not known before the classes."""

    @property
    def integral(self) -> bool:
        """Whether the cost is known, before the classes are, to be made of whole numbers only.

        ``is_integral(cost.table(classes))`` decides it for given classes, also for costs that answer False here.
        """
        values = self._values()
        return values is not None and is_integral(values)

    def table(self, classes: Sequence[Any]) -> np.ndarray:
        """Cost table over the classes.

        Parameters
        ----------
        classes : sequence of K distinct labels

        Returns
        -------
        float64 (K, K)
            ``table[true, label]``: zero on the diagonal, finite and not negative elsewhere.
        """
        labels = list(classes)
        if len(set(labels)) != len(labels):
            twice = next(label for i, label in enumerate(labels) if label in labels[:i])
            raise ValueError(f"class {twice!r} appears twice; give each class once")
        table = np.array(self._fill(labels), np.float64).reshape(len(labels), len(labels))
        bad = ~np.isfinite(table) | (table < 0)
        np.fill_diagonal(bad, np.diag(table) != 0)
        if bad.any():
            true, label = map(int, np.argwhere(bad)[0])
            rule = "the cost of the true label must be 0" if true == label else "costs must be finite and not negative"
            raise ValueError(
                f"{self!r} puts the cost {table[true, label]} on label {labels[label]!r} where {labels[true]!r} is "
                f"true; {rule}: correct that entry"
            )
        return table
