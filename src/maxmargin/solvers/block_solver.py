"""How a block is solved, and at which point: that depends on the regulariser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.formulations.absolute import ElasticNet
from maxmargin.formulations.divergence import Proximal
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import smo_pass
from maxmargin.solvers.masters.smo_signed_kernel import smo_signed_pass
from maxmargin.solvers.masters.smo_tables_kernel import smo_tables_pass

if TYPE_CHECKING:
    from maxmargin.solvers.state import DualState

__all__ = ["NO_SIGNS", "block_solver", "block_weights", "extra_entries"]

NO_SIGNS = np.empty(0, np.int8)


def block_solver(state: DualState) -> tuple[Callable[..., float], wk.Point]:
    """The compiled function that visits blocks in turn with the planes they have, and the point it changes."""
    mask, regulariser = state.problem.positive, state.problem.regulariser
    if "tables" in regulariser.traits:
        assert isinstance(regulariser, Proximal)
        return smo_tables_pass, wk.Point(state.u, state.w, NO_SIGNS, *regulariser.arrays)
    if state.w is state.u:
        return smo_pass, wk.Point(state.u, state.w, scale=state.echo, log=state.log or wk.Log())
    point = wk.Point(state.u, state.w, np.zeros(len(state.u), np.int8) if mask is None else mask.astype(np.int8))
    if "threshold" in regulariser.traits:
        assert isinstance(regulariser, ElasticNet)
        point = point._replace(threshold=1.0, scale=regulariser.scale)
    return smo_signed_pass, point._replace(log=state.log or wk.Log())


def block_weights(state: DualState) -> np.ndarray:
    """The weight of the loss of each block: C_i where it is an example; planes of several hold theirs."""
    return state.problem.weight if state.members is None else np.ones(len(state.members))


def extra_entries(state: DualState) -> np.ndarray:
    """Extra entries of squared slacks, for block gaps; they are only defined where a block is an example.

    One for each extra column of u: loops count these from the end, where those of examples that are gone may stand.
    """
    problem, in_turn = state.problem, state.problem.quadratic or not state.joint
    lift = problem.lift if state.members is None and in_turn else None
    if lift is None:
        return np.empty(0)
    return np.append(lift, np.zeros(len(state.u) - problem.n_columns)) if state.retired else lift
