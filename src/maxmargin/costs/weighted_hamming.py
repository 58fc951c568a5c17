"""A weighted count of wrong labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.costs.base import Cost

__all__ = ["WeightedHammingCost"]


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
        Divide by the number of positions.
    """

    weights: Mapping[Any, float]
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
            raise ValueError(
                f"weights name {unknown[0]!r}, which is not a class, and leave out the class {unmentioned[0]!r}; "
                "correct the name or give every class a weight"
            )
        weights = np.array([float(self.weights.get(label, 1.0)) for label in classes])
        table = np.repeat(weights[:, None], len(classes), axis=1)
        if self.by == "label":
            table = table.T.copy()
        np.fill_diagonal(table, 0.0)
        return table
