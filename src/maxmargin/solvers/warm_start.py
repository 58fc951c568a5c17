"""Warm starts of the dual engine: multipliers and planes of earlier runs, at other weights or with other examples."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import State
from maxmargin.formulations.problem import Problem
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.base import OTHER_FAMILY
from maxmargin.solvers.blocks import Blocks, natural_scale, totals
from maxmargin.solvers.state import DualState
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["retire_examples", "retired_losses", "warm_set"]


def warm_set(problem: Problem, warm: State, blocks: Blocks) -> WorkingSet:
    """The working set of an earlier run on the same examples, for the weights C_i of a problem."""
    if not isinstance(warm, DualState):
        raise ValueError(OTHER_FAMILY)
    before, after = warm.problem, problem
    same = before.n_columns == after.n_columns and before.n_examples == after.n_examples
    if not (same and before.fingerprint == after.fingerprint):
        raise ValueError("warm start needs the same examples, costs and rescaling; else set warm_start=False.")
    if before.squared != after.squared or warm.retired or warm.blocks.fingerprint != blocks.fingerprint:
        raise ValueError("warm start needs the same loss and the same blocks as the earlier fit.")
    working_set = warm.working_set.copy()
    stretch = None
    if after.squared:
        with np.errstate(divide="ignore", invalid="ignore"):
            stretch = np.where(after.weight > 0, np.sqrt(before.weight / after.weight), 1.0)
    if blocks.members is None:
        # walls of |w|_1 stay where they are, and multipliers with them
        working_set.rescale(after.total, stretch, after.n_weights, keep="threshold" in after.traits)
    elif not np.array_equal(before.weight, after.weight):
        working_set.rescale_sums(_ratios(before.weight, after.weight, blocks.members), stretch, after.n_weights)
    return working_set


def _ratios(before: np.ndarray, after: np.ndarray, members: list[np.ndarray]) -> np.ndarray:
    """The factor by which the weights C_i of each block have changed."""
    ratios = np.ones(len(members))
    for block, examples in enumerate(members):
        own = examples[(before[examples] > 0) | (after[examples] > 0)]  # the others count for nothing, then as now
        with np.errstate(divide="ignore"):
            ratio = after[own] / before[own]
        if not (np.isfinite(ratio).all() and np.allclose(ratio, ratio[:1], rtol=1e-12, atol=0.0)):
            raise ValueError("warm start needs weights that change by one factor within a block; set warm_start=False.")
        ratios[block] = ratio[0] if len(ratio) else 1.0
    return ratios


def retire_examples(state: DualState, problem: Problem, blocks: Blocks) -> None:
    """Put the examples of a problem in place of those that a state has seen, whose blocks come to stand behind."""
    if problem.squared != state.problem.squared or problem.n_weights != state.problem.n_weights:
        raise ValueError("further examples must have the loss and the tables of the first.")
    ws, state.retired, state.pending, state.since = state.working_set, state.working_set.n_blocks, None, 0.0
    ws.prepend(totals(problem, blocks), problem.n_weights, problem.n_columns - problem.n_weights)
    state.problem, state.oracle, state.blocks = problem, CountingOracle(problem.oracle), blocks
    state.u, state.w = aligned_zeros(ws.n_columns), aligned_zeros(ws.n_columns)


def retired_losses(state: DualState, w: np.ndarray) -> float:
    """What examples that are gone add to the objective, estimated from below by their planes."""
    if state.retired == 0:
        return 0.0
    ws = state.working_set
    A, b, _, block = ws.planes()
    most = np.zeros(ws.n_blocks)
    np.maximum.at(most, block, natural_scale(A, b, ws.store.total[block], w, state.problem.n_weights)[1])
    return float(most[state.n_blocks :].sum())
