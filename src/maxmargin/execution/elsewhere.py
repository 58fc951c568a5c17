"""The oracle of examples that are with the workers: each worker is asked about those that it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from weakref import finalize

import numpy as np

from maxmargin.contracts import Executor, Oracle, Sum
from maxmargin.oracles.counting import OracleAround, all_losses
from maxmargin.oracles.oracle import reduced
from maxmargin.oracles.part import PartOracle
from maxmargin.planes import Planes

__all__ = ["OracleElsewhere"]


@dataclass
class _Holder:
    """Some of the examples; a resident of an executor."""

    oracle: PartOracle

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int) -> Planes:
        return self.oracle.planes(w, examples, most)

    def losses(self, w: np.ndarray) -> np.ndarray:
        return all_losses(self.oracle, w)


class OracleElsewhere(OracleAround):
    """Asks the workers of an executor, none of which has all examples.

    Shards have their examples with them; this one is for questions of the driver, as when a checkpoint is checked.
    """

    def __init__(self, oracle: Oracle, executor: Executor) -> None:
        super().__init__(oracle)
        self.executor = executor
        self.ends = np.linspace(0, oracle.n_examples, min(executor.n_workers, oracle.n_examples) + 1).astype(int)
        self._homes: list[int] = []

    def predicting(self) -> OracleElsewhere:
        """That of the oracle, on the same workers."""
        return OracleElsewhere(self.oracle.predicting(), self.executor)

    def fused(self) -> None:
        """None: compiled loops have no examples here."""

    def spread(self) -> tuple[Oracle, Executor]:
        """The oracle without workers, and the workers: they need the examples only once, so those here are let go."""
        self.executor.release(self._homes)
        self._homes = []
        return self.oracle, self.executor

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """As the oracle's own: planes are computed example by example."""
        examples = np.asarray(examples)
        owner = np.searchsorted(self.ends, examples, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(examples)]
        homes, calls, firsts = self._started(), [], []
        for begin, end in pairwise(cuts):
            k = int(owner[begin]) if end > begin else 0
            firsts.append(int(self.ends[k]))
            calls.append((homes[k], (w, examples[begin:end] - firsts[-1], most)))
        found = zip(self.executor.call("planes", calls), firsts, strict=True)
        return Planes.concatenate([replace(part, example=part.example + first) for part, first in found])

    def losses(self, w: np.ndarray) -> np.ndarray:
        """Those of all examples at ``w``: only they come here, and all workers find them at once."""
        return np.concatenate(self.executor.call("losses", [(home, (w,)) for home in self._started()]))

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """The planes added up here: the order of sums does not depend on the workers."""
        return reduced(self.planes(w, examples), scale, w)

    def _started(self) -> list[int]:
        if not self._homes:
            parts = [PartOracle(self.oracle, *own) for own in pairwise(self.ends.tolist())]
            self._homes = self.executor.start([_Holder(part) for part in parts])
            finalize(self, self.executor.release, self._homes)
        return self._homes
