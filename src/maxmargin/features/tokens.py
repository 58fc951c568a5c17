"""Sentences as columns: every distinct string once, and one integer per token."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import pointers

__all__ = ["Column", "Frame", "Sentences", "Tokens"]

Sentences = Iterable[Sequence[str] | Sequence[Sequence[str]]]


@runtime_checkable
class Frame(Protocol):
    """A pandas or polars frame."""

    @property
    def columns(self) -> Iterable[str]: ...
    def __getitem__(self, name: str) -> Any: ...  # a column


@dataclass(frozen=True)
class Column:
    """One column of text: token t holds ``strings[codes[t]]``."""

    strings: list[str]  # the distinct ones, in order of first appearance
    codes: np.ndarray  # int32 (tokens,)

    @staticmethod
    def of(values: Sequence[str]) -> Column:
        """Number the strings of a column; the loop over tokens runs in C."""
        seen: defaultdict[str, int] = defaultdict()
        seen.default_factory = seen.__len__
        codes = np.fromiter(map(seen.__getitem__, values), np.int32, len(values))
        return Column(list(seen), codes)

    def take(self, rows: np.ndarray) -> Column:
        """The column of some tokens, renumbered by first appearance."""
        codes = self.codes[rows]
        old, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return Column([self.strings[k] for k in old[order].tolist()], rank[inverse.ravel()])


@dataclass(frozen=True)
class Tokens:
    """The text of n sentences.

    Attributes
    ----------
    columns : list of Column
        Each has a code per token. Empty when there are no tokens, whose columns are then unknown.
    offsets : int64 array (n + 1,)
        Sentence i owns tokens ``offsets[i]:offsets[i+1]``.

    Examples
    --------
    >>> tokens = Tokens.from_sentences([[("the", "DT"), ("dog", "NN")], [("the", "DT")]])
    >>> len(tokens), tokens[0], tokens.columns[0].codes.tolist()
    (2, [('the', 'DT'), ('dog', 'NN')], [0, 1, 0])
    """

    columns: list[Column]
    offsets: np.ndarray

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, key: int | np.integer) -> list[tuple[str, ...]]: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Tokens: ...

    def __getitem__(self, key: int | np.integer | slice | Sequence[int] | np.ndarray) -> list[tuple[str, ...]] | Tokens:
        """One sentence as a list of tuples of strings, or the Tokens of a slice, mask or list of sentences."""
        if isinstance(key, (int, np.integer)):
            n = len(self)
            if not -n <= key < n:
                raise IndexError(f"sentence {key} of {n}")
            rows = slice(self.offsets[key % n], self.offsets[key % n + 1])
            texts = ([column.strings[k] for k in column.codes[rows].tolist()] for column in self.columns)
            return list(zip(*texts, strict=True))
        chosen = np.arange(len(self))[key]
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], lengths)
        return Tokens([column.take(rows) for column in self.columns], offsets)

    @staticmethod
    def of(X: Tokens | Frame | Sentences) -> Tokens:
        """Tokens from a list of sentences or a frame (see :meth:`from_frame`), or unchanged."""
        if isinstance(X, Tokens):
            return X
        if not isinstance(X, (list, tuple)) and isinstance(X, Frame):  # lists first: protocols are slow to check
            return Tokens.from_frame(X)
        return Tokens.from_sentences(X)

    @staticmethod
    def from_sentences(sentences: Sentences) -> Tokens:
        """Tokens from sentences, each a list of tokens; a token is a string, or a tuple with one string per column."""
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            raise TypeError(f"need a list of sentences, each a list of tokens; got {type(sentences).__name__}.")
        listed = [s if isinstance(s, (list, tuple)) else _listed(s, i) for i, s in enumerate(sentences)]
        offsets = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, listed), dtype=np.int64, count=len(listed)), out=offsets[1:])
        flat: list = list(chain.from_iterable(listed))
        if not flat:
            return Tokens([], offsets)
        first = flat[0]
        if isinstance(first, str):
            return Tokens(_numbered([flat], offsets), offsets)
        kinds = set(map(type, flat))
        if not all(issubclass(kind, (tuple, list)) for kind in kinds) or len(set(map(len, flat))) != 1 or not first:
            _refuse_mixed(flat, offsets)
        # one pass per column: zip(*flat) would pass as many arguments as there are tokens
        return Tokens(_numbered([list(map(itemgetter(j), flat)) for j in range(len(first))], offsets), offsets)

    @staticmethod
    def from_columns(columns: Sequence[Sequence[str]], offsets: ArrayLike) -> Tokens:
        """Tokens from whole columns of strings and the offsets of the sentences."""
        offsets = pointers(offsets, "offsets", "sentence")
        if not len(columns):
            raise ValueError("need at least one column of text.")
        for j, values in enumerate(columns):
            if len(values) != offsets[-1]:
                raise ValueError(f"column {j} has {len(values)} tokens, but the offsets end with {offsets[-1]}.")
        return Tokens(_numbered(columns, offsets), offsets)

    @staticmethod
    def from_frame(frame: Frame, sentence: str = "sentence", columns: Sequence[str] | None = None) -> Tokens:
        """Tokens from a pandas or polars frame with one row per token.

        Parameters
        ----------
        frame : DataFrame
        sentence : str
            The column that identifies sentences; the rows of a sentence must be adjacent.
        columns : list of str, optional
            The columns of text, in the order in which templates count them; all others by default.
        """
        names = list(frame.columns)
        if columns is None:
            columns = [name for name in names if name != sentence]
        for name in (sentence, *columns):
            if name not in names:
                advice = "Name yours: maxmargin.features.Tokens.from_frame(frame, sentence=..., columns=[...])."
                raise ValueError(f"the frame has no column {name!r}; it has {', '.join(map(str, names))}. {advice}")
        owner = Column.of(frame[sentence].to_list())
        for k, value in enumerate(owner.strings):
            if value is None or value != value:
                row = int(np.flatnonzero(owner.codes == k)[0])
                raise ValueError(f"row {row} has no {sentence!r}; fill it, for example by forward fill.")
        starts = np.flatnonzero(np.diff(owner.codes, prepend=-1))
        # codes count first appearances, so they rise by one at each start of adjacent sentences
        again = np.flatnonzero(owner.codes[starts] != np.arange(len(starts)))
        if len(again):
            row = int(starts[again[0]])
            again_in = f"row {row} returns to sentence {owner.strings[owner.codes[row]]!r} after others"
            raise ValueError(f"{again_in}; sort the frame by {sentence!r} (stable) first.")
        offsets = np.append(starts, len(owner.codes))
        if len(owner.codes) == 0:
            raise ValueError("the frame has no rows; at least one token is needed.")
        return Tokens.from_columns([frame[name].to_list() for name in columns], offsets)


def _numbered(columns: Sequence[Sequence[str]], offsets: np.ndarray) -> list[Column]:
    """The columns of text, or an error that names the first value that is not a string."""
    numbered = []
    for j, values in enumerate(columns):
        try:
            column = Column.of(values)
        except TypeError:  # not hashable, so not a string
            column = Column([], np.empty(0, np.int32))
        if set(map(type, column.strings)) - {str} or len(column.codes) != len(values):
            column = _plain_strings(column, values, offsets, j)
        numbered.append(column)
    return numbered


def _listed(sentence: Iterable[object], i: int) -> list:
    if isinstance(sentence, (str, bytes)):
        advice = "split it into tokens first, as by .split(); if X is one sentence of words, pass [X]."
        raise TypeError(f"sentence {i} is one string, {sentence[:40]!r}; {advice}")
    if isinstance(sentence, Frame):
        return list(zip(*(sentence[name].to_list() for name in sentence.columns), strict=True))
    try:
        return list(sentence)
    except TypeError:
        raise TypeError(f"sentence {i} is a {type(sentence).__name__}; it must be a list of tokens.") from None


def _place(token: int, offsets: np.ndarray) -> str:
    i = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sentence {i}, token {token - offsets[i]}"


def _refuse_mixed(flat: list, offsets: np.ndarray) -> None:
    width = len(flat[0]) if isinstance(flat[0], (tuple, list)) else 0
    for t, token in enumerate(flat):
        if not isinstance(token, (tuple, list)) or not token:
            raise TypeError(f"{_place(t, offsets)} is {token!r}; tokens are all strings, or all tuples of strings.")
        if len(token) != width:
            raise ValueError(f"{_place(t, offsets)} has {len(token)} columns; {_place(0, offsets)} has {width}.")


def _plain_strings(column: Column, values: Sequence, offsets: np.ndarray, j: int) -> Column:
    """Subclasses of str become str; anything else is an error."""
    for t, value in enumerate(values):
        if not isinstance(value, str):
            found = f"{_place(t, offsets)}, column {j} is {value!r} ({type(value).__name__}), not a string"
            numbers = "Numbers are features in dicts, or in frames, one for each sentence."
            raise TypeError(f"{found}; convert the column with str() or fill missing values. {numbers}")
    return Column([str(text) for text in column.strings], column.codes)
