"""Whether a value from a file is of the kind that a constructor declares for it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, is_typeddict

import numpy as np

__all__ = ["is_of_kind"]

_PLAIN = (NoneType, str, bytes, int, float, complex, list, tuple, dict, set, frozenset, np.ndarray, np.generic)


def is_of_kind(value: object, hint: object) -> bool:
    """Whether a value fits a type hint, as far as its outermost class goes.

    Numbers may be those of numpy, but truth values are not numbers. What is declared by its methods (a protocol that
    cannot be asked at run time) may be any object but a plain value.
    """
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return any(is_of_kind(value, member) for member in get_args(hint))
    if not isinstance(kind, type) or is_typeddict(kind):
        return True
    if kind in (bool, int, float):
        truth = isinstance(value, (bool, np.bool_))
        if kind is bool:
            return truth or (isinstance(value, Integral) and value in (0, 1))
        return isinstance(value, Integral if kind is int else Real) and not truth
    if kind is Sequence or kind.__module__.startswith("numpy._typing"):  # of which one is any array
        return isinstance(value, (list, tuple, np.ndarray))
    try:
        return isinstance(value, kind)
    except TypeError:
        return not isinstance(value, _PLAIN)
