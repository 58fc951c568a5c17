"""Quality of label sets: by example, by label, and over all labels of all examples.

Sets are indicator matrices (n, n_labels) of 0 and 1 (arrays, sparse matrices, frames), columns in the same order, or
sequences of collections of labels (lists of lists are a matrix where they hold only 0 and 1); the two sides may differ
in form only if ``labels`` names the columns. Of sequences, the labels are those that occur on either side, or
``labels``, which matters where labels count that never occur: in the label loss and in macro F1.

scikit-learn computes the scores; the conventions for sets without labels are stated here. Tsoumakas, Katakis, Vlahavas
2010, Mining multi-label data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.metrics.spans import SpanScores

__all__ = [
    "LabelReport", "example_f1", "jaccard_accuracy", "label_loss", "label_report", "macro_f1", "micro_f1",
    "subset_accuracy",
]  # fmt: skip

LabelSets: TypeAlias = ArrayLike | sp.csr_array | Sequence[Iterable[Hashable]]
Names: TypeAlias = Iterable[Hashable] | None


def subset_accuracy(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> float:
    """Share of examples whose set is right to the last label."""
    true, found, _ = _matrices(y_true, y_pred, labels)
    return float((abs(true - found).sum(axis=1) == 0).mean())


def jaccard_accuracy(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> float:
    """Mean over examples of ``|A & B| / |A | B|``, 1 where both sets are empty."""
    from sklearn.metrics import jaccard_score

    true, found, _ = _matrices(y_true, y_pred, labels)
    return float(jaccard_score(true, found, average="samples", zero_division=1.0))


def label_loss(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> float:
    """Share of wrong entries among all labels of all examples (Hamming loss)."""
    from sklearn.metrics import hamming_loss

    true, found, _ = _matrices(y_true, y_pred, labels)
    return float(hamming_loss(true, found))


def micro_f1(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> float:
    """F1 of all labels of all examples together, ``2 right / (true + predicted)``; 0 when there are none."""
    return _f1(y_true, y_pred, labels, "micro", 0.0)


def macro_f1(y_true: LabelSets, y_pred: LabelSets, labels: Names = None, *, zero_division: float = 0.0) -> float:
    """Mean over labels of their F1, where a label that is neither true nor predicted counts ``zero_division``.

    scikit-learn's ``f1_score(average="macro")``. Some papers call another mean so: that of :func:`example_f1`.
    """
    return _f1(y_true, y_pred, labels, "macro", zero_division)


def example_f1(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> float:
    """Mean over examples of ``2 |A & B| / (|A| + |B|)``, 1 where both sets are empty."""
    return _f1(y_true, y_pred, labels, "samples", 1.0)


@dataclass(frozen=True)
class LabelReport:
    """All scores of label sets, and the counts of each label."""

    subset_accuracy: float
    jaccard_accuracy: float
    label_loss: float
    micro_f1: float
    macro_f1: float
    example_f1: float
    by_label: dict[Hashable, SpanScores]


def label_report(y_true: LabelSets, y_pred: LabelSets, labels: Names = None) -> LabelReport:
    """All scores at once; labels of matrices are the numbers of their columns, or ``labels``."""
    true, found, names = _matrices(y_true, y_pred, labels)
    sums = (matrix.sum(axis=0).tolist() for matrix in (true, found, true.multiply(found)))
    counts = [SpanScores(int(a), int(b), int(c)) for a, b, c in zip(*sums, strict=True)]
    return LabelReport(
        subset_accuracy(true, found), jaccard_accuracy(true, found), label_loss(true, found), micro_f1(true, found),
        macro_f1(true, found), example_f1(true, found), dict(zip(names, counts, strict=True)),
    )  # fmt: skip


def _f1(y_true: LabelSets, y_pred: LabelSets, labels: Names, average: str, zero_division: float) -> float:
    from sklearn.metrics import f1_score

    true, found, _ = _matrices(y_true, y_pred, labels)
    return float(f1_score(true, found, average=average, zero_division=zero_division))


def _matrices(y_true: LabelSets, y_pred: LabelSets, labels: Names) -> tuple[sp.csr_array, sp.csr_array, list[Hashable]]:
    """Both sides as sparse matrices over the same labels, and those labels."""
    sides = [_as_matrix(y, name) for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))]
    names: list[Hashable] | None = None if labels is None else list(labels)
    sets = [[] if matrix is not None else _collections(y) for y, matrix in zip((y_true, y_pred), sides, strict=True)]
    if names is None:
        widths = [matrix.shape[1] for matrix in sides if matrix is not None]
        if len(widths) == 1:
            raise ValueError("one of y_true and y_pred is a matrix, the other one is not; name the columns by labels=.")
        seen = {label for rows in sets for row in rows for label in row}
        names = [*range(widths[0])] if widths else sorted(seen, key=lambda label: (type(label).__name__, label))
    made = [_encoded(rows, names) if m is None else m for rows, m in zip(sets, sides, strict=True)]
    if made[0].shape != made[1].shape or made[0].shape[1] != len(names):
        shapes = f"y_true is {made[0].shape} and y_pred {made[1].shape} for {len(names)} labels"
        raise ValueError(f"{shapes}; give one row per example and one column per label.")
    if made[0].shape[0] == 0 or not names:
        raise ValueError("there are no labels to score; give at least one example, and labels= where all are empty.")
    return made[0], made[1], names


def _as_matrix(y: LabelSets, name: str) -> sp.csr_array | None:
    """An indicator matrix; None of what holds collections of labels."""
    if not sp.issparse(y):
        if isinstance(y, (list, tuple)) and any(isinstance(row, (AbstractSet, tuple, str)) for row in y):
            return None
        try:
            array = np.asarray(y)
        except ValueError:  # lists of different lengths
            return None
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            return None
        if isinstance(y, (list, tuple)) and not np.isin(array, (0, 1)).all():
            return None
        y = array
    matrix = sp.csr_array(cast(sp.csr_array, y))
    if not np.isin(matrix.data, (0, 1)).all():
        raise ValueError(f"{name} is a matrix with other entries than 0 and 1; give indicators, or sets of labels.")
    return matrix.astype(np.int64)


def _collections(y: LabelSets) -> list[list[Hashable]]:
    rows = []
    for i, row in enumerate(cast("Sequence[Iterable[Hashable]]", y)):
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise ValueError(f"example {i} has {row!r:.60} in place of a set of labels; give a collection of labels.")
        rows.append(list(dict.fromkeys(row)))
    return rows


def _encoded(rows: list[list[Hashable]], names: list[Hashable]) -> sp.csr_array:
    code = {label: k for k, label in enumerate(names)}
    for i, row in enumerate(rows):
        unknown = [label for label in row if label not in code]
        if unknown:
            raise ValueError(f"example {i} has the label {unknown[0]!r}, which is not among labels=; add it.")
    columns = [code[label] for row in rows for label in row]
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return sp.csr_array((np.ones(len(columns), np.int64), np.array(columns, np.int64), ends), (len(rows), len(names)))
