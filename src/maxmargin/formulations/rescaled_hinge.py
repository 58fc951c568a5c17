"""The structured hinge, with margins or slacks rescaled by the cost.

    hinge            P(w) = R(w) + C sum_i s_i loss_i(w)
    squared hinge    P(w) = R(w) + C sum_i s_i loss_i(w)^2

where the loss is that of a row of the table in :mod:`maxmargin.oracles.rescaling`. With margin rescaling an output must
be outscored by as much as it costs. With slack rescaling every output needs the same margin 1, and outputs that have it
cost nothing however bad they are. Taskar, Guestrin, Koller 2003; Tsochantaridis, Joachims, Hofmann, Altun 2005.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.contracts import BoundModel, Regulariser
from maxmargin.formulations.problem import Problem, example_weights, lift_of
from maxmargin.formulations.regularisers import Quadratic, SignedQuadratic
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.rescaling import rescaling_named
from maxmargin.parameters import Parameters

__all__ = ["MarginRescaling", "RescaledHinge", "SlackRescaling"]


class RescaledHinge(Parameters):
    """Structured hinge or squared hinge.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    rescaling : {"margin", "slack", "sqrt_slack", "unit", "none"}
    """

    def __init__(self, loss: str = "hinge", rescaling: str = "margin") -> None:
        self.loss = loss
        self.rescaling = rescaling

    def problem(
        self,
        model: BoundModel,
        *,
        C: float = 1.0,
        sample_weight: ArrayLike | None = None,
        positive: np.ndarray | None = None,
        cost_weight: float = 1.0,
    ) -> Problem:
        """The problem of fitting a bound model.

        Parameters
        ----------
        model : BoundModel
        C : float
            Multiplies the sum of the losses.
        sample_weight : array (n_examples,), optional
        positive : bool array (n_weights,), optional
            Weights that must be >= 0.
        cost_weight : float
            lam of the table; 1 but for the convex part of some ramp losses.
        """
        model.kernel(rescaling_named(self.rescaling).search)  # refuses what the model cannot search, before anything
        weight, squared = example_weights(self.loss, C, sample_weight, model.n_examples)
        lift = lift_of(weight) if squared else None
        oracle = ModelOracle(model, self.rescaling, cost_weight, np.empty(0) if lift is None else lift)
        regulariser: Regulariser = Quadratic()
        if positive is not None:
            positive = np.asarray(positive)
            if positive.shape != (model.n_weights,):
                raise ValueError(
                    f"positive must have one entry per weight, ({model.n_weights},); got {positive.shape}."
                )
            mask = np.zeros(oracle.n_columns, bool)
            mask[: model.n_weights] = positive
            regulariser = SignedQuadratic(mask)
        return Problem(oracle, weight, model.n_weights, regulariser, lift)


class MarginRescaling(RescaledHinge):
    """Margin-rescaled structured hinge: the cost of an output is its margin.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    """

    def __init__(self, loss: str = "hinge") -> None:
        super().__init__(loss, "margin")


class SlackRescaling(RescaledHinge):
    """Slack-rescaled structured hinge: the cost of an output multiplies its violation of a margin of 1.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    """

    def __init__(self, loss: str = "hinge") -> None:
        super().__init__(loss, "slack")
