"""The oracle of some neighbouring examples of another one, numbered from 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.contracts import Fused, Oracle, Sum
from maxmargin.oracles.counting import OracleAround
from maxmargin.planes import Planes

__all__ = ["PartOracle"]


class PartOracle(OracleAround):
    """The examples ``first`` to ``last`` (exclusive) of an oracle; columns are those of all."""

    def __init__(self, oracle: Oracle, first: int, last: int) -> None:
        super().__init__(oracle)
        self.first, self.last, self.n_examples = first, last, last - first

    @property
    def fingerprint(self) -> str:
        """That of the whole, and which part it is."""
        return f"{self.oracle.fingerprint} {self.first}:{self.last}"

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """Those of the whole, under the numbers of the part."""
        planes = self.oracle.planes(w, np.asarray(examples) + self.first, most)
        return replace(planes, example=planes.example - self.first)

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """That of the whole."""
        return self.oracle.sum(w, np.asarray(examples) + self.first, scale)

    def predicting(self) -> PartOracle:
        """The same part of the oracle of predictions."""
        return PartOracle(self.oracle.predicting(), self.first, self.last)

    def spread(self) -> None:
        """A part is not spread any further."""

    def fused(self) -> Fused | None:
        """As the oracle's own, from this part's first example on."""
        fused = self.oracle.fused()
        return None if fused is None else replace(fused, first=fused.first + self.first)
