"""Labels of any hashable kind, and their integer codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized

import numpy as np

__all__ = ["Labels", "check_count", "check_lengths", "is_label", "label_lists", "padded", "plain", "weighted"]

MOST = 2**31  # weights, features, labels: kernels count them in 32 bits


class Labels:
    """The set of labels of a model.

    Parameters
    ----------
    classes : sequence of hashable
        Labels in order of their codes 0..K-1.
    """

    def __init__(self, classes: Sequence[Hashable]) -> None:
        self.classes = list(classes)
        strange = next((label for label in self.classes if not is_label(label)), None)
        if strange is not None:
            what = f"classes has {str(strange)[:40]!r}"
            raise ValueError(f"{what}, which is no label; labels must be hashable (text, numbers, tuples).")
        self.code = {label: k for k, label in enumerate(self.classes)}
        if len(self.code) != len(self.classes):
            raise ValueError("classes has the same label twice.")

    def __len__(self) -> int:
        return len(self.classes)

    @staticmethod
    def chosen(classes: Iterable[Hashable] | None, seen: Iterable[Hashable]) -> Labels:
        """The classes that a user has named, else those seen."""
        return Labels.of(seen) if classes is None else Labels(plain(classes))

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
            what = f"example {example} has the label {error.args[0]!r}, which is not among the classes ({shown})"
            raise ValueError(f"{what}. Pass classes= with all labels that may occur.") from None

    def decode(self, codes: np.ndarray) -> list[Hashable]:
        """Labels of a sequence of codes."""
        return [self.classes[k] for k in codes.tolist()]

    def cost(self, table: np.ndarray, y_true: Iterable[Hashable], y: Iterable[Hashable], normalize: bool) -> float:
        """Cost of one sequence of labels where another is true; true labels never seen in training cost the most."""
        (true, given), code = label_lists((y_true, y)), self.code
        if len(true) != len(given):
            raise ValueError(f"the sequences have {len(true)} and {len(given)} labels; they must agree.")
        worst = table.max(initial=0.0)
        total = float(sum(table[code[a], code[b]] if a in code else worst for a, b in zip(true, given, strict=True)))
        return total / max(len(true), 1) if normalize else total


def is_label(value: object) -> bool:
    """Whether a value can be a label: one that can be hashed, with all of its parts."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def padded(n_labels: int) -> int:
    """Row length for ``n_labels``: a multiple of 8 (a cache line of doubles) once that wastes little."""
    for unit in (8, 4, 2):
        wide = -(-n_labels // unit) * unit
        if wide <= 1.15 * n_labels:
            return wide
    return n_labels


def label_lists(Y: Iterable[Iterable[Hashable]]) -> list[list[Hashable]]:
    """Sequences of labels as lists of plain values, or a TypeError that names the example."""
    try:
        rows = list(Y)
    except TypeError:
        raise TypeError(f"the labels are {Y!r:.80}; give a sequence of labels for each example.") from None
    lists = []
    for i, y in enumerate(rows):
        try:
            lists.append(plain(y))
        except TypeError:
            raise TypeError(
                f"example {i}: {y!r:.80} is not a sequence of labels; give a list, a label a token."
            ) from None
    return lists


def plain(labels: Iterable[Hashable]) -> list:
    """A sequence of labels as a list of plain Python values (numpy scalars hash like them but print badly)."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def weighted(table: np.ndarray, labels: Labels, class_weight: Mapping[Hashable, float] | None) -> np.ndarray:
    """A cost table whose rows, by true label, are multiplied by the weights of their classes; others have weight 1."""
    weights = np.array([float((class_weight or {}).get(label, 1.0)) for label in labels.classes])
    for label, weight in zip(labels.classes, weights, strict=True):
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"class_weight of {label!r} is {weight}; give a finite number >= 0.")
    return np.ascontiguousarray(table * weights[:, None], np.float64)


def check_count(count: int, things: str, what: str, advice: str, least: int = 0) -> None:
    """Refuse more things than kernels can count; ``what`` says where they come from, as "3 labels make"."""
    if not least <= count < MOST:
        raise ValueError(f"{what} {count} {things}, where {least} to 2^31 - 1 can be counted; {advice}.")


def check_lengths(lengths: Sequence[int] | np.ndarray, Y: Sequence[Sized], name: str, parts: str, things: str) -> None:
    """Refuse what has not one thing, say a label, for each part, say a token, of each sequence."""
    if len(Y) != len(lengths):
        given = f"X has {len(lengths)} sequences and {name} has {len(Y)}"
        raise ValueError(f"{given}; they must agree: one list of {things} for each sequence.")
    for i, (length, y) in enumerate(zip(lengths, Y, strict=True)):
        if len(y) != length:
            raise ValueError(f"example {i} has {length} {parts} and {len(y)} {things}; they must agree.")
