"""Structure of a Bayesian network by hill climbing: add, remove or reverse the edge that raises the score most.

    score(v, parents) = sum n(x_v, x_parents) ln n(x_v, x_parents) / n(x_parents) - ln(n) / 2 * free parameters

Heckerman, Geiger, Chickering 1995, Learning Bayesian networks; Schwarz 1978 for the penalty.
"""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["around", "hill_climb"]


def hill_climb(codes: np.ndarray, sizes: list[int], max_parents: int, penalty: float = 1.0) -> list[tuple[int, ...]]:
    """Parents of each variable, from codes (n, v) without missing values; ties go to the first change."""
    n, v = codes.shape
    columns = [np.ascontiguousarray(codes[:, k], np.int64) for k in range(v)]

    @cache
    def score(child: int, parents: frozenset[int]) -> float:
        row, rows = np.zeros(n, np.int64), 1
        for u in sorted(parents):
            row, rows = row * sizes[u] + columns[u], rows * sizes[u]
        K = sizes[child]
        counts = np.bincount(row * K + columns[child], minlength=rows * K).reshape(rows, K).astype(float)
        total = counts.sum(axis=1, keepdims=True)
        fit = float((counts * np.log(np.where(counts > 0, counts / np.maximum(total, 1.0), 1.0))).sum())
        return fit - penalty * 0.5 * np.log(n) * rows * (K - 1)

    parents: list[frozenset[int]] = [frozenset() for _ in range(v)]
    while True:
        best, change = 1e-9, None
        above = _ancestors(parents)
        for child in range(v):
            own = parents[child]
            now = score(child, own)
            for u in range(v):
                if u == child:
                    continue
                if u in own:
                    less = score(child, own - {u}) - now
                    options = [(less, {child: own - {u}})]
                    others = _ancestors([own - {u} if k == child else p for k, p in enumerate(parents)])
                    if len(parents[u]) < max_parents and u not in others[child]:
                        turned = parents[u] | {child}
                        gain = less + score(u, turned) - score(u, parents[u])
                        options.append((gain, {child: own - {u}, u: turned}))
                elif len(own) < max_parents and child not in above[u]:
                    options = [(score(child, own | {u}) - now, {child: own | {u}})]
                else:
                    continue
                for gain, what in options:
                    if gain > best:
                        best, change = gain, what
        if change is None:
            return [tuple(sorted(p)) for p in parents]
        for k, p in change.items():
            parents[k] = p


def around(parents: list[tuple[int, ...]], target: int) -> list[tuple[int, int]]:
    """Edges (parent, child) of the families with the target: all that matters to it when the rest is known."""
    return [(u, v) for v, above in enumerate(parents) if target in (v, *above) for u in above]


def _ancestors(parents: list[frozenset[int]]) -> list[set[int]]:
    found: list[set[int] | None] = [None] * len(parents)

    def of(v: int) -> set[int]:
        known = found[v]
        if known is None:
            known = set(parents[v]).union(*(of(u) for u in parents[v]))
            found[v] = known
        return known

    return [of(v) for v in range(len(parents))]
