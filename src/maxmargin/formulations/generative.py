"""Generative models with a margin: log-probabilities pulled towards a reference, and pushed apart by their mistakes.

    (P)   min_theta  sum_j c_j . (m_j - theta_j) + sum_k C_k loss_k(theta)    with  1'e^{theta_j} <= 1 for every table j

with ``loss_k(theta) = max_s b_k(s) - theta . a_k(s)`` and ``a_k(s) = counts(truth) - counts(s)``; for the squared hinge
the second term is ``sum_k C_k loss_k(theta)^2 / 2``. A table is one conditional distribution; mass that it leaves,
``1 - 1'e^{theta_j}``, belongs to a value never seen. The first term, ``m_j = ln c_j``, is the Kullback-Leibler
divergence from c_j: 0 at the reference, so that the objective holds nothing that training cannot change, and a relative
gap says what it seems to. With ``u = sum alpha a``, ``linear = sum alpha b`` and ``H(v) = -v . ln(v / 1'v)`` the dual
is closed,

    (D)   max  linear + sum_j H(v_j) - H(c_j) - sum_k zeta_k^2 / (2 C_k)        over  v = c + u >= 0,

its last term for the squared hinge only (``zeta_k = sum alpha_k``, free), where the hinge has ``zeta_k <= C_k``.

With ``pull = rho > 0`` the objective also has ``rho/2 sum_j |theta_j - m_j|^2``, another convex f_j:
ratios of probabilities then count whatever the probabilities are, so that rare values stay near the reference too. Its
dual is finite everywhere, and the dual value itself is the certified bound. The divergence with the model as its first
argument, ``sum e^theta (theta - ln c)``, is not offered: it is not convex below ``ln c - 2``.

A round of CCCP (formulations/ramp.py) adds the linear term ``theta . shift + offset``, where ``shift = sum_k C_k a_k``
and ``offset = - sum_k C_k b_k`` over planes (a_k, b_k) of outputs that score above the truth. Entries of ``c - shift``
may be negative, so that multipliers 0 are no point of the dual any more; those of the planes that are subtracted are
one. With u counted from there, ``u = sum alpha a - shift``, D and its bounds stay as they are. In other words: a round
is a hinge fit in which the outputs that score above the truth have taken its place.

Yu, Bertsekas, Rousu, An efficient discriminative training method for generative models. The certified bound
(:meth:`~maxmargin.formulations.divergence.TableDivergence.lower_bound`) is an addition to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.contracts import BoundModel, Mask, SampleWeight
from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.problem import Problem, example_weights, lift_of
from maxmargin.models.tables import Tables, reference_distribution
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.parameters import Parameters

__all__ = ["Generative"]


@dataclass(repr=False, eq=False)
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
    rescaling : {"margin", "slack", "sqrt_slack"}
        How costs enter the planes; see :class:`~maxmargin.formulations.rescaled_hinge.RescaledHinge`.
    """

    loss: str = "hinge"
    tables: Tables | None = None
    reference: np.ndarray | None = None
    start: np.ndarray | None = None
    pull: float = 0.0
    rescaling: str = "margin"

    def problem(
        self, model: BoundModel, *, C: float = 1.0, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> Problem:
        """As that of a :class:`~maxmargin.contracts.Formulation`; C is the paper's eta, and positive is refused."""
        weight, squared = example_weights(self.loss, C, sample_weight, model.n_examples)
        if positive is not None:
            raise ValueError("log-probabilities are not positive; leave positive out.")
        tables = self.tables if self.tables is not None else model.layout.tables  # type: ignore[attr-defined]
        reference = reference_distribution(tables, "uniform") if self.reference is None else self.reference
        if tables.n_weights != model.n_weights:
            raise ValueError(f"the model has {model.n_weights} weights, the tables hold {tables.n_weights}.")
        lift = lift_of(weight) if squared else None
        oracle = ModelOracle(model, self.rescaling, lift=np.empty(0) if lift is None else lift)
        return Problem(oracle, weight, model.n_weights, TableDivergence(tables, reference, self.pull, self.start), lift)
