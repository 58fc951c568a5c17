"""Lattices by enumeration: random graphs, all of their paths, and all planes."""

from __future__ import annotations

import numpy as np

from maxmargin.datasets import Lattice
from reference.problems import rescaled

VOCABULARY = ("a", "b", "c", "a b", "b c", "", "a a")


def random_arcs(rng, most_nodes=6, more=5):
    """Tails and heads of a graph whose nodes all lie on paths from the first to the last, in random order."""
    n = int(rng.integers(2, most_nodes + 1))
    arcs = [(int(rng.integers(0, v)), v) for v in range(1, n)]
    arcs += [(v, int(rng.integers(v + 1, n))) for v in range(n - 1) if not any(t == v for t, _ in arcs)]
    for _ in range(int(rng.integers(0, more + 1))):
        tail = int(rng.integers(0, n - 1))
        arcs.append((tail, int(rng.integers(tail + 1, n))))
    arcs = [arcs[e] for e in rng.permutation(len(arcs))]
    return n, np.array([t for t, _ in arcs]), np.array([h for _, h in arcs])


def all_paths(n, tails, heads):
    """Every path as a list of arcs."""
    found, open_paths = [], [(0, [])]
    while open_paths:
        node, path = open_paths.pop()
        if node == n - 1:
            found.append(path)
        open_paths += [(heads[e], [*path, e]) for e in np.flatnonzero(tails == node).tolist()]
    return found


def random_lattice(rng, n_features=3, whole=False, **sizes):
    n, tails, heads = random_arcs(rng, **sizes)
    shape = (len(tails), n_features)
    features = rng.integers(-2, 3, shape).astype(float) if whole else rng.normal(size=shape)
    return Lattice(n, tails, heads, features, rng.choice(VOCABULARY, len(tails)).tolist())


def paths_of(lattice):
    return all_paths(lattice.n_nodes, lattice.tails, lattice.heads)


def path_features(lattice, path):
    return lattice.features.toarray()[path].sum(axis=0)


def lattice_planes(lattices, targets, rescaling):
    """(A_i, b_i) over all paths, from costs of arcs and good paths."""
    planes = []
    for lattice, (costs, good) in zip(lattices, targets, strict=True):
        every = paths_of(lattice)
        psi = np.array([path_features(lattice, good) - path_features(lattice, path) for path in every])
        cost = np.array([costs[path].sum() - costs[good].sum() for path in every])
        cost[np.abs(cost) < 1e-12] = 0.0
        planes.append(rescaled(psi, cost, rescaling))
    return planes
