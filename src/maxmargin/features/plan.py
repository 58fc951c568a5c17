"""Definitions, arranged so that all of them can be computed together.

A definition with k slots is a tuple of k values. Tuples are folded from the left, ((a, b), c), so definitions share
their beginnings; and a tuple is stored where it begins, so definitions that differ only by a shift
(``%x[-1,0]/%x[0,0]`` and ``%x[0,0]/%x[1,0]``) share everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.features.definition import Definition, Source
from maxmargin.features.interning import skeletons_of

__all__ = ["Plan", "TupleJoin"]

TupleSlots = tuple[tuple[int, int], ...]  # (source, shift) of each slot; the first shift is 0


@dataclass(frozen=True)
class TupleJoin:
    """Tuples of one length: row ``rows[j]`` is row ``left[j]`` with, ``shift[j]`` places on, row ``right[j]``."""

    rows: slice
    left: np.ndarray
    right: list[int]
    shift: list[int]


@dataclass(frozen=True)
class Singles:
    """Definitions that give a token at most one feature.

    Definition d reads row ``rows[d]``, ``anchors[d]`` places on; its literals have number ``skeletons[d]``. Without
    rows: its slots are ``slots[d] <= s < slots[d + 1]``, and read ``sources[s]``, ``shifts[s]`` places on.
    """

    rows: np.ndarray
    anchors: np.ndarray
    skeletons: np.ndarray
    slots: np.ndarray
    sources: np.ndarray
    shifts: np.ndarray


class Plan:
    """What to compute for a list of definitions, without repetition.

    Parameters
    ----------
    definitions : sequence of Definition

    Attributes
    ----------
    before, after : int
        How far definitions look to the left and right of a token.
    marks : list of str
        Stand-ins for positions outside a sentence, from left to right.
    width : int
        Number of columns needed.
    sources : list of Source
        Sources of single values: rows 0, 1, ... of the table of codes.
    outside : list of list
        For each source the values of the marks, followed by None.
    joins : list of TupleJoin
        Further rows, by the length of the tuples from 2 on. The very last row is the empty tuple.
    n_rows : int
    singles : dict of Singles
        For tokens (False) and edges (True), if there are any.
    lists : dict of list of (Definition, int32 array (1,))
        Definitions with many values per token, and the number of their literals.
    """

    def __init__(self, definitions: Sequence[Definition]) -> None:
        offsets = [offset for definition in definitions for _, offset in definition.slots]
        self.before, self.after = max(0, -min(offsets, default=0)), max(0, max(offsets, default=0))
        self.marks = [f"_B-{k}" for k in range(self.before, 0, -1)] + [f"_B+{k}" for k in range(1, self.after + 1)]
        self.width = 1 + max((source.column for d in definitions for source, _ in d.slots), default=0)
        plain = [definition for definition in definitions if not definition.many]
        number: dict[Source, int] = {}
        for source in (source for definition in plain for source, _ in definition.slots):
            number.setdefault(source, len(number))
        self.sources = list(number)
        self.outside = [[*source.values(self.marks), None] for source in self.sources]
        shapes = {definition: _shape(definition, number) for definition in plain}
        row: dict[TupleSlots, int] = {((s, 0),): s for s in range(len(number))}
        self.joins: list[TupleJoin] = []
        for length in range(2, max(map(len, shapes.values()), default=0) + 1):
            made = list(dict.fromkeys(shape[:length] for shape in shapes.values() if len(shape) >= length))
            rows = slice(len(row), len(row) + len(made))
            left = np.array([row[shape[:-1]] for shape in made], np.int64)
            self.joins.append(TupleJoin(rows, left, [shape[-1][0] for shape in made], [shape[-1][1] for shape in made]))
            row |= {shape: rows.start + j for j, shape in enumerate(made)}
        row[()] = len(row)
        self.n_rows = len(row)
        skeleton = {literals: s for s, literals in enumerate(skeletons_of(definitions))}
        self.singles, self.lists = {}, {}
        for edge in sorted({definition.edge for definition in definitions}):
            chosen = [definition for definition in plain if definition.edge == edge]
            self.singles[edge] = Singles(
                np.array([row[shapes[definition]] for definition in chosen], np.int64),
                np.array([_anchor(definition) for definition in chosen], np.int64),
                np.array([skeleton[definition.literals] for definition in chosen], np.int32),
                np.cumsum([0, *(len(definition.slots) for definition in chosen)], dtype=np.int64),
                np.array([number[source] for definition in chosen for source, _ in definition.slots], np.int64),
                np.array([shift for definition in chosen for _, shift in definition.slots], np.int64),
            )
            self.lists[edge] = [
                (definition, np.array([skeleton[definition.literals]], np.int32))
                for definition in definitions
                if definition.many and definition.edge == edge
            ]


def _shape(definition: Definition, number: dict[Source, int]) -> TupleSlots:
    return tuple((number[source], offset - _anchor(definition)) for source, offset in definition.slots)


def _anchor(definition: Definition) -> int:
    return definition.slots[0][1] if definition.slots else 0
