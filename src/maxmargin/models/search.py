"""Searches round the argmax of a model in plain Python; those of compiled models are in :mod:`.search_kernel`."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import Answer
from maxmargin.inference.slack_search import Reply, bisecting_search
from maxmargin.models.base import POWERS, BoundModel

__all__ = ["BY_QUERIES", "answer_by_queries"]

BY_QUERIES = ("slack", "sqrt_slack")  # searches that plain argmaxes can answer, with a bound


def answer_by_queries(model: BoundModel, w: np.ndarray, example: int, cost_weight: float, search: str) -> Answer:
    """The output of largest ``cost^p (lam - w . psi)``, lam = cost_weight, that plain argmaxes find, and its bound.

    The true output when nothing better is found. A bound of infinity, of an argmax that may miss, stays one.
    """
    exact = True

    def query(mu: float) -> Reply[Answer]:
        nonlocal exact
        found = model.answer(w, example, mu)
        exact = exact and np.isfinite(found.bound)
        h = cost_weight + found.value - mu * found.cost
        return Reply(h, found.cost, cost_weight + max(found.bound if exact else found.value, 0.0), found)

    result = bisecting_search(query, cost_weight, power=POWERS[search])
    best = result.output or Answer(np.empty(0, np.int32), np.empty(0), 0.0, 0.0, 0.0)
    return best._replace(value=result.value, bound=result.bound if exact else np.inf, queries=result.queries)
