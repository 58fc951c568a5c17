"""Windows of features as Python objects, and values derived from the strings of a column.

>>> features = [
...     Window(0, name="w"),
...     Window(0, offsets=(0,), of=Suffix(3)),
...     Window(1, bigrams=(-1, 0), name="pos"),
...     Ends(),
... ]

Derived values are computed once per distinct string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from maxmargin.features.definition import Definition, Source, Transform
from maxmargin.features.interning import PairTable
from maxmargin.features.tokens import Column

__all__ = ["CharNGrams", "Ends", "Gazetteer", "Join", "Lower", "Prefix", "Shape", "Suffix", "Window"]


@dataclass(frozen=True)
class _Characters(Transform):
    """Some ``n`` characters of a string."""

    n: int

    def __post_init__(self) -> None:
        if not isinstance(self.n, (int, np.integer)) or self.n < 1:
            raise ValueError(f"{type(self).__name__} needs a whole number of characters >= 1, got {self.n!r}.")


class Prefix(_Characters):
    """The first ``n`` characters; shorter strings have no such feature."""

    def __call__(self, text: str) -> str | None:
        return text[: self.n] if len(text) >= self.n else None


class Suffix(_Characters):
    """The last ``n`` characters; shorter strings have no such feature."""

    def __call__(self, text: str) -> str | None:
        return text[-self.n :] if len(text) >= self.n else None


@dataclass(frozen=True)
class Lower(Transform):
    """The string in lower case."""

    def __call__(self, text: str) -> str:
        return text.lower()


@dataclass(frozen=True)
class Shape(Transform):
    """``X`` for upper case, ``x`` for lower case, ``d`` for a digit, others unchanged: ``McX-12`` gives ``XxX-dd``.

    Parameters
    ----------
    short : bool
        Write a run of one kind once: ``XxX-d``.
    """

    short: bool = False

    def __call__(self, text: str) -> str:
        shape = text.translate(_KIND_OF)
        return "".join(kind for kind, _ in groupby(shape)) if self.short else shape


class _Kinds(dict[int, str]):
    """The kind of each character, by its code point; computed when it is first seen."""

    def __missing__(self, number: int) -> str:
        c = chr(number)
        self[number] = kind = "d" if c.isdigit() else "X" if c.isupper() else "x" if c.islower() else c
        return kind


_KIND_OF = _Kinds()


class CharNGrams(_Characters):
    """All distinct runs of ``n`` characters of ``^string$``: several features per token."""

    many = True

    def __call__(self, text: str) -> list[str]:
        text = f"^{text}$"
        return list(dict.fromkeys(text[i : i + self.n] for i in range(len(text) - self.n + 1)))


@dataclass(frozen=True, eq=False)
class Gazetteer(Transform):
    """Phrases from a list: ``B-name`` on the first token of a phrase, ``I-name`` on the others.

    Phrases are matched within a sentence from left to right, longest first, without overlap.

    Parameters
    ----------
    name : str
    phrases : iterable of str, or of sequences of tokens
        Strings are split at spaces.
    lower : bool
        Ignore case.
    """

    name: str
    phrases: Iterable[str | Sequence[str]]
    lower: bool = False
    _words: dict[str, int] = field(init=False, repr=False)
    _tree: PairTable = field(init=False, repr=False)
    _ends: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.phrases, str):
            raise TypeError(f"Gazetteer {self.name!r} needs a list of phrases, got one string.")
        phrases = tuple(tuple(p.split()) if isinstance(p, str) else tuple(p) for p in self.phrases)
        words: dict[str, int] = {}
        tree: dict[tuple[int, int], int] = {}
        ends: dict[int, bool] = {}
        for i, phrase in enumerate(phrases):
            if not phrase or not all(isinstance(word, str) for word in phrase):
                raise ValueError(f"Gazetteer {self.name!r}: phrase {i} is {phrase!r}; give words, all strings.")
            node = -1
            for word in phrase:
                number = words.setdefault(word.lower() if self.lower else word, len(words))
                node = tree.setdefault((node + 1, number), len(tree))
            ends[node] = True
        entries = np.array([left << 32 | right for left, right in tree], np.int64)
        complete = np.array([ends.get(node, False) for node in range(len(tree))], bool)
        made = {"phrases": phrases, "_words": words, "_tree": PairTable(entries), "_ends": complete}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def derive(self, column: Column, offsets: np.ndarray) -> tuple[list, np.ndarray]:
        from maxmargin.features.interning_kernel import mark_phrases

        get = self._words.get
        known = [get(text.lower() if self.lower else text, -1) for text in column.strings]
        marks = np.empty(len(column.codes), np.int32)
        words = np.array(known, np.int32)[column.codes]
        mark_phrases(words, offsets, *self._tree.index, self._ends, marks)
        return [f"B-{self.name}", f"I-{self.name}"], marks


@dataclass(frozen=True)
class _First(Transform):
    """An empty value on the first token of a sentence (or the last), none elsewhere."""

    last: bool = False

    def derive(self, column: Column, offsets: np.ndarray) -> tuple[list, np.ndarray]:
        marks = np.full(len(column.codes), -1, np.int32)
        filled = np.diff(offsets) > 0
        marks[(offsets[1:] - 1 if self.last else offsets[:-1])[filled]] = 0
        return [""], marks


@dataclass(frozen=True)
class Window:
    """Values of a column around each token: ``w[-1]=the``, ``w[-1]|w[0]=the|dog``.

    Parameters
    ----------
    column : int
    offsets : sequence of int
        Neighbours that give a feature each.
    bigrams, trigrams : sequence of int
        Offsets at which runs of two and three tokens begin.
    of : Prefix, Suffix, Lower, Shape, CharNGrams or Gazetteer, optional
        Transform of the strings.
    name : str, optional
        Prefix of the feature names; by default the column number and the kind of ``of``.
    outside : {"mark", "drop"}
        Beyond the ends of a sentence: the values ``_B-1``, ``_B+1``, ..., or no feature.
    edge : bool
        Whether the features describe a token and its predecessor.
    """

    column: int = 0
    offsets: tuple[int, ...] = (-2, -1, 0, 1, 2)
    bigrams: tuple[int, ...] = ()
    trigrams: tuple[int, ...] = ()
    of: Transform | None = None
    name: str | None = None
    outside: str = "mark"
    edge: bool = False

    def __post_init__(self) -> None:
        for name, given in (("offsets", self.offsets), ("bigrams", self.bigrams), ("trigrams", self.trigrams)):
            try:
                object.__setattr__(self, name, tuple(int(offset) for offset in given))
            except (TypeError, ValueError):
                raise TypeError(f"{name} of a Window must be whole numbers, got {given!r}.") from None
        _check("Window", [(self.column, self.of)], self.outside, self.edge)
        if self.of is not None and self.of.many and (self.bigrams or self.trigrams):
            raise ValueError(f"{self.of!r} gives several values per token; it has no bigrams or trigrams.")

    @property
    def definitions(self) -> tuple[Definition, ...]:
        source = Source(self.column, self.of, self.outside)
        name = self.name if self.name is not None else _default_name(self.column, self.of)
        runs: list[tuple[int, ...]] = [(o,) for o in self.offsets]
        runs += [(o, o + 1) for o in self.bigrams]
        runs += [(o, o + 1, o + 2) for o in self.trigrams]
        return tuple(_named([name] * len(run), [(source, o) for o in run], self.edge, repr(self)) for run in runs)


@dataclass(frozen=True, init=False)
class Join:
    """One feature of several values: ``Join((0, -1), (1, 0))`` is the previous text with the second column here.

    Parameters
    ----------
    *slots : (column, offset) or (column, offset, transform)
    name, outside, edge
        As in :class:`Window`.
    """

    slots: tuple
    name: str | None
    outside: str
    edge: bool

    def __init__(self, *slots: tuple, name: str | None = None, outside: str = "mark", edge: bool = False) -> None:
        if not slots or not all(isinstance(slot, (tuple, list)) and len(slot) in (2, 3) for slot in slots):
            raise ValueError(f"Join takes (column, offset) or (column, offset, transform), one or more; got {slots!r}.")
        full = tuple((slot[0], int(slot[1]), slot[2] if len(slot) == 3 else None) for slot in slots)
        _check("Join", [(column, of) for column, _, of in full], outside, edge)
        for _, _, of in full:
            if of is not None and of.many and len(full) > 1:
                raise ValueError(f"{of!r} gives several values per token; it cannot be joined with others.")
        for key, value in (("slots", full), ("name", name), ("outside", outside), ("edge", edge)):
            object.__setattr__(self, key, value)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        slots = [(Source(column, of, self.outside), offset) for column, offset, of in self.slots]
        if self.name is not None:
            literals = (f"{self.name}=", *["|"] * (len(slots) - 1), "")
            return (Definition(literals, tuple(slots), self.edge, repr(self)),)
        return (_named([_default_name(c, of) for c, _, of in self.slots], slots, self.edge, repr(self)),)


@dataclass(frozen=True)
class Ends:
    """A feature named ``first`` on the first token of a sentence and one named ``last`` on the last."""

    first: str = "__BOS__"
    last: str = "__EOS__"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        first, last = (((Source(0, _First(at_end), "drop"), 0),) for at_end in (False, True))
        where = repr(self)
        return Definition((self.first, ""), first, False, where), Definition((self.last, ""), last, False, where)


_STORED = (CharNGrams, Ends, Gazetteer, Join, Lower, Prefix, Shape, Suffix, Window)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in _STORED}
_MAKERS: dict[str, Callable[..., object]] = {**_KINDS, "Join": lambda slots=(), **given: Join(*slots, **given)}


def describe(thing: object) -> object:
    """A window or transform as plain dicts and lists, for JSON."""
    if isinstance(thing, (tuple, list)):
        return [describe(part) for part in thing]
    if type(thing) in _KINDS.values():
        given = {name: describe(value) for name, value in vars(thing).items() if not name.startswith("_")}
        return {"kind": type(thing).__name__} | given
    if thing is None or isinstance(thing, (str, int)):
        return thing
    raise ValueError(f"{thing!r} cannot be stored; only the windows and transforms of maxmargin can.")


def restore(facts: object) -> object:
    """The inverse of :func:`describe`."""
    if isinstance(facts, list):
        return tuple(restore(part) for part in facts)
    if not isinstance(facts, dict):
        return facts
    if facts.get("kind") not in _KINDS:
        raise ValueError(f"stored features have the unknown kind {str(facts.get('kind'))[:40]!r}; upgrade maxmargin.")
    given = {name: restore(value) for name, value in facts.items() if name != "kind"}
    return _MAKERS[facts["kind"]](**given)


def _default_name(column: int, of: Transform | None) -> str:
    if of is None:
        return str(column)
    given = vars(of)
    return f"{column}.{type(of).__name__.lower()}{given.get('name', given.get('n', ''))}"


def _named(names: list[str], slots: list[tuple[Source, int]], edge: bool, where: str) -> Definition:
    prefix = "|".join(f"{name}[{offset}]" for name, (_, offset) in zip(names, slots, strict=True))
    return Definition((f"{prefix}=", *["|"] * (len(slots) - 1), ""), tuple(slots), edge, where)


def _check(name: str, slots: list[tuple[object, object]], outside: object, edge: object) -> None:
    """The parameters that a Window and a Join share; slots are columns with their transforms."""
    for column, of in slots:
        if not isinstance(column, (int, np.integer)) or column < 0:
            raise ValueError(f"column of a {name} must be a whole number >= 0, got {column!r}.")
        if of is not None and not isinstance(of, Transform):
            raise TypeError(
                f"of= of a {name} takes a transform of maxmargin.features: Prefix, Suffix, Lower, ...; got {of!r}."
            )
    if outside not in ("mark", "drop"):
        raise ValueError(f"outside of a {name} must be 'mark' or 'drop', got {outside!r}.")
    if not isinstance(edge, bool):
        raise TypeError(f"edge of a {name} must be True or False, got {edge!r}.")
