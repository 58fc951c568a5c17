"""From columns of text and definitions of features to rows of feature ids.

A feature is a definition's literal text with values in its gaps: ``U05:`` the ``/`` dog. Values are numbered once for
each distinct string, tuples of values by folding pairs, ((a, b), c), and features as pairs (definition, tuple). Every
pair is a 64-bit integer that holds both sides, so ids are exact. Sentences lie in one array with room on both sides of
each for the marks of what is outside; a definition is then a shift, and definitions with the same tuples at other
shifts (``%x[-1,0]/%x[0,0]`` and ``%x[0,0]/%x[1,0]``) share the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from maxmargin.features.tokens import Column, Tokens

__all__ = ["Definition", "Hashed", "PairTable", "Rows", "Source", "Transform", "Vocabulary", "feature_rows"]


class Transform:
    """Makes values from the strings of a column: one (or None: no feature), or several when ``many``."""

    many = False

    def __call__(self, text: str) -> Any:
        raise NotImplementedError

    def derive(self, column: Column, offsets: np.ndarray) -> tuple[list, np.ndarray]:
        """Values, and for each token which of them it has (-1: none). Costs one call a distinct string."""
        return list(map(self, column.strings)), column.codes


@dataclass(frozen=True)
class Source:
    """What a slot of a definition reads.

    Attributes
    ----------
    column : int
    transform : Transform or None
        None reads the text itself.
    outside : {"mark", "apply", "drop"}
        Beyond the ends of a sentence: the marks ``_B-1``, ``_B+1``, ...; the transform of these marks; or no feature.
    """

    column: int
    transform: Transform | None = None
    outside: str = "mark"

    def values(self, texts: Sequence[str]) -> list:
        """Values of marks."""
        if self.outside == "drop":
            return [[] if self.many else None] * len(texts)
        if self.outside == "apply" and self.transform is not None:
            return list(map(self.transform, texts))
        return [[text] if self.many else text for text in texts]

    @property
    def many(self) -> bool:
        return self.transform is not None and self.transform.many


@dataclass(frozen=True)
class Definition:
    """A kind of feature: ``literals[0] value literals[1] value ... literals[-1]``.

    Attributes
    ----------
    literals : tuple of str
        One more than slots. Definitions with equal literals share their features.
    slots : tuple of (Source, int)
        What to read, and how many tokens to the right.
    edge : bool
        Whether the feature describes a token and its predecessor, not a token alone.
    where : str
        Its origin, for messages.
    """

    literals: tuple[str, ...]
    slots: tuple[tuple[Source, int], ...]
    edge: bool = False
    where: str = ""

    @property
    def many(self) -> bool:
        """Whether a token can have several such features; only definitions with one slot can."""
        return any(source.many for source, _ in self.slots)


class Coder(Protocol):
    """Numbers values, tuples and features; :class:`Vocabulary` and :class:`Hashed` do."""

    dtype: Any
    missing: Any

    def encode(self, texts: Sequence[str | None], learn: bool) -> np.ndarray: ...
    def join(self, left: np.ndarray, right: np.ndarray, level: int, learn: bool) -> np.ndarray: ...
    def number(self, literals: tuple[str, ...], codes: np.ndarray, edge: bool, learn: bool) -> np.ndarray: ...


class PairTable:
    """Ids 0, 1, ... of pairs of non-negative int32, in order of first appearance, and how often each was added."""

    def __init__(self, entries: np.ndarray | None = None) -> None:
        held = np.empty(0, np.int64) if entries is None else entries
        self._size = np.array([len(held)], np.int64)
        self._entries = np.zeros(max(1024, len(held)), np.int64)
        self._entries[: len(held)] = held
        self._counts = np.zeros(len(self._entries), np.int64)
        self._index()

    def _index(self) -> None:
        from maxmargin.features.interning_kernel import index_entries

        capacity = 1 << int(2 * len(self._entries) - 1).bit_length()  # at most half full
        self._keys = np.full(capacity, -1, np.int64)
        self._ids = np.zeros(capacity, np.int32)
        if index_entries(self._entries, len(self), self._keys, self._ids) != len(self):
            raise ValueError("a stored vocabulary has the same entry twice.")

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def entries(self) -> np.ndarray:
        """The pairs by id, each ``left << 32 | right``."""
        return self._entries[: len(self)]

    @property
    def counts(self) -> np.ndarray:
        return self._counts[: len(self)]

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Left and right halves of the pairs by id."""
        return self.entries >> 32, self.entries & 0xFFFFFFFF

    def add(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Ids (int32) of the pairs, new ones made for new pairs; -1 where a side is -1."""
        from maxmargin.features.interning_kernel import add_pairs

        out = np.empty(len(left), np.int32)
        done = 0
        while True:
            done = add_pairs(
                left, right, self._keys, self._ids, self._entries, self._counts, self._size, out, done
            )
            if done == len(left):
                return out
            self._entries = np.concatenate([self._entries, np.zeros_like(self._entries)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._index()

    def find(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Ids (int32) of the pairs; -1 for unknown ones."""
        from maxmargin.features.interning_kernel import find_pairs

        out = np.empty(len(left), np.int32)
        find_pairs(left, right, self._keys, self._ids, out)
        return out


class Vocabulary:
    """The features of a training set, numbered by falling frequency.

    Parameters
    ----------
    definitions : sequence of Definition
    """

    dtype = np.int32
    missing = np.int32(-1)

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.skeletons = list(dict.fromkeys(definition.literals for definition in definitions))
        self._skeleton = {literals: s for s, literals in enumerate(self.skeletons)}
        self.strings: dict[str, int] = {}
        deepest = max((len(literals) - 1 for literals in self.skeletons), default=0)
        self.tuples = {level: PairTable() for level in range(2, deepest + 1)}
        self.tables = {False: PairTable(), True: PairTable()}

    def encode(self, texts: Sequence[str | None], learn: bool) -> np.ndarray:
        if learn:
            strings = self.strings
            codes = [-1 if text is None else strings.setdefault(text, len(strings)) for text in texts]
        else:
            get = self.strings.get
            codes = [get(text, -1) for text in texts]  # type: ignore[arg-type] (None is in no dict of strings)
        return np.array(codes, np.int32)

    def join(self, left: np.ndarray, right: np.ndarray, level: int, learn: bool) -> np.ndarray:
        table = self.tuples[level]
        return table.add(left, right) if learn else table.find(left, right)

    def number(self, literals: tuple[str, ...], codes: np.ndarray, edge: bool, learn: bool) -> np.ndarray:
        table = self.tables[edge]
        skeleton = np.full(len(codes), self._skeleton[literals], np.int32)
        return table.add(skeleton, codes) if learn else table.find(skeleton, codes)

    def freeze(self, min_count: int) -> dict[bool, np.ndarray]:
        """Renumber the features by falling count, drop the rare ones and what only they used.

        Returns the new id of each old one (-1: dropped), for token and edge features.
        """
        ranks = {}
        for edge, table in self.tables.items():
            order = np.argsort(-table.counts, kind="stable")
            kept = order[: int((table.counts >= max(min_count, 1)).sum())]
            ranks[edge] = np.full(len(table), -1, np.int32)
            ranks[edge][kept] = np.arange(len(kept), dtype=np.int32)
            self.tables[edge] = PairTable(table.entries[kept])
        self._prune()
        return ranks

    def _prune(self) -> None:
        """Forget strings and tuples that no feature uses."""
        levels = np.array([len(literals) - 1 for literals in self.skeletons], np.int64)
        used = {0: np.ones(1, bool), 1: np.zeros(len(self.strings), bool)}
        used |= {level: np.zeros(len(table), bool) for level, table in self.tuples.items()}
        for table in self.tables.values():
            skeleton, code = table.sides()
            for level, mask in used.items():
                mask[code[levels[skeleton] == level]] = True
        for level in sorted(self.tuples, reverse=True):
            left, right = self.tuples[level].sides()
            used[level - 1][left[used[level]]] = True
            used[1][right[used[level]]] = True
        new = {level: np.cumsum(mask) - 1 for level, mask in used.items()}
        texts = list(self.strings)
        self.strings = {texts[k]: n for n, k in enumerate(np.flatnonzero(used[1]).tolist())}
        for level, table in self.tuples.items():
            left, right = (side[used[level]] for side in table.sides())
            self.tuples[level] = PairTable(new[level - 1][left] << 32 | new[1][right])
        for edge, table in self.tables.items():
            skeleton, code = table.sides()
            for level in used:
                here = levels[skeleton] == level
                code[here] = new[level][code[here]]
            self.tables[edge] = PairTable(skeleton << 32 | code)

    def names(self, ids: Sequence[int], edge: bool = False) -> list[str]:
        """The features behind ids, spelled out."""
        texts = list(self.strings)
        entries = self.tables[edge].entries
        spelled = []
        for i in ids:
            skeleton, code = divmod(int(entries[i]), 1 << 32)
            literals = self.skeletons[skeleton]
            values = []
            for level in range(len(literals) - 1, 1, -1):
                code, value = divmod(int(self.tuples[level].entries[code]), 1 << 32)
                values.append(texts[value])
            if len(literals) > 1:
                values.append(texts[code])
            spelled.append(literals[0] + "".join(v + t for v, t in zip(values[::-1], literals[1:], strict=True)))
        return spelled

    def to_arrays(self) -> dict[str, np.ndarray]:
        parts = [text.encode("utf-8", "surrogatepass") for text in self.strings]
        arrays = {
            "text": np.frombuffer(b"".join(parts), np.uint8),
            "text_ends": np.cumsum(np.array([len(part) for part in parts], np.int64), dtype=np.int64),
            "features": self.tables[False].entries,
            "edges": self.tables[True].entries,
        }
        return arrays | {f"tuples{level}": table.entries for level, table in self.tuples.items()}

    @staticmethod
    def from_arrays(definitions: Sequence[Definition], arrays: dict[str, np.ndarray]) -> Vocabulary:
        """The vocabulary behind :meth:`to_arrays`; arrays that do not fit together are refused."""
        made = Vocabulary(definitions)
        blob, ends = arrays["text"], arrays["text_ends"]
        if blob.dtype != np.uint8 or ends.dtype != np.int64 or blob.ndim != 1 or ends.ndim != 1:
            raise ValueError("a stored vocabulary must hold its text as bytes and their ends as int64.")
        if (np.diff(ends, prepend=0, append=len(blob)) < 0).any() or (len(ends) and ends[-1] != len(blob)):
            raise ValueError("the ends of the strings of a stored vocabulary do not rise to the length of its text.")
        data, begin = blob.tobytes(), 0
        for end in ends.tolist():
            made.strings[data[begin:end].decode("utf-8", "surrogatepass")] = len(made.strings)
            begin = end
        if len(made.strings) != len(ends):
            raise ValueError("a stored vocabulary has the same string twice.")
        sizes = np.array([1, len(ends), *(len(arrays[f"tuples{level}"]) for level in made.tuples)], np.int64)
        levels = np.array([len(literals) - 1 for literals in made.skeletons], np.int64)

        def table(name: str, lefts: int, limit: Callable[[np.ndarray], Any]) -> PairTable:
            entries = arrays[name]
            if entries.dtype != np.int64 or entries.ndim != 1 or len(entries) >= 2**31:
                raise ValueError(f"'{name}' of a stored vocabulary must be a list of less than 2^31 int64.")
            left, right = entries >> 32, entries & 0xFFFFFFFF
            if (left < 0).any() or (left >= lefts).any() or (right >= limit(left)).any():
                raise ValueError(f"'{name}' of a stored vocabulary points outside its strings.")
            return PairTable(np.ascontiguousarray(entries))

        for level in made.tuples:
            made.tuples[level] = table(f"tuples{level}", int(sizes[level - 1]), lambda left: sizes[1])
        for edge, name in ((False, "features"), (True, "edges")):
            made.tables[edge] = table(name, len(made.skeletons), lambda left: sizes[levels[left]])
        return made


class Hashed:
    """Features without a vocabulary: a feature's id is a hash of its text, modulo ``n_features``."""

    dtype = np.uint64
    missing = np.uint64(0)

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def encode(self, texts: Sequence[str | None], learn: bool) -> np.ndarray:
        codes = [0 if text is None else _digest(text) for text in texts]
        return np.array(codes, np.uint64)

    def join(self, left: np.ndarray, right: np.ndarray, level: int, learn: bool) -> np.ndarray:
        mixed = (left ^ (left >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + right
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        return np.where((left == 0) | (right == 0), np.uint64(0), np.maximum(mixed, np.uint64(1)))

    def number(self, literals: tuple[str, ...], codes: np.ndarray, edge: bool, learn: bool) -> np.ndarray:
        skeleton = np.full(len(codes), _digest("\0".join(literals)), np.uint64)
        mixed = self.join(skeleton, codes, 0, learn)
        ids = ((mixed >> np.uint64(16)) % np.uint64(self.n_features)).astype(np.int32)
        return np.where(mixed == 0, np.int32(-1), ids)


def _digest(text: str) -> int:
    """The same on every machine and in every process, unlike ``hash``; never 0, which stands for missing."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


@dataclass
class Rows:
    """Ids of the features of n tokens, before they are put in rows.

    Attributes
    ----------
    table : int32 array (definitions, n)
        -1: none.
    lists : list of (owner, pointers, ids)
        Definitions with many values: token t has ``ids[pointers[owner[t]]:pointers[owner[t] + 1]]``.
    """

    table: np.ndarray
    lists: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def to_csr(self, rank: np.ndarray, n_features: int) -> sp.csr_array:
        """One row a token, all values 1, with ``rank`` of each id (-1: left out)."""
        from maxmargin.features.interning_kernel import count_rows, fill_lists, fill_rows

        n = self.table.shape[1]
        lengths = np.zeros(n, np.int64)
        count_rows(self.table, rank, lengths)
        ranked = []
        for owner, pointers, ids in self.lists:
            there = np.where(ids >= 0, rank[ids] if len(rank) else -1, -1).astype(np.int32)
            kept = np.concatenate([[0], np.cumsum(there >= 0)])[pointers]
            ranked.append((owner, kept, there[there >= 0]))
            lengths += np.diff(kept)[owner] * (owner >= 0) if len(kept) > 1 else 0
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        at = indptr[:-1].copy()
        indices = np.empty(indptr[-1], np.int32)
        fill_rows(self.table, rank, at, indices)
        for owner, kept, there in ranked:
            fill_lists(owner, kept, there, at, indices)
        return sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n_features))


def feature_rows(
    tokens: Tokens, definitions: Sequence[Definition], coder: Coder, learn: bool = False
) -> dict[bool, Rows]:
    """Ids of token features (False) and edge features (True) of every token.

    Costs O(tokens x (definitions + distinct tuple shapes)) compiled steps, and Python only for distinct strings.
    """
    board = _Board(tokens, definitions, coder, learn)
    rows = {}
    for edge in (False, True):
        chosen = [definition for definition in definitions if definition.edge == edge]
        single = [definition for definition in chosen if not definition.many]
        table = np.empty((len(single), tokens.n_tokens), np.int32)
        for d, definition in enumerate(single):
            table[d] = coder.number(definition.literals, board.codes(definition), edge, learn)
        lists = []
        for definition in chosen:
            if definition.many:
                owner, pointers, values = board.lists(definition)
                ids = coder.number(definition.literals, values, edge, learn)
                if learn and isinstance(coder, Vocabulary):
                    uses = np.bincount(owner[owner >= 0], minlength=len(pointers) - 1)
                    known = ids >= 0  # each was counted once, as a value; it counts as often as its tokens
                    weight = np.repeat(uses, np.diff(pointers))[known] - 1
                    np.add.at(coder.tables[edge].counts, ids[known], weight)
                lists.append((owner, pointers, ids))
        rows[edge] = Rows(table, lists)
    return rows


class _Board:
    """Sentences in one array, each with room for what lies outside on both sides."""

    def __init__(self, tokens: Tokens, definitions: Sequence[Definition], coder: Coder, learn: bool) -> None:
        offsets = [offset for definition in definitions for _, offset in definition.slots]
        self.before, self.after = max(0, -min(offsets, default=0)), max(0, max(offsets, default=0))
        self.tokens, self.coder, self.learn = tokens, coder, learn
        lengths = np.diff(tokens.offsets)
        sentence = np.repeat(np.arange(len(tokens)), lengths)
        self.place = np.arange(tokens.n_tokens) + sentence * (self.before + self.after) + self.before
        self.size = tokens.n_tokens + len(tokens) * (self.before + self.after)
        begins = tokens.offsets[:-1] + np.arange(len(tokens)) * (self.before + self.after)
        self.left = (begins[:, None] + np.arange(self.before)).ravel()
        self.right = ((begins + self.before + lengths)[:, None] + np.arange(self.after)).ravel()
        self.first = tokens.offsets[:-1][lengths > 0]
        self._columns: dict[Source, np.ndarray] = {}
        self._lists: dict[Source, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._shapes: dict[tuple, np.ndarray] = {}

    def codes(self, definition: Definition) -> np.ndarray:
        """Code of the tuple of values of each token."""
        if not definition.slots:
            ones = np.zeros(self.tokens.n_tokens, self.coder.dtype)
            codes = ones + (self.coder.dtype(1) if self.coder.missing == 0 else self.coder.dtype(0))
        else:
            anchor = definition.slots[0][1]
            shape = tuple((source, offset - anchor) for source, offset in definition.slots)
            codes = self._shape(shape)[self.place + anchor]
        if definition.edge:
            codes[self.first] = self.coder.missing
        return codes

    def lists(self, definition: Definition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which list of values each token has, where the lists begin, and the values."""
        source, offset = definition.slots[0]
        if source not in self._lists:
            values, codes = self._derive(source)
            marks = source.values(self._marks())
            everything = [*values, *marks]
            pointers = np.concatenate([[0], np.cumsum([len(v) for v in everything])]).astype(np.int64)
            flat = self.coder.encode([text for several in everything for text in several], self.learn)
            owner = self._spread(codes, np.arange(len(values), len(everything), dtype=np.int32))
            self._lists[source] = (owner, pointers, flat)
        owner, pointers, flat = self._lists[source]
        owner = owner[self.place + offset]
        if definition.edge:
            owner[self.first] = -1
        return owner, pointers, flat

    def _shape(self, shape: tuple) -> np.ndarray:
        """Codes of the tuples that begin at each place."""
        if shape not in self._shapes:
            source, shift = shape[-1]
            codes = self._column(source)
            if len(shape) > 1:
                codes = self.coder.join(self._shape(shape[:-1]), self._shifted(codes, shift), len(shape), self.learn)
            self._shapes[shape] = codes
        return self._shapes[shape]

    def _shifted(self, codes: np.ndarray, shift: int) -> np.ndarray:
        moved = np.full(self.size, self.coder.missing, self.coder.dtype)
        low, high = max(0, -shift), min(self.size, self.size - shift)
        if low < high:
            moved[low:high] = codes[low + shift : high + shift]
        return moved

    def _column(self, source: Source) -> np.ndarray:
        if source not in self._columns:
            values, codes = self._derive(source)
            coded = self.coder.encode([*values, None], self.learn)  # the last stands for -1
            self._columns[source] = self._spread(coded[codes], self.coder.encode(source.values(self._marks()), self.learn))
        return self._columns[source]

    def _derive(self, source: Source) -> tuple[list, np.ndarray]:
        column = self.tokens.columns[source.column]
        if source.transform is None:
            return column.strings, column.codes
        return source.transform.derive(column, self.tokens.offsets)

    def _marks(self) -> list[str]:
        return [f"_B-{k}" for k in range(self.before, 0, -1)] + [f"_B+{k}" for k in range(1, self.after + 1)]

    def _spread(self, inside: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """Codes of the tokens at their places and of the marks round each sentence."""
        spread = np.empty(self.size, inside.dtype)
        spread[self.place] = inside
        n = len(self.tokens)
        spread[self.left] = np.tile(marks[: self.before], n)
        spread[self.right] = np.tile(marks[self.before :], n)
        return spread
