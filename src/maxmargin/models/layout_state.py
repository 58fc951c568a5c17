"""Layouts as plain values and arrays, for model files: what a layout promises, and how it reads what a file says.

Nothing that a file holds reaches a kernel unchecked: a layout takes every value out of a :class:`StateReader`, which
names the value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from maxmargin.contracts import Layout
from maxmargin.door import LARGEST_FEATURE, weight_vector
from maxmargin.models.base import offsets_of
from maxmargin.models.labels import MOST, Labels, is_label

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["StateReader", "StorableLayout", "as_labels", "check_log_probabilities", "facts_of"]


class StorableLayout(Layout, Protocol):
    """A layout that a model file can hold; those of compiled models inherit what they do not say otherwise."""

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """Facts (plain values) and tensors, by name: all that :meth:`from_state` needs."""

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> Self:
        """The layout behind :meth:`to_state`, or a ValueError that names what does not fit."""

    def check_weights(self, w: np.ndarray) -> None:
        """A ValueError when these weights (n_weights,) cannot be predicted with."""
        try:
            weight_vector(w, self.n_weights)
        except ValueError as error:
            what = f"some weights are NaN or infinite, or beyond all measure ({error})"
            raise ValueError(f"{what}; fit again, with finite features and a smaller C") from None


@dataclass
class StateReader:
    """Facts and tensors of unknown origin, by name; each is checked as it is taken."""

    facts: Mapping[str, object]
    tensors: Mapping[str, np.ndarray]

    def fact(self, name: str) -> object:
        if name not in self.facts:
            raise ValueError(f"its {name!r} is missing")
        return self.facts[name]

    def flag(self, name: str) -> bool:
        value = self.fact(name)
        if type(value) is not bool:
            raise ValueError(f"its {name!r} must be true or false, got {str(value)[:40]!r}")
        return value

    def whole(self, name: str, least: int = 0, most: int = MOST) -> int:
        value = self.fact(name)
        if type(value) is not int or not least <= value < most:
            raise ValueError(f"its {name!r} must be a whole number from {least} to {most - 1}, got {str(value)[:40]!r}")
        return value

    def number(self, name: str, least: float = 0.0) -> float:
        value = self.fact(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < 1e300:
            raise ValueError(f"its {name!r} must be a finite number >= {least:g}, got {str(value)[:40]!r}")
        return float(value)

    def pair(self, name: str, parts: tuple[str, str], least: float = 0.0) -> tuple[float, float]:
        """Two numbers, each with a name of its own."""
        value = self.fact(name)
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError(f"its {name!r} is not a pair of numbers")
        each = StateReader(dict(zip(parts, value, strict=True)), {})
        return each.number(parts[0], least), each.number(parts[1], least)

    def choice(self, name: str, options: Collection[object]) -> object:
        value = self.fact(name)
        if not isinstance(value, Hashable) or value not in options:
            raise ValueError(f"its {name!r} must be one of {', '.join(map(str, options))}, got {str(value)[:40]!r}")
        return value

    def items(self, name: str) -> list[object]:
        value = self.fact(name)
        if type(value) is not list:
            raise ValueError(f"its {name!r} is not a list")
        return value

    def label(self, name: str) -> Hashable:
        value = self.fact(name)
        if not is_label(value):
            raise ValueError(f"its {name!r} must be text, a number, None, or a tuple of them, got {str(value)[:40]!r}")
        return value

    def labels(self, name: str) -> Labels:
        return as_labels(self.items(name), name)

    def announced(self, layout: type, **given: object) -> dict[str, Any]:
        """Arguments of a layout, a dataclass: those given, and the others by the kinds that its fields announce."""
        kinds: dict[str, Callable[[str], object]]
        kinds = {"bool": self.flag, "int": self.whole, "float": self.number, "Labels": self.labels}
        own = [field for field in fields(layout) if field.name not in given]
        return {field.name: kinds[str(field.type)](field.name) for field in own} | given

    def tensor(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise ValueError(f"its tensor {name!r} is missing")
        return self.tensors[name]

    def floats(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Finite numbers of a shape, as float64."""
        array = self.tensor(name)
        if array.dtype.kind != "f" or array.shape != shape:
            raise ValueError(f"its tensor {name!r} has dtype {array.dtype} and shape {array.shape}; expected {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"its tensor {name!r} has numbers that are NaN or infinite")
        return np.array(array, np.float64, order="C")

    def cost_table(self, name: str, size: int) -> np.ndarray:
        """Costs (size, size) >= 0, zero where the label is right."""
        table = self.floats(name, (size, size))
        if (table < 0).any() or (table > LARGEST_FEATURE).any() or np.diag(table).any():
            what = f"negative entries, some above {LARGEST_FEATURE:g}, or costs of the true label"
            raise ValueError(f"its tensor {name!r}, a table of costs, has {what}")
        return table

    def mask(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """0 where a boolean tensor is true, minus infinity where it is false."""
        allowed = self.tensor(name)
        if allowed.dtype != bool or allowed.shape != shape:
            raise ValueError(f"its tensor {name!r} is {allowed.dtype} {allowed.shape}; expected booleans {shape}")
        return np.where(allowed, 0.0, -np.inf)

    def rows(self, name: str, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Row pointers (rows + 1,) and columns of a sparse matrix, int32.

        Stored are ``name.counts``, the entries of each row, and ``name.labels``, their columns, rising within a row.
        """
        counts, columns = self.tensor(f"{name}.counts"), self.tensor(f"{name}.labels")
        for part in (counts, columns):
            if part.dtype.kind != "u" or part.ndim != 1:
                raise ValueError(f"its {name!r} have dtype {part.dtype} and shape {part.shape}; expected counts")
        if counts.max(initial=0) > width or columns.max(initial=0) >= width:
            raise ValueError(f"its {name!r} name more labels than the {width} there are")
        pointers = offsets_of(counts.astype(np.int64))
        if pointers[-1] != len(columns) or len(columns) >= MOST:
            raise ValueError(f"its {name!r} have {len(columns)} labels where {pointers[-1]} are announced")
        first = np.zeros(len(columns) + 1, bool)  # the labels rise, but for the first of each row
        first[pointers[:-1]] = True
        if not (first[1:-1] | (columns[1:] > columns[:-1])).all():
            raise ValueError(f"its {name!r} have a label twice in a row, or labels out of order")
        return pointers.astype(np.int32), columns.astype(np.int32)


def as_labels(classes: object, name: str) -> Labels:
    """Labels from a list of unknown origin: at least one, hashable, none twice, no NaN."""
    if type(classes) is not list or not classes:
        raise ValueError(f"its {name!r} must be a list with at least one label")
    if any(isinstance(label, np.ndarray) or not isinstance(label, Hashable) or label != label for label in classes):
        raise ValueError(f"its {name!r} must be text, numbers, None, or tuples of them")
    try:
        return Labels(classes)
    except ValueError as error:  # a tuple that holds a list; a label twice
        raise ValueError(f"its {name!r} cannot be used: {error}") from None


def check_log_probabilities(w: np.ndarray) -> None:
    """Refuse weights that are no logarithms of probabilities; minus infinity is a probability of 0."""
    if not (w <= 1e-6).all():
        at = int(np.argmin(w <= 1e-6))
        raise ValueError(f"some of its weights are no logarithms of probabilities: weight {at} is {w[at]}; fit again")


def facts_of(layout: DataclassInstance, **given: object) -> dict[str, object]:
    """Flags, numbers and labels of a layout by the names of its fields, as plain values, and those given."""
    kinds: dict[str, Callable[[Any], object]]
    kinds = {"bool": bool, "int": int, "float": float, "Labels": lambda labels: list(labels.classes)}
    announced = {field.name: kinds[str(field.type)] for field in fields(layout) if str(field.type) in kinds}
    return {name: kind(vars(layout)[name]) for name, kind in announced.items()} | given


def counted(pointers: np.ndarray, columns: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The counts and labels that :meth:`StateReader.rows` reads, in the smallest types."""
    counts = np.diff(pointers)
    smallest = np.min_scalar_type(int(counts.max(initial=0)))
    return counts.astype(smallest), columns.astype(np.min_scalar_type(width - 1))
