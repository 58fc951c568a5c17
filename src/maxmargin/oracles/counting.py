"""A wrapper that counts and times oracle calls and keeps the verb."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.kernel import clock
from maxmargin.oracles.wrapper import OracleWrapper
from maxmargin.planes import Planes

__all__ = ["CountingOracle"]


class CountingOracle(OracleWrapper):
    """Counts ``oracle_calls`` (one per example asked), ``argmax_calls`` and the ``seconds`` they took.

    Parameters
    ----------
    oracle : any oracle
    """

    def __init__(self, oracle: Any) -> None:
        super().__init__(oracle)
        self.oracle_calls = 0
        self.argmax_calls = 0
        self.seconds = 0.0
        self.timed_calls = 0  # calls and seconds of what went through this object, for those who bypass it
        self.timed_seconds = 0.0

    def planes(self, w: np.ndarray, examples: np.ndarray, known: np.ndarray | None = None) -> Planes:
        """As the oracle's own."""
        begin = clock()
        planes = self.oracle.planes(w, examples, known)
        self._count(len(examples), begin)
        return planes

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """As the oracle's own."""
        begin = clock()
        result = self.oracle.sum(w, examples, scale)
        self._count(len(examples), begin)
        return result

    def _count(self, calls: int, begin: float) -> None:
        spent = clock() - begin
        self.seconds += spent
        self.timed_seconds += spent
        self.timed_calls += calls
        self.oracle_calls += calls
        self.argmax_calls += calls
