"""Generative models with a margin: log-probabilities pulled towards a reference, and pushed apart by their mistakes.

    (P)   min_theta  - sum_j c_j . theta_j + sum_k C_k loss_k(theta)      with  1'e^{theta_j} <= 1 for every table j

with ``loss_k(theta) = max_s b_k(s) - theta . a_k(s)`` and ``a_k(s) = counts(truth) - counts(s)``; for the squared hinge
the second term is ``sum_k C_k loss_k(theta)^2 / 2``. A table is one conditional distribution; mass that it leaves,
``1 - 1'e^{theta_j}``, belongs to a value never seen. The first term is the Kullback-Leibler divergence from c_j but for
a constant. With ``u = sum alpha a`` and ``linear = sum alpha b`` the dual is closed,

    (D)   max  linear + sum_j -v_j . ln(v_j / 1'v_j) - sum_k zeta_k^2 / (2 C_k)        over  v = c + u >= 0,

its last term for the squared hinge only (``zeta_k = sum alpha_k``, free), where the hinge has ``zeta_k <= C_k``.

With ``pull = rho > 0`` the objective also has ``rho/2 sum_j |theta_j - ln c_j|^2`` (c normalised), another convex f_j:
ratios of probabilities then count whatever the probabilities are, so that rare values stay near the reference too. Its
dual is finite everywhere, and the dual value itself is the certified bound. The divergence with the model as its first
argument, ``sum e^theta (theta - ln c)``, is not offered: it is not convex below ``ln c - 2``.

A round of CCCP (formulations/ramp.py) adds the linear term ``theta . shift + offset``, where ``shift = sum_k C_k a_k``
and ``offset = - sum_k C_k b_k`` over planes (a_k, b_k) of outputs that score above the truth. Entries of ``c - shift``
may be negative, so that multipliers 0 are no point of the dual any more; those of the planes that are subtracted are
one. With u counted from there, ``u = sum alpha a - shift``, D and its bounds stay as they are. In other words: a round
is a hinge fit in which the outputs that score above the truth have taken its place.

Yu, Bertsekas, Rousu, An efficient discriminative training method for generative models. The certified bound
(:meth:`GenerativeProblem.lower_bound`) is an addition to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.contracts import BoundModel, Oracle
from maxmargin.formulations.problem import LinearTerm, example_weights
from maxmargin.formulations.proximal import Proximal
from maxmargin.models.base import digest
from maxmargin.models.tables import Tables, reference_distribution
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.parameters import Parameters
from maxmargin.planes import Planes

__all__ = ["Generative", "GenerativeProblem"]

ROUNDING = 1e-6  # of the logarithm of a table's mass
SCALES = (0.0, 0.5, 1.0)  # tried where the dual is finite everywhere


@dataclass(frozen=True)
class GenerativeProblem:
    """Problem (P): all that a solver sees.

    Attributes
    ----------
    oracle : any object with ``n_examples``, ``n_columns``, ``planes(w, examples)`` and ``sum(w, examples, scale)``
    weight : float64 array (n_examples,)
        C_k.
    tables : Tables
    reference : float64 array (n_weights,)
        c > 0; tables need not sum to 1: a larger sum pulls harder.
    squared : bool
    start : float64 array (n_weights,), optional
        Where to begin; ``ln c`` when missing.
    pull : float
        rho.
    term : LinearTerm, optional
        Of a round of CCCP.
    """

    oracle: Oracle
    weight: np.ndarray
    tables: Tables
    reference: np.ndarray
    squared: bool = False
    start: np.ndarray | None = None
    pull: float = 0.0
    term: LinearTerm | None = None

    def __post_init__(self) -> None:
        c, d = np.ascontiguousarray(self.reference, np.float64), self.tables.n_weights
        weight = np.ascontiguousarray(self.weight, np.float64)
        if self.oracle.n_columns != d:
            raise ValueError(f"the oracle has {self.oracle.n_columns} weights, the tables hold {d}; they must agree.")
        if c.shape != (d,) or not np.isfinite(c).all() or (c <= 0).any():
            raise ValueError(
                f"the reference must be {d} finite numbers > 0; use reference_distribution with a floor for zeros."
            )
        if not (np.isfinite(self.pull) and self.pull >= 0):
            raise ValueError(f"pull must be a finite number >= 0, got {self.pull!r}.")
        if weight.shape != (self.oracle.n_examples,) or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError(f"weight must be {self.oracle.n_examples} finite numbers >= 0, one per example.")
        object.__setattr__(self, "reference", c)
        object.__setattr__(self, "weight", weight)

    @property
    def traits(self) -> frozenset[str]:
        """What a solver must handle."""
        return frozenset({"tables", "squared"} if self.squared else {"tables"})

    @property
    def fingerprint(self) -> str:
        """Digest of the data behind the problem: a warm start or a checkpoint must fit to it."""
        return self.oracle.fingerprint + digest(self.reference, self.tables.starts)

    @property
    def offset(self) -> float:
        return 0.0 if self.term is None else self.term.offset

    @property
    def shift(self) -> np.ndarray | None:
        return None if self.term is None else self.term.shift

    @property
    def subtracted(self) -> Planes | None:
        return None if self.term is None else self.term.planes

    @property
    def n_examples(self) -> int:
        return len(self.weight)

    @property
    def n_weights(self) -> int:
        return self.tables.n_weights

    @property
    def n_columns(self) -> int:
        return self.tables.n_weights

    def first(self) -> np.ndarray:
        """A feasible theta to begin with."""
        if self.start is None:
            return self.tables.anchor(self.reference)
        start = np.array(self.start, np.float64)
        if start.shape != (self.n_weights,) or not np.isfinite(start).all():
            raise ValueError(f"start must be {self.n_weights} finite log-probabilities; give zeros a floor.")
        return self.tables.feasible(start)

    def feasible(self, theta: np.ndarray) -> np.ndarray:
        """Given log-probabilities, as a start: a mass above 1 by rounding is divided away, a larger one is refused."""
        mass = self.tables.log_mass(theta)
        if (mass > ROUNDING).any():
            j = int(np.argmax(mass))
            raise ValueError(
                f"the start is no model of log-probabilities: {self.tables.name(j)} sums to {np.exp(mass[j]):.6g}, "
                "more than 1. Give the logarithms of probabilities, such as the weights_ of a fitted model."
            )
        return self.tables.feasible(theta)

    def with_oracles(self, wrap: Callable[[Oracle], Oracle]) -> GenerativeProblem:
        """The same problem asked through other oracles."""
        return replace(self, oracle=wrap(self.oracle))

    def penalty(self, losses: np.ndarray) -> float:
        """``sum_k C_k loss_k``, or ``sum_k C_k loss_k^2 / 2``."""
        active = self.weight > 0
        losses = np.maximum(losses[active], 0.0)
        return float(self.weight[active] @ (0.5 * losses**2 if self.squared else losses))

    def primal(self, theta: np.ndarray, losses: np.ndarray) -> float:
        """P at a feasible ``theta`` from the losses (or upper bounds of them) of all examples."""
        own = self.tables.pulled(theta, self.reference, self.pull)
        return self.penalty(losses) - float(self.reference @ theta) + own + self.linear(theta)

    def linear(self, theta: np.ndarray) -> float:
        """``theta . shift + offset``."""
        return 0.0 if self.term is None else self.term.at(theta)

    def lower_bound(self, linear: float, u: np.ndarray) -> float:
        """A proven lower bound of the optimum from any feasible multipliers, of the hinge."""
        return self.bound_along(linear, u)[0]

    def dual(self, linear: float, u: np.ndarray, quadratic: float = 0.0) -> float:
        """D from ``sum alpha b``, ``u = sum alpha a - shift`` and ``sum zeta^2 / C``; -inf outside ``c + u >= 0``."""
        from maxmargin.formulations.generative_kernel import table_entropy

        linear += self.offset
        if self.pull:
            whole = Proximal(self.tables, self.reference, np.zeros(len(u)), np.zeros(len(u)), self.pull)
            return linear - 0.5 * quadratic - whole.conjugate(u)
        return linear - 0.5 * quadratic + table_entropy(self.tables.starts, self.reference + u)

    def bound_along(self, linear: float, u: np.ndarray, quadratic: float = 0.0) -> tuple[float, float]:
        """A certified lower bound of the optimum from any feasible multipliers, and the scale t behind it.

        Multipliers 0 (those of the subtracted planes, where there are any) are feasible and inside the domain, so for t
        small enough t times the way from them is both; the bound is the largest value of the dual along that segment.
        O(d) a trial of t.
        """
        from maxmargin.formulations.generative_kernel import best_shrink

        linear += self.offset
        if self.pull:
            values = (self.dual(t * linear - self.offset, t * u, t * t * quadratic) for t in SCALES)
            return max(zip(values, SCALES, strict=True))
        scale = np.zeros(1)
        value = best_shrink(self.tables.starts, self.reference, np.ascontiguousarray(u), linear, quadratic, scale)
        return float(value), float(scale[0])

    def estimate(self, linear: float, u: np.ndarray, quadratic: float = 0.0) -> tuple[float, int]:
        """The paper's lower *estimate*: the dual at ``max(c + u, 0)``, which no multipliers need reach.

        It can lie above the optimum; the number of tables that were outside the domain, returned with it, tells how
        little it means.
        """
        from maxmargin.formulations.generative_kernel import table_entropy

        if self.pull:
            return self.dual(linear, u, quadratic), 0
        linear += self.offset
        v = self.reference + u
        outside = len(np.unique(self.tables.table[v < 0]))
        return linear - 0.5 * quadratic + table_entropy(self.tables.starts, np.maximum(v, 0.0)), outside


class Generative(Parameters):
    """Discriminative training of a generative model whose weights are log-probabilities.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    tables : Tables, optional
        Those of the bound model's layout when missing.
    reference : array (n_weights,), optional
        See :func:`~maxmargin.models.tables.reference_distribution`; uniform when missing.
    start : array (n_weights,), optional
        Log-probabilities to begin with; the reference when missing.
    pull : float
        Weight of ``1/2 |theta - ln c|^2`` in the objective, beside the divergence.
    """

    def __init__(
        self,
        loss: str = "hinge",
        tables: Tables | None = None,
        reference: np.ndarray | None = None,
        start: np.ndarray | None = None,
        pull: float = 0.0,
    ) -> None:
        self.pull = pull
        self.loss = loss
        self.tables = tables
        self.reference = reference
        self.start = start

    def problem(
        self,
        model: BoundModel,
        *,
        C: float = 1.0,
        sample_weight: ArrayLike | None = None,
        positive: np.ndarray | None = None,
        cost_weight: float = 1.0,
    ) -> GenerativeProblem:
        """The problem of fitting a bound model.

        Parameters
        ----------
        model : BoundModel
        C : float
            Multiplies the sum of the losses (of their squares for the squared hinge); the paper's eta.
        sample_weight : array (n_examples,), optional
        positive
            Not for log-probabilities, which are <= 0.
        cost_weight : float
            1 but for the convex part of some ramp losses.
        """
        weight, squared = example_weights(self.loss, C, sample_weight, model.n_examples)
        if positive is not None:
            raise ValueError("log-probabilities are not positive; leave positive out.")
        tables = self.tables if self.tables is not None else model.layout.tables  # type: ignore[attr-defined]
        reference = reference_distribution(tables, "uniform") if self.reference is None else self.reference
        oracle = ModelOracle(model, cost_weight=cost_weight)
        return GenerativeProblem(oracle, weight, tables, reference, squared, self.start, self.pull)
