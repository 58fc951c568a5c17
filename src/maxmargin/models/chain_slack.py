"""Exact searches of chains: for slack rescaling, with the limits within which it is exact, and the best wrong output.

A few plain argmaxes, then one table over all costs (:mod:`maxmargin.models.chain_slack_kernel`). A search over cost
weights alone is not exact: it sees only the corners of the hull of (cost, violation), and its bound stays above 0 for
examples that have their margin. Costs must be whole multiples of one number, as the number of wrong labels is. Time and
memory of the table grow with the square of the length of a sequence, but are asked for only where the argmaxes leave a
doubt. Tsochantaridis, Joachims, Hofmann, Altun 2005; Choi, Meshi, Srebro 2016.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import ModelKernel
from maxmargin.inference.tables import refuse_large
from maxmargin.models.base import CompiledModel

if TYPE_CHECKING:
    from maxmargin.models.chain import ChainLayout

__all__ = ["slack_search", "wrong_search"]

FINEST = 1000  # ratios of costs are fractions with denominators up to this
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
    unit = _unit(layout.cost_table)
    steps = totals / unit
    if bound.n_examples and steps.max() > MOST_COSTS:
        i = int(np.argmax(steps))
        what = f"its outputs have up to {steps[i]:.3g} different costs (multiples of {unit:.6g})"
        remedy = 'Round the costs to a coarser unit, or use rescaling="margin".'
        raise ValueError(f'example {i}: {what}, too many for rescaling="slack". {remedy}')
    for i in np.argsort(-steps * lengths)[:1]:
        refuse_large(
            int(8 * lengths[i] * K * (steps[i] + 1)),
            f'rescaling="slack" of example {i} with {lengths[i]} positions, {K} labels and costs up to {totals[i]:g}',
            'cut the sequence into shorter ones or use rescaling="margin"',
        )
    weight = 1.0 / np.maximum(lengths, 1) if layout.normalize else np.ones(bound.n_examples)
    return bound.packed(chain_slack, power, np.where(totals > 0, unit * weight, 0.0))


def _unit(costs: np.ndarray) -> float:
    """The largest number of which all costs are whole multiples."""
    positive = np.unique(costs[costs > 0.0])
    if len(positive) == 0:
        return 1.0
    ratios = positive / positive[0]
    parts = [Fraction(float(ratio)).limit_denominator(FINEST) for ratio in ratios]
    for cost, ratio, part in zip(positive, ratios, parts, strict=True):
        if abs(float(part) - ratio) > 1e-9 * ratio:
            raise ValueError(
                'rescaling="slack" of chains needs costs (times class weights) that are whole multiples of one number; '
                f"{positive[0]:.6g} and {cost:.6g} are not, up to factors of {FINEST}. Round the costs or the class "
                'weights, or use rescaling="margin".'
            )
    below = lcm(*(part.denominator for part in parts))
    return float(positive[0]) * gcd(*(int(part * below) for part in parts)) / below
