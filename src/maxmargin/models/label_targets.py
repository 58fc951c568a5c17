"""Label sets as users have them: indicator matrices (arrays, sparse, frames) or lists of sets of labels."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp

from maxmargin.door import sparse_block
from maxmargin.models.labels import Labels, plain

__all__ = ["DTYPES", "FORMS", "INDICATORS", "LabelTargets", "class_array"]

FORMS = ("dense", "sparse", "frame", "sets")
DTYPES = tuple(np.dtype(order + code).str for code in "?bBhHiIlLqQefdg" for order in "<>")  # of matrices
INTEGER = np.dtype(np.int64)
Pair: TypeAlias = tuple[float, float]
INDICATORS: Pair = (0, 1)  # off, on
KINDS = "a matrix of 0 and 1 with one column per label, or a list with one set of labels per example"


@runtime_checkable
class Frame(Protocol):
    """What is asked of a pandas frame."""

    @property
    def columns(self) -> Iterable[Hashable]: ...
    @property
    def index(self) -> object: ...
    def to_numpy(self) -> np.ndarray: ...


@dataclass(frozen=True)
class LabelTargets:
    """The sets of n examples: which of M labels are on, bool (n, M), and the form that they came in.

    ``form`` is one of :data:`FORMS`, ``dtype`` that of the matrix. ``off_on`` are the numbers in the matrix where a
    label is off and on, 0 and 1 but in a single column, which may hold any two, the larger one for on, as the targets
    of binary classifiers do.
    """

    on: np.ndarray
    labels: Labels
    form: str = "dense"
    dtype: np.dtype = INTEGER
    off_on: Pair = INDICATORS

    @staticmethod
    def of(Y: object, classes: Iterable[Hashable] | None = None, off_on: Pair | None = None) -> LabelTargets:
        """Read the sets of examples.

        Parameters
        ----------
        Y : array, sparse matrix or frame (n, M) of 0 and 1, or sequence of n collections of labels
            Lists of lists are rows of a matrix where they have equal lengths and hold only 0 and 1.
        classes : labels in order, optional
            Else the columns of a frame, the numbers of the columns of a matrix, or all labels seen, sorted.
        off_on : the two numbers of a single column in training, optional
        """
        if isinstance(Y, LabelTargets):
            return Y
        if isinstance(Y, Frame):
            columns = list(Y.columns)
            wanted = columns if classes is None else plain(classes)
            if set(columns) != set(wanted):
                odd = next(iter(set(columns) ^ set(wanted)))
                raise ValueError(f"the columns of y differ from the labels, first by {odd!r}; give one for each label.")
            order = [columns.index(k) for k in wanted]
            return _from_matrix(np.asarray(Y.to_numpy())[:, order], wanted, "frame", off_on)
        if sp.issparse(Y):
            matrix = sparse_block(Y, "y")
            return _from_matrix(matrix.toarray(), classes, "sparse", off_on, matrix.dtype)
        if isinstance(Y, np.ndarray) and Y.dtype != object:
            if np.ma.is_masked(Y):
                raise ValueError("y has masked entries; give 0 or 1 for each label, or leave the example out.")
            return _from_matrix(np.asarray(Y), classes, "dense", off_on)
        if not isinstance(Y, Iterable) or isinstance(Y, (str, bytes)):
            Y = np.asarray(Y)  # whatever offers itself as an array
            if Y.ndim == 0:
                raise ValueError(f"y is {Y.item()!r:.60}; give {KINDS}.")
            return LabelTargets.of(Y, classes, off_on)
        rows = list(Y)
        matrix_like = _as_matrix(rows)
        return _from_sets(rows, classes) if matrix_like is None else _from_matrix(matrix_like, classes, "dense", off_on)

    def sets(self) -> list[set[Hashable]]:
        """The labels of each example."""
        classes = self.labels.classes
        return [{classes[k] for k in np.flatnonzero(row)} for row in self.on]

    def in_form(self, like: object = None) -> object:
        """The sets in their form; a frame has the index of ``like``, where that is one."""
        if self.form == "sets":
            return self.sets()
        matrix = np.where(self.on, self.off_on[1], self.off_on[0]).astype(self.dtype)
        if self.form == "sparse":
            return sp.csr_matrix(matrix)
        if self.form == "frame":
            import pandas as pd

            index = like.index if isinstance(like, Frame) else None
            return pd.DataFrame(matrix, index=index, columns=self.labels.classes)
        return matrix


def class_array(classes: Sequence[Hashable]) -> np.ndarray:
    """Labels as an array, of objects where another kind would change them."""
    array = np.array(classes) if {type(label) for label in classes} in ({int}, {str}, {float}, {bool}) else None
    if array is None:
        array = np.empty(len(classes), object)
        array[:] = classes
    return array


def _as_matrix(rows: Sequence[object]) -> np.ndarray | None:
    """Lists or arrays of equal length that hold only 0 and 1, as a matrix."""
    if not rows or not all(isinstance(row, (list, np.ndarray)) for row in rows):
        return None
    try:
        matrix = np.array(rows)
    except ValueError:  # of different lengths
        return None
    return matrix if matrix.ndim == 2 and matrix.dtype.kind in "biuf" and np.isin(matrix, (0, 1)).all() else None


def _from_matrix(
    matrix: np.ndarray, classes: Iterable[Hashable] | None, form: str, off_on: Pair | None,
    dtype: np.dtype | None = None,
) -> LabelTargets:  # fmt: skip
    if matrix.ndim != 2:
        what = f"Unknown label type: y has the shape {matrix.shape}"
        advice = f"give {KINDS}; MulticlassClassifier is for one class per example"
        raise ValueError(f"{what}. Only binary classification is supported, of each label: {advice}.")
    if matrix.shape[1] == 0:
        raise ValueError("y has no columns; give one for each label.")
    kind = matrix.dtype.kind
    if kind == "O":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            kind = "U"
    if kind not in "biufO":
        raise ValueError(f"y has dtype {matrix.dtype}; give {KINDS}.")
    if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        raise ValueError("y contains NaN or infinity; give 0 or 1 for each label, or leave the example out.")
    off, on = off_on or _off_on(matrix)
    bad = (matrix != off) & (matrix != on)
    if bad.any():
        i, k = map(int, np.argwhere(bad)[0])
        raise ValueError(f"Unknown label type: y has {matrix[i, k]} in row {i}, column {k}; give {KINDS}.")
    labels = Labels(range(matrix.shape[1]) if classes is None else plain(classes))
    if len(labels) != matrix.shape[1]:
        raise ValueError(
            f"y has {matrix.shape[1]} columns for {len(labels)} labels; give one for each label, in order."
        )
    return LabelTargets(matrix == on, labels, form, INTEGER if kind == "O" else dtype or matrix.dtype, (off, on))


def _off_on(matrix: np.ndarray) -> Pair:
    """The two numbers of a single column; else 0 and 1."""
    found = np.unique(matrix).tolist() if matrix.shape[1] == 1 else []
    return (found[0], found[1]) if len(found) == 2 else INDICATORS


def _from_sets(rows: list[object], classes: Iterable[Hashable] | None) -> LabelTargets:
    sets: list[Collection[Hashable]] = []
    for i, row in enumerate(rows):
        if isinstance(row, np.ndarray) and row.ndim == 1:
            row = row.tolist()
        if not isinstance(row, (list, tuple, AbstractSet)):
            raise ValueError(f"example {i} has {row!r:.60} in place of a set of labels; give {KINDS}.")
        sets.append(row)
    labels = Labels.chosen(classes, (label for row in sets for label in row))
    if len(labels) == 0:
        raise ValueError("no example has a label; give a matrix with one column per label, or other examples.")
    if any(label != label for label in labels.classes):
        raise ValueError("one of the labels is NaN; remove it.")
    on = np.zeros((len(sets), len(labels)), bool)
    for i, row in enumerate(sets):
        on[i, labels.encode(row, i)] = True
    return LabelTargets(on, labels, "sets")
