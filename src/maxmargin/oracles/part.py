"""The oracle of some neighbouring examples of another one, numbered from 0. It travels without the other examples."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from maxmargin.contracts import BoundModel, Fused, Oracle, Sum
from maxmargin.oracles.counting import OracleAround
from maxmargin.planes import Planes

__all__ = ["ElsewhereModel", "HoldsParts", "PartOracle", "offers_parts"]


class PartsModel(BoundModel, Protocol):
    """A bound model with the capability "parts"."""

    def holding(self, first: int, last: int) -> tuple[BoundModel, int]:
        """One with the data of these examples alone (``last`` exclusive), and the number that the first has there."""


class ElsewhereModel(PartsModel, Protocol):
    """A bound model with the capability "elsewhere"."""

    @property
    def largest(self) -> float: ...  # number among its data

    def here(self, first: int, last: int) -> BoundModel:
        """One of these examples alone (``last`` exclusive), numbered from 0, with their data."""


def offers_parts(bound: BoundModel) -> TypeGuard[PartsModel]:
    """Whether a bound model can do without the data of some examples."""
    return "parts" in bound.capabilities


@runtime_checkable
class HoldsParts(Protocol):
    """An oracle that can do without the data of examples that nobody asks it about."""

    def holding(self, first: int, last: int) -> tuple[Oracle, int]:
        """One with the data of ``first`` to ``last`` (exclusive) at least; also, which of its examples is ``first``."""

    @property
    def elsewhere(self) -> ElsewhereModel | None:
        """The model, where its examples are with the workers; then the oracle itself cannot be asked."""

    def here(self, first: int, last: int) -> Oracle:
        """One of these examples alone, numbered from 0, which come here for it."""


class PartOracle(OracleAround):
    """The examples ``first`` to ``last`` (exclusive) of an oracle; columns are those of all.

    Where it is pickled, only the data of these examples are, if the model can be cut so. Examples that are elsewhere
    come to where the part is first asked.
    """

    def __init__(self, oracle: Oracle, first: int, last: int) -> None:
        super().__init__(oracle)
        self.first, self.last, self.n_examples = first, last, last - first

    def __reduce__(self) -> tuple:
        oracle, at = self.oracle, self.first
        if isinstance(oracle, HoldsParts):
            oracle, at = oracle.holding(self.first, self.last)
        return PartOracle, (oracle, at, at + self.n_examples)

    @cached_property
    def _asked(self) -> tuple[Oracle, int]:
        """Whom to ask, and the number that the first example has there."""
        if isinstance(self.oracle, HoldsParts) and self.oracle.elsewhere is not None:
            return self.oracle.here(self.first, self.last), 0
        return self.oracle, self.first

    @property
    def fingerprint(self) -> str:
        """That of the whole, and which part it is."""
        return f"{self.oracle.fingerprint} {self.first}:{self.last}"

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """Those of the whole, under the numbers of the part."""
        oracle, first = self._asked
        planes = oracle.planes(w, np.asarray(examples) + first, most)
        return replace(planes, example=planes.example - first)

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """That of the whole."""
        oracle, first = self._asked
        return oracle.sum(w, np.asarray(examples) + first, scale)

    def predicting(self) -> PartOracle:
        """The same part of the oracle of predictions."""
        oracle, first = self._asked
        return PartOracle(oracle.predicting(), first, first + self.n_examples)

    def spread(self) -> None:
        """A part is not spread any further."""

    def fused(self) -> Fused | None:
        """As the oracle's own, from this part's first example on."""
        oracle, first = self._asked
        fused = oracle.fused()
        return None if fused is None else replace(fused, first=fused.first + first)
