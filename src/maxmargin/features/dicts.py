"""Ready-made features: a dict or a list of strings per token."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, chain
from numbers import Real
from typing import Any, Self

import numpy as np

from maxmargin.features.interning import by_falling_count, pack_strings, unpack_strings
from maxmargin.features.sequences import Sequences
from maxmargin.features.sparse_rows import RowFeatures, SparseRows
from maxmargin.features.tokens import Frame
from maxmargin.parameters import Parameters

__all__ = ["DictFeatures"]

Sentences = Iterable[Iterable[Mapping[str, object] | Iterable[str]]]
MOST_UNKNOWN = 10_000  # pairs of key and value without a feature that are remembered


@dataclass(repr=False, eq=False)
class DictFeatures(RowFeatures[Sentences], Parameters):
    """Number the features of tokens that are given as dicts or lists of strings.

    A token is a list of strings (each a feature of value 1) or a dict:

    ==================================  ==============================================
    ``{"word": "dog"}``                 ``word=dog``, value 1
    ``{"upper": True, "length": 3.5}``  ``upper`` and ``length`` with their values
    ``{"next": {"word": "ran"}}``       ``next:word=ran``
    ``{"suffix": ["og", "g"]}``         ``suffix=og`` and ``suffix=g`` (sets and tuples too)
    ==================================  ==============================================

    False, 0 and None add nothing. Except for nested dicts, names and values are those of scikit-learn's DictVectorizer.
    A sentence may also be a pandas or polars frame; its rows are such dicts, without what is missing.

    Parameters
    ----------
    min_count : int
        Leave out features that occur less often in training.

    Attributes
    ----------
    n_features_ : int

    Examples
    --------
    >>> features = DictFeatures()
    >>> X = features.fit_transform([[{"word": "the"}, {"word": "dog", "length": 3}], [["word=the"]]])
    >>> features.names()
    ['word=the', 'word=dog', 'length']
    >>> X.sparse.toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 0.0]]
    """

    min_count: int = 1

    def fit(self, X: Sentences, y: object = None) -> Self:
        """Learn the features of training sentences."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Sentences, y: object = None) -> Sequences:
        """Learn the features of ``X``, numbered by falling frequency, and return them."""
        if not isinstance(self.min_count, (int, np.integer)) or isinstance(self.min_count, bool) or self.min_count < 1:
            raise ValueError(f"min_count must be a whole number >= 1, got {self.min_count!r}.")
        items = _Items(_Names(), learn=True)
        found = _read(X, items)
        seen = list(items.names)
        counts = np.bincount(found.indices + 1, minlength=len(seen) + 1)[1:]
        kept, rank = by_falling_count(counts, self.min_count)
        if len(kept) == 0:
            raise ValueError(f"no feature occurs min_count ({self.min_count}) times; lower it or add features.")
        self._adopt([seen[k] for k in kept.tolist()])
        return found._replace(indices=np.append(rank, np.int32(-1))[found.indices]).sequences(self.n_features_)

    def transform(self, X: Sentences) -> Sequences:
        """The features of ``X``, without those that are unknown."""
        return self.rows(X).sequences(self.n_features_)

    def rows(self, X: Sentences) -> SparseRows:
        """What :meth:`transform` gives, as plain arrays."""
        self._check_fitted()
        return _read(X, self._items)

    def names(self, ids: Iterable[int] | None = None) -> list[str]:
        """Names of features, such as ``word=dog``; all of them by default."""
        self._check_fitted()
        if ids is None:
            return list(self._names_)
        ids = [int(i) for i in ids]
        for i in ids:
            if not 0 <= i < self.n_features_:
                raise IndexError(f"there is no feature {i}; there are {self.n_features_}.")
        return [self._names_[i] for i in ids]

    def keeping(self, kept: np.ndarray) -> Self:
        """Only the features that ``kept`` marks, a bool array with ``n_features_`` entries."""
        fewer = copy(self)
        fewer._adopt([name for name, stays in zip(self.names(), kept.tolist(), strict=True) if stays])
        return fewer

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, object]]:
        """Arrays and JSON-able facts for :meth:`from_state`."""
        self._check_fitted()
        return pack_strings(self._names_), {"version": 1, "min_count": int(self.min_count)}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], facts: Mapping[str, Any]) -> DictFeatures:
        """The fitted features that :meth:`to_state` described."""
        try:
            if facts["version"] != 1:
                raise ValueError(f"stored dict features have version {facts['version']!r}; upgrade maxmargin.")
            if type(facts["min_count"]) is not int or facts["min_count"] < 1:
                raise ValueError(f"stored dict features have min_count {facts['min_count']!r}; save them again.")
            made = cls(facts["min_count"])
            made._adopt(unpack_strings(arrays, "stored dict features"))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"stored dict features are damaged ({error!r}); save them again.") from None
        return made

    def _adopt(self, names: list[str]) -> None:
        self._names_ = names
        self._items = _Items(_Names({name: i for i, name in enumerate(names)}))
        self.n_features_ = len(names)

    def _check_fitted(self) -> None:
        if "n_features_" not in self.__dict__:
            raise AttributeError("these features are not fitted; call fit or fit_transform on training sentences.")


class _Names(dict[str, int]):
    """Ids by name; a new name gets the next id while learning, and -1 later."""

    learn = False

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError(f"a list of features may hold only strings, got {name!r}.")
        if not self.learn:
            return -1
        self[name] = len(self)
        return len(self) - 1


class _Items(dict[tuple[str, object], int]):
    """Ids by (key, value), for values of one feature: text, numbers, None.

    ``names`` are the ids by name. What occurs again is looked up without a step of Python. So is what is unknown, since
    new words of a text come again; a long stream would fill the memory, so all of it is forgotten when it is
    ``MOST_UNKNOWN``. Numbers other than 0 and 1, which give (id, number), are not kept.
    """

    def __init__(self, names: _Names, learn: bool = False) -> None:
        self.names, self.get_name = names, names.get
        self.names.learn = learn
        self.unknown: list[tuple[str, object]] = []

    def __missing__(self, item: tuple[str, object]) -> int | tuple[int, float]:
        key, value = item
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is not a string; use names as keys.")
        if isinstance(value, str):
            i = self.get_name(f"{key}={value}", -1)
            if i < 0 and self.names.learn:
                i = self.names[f"{key}={value}"]
        else:
            number = 0.0 if value is None or value is False else _finite(key, value)
            if number != 0.0 and number != 1.0:
                return self.names[key], number
            i = self.names[key] if number else -1
        if i < 0:
            if len(self.unknown) >= MOST_UNKNOWN:
                forgotten, self.unknown = self.unknown, []
                for other in forgotten:
                    self.pop(other, None)
            self.unknown.append(item)
        self[item] = i
        return i


def _finite(key: str, value: object) -> float:
    if not isinstance(value, (Real, np.bool_)):
        raise _refused(key, value)
    try:
        number = float(value)
    except OverflowError:  # a large integer
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"feature {key!r} is {number}; leave it out, or give a finite number.")
    return number


def _refused(key: str, value: object) -> TypeError:
    return TypeError(f"feature {key!r} is a {type(value).__name__}; use text, a number, a dict, or texts.")


def _read(X: Sentences, items: _Items) -> SparseRows:
    """One walk over sentences: the ids of all features in order."""
    if type(X) is not list and (isinstance(X, (str, Mapping)) or not isinstance(X, Iterable)):
        raise TypeError(f"need a list of sentences, each a list of dicts; got {type(X).__name__}.")
    found: list[int | tuple[int, float]] = []
    ends, offsets = [0], [0]
    for i, sentence in enumerate(X):
        if type(sentence) is not list and type(sentence) is not tuple:
            sentence = list(_tokens(sentence, i))
        try:
            found += _ids_of_plain(sentence, items)
            ends += accumulate(map(len, sentence), initial=ends.pop())
        except (TypeError, ValueError):  # values of many features, other tokens, or a mistake
            del found[ends[-1] :]
            for t, token in enumerate(sentence):
                try:
                    found += _ids(token, items)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"sentence {i}, token {t}: {error}") from None
                ends.append(len(found))
        offsets.append(len(ends) - 1)
    values = np.empty(0)
    try:
        ids = np.fromiter(found, np.int32, len(found))
    except (TypeError, ValueError):  # some have a value
        pairs = [entry if type(entry) is tuple else (entry, 1.0) for entry in found]
        ids = np.fromiter((i for i, _ in pairs), np.int32, len(pairs))
        values = np.fromiter((value for _, value in pairs), np.float64, len(pairs))
    return SparseRows(np.array(offsets, np.int64), np.array(ends, np.int64), ids, values)


def _ids_of_plain(sentence: Sequence[object], items: _Items) -> Iterator[int | tuple[int, float]]:
    """Ids of tokens that are all plain dicts, or all lists, without a step of Python; a TypeError for others."""
    kinds = set(map(type, sentence))
    if kinds == {dict}:
        return map(items.__getitem__, chain.from_iterable(map(dict.items, sentence)))  # type: ignore[arg-type]
    if kinds == {list}:
        return map(items.names.__getitem__, chain.from_iterable(sentence))  # type: ignore[arg-type]
    raise TypeError


def _tokens(sentence: object, i: int) -> Iterable[object]:
    """The tokens of a sentence that is no plain list; rows of a frame become dicts without what is missing."""
    if isinstance(sentence, (str, Mapping)) or not isinstance(sentence, Iterable):
        advice = "it must be a list, one dict per token; if X is one sentence, pass [X]."
        raise TypeError(f"sentence {i} is a {type(sentence).__name__}; {advice}")
    if isinstance(sentence, np.ndarray) or not isinstance(sentence, Frame):
        return sentence
    names = list(map(str, sentence.columns))
    rows = zip(*(sentence[name].to_list() for name in sentence.columns), strict=True)
    return [{k: v for k, v in zip(names, row, strict=True) if v is not None and v == v} for row in rows]


def _ids(token: object, items: _Items) -> Iterator[int | tuple[int, float]]:
    """Ids of any token: a mapping, whose values may have many features, or names of features."""
    if isinstance(token, Mapping):
        for key, value in token.items():
            yield from _ids_of_value(key, value, items)
        return
    if isinstance(token, str) or not isinstance(token, (list, tuple, set, frozenset)):
        raise TypeError(f"a token must be a dict or a list of strings, got {token!r}.")
    names = sorted(token) if isinstance(token, (set, frozenset)) else token  # sets have no stable order
    yield from map(items.names.__getitem__, names)


def _ids_of_value(key: str, value: object, items: _Items) -> Iterator[int | tuple[int, float]]:
    if isinstance(value, Mapping):
        for inner, part in value.items():
            if not isinstance(inner, str):
                raise TypeError(f"the key {inner!r} inside {key!r} is not a string; use names as keys.")
            yield from _ids_of_value(f"{key}:{inner}", part, items)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in sorted(value) if isinstance(value, (set, frozenset)) else value:
            if not isinstance(part, str):
                raise TypeError(f"feature {key!r} has {part!r} in its list; lists and sets may hold only strings.")
            yield items[key, part]
    elif isinstance(value, Hashable):
        yield items[key, value]
    else:
        raise _refused(key, value)
