"""The number of wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.costs.base import Cost

__all__ = ["HammingCost"]


@dataclass(repr=False, eq=False)
class HammingCost(Cost):
    """Cost 1 for every wrong label: ``cost(y_true, y) = #{t : y_t != y_true_t}``.

    Parameters
    ----------
    normalize : bool
        Divide by the number of positions, so that every output costs at most 1.
    """

    normalize: bool = False

    def _fill(self, classes: list) -> np.ndarray:
        return 1.0 - np.eye(len(classes))
