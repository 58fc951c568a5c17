"""A shard of the dual: some examples with their planes and multipliers, and a copy of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.kernel import clock
from maxmargin.planes import Planes
from maxmargin.solvers import shard_kernel as sk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.block_selection import select
from maxmargin.solvers.engine import NO_SIGNS, DualEngine
from maxmargin.solvers.state import DualState

__all__ = ["Asked", "Change", "Shard"]


class Asked(NamedTuple):
    """What a round has asked the oracle, and the seconds that it took."""

    calls: int = 0
    argmax_calls: int = 0
    unproven: int = 0
    seconds: float = 0.0


class Change(NamedTuple):
    """What a round has changed: u, and what any share x of it gains, ``x slope - x^2 norm / 2``."""

    columns: np.ndarray = np.empty(0, np.int32)  # (m,): those of u that have changed, none twice,
    before: np.ndarray = np.empty(0)  # (m,): what they were,
    values: np.ndarray = np.empty(0)  # (m,): and by how much
    slope: float = 0.0
    norm: float = 0.0
    asked: Asked = Asked()


class Before(NamedTuple):
    """Blocks of a round, the planes that each had before it, and the multipliers of these and of the origin."""

    blocks: np.ndarray  # int64 (m,)
    held: np.ndarray  # int32 (m,)
    alpha: np.ndarray  # float64 (m, width)
    origin: np.ndarray  # float64 (m,)


class Shard:
    """Visits its blocks, some in each round, and keeps the share of a change that it is told to keep.

    Parameters
    ----------
    number : int
        Its place among all shards.
    engine : DualEngine
        Visits blocks. It forgets no plane; the shard does, once it is settled how much of a change stays.
    state : DualState
        Of the problem of its own examples, but for u and w, which are those of all shards.
    patience : int
        Visits that a plane without weight survives.
    visits_per_round : int
    alone : bool
        Whether there is no other shard: then every change stays as it is, and none is noted.
    """

    def __init__(
        self, number: int, engine: DualEngine, state: DualState, patience: int, visits_per_round: int, *, alone: bool
    ) -> None:
        self.number, self.engine, self.state = number, engine, state
        self.patience, self.visits_per_round = patience, visits_per_round
        if not alone:
            d = len(state.u)
            seen, columns, before = np.zeros(d // 8 + 1, np.uint8), np.empty(d, np.int32), np.empty(d)
            state.log = wk.Log(seen, columns, before, np.zeros(1, np.int64))
        positive = state.problem.positive
        self.positive = NO_SIGNS if positive is None else positive.astype(np.int8)
        self.plan: list[Planes | np.ndarray] = []  # for each round: planes to bring in, or blocks to visit,
        self.again = False  # with the planes that they have
        self.open: Before | None = None  # the last round, until it is settled
        self.stamp = 0  # its number, of all rounds of the run

    def start_from(self, whole: DualState) -> None:
        """Let the copy of the weights be those of a state."""
        self.state.u[:] = whole.u
        self.state.w[:] = whole.w

    def count(self, share: float) -> int:
        """Blocks in a share of all."""
        return max(1, round(share * self.state.n_blocks))

    # --- verbs --------------------------------------------------------------------------------------------------------

    def plan_planes(self, planes: Planes) -> int:
        """Plan to bring in planes, sorted by block; returns the number of rounds."""
        ends = np.append(np.flatnonzero(np.diff(planes.example)) + 1, len(planes)).tolist()
        cuts = [0, *ends[self.visits_per_round - 1 : -1 : self.visits_per_round], ends[-1]]
        self.plan = [planes.between(begin, end) for begin, end in pairwise(cuts)]
        return len(self.plan)

    def plan_visits(self, policy: str, share: float, seed: tuple[int, ...]) -> int:
        """Plan to visit a share of the blocks with new planes; returns the number of rounds."""
        store, rng = self.state.working_set.store, np.random.default_rng(seed)
        self.again = False
        return self._plan(select(policy, store, rng, self.count(share), self.state.cursor))

    def plan_again(self, seed: tuple[int, ...]) -> int:
        """Plan to visit all blocks with the planes that they have, in random order; returns the number of rounds."""
        self.again = True
        return self._plan(np.random.default_rng(seed).permutation(self.state.n_blocks))

    def _plan(self, blocks: np.ndarray) -> int:
        size = self.visits_per_round
        self.plan = [blocks[begin : begin + size] for begin in range(0, len(blocks), size)]
        return len(self.plan)

    def round(self, number: int, stamp: int, tau: float, shares: Sequence[float], changes: Sequence[Change]) -> Change:
        """Settle the round before; then the work that is planned for this one, at the weights that all shards know."""
        begin, state, oracle = clock(), self.state, self.state.oracle
        self.settle(shares, changes)
        self.stamp = stamp
        if number >= len(self.plan):
            return Change()
        work, ws, state.tau = self.plan[number], state.working_set, tau
        calls, argmax_calls, unproven = oracle.oracle_calls, oracle.argmax_calls, oracle.unproven
        self.open = self._remember(np.unique(work.example if isinstance(work, Planes) else work))
        if isinstance(work, Planes):
            gain = self.engine.take_in(state, work)
        else:
            gain = self.engine.revisit(state, work) if self.again else self.engine.visit(state, work)
        if ws.limit is not None:  # planes were merged: what was before cannot be had back
            raise MemoryError(
                f"a shard needs more than its {ws.budget / 2**20:.3g} MB for planes. Raise the solver's memory, or use "
                'solver="auto", which merges planes.'
            )
        asked = oracle.oracle_calls - calls, oracle.argmax_calls - argmax_calls, oracle.unproven - unproven
        if state.log is None:
            return Change(slope=gain, asked=Asked(*asked, clock() - begin))
        n, sums = int(state.log.size[0]), np.empty(2)
        columns, before, values = state.log.columns[:n].copy(), state.log.before[:n].copy(), np.empty(n)
        sk.collect(state.log, state.u, self.positive, values, sums)
        excess, norm = sums.tolist()  # to more digits than the product of change and weights; visits never lose
        values /= state.echo
        slope = max(gain, 0.0) + excess / state.echo
        return Change(columns, before, values, slope, norm / state.echo**2, Asked(*asked, clock() - begin))

    def _remember(self, blocks: np.ndarray) -> Before:
        store, m = self.state.working_set.store, len(blocks)
        before = Before(blocks, np.empty(m, np.int32), np.empty((m, store.slots.shape[1])), np.empty(m))
        sk.remember(store, *before)
        return before

    def products(self, changes: Sequence[Change]) -> list[float]:
        """Products of the change of this shard with those of others."""
        u, echo = self.state.u, self.state.echo
        return [sk.product(change.columns, change.before, change.values, u) / echo for change in changes]

    def settle(self, shares: Sequence[float], changes: Sequence[Change]) -> None:
        """Keep a share of the change, forget idle planes, and take over what the other shards have changed.

        Without ``changes``, u is left as it is: it has to be made anew.
        """
        state, store = self.state, self.state.working_set.store
        if self.open is not None:
            if shares[self.number] < 1.0:
                sk.retreat(store, *self.open, shares[self.number])
            sk.drop_idle(store, self.open.blocks, self.patience)
            self.open = None
        for s, change in enumerate(changes):
            rest = shares[s] - (state.echo if s == self.number else 0.0)
            if rest != 0.0 and len(change.columns):
                sk.advance(change.columns, change.values, rest, state.u, state.w, self.positive)
