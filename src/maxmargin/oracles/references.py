"""The oracle of examples with several good outputs: planes ``phi(good) - phi(bad)`` with a margin of 1.

    all      loss_i(w) = max over good g, bad y of           1 - w . (phi(g) - phi(y))
    nearest  loss_i(w) = max over bad y, g the nearest good, 1 - w . (phi(g) - phi(y))

or 0 where that is negative. "all" is separable: the worst good output against the best bad one. "nearest" is not, and
the rule as printed misses violated rows. So bad outputs are looked at from the best on, until the next cannot violate
its margin by more than the best found: even against the worst good one it has ``1 + score(y) - min_g score(g)``. Both
need the k best outputs only. Wang, Shawe-Taylor 2009, formulations (7) and (8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxmargin.contracts import ListingModel, Sum
from maxmargin.models.base import digest
from maxmargin.models.user import merged
from maxmargin.oracles.oracle import BoundOracle, reduced
from maxmargin.planes import Planes

__all__ = ["PAIRINGS", "ReferenceOracle", "hamming"]

PAIRINGS = ("all", "nearest")
MOST_SCANNED = 2048  # outputs that a scan looks at; beyond, its bound is what the next could reach
AT_ONCE = 64  # examples, whose outputs are listed in plain Python

Closeness = Callable[[np.ndarray, np.ndarray], float]


class Pair(NamedTuple):
    """``1 - w . (phi(good) - phi(bad))``, the position of the good output, and the codes of the bad one."""

    value: float
    good: int
    bad: np.ndarray


def hamming(good: np.ndarray, bad: np.ndarray) -> float:
    """The number of parts in which two outputs differ."""
    return float(np.count_nonzero(good != bad))


@dataclass(frozen=True)
class ReferenceOracle(BoundOracle):
    """Planes of a bound model against the good outputs of each example."""

    model: ListingModel
    good: tuple[np.ndarray, ...]  # int (n_good, parts) of each example: codes, no row twice
    pairing: str = "all"
    closeness: Closeness = hamming

    @property
    def n_columns(self) -> int:
        return self.model.n_weights

    @property
    def longest(self) -> int:
        kernel = self.model.kernel()
        return self.n_columns if kernel is None else min(2 * kernel.room, self.n_columns)

    @property
    def batch_hint(self) -> int:
        return AT_ONCE

    @cached_property
    def fingerprint(self) -> str:
        return f"{self.model.fingerprint} {self.pairing} {digest(*self.good)}"

    @cached_property
    def _margin(self) -> float:
        """b of every plane: that of unit margins, whatever a bad output costs."""
        from maxmargin.oracles.rescaling_kernel import UNIT, rescaled

        return float(rescaled(UNIT, 1.0, 1.0)[1])

    @cached_property
    def _references(self) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """``phi(x, y_i) - phi(x, g)`` of every good output."""
        return [[self.model.difference(i, g) for g in codes] for i, codes in enumerate(self.good)]

    @cached_property
    def _contents(self) -> list[list[np.ndarray]]:
        """What tells the good outputs from others."""
        return [[self.model.content(i, g) for g in codes] for i, codes in enumerate(self.good)]

    def fused(self) -> None:
        """None: outputs are listed in Python."""

    def predicting(self) -> ReferenceOracle:
        """The same planes: a prediction that is bad is the best bad output."""
        return self

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """Up to ``most`` planes of each example, the most violated first, and a proven bound of its loss."""
        rows, b, owner, bounds, queries, unproven = [], [], [], [], 0, 0
        for i in map(int, examples):
            pairs, bound, asked = self._violated(w, i)
            queries, unproven = queries + asked, unproven + (bound > max(pairs[0].value, 0.0))
            for pair in pairs[:most]:
                rows.append(self._plane(i, pair))
                b.append(self._margin)
                owner.append(i)
                bounds.append(max(bound, 0.0))
        planes = Planes.from_rows(rows, np.array(b), np.array(owner), np.array(bounds), self.n_columns)
        return replace(planes, counts=(queries, unproven))

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """The most violated planes, added up."""
        return reduced(self.planes(w, examples), scale, w)

    def _plane(self, i: int, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        """``phi(good) - phi(bad)``: the differences from the true output, subtracted."""
        (at, x), (other, y) = self.model.difference(i, pair.bad), self._references[i][pair.good]
        return merged(np.concatenate([at, other]).astype(np.int64), np.concatenate([x, -y]))

    def _violated(self, w: np.ndarray, i: int) -> tuple[list[Pair], float, int]:
        """Pairs, the most violated first, an upper bound of the values of all, and how many lists it took."""
        below = np.array([float(w[at] @ x) for at, x in self._references[i]])  # score of y_i less that of each good
        worst, known = int(below.argmax()), {content.tobytes() for content in self._contents[i]}
        pairs: list[Pair] = []
        best, seen, k, asked = -np.inf, 0, len(known) + 1, 0
        while True:
            asked += 1
            codes, scores = self.model.k_best(w, i, k)
            codes = np.ascontiguousarray(codes, np.int32)
            at, x = self.model.difference(i, codes[0])
            truth = float(scores[0] + w[at] @ x)  # score of y_i
            for code, score in zip(codes[seen:], scores[seen:].tolist(), strict=True):
                if self.model.content(i, code).tobytes() in known:
                    continue
                if self._margin + score - truth + below[worst] <= best:  # no further one can be violated more
                    return sorted(pairs, key=_least_first), best, asked
                if self.pairing == "all":
                    values = self._margin + score - truth + below
                    order = np.argsort(-values, kind="stable").tolist()
                    return [Pair(float(values[g]), g, code) for g in order], float(values[worst]), asked
                good = self._nearest(i, code)
                pairs.append(Pair(float(self._margin + score - truth + below[good]), good, code))
                best = max(best, pairs[-1].value)
            if len(codes) < k:  # these are all outputs
                return sorted(pairs, key=_least_first), best, asked
            if k >= MOST_SCANNED:
                reach = max(best, float(self._margin + scores[-1] - truth + below[worst]))
                return sorted(pairs, key=_least_first), reach, asked
            seen, k = k, 2 * k + 8

    def _nearest(self, i: int, bad: np.ndarray) -> int:
        """The good output nearest to a bad one; the first of those that are equally near."""
        content = self.model.content(i, bad)
        return int(np.argmin([self.closeness(good, content) for good in self._contents[i]]))


def _least_first(pair: Pair) -> float:
    return -pair.value
