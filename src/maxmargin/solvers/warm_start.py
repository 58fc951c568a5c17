"""Warm starts of the dual engine: multipliers and planes of an earlier run, at other weights of the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import State
from maxmargin.formulations.problem import Problem
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.state import DualState

if TYPE_CHECKING:
    from maxmargin.solvers.working_set import WorkingSet

__all__ = ["warm_set"]


def warm_set(problem: Problem, warm: State, blocks: Blocks) -> WorkingSet:
    """The working set of an earlier run on the same examples, for the weights C_i of a problem."""
    from maxmargin.solvers.working_set import WorkingSet

    if not isinstance(warm, DualState):
        raise ValueError(
            "warm start needs the same loss and a solver of the same family as before; else set warm_start=False."
        )
    before, after = warm.problem, problem
    same = before.n_columns == after.n_columns and before.n_examples == after.n_examples
    if not (same and before.fingerprint == after.fingerprint):
        raise ValueError("warm start needs the same examples, costs and rescaling; else set warm_start=False.")
    if before.squared != after.squared or warm.retired or warm.blocks.fingerprint != blocks.fingerprint:
        raise ValueError("warm start needs the same loss and the same blocks as the earlier fit.")
    working_set = WorkingSet.from_arrays(warm.working_set.to_arrays())
    stretch = None
    if after.squared:
        with np.errstate(divide="ignore", invalid="ignore"):
            stretch = np.where(after.weight > 0, np.sqrt(before.weight / after.weight), 1.0)
    if blocks.members is None:
        working_set.rescale(after.total, stretch, after.n_weights)
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
