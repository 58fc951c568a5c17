"""Slack rescaling with hinge or squared hinge: the cost multiplies the violation instead of being its margin.

    hinge            P(w) = R(w) + C sum_i s_i max_y cost_i(y) (1 - w . psi_i(y))
    squared hinge    P(w) = R(w) + C sum_i s_i [max_y cost_i(y) (1 - w . psi_i(y))]^2

Every output needs the same margin 1, and outputs that have it cost nothing however bad they are. Dual, certificates and
solvers are those of :mod:`maxmargin.formulations.margin_rescaling` with planes (cost psi, cost). Tsochantaridis et al.
2005.
"""

from __future__ import annotations

from typing import Any

from maxmargin.formulations.margin_rescaling import MarginRescaling, Problem
from maxmargin.models.base import BoundModel
from maxmargin.models.slack import slack_rescaled
from maxmargin.parameters import Parameters

__all__ = ["SlackRescaling"]


class SlackRescaling(Parameters):
    """Slack-rescaled structured hinge; for models with an exact argmax of it (:mod:`maxmargin.models.slack`).

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    """

    def __init__(self, loss: str = "hinge") -> None:
        self.loss = loss

    def problem(self, model: BoundModel, **options: Any) -> Problem:
        """The problem of fitting a bound model; options as those of :meth:`MarginRescaling.problem`."""
        return MarginRescaling(self.loss).problem(slack_rescaled(model), **options)
