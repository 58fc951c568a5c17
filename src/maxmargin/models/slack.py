"""Slack rescaling: models whose planes are those of ``cost(y) (lam - w . psi(y))``.

    loss_i(w) = max_y  cost_i(y) (1 - w . psi_i(y)),        plane  a = cost psi,  b = cost

A bound model turns into one of the same data whose argmax maximises cost times violation and whose planes are scaled by
their cost; oracles and solvers use it like any other. At cost weight 0 it answers with the prediction. The argmax is
exact, so certificates close:

* multiclass: all labels are looked at;
* chains: a few plain argmaxes, then one table over all costs (:mod:`maxmargin.models.chain_slack_kernel`). Costs must
  be whole multiples of one number, as the number of wrong labels is. Time and memory of the table grow with the square
  of the length of a sequence, but are asked for only where the argmaxes leave a doubt;
* a user's own model needs a fifth function, ``slack_argmax``.

Tsochantaridis, Joachims, Hofmann, Altun 2005; Choi, Meshi, Srebro 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Any

import numpy as np

from maxmargin.inference.tables import refuse_large
from maxmargin.models.base import BoundModel, CompiledModel, digest
from maxmargin.models.chain import ChainLayout
from maxmargin.models.multiclass import MulticlassLayout
from maxmargin.models.user import SLACK, PythonBound

__all__ = ["slack_rescaled"]

FINEST = 1000  # ratios of costs are fractions with denominators up to this
MOST_COSTS = 100_000  # different costs of one chain


def slack_rescaled(bound: BoundModel) -> BoundModel:
    """The same examples with slack-rescaled planes; a ValueError where there is no exact argmax."""
    if isinstance(bound, CompiledModel) and isinstance(bound.layout, MulticlassLayout):
        from maxmargin.models.multiclass_kernel import multiclass_slack_plane

        # one entry more, so that multipliers of the one cannot be taken for those of the other
        return replace(bound, kernel=multiclass_slack_plane, meta=np.append(bound.meta, 1))
    if isinstance(bound, CompiledModel) and isinstance(bound.layout, ChainLayout):
        return _chain(bound)
    if isinstance(bound, PythonBound):
        if not callable(getattr(bound.layout.model, "slack_argmax", None)):
            raise ValueError(
                f'rescaling="slack" needs a model with slack_argmax(x, w, y_true), the output of largest '
                f"cost(y_true, y) * (1 - w . (phi(x, y_true) - phi(x, y))); {type(bound.layout.model).__name__} has "
                'none. Add it, or use rescaling="margin".'
            )
        return SlackBound(bound.n_examples, bound.n_weights, bound.layout, bound.capabilities, bound)
    raise ValueError(
        f'rescaling="slack" is there for multiclass models, chains and models of your own; a model with '
        f'{type(bound.layout).__name__} has no exact search. Use rescaling="margin".'
    )


def _chain(bound: CompiledModel) -> CompiledModel:
    """A bound chain with the units of its costs behind the other numbers, and the kernel that reads them."""
    from maxmargin.models import chain_kernel as ck
    from maxmargin.models.chain_slack_kernel import chain_slack_plane

    layout: ChainLayout = bound.layout
    lengths, K = np.diff(bound.output_at), len(layout.labels)
    worst = layout.cost_table.max(axis=1)
    at = bound.meta[ck.AT_LABELS]
    tokens = worst[bound.ints[at : at + lengths.sum()]]  # the most that each token can cost
    totals = np.add.reduceat(np.append(tokens, 0.0), bound.output_at[:-1]) * (lengths > 0)
    unit = _unit(layout.cost_table)
    steps = totals / unit
    if bound.n_examples and steps.max() > MOST_COSTS:
        i = int(np.argmax(steps))
        raise ValueError(
            f"example {i}: its outputs have up to {steps[i]:.3g} different costs (multiples of {unit:.6g}), too many "
            'for rescaling="slack". Round the costs to a coarser unit, or use rescaling="margin".'
        )
    for i in np.argsort(-steps * lengths)[:1]:
        refuse_large(
            int(8 * lengths[i] * K * (steps[i] + 1)),
            f'rescaling="slack" of example {i} with {lengths[i]} positions, {K} labels and costs up to {totals[i]:g}',
            'cut the sequence into shorter ones or use rescaling="margin"',
        )
    weight = 1.0 / np.maximum(lengths, 1) if layout.normalize else np.ones(bound.n_examples)
    return replace(
        bound,
        kernel=chain_slack_plane,
        meta=np.append(bound.meta, len(bound.floats)),
        floats=np.concatenate([bound.floats, np.where(totals > 0, unit * weight, 0.0)]),
    )


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


@dataclass(frozen=True)
class SlackBound(BoundModel):
    """A user's model whose planes are slack-rescaled."""

    inner: PythonBound = None  # type: ignore[assignment]

    @cached_property
    def fingerprint(self) -> str:
        """That of the model, marked: its multipliers belong to other planes."""
        return digest(np.frombuffer(b"slack" + self.inner.fingerprint.encode(), np.uint8))

    def plane(self, w: np.ndarray, i: int, cost_weight: float) -> tuple[np.ndarray, np.ndarray, float, float, float]:
        """The plane of largest ``cost (cost_weight - w . psi)``; as :meth:`PythonBound.plane` otherwise."""
        w, inner = w[: self.n_weights], self.inner
        if cost_weight <= 0.0:  # the prediction
            indices, values, cost, value, _ = inner.plane(w, i, 0.0)
            return indices, cost * values, cost, cost * value, np.inf
        y = self.layout.model.slack_argmax(inner.X[i], w / cost_weight, inner.Y[i])
        indices, values, cost = inner.plane_of(y, i, "slack_argmax")
        terms = w[indices] * values
        value = cost * (cost_weight - float(terms.sum()))
        if value < -SLACK * cost * max(cost_weight, float(np.abs(terms).sum())):
            raise ValueError(
                f"example {i}: slack_argmax returned an output of value {value:.6g}; the true output has 0 and "
                "must be returned when there is nothing better."
            )
        bound = max(value, 0.0) if "exact" in self.capabilities else np.inf
        return indices, cost * values, cost, value, bound

    def decode(self, w: np.ndarray, i: int) -> Any:
        """The output of largest score."""
        return self.inner.decode(w, i)
