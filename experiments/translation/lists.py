"""Lists of candidates with dense features: what MERT and PRO tune on, and a model of them for large-margin training.

Candidate y of list i has features phi_y (d,) and statistics, which add up to those of a corpus; its cost is what the
list's best candidate gains over it. All lists lie one after the other in a few arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin.contracts import Answer, Answers
from maxmargin.models.base import POWERS, BoundModel, digest
from maxmargin.parameters import Parameters

__all__ = ["CandidateLists", "ListModel"]


@dataclass(frozen=True)
class CandidateLists:
    """n lists of N candidates in all.

    Parameters
    ----------
    features : float array (N, d)
    statistics : float array (N, s)
        Counts that add up, such as those of BLEU.
    quality : float array (N,)
        How good each candidate is by itself, such as its smoothed sentence BLEU.
    starts : int array (n + 1,)
        Candidates of list i are ``starts[i]`` to ``starts[i + 1]``.
    """

    features: np.ndarray
    statistics: np.ndarray
    quality: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    @cached_property
    def columns(self) -> np.ndarray:
        """The features by column, for searches along one of them."""
        return np.asfortranarray(self.features)

    def span(self, i: int) -> slice:
        """Where the candidates of list i lie."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    def best(self, scores: np.ndarray) -> np.ndarray:
        """The candidate of highest score of each list, the first of equals, int (n,)."""
        return np.array([self.starts[i] + int(np.argmax(scores[self.span(i)])) for i in range(len(self))])

    def some(self, chosen: Sequence[int]) -> CandidateLists:
        """Some of the lists."""
        rows = np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in chosen])
        sizes = [int(self.starts[i + 1] - self.starts[i]) for i in chosen]
        parts = (self.features[rows], self.statistics[rows], self.quality[rows])
        return CandidateLists(*parts, np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True)
class ListLayout:
    """Weights of d features without names; an output is the number of a candidate among all."""

    n_weights: int
    quality: np.ndarray

    def output(self, code: object) -> int:
        return int(np.ravel(np.asarray(code))[0])

    def cost(self, y_true: int, y: int) -> float:
        return max(0.0, float(self.quality[y_true] - self.quality[y]))

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        return {}

    def real(self) -> np.ndarray:
        return np.ones(self.n_weights, bool)


class ListModel(Parameters):
    """Which candidate of a list is best: ``StructuredSVM(ListModel(lists)).fit(range(n), lists.best(lists.quality))``.

    An input is the number of a list, an output that of a candidate among all. ``|features| d`` per argmax, exact for
    every rescaling, since candidates can be enumerated.
    """

    def __init__(self, lists: CandidateLists) -> None:
        self.lists = lists

    def bind(self, X: Iterable[int], Y: Iterable[int] | None = None, *, layout: ListLayout | None = None) -> ListBound:
        chosen = np.array([int(i) for i in X])
        truth = None if Y is None else np.array([int(y) for y in Y])
        layout = ListLayout(self.lists.n_features, self.lists.quality) if layout is None else layout
        return ListBound(
            n_examples=len(chosen), layout=layout, capabilities=frozenset({"exact", "k_best", "outputs"}),
            lists=self.lists, chosen=chosen, truth=truth,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ListBound(BoundModel):
    """Some lists and their good candidates; see :class:`maxmargin.contracts.ListingModel`."""

    lists: CandidateLists
    chosen: np.ndarray
    truth: np.ndarray | None

    @property
    def fingerprint(self) -> str:
        return digest(
            self.lists.features, self.lists.quality, self.chosen, *(() if self.truth is None else (self.truth,))
        )

    def kernel(self, search: str = "argmax") -> None:
        if search not in ("argmax", *POWERS):
            raise self.no_search(search)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """The largest ``cost_weight cost - w . psi``, or ``cost^p (cost_weight - w . psi)`` over wrong candidates."""
        assert self.truth is not None
        span, true = self.lists.span(self.chosen[example]), int(self.truth[example])
        scores = self.lists.features[span] @ w
        cost = np.maximum(self.lists.quality[true] - self.lists.quality[span], 0.0)
        margin = scores - scores[true - span.start]  # - w . psi
        if search in POWERS and cost_weight > 0.0:
            value = np.where(cost > 0.0, cost ** POWERS[search] * (cost_weight + margin), 0.0)
        else:
            value = cost_weight * cost + margin
        at = int(np.argmax(value))
        if value[at] <= 0.0:
            at = true - span.start
        psi = self.lists.features[true] - self.lists.features[span.start + at]
        return Answer(np.arange(len(psi), dtype=np.int32), psi, float(cost[at]), float(value[at]), float(value[at]))

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """The candidates of highest score; with a cost weight, of highest score and cost."""
        outputs, numbers = [], []
        for i in range(self.n_examples) if examples is None else map(int, examples):
            span = self.lists.span(self.chosen[i])
            value, cost = self.lists.features[span] @ w, np.full(span.stop - span.start, np.nan)
            if self.truth is not None:
                cost = np.maximum(self.lists.quality[self.truth[i]] - self.lists.quality[span], 0.0)
                value = value + cost_weight * cost
            at = int(np.argmax(value))
            outputs.append(np.array([span.start + at], np.int32))
            numbers.append((value[at], value[at], cost[at]))
        return Answers(outputs, *np.array(numbers).reshape(-1, 3).T)

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, 1) and scores (m,) of the k best candidates."""
        span = self.lists.span(self.chosen[example])
        scores = self.lists.features[span] @ w
        order = np.argsort(-scores, kind="stable")[:k]
        return (span.start + order[:, None]).astype(np.int32), scores[order]

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of the true candidate less those of another."""
        assert self.truth is not None
        psi = self.lists.features[self.truth[example]] - self.lists.features[int(codes[0])]
        return np.arange(len(psi)), psi

    def codes(self, example: int, output: object) -> np.ndarray:
        """The number of a candidate, checked against its list."""
        at, span = int(np.asarray(output)), self.lists.span(self.chosen[example])
        if not span.start <= at < span.stop:
            raise ValueError(f"example {example} has candidates {span.start} to {span.stop - 1}; got {at}.")
        return np.array([at], np.int32)
