"""Frames of discrete columns: a pandas frame, a mapping of columns, a list of rows, or an array; and their codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.features.tokens import Frame as Columns
from maxmargin.models.labels import Labels, plain

__all__ = ["Frame", "encode_column", "learn_states", "missing", "read_frame"]


@dataclass(frozen=True)
class Frame:
    """Columns by name, all of the same length."""

    columns: dict[str, list[Hashable]]
    n_rows: int
    categories: dict[str, list[Hashable]]  # values of pandas columns of categories, those that do not occur too
    index: object = None  # of a pandas frame

    def with_column(self, name: str, values: list[Hashable]) -> Frame:
        """The same frame with a column put in or replaced."""
        if len(values) != self.n_rows:
            raise ValueError(f"{name!r} has {len(values)} values and the frame {self.n_rows} rows; they must agree.")
        categories = {other: own for other, own in self.categories.items() if other != name}
        return Frame({**self.columns, name: values}, self.n_rows, categories, self.index)

    def like(self, columns: Mapping[str, list[Hashable]]) -> object:
        """Columns in the form of the frame: a pandas frame with the same index, or a dict of lists."""
        if self.index is None:
            return dict(columns)
        import pandas

        return pandas.DataFrame(dict(columns), index=self.index)


def missing(value: object) -> bool:
    """None, NaN, or pandas' NA and NaT."""
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def read_frame(X: object) -> Frame:
    """A frame from one of pandas or polars, a mapping of name to column, a list of mappings (rows), or an array (n, v).

    Rows may leave out what is missing; columns of an array are called x0, x1, ...
    """
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        frame: Any = X  # pandas itself has no types here
        _check_names(names := list(frame.columns))
        categories = {c: frame[c].cat.categories.tolist() for c in names if hasattr(frame[c].dtype, "categories")}
        return Frame({c: frame[c].tolist() for c in names}, len(frame), categories, frame.index)
    if sp.issparse(X):
        raise TypeError("X is a sparse matrix, and sparse input is not supported; give categories, as X.toarray().")
    if isinstance(X, Columns):  # polars
        X = {name: X[name].to_list() for name in X.columns}
    if isinstance(X, Mapping):
        _check_names(list(X))
        columns = {name: _values(column, name) for name, column in X.items()}
    elif isinstance(X, np.ndarray):
        if X.ndim != 2:
            wanted = "Reshape your data: one row for each example and one column for each variable"
            raise ValueError(f"X has shape {X.shape}. {wanted}.")
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported; give categories: text, whole numbers or truth values.")
        columns = {f"x{v}": X[:, v].tolist() for v in range(X.shape[1])}
    elif isinstance(X, Iterable) and not isinstance(X, (str, bytes)):
        rows = list(X)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise TypeError(f"example {i} is {row!r}; give rows as mappings of name to value, or a frame.")
        _check_names(names := list(dict.fromkeys(name for row in rows for name in row)))
        return Frame({name: [row.get(name) for row in rows] for name in names}, len(rows), {})
    else:
        raise TypeError(f"X must be a frame, a mapping of columns or a list of rows; got {type(X).__name__}.")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        (a, n), (b, m) = next((p, q) for p in lengths.items() for q in lengths.items() if p[1] != q[1])
        raise ValueError(f"column {a!r} has {n} values and {b!r} has {m}; all columns need the same length.")
    return Frame(columns, next(iter(lengths.values()), 0), {})


def learn_states(values: Sequence[Hashable], name: str) -> Labels:
    """The distinct values of a column, without the missing ones; refuses numbers that look continuous."""
    for i, value in enumerate(values):
        if isinstance(value, (float, np.floating)) and value == value and not float(value).is_integer():
            what = f"column {name!r} has the value {value} in example {i}, which looks continuous"
            remedy = "Bin the values first (pandas.cut), or name all that may occur in states=."
            raise ValueError(f"{what}; this model is for categories. {remedy}")
    try:
        labels = Labels.of(value for value in values if not missing(value))
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from None
    if len(labels) == 0:
        raise ValueError(f"column {name!r} has no value at all; leave it out, or name its states in states=.")
    return labels


def encode_column(values: Sequence[Hashable], labels: Labels, name: str, unknown: str) -> np.ndarray:
    """Codes of a column, -1 where a value is missing, or not known and ``unknown`` is "missing"; int32 (n,)."""
    get = labels.code.get
    try:
        codes = np.fromiter(map(get, values, repeat(-1)), np.int32, len(values))
    except TypeError:
        i = next(i for i, value in enumerate(values) if not isinstance(value, Hashable))
        raise TypeError(f"example {i}, column {name!r}: {values[i]!r} cannot be a value: not hashable.") from None
    if unknown == "error":
        strange = next((i for i in np.flatnonzero(codes < 0).tolist() if not missing(values[i])), None)
        if strange is not None:
            shown = ", ".join(map(repr, labels.classes[:8])) + (", ..." if len(labels) > 8 else "")
            what = f"example {strange} has the value {values[strange]!r} in column {name!r}"
            remedy = 'Name all that may occur in states=, or set unknown="missing".'
            raise ValueError(f"{what}, which is not among its states ({shown}). {remedy}")
    return codes


def _values(column: object, name: str) -> list[Hashable]:
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise TypeError(f"column {name!r} is {column!r}; give a sequence with one value for each row.")
    return column.tolist() if hasattr(column, "tolist") else plain(column)


def _check_names(names: list) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a column is called {name!r}; names must be text (X.rename(columns=str)).")
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns are called {twice!r}; names must differ.")
