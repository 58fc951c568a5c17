"""Matchings by enumeration: random tables, all sets of links, and all planes."""

from __future__ import annotations

from itertools import product

import numpy as np

from reference.linear_programs import unit
from reference.problems import rescaled

MISSED, FALSE = 2.0, 1.0


def sample(n=2, shape=(2, 2), seed=9):
    """Features (n, m, 2) of pairs and the true links of each example, one for each node on the left."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(*shape, 2)) for _ in range(n)]
    return X, [list(enumerate(rng.permutation(shape[1])[: shape[0]].tolist())) for _ in range(n)]


def all_links(shape, most):
    """Every set of links with at most so many of each node."""
    pairs = list(product(*map(range, shape)))
    for chosen in product((False, True), repeat=len(pairs)):
        links = [pair for pair, used in zip(pairs, chosen, strict=True) if used]
        if all(sum(link[side] == node for link in links) <= most for side in (0, 1) for node in range(shape[side])):
            yield links


def features(x, links, most):
    """Sums over links, then prices of second links on the left and on the right."""
    degrees = [np.bincount([link[side] for link in links], minlength=x.shape[side]) for side in (0, 1)]
    prices = [-np.maximum(degree - 1, 0).sum() for degree in degrees] if most == 2 else []
    return np.concatenate([sum((x[link] for link in links), np.zeros(x.shape[2])), prices])


def planes_of(X, Y, most, rescaling):
    found = []
    for x, y in zip(X, Y, strict=True):
        every = list(all_links(x.shape[:2], most))
        psi = np.array([features(x, y, most) - features(x, links, most) for links in every])
        costs = np.array([MISSED * len(set(y) - set(links)) + FALSE * len(set(links) - set(y)) for links in every])
        found.append(unit(psi, costs) if rescaling == "unit" else rescaled(psi, costs, rescaling))
    return found
