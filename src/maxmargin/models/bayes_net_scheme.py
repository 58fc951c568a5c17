"""Which tables matter to a set of unknown variables, and sets of variables that may be unknown together."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from maxmargin.models.network import Network

__all__ = ["HIDDEN", "KNOWN", "MISSING", "Scheme", "Schemes", "coding_sets"]

KNOWN, MISSING, HIDDEN = range(3)


class Scheme(NamedTuple):
    """What matters to the unknown variables of a row."""

    unknown: tuple[int, ...]  # in order
    hidden: tuple[bool, ...]  # which of them are hidden, and not only missing
    factors: tuple[int, ...]  # variables whose families hold an unknown one; each makes a factor


class Schemes:
    """Schemes of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.upwards = network.order[::-1].tolist()
        self.families = [network.family(v) for v in range(len(network))]
        self.holding: list[list[int]] = [[] for _ in self.families]  # families that hold a variable
        for v, family in enumerate(self.families):
            for u in family:
                self.holding[u].append(v)

    def of(self, kind: list[int], all_missing: bool) -> Scheme:
        """The scheme of a row whose values are KNOWN, MISSING or HIDDEN.

        Missing values are unknown when something below them is not missing (else they sum to 1) and, but for
        ``all_missing``, when families connect them with a hidden variable.
        """
        needed = [k != MISSING for k in kind]
        if not all(needed):
            for v in self.upwards:
                if needed[v]:
                    for u in self.network.parents[v]:
                        needed[u] = True
        waiting = [v for v, k in enumerate(kind) if k == HIDDEN or (all_missing and k == MISSING and needed[v])]
        found, factors = set(waiting), set()
        while waiting:
            for v in self.holding[waiting.pop()]:
                if needed[v] and v not in factors:
                    factors.add(v)
                    more = [u for u in self.families[v] if kind[u] != KNOWN and u not in found]
                    found.update(more)
                    waiting += more
        unknown = tuple(sorted(found))
        return Scheme(unknown, tuple(kind[v] == HIDDEN for v in unknown), tuple(sorted(factors)))

    def scopes(self, scheme: Scheme) -> list[tuple[int, ...]]:
        """Unknown members of each factor in the order of its axes, as positions among the unknown variables."""
        position = {v: u for u, v in enumerate(scheme.unknown)}
        return [tuple(position[u] for u in self.families[v] if u in position) for v in scheme.factors]

    def numbers(self, scheme: Scheme, costs: list[int], scale: int, exact: bool) -> np.ndarray:
        """The pattern as the kernel reads it; the place of the tree is left open."""
        states = self.network.cardinalities[list(scheme.unknown)].tolist()
        at, _, strides = self.network.scopes
        body = [number for pair in zip(states, costs, strict=True) for number in pair]
        cells = sum(states)
        for v, scope in zip(scheme.factors, self.scopes(scheme), strict=True):
            own = dict(zip(self.families[v], strides[at[v] : at[v + 1]].tolist(), strict=True))
            size = prod(states[u] for u in scope)
            body += [len(scope), size]
            for u in scope:
                body += [u, states[u], own[scheme.unknown[u]]]
            cells += size
        head = [len(scheme.unknown), len(scheme.factors), 0, cells, scale, int(exact)]
        return np.array(head + body, np.int64)


def coding_sets(network: Network) -> list[tuple[int, ...]]:
    """Sets of variables that cover the network, none of which is in the Markov blanket of another of its set.

    Given all others, the variables of a set are independent of each other: the coding of a field. A greedy colouring
    of the moral graph, variables with many neighbours first.

    Besag 1974, Spatial interaction and the statistical analysis of lattice systems.
    """
    near: list[set[int]] = [set() for _ in range(len(network))]
    for v in range(len(network)):
        for u in network.family(v):
            near[u].update(network.family(v))
    colour: dict[int, int] = {}
    for v in sorted(range(len(network)), key=lambda v: (-len(near[v]), v)):
        taken = {colour[u] for u in near[v] if u in colour}
        colour[v] = next(c for c in range(len(network)) if c not in taken)
    return [tuple(v for v in range(len(network)) if colour[v] == c) for c in range(max(colour.values()) + 1)]
