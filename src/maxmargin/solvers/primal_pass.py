"""A pass of the primal family: steps on examples in turn, compiled throughout where the model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.oracles.oracle import packed, taken
from maxmargin.planes import Planes, added_counts
from maxmargin.solvers import primal_kernel as pk

if TYPE_CHECKING:
    from maxmargin.solvers.primal import Rule

__all__ = ["SCHEDULES", "Asked", "Steps", "subtracted"]

SCHEDULES = ("inverse", "constant", "power")
METHODS = {"subgradient": pk.SUBGRADIENT, "perceptron": pk.PERCEPTRON, "mira": pk.MIRA}
MEANS = {None: 0, "uniform": pk.UNIFORM, "tail": pk.UNIFORM, "weighted": pk.WEIGHTED}


class Asked(NamedTuple):
    """What steps have asked of the oracle: calls, counts of queries, and seconds; of a compiled loop, all its time."""

    calls: int
    seconds: float
    counts: tuple[int, int] | None
    fused: bool

    def noted(self, oracle: CountingOracle) -> float:
        """Count it; returns the seconds that are the oracle's."""
        if self.fused and self.counts is not None:
            return oracle.count_fused(self.calls, self.seconds, self.counts)
        oracle.count(self.calls, self.seconds, self.counts)
        return self.seconds


@dataclass
class Steps:
    """What steps need to know besides the vector; it can travel.

    Parameters
    ----------
    rule : Rule
    problem : Problem
        Its oracle may know a part of the examples only. Everything else is that of all examples.
    first : int
        The example that is number 0 of the oracle.
    planes : Planes or None
        Concave planes to subtract, at most one of each example, in the order of examples.
    """

    rule: Rule
    problem: Problem
    first: int = 0
    planes: Planes | None = None

    def take(
        self, examples: np.ndarray, radius: float, vector: np.ndarray, mean: np.ndarray, numbers: np.ndarray
    ) -> Asked:
        """Take a step on each batch of ``examples``, with weights in a ball; changes the arrays."""
        rule, problem, planes = self.rule, self.problem, self.planes
        kind, eta0, t0, power = rule.schedule
        schedule = np.array([SCHEDULES.index(kind), eta0, t0, power], dtype=np.float64)
        d, n, method, averaging = problem.n_weights, problem.n_examples, METHODS[rule.method], MEANS[rule.averaging]
        entries = (np.empty(0, np.int32), np.empty(0)) if planes is None else (planes.indices, planes.data)
        setting = (int(problem.squared), method, schedule, averaging, radius, _starts(planes, n), *entries)
        shown, signs, positive = np.zeros(0), np.zeros(0, bool), problem.regulariser.positive
        if positive is not None:
            shown, signs = problem.regulariser.feasible(vector[:d]), np.ascontiguousarray(positive)
        now = (vector, shown, signs, mean, numbers, d, n)
        begin, fused, batch = clock(), problem.oracle.fused(), min(rule.batch, len(examples))
        if fused is not None:
            pack, kernel = packed(fused, 2), fused.kernel
            question = (kernel.search, kernel.plane, pack, examples, fused.first - self.first, batch)
            pk.primal_pass(*question, int(rule.augmented), *now, problem.weight, *setting)
            return Asked(len(examples), clock() - begin, taken(pack.counts), fused=True)
        oracle = problem.oracle if rule.augmented else problem.oracle.predicting()
        spent, counts, w = 0.0, [], np.zeros(problem.n_columns)
        for begin_at in range(0, len(examples), batch):
            together = examples[begin_at : begin_at + batch] - self.first
            asked, scale = clock(), numbers[pk.SCALE]
            w[:d] = scale * (vector[:d] if positive is None else shown)
            found = oracle.planes(w, together)
            spent += clock() - asked
            counts.append(found.counts)
            begins, lengths, index, value = _spaced(found, d)
            losses = found.b.copy()
            for e, (first, nnz) in enumerate(zip(begins, lengths, strict=True)):
                losses[e] -= float(w[index[first : first + nnz]] @ value[first : first + nnz])
            pk.primal_step(
                *now, found.example + self.first, begins, lengths, index, value, found.b, losses, problem.weight,
                *setting, np.empty(1, np.int32), np.empty(1),
            )  # fmt: skip
        return Asked(len(examples), spent, added_counts(counts), fused=False)


def subtracted(problem: Problem) -> Planes | None:
    """The concave planes that a round of CCCP subtracts."""
    return None if problem.term is None else problem.term.planes


def _starts(planes: Planes | None, n: int) -> np.ndarray:
    """Where the plane of each example begins in the entries of planes sorted by example; (n + 1,), empty for none."""
    if planes is None:
        return np.empty(0, np.int64)
    lengths = np.zeros(n, np.int64)
    lengths[planes.example] = np.diff(planes.indptr)
    return np.concatenate([[0], np.cumsum(lengths)])


def _spaced(planes: Planes, n_weights: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Planes as ``primal_step`` takes them: begins, lengths, indices, values; room for two entries behind each.

    Columns beyond the weights, which belong to squared slacks, are left out.
    """
    begins, room = planes.indptr[:-1] + 2 * np.arange(len(planes)), len(planes.indices) + 2 * len(planes)
    index, value = np.zeros(room, np.int32), np.zeros(room)
    lengths = np.zeros(len(planes), np.int64)
    for p, (first, last) in enumerate(zip(planes.indptr[:-1], planes.indptr[1:], strict=True)):
        lengths[p] = np.searchsorted(planes.indices[first:last], n_weights)
        own, given = slice(begins[p], begins[p] + lengths[p]), slice(first, first + lengths[p])
        index[own], value[own] = planes.indices[given], planes.data[given]
    return begins.astype(np.int64), lengths, index, value
