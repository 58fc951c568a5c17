"""Choose the extractor that fits the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.features.sequences import Sequences

if TYPE_CHECKING:
    from maxmargin.features.extractor import TextFeatures

__all__ = ["default_words", "extractor_for"]


def default_words(column: int = 0) -> TextFeatures:
    """Features for plain words in a column: neighbouring words, their pairs, affixes and shapes."""
    from maxmargin.features.extractor import TextFeatures
    from maxmargin.features.window import Lower, Prefix, Shape, Suffix, Window

    windows = [
        Window(column, bigrams=(-1, 0)),
        Window(column, (0,), of=Lower()),
        Window(column, (-1, 0, 1), of=Shape()),
    ]
    for n in (1, 2, 3):
        windows += [Window(column, (0,), of=Prefix(n)), Window(column, (-1, 0, 1), of=Suffix(n))]
    return TextFeatures(windows)


def extractor_for(X: object) -> Any:
    """An unfitted extractor for text or dict features; None when ``X`` holds numbers already.

    A token that is a mapping, a list of names, or a row of a frame with text, has features of its own; a token that is
    a string, or a tuple of strings (columns), is text.
    """
    from maxmargin.features.dicts import DictFeatures
    from maxmargin.features.tokens import Frame, Tokens

    if isinstance(X, Tokens):
        return default_words()
    if isinstance(X, (Sequences, np.ndarray)) or sp.issparse(X) or not isinstance(X, Iterable):
        return None
    first = next(iter(X), None)
    if not isinstance(first, (list, tuple, np.ndarray)) and isinstance(first, Frame):
        return None if np.asarray(first).dtype.kind in "fiub" else DictFeatures()
    try:
        token = next((sentence[0] for sentence in X if not isinstance(sentence, Mapping) and len(sentence)), None)
    except (TypeError, KeyError, IndexError):
        return None
    if isinstance(token, (str, tuple)) and (isinstance(token, str) or all(isinstance(t, str) for t in token)):
        return default_words()
    if isinstance(token, Mapping) or (isinstance(token, list) and token and isinstance(token[0], str)):
        return DictFeatures()
    return None
