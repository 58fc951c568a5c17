"""Exact searches of chains: for slack rescaling, with the limits within which it is exact, and the best wrong output.

A few plain argmaxes, then one table over all costs (:mod:`maxmargin.models.chain_slack_kernel`). A search over cost
weights alone is not exact: it sees only the corners of the hull of (cost, violation), and its bound stays above 0 for
examples that have their margin. Costs must be whole multiples of one number, as the number of wrong labels is, and not
too many of them; otherwise the argmaxes have to do, and what they leave open is in the bound. Time and memory of the
table grow with the square of the length of a sequence, but are asked for only where the argmaxes leave a doubt.
Tsochantaridis, Joachims, Hofmann, Altun 2005; Choi, Meshi, Srebro 2016.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import ModelKernel
from maxmargin.costs.units import unit_of
from maxmargin.inference.tables import LARGEST_TABLE
from maxmargin.models.base import CompiledModel, least_positive

if TYPE_CHECKING:
    from maxmargin.models.chain import ChainLayout

__all__ = ["slack_search", "wrong_search"]

MOST_COSTS = 100_000  # different costs of one chain


def wrong_search(bound: CompiledModel) -> ModelKernel:
    """A bound chain with the search for the best wrong output."""
    from maxmargin.models.chain_slack_kernel import chain_wrong

    return bound.packed(chain_wrong)


def slack_search(bound: CompiledModel, layout: ChainLayout, power: float) -> ModelKernel:
    """A bound chain with the search for the largest ``cost^power (lam - w . psi)``, and the units of its costs."""
    from maxmargin.models import chain_kernel as ck
    from maxmargin.models.chain_slack_kernel import chain_slack

    lengths, K = np.diff(bound.output_at), len(layout.labels)
    worst = layout.cost_table.max(axis=1)
    at = bound.meta[ck.AT_LABELS]
    tokens = worst[bound.ints[at : at + lengths.sum()]]  # the most that each token can cost
    totals = np.add.reduceat(np.append(tokens, 0.0), bound.output_at[:-1]) * (lengths > 0)
    weight = 1.0 / np.maximum(lengths, 1) if layout.normalize else np.ones(bound.n_examples)
    least = np.where(totals > 0, least_positive(layout.cost_table) * weight, 0.0)
    unit = unit_of(layout.cost_table)
    steps = totals / unit if unit else np.full(bound.n_examples, np.inf)
    fits = (steps <= MOST_COSTS) & (8.0 * lengths * K * (steps + 1.0) <= LARGEST_TABLE)
    units = np.where(fits, (unit or 0.0) * weight, 0.0)
    return bound.packed(chain_slack, power, np.concatenate([np.where(units > 0, units, least), units]))
