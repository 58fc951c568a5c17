"""How many examples a shard visits between two exchanges, from what work and exchanges cost and how much work is lost.

A round of v visits takes ``v t`` seconds of work and e seconds of exchange. The longer it is, the more the shards pull
at the same weights without knowing of each other: of what their changes would gain one by one, a share l is lost when
they are combined. Where what is left falls like ``1 - l = 1 / (1 + v / v0)``, the time for a given gain is proportional
to

    (v t + e) (1 + v / v0) / v,      which is least where      v t l / (1 - l) = e.

If the left side is more, rounds become shorter, if it is less, longer. Two rules keep the latter from being carried too
far. Rounds do not become longer where more than a tenth is lost, since the weights that a shard has not heard of cost
it passes, too, and no round is more than an eighth of a pass, unless its work is less than an eighth of an exchange.

The lost share is counted between certificates. So are the entries of planes and of changes, from which t and e follow
by the constants below. Nothing is timed during a fit: weights must not depend on the clock or on the executor. O(1) for
each round.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

__all__ = ["RoundLength"]

# seconds, rounded from `make bench-scale` and, for workers elsewhere, `make bench-workers`
VISIT, PER_ENTRY = 1e-6, 2.5e-9  # of a visit to a block with the planes it has, and for each entry of these
EXCHANGE, PER_CHANGE = 2e-3, 2.5e-8  # of an exchange without changes, and for each of their entries: sent and applied
FIRST, LEAST, MOST = 64, 8, 256  # visits in a round: before the first certificate, and at any time
PART = 8  # rounds that a pass has at least; also, how much less the work of longer ones must be than an exchange
MUCH, LITTLE = 0.1, 0.01  # shares lost: where it is more, rounds do not become longer; the least that is believed
STEP = 2.0  # by which the length may change at once


@dataclass
class RoundLength:
    """The length of the rounds of a run.

    Parameters
    ----------
    visits : int
        Of each shard in a round.
    blocks : int
        Of a shard; 0 where ``visits`` stays.
    """

    visits: int
    blocks: int = 0
    rounds: int = 0  # since the last certificate,
    entries: int = 0  # those of their changes,
    alone: float = 0.0  # what each change would have gained without the others,
    together: float = 0.0  # and what they have gained

    @classmethod
    def of(cls, visits: int | None, blocks: int, columns: int) -> RoundLength:
        """That of rounds of so many visits; for None, the first one for shards of so many blocks, and columns of u."""
        if visits is not None:
            return cls(visits)
        length = cls(FIRST, blocks)
        length.visits = min(FIRST, length.most(columns))  # no plane has more entries
        return length

    def most(self, plane_entries: float) -> int:
        """The longest rounds for blocks of so many entries."""
        negligible = EXCHANGE / (PART * _work(plane_entries))
        return min(max(self.blocks // PART, int(negligible), LEAST), MOST)

    def resume(self, visits: int) -> None:
        """Go on with the length of an earlier run."""
        if self.blocks:
            self.visits = min(max(visits, LEAST), MOST)

    def note(self, alone: float, together: float, entries: int) -> None:
        """A round has been combined."""
        self.rounds += 1
        self.entries += entries
        self.alone += alone
        self.together += together

    def adjust(self, plane_entries: float) -> None:
        """Choose the length of the next rounds; ``plane_entries`` is the mean over the blocks."""
        if self.blocks and self.rounds and self.alone > 0.0:
            work = self.visits * _work(plane_entries)
            exchange = EXCHANGE + PER_CHANGE * self.entries / self.rounds
            lost = min(max(1.0 - self.together / self.alone, LITTLE), 1.0 - LITTLE)
            change = sqrt(exchange * (1.0 - lost) / (lost * work))
            change = min(max(change, 1.0 / STEP), STEP if lost <= MUCH else 1.0)
            self.visits = min(max(round(self.visits * change), LEAST), self.most(plane_entries))
        self.rounds, self.entries, self.alone, self.together = 0, 0, 0.0, 0.0


def _work(plane_entries: float) -> float:
    """Seconds of a visit to a block with so many entries."""
    return VISIT + PER_ENTRY * plane_entries
