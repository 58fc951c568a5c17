"""The k best label sets: by all sets, or by a recursion over a forest or over the trees of a hierarchy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.models.label_graph import Forest

__all__ = ["k_best_of_all", "k_best_of_forest", "k_best_of_hierarchy", "k_best_of_listed"]


class Best(NamedTuple):
    """Sets, bool (m, M), and their scores (m,), best first."""

    sets: np.ndarray
    scores: np.ndarray


def k_best_of_all(gain: np.ndarray, edges: np.ndarray, pair: np.ndarray, k: int) -> Best:
    """The k best of all 2^M sets; ``gain`` (M,) of labels, ``pair`` (E,) of ``edges`` (E, 2), lower end first.

    Tables over all sets of the first labels are doubled label by label. O(2^M M).
    """
    M = len(gain)
    scores = np.zeros(1)
    for m in range(M):
        added = np.full(1, gain[m])
        weights = np.zeros(m)
        np.add.at(weights, edges[edges[:, 1] == m, 0], pair[edges[:, 1] == m])
        for weight in weights:
            added = np.concatenate([added, added + weight])
        scores = np.concatenate([scores, scores + added])
    few = np.argpartition(-scores, min(k, len(scores)) - 1)[:k]
    few = few[np.lexsort((few, -scores[few]))]
    return Best((few[:, None] >> np.arange(M)) & 1 != 0, scores[few])


def k_best_of_forest(gain: np.ndarray, forest: Forest, pair: np.ndarray, k: int) -> Best:
    """The same on a forest: each label has the k best sets below it, for its parent on and off. O(M (k^2 + k M)).

    Huang, Chiang 2005, Better k-best parsing (the lists of children are merged two by two, as in their algorithm 1).
    """
    M = len(gain)
    nothing = Best(np.zeros((1, M), bool), np.zeros(1))
    below = [[nothing, nothing] for _ in range(M)]  # sets of labels below each one, when it is off and on
    top = nothing
    for u in forest.order[::-1].tolist():
        parent = int(forest.parent[u])
        with_it = below[u][1].sets.copy()
        with_it[:, u] = True
        for above in (0, 1) if parent >= 0 else (0,):
            score = gain[u] + (pair[forest.above[u]] if above else 0.0)
            either = Best(
                np.concatenate([below[u][0].sets, with_it]),
                np.concatenate([below[u][0].scores, below[u][1].scores + score]),
            )
            if parent >= 0:
                below[parent][above] = _joined(below[parent][above], _first(either, k), k)
            else:
                top = _joined(top, _first(either, k), k)
        below[u] = []
    return top


def k_best_of_hierarchy(gain: np.ndarray, forest: Forest, leaves_only: bool, k: int) -> Best:
    """The k best of the sets with all parents of their labels, in trees of labels: a label that is off ends its tree.

    With ``leaves_only`` a label that has children is on only with one of them: lists have room for one set more, the
    empty one, which goes. O(M (k^2 + k M)).
    """
    M, room, inner = len(gain), k + leaves_only, set(forest.parent.tolist())
    nothing = Best(np.zeros((1, M), bool), np.zeros(1))
    below = [nothing] * M  # sets of labels below each one, when it is on
    top = nothing
    for u in forest.order[::-1].tolist():
        parent, under = int(forest.parent[u]), below[u]
        if leaves_only and u in inner:
            some = under.sets.any(axis=1)
            under = Best(under.sets[some], under.scores[some])
        with_it = under.sets.copy()
        with_it[:, u] = True
        either = Best(np.concatenate([nothing.sets, with_it]), np.concatenate([nothing.scores, under.scores + gain[u]]))
        if parent >= 0:
            below[parent] = _joined(below[parent], _first(either, room), room)
        else:
            top = _joined(top, _first(either, room), room)
        below[u] = nothing
    return _first(top, k)


def k_best_of_listed(gain: np.ndarray, outputs: list[list[int]], k: int) -> Best:
    """The k best of some sets, each a list of labels."""
    sets = np.zeros((len(outputs), len(gain)), bool)
    for row, labels in zip(sets, outputs, strict=True):
        row[labels] = True
    return _first(Best(sets, sets @ gain), k)


def _first(best: Best, k: int) -> Best:
    order = np.argsort(-best.scores, kind="stable")[:k]
    return Best(best.sets[order], best.scores[order])


def _joined(left: Best, right: Best, k: int) -> Best:
    """The k best unions of two lists of sets over different labels."""
    sums = np.add.outer(left.scores, right.scores)
    order = np.argsort(-sums, axis=None, kind="stable")[:k]
    i, j = np.unravel_index(order, sums.shape)
    return Best(left.sets[i] | right.sets[j], sums[i, j])
