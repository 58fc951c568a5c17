"""Labels of any hashable kind, and their integer codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["Labels", "padded", "plain"]


class Labels:
    """The set of labels of a model, in a fixed order.

    Parameters
    ----------
    classes : sequence of hashable
        Labels in order of their codes 0..K-1.
    """

    def __init__(self, classes: Sequence[Hashable]) -> None:
        self.classes = list(classes)
        self.code = {label: k for k, label in enumerate(self.classes)}
        if len(self.code) != len(self.classes):
            raise ValueError("classes has the same label twice.")

    def __len__(self) -> int:
        return len(self.classes)

    @staticmethod
    def of(labels: Iterable[Hashable]) -> Labels:
        """The distinct labels, sorted where they can be sorted, else in the order of their text."""
        try:
            distinct = set(labels)
        except TypeError as error:
            raise TypeError(f"labels must be hashable (text, numbers, tuples): {error}.") from None
        try:
            return Labels(sorted(distinct))  # type: ignore[type-var]
        except TypeError:
            return Labels(sorted(distinct, key=lambda label: (type(label).__name__, str(label))))

    def encode(self, y: Iterable[Hashable], example: int) -> np.ndarray:
        """Codes of one sequence of labels; a KeyError-free error names the example and the label."""
        try:
            return np.fromiter((self.code[label] for label in y), dtype=np.int32)
        except TypeError as error:
            raise TypeError(f"example {example}: labels must be hashable (text, numbers, tuples): {error}.") from None
        except KeyError as error:
            shown = ", ".join(map(str, self.classes[:8])) + (", ..." if len(self) > 8 else "")
            raise ValueError(
                f"example {example} has the label {error.args[0]!r}, which is not among the classes ({shown}). "
                "Pass classes= with all labels that may occur."
            ) from None

    def decode(self, codes: np.ndarray) -> list[Any]:
        """Labels of a sequence of codes."""
        classes = self.classes
        return [classes[k] for k in codes.tolist()]


def padded(n_labels: int) -> int:
    """Row length for ``n_labels``: a multiple of 8 (a cache line of doubles) once that wastes little."""
    for unit in (8, 4, 2):
        wide = -(-n_labels // unit) * unit
        if wide <= 1.15 * n_labels:
            return wide
    return n_labels


def plain(labels: Any) -> list:
    """A sequence of labels as a list of plain Python values (numpy scalars hash like them but print badly)."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
