"""Slack searches round the argmaxes of any model, in plain Python; compiled ones are in :mod:`.search_kernel`.

========================  ==========================================================================================
name                      what it asks, and what it proves
========================  ==========================================================================================
"angular"                 the argmax within an angle (the capability "constrained"): finds the most violating output
"bisecting"               plain argmaxes along the hull of costs and violations: may miss it, with a bound
"binary", "golden"        plain argmaxes, for the least bound of lemma 1 of the paper: may miss it, with a bound
"sarawagi_gupta"          plain argmaxes, to find or exclude outputs above the first one: may miss it, with a bound
"relaxed"                 argmaxes over relaxed outputs (the capability "relaxed"): the best relaxed output, which may
                          be fractional; exact for a loss that is an upper bound
========================  ==========================================================================================

See :mod:`maxmargin.inference.slack_search`. Choi, Meshi, Srebro 2016.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf

import numpy as np

from maxmargin.contracts import (
    Answer,
    Answers,
    BoundModel,
    ConstrainedModel,
    ModelKernel,
    RelaxedModel,
    offers_constrained,
    offers_relaxed,
)
from maxmargin.inference import slack_search as ss
from maxmargin.models import base
from maxmargin.needs import require

__all__ = ["BY_QUERIES", "SLACK_SEARCHES", "SearchedModel", "answer_by_queries", "has_highs"]

BY_QUERIES = ("slack", "sqrt_slack")  # searches that plain argmaxes can answer, with a bound
BY_NAME: dict[str, Callable[..., ss.SearchResult[Answer]]] = {
    "bisecting": ss.bisecting_search,
    "binary": ss.binary_search,
    "golden": ss.golden_search,
    "sarawagi_gupta": ss.sarawagi_gupta_search,
}
SLACK_SEARCHES = ("auto", "angular", *BY_NAME, "relaxed")
NEEDS = {"angular": "constrained", "relaxed": "relaxed"}  # capabilities
LEAST = 1e-7  # outputs with h or cost below may be left out by an argmax within an angle
STOP = ss.Stop(queries=30, relative=1e-6)  # of angular search: programs take long
NOTHING = Answer(np.empty(0, np.int32), np.empty(0), 0.0, 0.0, 0.0)


def has_highs() -> bool:
    """Whether HiGHS, which argmaxes within an angle are mostly made of, is installed."""
    return find_spec("highspy") is not None


def answer_by_queries(
    model: BoundModel, w: np.ndarray, example: int, cost_weight: float, search: str, method: str = "auto"
) -> Answer:
    """The output of largest ``cost^p (lam - w . psi)``, lam = cost_weight, that a search finds, and its bound.

    ``search`` says p, ``method`` is one of :data:`SLACK_SEARCHES`; "auto" is angular search where p = 1 and the model
    has an argmax within an angle, else bisecting. The true output when nothing better is found. A bound of infinity, of
    an argmax that may miss, stays one.
    """
    exact = True

    def query(mu: float) -> ss.Reply[Answer]:
        nonlocal exact
        found = model.answer(w, example, mu)
        exact = exact and np.isfinite(found.bound)
        return _reply(found, cost_weight, mu, cost_weight + max(found.bound if exact else found.value, 0.0))

    if method == "relaxed":
        assert offers_relaxed(model)
        return _best_relaxed(model, w, example, cost_weight)
    if method == "auto":
        method = "angular" if search == "slack" and offers_constrained(model) else "bisecting"
    if method == "angular":
        assert offers_constrained(model)
        result = _angular(model, query, w, example, cost_weight)
    elif method == "bisecting":
        result = ss.bisecting_search(query, cost_weight, power=base.POWERS[search])
    else:
        result = BY_NAME[method](query, start=cost_weight)
    best = result.output or NOTHING
    return best._replace(value=result.value, bound=result.bound if exact else inf, queries=result.queries)


def _reply(found: Answer, lam: float, mu: float, bound: float) -> ss.Reply[Answer]:
    return ss.Reply(lam + found.value - mu * found.cost, found.cost, bound, found)


def _angular(
    model: ConstrainedModel, plain: Callable[[float], ss.Reply[Answer]], w: np.ndarray, example: int, lam: float
) -> ss.SearchResult[Answer]:
    """Angular search behind one plain query: its answer is the first incumbent, its line a bound of all outputs.

    By that line, outputs that argmaxes within an angle may leave out, with h or cost below :data:`LEAST`, are worth no
    more than LEAST times the largest cost or h.
    """

    def query(mu: float, low: float, high: float) -> ss.Reply[Answer] | None:
        found = model.answer_between(w, example, lam, mu, low, high)
        return None if found is None else _reply(found, lam, mu, lam + found.bound)

    first = plain(lam)
    value, above = max(first.h, 0.0) * first.g, first.bound**2 / (4.0 * lam)
    if above <= value * ss.EQUAL:
        return ss.SearchResult(first.output if value > 0.0 else None, value, max(value, above), 1)
    result = ss.angular_search(
        ss.in_closed_angles(query),
        ss.first_cost_weight((first,), lam, lam),
        STOP,
        (first,),
        strip=ss.STRIP,
        beyond=LEAST * first.bound * max(1.0, 1.0 / lam),
    )
    return result._replace(bound=max(min(result.bound, above), result.value), queries=result.queries + 1)


def _best_relaxed(model: RelaxedModel, w: np.ndarray, example: int, lam: float) -> Answer:
    """The relaxed output of largest ``cost (lam - w . psi)``: the best point of the last edge of the hull."""

    def query(mu: float) -> ss.Reply[Answer]:
        found = model.answer_relaxed(w, example, mu)
        return _reply(found, lam, mu, lam + max(found.bound, 0.0))

    found = ss.relaxed_search(query, lam)
    low, high, t = found.low.output, found.high.output, found.share
    psi = np.zeros(model.n_weights)
    for answer, share in ((low, 1.0 - t), (high, t)):
        psi[answer.indices] += share * answer.psi
    index, cost = np.flatnonzero(psi).astype(np.int32), (1.0 - t) * low.cost + t * high.cost
    if found.value <= 0.0:
        return NOTHING._replace(bound=max(found.bound, 0.0), queries=found.queries)
    return Answer(index, psi[index], cost, found.value, found.bound, found.queries)


@dataclass(frozen=True, kw_only=True)
class SearchedModel(base.BoundModel):
    """A bound model whose slack argmax is a search that the user has chosen, in plain Python; else that model."""

    inner: BoundModel = field(repr=False)
    method: str

    @classmethod
    def of(cls, inner: BoundModel, method: str, search: str) -> BoundModel:
        """The model with a search of :data:`SLACK_SEARCHES`; itself for "auto", and where nothing is searched."""
        if method not in SLACK_SEARCHES:
            raise ValueError(f"slack_search must be one of {', '.join(SLACK_SEARCHES)}; got {method!r}.")
        if method == "auto" or search not in BY_QUERIES:
            return inner
        asker, remedy = f'slack_search="{method}"', 'use slack_search="auto" or "bisecting"'
        if search != "slack" and method != "bisecting":
            raise ValueError(f'{asker} is for rescaling="slack"; with "{search}" {remedy}.')
        if method == "angular" and not offers_constrained(inner) and not has_highs():
            missing = f"{asker} needs HiGHS (pip install highspy), which is missing"
            warnings.warn(f'{missing}; slack_search="bisecting" is used.', stacklevel=2)
            method = "bisecting"
        name = type(inner.layout).__name__.removesuffix("Layout").lower()
        require(asker, {NEEDS[method]} if method in NEEDS else (), f"the {name} model", inner.capabilities, remedy)
        return cls(
            n_examples=inner.n_examples,
            layout=inner.layout,
            capabilities=inner.capabilities - {"parts"},  # it travels with all examples
            inner=inner,
            method=method,
        )

    @property
    def fingerprint(self) -> str:
        """That of the model, marked where outputs are relaxed: planes of these prove nothing about outputs."""
        return self.inner.fingerprint + (" relaxed" if self.method == "relaxed" else "")

    @property
    def needs_positive(self) -> np.ndarray | None:
        return self.inner.needs_positive

    def kernel(self, search: str = "argmax") -> ModelKernel | None:
        """None where the search runs."""
        return None if search in BY_QUERIES else self.inner.kernel(search)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        if search in BY_QUERIES and cost_weight > 0.0:
            return answer_by_queries(self.inner, w, example, cost_weight, search, self.method)
        return self.inner.answer(w, example, cost_weight, search)

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        return self.inner.argmax(w, examples, cost_weight)
