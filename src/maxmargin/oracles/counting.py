"""Oracles around another one, and the one that counts and times what is asked."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from maxmargin.contracts import Executor, Fused, Oracle, Sum
from maxmargin.kernel import clock
from maxmargin.planes import Planes

__all__ = ["CountingOracle", "OracleAround", "TellsLosses", "all_losses"]

AT_ONCE = 2048  # examples whose planes are held together when only their losses count


class OracleAround:
    """What an oracle that passes questions on has from the one behind it."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.n_examples, self.n_columns = oracle.n_examples, oracle.n_columns
        self.longest, self.batch_hint = oracle.longest, oracle.batch_hint

    @property
    def fingerprint(self) -> str:
        return self.oracle.fingerprint

    def fused(self) -> Fused | None:
        """A compiled loop runs in the thread that asks, past this object."""
        return self.oracle.fused()


class CountingOracle(OracleAround):
    """Counts ``oracle_calls`` (one per example asked), the ``argmax_calls`` of their searches and the ``seconds``.

    ``unproven`` counts the calls whose search has not proven its answer to be the best: their bound is open. Compiled
    loops, which go past this object, tell it by :meth:`count_fused`.
    """

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle)
        self.restore(0, 0, 0.0)
        self.unproven = 0
        self._timed = (0, 0.0)  # calls and seconds of what went through this object

    def predicting(self) -> Oracle:
        """That of the oracle, not counted."""
        return self.oracle.predicting()

    def spread(self) -> tuple[Oracle, Executor] | None:
        """That of the oracle, not counted."""
        return self.oracle.spread()

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """As the oracle's own."""
        begin = clock()
        planes = self.oracle.planes(w, examples, most)
        self.count_timed(len(examples), begin, planes.counts)
        return planes

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """As the oracle's own."""
        begin = clock()
        result = self.oracle.sum(w, examples, scale)
        self.count_timed(len(examples), begin, result.counts)
        return result

    def count(self, calls: int, seconds: float = 0.0, counts: tuple[int, int] | None = None) -> None:
        """Note calls that went past this object; ``counts`` as in :class:`~maxmargin.planes.Planes`."""
        queries, unproven = (calls, 0) if counts is None else counts
        self.oracle_calls += calls
        self.argmax_calls += queries
        self.unproven += unproven
        self.seconds += seconds

    def count_fused(self, calls: int, spent: float, counts: tuple[int, int]) -> float:
        """Note calls of a loop that decodes and solves; returns the share of its seconds that counts as the oracle's.

        That share is what the calls would have taken at the pace of those that were timed.
        """
        timed, seconds = self._timed
        share = min(spent, calls * seconds / timed) if timed else 0.0
        self.count(calls, share, counts)
        return share

    def restore(self, oracle_calls: int, argmax_calls: int, seconds: float) -> None:
        """Go on counting where an earlier run ended."""
        self.oracle_calls, self.argmax_calls, self.seconds = int(oracle_calls), int(argmax_calls), float(seconds)

    def count_timed(self, calls: int, begin: float, counts: tuple[int, int] | None) -> None:
        """Note calls that have just been answered, asked at ``begin`` of the clock."""
        spent = clock() - begin
        self._timed = (self._timed[0] + calls, self._timed[1] + spent)
        self.count(calls, spent, counts)


@runtime_checkable
class TellsLosses(Protocol):
    """An oracle whose planes need not pass by for their losses."""

    def losses(self, w: np.ndarray) -> np.ndarray:
        """Those of all examples at ``w``."""


def all_losses(oracle: Oracle, w: np.ndarray) -> np.ndarray:
    """Losses (or upper bounds of them) of all examples at ``w``; planes are let go as they come."""
    if isinstance(oracle, TellsLosses):
        return oracle.losses(w)
    losses = np.zeros(oracle.n_examples)
    for begin in range(0, oracle.n_examples, AT_ONCE):
        planes = oracle.planes(w, np.arange(begin, min(begin + AT_ONCE, oracle.n_examples)))
        losses[planes.example] = planes.bound
    return losses
