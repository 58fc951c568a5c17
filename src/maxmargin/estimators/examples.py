"""Examples as users bring them, read once at the door, and predictions as they take them away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np

__all__ = ["Predictions", "by_sequence", "listed"]

Examples = TypeVar("Examples")
Output = TypeVar("Output")


class Predictions(list[Output]):
    """Outputs, one per example: a list, also to numpy, but for ``np.concatenate``.

    There it is an array (n,) of outputs, so that scikit-learn's ``cross_val_predict`` can put the folds together. As
    lists they would be tables of labels, whose widths differ.
    """

    def __array_function__(
        self, function: Callable[..., object], types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        seen: Callable[[Sequence[object]], object] = _objects if function is np.concatenate else list
        plain = [_seen_as(seen, arg) for arg in args]
        return function(*plain, **{name: _seen_as(seen, arg) for name, arg in kwargs.items()})


def _seen_as(seen: Callable[[Sequence[object]], object], arg: object) -> object:
    """An argument of numpy's with predictions in another form, also those in a list."""
    if isinstance(arg, Predictions):
        return seen(arg)
    return [_seen_as(seen, part) for part in arg] if isinstance(arg, (list, tuple)) else arg


def _objects(outputs: Sequence[object]) -> np.ndarray:
    array = np.empty(len(outputs), object)
    for i, output in enumerate(outputs):
        array[i] = output
    return array


def listed(examples: Examples) -> Examples:
    """The examples, in a list where they could be read only once or are an array of texts or objects."""
    if isinstance(examples, np.ndarray):
        return cast(Examples, list(examples)) if examples.dtype.kind in "OUS" else examples
    return cast(Examples, list(examples)) if isinstance(examples, Iterator) else examples


def by_sequence(y: Iterable[object], offsets: Sequence[int] | np.ndarray) -> list:
    """The labels of each sequence, also where ``y`` is one column of labels over all tokens, as a frame has it."""
    if not isinstance(y, Iterable) or (isinstance(y, np.ndarray) and y.ndim == 0):
        raise TypeError(f"the labels are {y!r:.80}; give a sequence of labels for each example.")
    labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
    one_column = len(labels) == offsets[-1] and not any(_is_sequence(label) for label in labels[:1])
    return [labels[a:b] for a, b in pairwise(offsets)] if one_column else labels


def _is_sequence(label: object) -> bool:
    return isinstance(label, Iterable) and not isinstance(label, (str, bytes))
