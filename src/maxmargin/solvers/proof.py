"""What saved planes claim, held against the oracle.

A plane (a, b) of example i says ``loss_i(w) >= b - w . a`` at every w. A checkpoint may hold planes of no output, and
the dual value of their multipliers would prove nothing. So each is looked at where the losses are known. When a run is
resumed, that is at zero weights, where ``b`` may not exceed the largest cost, at the weights that it resumes with, and
at weights around these that nobody can foresee. Afterwards it is at the weights of every certificate, which asks for
the losses anyway. A run that has converged with a false plane ends where that plane touches the losses, so none is
above them there; but on one side it is. So in the end, planes with weight are looked at in the direction in which each
rises above the others of its block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.problem import Problem
from maxmargin.planes import Planes
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.blocks import Blocks, totals
from maxmargin.solvers.saved import Saved
from maxmargin.solvers.working_set import WorkingSet

if TYPE_CHECKING:
    from maxmargin.solvers.state import DualState

__all__ = ["ROUNDING", "Claims", "Losses", "agree", "check_around", "check_at", "first_tilted"]

FALSE_PLANES = "has led to a plane that lies above the losses"
ROUNDING = 1e-7  # by which saved numbers may differ from what they are made of, relative to their parts
PROBES = (0.1, 0.5, 1.0)  # distances of the random weights, as shares of sqrt(2 gap), within which the optimum is
STEPS, ROUNDS = (0.01, 0.1), 3  # how far planes are followed, as shares of the length of the weights, and how often
TINY = 1e-6  # of the distance at which a plane comes to 0: weights that are shorter are none
LOOKS, PASSES = 1200, 4  # how many points that may take, and argmaxes as multiples of the examples


class Claims(NamedTuple):
    """Planes where they are stored: row r has ``length[r]`` entries from ``start[r]`` on, and is of ``owner[r]``."""

    start: np.ndarray
    length: np.ndarray
    columns: np.ndarray
    entries: np.ndarray
    b: np.ndarray
    owner: np.ndarray

    @classmethod
    def of_planes(cls, planes: Planes) -> Claims:
        start, length = planes.indptr[:-1], np.diff(planes.indptr)
        return cls(start, length, planes.indices, planes.data, planes.b, planes.example.astype(np.int64))

    @classmethod
    def of_set(cls, ws: WorkingSet) -> Claims:
        store, blocks = ws.store, np.arange(ws.n_blocks)
        ids, owner = ws.ids(blocks), np.repeat(blocks, store.held)
        length = store.length[ids].astype(np.int64)
        return cls(store.start[ids], length, store.columns, store.entries, store.b[ids], owner)


class Losses:
    """The losses of all examples of a problem at some weights."""

    def __init__(self, problem: Problem, blocks: Blocks) -> None:
        n, members = problem.n_examples, blocks.members
        self.problem, self.total = problem, totals(problem, blocks)
        if members is None:
            self.share = sp.eye_array(n, format="csr")
        else:  # planes of blocks carry the weights of their examples
            ends, own = np.cumsum([0, *map(len, members)]), np.concatenate(members)
            self.share = sp.csr_array((problem.weight[own], own, ends), shape=(len(members), n))
        self.points: list[tuple[np.ndarray, np.ndarray]] = []

    @classmethod
    def around(cls, saved: Saved, problem: Problem, blocks: Blocks, w: np.ndarray, dual: float = 0.0) -> Losses:
        """Those at w (n_columns,), where the dual value is claimed, at zero, and at random weights around w."""
        made, d = cls(problem, blocks), problem.n_weights
        made.add(w, saved.losses(problem, w))
        made.add(np.zeros(len(w)), saved.losses(problem, np.zeros(len(w))))
        gap = problem.primal(w, made.points[0][1]) - dual
        for share, direction in zip(PROBES, saved.directions(d, len(PROBES)), strict=True):
            at = w.copy()
            # log-probabilities may only fall, each by a number near 1
            step = np.sqrt(2.0 * max(gap, 0.0)) * direction if problem.quadratic else -np.sqrt(d) * np.abs(direction)
            at[:d] = problem.feasible(w[:d] + share * step)
            if np.isfinite(at).all():
                made.add(at, saved.losses(problem, at))
        return made

    def add(self, w: np.ndarray, losses: np.ndarray) -> Losses:
        """Know the losses (n_examples,) at weights (n_columns,) too."""
        counted = np.where(self.problem.weight > 0, np.maximum(losses, 0.0), 0.0)
        self.points.append((np.ascontiguousarray(w[: self.problem.n_weights]), counted))
        return self

    def exceeded(self, claims: Claims) -> int:
        """The block of the first plane that is above what its examples can lose at some point, or -1.

        Planes of blocks of weight 0 count for nothing. O(non-zeros) for each point.
        """
        return self._first(claims, self.total, [self.share @ losses for _, losses in self.points])

    def sum_exceeded(self, linear: float, u: np.ndarray) -> bool:
        """Whether the sum over all planes, ``sum alpha b`` and ``sum alpha a``, is above all losses times C_i."""
        d = self.problem.n_columns
        at, entries = np.zeros(1, np.int64), np.ascontiguousarray(u[:d])
        whole = Claims(at, at + d, np.arange(d, dtype=np.int32), entries, np.array([linear]), at)
        most = [np.array([self.problem.weight @ losses]) for _, losses in self.points]
        return self._first(whole, np.ones(1), most) >= 0

    def _first(self, claims: Claims, total: np.ndarray, most: list[np.ndarray]) -> int:
        from maxmargin.solvers.saved_kernel import first_above

        lift = self.problem.lift
        for (w, losses), limit in zip(self.points, most, strict=True):
            slacks = np.empty(0) if lift is None else np.divide(losses, lift, out=np.zeros_like(lift), where=lift > 0)
            row = int(first_above(*claims, total, w, limit, slacks, lift is not None, ROUNDING))
            if row >= 0:
                return int(claims.owner[row])
        return -1


def check_at(state: DualState, w: np.ndarray, losses: np.ndarray) -> None:
    """Refuse the planes of a resumed run that are above the losses (n_examples,) which are known at w."""
    if state.resumed:
        claims = Claims.of_set(state.working_set)
        if Losses(state.problem, state.blocks).add(w, losses).exceeded(claims) >= 0:
            raise Saved({}, state.resumed).refusal("set/entries", FALSE_PLANES)


def check_around(state: DualState, problem: Problem, w: np.ndarray) -> None:
    """Refuse the planes of a resumed run that rise above the losses near w."""
    if state.resumed and first_tilted(problem, state.blocks, state.working_set, w) >= 0:
        raise Saved({}, state.resumed).refusal("set/entries", FALSE_PLANES)


def first_tilted(problem: Problem, blocks: Blocks, ws: WorkingSet, w: np.ndarray) -> int:
    """The block of a plane with weight that rises above the losses near w (n_columns,), or -1.

    At w it touches the losses, if the weights are optimal for the planes at hand. From there it is followed away from
    the other planes of its block that have weight, and then also away from those that are found above it on the way.
    Blocks come in random order until ``LOOKS`` or ``PASSES`` are spent; a Ctrl-C ends the search.
    """
    store, looks, calls = ws.store, LOOKS, 0
    search = _Search(problem, blocks, w)
    try:
        for block in np.random.default_rng().permutation(np.flatnonzero((store.held > 0) & (store.total > 0))).tolist():
            examples = np.array([block]) if blocks.members is None else blocks.members[block]
            ids = ws.ids(np.array([block]))
            ids = ids[store.alpha[ids] > 0]
            for plane in ids.tolist():
                for share in STEPS:
                    away = [(other, store.alpha[other]) for other in ids.tolist() if other != plane]
                    if search.rises(store, plane, away, block, examples, share):
                        return block
                    looks, calls = looks - ROUNDS, calls + ROUNDS * len(examples)
                    if looks <= 0 or calls >= PASSES * problem.n_examples + LOOKS:
                        return -1
    except KeyboardInterrupt:
        pass
    return -1


class _Search:
    """Follows single planes from given weights."""

    def __init__(self, problem: Problem, blocks: Blocks, w: np.ndarray) -> None:
        self.problem, self.losses, self.w = problem, Losses(problem, blocks), w
        self.size, self.at = float(np.linalg.norm(w[: problem.n_weights])), w[: problem.n_columns].copy()
        self.away = np.zeros(problem.n_columns)  # where to go; zeros between two calls

    def rises(
        self, store: wk.Store, plane: int, others: list[tuple[int, float]], block: int, examples: np.ndarray,
        share: float,
    ) -> bool:  # fmt: skip
        """Whether a plane is above the losses at one of ``ROUNDS`` points, each a share of |w| away."""
        problem, d, total = self.problem, self.problem.n_weights, sum(alpha for _, alpha in others)
        begin, end = store.start[plane], store.start[plane] + store.length[plane]
        columns, entries = store.columns[begin:end], store.entries[begin:end]
        claim = Claims(
            np.zeros(1, np.int64), np.array([len(columns)]), columns, entries, store.b[[plane]], np.array([block])
        )
        length = float(np.linalg.norm(entries))
        reach = abs(float(store.b[plane])) / length if length > 0 else 1.0  # where it comes to 0: the unit near w = 0
        size = self.size if self.size > TINY * reach else reach
        weight = np.ones(1) if len(self.losses.total) == problem.n_examples else problem.weight[examples]
        touched = [columns]
        self.away[columns] -= entries
        for other, alpha in others:
            part = slice(store.start[other], store.start[other] + store.length[other])
            self.away[store.columns[part]] += alpha / total * store.entries[part]
            touched.append(store.columns[part])
        found = False
        for _ in range(ROUNDS):
            index = np.unique(np.concatenate(touched))
            index = index[index < d]
            step = self.away[index]
            step *= share * size / (float(np.linalg.norm(step)) or 1.0)
            self.at[index] = _allowed(problem, index, self.w[index] + step)
            planes = problem.oracle.planes(self.at, examples)
            self.losses.points.clear()
            found = self.losses.add(self.at, planes.losses(problem.n_examples)).exceeded(claim) >= 0
            self.at[index] = self.w[index]
            if found:
                break
            self.away[columns] -= entries
            np.add.at(self.away, planes.indices, planes.data * np.repeat(weight, np.diff(planes.indptr)))
            touched.append(planes.indices)
        self.away[np.concatenate(touched)] = 0.0
        return found


def _allowed(problem: Problem, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weights of some columns, none below 0 that must not be."""
    positive = problem.positive
    return values if positive is None else np.where(positive[columns], np.maximum(values, 0.0), values)


def agree(saved: float, found: float, size: float = 0.0) -> bool:
    """Whether two numbers are the same but for rounding of parts of a size."""
    near = np.isfinite([saved, found]).all() and abs(saved - found) <= ROUNDING * max(abs(saved), abs(found), size)
    return bool(saved == found or near)
