"""The number of wrong labels, plain or weighted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from maxmargin.costs.base import Cost

__all__ = ["HammingCost", "WeightedHammingCost"]


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


@dataclass(repr=False, eq=False)
class WeightedHammingCost(Cost):
    """Cost of a wrong label, by the true label or by the label given instead.

    Where they differ ``table[true, label]`` = ``weights[true]`` (``by="true"``) or ``weights[label]`` (``by="label"``).

    Parameters
    ----------
    weights : mapping from label to weight >= 0
        Other labels have weight 1.
    by : "true" or "label"
        ``"true"``: missing a label costs its weight. ``"label"``: wrongly giving a label costs its weight.
    normalize : bool
    """

    weights: Mapping[Hashable, float]
    by: str = "true"
    normalize: bool = False

    def _fill(self, classes: list) -> np.ndarray:
        if not isinstance(self.weights, Mapping):
            raise TypeError(f"weights is a {type(self.weights).__name__}; give a mapping from label to weight")
        if self.by not in ("true", "label"):
            raise ValueError(f"by is {self.by!r}; use 'true' (weight of the true label) or 'label' (of the given one)")
        present = set(classes)
        unknown = [label for label in self.weights if label not in present]
        unmentioned = [label for label in classes if label not in self.weights]
        # A weight for an absent class is normal on a subset of the data, but a mistake if a class lacks one.
        if unknown and unmentioned:
            what = f"weights name {unknown[0]!r}, which is not a class, and leave out the class {unmentioned[0]!r}"
            raise ValueError(f"{what}; correct the name or give every class a weight")
        weights = np.array([float(self.weights.get(label, 1.0)) for label in classes])
        table = np.tile(weights, (len(classes), 1))
        table = table if self.by == "label" else table.T.copy()
        np.fill_diagonal(table, 0.0)
        return table
