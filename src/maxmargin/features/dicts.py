"""Ready-made features: a dict or a list of strings per token."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.features.interning import by_falling_count, pack_strings, unpack_strings
from maxmargin.features.sequences import Sequences
from maxmargin.parameters import Parameters

__all__ = ["DictFeatures"]

Sentences = Iterable[Iterable[Mapping[str, object] | Iterable[str]]]


@dataclass(repr=False, eq=False)
class DictFeatures(Parameters):
    """Number the features of tokens that are given as dicts or lists of strings.

    A token is a list of strings (each a feature of value 1) or a dict:

    ==================================  ==============================================
    ``{"word": "dog"}``                 ``word=dog``, value 1
    ``{"upper": True, "length": 3.5}``  ``upper`` and ``length`` with their values
    ``{"next": {"word": "ran"}}``       ``next:word=ran``
    ``{"suffix": ["og", "g"]}``         ``suffix=og`` and ``suffix=g`` (sets and tuples too)
    ==================================  ==============================================

    False, 0 and None add nothing. Except for nested dicts, names and values are those of scikit-learn's DictVectorizer.

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
        reader = _Reader(_Known(), learn=True).read(X)
        seen = list(reader.known)
        counts = np.bincount(reader.ids, minlength=len(seen))
        kept, rank = by_falling_count(counts, self.min_count)
        if len(kept) == 0:
            raise ValueError(f"no feature occurs min_count ({self.min_count}) times; lower it or add features.")
        self._adopt([seen[k] for k in kept.tolist()])
        return reader.sequences(rank[reader.ids], self.n_features_)

    def transform(self, X: Sentences) -> Sequences:
        """The features of ``X``, without those that are unknown."""
        self._check_fitted()
        reader = _Reader(self._known, learn=False).read(X)
        return reader.sequences(reader.ids, self.n_features_)

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
            made = cls(facts["min_count"])
            made._adopt(unpack_strings(arrays, "stored dict features"))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"stored dict features are damaged ({error!r}); save them again.") from None
        return made

    def _adopt(self, names: list[str]) -> None:
        self._names_ = names
        self._known = _Known({name: i for i, name in enumerate(names)})
        self.n_features_ = len(names)

    def _check_fitted(self) -> None:
        if "n_features_" not in self.__dict__:
            raise AttributeError("these features are not fitted; call fit or fit_transform on training sentences.")


class _Known(dict[str, int]):
    """Ids by name; a new name gets the next id while learning, and -1 later."""

    learn = False

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError(f"a list of features may hold only strings, got {name!r}.")
        if not self.learn:
            return -1
        self[name] = len(self)
        return len(self) - 1


class _Reader:
    """One walk over sentences: ids of all features in order, and the values that are not 1.

    Strings are looked up as ``pairs[key][value]``, so ``key=value`` is spelled out once per pair.
    """

    def __init__(self, known: _Known, learn: bool) -> None:
        self.known = known
        self.known.learn = learn
        self.pairs: dict[str, dict[str, int]] = {}
        self.found: list[int] = []
        self.places: list[int] = []  # positions in `found` of the values
        self.values: list[float] = []

    def read(self, X: Sentences) -> Self:
        if isinstance(X, (str, Mapping)) or not isinstance(X, Iterable):
            raise TypeError(f"need a list of sentences, each a list of dicts; got {type(X).__name__}.")
        found, pairs, lengths, ends = self.found, self.pairs, [], []
        append = found.append
        for i, sentence in enumerate(X):
            if isinstance(sentence, (str, Mapping)) or not isinstance(sentence, Iterable):
                raise TypeError(f"sentence {i} is a {type(sentence).__name__}; it must be a list, one dict per token.")
            n = 0
            for t, token in enumerate(sentence):
                n += 1
                try:
                    if type(token) is dict:
                        for key, value in token.items():
                            if type(value) is str:
                                try:
                                    append(pairs[key][value])
                                except KeyError:
                                    self._pair(key, value)
                            else:
                                self._other(key, value)
                    else:
                        self._token(token)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"sentence {i}, token {t}: {error}") from None
                ends.append(len(found))
            lengths.append(n)
        self.indptr = np.array([0, *ends], np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.ids = np.array(found, np.int32)
        return self

    def sequences(self, ids: np.ndarray, n_features: int) -> Sequences:
        """Rows of the features with an id >= 0."""
        kept = ids >= 0
        data = np.ones(len(ids), np.int8 if not self.places else np.float64)
        data[self.places] = self.values
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.indptr]
        shape = (len(indptr) - 1, n_features)
        return Sequences(self.offsets, sparse=sp.csr_array((data[kept], ids[kept], indptr), shape=shape))

    def _pair(self, key: str, value: str) -> None:
        """A pair that is new; unknown ones are not kept, or a long stream would fill the memory."""
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is not a string; use names as keys.")
        i = self.known[f"{key}={value}"]
        if i >= 0:
            self.pairs.setdefault(key, {})[value] = i
        self.found.append(i)

    def _other(self, key: object, value: object) -> None:
        """A value that is not a plain string."""
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is not a string; use names as keys.")
        if isinstance(value, str):
            self._pair(key, str(value))
        elif isinstance(value, (Real, np.bool_)):
            number = float(value)
            if not math.isfinite(number):
                raise ValueError(f"feature {key!r} is {number}; leave it out, or give a finite number.")
            if number != 0.0:
                if number != 1.0:
                    self.places.append(len(self.found))
                    self.values.append(number)
                self.found.append(self.known[key])
        elif isinstance(value, Mapping):
            for inner, part in value.items():
                if not isinstance(inner, str):
                    raise TypeError(f"the key {inner!r} inside {key!r} is not a string; use names as keys.")
                self._other(f"{key}:{inner}", part)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for part in sorted(value) if isinstance(value, (set, frozenset)) else value:
                if not isinstance(part, str):
                    raise TypeError(f"feature {key!r} has {part!r} in its list; lists and sets may hold only strings.")
                self._pair(key, part)
        elif value is not None:
            raise TypeError(f"feature {key!r} is a {type(value).__name__}; use text, a number, a dict, or texts.")

    def _token(self, token: object) -> None:
        """A token that is not a plain dict: another mapping, or names of features."""
        if isinstance(token, Mapping):
            for key, value in token.items():
                self._other(key, value)
            return
        if isinstance(token, str) or not isinstance(token, (list, tuple, set, frozenset)):
            raise TypeError(f"a token must be a dict or a list of strings, got {token!r}.")
        names = sorted(token) if isinstance(token, (set, frozenset)) else token  # sets have no stable order
        self.found.extend(map(self.known.__getitem__, names))
