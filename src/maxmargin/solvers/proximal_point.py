"""The proximal point method by its name and settings; :mod:`~maxmargin.solvers.recentring` says how it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.contracts import Problem
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.settings import Settings, check_whole, check_words

if TYPE_CHECKING:
    from maxmargin.solvers.recentring import Recentring

__all__ = ["ProximalPoint"]

MOST_BLOCKS = 2000  # that are solved all at once
EXAMPLES_PER_WEIGHT = 10  # up to which blocks="auto" makes a block of each example
GROUPS, MOST_GROUPS, EXAMPLES_IN_GROUP = 40, 50, 10  # of groups, which are GROUPS divided by the examples per weight
PLANES, PLANES_IN_BLOCK = 100, 15  # of limit="auto"
# of blocks that are single examples: as those of solvers.presets.Auto, with fewer passes over planes at hand, because
# these take longer than the argmax of small models
IN_TURN: dict[str, Any] = {
    "selection": "gap", "visits": 0.2, "batch": 8, "cached_passes": 5, "cached_share": 0.3, "max_steps": 5, "parts": 4,
    "patience": 5, "certificate_every": 2.0,
}  # fmt: skip
MASTERS = ("auto", "smo", "newton")
RULES = ("gap", "improvement", "optimality", "paper")


@dataclass(repr=False, eq=False)
class ProximalPoint(BaseSolver):
    """The proximal point method for generative models.

    Parameters
    ----------
    blocks : "auto", "one", "product", int, or sequence of sequences of examples
        One simplex for all examples, one for each, that many groups, or the subsets of a stream, which may overlap:
        examples in the same subsets then share a simplex. "auto" makes one for each example, visited in turn, up to ten
        examples for each weight. Beyond that the sum of many losses is smooth by itself, and a few groups find fewer
        planes in less time: 40 divided by the number of examples for each weight.
    master : {"auto", "smo", "newton"}
        How multipliers are found: "newton" solves all blocks that a step visits together; "smo" visits single examples
        in proportion to their gaps and moves pairs of multipliers, as the default solver of other models does. "auto"
        is "smo" where ``blocks="auto"`` makes a block of each example; not for ramps, whose first round must not be
        solved too well, so that there are groups instead.
    visits : int or None
        Blocks (subsets of a stream) visited in a step, the others fixed: coordinate ascent. None: all at once.
    repeats : int
        Iterations of the decomposition in a visit.
    selection : {"cyclic", "permutation"}
        Order of the visits.
    limit : "auto", int or None
        Most planes a block keeps beside one merged from lighter ones; the dimension of the simplex. "auto": 100 of all
        blocks together, but 15 for each at least.
    gamma : "auto" or float
        Weight of the proximal term; "auto" takes the root mean square of the first plane.
    decay, least : float
        Every centre change multiplies gamma by ``decay``, down to ``least`` times the largest reference probability.
    rule : {"gap", "improvement", "optimality", "paper"}
        When the centre moves. "gap": when the gap of (P_n) is at most ``share`` of what it promises to gain.
        "improvement": rule (i) of the paper, when P has fallen by ``improvement``. "optimality": rule (ii), when
        the multipliers are delta_m-optimal, which with lambda eliminated is the gap of (P_n). "paper": (i) or (ii).
    share : float
    delta, delta_decay, improvement : float
        ``delta_m = delta * delta_decay^m`` after m changes, and the improvement; in units of ``|P|`` at the start.
    refind : bool
        Look again right after a centre change, at the theta that belongs to the new centre, as the paper does.
    bound_every : int
        Looks between two lower bounds from all planes; the cheap one from the present multipliers is made at each.
    certificate_every : float
        Passes of visits between looks at all examples, where blocks are visited in turn.
    accuracy : float
        Masters are solved to this share of the gap of (P_n).
    patience : int
        Masters that a plane without weight survives.
    theta : {"closed", "newton"}
        How theta is found at given multipliers: by Wright's omega, or by a safeguarded Newton method.
    memory : int
        Bytes that planes may take.
    """

    handles = frozenset({"tables", "squared", "ramp"})

    blocks: str | int | Sequence[Sequence[int]] = "auto"
    master: str = "auto"
    visits: int | None = None
    repeats: int = 1
    selection: str = "cyclic"
    limit: str | int | None = "auto"
    gamma: str | float = "auto"
    decay: float = 0.5
    least: float = 0.01
    rule: str = "gap"
    share: float = 0.5
    delta: float = 1e-2
    delta_decay: float = 0.5
    improvement: float = 1e-3
    refind: bool = False
    bound_every: int = 10
    certificate_every: float = 1.0
    accuracy: float = 0.05
    patience: int = 20
    theta: str = "closed"
    memory: int = 1 << 30

    def settings(self, n_examples: int, n_weights: int) -> Settings:
        """The setting of the dual engine inside."""
        check_words("rule", self.rule, RULES)
        check_words("theta", self.theta, ("closed", "newton"))
        check_words("selection", self.selection, ("cyclic", "permutation"))
        check_whole(self, {"repeats": 1, "bound_every": 1, "patience": 0, "visits": 1}, ("visits",))
        if not (self.gamma == "auto" or (isinstance(self.gamma, (int, float, np.number)) and 0 < self.gamma < np.inf)):
            raise ValueError(f'gamma must be "auto" or a number > 0; got {self.gamma!r}.')
        for name in ("share", "decay", "delta_decay", "accuracy"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {getattr(self, name)!r}.")
        check_words("master", self.master, MASTERS)
        if self._by_example(n_examples, n_weights):
            limit = None if isinstance(self.limit, str) else self.limit
            return self.setting(Settings, **IN_TURN, blocks="product", limit=limit, master="smo")
        in_turn = self.visits is not None or not isinstance(self.blocks, (str, int, np.integer))
        blocks = self.blocks
        if isinstance(blocks, str) and blocks == "auto":
            groups = GROUPS * n_weights // max(n_examples, 1)
            blocks = max(1, min(groups, MOST_GROUPS, n_examples // EXAMPLES_IN_GROUP))
        groups = n_examples if isinstance(blocks, str) and blocks == "product" else blocks
        if not in_turn and isinstance(groups, (int, np.integer)) and min(groups, n_examples) > MOST_BLOCKS:
            raise ValueError(
                f"{groups} blocks are too many for one master problem; visit some at a time (visits=), or make fewer "
                f"than {MOST_BLOCKS} groups (blocks=)."
            )
        selection = {"cyclic": "cyclic", "permutation": "shuffled"}[self.selection]
        limit = self.limit
        if isinstance(limit, str):
            check_words("limit", limit, ("auto",))
            limit = max(PLANES // groups if isinstance(groups, (int, np.integer)) else 0, PLANES_IN_BLOCK)
        return self.setting(
            Settings, blocks=blocks, limit=limit, selection=selection if in_turn else "whole",
            visits=(self.visits or 1) + 0.5 if in_turn else 1.0,
            batch=None, rule="merge", master="newton", cached_blocks="visited",
            certificate_every=self.certificate_every if in_turn else 0.0,
        )  # fmt: skip

    def _by_example(self, n_examples: int, n_weights: int) -> bool:
        """Whether single examples are visited in turn."""
        auto = isinstance(self.blocks, str) and self.blocks == "auto"
        if self.master == "auto":
            return auto and self.visits is None and n_examples <= EXAMPLES_PER_WEIGHT * n_weights
        if self.master == "smo" and not (auto or (isinstance(self.blocks, str) and self.blocks == "product")):
            raise ValueError(f'master="smo" visits single examples; set blocks="product", got {self.blocks!r}.')
        return self.master == "smo"

    def engine(self, problem: Problem, random_state: int | np.random.Generator | None = None) -> Recentring:
        """The outer loop around the dual engine with this setting."""
        from maxmargin.solvers.engine import DualEngine
        from maxmargin.solvers.recentring import Recentring

        slacks = problem.n_examples if "squared" in problem.traits else 0  # columns of their own
        # a first round of a ramp that is solved too well ends at a hinge fit with no mistake left to forgive
        rough = self.master == "auto" and "ramp" in problem.traits
        chosen = replace(self, master="newton") if rough else self
        settings = chosen.settings(problem.n_examples, problem.n_columns - slacks)
        return Recentring(DualEngine(settings, random_state), self)
