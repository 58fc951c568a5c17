"""Compiled kernel of the graph model: scores of nodes and edges, argmax with a cost weight and a bound, plane.

Layout of the weights: node features F x K | edge features G x P | factors by arity, features x K^arity. P is the number
of weights that one edge feature has; ``place`` says which of them a pair of labels reads, -1 for none.

Of the packed floats: node features (nodes, F) | edge features (edges, G) | factor features | costs (nodes) | cost
table. Of the packed ints: a row of ROW numbers for each graph | place (K K) | labels (nodes) | for each graph edges
(2 m), begin (n + 1), ends (2 m), order (n), up (n), rows of arcs for the cut (n + 5 m + 4, if there is one), factors. A
factor is its arity, number of features, first weight, first feature, scope. Junction trees stand in ``meta``, behind
the rest.

The output of a graph has its labels and then the code of the method that found them, an index of ``CODED``.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.branch_kernel import branch_and_bound
from maxmargin.inference.graph_kernel import cut_argmax, cut_terms, is_submodular, total_score, tree_argmax
from maxmargin.inference.junction_tree_kernel import max_product
from maxmargin.kernel import kernel
from maxmargin.models.search_kernel import dense_plane
from maxmargin.models.signature import PLANE_SIGNATURE

TREE, CUT, JUNCTION, MESSAGES, BRANCHED = range(5)  # as ``CODED`` in models/graph.py

# positions in ``meta``
N_LABELS, N_NODE, N_EDGE, N_PAIR, SIGN, HAS_LABELS, PASSES, BRANCHES, N_WEIGHTS = range(9)
AT_ROWS, AT_PLACE, AT_LABELS = range(9, 12)
AT_NODES, AT_EDGES, AT_COSTS, AT_TABLE, META_SIZE = range(12, 17)
# positions in the row of a graph
NODES, EDGES, KIND, CUTS, NODE_START, EDGE_START, STRUCTURE, PROGRAM, FACTORS, AT_FACTORS, ROW = range(11)


@register_jitable
def fill_tables(meta, ints, floats, w, n, m, given, at, lam, unary, pair, row):
    """Scores of nodes, costs included, and of edges, both ways round."""
    K, F, G, P, sign = meta[N_LABELS], meta[N_NODE], meta[N_EDGE], meta[N_PAIR], meta[SIGN]
    start, first = np.int64(ints[at + NODE_START]), np.int64(ints[at + EDGE_START])
    nodes, edges = meta[AT_NODES] + start * F, meta[AT_EDGES] + first * G
    costs, table = floats[meta[AT_COSTS] + start :], floats[meta[AT_TABLE] :]
    unary[:] = 0.0
    for p in range(n):
        here = unary[p * K : (p + 1) * K]
        for j in range(F):
            x = floats[nodes + p * F + j]
            if x != 0.0:
                for k in range(K):
                    here[k] += x * w[j * K + k]
        if meta[HAS_LABELS] and costs[p] != 0.0:
            c = lam * costs[p]
            for k in range(K):
                here[k] += c * table[given[p] * K + k]
    half = m * K * K
    place = ints[meta[AT_PLACE] : meta[AT_PLACE] + K * K]
    for e in range(m):
        row[:P] = 0.0
        for g in range(G):
            x = sign * floats[edges + e * G + g]
            if x != 0.0:
                begin = F * K + g * P
                for c in range(P):
                    row[c] += x * w[begin + c]
        for i in range(K):
            for j in range(K):
                c = place[i * K + j]
                v = row[c] if c >= 0 else 0.0
                pair[(e * K + i) * K + j] = v
                if len(pair) >= 2 * half:
                    pair[half + (e * K + j) * K + i] = v


@register_jitable
def fill_factors(meta, ints, floats, w, at, tables):
    """Scores of factors, one table after the other; returns their number."""
    where, begin = np.int64(ints[at + AT_FACTORS]), 0
    for _ in range(ints[at + FACTORS]):
        arity, features = np.int64(ints[where]), np.int64(ints[where + 1])
        weights, place = np.int64(ints[where + 2]), np.int64(ints[where + 3])
        size = meta[N_LABELS] ** arity
        tables[begin : begin + size] = 0.0
        for g in range(features):
            x = floats[place + g]
            if x != 0.0:
                for c in range(size):
                    tables[begin + c] += x * w[weights + g * size + c]
        begin += size
        where += 4 + arity
    return begin


@register_jitable
def add_features(meta, ints, floats, n, m, at, edges, labels, scale, psi):
    """``psi += scale phi(labels)``."""
    K, F, G, P = meta[N_LABELS], meta[N_NODE], meta[N_EDGE], meta[N_PAIR]
    nodes = meta[AT_NODES] + np.int64(ints[at + NODE_START]) * F
    features = meta[AT_EDGES] + np.int64(ints[at + EDGE_START]) * G
    for p in range(n):
        for j in range(F):
            x = floats[nodes + p * F + j]
            if x != 0.0:
                psi[j * K + labels[p]] += scale * x
    for e in range(m):
        c = np.int64(ints[meta[AT_PLACE] + labels[edges[2 * e]] * K + labels[edges[2 * e + 1]]])
        if c >= 0:
            for g in range(G):
                x = floats[features + e * G + g]
                if x != 0.0:
                    psi[F * K + g * P + c] += scale * meta[SIGN] * x
    where = np.int64(ints[at + AT_FACTORS])
    for _ in range(ints[at + FACTORS]):
        arity, amount = np.int64(ints[where]), np.int64(ints[where + 1])
        weights, place = np.int64(ints[where + 2]), np.int64(ints[where + 3])
        c = 0
        for s in range(arity):
            c = c * K + labels[ints[where + 4 + s]]
        for g in range(amount):
            psi[weights + g * K**arity + c] += scale * floats[place + g]
        where += 4 + arity


@register_jitable
def structure_of(meta, ints, example):
    """Where the row of a graph begins, its sizes and kind, true labels, and structure."""
    at = meta[AT_ROWS] + example * ROW
    n, m, kind = np.int64(ints[at + NODES]), np.int64(ints[at + EDGES]), np.int64(ints[at + KIND])
    start, where = np.int64(ints[at + NODE_START]), np.int64(ints[at + STRUCTURE])
    given = ints[meta[AT_LABELS] + start : meta[AT_LABELS] + start + n] if meta[HAS_LABELS] else ints[:0]
    edges = ints[where : where + 2 * m]
    begin, ends = ints[where + 2 * m : where + 2 * m + n + 1], ints[where + 2 * m + n + 1 : where + 4 * m + n + 1]
    order = ints[where + 4 * m + n + 1 : where + 4 * m + 2 * n + 1]
    up = ints[where + 4 * m + 2 * n + 1 : where + 4 * m + 3 * n + 1]
    rows = ints[where + 4 * m + 3 * n + 1 :]
    return at, n, m, kind, given, edges, begin, ends, order, up, rows


@register_jitable
def answer_with(meta, ints, floats, w, example, cost_weight, labels, gap, emit, psi, index, value, result):
    """Write the answer of given labels, whose value is at most ``gap`` from the largest; ``psi`` is scratch."""
    K, has_labels = meta[N_LABELS], meta[HAS_LABELS]
    at, n, m, _kind, given, edges, _begin, _ends, _order, _up, _rows = structure_of(meta, ints, example)
    start = np.int64(ints[at + NODE_START])
    psi[:] = 0.0
    cost = 0.0
    add_features(meta, ints, floats, n, m, at, edges, labels, -1.0, psi)
    if has_labels:
        add_features(meta, ints, floats, n, m, at, edges, given, 1.0, psi)
        for p in range(n):
            cost += floats[meta[AT_COSTS] + start + p] * floats[meta[AT_TABLE] + given[p] * K + labels[p]]
    return dense_plane(psi, w, cost, cost_weight, gap, emit, has_labels, index, value, result)


@kernel(PLANE_SIGNATURE)
def graph_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """Labels of large ``w . phi(x, y) + cost_weight * cost(y)`` and their plane, with an upper bound of the largest.

    The largest itself on forests, for two labels when all edges favour equal ones, and on junction trees; otherwise
    what tree-reweighted messages find, or the truth if that is better. O(n F K + m G P) and the search.
    """
    K, D, has_labels = meta[N_LABELS], meta[N_WEIGHTS], meta[HAS_LABELS]
    at, n, m, kind, given, edges, begin, ends, order, up, rows = structure_of(meta, ints, example)
    labels = output[:n]

    psi, row = fwork[:D], fwork[D : D + meta[N_PAIR]]
    tables = fwork[D + meta[N_PAIR] :]
    unary, pair = tables[: n * K], tables[n * K : n * K + m * K * K * (1 if ints[at + FACTORS] else 2)]
    fill_tables(meta, ints, floats, w, n, m, given, at, cost_weight, unary, pair, row)
    used = len(unary) + len(pair)
    scratch = tables[used + fill_factors(meta, ints, floats, w, at, tables[used:]) :]

    gap = 0.0
    if kind == TREE:
        tree_argmax(n, K, edges, order, up, unary, pair, labels, scratch)
    elif ints[at + CUTS] and is_submodular(m, pair, scratch[:m]):
        kind = CUT
        cut_terms(edges, unary, pair, scratch[:m], scratch[m : m + n])
        cut_argmax(n, m, edges, rows, scratch[m : m + n], scratch[:m], labels, iwork, scratch[m + n :])
    elif kind == JUNCTION:
        max_product(meta, np.int64(ints[at + PROGRAM]), tables, labels, iwork, scratch)
    else:
        truth = total_score(n, K, edges, unary, pair, given) if has_labels else -np.inf
        score, bound, parts = branch_and_bound(
            n, K, edges, begin, ends, unary, pair, meta[PASSES], meta[BRANCHES], truth, iwork[: 3 * n], scratch
        )
        kind = BRANCHED if parts > 1 else MESSAGES
        labels[:] = iwork[:n]
        iwork[: 3 * n] = 0
        if truth > score:
            score = truth
            labels[:] = given
        gap = max(bound - score, 0.0)
    output[n] = kind

    return answer_with(
        meta, ints, floats, w, example, cost_weight, labels, gap, emit, psi, index, value, result
    )  # fmt: skip
