"""Bayesian networks of discrete variables, without their numbers: variables, states, parents, and where weights live.

    ln P(x) = sum_v theta_v[x_parents(v), x_v]

Weights lie variable by variable; those of a variable are an array with one axis for each parent and a last one for the
variable itself, in C order. A row along the last axis is one conditional distribution, one table.

Pearl 1988, Probabilistic reasoning in intelligent systems.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.models.base import offsets_of
from maxmargin.models.labels import Labels, plain
from maxmargin.models.tables import Tables

__all__ = ["Network"]

MAX_PARENTS = 30  # arrays have few axes
MAX_WEIGHTS = 2**31


@runtime_checkable
class Digraph(Protocol):
    """What is asked of a graph of networkx."""

    @property
    def nodes(self) -> Iterable[str]: ...
    def predecessors(self, n: str) -> Iterable[str]: ...


Structure = Iterable[tuple[str, str]] | Mapping[str, Iterable[str]] | Digraph


@dataclass(frozen=True, eq=False)
class Network:
    """A directed acyclic graph over discrete variables.

    Attributes
    ----------
    names : tuple of str
    states : tuple of Labels
        Values of each variable, in order of their codes.
    parents : tuple of tuples of int
        Parents of each variable, as positions in ``names``; their order is that of the axes of its weights.
    """

    names: tuple[str, ...]
    states: tuple[Labels, ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        for field in ("names", "states", "parents"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "parents", tuple(tuple(map(int, above)) for above in self.parents))
        _check_names(self.names)
        if not self.names:
            raise ValueError("the network has no variable; give at least one, with its states.")
        if not len(self.names) == len(self.states) == len(self.parents):
            lists = f"{len(self.states)} lists of states and {len(self.parents)} lists of parents"
            raise ValueError(f"{len(self.names)} variables have {lists}; give one of each for every variable.")
        for v, name in enumerate(self.names):
            _check_variable(self, v, name)
        if len(self.order) < len(self.names):
            raise ValueError(f"the graph has a cycle: {_cycle(self)}; take out one of these edges.")
        if self.n_weights >= MAX_WEIGHTS:
            v = int(np.argmax(np.diff(self.starts)))
            most = f"most are of {self.names[v]!r} with {len(self.parents[v])} parents. Give it fewer, or merge states."
            raise ValueError(f"the tables of the network have {self.n_weights} entries, more than 2^31; {most}")

    @staticmethod
    def of(structure: Structure, states: Mapping[str, Sequence[Hashable]]) -> Network:
        """A network from its edges.

        Parameters
        ----------
        structure : iterable of pairs (parent, child), mapping of child to parents, or networkx.DiGraph
        states : mapping of name to sequence of hashable
            The values of every variable. Its order is the order of the variables.

        Examples
        --------
        >>> net = Network.of([("rain", "wet")], {"rain": ["no", "yes"], "wet": ["no", "yes"]})
        >>> net.n_weights, net.tables.name(2)
        (6, "P(wet | rain='yes')")
        """
        _check_names(tuple(states))
        at = {name: v for v, name in enumerate(states)}
        parents: list[list[int]] = [[] for _ in at]
        for parent, child in _edges(structure, at):
            for name, other in ((parent, child), (child, parent)):
                if name not in at:
                    what = f"the edge {parent!r} -> {child!r} has the unknown variable {name!r}"
                    raise ValueError(f"{what}; give its states beside those of {other!r}, or correct the name.")
            parents[at[child]].append(at[parent])
        labels = []
        for name, values in states.items():
            try:
                labels.append(Labels(plain(values)))
            except (TypeError, ValueError) as error:
                raise ValueError(f"the states of {name!r} cannot be used: {error}") from None
        return Network(tuple(at), tuple(labels), tuple(map(tuple, parents)))

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        alike = (self.names, self.parents) == (other.names, other.parents)
        return alike and all(a.classes == b.classes for a, b in zip(self.states, other.states, strict=True))

    def __hash__(self) -> int:
        return hash((self.names, self.parents))

    @cached_property
    def code(self) -> dict[str, int]:
        """Position of each variable."""
        return {name: v for v, name in enumerate(self.names)}

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs (parent, child) of names."""
        return [(self.names[u], self.names[v]) for v, above in enumerate(self.parents) for u in above]

    @cached_property
    def order(self) -> np.ndarray:
        """Variables with parents before children, the first in ``names`` first where there is a choice."""
        waiting = [len(above) for above in self.parents]
        children: list[list[int]] = [[] for _ in self.names]
        for v, above in enumerate(self.parents):
            for u in above:
                children[u].append(v)
        ready = [v for v, n in enumerate(waiting) if n == 0]
        order = []
        while ready:
            order.append(heapq.heappop(ready))
            for v in children[order[-1]]:
                waiting[v] -= 1
                if waiting[v] == 0:
                    heapq.heappush(ready, v)
        return np.array(order, np.int64)

    def family(self, v: int) -> tuple[int, ...]:
        """The parents of variable v and v itself: the scope of its weights."""
        return (*self.parents[v], v)

    @cached_property
    def cardinalities(self) -> np.ndarray:
        """Number of states of each variable, int64 (n_variables,)."""
        return np.array([len(labels) for labels in self.states], np.int64)

    def shape(self, v: int) -> tuple[int, ...]:
        """Shape of the weights of variable v: states of its parents, states of its own."""
        return tuple(len(self.states[u]) for u in self.family(v))

    @cached_property
    def starts(self) -> np.ndarray:
        """First weight of each variable, and the number of weights, int64 (n_variables + 1,)."""
        sizes = [math.prod(self.shape(v)) for v in range(len(self))]
        return np.array([min(place, 2**62) for place in accumulate(sizes, initial=0)], np.int64)

    @property
    def n_weights(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def scopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Families for kernels: ``at`` (n_variables + 1,), and flat ``members`` and ``strides``.

        The weight that variable v has at codes x is
        ``starts[v] + sum_{at[v] <= k < at[v + 1]} strides[k] x[members[k]]``.
        """
        families = [self.family(v) for v in range(len(self))]
        at = np.cumsum([0, *map(len, families)], dtype=np.int64)
        members = np.array([u for family in families for u in family], np.int64)
        return at, members, np.concatenate([self._strides(v) for v in range(len(self))])

    def _strides(self, v: int) -> np.ndarray:
        return np.cumprod((1, *self.shape(v)[:0:-1]), dtype=np.int64)[::-1]

    def index(self, codes: np.ndarray) -> np.ndarray:
        """The weight that each variable uses, (n, n_variables), from codes of that shape; -1 where one is missing."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self):
            raise ValueError(f"codes have shape {codes.shape}; one column for each of {len(self)} variables is needed.")
        places = np.empty(codes.shape, np.int64)
        for v in range(len(self)):
            values = codes[:, self.family(v)].astype(np.int64)
            places[:, v] = np.where((values >= 0).all(axis=1), self.starts[v] + values @ self._strides(v), -1)
        return places

    def counts(self, codes: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """How often each weight is used by rows of codes, (n_weights,); what is missing in a family is not counted."""
        places = self.index(codes).ravel()
        weight = None if sample_weight is None else np.repeat(sample_weight, len(self))[places >= 0]
        return np.bincount(places[places >= 0], weight, self.n_weights).astype(np.float64)

    @cached_property
    def tables(self) -> Tables:
        """One table for each variable and configuration of its parents, the last parent running fastest."""
        sizes = np.repeat(self.cardinalities, np.diff(self.starts) // self.cardinalities)
        return Tables(offsets_of(sizes), self._table_name)

    def _table_name(self, j: int) -> str:
        first = self.tables.starts[j]
        v = int(np.searchsorted(self.starts, first, side="right")) - 1
        codes = np.unravel_index(int(first - self.starts[v]), self.shape(v))  # the last is 0: where a table begins
        given = [f"{self.names[u]}={self.states[u].classes[k]!r}" for u, k in zip(self.parents[v], codes, strict=False)]
        return f"P({self.names[v]} | {', '.join(given)})" if given else f"P({self.names[v]})"

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Weights of each variable, of ``shape(v)``; views where ``w`` allows."""
        return {
            name: w[self.starts[v] : self.starts[v + 1]].reshape(self.shape(v)) for v, name in enumerate(self.names)
        }

    def join(self, groups: Mapping[str, ArrayLike]) -> np.ndarray:
        """The weights of arrays by name."""
        unknown = [name for name in groups if name not in self.code]
        if unknown:
            raise ValueError(f"there is a table of the unknown variable {unknown[0]!r}; correct the name.")
        w = np.empty(self.n_weights)
        for v, (name, own) in enumerate(self.groups(w).items()):
            if name not in groups:
                raise ValueError(f"the table of {name!r} is missing; give one for every variable.")
            table = np.asarray(groups[name], np.float64)
            if table.shape != self.shape(v):
                axes = ", ".join(self.names[u] for u in self.family(v))
                what = f"the table of {name!r} has shape {table.shape}; its axes are ({axes})"
                raise ValueError(f"{what}, so it must have {self.shape(v)}.")
            own[...] = table
        return w


def _edges(structure: Structure, at: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    """Pairs (parent, child), each once."""
    if hasattr(structure, "is_directed") and not isinstance(structure, Digraph):
        raise ValueError("the graph is undirected; give a networkx.DiGraph, or a list of pairs (parent, child).")
    if isinstance(structure, Digraph):
        alone = [name for name in structure.nodes if name not in at]
        if alone:
            raise ValueError(f"the graph has the node {alone[0]!r}, whose states are not given; add them.")
        pairs: list = [(u, v) for v in structure.nodes for u in structure.predecessors(v)]
    elif isinstance(structure, Mapping):
        texts = [child for child, above in structure.items() if isinstance(above, str)]
        if texts:
            raise TypeError(f"the parents of {texts[0]!r} are a text; give a list of names, such as ['a'].")
        unknown = [child for child in structure if child not in at]
        if unknown:
            raise ValueError(f"the unknown variable {unknown[0]!r} has parents; give its states, or correct the name.")
        pairs = [(u, child) for child, above in structure.items() for u in above]
    else:
        pairs = []
        for k, pair in enumerate(structure):
            if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise TypeError(f"edge {k} is {pair!r}; give pairs (parent, child).")
            pairs.append(tuple(pair))
    if len(set(pairs)) < len(pairs):
        twice = next(pair for k, pair in enumerate(pairs) if pair in pairs[:k])
        raise ValueError(f"the edge {twice[0]!r} -> {twice[1]!r} is there twice; give it once.")
    return pairs


def _check_names(names: tuple[object, ...]) -> None:
    seen: set[str] = set()
    for v, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise TypeError(f"variable {v} is called {name!r}; names are text (columns: frame.rename(columns=str)).")
        if name in seen:
            raise ValueError(f"two variables are called {name!r}; names must differ.")
        seen.add(name)


def _check_variable(net: Network, v: int, name: str) -> None:
    if len(net.states[v]) == 0:
        raise ValueError(f"the variable {name!r} has no state; give all values it may take.")
    above = net.parents[v]
    strange = [u for u in above if not 0 <= u < len(net.names)]
    if strange:
        raise ValueError(f"{name!r} has the unknown parent {strange[0]}; there are {len(net.names)} variables.")
    if len(set(above)) < len(above):
        twice = next(u for u in above if above.count(u) > 1)
        raise ValueError(f"{name!r} has the parent {net.names[twice]!r} twice; give it once.")
    if len(above) > MAX_PARENTS:
        raise ValueError(f"{name!r} has {len(above)} parents, more than {MAX_PARENTS}; give it fewer.")


def _cycle(net: Network) -> str:
    """One cycle, in the direction of its edges: walk from parent to parent among the variables that have no order."""
    left = set(range(len(net))) - set(net.order.tolist())
    walk = [min(left)]
    while len(set(walk)) == len(walk):
        walk.append(next(u for u in net.parents[walk[-1]] if u in left))
    ring = walk[walk.index(walk[-1]) :][::-1]
    return " -> ".join(net.names[v] for v in ring)
