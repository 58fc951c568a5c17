"""Compiled kernel of the grid model: unary scores, one minimum cut with a cost weight, plane.

Layout of the weights: node features F | edge features G. Of the packed floats: node features (pixels, F), edge features
(directions, pixels, G) for each image, costs (pixels,).
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.min_cut_grid_kernel import FLAT, SOLID, cut_grid
from maxmargin.kernel import kernel
from maxmargin.models.search_kernel import dense_plane
from maxmargin.models.signature import PLANE_SIGNATURE

# positions in ``meta``
N_NODE, N_EDGE, NEIGHBOURS, HAS_LABELS, HAS_FIXED = range(5)
AT_SHAPES, AT_STARTS, AT_LABELS = range(5, 8)
AT_NODES, AT_EDGES, AT_COSTS, META_SIZE = range(8, 12)


@kernel(PLANE_SIGNATURE)
def grid_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
    """The mask of largest ``w . phi(x, y) + cost_weight * cost(y)``, the smallest of equals, and its plane.

    One minimum cut and O(pixels (F + directions G)). Negative edge weights cannot be cut: they count as zero, and the
    upper bound is infinite.
    """
    F, G, neighbours, has_labels = meta[N_NODE], meta[N_EDGE], meta[NEIGHBOURS], meta[HAS_LABELS]
    at = meta[AT_SHAPES] + 3 * example
    depth, height, width = np.int64(ints[at]), np.int64(ints[at + 1]), np.int64(ints[at + 2])
    n, J = depth * height * width, neighbours // 2
    start = np.int64(ints[meta[AT_STARTS] + example])
    nodes = floats[meta[AT_NODES] + start * F : meta[AT_NODES] + (start + n) * F]
    edges = floats[meta[AT_EDGES] + start * J * G : meta[AT_EDGES] + (start + n) * J * G]
    known = has_labels or meta[HAS_FIXED]
    given = ints[meta[AT_LABELS] + start : meta[AT_LABELS] + start + n] if known else ints[:0]
    costs = floats[meta[AT_COSTS] + start : meta[AT_COSTS] + start + n] if has_labels else floats[:0]
    psi, edge_weight = fwork[: F + G], fwork[F + G : F + 2 * G]
    excess = fwork[F + 2 * G : F + 2 * G + n]
    capacity = fwork[F + 2 * G + n : F + 2 * G + n + J * n]
    labels = output[:n]

    legal, smooth = True, False
    for k in range(G):
        edge_weight[k] = max(w[F + k], 0.0)
        legal = legal and w[F + k] >= 0.0
        smooth = smooth or edge_weight[k] > 0.0
    for p in range(n):
        score = 0.0
        for k in range(F):
            score += w[k] * nodes[p * F + k]
        excess[p] = -score
    if has_labels:
        for p in range(n):
            excess[p] -= cost_weight * costs[p] * (1 - 2 * given[p])
    largest = 0.0
    if smooth:
        for e in range(J * n):
            c = 0.0
            for k in range(G):
                c += edge_weight[k] * edges[e * G + k]
            capacity[e] = c
            largest = max(largest, c)
    if meta[HAS_FIXED]:
        decisive = 1.0 + 2.0 * neighbours * largest  # more than all neighbours together can outweigh
        for p in range(n):
            if given[p] >= 0:
                excess[p] = -decisive if given[p] == 1 else decisive
    if smooth:
        cut_grid(depth, height, width, neighbours, excess, capacity, labels, iwork, fwork[F + 2 * G + n + J * n :])
    else:
        for p in range(n):
            labels[p] = excess[p] < 0.0

    # psi = phi(truth) - phi(labels); without a truth -phi(labels)
    psi[:] = 0.0
    cost = 0.0
    for p in range(n):
        change = (given[p] if has_labels else 0) - labels[p]
        if change != 0:
            for k in range(F):
                psi[k] += change * nodes[p * F + k]
            if has_labels:
                cost += costs[p]
    if G > 0:
        steps = FLAT if neighbours == 4 or neighbours == 8 else SOLID
        for j in range(J):
            below, down, aside = steps[j, 0], steps[j, 1], steps[j, 2]
            offset = (below * height + down) * width + aside
            for z in range(depth - below):
                for y in range(max(0, -down), height - max(0, down)):
                    row = (z * height + y) * width
                    for p in range(row + max(0, -aside), row + width - max(0, aside)):
                        change = np.int64(labels[p] != labels[p + offset])
                        if has_labels:
                            change -= np.int64(given[p] != given[p + offset])
                        if change != 0:
                            for k in range(G):
                                psi[F + k] += change * edges[(j * n + p) * G + k]
    gap = 0.0 if legal else np.inf
    return dense_plane(psi, w, cost, cost_weight, gap, emit, has_labels, index, value, result)
