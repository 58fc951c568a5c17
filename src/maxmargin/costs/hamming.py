"""The number of wrong labels."""

from __future__ import annotations

import numpy as np

from maxmargin.costs.base import Cost

__all__ = ["HammingCost"]


class HammingCost(Cost):
    """Cost 1 for every wrong label: ``cost(y_true, y) = #{t : y_t != y_true_t}``.

    Parameters
    ----------
    normalize : bool
        Divide by the number of positions, so that every output costs at most 1.
    """

    def __init__(self, normalize: bool = False) -> None:
        self.normalize = normalize

    def _fill(self, classes: list) -> np.ndarray:
        return 1.0 - np.eye(len(classes))
