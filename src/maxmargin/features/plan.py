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
    """What to compute for a list of definitions, without repetition."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        offsets = [offset for definition in definitions for _, offset in definition.slots]
        # how far definitions look to the left and right of a token, and stand-ins for positions outside a sentence
        self.before, after = max(0, -min(offsets, default=0)), max(0, max(offsets, default=0))
        self.marks = [f"_B-{k}" for k in range(self.before, 0, -1)] + [f"_B+{k}" for k in range(1, after + 1)]
        # the number of columns needed
        self.width = 1 + max((source.column for d in definitions for source, _ in d.slots), default=0)
        plain = [definition for definition in definitions if not definition.many]
        number: dict[Source, int] = {}
        for source in (source for definition in plain for source, _ in definition.slots):
            number.setdefault(source, len(number))
        # sources of single values are rows 0, 1, ... of the table of codes; each has values for the marks and for none
        self.sources = list(number)
        self.outside = [[*source.values(self.marks), None] for source in self.sources]
        shapes = {d: tuple((number[source], offset - _anchor(d)) for source, offset in d.slots) for d in plain}
        row: dict[TupleSlots, int] = {((s, 0),): s for s in range(len(number))}
        self.joins: list[TupleJoin] = []  # further rows, by the length of the tuples from 2 on
        for length in range(2, max(map(len, shapes.values()), default=0) + 1):
            made = list(dict.fromkeys(shape[:length] for shape in shapes.values() if len(shape) >= length))
            rows = slice(len(row), len(row) + len(made))
            left = np.array([row[shape[:-1]] for shape in made], np.int64)
            self.joins.append(TupleJoin(rows, left, [shape[-1][0] for shape in made], [shape[-1][1] for shape in made]))
            row |= {shape: rows.start + j for j, shape in enumerate(made)}
        row[()] = len(row)  # the very last row is the empty tuple
        self.n_rows = len(row)
        skeleton = {literals: s for s, literals in enumerate(skeletons_of(definitions))}
        self.singles, self.lists = {}, {}  # for tokens (False) and edges (True), if there are any
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
            many = [definition for definition in definitions if definition.many and definition.edge == edge]
            self.lists[edge] = [(d, np.array([skeleton[d.literals]], np.int32)) for d in many]


def _anchor(definition: Definition) -> int:
    return definition.slots[0][1] if definition.slots else 0
