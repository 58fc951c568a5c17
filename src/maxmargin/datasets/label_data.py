"""Examples with sets of labels, as all readers of multi-label files give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

__all__ = [
    "LabelData",
    "chosen_columns",
    "closed_upwards",
    "indicators",
    "missing",
    "named_indicators",
    "number",
    "with_hierarchy",
]

MISSING = frozenset({"?", "", "nan", "na", "null"})
MOST_ENTRIES = 2**31  # of a matrix of labels


@dataclass(frozen=True)
class LabelData:
    """Examples with sets of labels.

    Attributes
    ----------
    X : float64 array or csr_array (n, n_features)
        NaN where a value is missing.
    Y : uint8 array (n, n_labels)
        1 where an example has a label; no columns where no labels were read.
    feature_names, label_names : list of str
    hierarchy : list of pairs (parent, child) of labels, or None
        The edges of a tree or directed acyclic graph over the labels, where the file has one. Y is closed upwards: a
        label comes with all labels above it.
    lines : list of int
        The line of each example in its file; empty where there are no lines.
    """

    X: np.ndarray | sp.csr_array
    Y: np.ndarray
    feature_names: list[str]
    label_names: list[str]
    hierarchy: list[tuple[str, str]] | None = None
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.Y)

    def sets(self) -> list[set[str]]:
        """The labels of each example."""
        return [{self.label_names[k] for k in np.flatnonzero(row)} for row in self.Y]


def with_hierarchy(data: LabelData, edges: Sequence[tuple[str, str]]) -> LabelData:
    """The examples with pairs (parent, child) over their labels, which may name further ones; Y closed upwards."""
    names = list(dict.fromkeys([*data.label_names, *(label for edge in edges for label in edge)]))
    Y = np.pad(data.Y, ((0, 0), (0, len(names) - len(data.label_names))))
    return replace(data, Y=closed_upwards(Y, names, edges), label_names=names, hierarchy=list(edges))


def missing(text: str) -> bool:
    """Whether a field says that its value is not known."""
    return text.strip().lower() in MISSING


def number(text: str, where: str) -> float:
    """A finite number, or NaN for a missing one; an error begins with ``where``."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan if missing(text) else np.inf
    if np.isinf(value) or "_" in text:
        raise ValueError(f"{where}: {text.strip()[:40]!r} is no finite number; write ? where a value is missing.")
    return value


def indicators(rows: Sequence[Iterable[int]], n_labels: int, name: str) -> np.ndarray:
    """A matrix of 0 and 1, uint8 (n, n_labels), of the numbers of the labels of each example."""
    if len(rows) * n_labels > MOST_ENTRIES:
        raise ValueError(f"{name}: {len(rows)} examples of {n_labels} labels are too many; read a part of the file.")
    Y = np.zeros((len(rows), n_labels), np.uint8)
    for i, row in enumerate(rows):
        Y[i, list(row)] = 1
    return Y


def named_indicators(
    rows: Sequence[Sequence[str]], names: list[str] | None, lines: Sequence[int], source: str
) -> tuple[np.ndarray, list[str]]:
    """A matrix of 0 and 1 of the names of the labels of each example, and all names in order.

    Names that nobody gives are those of the rows, by number where all are numbers, else sorted as texts.
    """
    if names is None:
        seen = {label for row in rows for label in row}
        try:
            names = sorted(seen, key=lambda label: (float(label), label))
        except ValueError:
            names = sorted(seen)
    code = {label: k for k, label in enumerate(names)}
    for row, line in zip(rows, lines, strict=True):
        unknown = next((label for label in row if label not in code), None)
        if unknown is not None:
            what = f"the label {unknown[:40]!r} is not among the {len(names)} known ones"
            raise ValueError(f"{source}, line {line}: {what}; correct it, or name all labels.")
    return indicators([[code[label] for label in row] for row in rows], len(names), source), names


def chosen_columns(wanted: int | Iterable[str], columns: Sequence[str], where: str) -> list[int]:
    """Places of columns: the first so many (a negative number: the last), or those with these names."""
    if isinstance(wanted, int):
        if not 0 < abs(wanted) <= len(columns):
            raise ValueError(f"{where}: {abs(wanted)} columns of labels are wanted, and {len(columns)} are there.")
        return list(range(wanted) if wanted > 0 else range(len(columns) + wanted, len(columns)))
    place = {column: j for j, column in enumerate(columns)}
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    lost = next((column for column in names if column not in place), None)
    if lost is not None:
        shown = ", ".join(columns[:3]) + (f", ..., {columns[-1]}" if len(columns) > 3 else "")
        raise ValueError(f"{where}: there is no column {lost!r}; there are {shown[:200]}.")
    return [place[column] for column in names]


def closed_upwards(Y: np.ndarray, names: Sequence[str], edges: Sequence[tuple[str, str]]) -> np.ndarray:
    """Y with all labels above those that are on. O(n depth edges)."""
    code = {label: k for k, label in enumerate(names)}
    pairs = [(code[parent], code[child]) for parent, child in edges]
    changed = True
    while changed:  # once per level
        changed = False
        for parent, child in pairs:
            lacking = (Y[:, child] > Y[:, parent]).any()
            if lacking:
                Y[:, parent] |= Y[:, child]
                changed = True
    return Y
