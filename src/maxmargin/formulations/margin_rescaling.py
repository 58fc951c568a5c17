"""Margin rescaling with hinge or squared hinge, as one convex problem with a dual.

    hinge            P(w) = R(w) + C sum_i s_i loss_i(w)      D(alpha) = sum alpha b - R*(u)
    squared hinge    P(w) = R(w) + C sum_i s_i loss_i(w)^2    D(alpha) = sum alpha b - R*(u) - sum zeta_i^2 / (2 C_i)

with ``u = sum alpha a``, ``zeta_i = sum_y alpha_i(y)``, multipliers >= 0 and, for the hinge, ``zeta_i <= C_i``. The
weight of an example is ``C_i = C s_i`` (hinge) or ``2 C s_i`` (squared). Squared slacks need no machinery of their own:
each example gets an extra column with entry ``1 / sqrt(C_i)`` in its planes and loses the sum constraint; the zeta term
is then part of ``R*`` over the longer vector. Tsochantaridis et al. 2005; Yu & Rousu 2007, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.formulations.regularisers import Quadratic, SignedQuadratic
from maxmargin.models.base import BoundModel
from maxmargin.oracles.margin import MarginOracle
from maxmargin.parameters import Parameters
from maxmargin.planes import Planes

__all__ = ["MarginRescaling", "Problem"]

LOSSES = ("hinge", "squared_hinge")


@dataclass(frozen=True)
class Problem:
    """A convex problem over planes: all that a solver sees.

    Attributes
    ----------
    oracle : oracle with ``planes`` and ``sum``
    weight : float64 array (n_examples,)
        C_i.
    total : float64 array (n_examples,)
        Sum of the multipliers of each example; inf when slacks are squared (except where C_i is 0).
    n_weights : int
        Length of the weights of the model; further columns belong to squared slacks.
    regulariser : Quadratic or SignedQuadratic, over all columns
    squared : bool
    shift : float64 array (n_columns,), optional
        A linear term ``w . shift`` of the objective, as the rounds of CCCP have it.
    offset : float
        A constant of the objective, so that values of different rounds can be compared.
    subtracted : Planes, optional
        The planes behind the shift, at most one per example: ``shift = sum_i C_i a_i``.
    fingerprint : () -> str
        Digest of the data behind the oracle, made when it is asked for: a warm start or a checkpoint must fit to it.
    """

    oracle: Any
    weight: np.ndarray
    total: np.ndarray
    n_weights: int
    regulariser: Any
    squared: bool
    shift: np.ndarray | None = None
    offset: float = 0.0
    subtracted: Planes | None = None
    fingerprint: Callable[[], str] = str

    @property
    def n_examples(self) -> int:
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        return self.oracle.n_columns

    @property
    def positive(self) -> np.ndarray | None:
        return self.regulariser.positive

    def primal(self, w: np.ndarray, losses: np.ndarray) -> float:
        """P at ``w`` from the losses (or upper bounds of them) of all examples."""
        losses = np.maximum(losses, 0.0)
        slack = 0.5 * losses**2 if self.squared else losses
        own = w[: self.n_weights]
        active = self.weight > 0  # an example of weight 0 counts for nothing, whatever its loss
        linear = self.offset + (0.0 if self.shift is None else float(w @ self.shift))
        return 0.5 * float(own @ own) + linear + float(self.weight[active] @ slack[active])

    def dual(self, linear: float, u: np.ndarray) -> float:
        """D from ``sum alpha b`` and ``u = sum alpha a - shift``."""
        return linear + self.offset - self.regulariser.conjugate(u)

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Given weights, as a start: those that must be >= 0 are."""
        return w if self.positive is None else np.where(self.positive[: len(w)], np.maximum(w, 0.0), w)

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """A certified lower bound of the optimum, and the scale behind it: D itself, which is finite everywhere."""
        return self.dual(linear, u), 1.0


class MarginRescaling(Parameters):
    """Margin-rescaled structured hinge.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    """

    def __init__(self, loss: str = "hinge") -> None:
        self.loss = loss

    def problem(
        self,
        model: BoundModel,
        *,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        positive: np.ndarray | None = None,
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
        """
        weight, squared = example_weights(self.loss, C, sample_weight, model.n_examples)
        lift = None
        total = weight
        if squared:
            with np.errstate(divide="ignore"):
                lift = np.where(weight > 0, 1.0 / np.sqrt(weight), 0.0)
            total = np.where(weight > 0, np.inf, 0.0)
        oracle = MarginOracle(model, lift=lift)
        regulariser: Any = Quadratic()
        if positive is not None:
            positive = np.asarray(positive)
            if positive.shape != (model.n_weights,):
                raise ValueError(
                    f"positive must have one entry per weight, ({model.n_weights},); got {positive.shape}."
                )
            mask = np.zeros(oracle.n_columns, bool)
            mask[: model.n_weights] = positive
            regulariser = SignedQuadratic(mask)
        return Problem(
            oracle, weight, total, model.n_weights, regulariser, squared, fingerprint=lambda: model.fingerprint
        )


def example_weights(loss: str, C: float, sample_weight: np.ndarray | None, n: int) -> tuple[np.ndarray, bool]:
    """``C_i`` (n,), checked, and whether losses are squared: ``C s_i``, or ``2 C s_i`` where they are."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or (of an estimator) ramp; got {loss!r}.")
    if not (isinstance(C, (int, float, np.number)) and np.isfinite(C) and C >= 0):
        raise ValueError(f"C must be a finite number >= 0, got {C!r}.")
    squared = loss == "squared_hinge"
    return (2.0 * C if squared else C) * check_sample_weight(sample_weight, n), squared


def check_sample_weight(sample_weight: np.ndarray | None, n: int) -> np.ndarray:
    """Sample weights as an array, checked: one per example, finite, not negative."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one per example.") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have one entry per example, ({n},); got shape {weights.shape}.")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(f"sample_weight of example {i} is {weights[i]}; weights must be finite and not negative.")
    return weights
