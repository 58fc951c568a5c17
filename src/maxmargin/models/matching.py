"""Links between two sides: which nodes on the left belong to which on the right.

    w . phi(x, y) = sum_{(i, j) in y} w_pair . x_ij - sum_k left_k #links of a left node from its k-th on
                                                    - sum_k right_k #links of a right node from its k-th on
                                                    + sum_d bonus_d #pairs of links that touch in the way d

with k = 2, 3, ... up to the most links that a node may have, and prices left_k, right_k >= 0, which make the k-th link
of a node at least as dear as the one before: the argmax is then a flow of least cost, exact and integral
(:mod:`maxmargin.inference.matching_kernel`). Nodes without links are free. Bonuses are for links (i, j) that touch one
at (i + 1, j + 1), along the diagonal, or (i + 1, j - 1), across it; they are there on request, and the argmax then has
an upper bound (:mod:`maxmargin.inference.neighbours_kernel`).

    cost(y) = missed * #sure links that y lacks + false * #links of y that are not even possible

Taskar, Lacoste-Julien, Klein 2005, A discriminative matching approach to word alignment. Lacoste-Julien et al. 2006,
Word alignment via quadratic assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.datasets.links import Links, Pair, as_links
from maxmargin.door import LARGEST_FEATURE, numbers, refuse_not_finite
from maxmargin.inference.matching import best_matching, k_best_matchings
from maxmargin.models.base import CompiledModel, laid_out, offsets_of
from maxmargin.models.labels import check_count
from maxmargin.models.layout_state import StateReader, StorableLayout, facts_of
from maxmargin.parameters import Parameters

__all__ = ["Matching", "MatchingBound", "MatchingLayout"]

MOST_LINKS = 64  # of one node
MOST_NODES = 2**31  # of one side
N_STEPS = 2  # ways in which links touch


@dataclass(frozen=True)
class MatchingLayout(StorableLayout):
    """Where each weight lives: features of pairs, prices on the left, on the right, then bonuses of neighbours."""

    n_features: int
    max_left: int
    max_right: int
    missed: float
    false: float
    neighbours: bool

    @property
    def n_weights(self) -> int:
        return self.n_features + self.n_prices + N_STEPS * self.neighbours

    @property
    def n_prices(self) -> int:
        return self.max_left - 1 + self.max_right - 1

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``pair`` (F,), ``left`` (max_left - 1,), ``right`` (max_right - 1,), and ``neighbours`` (2,) or (0,)."""
        parts = np.split(w, np.cumsum([self.n_features, self.max_left - 1, self.max_right - 1]))
        return dict(zip(("pair", "left", "right", "neighbours"), parts, strict=True))

    def prices(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prices of the first, second, ... link of a node on the left and on the right."""
        groups = self.groups(w)
        left, right = (np.concatenate([[0.0], np.cumsum(groups[side])]) for side in ("left", "right"))
        return left, right

    def positive(self) -> np.ndarray:
        """Mask of the weights that must be >= 0: the prices."""
        place = np.arange(self.n_weights) - self.n_features
        return (place >= 0) & (place < self.n_prices)

    def output(self, codes: np.ndarray) -> list[Pair]:
        """Links (i, j) in their order; codes hold one after the other, and -1 behind the last."""
        return [(i, j) for i, j in codes.reshape(-1, 2).tolist() if i >= 0]

    def cost(self, y_true: object, y: Iterable[Pair]) -> float:
        """Cost of links where others are true."""
        truth = as_links(y_true, 0, (MOST_NODES, MOST_NODES))
        found = as_links(y, 0, (MOST_NODES, MOST_NODES)).sure
        wrong = found - truth.sure - truth.possible
        return self.missed * len(truth.sure - found) + self.false * len(wrong)

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        return facts_of(self), {}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> MatchingLayout:
        state = StateReader(facts, tensors)
        limits = {side: state.whole(side, 1, MOST_LINKS + 1) for side in ("max_left", "max_right")}
        return cls(**state.announced(cls, **limits))


@dataclass(frozen=True, kw_only=True)
class MatchingBound(CompiledModel):
    """The matching model bound to n examples."""

    layout: MatchingLayout
    features: list[np.ndarray]  # (n, m, F) each
    truth: list[np.ndarray] | None  # true links as places i m + j, rising

    @property
    def needs_positive(self) -> np.ndarray | None:
        mask = self.layout.positive()
        return mask if mask.any() else None

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, 2 most links) and scores (m,) of the k best sets of links, best first."""
        w, x = np.asarray(w, np.float64)[: self.n_weights], self.features[example]
        found = k_best_matchings(x @ w[: x.shape[2]], k, *self.layout.prices(w))
        codes = np.full((len(found), int(np.diff(self.output_at)[example])), -1, np.int32)
        for row, one in zip(codes, found, strict=True):
            row[: one.links.size] = one.links.ravel()
        return codes, np.array([one.value for one in found])

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi(x, y_i) - phi(x, y)`` of the links with these codes, as indices and values."""
        if self.truth is None:
            raise ValueError("differences from the true links need the true links; bind with Y.")
        links = codes[codes >= 0].reshape(-1, 2)
        places = links @ [self.features[example].shape[1], 1]
        psi = self.joint_features(example, self.truth[example]) - self.joint_features(example, places)
        index = np.flatnonzero(psi)
        return index.astype(np.int32), psi[index]

    def content(self, example: int, codes: np.ndarray) -> np.ndarray:
        """Which pairs are linked, so that two sets differ in as many parts as there are links that only one has."""
        n, m = self.features[example].shape[:2]
        linked = np.zeros(n * m, np.int8)
        linked[codes[codes >= 0].reshape(-1, 2) @ [m, 1]] = 1
        return linked

    def codes(self, example: int, output: object) -> np.ndarray:
        """The codes of a user's links; a ValueError that names the example when they are not allowed."""
        n, m = self.features[example].shape[:2]
        links = np.array(sorted(as_links(output, example, (n, m)).sure), np.int32).reshape(-1, 2)
        degrees = [int(np.bincount(ends, minlength=1).max()) for ends in links.T]
        if degrees[0] > self.layout.max_left or degrees[1] > self.layout.max_right:
            limits = f"{self.layout.max_left} on the left and {self.layout.max_right} on the right"
            raise ValueError(f"example {example} has a node with more links than {limits}; raise max_links.")
        codes = np.full(int(np.diff(self.output_at)[example]), -1, np.int32)
        codes[: links.size] = links.ravel()
        return codes

    def joint_features(self, example: int, places: np.ndarray) -> np.ndarray:
        """phi of the links at places i m + j of an example, (n_weights,)."""
        x = self.features[example]
        n, m, F = x.shape
        phi = np.zeros(self.n_weights)
        phi[:F] = x.reshape(-1, F)[places].sum(axis=0)
        groups = self.layout.groups(phi)  # views
        if self.layout.neighbours:
            linked = np.zeros((n + 1, m + 2), bool)
            linked[places // m, places % m + 1] = True
            here = linked[:n, 1:-1]
            groups["neighbours"][...] = [(here & other).sum() for other in (linked[1:, 2:], linked[1:, :-2])]
        for name, ends, size in (("left", places // m, n), ("right", places % m, m)):
            degree = np.bincount(ends, minlength=size)
            groups[name][...] = [-np.maximum(degree - k, 0).sum() for k in range(1, len(groups[name]) + 1)]
        return phi


class Matching(Parameters):
    """Links between two sides.

    Parameters
    ----------
    max_links : int or (int, int)
        The most links of a node, or of a node on the left and one on the right.
    missed, false : float
        Cost of a sure link that is missed, and of a link that is not even possible.
    neighbours : bool
        Whether links that touch have bonuses of their own, two weights. The argmax then solves up to 100 matchings,
        and has an upper bound, which certificates count, where these do not prove it.
    """

    def __init__(
        self,
        max_links: int | tuple[int, int] = 1,
        *,
        missed: float = 1.0,
        false: float = 1.0,
        neighbours: bool = False,
    ) -> None:
        self.max_links, self.missed, self.false, self.neighbours = max_links, missed, false, neighbours

    def bind(
        self, X: Iterable[ArrayLike], Y: Iterable[object] | None = None, *, layout: MatchingLayout | None = None
    ) -> MatchingBound:
        """Pack examples for the kernel.

        Parameters
        ----------
        X : list of arrays (n, m, F)
            Features of every pair of a node on the left and one on the right.
        Y : list of links; missing at prediction time
            Pairs (i, j), text such as "0-0 1-2 2?1", or :class:`~maxmargin.datasets.links.Links` with possible ones. Of
            a node with more sure links than ``max_links`` only so many are asked for; the others become possible.
        layout : MatchingLayout of the training data, for further data
        """
        features = _checked_features(X)
        if layout is None:
            layout = self._layout(features)
        for i, x in enumerate(features):
            if x.shape[2] != layout.n_features:
                raise ValueError(f"example {i} has {x.shape[2]} features for a pair, others {layout.n_features}.")
        return _pack(layout, features, None if Y is None else _checked_links(Y, features))

    def _layout(self, features: list[np.ndarray]) -> MatchingLayout:
        limits = self.max_links if isinstance(self.max_links, (tuple, list)) else (self.max_links,) * 2
        if len(limits) != 2 or not all(isinstance(k, (int, np.integer)) and 1 <= k <= MOST_LINKS for k in limits):
            raise ValueError(f"max_links is {self.max_links!r:.60}; give one or two numbers from 1 to {MOST_LINKS}.")
        for name, cost in (("missed", self.missed), ("false", self.false)):
            if (
                isinstance(cost, bool)
                or not isinstance(cost, (int, float, np.number))
                or not 0 < cost <= LARGEST_FEATURE
            ):
                raise ValueError(f"{name} is {cost!r:.60}; give a positive number.")
        if not isinstance(self.neighbours, (bool, np.bool_)):
            raise ValueError(f"neighbours is {self.neighbours!r:.60}; give True or False.")
        if features[0].shape[2] == 0:
            raise ValueError("example 0 has no features; give at least one for each pair.")
        costs = float(self.missed), float(self.false)
        return MatchingLayout(features[0].shape[2], int(limits[0]), int(limits[1]), *costs, bool(self.neighbours))


def _checked_features(X: Iterable[ArrayLike]) -> list[np.ndarray]:
    if not isinstance(X, Iterable):
        raise TypeError(f"X is {X!r:.60}; give one array (n, m, F) for each example.")
    found = []
    for i, x in enumerate(X):
        array = numbers(x, f"the features of example {i}")
        if array.ndim != 3:
            what = "one row of features for each pair, (n, m, F)"
            raise ValueError(f"the features of example {i} have shape {array.shape}; give {what}.")
        refuse_not_finite(array, f"the features of example {i} are NaN or infinite")
        found.append(array)
    if not found:
        raise ValueError("X is empty; at least one example is needed.")
    check_count(sum(x.size for x in found), "features", "the pairs have", "bind the examples in parts")
    return found


def _checked_links(Y: Iterable[object], features: list[np.ndarray]) -> list[Links]:
    if isinstance(Y, str) or not isinstance(Y, Iterable):
        raise TypeError(f"Y is {Y!r:.60}; give the links of each example.")
    given = list(Y)
    if len(given) != len(features):
        raise ValueError(f"X has {len(features)} examples and Y has {len(given)}; they must agree.")
    return [as_links(y, i, x.shape[:2]) for i, (x, y) in enumerate(zip(features, given, strict=True))]


def _wanted(links: Links, shape: tuple[int, int], limits: tuple[int, int]) -> np.ndarray:
    """As many sure links as the limits allow, as places i m + j, rising."""
    score = np.full(shape, -np.inf)
    for pair in links.sure:
        score[pair] = 1.0
    found = best_matching(score, np.zeros(limits[0]), np.zeros(limits[1])).links
    return (found @ [shape[1], 1]).astype(np.int64)


def _pack(layout: MatchingLayout, features: list[np.ndarray], links: list[Links] | None) -> MatchingBound:
    from maxmargin.models import matching_kernel as mk

    shapes = np.array([x.shape[:2] for x in features], np.int64).reshape(-1, 2)
    pairs = shapes[:, 0] * shapes[:, 1]
    limits = layout.max_left, layout.max_right
    most = np.minimum(np.minimum(shapes[:, 0] * limits[0], shapes[:, 1] * limits[1]), pairs)
    truth, costs, least = None, np.empty(0), np.empty(0)
    if links is not None:
        truth = [_wanted(y, x.shape[:2], limits) for x, y in zip(features, links, strict=True)]
        tables = [np.full(x.shape[:2], layout.false) for x in features]
        for table, wanted, y in zip(tables, truth, links, strict=True):
            for pair in y.sure | y.possible:
                table[pair] = 0.0
            table.reshape(-1)[wanted] = -layout.missed
        costs = np.concatenate([table.ravel() for table in tables])
        least = np.array([np.abs(table[table != 0]).min(initial=np.inf) for table in tables])
        least[np.isinf(least)] = 0.0
    n_links = np.array([len(t) for t in truth]) if truth is not None else np.zeros(len(features), np.int64)
    rows = np.column_stack([shapes, offsets_of(pairs)[:-1], offsets_of(n_links)[:-1], n_links])
    meta = np.zeros(mk.META_SIZE, np.int64)
    meta[[mk.N_FEATURES, mk.N_LEFT, mk.N_RIGHT, mk.HAS_LINKS]] = layout.n_features, *limits, links is not None
    meta[mk.NEIGHBOURS] = layout.neighbours
    ints = {mk.AT_ROWS: rows, mk.AT_LINKS: np.concatenate([np.empty(0, np.int64), *(truth or [])])}
    floats = {mk.AT_FEATURES: np.concatenate([x.ravel() for x in features]), mk.AT_COSTS: costs}
    nodes, widest = int(shapes.sum(axis=1).max()), int(pairs.max())
    return MatchingBound(
        n_examples=len(features),
        layout=layout,
        capabilities=frozenset({"outputs"} if layout.neighbours else {"exact", "k_best", "outputs"}),
        plane=mk.neighbours_plane if layout.neighbours else mk.matching_plane,
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out(floats, meta, np.float64),
        room=layout.n_weights + 1,  # one more for the extra column of squared slacks
        iwork_size=widest + 3 * nodes,
        fwork_size=max(layout.n_weights, sum(limits) + widest + nodes),
        output_at=offsets_of(2 * most),
        least_cost=least,
        features=features,
        truth=truth,
    )
