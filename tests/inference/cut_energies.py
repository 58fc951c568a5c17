"""Energies of cuts, written down in the plainest way: pairs of neighbours, sums over pairs, all labelings."""

import itertools

import numpy as np

from maxmargin.inference.min_cut import directions

KINDS = {4: (2, 1, 1), 8: (2, 1, 2), 6: (3, 1, 1), 18: (3, 1, 2), 26: (3, 1, 3)}
"""neighbours -> dimensions, largest step along an axis, largest sum of steps"""


def grid_pairs(shape, neighbours):
    """All pairs of neighbours (p, q) by flat number, and the direction that leads from p to q."""
    dimensions, _, most = KINDS[neighbours]
    assert len(shape) == dimensions
    order = {tuple(step): j for j, step in enumerate(directions(neighbours).tolist())}
    number = {p: i for i, p in enumerate(np.ndindex(*shape))}
    pairs, which = [], []
    for p, i in number.items():
        for step in itertools.product((-1, 0, 1), repeat=dimensions):
            q = tuple(a + b for a, b in zip(p, step, strict=True))
            if q in number and 1 <= sum(map(abs, step)) <= most and step in order:
                pairs.append((i, number[q]))
                which.append(order[step])
    return np.array(pairs, int).reshape(-1, 2), np.array(which, int)


def pair_capacities(capacities, pairs, which):
    """Capacities of the pairs out of arrays by direction."""
    return capacities.reshape(len(capacities), -1)[which, pairs[:, 0]]


def energy(unary, pairs, forward, labels, backward=None):
    """Energy of one labeling, or of many (..., n)."""
    unary, labels = unary.reshape(-1, 2), np.asarray(labels)
    backward = forward if backward is None else backward
    single = np.where(labels == 1, unary[:, 1], unary[:, 0]).sum(-1)
    p, q = labels[..., pairs[:, 0]], labels[..., pairs[:, 1]]
    return single + (forward * ((p == 0) & (q == 1))).sum(-1) + (backward * ((p == 1) & (q == 0))).sum(-1)


def brute_force(unary, pairs, forward, backward=None):
    """Least energy, and the labels that are one in every labeling of that energy (itself one of them)."""
    n = unary.size // 2
    labels = np.arange(2**n)[:, None] >> np.arange(n) & 1
    energies = energy(unary, pairs, forward, labels, backward)
    least = energies.min()
    return least, labels[energies == least].min(axis=0)
