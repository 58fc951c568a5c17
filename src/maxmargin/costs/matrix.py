"""A cost for every pair of labels, given as a matrix."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.costs.base import Cost

__all__ = ["MatrixCost"]


@dataclass(repr=False, eq=False)
class MatrixCost(Cost):
    """Cost ``matrix[true, label]`` of a label for each true label.

    Parameters
    ----------
    matrix : array (K, K)
        Zero diagonal, not negative; need not be symmetric.
    labels : sequence of K labels, optional
        Labels of the rows and columns; by default the sorted classes. May include labels that are not classes.
    normalize : bool
    """

    matrix: ArrayLike
    labels: Sequence[Hashable] | None = None
    normalize: bool = False

    def _fill(self, classes: list) -> np.ndarray:
        matrix = np.asarray(self.matrix, np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the cost matrix has shape {matrix.shape}; give one row and one column for each label")
        if self.labels is None:
            if len(matrix) != len(classes):
                advice = "give one row for each class, or name the rows: MatrixCost(matrix, labels=[...])"
                raise ValueError(f"the cost matrix has {len(matrix)} rows for {len(classes)} classes; {advice}")
            return matrix
        place = {label: i for i, label in enumerate(self.labels)}
        if len(place) != len(matrix) or len(self.labels) != len(matrix):
            raise ValueError(f"the cost matrix has {len(matrix)} rows and {len(place)} labels; name every row once")
        missing = [label for label in classes if label not in place]
        if missing:
            raise ValueError(f"class {missing[0]!r} is not among the labels of the cost matrix; add its row and column")
        rows = [place[label] for label in classes]
        return matrix[np.ix_(rows, rows)]
