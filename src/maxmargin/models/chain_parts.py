"""Chains bound in parts: each part is packed by itself, and all parts become the arrays of one bound model; and back.

The arrays are those that :meth:`~maxmargin.models.chain.Chain.bind` makes of all sequences at once, to the last bit,
but no more than one part has to be in memory while they are written. They may be files (:mod:`numpy.memmap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.door import indices, pointers
from maxmargin.models.base import cut_out, offsets_of
from maxmargin.models.chain import ChainBound, ChainLayout, bound_to
from maxmargin.models.chain_size import plane_size, reach
from maxmargin.models.labels import check_count

__all__ = ["JoinedParts", "PackedPart", "PartSizes", "checked", "cut", "together", "unpacked"]

ADVICE = (
    'leave them with their workers (loss="hinge", solver=Sharded(shards=...), executor="processes" or "ray", no '
    "memory_map), or use fewer features (min_count)"
)  # of a pack that is too large


@dataclass(frozen=True)
class PackedPart:
    """The arrays of the kernels for some of the sequences."""

    meta: np.ndarray
    ints: np.ndarray
    floats: np.ndarray

    @staticmethod
    def of(bound: ChainBound) -> PackedPart:
        """Those of a bound model."""
        return PackedPart(bound.meta, bound.ints, bound.floats)

    @property
    def sizes(self) -> PartSizes:
        return PartSizes(self.meta, len(self.ints), len(self.floats))


@dataclass(frozen=True)
class PartSizes:
    """How large a part is: all that others need to know of it."""

    meta: np.ndarray
    n_ints: int
    n_floats: int

    def sections(self) -> dict[int, slice]:
        """The place of each section in ``ints`` or ``floats``, by its position in ``meta``, in their order."""
        ints, floats = _keys(self.meta)
        found: dict[int, slice] = {}
        for keys, size in ((ints, self.n_ints), (floats, self.n_floats)):
            starts = [*(int(self.meta[key]) for key in keys), size]
            found |= {key: slice(starts[k], starts[k + 1]) for k, key in enumerate(keys)}
        return found


def _keys(meta: np.ndarray) -> tuple[list[int], list[int]]:
    """Which sections there are in ``ints`` and ``floats``, in their order."""
    from maxmargin.models import chain_kernel as ck

    edges, observed = bool(meta[ck.N_EDGE]), bool(meta[ck.OBSERVED])
    constrained, labelled = bool(meta[ck.CONSTRAINED]), bool(meta[ck.HAS_LABELS])
    ints = [
        (ck.AT_TOKENS, True), (ck.AT_ROWS, True), (ck.AT_COLUMNS, bool(meta[ck.N_SPARSE])), (ck.AT_PAIR_ROWS, observed),
        (ck.AT_PAIR_LABELS, observed), (ck.AT_EDGE_ROWS, edges), (ck.AT_EDGE_COLUMNS, edges),
        (ck.AT_FIXED, constrained), (ck.AT_LABELS, labelled),
    ]  # fmt: skip
    floats = [
        (ck.AT_VALUES, not meta[ck.BINARY]), (ck.AT_DENSE, bool(meta[ck.N_DENSE])), (ck.AT_EDGE_VALUES, edges),
        (ck.AT_MASK, constrained), (ck.AT_START_MASK, constrained), (ck.AT_END_MASK, constrained),
        (ck.AT_COST, labelled), (ck.AT_TOKEN_WEIGHT, labelled),
    ]  # fmt: skip
    return [key for key, there in ints if there], [key for key, there in floats if there]


class JoinedParts:
    """The arrays of all parts, one section behind the other: how large they are, and where each part goes.

    Parameters
    ----------
    layout : ChainLayout
    parts : list of PartSizes
        Those of the parts in their order, all of this layout and with binary features.
    what, advice : str
        For an error because of too many entries: who has them, and what to do.
    """

    def __init__(
        self, layout: ChainLayout, parts: Sequence[PartSizes], what: str = "the files have", advice: str = ADVICE
    ) -> None:
        from maxmargin.models import chain_kernel as ck

        self.layout = layout
        self._pointed = {ck.AT_TOKENS: ck.AT_LABELS, ck.AT_ROWS: ck.AT_COLUMNS, ck.AT_EDGE_ROWS: ck.AT_EDGE_COLUMNS}
        self._shared = {
            ck.AT_PAIR_ROWS, ck.AT_PAIR_LABELS, ck.AT_MASK, ck.AT_START_MASK, ck.AT_END_MASK, ck.AT_COST
        }  # fmt: skip
        self._ints, self._floats = _keys(parts[0].meta)
        sections = [part.sections() for part in parts]
        self._before: dict[int, list[int]] = {}
        self.meta = parts[0].meta.copy()
        self.lengths = []
        for keys in (self._ints, self._floats):
            sizes = []
            for key in keys:
                lengths = [own[key].stop - own[key].start - (key in self._pointed) for own in sections]
                self._before[key] = offsets_of([0] if key in self._shared else lengths).tolist()
                sizes.append(lengths[0] if key in self._shared else sum(lengths) + (key in self._pointed))
            places = offsets_of(sizes)
            self.meta[keys] = places[:-1]
            self.lengths.append(int(places[-1]))
        for key in (ck.AT_LABELS, ck.AT_COLUMNS, ck.AT_EDGE_COLUMNS):
            check_count(self._before.get(key, [0])[-1], "entries", what, advice)

    def place(self, number: int, part: PackedPart, ints: np.ndarray, floats: np.ndarray) -> None:
        """Copy a part to where it belongs in the arrays of all."""
        for keys, own, whole in ((self._ints, part.ints, ints), (self._floats, part.floats, floats)):
            for key, section in part.sizes.sections().items():
                if key not in keys or (key in self._shared and number > 0):
                    continue
                values, at = own[section], int(self.meta[key])
                if key in self._pointed:
                    values = values[1:] + np.int32(self._before[self._pointed[key]][number])
                    whole[at] = 0
                    at += 1
                at += 0 if key in self._shared else self._before[key][number]
                whole[at : at + len(values)] = values

    def bound(self, ints: np.ndarray, floats: np.ndarray, most: np.ndarray | None = None) -> ChainBound:
        """The model bound to the arrays, when all parts are in place; ``most`` is of others too, or of these alone."""
        return _bound(self.layout, self.meta, ints, floats, most)


def unpacked(layout: ChainLayout, part: PackedPart, most: np.ndarray | None = None) -> ChainBound:
    """The model bound to the sequences of a part; ``most`` as in :meth:`JoinedParts.bound`."""
    return _bound(layout, part.meta.copy(), part.ints, part.floats, most)


def together(layout: ChainLayout, parts: list[PackedPart], most: np.ndarray, what: str, advice: str) -> ChainBound:
    """The model bound to the sequences of all parts, which are let go one by one; see :class:`JoinedParts`."""
    plan = JoinedParts(layout, [part.sizes for part in parts], what, advice)
    ints, floats = np.empty(plan.lengths[0], np.int32), np.empty(plan.lengths[1])
    for number in range(len(parts)):
        plan.place(number, parts.pop(0), ints, floats)
    return plan.bound(ints, floats, most)


def cut(bound: ChainBound, first: int, last: int) -> ChainBound:
    """The model bound to the sequences from ``first`` to ``last`` (exclusive) alone. Planes are the same, bit for bit.

    O(size of the part). The part keeps the scratch sizes of the whole.
    """
    from maxmargin.models import chain_kernel as ck

    places = PartSizes(bound.meta, len(bound.ints), len(bound.floats)).sections()
    offsets = bound.output_at[first : last + 1]
    tokens, D = slice(int(offsets[0]), int(offsets[-1])), bound.layout.n_dense
    own: dict[int, slice | np.ndarray] = dict.fromkeys((ck.AT_FIXED, ck.AT_LABELS, ck.AT_TOKEN_WEIGHT), tokens)
    own[ck.AT_TOKENS] = offsets - offsets[0]
    own[ck.AT_DENSE] = slice(tokens.start * D, tokens.stop * D)
    for pointers_at, *entries in (
        (ck.AT_ROWS, ck.AT_COLUMNS, ck.AT_VALUES), (ck.AT_EDGE_ROWS, ck.AT_EDGE_COLUMNS, ck.AT_EDGE_VALUES)
    ):  # fmt: skip
        if pointers_at in places:
            rows = bound.ints[places[pointers_at]][tokens.start : tokens.stop + 1]
            own[pointers_at] = rows - rows[0]
            own |= dict.fromkeys(entries, slice(int(rows[0]), int(rows[-1])))
    meta = bound.meta.copy()
    int_keys, float_keys = _keys(meta)
    ints, floats = cut_out(bound.ints, meta, int_keys, own), cut_out(bound.floats, meta, float_keys, own)
    return bound_to(bound.layout, offsets - offsets[0], meta, ints, floats, bound.room)


def _bound(
    layout: ChainLayout, meta: np.ndarray, ints: np.ndarray, floats: np.ndarray, most: np.ndarray | None = None
) -> ChainBound:
    from maxmargin.models import chain_kernel as ck

    places = PartSizes(meta, len(ints), len(floats)).sections()
    offsets = ints[places[ck.AT_TOKENS]].astype(np.int64)
    rows = [ints[places[key]] for key in (ck.AT_ROWS, ck.AT_EDGE_ROWS) if key in places]
    meta[ck.TABLE_BITS], room = plane_size(layout, reach(layout, offsets, rows) if most is None else most)
    return bound_to(layout, offsets, meta, ints, floats, room)


def checked(layout: ChainLayout, meta: np.ndarray, ints: np.ndarray, floats: np.ndarray) -> ChainBound:
    """The model bound to arrays of unknown origin, or a ValueError that names what kernels cannot trust in them."""
    from maxmargin.models import chain_kernel as ck

    expected = layout.sizes
    own = [ck.BINARY, ck.HAS_LABELS, ck.TABLE_BITS, ck.CONSTRAINED, *range(ck.AT_TOKENS, ck.AT_EDGE_VALUES + 1)]
    others = np.setdiff1d(np.arange(ck.META_SIZE), own)
    if meta.dtype != np.int64 or meta.shape != expected.shape or (meta[others] != expected[others]).any():
        raise ValueError("its sizes are not those of its layout")
    if meta[[ck.BINARY, ck.HAS_LABELS, ck.CONSTRAINED]].tolist() != [1, 1, int(layout.constrained)]:
        raise ValueError("its flags are not those of its layout")
    places = PartSizes(meta, len(ints), len(floats)).sections()
    begins = [places[keys[0]].start for keys in _keys(meta)]
    if any(begins) or not all(section.start <= section.stop for section in places.values()):
        raise ValueError("its sections are not one behind the other")

    def part(key: int) -> np.ndarray:
        return (floats if key >= ck.AT_VALUES else ints)[places[key]]

    offsets = pointers(part(ck.AT_TOKENS), "its tokens", "sentence", len(part(ck.AT_LABELS)))
    n_tokens, K = int(offsets[-1]), len(layout.labels)
    for rows, columns, width in (
        (ck.AT_ROWS, ck.AT_COLUMNS, layout.n_sparse), (ck.AT_EDGE_ROWS, ck.AT_EDGE_COLUMNS, layout.n_edge)
    ):  # fmt: skip
        if rows in places:
            if len(part(rows)) != n_tokens + 1:
                raise ValueError("its rows are not one per token")
            _check_rows(part(rows), part(columns), width)
    indices(part(ck.AT_LABELS), K, "its labels")
    same = {ck.AT_PAIR_ROWS: layout.pair_rows, ck.AT_PAIR_LABELS: layout.pair_labels, ck.AT_COST: layout.cost_table}
    same |= {ck.AT_MASK: layout.pair_mask, ck.AT_START_MASK: layout.start_mask, ck.AT_END_MASK: layout.end_mask}
    for key, known in same.items():
        if key in places and known is not None and not np.array_equal(part(key), known.ravel()):
            raise ValueError("its tables are not those of its layout")
    if ck.AT_FIXED in places and not _all_equal(part(ck.AT_FIXED), -1, n_tokens):
        raise ValueError("its fixed labels are not -1 for each token")
    if ck.AT_EDGE_VALUES in places and not _all_equal(part(ck.AT_EDGE_VALUES), 1, len(part(ck.AT_EDGE_COLUMNS))):
        raise ValueError("its values of edge features are not 1 for each entry")
    weights = part(ck.AT_TOKEN_WEIGHT)
    if len(weights) != n_tokens or not (weights.min(initial=1.0) >= 0 and weights.max(initial=0.0) <= 1.0):
        raise ValueError("its weights of tokens are not one per token, from 0 to 1")
    return _bound(layout, meta, ints, floats)


def _all_equal(array: np.ndarray, value: int, length: int) -> bool:
    """Whether an array has so many entries, all of one value; without a copy of it."""
    return len(array) == length and bool(array.min(initial=value) == value == array.max(initial=value))


def _check_rows(starts: np.ndarray, columns: np.ndarray, width: int) -> None:
    """Compressed rows in range; see :func:`maxmargin.door.check_compressed`."""
    from maxmargin.door_kernel import FINE, rows_fault_32

    fault, at = rows_fault_32(starts, columns, width, len(columns))
    if fault != FINE or starts[-1] != len(columns):
        raise ValueError(f"its rows of features are out of range at {at}")
