"""Matchings of two sides, the best and the k best, from a table of scores.

``best_matching(score)`` links each row to at most one column and each column to at most one row, where that pays: pairs
with a score below 0 stay apart. With ``left=[0, 2]`` a row may take a second link, for a price of 2. The formulas are
in :mod:`maxmargin.inference.matching_kernel`.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import LARGEST_WEIGHT, numbers

__all__ = ["Matched", "best_matching", "k_best_matchings", "value_of"]


class Matched(NamedTuple):
    """Links and their value."""

    links: np.ndarray  # int32 (L, 2): rows and columns of the table, in order
    value: float


class _Part(NamedTuple):
    """Some matchings: those with all of ``forced`` and none of ``forbidden``, and at least so many links more."""

    forced: tuple[int, ...]
    forbidden: tuple[int, ...]
    at_least: int


def best_matching(score: ArrayLike, left: ArrayLike = (0.0,), right: ArrayLike = (0.0,)) -> Matched:
    """The links of largest value: their scores, less the prices of the links of each node.

    O(L n m) for L links, times a few; see :mod:`maxmargin.inference.matching_kernel`.

    Parameters
    ----------
    score : array (n, m)
        Of a link between each row and each column; -inf forbids it.
    left, right : array
        Prices of the first, second, ... link of a row (of a column), never falling. Their number is the most links
        that a row (column) may have.

    Returns
    -------
    Matched
        Its ``links`` (L, 2) and their ``value``.

    Examples
    --------
    >>> from maxmargin.inference import best_matching
    >>> best_matching([[3.0, 2.0], [2.0, -1.0]]).links.tolist()
    [[0, 1], [1, 0]]
    >>> best_matching([[3.0, 2.0], [2.0, -1.0]], right=[0.0, 0.5]).links.tolist()
    [[0, 0], [1, 0]]
    """
    return k_best_matchings(score, 1, left, right)[0]


def k_best_matchings(score: ArrayLike, k: int, left: ArrayLike = (0.0,), right: ArrayLike = (0.0,)) -> list[Matched]:
    """The k best distinct sets of links, best first; fewer when there are no more. O(k L^2 n m), times a few.

    The set of all matchings is cut into parts round the best one: those without its first link, those with the first
    and without the second, ..., and those with all of its links and at least one more. The best of the parts is the
    next best, and its part is cut in the same way. Murty 1968, An algorithm for ranking all the assignments in order of
    increasing cost.

    Parameters
    ----------
    score : array (n, m)
    k : int
    left, right : array
        As in :func:`best_matching`.
    """
    table, prices = _checked(score, left, right)
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k is {k!r:.80}; ask for at least one")
    order = count()  # the first found comes first among equal ones
    queue: list[tuple[float, int, _Part, tuple[int, ...]]] = []

    def push(part: _Part) -> None:
        links = _best_of(table, prices, part)
        if links is not None:
            heapq.heappush(queue, (-_value(table, prices, links), next(order), part, links))

    push(_Part((), (), 0))
    found: list[Matched] = []
    while queue and len(found) < k:
        value, _, part, links = heapq.heappop(queue)
        found.append(Matched(np.stack(np.divmod(np.array(links, np.int32), np.int32(table.shape[1])), axis=1), -value))
        if len(found) == k:
            break
        kept, at_least = part.forced, part.at_least
        for link in links:
            if link not in part.forced:
                push(_Part(kept, (*part.forbidden, link), at_least))
                kept, at_least = (*kept, link), 0
        push(_Part(kept, part.forbidden, 1))
    return found


def value_of(score: np.ndarray, links: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """The value of links (L, 2): scores less prices."""
    value = float(score[links[:, 0], links[:, 1]].sum())
    for side, prices in enumerate((left, right)):
        degree = np.bincount(links[:, side], minlength=score.shape[side])
        value -= float(np.concatenate([[0.0], np.cumsum(prices)])[degree].sum())
    return value


def _value(table: np.ndarray, prices: tuple[np.ndarray, np.ndarray], links: tuple[int, ...]) -> float:
    at = np.array(links, np.int64)
    return value_of(table, np.stack([at // table.shape[1], at % table.shape[1]], axis=1), *prices)


def _best_of(table: np.ndarray, prices: tuple[np.ndarray, np.ndarray], part: _Part) -> tuple[int, ...] | None:
    """The best links of a part, in order; None when it is empty."""
    from maxmargin.inference.matching_kernel import FORCED, FREE, match_pairs

    n, m = table.shape
    state, used = np.full(table.shape, FREE, np.int32), np.zeros(n + m, np.int32)
    flat, score = state.reshape(-1), table
    for link in part.forced:
        flat[link] = FORCED
        used[link // m] += 1
        used[n + link % m] += 1
    if part.forbidden:
        score = table.copy()
        score.reshape(-1)[list(part.forbidden)] = -np.inf
    if match_pairs(score, *prices, part.at_least, state, used) < part.at_least:
        return None
    return tuple(np.flatnonzero(flat != FREE).tolist())


def _checked(score: ArrayLike, left: ArrayLike, right: ArrayLike) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    table = numbers(score, "score")
    if table.ndim != 2:
        raise ValueError(f"score has shape {table.shape}; give one number for each row and column, (n, m)")
    if np.isnan(table).any() or table.max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"score has numbers that are NaN or above {LARGEST_WEIGHT:g}; use -inf to forbid a link")
    table = np.where(table < -LARGEST_WEIGHT, -np.inf, table)
    found = []
    for name, given in (("left", left), ("right", right)):
        prices = numbers(given, name)
        if prices.ndim != 1 or prices.size == 0 or not np.isfinite(prices).all() or (np.diff(prices) < 0).any():
            what = "prices of the first, second, ... link; they must be finite and must not fall"
            raise ValueError(f"{name} is {given!r:.80}; give {what}")
        found.append(prices)
    return table, (found[0], found[1])
