"""The structured hinge, with margins or slacks rescaled by the cost.

    hinge            P(w) = R(w) + C sum_i s_i loss_i(w)
    squared hinge    P(w) = R(w) + C sum_i s_i loss_i(w)^2

with ``R(w) = 1/2 |w|^2`` or ``|w|_1``, where the loss is that of a row of the table in
:mod:`maxmargin.oracles.rescaling`. With margin rescaling an output must be outscored by as much as it costs. With slack
rescaling every output needs the same margin 1, and outputs that have it cost nothing however bad they are.
Taskar, Guestrin, Koller 2003; Tsochantaridis, Joachims, Hofmann, Altun 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin.contracts import BoundModel, Mask, Regulariser, SampleWeight
from maxmargin.formulations.absolute import Absolute
from maxmargin.formulations.problem import Problem, example_weights, lift_of
from maxmargin.formulations.regularisers import Quadratic, SignedQuadratic
from maxmargin.models.search import SearchedModel
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.rescaling import rescaling_named
from maxmargin.parameters import Parameters

__all__ = ["PENALTIES", "MarginRescaling", "RescaledHinge", "SlackRescaling", "regulariser_of"]

PENALTIES = ("l2", "l1")


@dataclass(repr=False, eq=False)
class RescaledHinge(Parameters):
    """Structured hinge or squared hinge.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    rescaling : {"margin", "slack", "sqrt_slack", "unit", "none"}
    penalty : {"l2", "l1"}
        "l1" takes the hinge only.
    slack_search : str
        How slack rescaling finds the most violating output: "auto", or a name of :mod:`maxmargin.models.search`.
    """

    loss: str = "hinge"
    rescaling: str = "margin"
    penalty: str = "l2"
    slack_search: str = "auto"

    def centred(self, centre: np.ndarray) -> CentredHinge:
        """The same losses with ``1/2 |w - centre|^2`` in place of ``1/2 |w|^2``."""
        if self.penalty != "l2":
            raise ValueError(
                f'a centre of the weights needs penalty="l2", got {self.penalty!r}; use that, or centre="zero".'
            )
        return CentredHinge(self, centre)

    def problem(
        self, model: BoundModel, *, C: float = 1.0, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> Problem:
        """The problem of fitting a bound model; see :class:`~maxmargin.contracts.Formulation`."""
        model = SearchedModel.of(model, self.slack_search, rescaling_named(self.rescaling).search)
        model.kernel(rescaling_named(self.rescaling).search)  # refuses what the model cannot search, before anything
        weight, squared = example_weights(self.loss, C, sample_weight, model.n_examples)
        if squared and self.penalty == "l1":
            raise ValueError('penalty="l1" makes a linear program, which squared slacks are not; use loss="hinge".')
        lift = lift_of(weight) if squared else None
        oracle = ModelOracle(model, self.rescaling, lift=np.empty(0) if lift is None else lift)
        regulariser = regulariser_of(self.penalty, positive, model.n_weights, oracle.n_columns)
        return Problem(oracle, weight, model.n_weights, regulariser, lift)


def regulariser_of(penalty: str, positive: Mask, n_weights: int, n_columns: int) -> Regulariser:
    """R by the name of the penalty and the weights that must be >= 0, bool (n_weights,); None when all are free."""
    if penalty not in PENALTIES:
        raise ValueError(f'penalty must be "l2" or "l1", got {penalty!r}.')
    if positive is None:
        return Quadratic() if penalty == "l2" else Absolute()
    positive = np.asarray(positive)
    if positive.shape != (n_weights,):
        raise ValueError(f"positive must have one entry per weight, ({n_weights},); got {positive.shape}.")
    positive = np.pad(positive.astype(bool), (0, n_columns - n_weights))
    return SignedQuadratic(positive) if penalty == "l2" else Absolute(positive)


@dataclass(frozen=True)
class CentredHinge:
    """A hinge whose weights are pulled to ``centre`` (n_weights,), in place of zero."""

    hinge: RescaledHinge
    centre: np.ndarray

    def problem(
        self, model: BoundModel, *, C: float = 1.0, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> Problem:
        """The problem of fitting a bound model; see :class:`~maxmargin.contracts.Formulation`."""
        return self.hinge.problem(model, C=C, sample_weight=sample_weight, positive=positive).centred(self.centre)


@dataclass(repr=False, eq=False)
class MarginRescaling(RescaledHinge):
    """Margin-rescaled structured hinge: the cost of an output is its margin.

    Parameters
    ----------
    loss, penalty : str
        As those of :class:`RescaledHinge`.
    """

    rescaling: str = field(default="margin", init=False)
    slack_search: str = field(default="auto", init=False)


@dataclass(repr=False, eq=False)
class SlackRescaling(RescaledHinge):
    """Slack-rescaled structured hinge: the cost of an output multiplies its violation of a margin of 1.

    Parameters
    ----------
    loss, penalty, slack_search : str
        As those of :class:`RescaledHinge`.
    """

    rescaling: str = field(default="slack", init=False)
