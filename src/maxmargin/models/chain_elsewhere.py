"""A chain bound to sequences that are with the workers: here are their numbers and sizes, there come the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, NoReturn, Protocol

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import Answer, Answers, ModelKernel
from maxmargin.features.sequences import Sequences
from maxmargin.models.base import BoundModel
from maxmargin.models.chain import ChainBound, ChainLayout, pack
from maxmargin.models.chain_digest import Digest, added, digest_of, fingerprint_of
from maxmargin.models.chain_parts import PackedPart, PartSizes, cut, together, unpacked
from maxmargin.models.chain_size import reach

__all__ = ["ChainElsewhere", "Part", "PartFacts"]


class PartFacts(NamedTuple):
    """All that others need to know of a part."""

    sizes: PartSizes
    digest: Digest
    reach: np.ndarray  # see :func:`~maxmargin.models.chain_size.reach`
    largest: float  # number among its data

    @classmethod
    def of(cls, bound: ChainBound) -> PartFacts:
        """Those of a packed part."""
        from maxmargin.models import chain_kernel as ck

        sizes = PackedPart.of(bound).sizes
        places = sizes.sections()
        rows = [bound.ints[places[key]] for key in (ck.AT_ROWS, ck.AT_EDGE_ROWS) if key in places]
        numbers = np.abs(bound.floats)
        largest = float(numbers.max(initial=0.0, where=np.isfinite(numbers)))
        return cls(sizes, digest_of(bound), reach(bound.layout, bound.output_at, rows), largest)


class Part(Protocol):
    """Neighbouring sequences, and how to come by them; it can travel."""

    @property
    def facts(self) -> PartFacts: ...

    def packed(self) -> PackedPart:
        """Its arrays, found or made again where this is asked."""


@dataclass(frozen=True, kw_only=True)
class ChainElsewhere(BoundModel):
    """The chain model bound to the sequences of parts; it answers no questions itself (:meth:`here` does).

    Parameters
    ----------
    parts : sequence of Part
    most : array (3,)
        The largest ``reach`` of all sequences: planes do not depend on who has which.
    """

    layout: ChainLayout
    parts: Sequence[Part]
    most: np.ndarray
    capabilities: frozenset[str] = frozenset({"exact", "parts", "elsewhere"})

    @classmethod
    def of(cls, layout: ChainLayout, parts: Sequence[Part]) -> ChainElsewhere:
        """That of parts in their order, all of this layout."""
        n = sum(part.facts.digest.n for part in parts)
        most = np.max([part.facts.reach for part in parts], axis=0)
        return cls(n_examples=n, layout=layout, parts=parts, most=most)

    @property
    def largest(self) -> float:
        """The largest number among the data."""
        return max(part.facts.largest for part in self.parts)

    @cached_property
    def fingerprint(self) -> str:
        """That of a chain that is bound to all sequences here."""
        return fingerprint_of(self._none, added(part.facts.digest for part in self.parts))

    @cached_property
    def _none(self) -> ChainBound:
        """The chain bound to no sequence at all, with the scratch sizes of all."""
        layout = self.layout
        sparse, edge = (sp.csr_array((0, width), dtype=np.int8) for width in (layout.n_sparse, layout.n_edge))
        nothing = Sequences(np.zeros(1, np.int64), sparse=sparse, edge=edge if layout.n_edge else None)
        return unpacked(layout, PackedPart.of(pack(layout, nothing, np.empty(0, np.int32))), self.most)

    def kernel(self, search: str = "argmax") -> ModelKernel:
        """Functions and sizes, without examples: no loop may run on it."""
        return self._none.kernel(search)

    def holding(self, first: int, last: int) -> tuple[ChainElsewhere, int]:
        """One that knows of the parts of these sequences alone, and the number that the first has there."""
        kept, begin, at = list[Part](), 0, 0
        for part in self.parts:
            end = begin + part.facts.digest.n
            if max(first, begin) < min(last, end):
                at = at if kept else first - begin
                kept.append(part)
            begin = end
        return replace(self, parts=kept, n_examples=sum(part.facts.digest.n for part in kept)), at

    def here(self, first: int, last: int) -> ChainBound:
        """The model bound to the sequences from ``first`` to ``last`` (exclusive) alone, with their arrays."""
        found, begin = list[PackedPart](), 0
        for part in self.parts:
            n = part.facts.digest.n
            own = max(first - begin, 0), min(last - begin, n)
            if own[0] < own[1]:
                found.append(PackedPart.of(cut(unpacked(self.layout, part.packed()), *own)))
            begin += n
        if not found:
            return self._none
        what = "the examples of a shard have"
        return together(self.layout, found, self.most, what, "use more shards, or fewer features (min_count)")

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        self._refuse()

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError("these examples are with the workers of a fit: only shards can be asked about them.")
