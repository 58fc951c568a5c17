"""Compiled: the best labels of a forest for every cost.

Nodes have scores (n K), costs in whole units (n K), and a table of scores with their parent each. ``table_q[l, c]`` is
the most that the tree of node q, and those of its later siblings, can score with costs c together when their parent has
label l; roots are siblings, of no parent:

    table_q[l, c] = max over c' of  reach_q[l, c'] + table_next[l, c - c']
    reach_q[l, c] = max over k of   score[q, k] + pair_q[k, l] + table_child[k, c - cost[q, k]]

O(n K^2 C + K C^2) time and at most O(n K C) memory, C the largest cost of all nodes together. A chain is a forest.

Bauer, Goernitz, Biegler, Mueller, Kloft 2014, Efficient algorithms for exact inference in sequence labeling SVMs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.slack_search_kernel import raised


class CostForest(NamedTuple):
    """A forest, and its tables as far as they are filled."""

    K: int
    order: np.ndarray  # (n,): nodes, parents first
    parent: np.ndarray  # (n,), -1 at roots
    place: np.ndarray  # (n,): where the table with the parent begins in ``pair``, by own label and that of the parent
    unary: np.ndarray  # (n K,)
    pair: np.ndarray
    spent: np.ndarray  # (n K,): costs in units
    child: np.ndarray  # (n,): first child, -1 for none
    following: np.ndarray  # (n,): next sibling, -1 for none
    width: np.ndarray  # (n,): the largest cost of the tree of a node
    size: np.ndarray  # (n,): and of those of its later siblings
    begin: np.ndarray  # (n,): where its table begins
    tables: np.ndarray


@register_jitable
def forest_with_tables(K, order, parent, place, unary, pair, spent):
    """Room for all tables; they are filled by :func:`fill_forest`."""
    n = len(order)
    child, following = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    width, size, begin = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    root, room = -1, 0
    for i in range(n - 1, -1, -1):
        q = np.int64(order[i])
        dearest = 0
        for k in range(K):
            dearest = max(dearest, spent[q * K + k])
        width[q] += dearest
        p = np.int64(parent[q])
        after = root if p < 0 else child[p]
        following[q] = after
        size[q] = width[q] + (size[after] if after >= 0 else 0)
        begin[q] = room
        room += K * (size[q] + 1)
        if p < 0:
            root = q
        else:
            child[p] = q
            width[p] += width[q]
    return CostForest(
        K, order, parent, place, unary, pair, spent, child, following, width, size, begin, np.empty(room)
    )  # fmt: skip


@register_jitable
def table_entry(f, q, l, c):
    """``table_q[l, c]``; that of no node is 0 for no cost."""
    if q < 0:
        return 0.0 if c == 0 else -np.inf
    return f.tables[f.begin[q] + l * (f.size[q] + 1) + c] if 0 <= c <= f.size[q] else -np.inf


@register_jitable
def reach_with(f, q, k, l, c):
    """What the tree of node q scores with label k and costs c, its parent having label l."""
    own, child = f.spent[q * f.K + k], f.child[q]
    if c < own:
        return -np.inf
    score = f.unary[q * f.K + k] + table_entry(f, child, k, c - own)
    return score + f.pair[f.place[q] + k * f.K + l] if f.parent[q] >= 0 else score


@register_jitable
def fill_forest(f):
    """Fill all tables, last nodes first."""
    for i in range(len(f.order) - 1, -1, -1):
        q = np.int64(f.order[i])
        after, length = f.following[q], f.size[q] + 1
        rest = f.size[after] if after >= 0 else 0
        reach = np.empty(f.width[q] + 1)
        for l in range(f.K if f.parent[q] >= 0 else 1):
            for c in range(f.width[q] + 1):
                best = -np.inf
                for k in range(f.K):
                    best = max(best, reach_with(f, q, k, l, c))
                reach[c] = best
            row = f.tables[f.begin[q] + l * length : f.begin[q] + (l + 1) * length]
            row[:] = -np.inf
            for d in range(rest + 1):
                other = table_entry(f, after, l, d)
                if other > -np.inf:
                    for c in range(f.width[q] + 1):
                        row[c + d] = max(row[c + d], reach[c] + other)


@register_jitable
def labels_of_cost(f, total, left, labels):
    """The best labels of cost ``total``, from the roots down; ``left`` (n,) is what each node may hand out."""
    left[f.order[0]] = total
    for i in range(len(f.order)):
        q = np.int64(f.order[i])
        l = np.int64(labels[f.parent[q]]) if f.parent[q] >= 0 else 0
        after, child, most = f.following[q], f.child[q], min(left[q], f.width[q])
        best, best_c, best_k = -np.inf, 0, 0
        for c in range(most + 1):
            other = table_entry(f, after, l, left[q] - c)
            if other == -np.inf:
                continue
            for k in range(f.K):
                v = reach_with(f, q, k, l, c) + other
                if v > best:
                    best, best_c, best_k = v, c, k
        labels[q] = best_k
        if child >= 0:
            left[child] = best_c - f.spent[q * f.K + best_k]
        if after >= 0:
            left[after] = left[q] - best_c


@register_jitable
def best_of_all_costs(f, whole, unit, power, top, labels):
    """Write the labels of largest ``cost^p (whole + score)`` if that is above ``top``; whether there are any."""
    fill_forest(f)
    root = np.int64(f.order[0])
    total = 0
    for c in range(1, f.size[root] + 1):
        v = raised(unit * c, power) * (whole + table_entry(f, root, 0, c))
        if v > top:
            top, total = v, c
    if total > 0:
        labels_of_cost(f, total, np.zeros(len(f.order), np.int64), labels)
    return total > 0
