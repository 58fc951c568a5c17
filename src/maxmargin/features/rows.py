"""Definitions applied to sentences: rows of feature ids.

Sentences lie in one array with room on both sides of each for the marks of what is outside. A definition is then a
shift, and definitions with the same tuples at other shifts (``%x[-1,0]/%x[0,0]`` and ``%x[0,0]/%x[1,0]``) share work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.features.definition import Definition, Source
from maxmargin.features.interning import Coder, Vocabulary
from maxmargin.features.tokens import Tokens

__all__ = ["Rows", "feature_rows"]


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

    def to_csr(self, n_features: int, rank: np.ndarray | None = None) -> sp.csr_array:
        """One row a token, all values 1, with the ``rank`` of each id (-1: left out), or the id itself."""
        from maxmargin.features.interning_kernel import count_rows, fill_lists, fill_rows

        n = self.table.shape[1]
        rank = np.empty(0, np.int32) if rank is None else rank
        lengths = np.zeros(n, np.int64)
        count_rows(self.table, rank, lengths)
        ranked = []
        for owner, pointers, ids in self.lists:
            there = np.where(ids >= 0, rank[ids], np.int32(-1)) if len(rank) else ids
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
            self._columns[source] = self._spread(
                coded[codes], self.coder.encode(source.values(self._marks()), self.learn)
            )
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
