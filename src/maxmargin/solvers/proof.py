"""What saved planes claim, held against the oracle.

A plane (a, b) of example i says ``loss_i(w) >= b - w . a`` at every w. A checkpoint may hold planes of no output, and
the dual value of their multipliers would prove nothing. So each is looked at where the losses are known: at zero
weights, where ``b`` may not exceed the largest cost, and at the weights that the run resumes with. That takes two
passes of the oracle.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.problem import Problem
from maxmargin.solvers.blocks import Blocks, totals
from maxmargin.solvers.saved import Saved

__all__ = ["ROUNDING", "Losses", "agree"]

ROUNDING = 1e-7  # by which saved numbers may differ from what they are made of, relative to their parts


class Losses:
    """The losses of all examples of a problem at some weights (n_columns,), and at zero."""

    def __init__(self, saved: Saved, problem: Problem, blocks: Blocks, w: np.ndarray) -> None:
        n, members = problem.n_examples, blocks.members
        self.problem, self.total = problem, totals(problem, blocks)
        if members is None:
            self.share = sp.eye_array(n, format="csr")
        else:  # planes of blocks carry the weights of their examples
            ends, own = np.cumsum([0, *map(len, members)]), np.concatenate(members)
            self.share = sp.csr_array((problem.weight[own], own, ends), shape=(len(members), n))
        self.points = [
            (at[: problem.n_weights], np.maximum(saved.losses(problem, at), 0.0)) for at in (np.zeros(len(w)), w)
        ]

    def exceeded(self, A: sp.csr_array, b: np.ndarray, owner: np.ndarray) -> int:
        """The block of the first row of ``b - A w`` that is above what its examples can lose, or -1.

        A (m, n_columns) and b (m,) are planes, ``owner`` (m,) their blocks; those of weight 0 count for nothing.
        """
        rows = np.flatnonzero(self.total[owner] > 0)
        row = self._first(A[rows], b[rows], self.share[owner[rows]])
        return int(owner[rows[row]]) if row >= 0 else -1

    def sum_exceeded(self, linear: float, u: np.ndarray) -> bool:
        """Whether the sum over all planes, ``sum alpha b`` and ``sum alpha a``, is above all losses times C_i."""
        row = sp.csr_array(u[None, : self.problem.n_columns])
        return self._first(row, np.array([linear]), sp.csr_array(self.problem.weight[None])) >= 0

    def _first(self, A: sp.csr_array, b: np.ndarray, share: sp.csr_array) -> int:
        """The first row above the losses, each example counting by its share (m, n_examples), or -1."""
        d, lift = self.problem.n_weights, self.problem.lift
        head = A[:, :d]
        if lift is not None:  # the extra columns say how much each example counts
            share = sp.csr_array(A[:, d:] * np.divide(1.0, lift, out=np.zeros_like(lift), where=lift > 0))
        least = -ROUNDING * abs(share).max(axis=1).toarray().ravel() if min(share.shape) else np.zeros(len(b))
        wrong = share.min(axis=1).toarray().ravel() < least if min(share.shape) else np.zeros(len(b), bool)
        for w, losses in self.points:
            with np.errstate(over="ignore", invalid="ignore"):
                value, most = b - head @ w, share @ losses
                slack = ROUNDING * (np.abs(b) + abs(head) @ np.abs(w) + most)
                wrong |= ~(value <= most + slack)
        return int(np.argmax(wrong)) if wrong.any() else -1


def agree(saved: float, found: float, size: float = 0.0) -> bool:
    """Whether two numbers are the same but for rounding of parts of a size."""
    near = np.isfinite([saved, found]).all() and abs(saved - found) <= ROUNDING * max(abs(saved), abs(found), size)
    return bool(saved == found or near)
