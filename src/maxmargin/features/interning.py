"""Exact numbering of features.

A feature is a definition's literal text with values in its gaps: ``U05:`` the ``/`` dog. Values are numbered once for
each distinct string, tuples of values by folding pairs, ((a, b), c), and features as pairs (definition, tuple). Every
pair is a 64-bit integer that holds both sides, so two features never share an id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import pairwise, repeat

import numpy as np

from maxmargin.features.definition import Definition

NEVER = 2**63 - 1  # the key of what has not appeared
RANK_BITS = 12  # of a key, behind the number of its token
DEEPEST = 4  # most values of a feature that one compiled call can join

__all__ = ["Coder", "Hashed", "PairTable", "Vocabulary", "by_falling_count", "pack_strings", "unpack_strings"]


def skeletons_of(definitions: Sequence[Definition]) -> list[tuple[str, ...]]:
    """The distinct literals of definitions, in order of their numbers."""
    return list(dict.fromkeys(definition.literals for definition in definitions))


class PairTable:
    """Ids 0, 1, ... of pairs of non-negative int32 in order of first appearance, and the count of each."""

    def __init__(self, entries: np.ndarray | None = None) -> None:
        held = np.empty(0, np.int64) if entries is None else entries
        self._size = np.array([len(held)], np.int64)
        self._entries = np.zeros(max(1024, len(held)), np.int64)
        self._entries[: len(held)] = held
        self._counts = np.zeros(len(self._entries), np.int64)
        self._first = np.full(len(self._entries), NEVER)
        self._index: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def entries(self) -> np.ndarray:
        """The pairs by id, each ``left << 32 | right``."""
        return self._entries[: len(self)]

    @property
    def counts(self) -> np.ndarray:
        return self._counts[: len(self)]

    @property
    def first(self) -> np.ndarray:
        """Keys of the first appearances, where they were noted; a smaller key came before."""
        return self._first[: len(self)]

    @property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """The table as compiled code reads it: keys and ids, made when they are needed: a model loads without."""
        if self._index is None:
            from maxmargin.features.interning_kernel import index_entries

            capacity = 1 << int(2 * len(self._entries) - 1).bit_length()  # at most half full
            self._index = np.full(capacity, -1, np.int64), np.zeros(capacity, np.int32)
            index_entries(self._entries, len(self), *self._index)
        return self._index

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Left and right halves of the pairs by id."""
        return self.entries >> 32, self.entries & 0xFFFFFFFF

    def add(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Ids (int32) of the pairs of two arrays of one shape; new pairs get new ids; -1 where a side is -1."""
        from maxmargin.features.interning_kernel import add_pairs

        out, shape = np.empty(left.size, np.int32), left.shape
        left, right = left.ravel(), right.ravel()
        done = 0
        while True:
            done = add_pairs(left, right, *self.index, self._entries, self._counts, self._size, out, done)
            if done == len(left):
                return out.reshape(shape)
            self._entries = np.concatenate([self._entries, np.zeros_like(self._entries)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._first = np.concatenate([self._first, np.full_like(self._first, NEVER)])
            self._index = None

    def find(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Ids (int32) of the pairs; -1 for unknown ones."""
        from maxmargin.features.interning_kernel import find_pairs

        out = np.empty(left.size, np.int32)
        find_pairs(left.ravel(), right.ravel(), *self.index, out)
        return out.reshape(left.shape)


class Vocabulary:
    """The features of a training set, numbered by falling frequency."""

    dtype = np.int32
    missing, empty = np.int32(-1), np.int32(0)  # codes of no value, and of the tuple without values

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.skeletons = skeletons_of(definitions)
        self.strings: dict[str, int] = {}
        deepest = max((len(literals) - 1 for literals in self.skeletons), default=0)
        self.tuples = {level: PairTable() for level in range(2, deepest + 1)}
        self.tables = {False: PairTable(), True: PairTable()}

    def encode(self, texts: Sequence[str | None], learn: bool) -> np.ndarray:
        strings: dict = self.strings
        if learn:
            codes = [-1 if text is None else strings.setdefault(text, len(strings)) for text in texts]
            return np.array(codes, np.int32)
        # None is never a key
        return np.fromiter(map(strings.get, texts, repeat(-1)), np.int32, len(texts))

    def join(self, left: np.ndarray, right: np.ndarray, level: int, learn: bool) -> np.ndarray:
        table = self.tuples[level]
        return table.add(left, right) if learn else table.find(left, right)

    def number(self, skeletons: np.ndarray, codes: np.ndarray, edge: bool, learn: bool) -> np.ndarray:
        """Ids (int32) of features; row d has the literals with number ``skeletons[d]`` (int32)."""
        table, left = self.tables[edge], skeletons.repeat(codes.shape[1]).reshape(codes.shape)
        return table.add(left, codes) if learn else table.find(left, codes)

    def index(self, edge: bool) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Keys and ids of the table of features and of those of tuples, ``DEEPEST`` in all, for ``find_features``."""
        tables = [self.tables[edge], *self.tuples.values()]
        tables += [self.tables[edge]] * (DEEPEST - len(tables))  # never read
        return tuple(table.index[0] for table in tables), tuple(table.index[1] for table in tables)

    def freeze(self, min_count: int) -> dict[bool, np.ndarray]:
        """Renumber the features by falling count; drop rare ones and the strings and tuples that only they use.

        Features of equal counts come in the order of their definitions, and then of their first tokens, however the
        tokens were divided. Returns the new id of each old one (-1: dropped), for token and edge features.
        """
        ranks = {}
        for edge, table in self.tables.items():
            kept, ranks[edge] = by_falling_count(table.counts, max(min_count, 1), table.first)
            self.tables[edge] = PairTable(table.entries[kept])
        self._prune()
        return ranks

    def add(self, other: Vocabulary, tokens: int) -> dict[bool, np.ndarray]:
        """Count the features of another vocabulary too, whose tokens come after so many others.

        Returns the ids (int32) that its token and edge features have here.
        """
        codes = {0: np.zeros(1, np.int32), 1: self.encode(list(other.strings), learn=True)}
        for level, table in other.tuples.items():
            left, right = table.sides()
            codes[level] = self.join(codes[level - 1][left], codes[1][right], level, learn=True)
        levels = np.array([len(literals) - 1 for literals in self.skeletons], np.int64)
        ids = {}
        for edge, table in other.tables.items():
            skeleton, code = table.sides()
            mapped = np.empty(len(table), np.int32)
            for level, new in codes.items():
                here = levels[skeleton] == level
                mapped[here] = new[code[here]]
            mine = self.tables[edge]
            ids[edge] = mine.add(skeleton.astype(np.int32), mapped)
            mine.counts[ids[edge]] += table.counts - 1  # each was counted once here
            later = np.where(table.first < NEVER, table.first + (tokens << RANK_BITS), NEVER)
            mine.first[ids[edge]] = np.minimum(mine.first[ids[edge]], later)
        return ids

    def keeping(self, kept: np.ndarray) -> Vocabulary:
        """The same numbering without the token features that ``kept``, a mask, leaves out."""
        fewer = copy(self)
        fewer.tuples, fewer.tables = dict(self.tuples), dict(self.tables)
        fewer.tables[False] = PairTable(self.tables[False].entries[kept])
        fewer._prune()
        return fewer

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
        """Names of the features with these ids."""
        texts = list(self.strings)
        ids = np.asarray(ids, np.int64)
        skeletons, codes = (side[ids] for side in self.tables[edge].sides())
        spelled = np.empty(len(ids), object)
        for skeleton in np.unique(skeletons).tolist():
            literals, rows = self.skeletons[skeleton], np.flatnonzero(skeletons == skeleton)
            code, parts = codes[rows], [[literals[-1]] * len(rows)]
            for level in range(len(literals) - 1, 0, -1):  # unfold ((a, b), c) from the right
                entry = self.tuples[level].entries[code] if level > 1 else code
                code = entry >> 32
                parts += [[texts[k] for k in (entry & 0xFFFFFFFF).tolist()], [literals[level - 1]] * len(rows)]
            spelled[rows] = list(map("".join, zip(*reversed(parts), strict=True)))
        return spelled.tolist()

    def to_arrays(self) -> dict[str, np.ndarray]:
        tables = {"features": self.tables[False], "edges": self.tables[True]}
        tables |= {f"tuples{level}": table for level, table in self.tuples.items()}
        return pack_strings(self.strings) | {name: table.entries for name, table in tables.items()}

    @staticmethod
    def from_arrays(definitions: Sequence[Definition], arrays: dict[str, np.ndarray]) -> Vocabulary:
        """The vocabulary that :meth:`to_arrays` stored; inconsistent arrays are refused."""
        made = Vocabulary(definitions)
        made.strings = {text: k for k, text in enumerate(unpack_strings(arrays, "a stored vocabulary"))}
        sizes = np.array([1, len(made.strings), *(len(arrays[f"tuples{level}"]) for level in made.tuples)], np.int64)
        levels = np.array([len(literals) - 1 for literals in made.skeletons], np.int64)

        def table(name: str, lefts: int, limit: Callable[[np.ndarray], np.ndarray]) -> PairTable:
            entries = arrays[name]
            if entries.dtype != np.int64 or entries.ndim != 1 or len(entries) >= 2**31:
                raise ValueError(f"'{name}' of a stored vocabulary must hold fewer than 2^31 int64; save it again.")
            left, right = entries >> 32, entries & 0xFFFFFFFF
            if (left < 0).any() or (left >= lefts).any() or (right >= limit(left)).any():
                raise ValueError(f"'{name}' of a stored vocabulary points outside its strings; save it again.")
            if len(np.unique(entries)) < len(entries):
                raise ValueError(f"'{name}' of a stored vocabulary has an entry twice; save it again.")
            return PairTable(np.ascontiguousarray(entries))

        for level in made.tuples:
            made.tuples[level] = table(f"tuples{level}", int(sizes[level - 1]), lambda left: sizes[1])
        for edge, name in ((False, "features"), (True, "edges")):
            made.tables[edge] = table(name, len(made.skeletons), lambda left: sizes[levels[left]])
        return made


def by_falling_count(
    counts: np.ndarray, min_count: int, first: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Ids that occur often enough, most frequent first, and the rank (int32) of every id among them, -1 if rare.

    Equal counts are in order of ``first``, or of the ids.
    """
    if first is None or (first[1:] >= first[:-1]).all():
        order = np.argsort(-counts, kind="stable")
    else:
        order = np.lexsort((first, -counts))
    kept = order[: int((counts >= min_count).sum())]
    rank = np.full(len(counts), -1, np.int32)
    rank[kept] = np.arange(len(kept), dtype=np.int32)
    return kept, rank


def pack_strings(texts: Iterable[str]) -> dict[str, np.ndarray]:
    """Strings as arrays: all their bytes, and where each ends."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum(np.array([len(part) for part in parts], np.int64), dtype=np.int64)
    return {"text": np.frombuffer(b"".join(parts), np.uint8), "text_ends": ends}


def unpack_strings(arrays: Mapping[str, np.ndarray], name: str) -> list[str]:
    """The strings of :func:`pack_strings`, or a ValueError that says what is wrong with ``name``."""
    blob, ends = arrays["text"], arrays["text_ends"]
    if blob.dtype != np.uint8 or ends.dtype != np.int64 or blob.ndim != 1 or ends.ndim != 1:
        raise ValueError(f"{name} is damaged: its text must be uint8, its ends int64; save it again.")
    if (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if len(ends) else 0) != len(blob):
        raise ValueError(f"{name} is damaged: its strings do not fill its text; save it again.")
    data = blob.tobytes()
    texts = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends.tolist()])]
    if len(set(texts)) != len(texts):
        raise ValueError(f"{name} is damaged: a string occurs twice; save it again.")
    return texts


class Hashed:
    """Features without a vocabulary: a feature's id is a hash of its text, modulo ``n_features``."""

    dtype = np.uint64
    missing, empty = np.uint64(0), np.uint64(1)

    def __init__(self, definitions: Sequence[Definition], n_features: int) -> None:
        self.n_features = n_features
        self._digests = np.array([_digest("\0".join(texts)) for texts in skeletons_of(definitions)], np.uint64)

    def encode(self, texts: Sequence[str | None], learn: bool) -> np.ndarray:
        return np.array([0 if text is None else _digest(text) for text in texts], np.uint64)

    def join(self, left: np.ndarray, right: np.ndarray, level: int, learn: bool) -> np.ndarray:
        mixed = (left ^ (left >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + right
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        return np.where((left == 0) | (right == 0), np.uint64(0), np.maximum(mixed, np.uint64(1)))

    def number(self, skeletons: np.ndarray, codes: np.ndarray, edge: bool, learn: bool) -> np.ndarray:
        mixed = self.join(self._digests[skeletons][:, None], codes, 0, learn)
        ids = ((mixed >> np.uint64(16)) % np.uint64(self.n_features)).astype(np.int32)
        return np.where(mixed == 0, np.int32(-1), ids)


Coder = Vocabulary | Hashed  # numbers values, tuples and features


def _digest(text: str) -> int:
    """A hash that is the same in every process, unlike ``hash``; never 0, which means missing."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
