"""The convex problem over planes that every formulation makes: all that a solver sees.

    hinge      P(w) = R(w) + w . v + sum_i C_i loss_i(w)         D(alpha) = sum alpha b - R*(u)
    squared    P(w) = R(w) + w . v + sum_i C_i loss_i(w)^2 / 2   D(alpha) = sum alpha b - R*(u) - sum zeta_i^2 / (2 C_i)

with ``u = sum alpha a - v``, ``zeta_i = sum_y alpha_i(y)``, multipliers >= 0 and, for the hinge, ``zeta_i <= C_i``.
Squared slacks need no machinery of their own: each example gets an extra column with entry ``1 / sqrt(C_i)`` in its
planes (the *lift*) and loses the sum constraint; the zeta term is then part of ``R*`` over the longer vector.
Tsochantaridis et al. 2005; Yu & Rousu 2007, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.contracts import LabelBlocks, Oracle, Regulariser
from maxmargin.door import LARGEST_FEATURE
from maxmargin.formulations.regularisers import centred
from maxmargin.oracles.part import PartOracle
from maxmargin.oracles.rescaling import RESCALINGS
from maxmargin.planes import Planes

__all__ = ["LinearTerm", "Problem", "check_sample_weight", "example_weights"]

LOSSES = ("hinge", "squared_hinge")


@dataclass(frozen=True)
class LinearTerm:
    """``w . shift + offset``, as the rounds of CCCP and problems with a centre have it."""

    shift: np.ndarray  # float64 (n_columns,): v
    offset: float
    # those behind the shift, at most one per example: ``shift = sum_i C_i a_i``, ``offset = - sum_i C_i b_i``
    planes: Planes

    def at(self, w: np.ndarray) -> float:
        """The value of the term."""
        return self.offset + float(w @ self.shift[: len(w)])


@dataclass(frozen=True)
class Problem:
    """Weights to find: a regulariser, a linear term, and a weighted sum of losses, squared or not.

    ``min_w R(w) + w . v + sum_i C_i loss_i(w)``

    ``oracle`` gives the planes, ``weight`` (n_examples,) holds C_i, and ``regulariser`` is R over all columns: the
    ``n_weights`` of the model and, where losses are squared, one for each example with the entry ``lift`` (n_examples,)
    of its planes. ``term`` is the linear one, if any.
    """

    oracle: Oracle
    weight: np.ndarray
    n_weights: int
    regulariser: Regulariser
    lift: np.ndarray | None = None
    term: LinearTerm | None = None

    @property
    def squared(self) -> bool:
        return self.lift is not None

    @property
    def quadratic(self) -> bool:
        """Whether R* is (piecewise) quadratic, so that blocks can be solved through Gram entries."""
        return "quadratic" in self.regulariser.traits

    @property
    def identity(self) -> bool:
        """Whether R is ``1/2 |w|^2``, all weights free: then the weights are u."""
        return self.regulariser.traits == {"quadratic"}

    @property
    def n_examples(self) -> int:
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        return self.oracle.n_columns

    @property
    def positive(self) -> np.ndarray | None:
        return self.regulariser.positive

    @property
    def traits(self) -> frozenset[str]:
        return self.regulariser.traits | ({"squared"} if self.squared else set())

    @property
    def labels(self) -> LabelBlocks | None:
        """See :class:`~maxmargin.contracts.Problem`."""
        fused = self.oracle.fused() if self.identity and not self.squared else None
        return fused.kernel.labels if fused is not None and fused.rescaling == RESCALINGS["margin"].code else None

    @property
    def total(self) -> np.ndarray:
        """Sum of the multipliers of each example; inf when slacks are squared (except where C_i is 0)."""
        return np.where(self.weight > 0, np.inf, 0.0) if self.squared else self.weight

    @property
    def fingerprint(self) -> str:
        """Digest of the data behind the problem: a warm start or a checkpoint must fit to it."""
        return self.oracle.fingerprint + self.regulariser.fingerprint

    def primal(self, w: np.ndarray, losses: np.ndarray, value: float | None = None) -> float:
        """P at ``w`` from the losses (or upper bounds of them) of all examples, and R(w) where that is known."""
        active = self.weight > 0  # an example of weight 0 counts for nothing, whatever its loss
        losses = np.maximum(losses[active], 0.0)
        slack = 0.5 * losses**2 if self.squared else losses
        linear = 0.0 if self.term is None else self.term.at(w)
        value = self.regulariser.value(w[: self.n_weights]) if value is None else value
        return value + linear + float(self.weight[active] @ slack)

    def dual(self, linear: float, u: np.ndarray, conjugate: float | None = None) -> float:
        """D from ``sum alpha b`` and ``u = sum alpha a - v``, and R*(u) where that is known."""
        return linear + self.offset - (self.regulariser.conjugate(u) if conjugate is None else conjugate)

    def lower_bound(self, linear: float, u: np.ndarray) -> float:
        """A proven lower bound of the optimum: D where it is finite, else along the way from a point where it is."""
        return self.regulariser.lower_bound(linear + self.offset, u)[0]

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Given weights, as a start: moved into the domain of the regulariser."""
        return self.regulariser.feasible(w)

    def with_oracles(self, wrap: Callable[[Oracle], Oracle]) -> Problem:
        return replace(self, oracle=wrap(self.oracle))

    def part(self, first: int, last: int) -> Problem:
        """The problem of the examples ``first`` to ``last`` (exclusive) alone, over the columns of all."""
        lift = None if self.lift is None else self.lift[first:]  # compiled loops count extra columns from the end
        return Problem(
            PartOracle(self.oracle, first, last), self.weight[first:last], self.n_weights, self.regulariser, lift
        )

    def centred(self, centre: np.ndarray) -> Problem:
        """The problem with ``1/2 |w - centre|^2`` in place of ``1/2 |w|^2``: a linear term; ``centre`` (n_weights,)."""
        shift = np.zeros(self.n_columns)
        shift[: self.n_weights], offset = centred(centre)
        none = Planes.from_rows([], np.empty(0), np.empty(0), np.empty(0), self.n_columns)
        return replace(self, term=LinearTerm(shift, offset, none))

    @property
    def offset(self) -> float:
        return 0.0 if self.term is None else self.term.offset

    @property
    def shift(self) -> np.ndarray | None:
        return None if self.term is None else self.term.shift


def example_weights(loss: str, C: float, sample_weight: object, n: int) -> tuple[np.ndarray, bool]:
    """``C_i`` (n,), checked, and whether losses are squared: ``C s_i``, or ``2 C s_i`` where they are."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or (of an estimator) ramp; got {loss!r}.")
    if not (isinstance(C, (int, float, np.number)) and np.isfinite(C) and C >= 0):
        raise ValueError(f"C must be a finite number >= 0, got {C!r}.")
    if C > LARGEST_FEATURE:
        raise ValueError(f"C must be at most {LARGEST_FEATURE:g}, got {C!r}; beyond, losses cannot be added up.")
    squared = loss == "squared_hinge"
    return (2.0 * C if squared else C) * check_sample_weight(sample_weight, n), squared


def lift_of(weight: np.ndarray) -> np.ndarray:
    """Entries of the extra columns of squared slacks: ``1 / sqrt(C_i)``, 0 where C_i is."""
    with np.errstate(divide="ignore"):
        return np.where(weight > 0, 1.0 / np.sqrt(weight), 0.0)


def check_sample_weight(sample_weight: object, n: int) -> np.ndarray:
    """Sample weights as an array, checked: one per example, finite, not negative."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one per example.") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have one entry per example, ({n},); got shape {weights.shape}.")
    bad = ~((weights >= 0) & (weights <= LARGEST_FEATURE))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(f"sample_weight of example {i} is {weights[i]}; weights must be finite and not negative.")
    return weights
