"""A wrapper that answers from planes it has seen and keeps the verb."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from maxmargin.oracles.wrapper import OracleWrapper
from maxmargin.planes import Planes

__all__ = ["CachedOracle"]


class CachedOracle(OracleWrapper):
    """Answers with a plane seen before when it is violated enough, and asks the oracle otherwise.

    A remembered plane serves when its violation reaches ``share`` times the last loss of its example, after Osokin et
    al. 2016. It says nothing about outputs not seen, so its bound is ``inf``: for certificates ask with ``exact=True``.

    Parameters
    ----------
    oracle : any oracle
    size : int
        Planes remembered for each example.
    share : float
    """

    def __init__(self, oracle: Any, *, size: int = 10, share: float = 0.25) -> None:
        super().__init__(oracle)
        self.size = size
        self.share = share
        self.hits = 0
        self._seen: dict[int, deque] = {}
        self._last: dict[int, float] = {}

    def planes(
        self, w: np.ndarray, examples: np.ndarray, known: np.ndarray | None = None, *, exact: bool = False
    ) -> Planes:
        """Planes of ``examples`` at ``w``; those remembered come with ``bound = inf``."""
        found: dict[int, tuple] = {}
        if not exact:
            for i in map(int, examples):
                best, top = None, self.share * self._last.get(i, np.inf)
                for index, value, b in self._seen.get(i, ()):
                    violation = b - w[index] @ value
                    if violation > 0 and violation >= top:
                        best, top = (index, value, b), violation
                if best is not None:
                    found[i] = best
        self.hits += len(found)
        asked = np.array([i for i in map(int, examples) if i not in found], dtype=np.int64)
        fresh = self.oracle.planes(w, asked, known) if len(asked) else None
        by_example: dict[int, list[int]] = {}
        if fresh is not None:
            for p, i in enumerate(fresh.example.tolist()):
                by_example.setdefault(i, []).append(p)
        rows, b, example, bound = [], [], [], []
        for i in map(int, examples):
            if i in found:
                rows.append(found[i][:2])
                b.append(found[i][2])
                example.append(i)
                bound.append(np.inf)
                continue
            assert fresh is not None
            for p in by_example[i]:
                cut = slice(fresh.indptr[p], fresh.indptr[p + 1])
                row = (fresh.indices[cut], fresh.data[cut])
                rows.append(row)
                b.append(fresh.b[p])
                example.append(i)
                bound.append(fresh.bound[p])
                self._seen.setdefault(i, deque(maxlen=self.size)).append((*row, fresh.b[p]))
                self._last[i] = fresh.bound[p]
        return Planes.from_rows(rows, np.array(b), np.array(example), np.array(bound), self.n_columns)

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """As the oracle's own; sums are not remembered."""
        return self.oracle.sum(w, examples, scale)
