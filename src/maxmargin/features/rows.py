"""Definitions applied to sentences: rows of feature ids.

Sentences lie in one array, padded on both sides with marks; a definition then reads at a shift. All definitions are
computed together, so a single sentence costs few calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.features.definition import Definition, Source
from maxmargin.features.interning import DEEPEST, Coder, Vocabulary
from maxmargin.features.plan import Plan
from maxmargin.features.sparse_rows import SparseRows
from maxmargin.features.tokens import Tokens

__all__ = ["MOST_LOOKED_UP", "Rows", "feature_rows", "looked_up_rows", "ranked", "stacked"]

MOST_LOOKED_UP = 200  # tokens; up to here it is faster to look up each feature by itself

BLOCK = 1 << 16  # entries of a table to compute at once: many short rows, or one long one


@dataclass
class Rows:
    """Ids of the features of n tokens, before they are arranged in rows.

    ``lists`` are (owner, pointers, ids) of definitions with many values: token t has
    ``ids[pointers[owner[t]]:pointers[owner[t] + 1]]``.
    """

    table: np.ndarray  # int32 (definitions, n), -1 for none
    lists: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def to_csr(self, n_features: int, rank: np.ndarray | None = None) -> sp.csr_array:
        """One row per token, all values 1; ``rank`` renumbers the ids (-1 leaves one out)."""
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
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        at = indptr[:-1].copy()
        indices = np.empty(indptr[-1], np.int32)
        fill_rows(self.table, rank, at, indices)
        for owner, kept, there in ranked:
            fill_lists(owner, kept, there, at, indices)
        return _binary(indices, indptr, n_features)


def ranked(rows: sp.csr_array, rank: np.ndarray, n_features: int) -> sp.csr_array:
    """Rows of features under the numbers ``rank`` of their present ones (-1 leaves one out)."""
    new = rank[rows.indices]
    kept = new >= 0
    indptr = rows.indptr if kept.all() else np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return _binary(new[kept], indptr.astype(np.int64), n_features)


def stacked(parts: list[sp.csr_array]) -> sp.csr_array:
    """Matrices of features, one above the other."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0] + [part.nnz for part in parts[:-1]])
    indptr = np.concatenate([[0], *(part.indptr[1:] + n for part, n in zip(parts, before, strict=True))])
    n_features = parts[0].shape[1]
    indices = np.empty(int(indptr[-1]), np.int32)
    for n in before:  # frees each part once it is copied
        part = parts.pop(0)
        indices[n : n + part.nnz] = part.indices
    return _binary(indices, indptr, n_features)


def _binary(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> sp.csr_array:
    """A matrix whose entries are all 1."""
    if len(indices) < 2**31:  # int64 pointers would widen the indices too
        indptr = indptr.astype(np.int32)
    return sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(len(indptr) - 1, n_features))


def feature_rows(tokens: Tokens, plan: Plan, coder: Coder, learn: bool = False, before: int = 0) -> dict[bool, Rows]:
    """Ids of token features (False) and edge features (True) of every token; ``before`` tokens were learned from.

    O(tokens x (definitions + distinct tuple shapes)) compiled steps; Python runs only per distinct string.
    """
    from maxmargin.features.interning_kernel import note_first, note_lists

    padded = _Padded(tokens, plan, coder, learn)
    codes = padded.codes()
    rows = {}
    for edge, singles in plan.singles.items():
        table = np.empty((len(singles.rows), tokens.n_tokens), np.int32)
        starts = singles.rows * padded.size + singles.anchors
        for part in _parts(table):
            read = codes.ravel()[starts[part, None] + padded.place]
            if edge:
                read[:, padded.first] = coder.missing
            table[part] = coder.number(singles.skeletons[part], read, edge, learn)
        counted = coder.tables[edge] if learn and isinstance(coder, Vocabulary) else None
        if counted is not None:
            note_first(table, before, counted.first)
        lists = []
        for number, (definition, skeleton) in enumerate(plan.lists[edge], start=len(table)):
            owner, pointers, values = padded.lists(definition)
            ids = coder.number(skeleton, values[None], edge, learn)[0]
            if counted is not None:
                uses = np.bincount(owner[owner >= 0], minlength=len(pointers) - 1)
                known = ids >= 0  # each was counted once as a value; count it once per token
                weight = np.repeat(uses, np.diff(pointers))[known] - 1
                np.add.at(counted.counts, ids[known], weight)
                note_lists(owner, pointers, ids, number, before, counted.first)
            lists.append((owner, pointers, ids))
        rows[edge] = Rows(table, lists)
    return rows


def looked_up_rows(tokens: Tokens, plan: Plan, vocabulary: Vocabulary) -> dict[bool, SparseRows] | None:
    """The rows of :func:`feature_rows` by one compiled call for each kind, which is faster for few tokens.

    None when a definition has many values per token, or more than ``DEEPEST`` slots.
    """
    from maxmargin.features.interning_kernel import find_features

    if any(plan.lists.values()) or len(plan.joins) >= DEEPEST:
        return None
    values, begins, owners, by_token = _values(tokens, plan, vocabulary, learn=False)
    rows = {}
    for edge, singles in plan.singles.items():
        indptr = np.empty(tokens.n_tokens + 1, np.int64)
        indices = np.empty(tokens.n_tokens * len(singles.rows), np.int32)
        n = find_features(
            values, begins, owners, by_token, tokens.offsets, plan.before, len(plan.marks), singles.slots,
            singles.sources, singles.shifts, singles.skeletons, edge, *vocabulary.index(edge), indptr, indices,
        )  # fmt: skip
        rows[edge] = SparseRows(tokens.offsets, indptr, indices[:n], np.empty(0))
    return rows


def _values(tokens: Tokens, plan: Plan, coder: Coder, learn: bool) -> tuple[np.ndarray, ...]:
    """Codes of the values of all sources, where each source begins, its owner, and the codes of the tokens.

    The values of a source are those of the marks, the missing one (code -1), and those of the codes 0, 1, ...; the
    codes of the tokens are row ``owners[source]`` of the last array.
    """
    texts: list[str | None] = []
    begins, owners = [], []
    by_token = [column.codes for column in tokens.columns]
    held = {id(codes): j for j, codes in enumerate(by_token)}
    for source, outside in zip(plan.sources, plan.outside, strict=True):
        values, codes = source.derive(tokens)
        if id(codes) not in held:  # most sources share the codes of their column
            held[id(codes)] = len(by_token)
            by_token.append(codes)
        begins.append(len(texts))
        owners.append(held[id(codes)])
        texts += outside
        texts += values
    return coder.encode(texts, learn), np.array(begins, np.int64), np.array(owners, np.int64), np.array(by_token)


class _Padded:
    """Sentences in one array, each padded with marks on both sides."""

    def __init__(self, tokens: Tokens, plan: Plan, coder: Coder, learn: bool) -> None:
        self.tokens, self.plan, self.coder, self.learn = tokens, plan, coder, learn
        lengths = np.diff(tokens.offsets)
        gaps = np.arange(len(tokens)) * len(plan.marks)
        self.size = tokens.n_tokens + len(tokens) * len(plan.marks)
        self.place = np.arange(tokens.n_tokens) + np.repeat(gaps + plan.before, lengths)  # positions of the tokens
        self.first = tokens.offsets[:-1][lengths > 0]  # first tokens of sentences, which have no predecessor
        self._begins, self._ends = tokens.offsets[:-1] + gaps, tokens.offsets[1:] + gaps + plan.before
        self._lists: dict[Source, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def codes(self) -> np.ndarray:
        """Codes of values and tuples by the position where they begin, for each row of the plan."""
        plan, coder, tokens = self.plan, self.coder, self.tokens
        codes = np.empty((plan.n_rows, self.size), coder.dtype)
        codes[-1] = coder.empty
        values, begins, owners, by_token = _values(tokens, plan, coder, self.learn)
        spread, single = self._spread(by_token), codes[: len(begins)]
        for part in _parts(single):
            single[part] = values[begins[part, None] + spread[owners[part]]]
        for length, join in enumerate(plan.joins, start=2):
            right = np.full((len(join.right), self.size), coder.missing, coder.dtype)
            for moved, source, shift in zip(right, join.right, join.shift, strict=True):
                low, high = max(0, -shift), min(self.size, self.size - shift)
                if low < high:
                    moved[low:high] = codes[source, low + shift : high + shift]
            codes[join.rows] = coder.join(codes[join.left], right, length, self.learn)
        return codes

    def lists(self, definition: Definition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The list of values of each token, where the lists begin, and the values."""
        source, offset = definition.slots[0]
        if source not in self._lists:
            values, codes = source.derive(self.tokens)
            everything = [*source.values(self.plan.marks), [], *values]
            pointers = np.concatenate([[0], np.cumsum([len(v) for v in everything])]).astype(np.int64)
            flat = self.coder.encode([text for several in everything for text in several], self.learn)
            self._lists[source] = (self._spread(codes[None])[0], pointers, flat)
        owner, pointers, flat = self._lists[source]
        owner = owner[self.place + offset]
        if definition.edge:
            owner[self.first] = -1
        return owner, pointers, flat

    def _spread(self, codes: np.ndarray) -> np.ndarray:
        """Numbers by position: the marks from 0 on, then the missing value (code -1), then the codes of tokens."""
        before, n_marks = self.plan.before, len(self.plan.marks)
        spread = np.empty((len(codes), self.size), np.int32)
        spread[:, self.place] = codes + np.int32(n_marks + 1)
        for k in range(n_marks):
            spread[:, self._begins + k if k < before else self._ends + (k - before)] = k
        return spread


def _parts(table: np.ndarray) -> Iterator[slice]:
    """Slices of the rows of a table, about ``BLOCK`` entries each."""
    step = max(1, BLOCK // max(1, table.shape[1]))
    return (slice(d, d + step) for d in range(0, len(table), step))
