"""All labellings of tiny grids and graphs, written out from the definition of their scores."""

from __future__ import annotations

from itertools import product

import numpy as np

from reference.problems import rescaled


def grid_planes(X, Y, rescaling):
    """(A_i, b_i) over all masks of 0 and 1. Weights: node (F,), then edge (G,), which count against unequal pixels.

    ``edge[0]`` is of a pixel and the one to its right, ``edge[1]`` of a pixel and the one below it.
    """
    planes = []
    for x, truth in zip(X, Y, strict=True):
        node, edge = x["node"], x["edge"]

        def features(y, node=node, edge=edge):
            right, below = y[:, 1:] != y[:, :-1], y[1:] != y[:-1]
            cut = edge[0][:, :-1][right].sum(axis=0) + edge[1][:-1][below].sum(axis=0)
            return np.concatenate([node[y == 1].sum(axis=0), -cut])

        every = [np.reshape(y, truth.shape) for y in product([0, 1], repeat=truth.size)]
        psi = np.array([features(truth) - features(y) for y in every])
        planes.append(rescaled(psi, np.array([float((y != truth).sum()) for y in every]), rescaling))
    return planes


def graph_planes(X, Y, K, rescaling):
    """(A_i, b_i) over all labellings. Weights: node (F, K), then those of the ordered pairs of labels, (K, K)."""
    planes = []
    for x, truth in zip(X, Y, strict=True):

        def features(y, x=x):
            node, edge = np.zeros((x["node"].shape[1], K)), np.zeros((K, K))
            for row, label in zip(x["node"], y, strict=True):
                node[:, label] += row
            for p, q in x["edges"]:
                edge[y[p], y[q]] += 1
            return np.concatenate([node.ravel(), edge.ravel()])

        every = list(product(range(K), repeat=len(truth)))
        psi = np.array([features(truth) - features(y) for y in every])
        planes.append(rescaled(psi, np.array([float((np.array(y) != truth).sum()) for y in every]), rescaling))
    return planes
