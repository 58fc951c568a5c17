"""Which labels may begin, end and follow each other in a label sequence."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["TransitionMask", "transition_mask"]


@dataclass(frozen=True)
class TransitionMask:
    """Allowed labels of a sequence over K classes."""

    start: np.ndarray  # bool (K,): labels allowed at the first position
    end: np.ndarray  # bool (K,): labels allowed at the last position
    pairs: np.ndarray  # bool (K, K): pairs[left, right] if right may follow left


def transition_mask(classes: Sequence[Hashable], constraint: object = None) -> TransitionMask:
    """Turn a constraint on label sequences into boolean arrays over the classes.

    Parameters
    ----------
    classes : sequence of K labels
    constraint : None, "bio", "iobes", collection of pairs, or bool array (K, K)
        * None allows everything.
        * "bio": labels O, B-X, I-X; I-X must follow B-X or I-X.
        * "iobes": labels O, B-X, I-X, E-X, S-X; a span is S-X, or B-X, any number of I-X, then E-X. No span is left
          open at the end of the sequence.
        * a list, tuple or set of forbidden ``(left, right)`` pairs of labels.
        * a boolean array, True where ``right`` may follow ``left``, in the order of ``classes``.
    """
    labels = list(classes)
    size = len(labels)
    if isinstance(constraint, str):
        return _scheme(labels, constraint)
    constraint = () if constraint is None else constraint
    if isinstance(constraint, np.ndarray):
        return TransitionMask(np.ones(size, bool), np.ones(size, bool), _allowed(constraint, size))
    if isinstance(constraint, Collection) and not isinstance(constraint, dict):
        return TransitionMask(np.ones(size, bool), np.ones(size, bool), _without(constraint, labels))
    raise TypeError(
        f"constraint is a {type(constraint).__name__}; give None, 'bio', 'iobes', a collection of forbidden "
        f"(left, right) label pairs, or a boolean array of allowed pairs of shape ({size}, {size})"
    )


# Prefixes that may begin a sequence, that may end it, and whether a prefix opens or continues a span (the next label
# then belongs to the same span or, where leaving is allowed, starts afresh).
_SCHEMES = {
    "bio": {"fresh": "OB", "inside": "I", "end": "OBI", "leave": "OBI", "enter": "BI"},
    "iobes": {"fresh": "OBS", "inside": "IE", "end": "OES", "leave": "OES", "enter": "BI"},
}


def _scheme(labels: list, name: str) -> TransitionMask:
    """Masks of a tag scheme: a label starts afresh where the one before may be left, or continues its span."""
    if name not in _SCHEMES:
        raise ValueError(f"constraint {name!r} is not known; use 'bio', 'iobes', forbidden pairs, or a boolean array")
    rule = _SCHEMES[name]
    parsed = [_parse(label, name, rule["fresh"] + rule["inside"]) for label in labels]
    size = len(labels)
    pairs = np.zeros((size, size), bool)
    for i, (left, left_type) in enumerate(parsed):
        for j, (right, right_type) in enumerate(parsed):
            if right in rule["inside"]:
                pairs[i, j] = left in rule["enter"] and left_type == right_type
            else:
                pairs[i, j] = left in rule["leave"]
    start = np.array([prefix in rule["fresh"] for prefix, _ in parsed], bool)
    end = np.array([prefix in rule["end"] for prefix, _ in parsed], bool)
    return TransitionMask(start, end, pairs)


def _parse(label: object, name: str, prefixes: str) -> tuple[str, str]:
    """Split "B-NP" into ("B", "NP"); "O" has no type."""
    if isinstance(label, str):
        prefix, dash, kind = label.partition("-")
        if label == "O" or (prefix in set(prefixes) - {"O"} and bool(dash) == bool(kind)):
            return prefix, kind
    wanted = ", ".join("O" if p == "O" else f"{p}-TYPE" for p in prefixes)
    advice = "rename the label, choose another scheme, or give the forbidden pairs yourself"
    raise ValueError(f"label {label!r} does not fit the tag scheme {name!r}, whose labels are {wanted}; {advice}")


def _allowed(constraint: np.ndarray, size: int) -> np.ndarray:
    if constraint.dtype != bool or constraint.shape != (size, size):
        raise ValueError(
            f"constraint is an array of shape {constraint.shape} and type {constraint.dtype}; give booleans of shape "
            f"({size}, {size}), True where the column's label may follow the row's label"
        )
    return constraint.copy()


def _without(forbidden: Collection, labels: list) -> np.ndarray:
    place = {label: i for i, label in enumerate(labels)}
    pairs = np.ones((len(labels), len(labels)), bool)
    for pair in forbidden:
        if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
            raise ValueError(f"{pair!r} among the forbidden pairs is not a pair; write (left label, right label)")
        left, right = pair
        for label in (left, right):
            if label not in place:
                shown = ", ".join(map(repr, labels[:20])) + (", ..." if len(labels) > 20 else "")
                found = f"forbidden pair {(left, right)!r} names {label!r}"
                raise ValueError(f"{found}, which is not a class; the classes are {shown}")
        pairs[place[left], place[right]] = False
    return pairs
