"""Exact maxima and sums over discrete variables with factors of any size, by a tree of cliques.

    max_x  sum_f t_f(x_f)        and        ln sum_x exp sum_f t_f(x_f)

Variables are eliminated one by one (min-fill order); each elimination creates a bucket, a table over the
variable and its remaining neighbours. The buckets with their messages are a junction tree. A pass takes
O(total cells), which is exponential in the tree width; :class:`TooWide` reports the size.

Dechter 1999, Bucket elimination: a unifying framework for reasoning. Dechter and Rish 2003, Mini-buckets: a general
scheme for bounded inference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod
from operator import index

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import indices, numbers
from maxmargin.inference.tables import refuse_scores

__all__ = ["JunctionTree", "TooWide"]

MAX_CELLS = 2**24
WIDE = 64  # fill-in is estimated instead of counted above this many neighbours


class TooWide(ValueError):
    """The cliques are too large: they need ``cells``, but only ``limit`` are allowed."""

    def __init__(self, clique: int, variables: int, cells: int, limit: int) -> None:
        self.clique, self.cells, self.limit = clique, cells, limit
        needed, most = (f"{size:,} cells ({8 * size / 2**20:,.0f} MiB)" for size in (cells, limit))
        found = f"a clique of {variables} variables has {clique:,} cells, and all tables need at least {needed}"
        advice = "Raise the limit, merge states, remove edges, or use bounded inference."
        super().__init__(f"{found}; the limit is {most}. {advice}")


@dataclass(frozen=True)
class _Source:
    """A factor or a message: where it begins, and its scope (C order)."""

    where: int
    scope: tuple[int, ...]


@dataclass(frozen=True)
class _Bucket:
    variable: int
    neighbours: tuple[int, ...]
    sources: tuple[_Source, ...]
    message: int


@dataclass(frozen=True)
class JunctionTree:
    """A tree of cliques, compiled to a program of integers; see :mod:`maxmargin.inference.junction_tree_kernel`.

    Parameters
    ----------
    cardinalities : int64 array (v,)
        States of each variable, at least one.
    scopes : tuple of tuples of int
        Variables of each factor, whose table is in C order over them.
    ints : int64 array
        The program that the kernels read.
    cells, digits : int
        Floating-point and integer scratch that the kernels need.
    width : int
        Neighbours of the widest bucket, the width of the tree.
    exact : bool
        False when variables were split into mini-buckets: values of argmax are then upper bounds.
    """

    cardinalities: np.ndarray
    scopes: tuple[tuple[int, ...], ...]
    ints: np.ndarray
    cells: int
    digits: int
    width: int
    exact: bool

    @staticmethod
    def build(
        cardinalities: ArrayLike, scopes: Sequence[Sequence[int]], max_cells: int = MAX_CELLS, *, bounded: bool = False
    ) -> JunctionTree:
        """Plan the elimination, with at most ``max_cells`` in all tables together; otherwise it raises TooWide.

        Scopes may be empty and may repeat, and variables may lack factors. With ``bounded``, variables with cliques of
        more than ``max_cells / 2v`` cells are split into mini-buckets instead.
        """
        states = indices(cardinalities, 2**31, "cardinalities", least=-(2**31)).astype(np.int64).reshape(-1)
        if len(states) and states.min() < 1:
            v = int(np.argmin(states))
            raise ValueError(f"variable {v} has {states[v]} states; every variable needs at least one.")
        factors = tuple(tuple(_whole(scope, f)) for f, scope in enumerate(scopes))
        for f, scope in enumerate(factors):
            if len(set(scope)) != len(scope) or any(not 0 <= v < len(states) for v in scope):
                raise ValueError(f"factor {f} has the scope {scope}; give different variables below {len(states)}.")
        plan = _Plan(states.tolist(), factors, int(max_cells), bounded)
        buckets = plan.eliminate()
        ints, cells = plan.program(buckets)
        width = max((len(b.neighbours) for b in buckets), default=0)
        return JunctionTree(states, factors, ints, cells, width, width, len(buckets) == len(states))

    @cached_property
    def table_size(self) -> int:
        """Numbers in the tables of all factors."""
        return sum(prod(self.cardinalities[list(scope)].tolist()) for scope in self.scopes)

    def argmax(self, tables: ArrayLike) -> tuple[float, np.ndarray]:
        """The largest sum of factors and its labels (v,); -inf when nothing is allowed, a bound if not exact.

        ``tables`` (table_size,) has the tables of all factors in turn, each in C order over its scope; -inf forbids.
        """
        from maxmargin.inference.junction_tree_kernel import max_product

        labels = np.zeros(len(self.cardinalities), np.int32)
        return max_product(self.ints, 0, self._tables(tables), labels, *self._scratch()), labels

    def log_partition(self, tables: ArrayLike) -> float:
        """``ln sum_x exp sum_f t_f(x_f)``; -inf when nothing is allowed."""
        return self._sums(tables, np.empty(0))

    def marginals(self, tables: ArrayLike) -> tuple[float, list[np.ndarray]]:
        """Log-partition, and the probability of each state of each variable (zeros when nothing is allowed)."""
        flat = np.empty(int(self.cardinalities.sum()))
        value = self._sums(tables, flat)
        return value, np.split(flat, np.cumsum(self.cardinalities)[:-1]) if len(self.cardinalities) else []

    def _sums(self, tables: ArrayLike, marginals: np.ndarray) -> float:
        from maxmargin.inference.junction_tree_kernel import sum_product

        if not self.exact:
            raise ValueError("sums need an exact tree; this one was built with bounded=True and split variables.")
        return sum_product(self.ints, 0, self._tables(tables), marginals, *self._scratch())

    def _tables(self, tables: ArrayLike) -> np.ndarray:
        flat = numbers(tables, "tables").reshape(-1)
        if len(flat) != self.table_size:
            raise ValueError(f"the factors have {self.table_size} cells together; got {len(flat)} numbers.")
        refuse_scores(tables=flat)
        return flat

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.digits, np.int32), np.empty(self.cells)


def _whole(scope: Sequence[int], f: int) -> list[int]:
    try:
        return [index(v) for v in scope]
    except TypeError:
        raise ValueError(f"factor {f} has the scope {scope!r:.80}; give the numbers of its variables.") from None


class _Plan:
    """Min-fill elimination: the buckets, and the sources of each."""

    def __init__(self, states: list[int], scopes: tuple[tuple[int, ...], ...], limit: int, bounded: bool) -> None:
        self.states, self.limit, self.bounded = states, limit, bounded
        self.share = limit // max(2 * len(states), 1)  # a message beside each table
        self.near: list[set[int]] = [set() for _ in states]
        self.waiting: list[list[_Source]] = [[] for _ in states]
        self.constants: list[int] = []
        self.messages = self.cells = 0
        where = 0
        for scope in scopes:
            self._add(_Source(where, scope))
            where += self._size(scope)

    def _size(self, scope: Collection[int]) -> int:
        return prod(self.states[v] for v in scope)

    def _add(self, source: _Source) -> None:
        for v in source.scope:
            self.waiting[v].append(source)
            self.near[v].update(source.scope)
            self.near[v].discard(v)
        if not source.scope and source.where >= 0:
            self.constants.append(source.where)

    def _rank(self, v: int) -> tuple[int, int, int]:
        """Edges that eliminating v adds, then the size of its clique."""
        near, d = self.near[v], len(self.near[v])
        if d > WIDE:
            return d * (d - 1) // 2, d, v
        return sum(b not in self.near[a] for a, b in combinations(near, 2)), self._size([v, *near]), v

    def eliminate(self) -> list[_Bucket]:
        rank = [self._rank(v) for v in range(len(self.states))]
        heap, done = list(rank), set()
        buckets: list[_Bucket] = []
        heapify(heap)
        while heap:
            best = heappop(heap)
            v = best[-1]
            if v in done or best != rank[v]:
                continue  # outdated: the rank has changed
            done.add(v)
            buckets += self._buckets(v)
            near = self.near[v]
            for u in near:
                self.near[u].discard(v)
            touched = set(near)
            for u in near:
                if len(self.near[u]) <= WIDE:
                    touched |= self.near[u]
            for u in touched:
                if (now := self._rank(u)) != rank[u]:
                    rank[u] = now
                    heappush(heap, now)
        return buckets

    def _buckets(self, v: int) -> list[_Bucket]:
        """Eliminate v: one bucket, or several where one would be too large and bounds suffice."""
        made = []
        for sources in self._split(v):
            scope = tuple(sorted({u for source in sources for u in source.scope} - {v}))
            clique, rows = self._size([v, *scope]), self._size(scope)
            self.cells += clique + rows
            if self.cells > self.limit:
                raise TooWide(clique, len(scope) + 1, self.cells, self.limit)
            made.append(_Bucket(v, scope, tuple(sources), self.messages))
            self.messages += rows
        for source in self.waiting[v]:
            for u in source.scope:
                if u != v:
                    self.waiting[u].remove(source)
        for bucket in made:
            self._add(_Source(-1 - bucket.message, bucket.neighbours))
        return made

    def _split(self, v: int) -> list[list[_Source]]:
        """Sources of v, in groups whose cliques are small enough: first fit, the widest source first."""
        sources = self.waiting[v]
        if not (self.bounded and sources) or self._size({v}.union(*(s.scope for s in sources))) <= self.share:
            return [list(sources)]
        groups: list[tuple[set[int], list[_Source]]] = []
        for source in sorted(sources, key=lambda s: -self._size(s.scope)):
            for scope, members in groups:
                if self._size(scope | set(source.scope)) <= self.share:
                    scope.update(source.scope)
                    members.append(source)
                    break
            else:
                groups.append((set(source.scope), [source]))
        return [members for _, members in groups]

    def program(self, buckets: list[_Bucket]) -> tuple[np.ndarray, int]:
        """The program of the kernel, and its scratch: all messages, then all tables."""
        first = np.concatenate([[0], np.cumsum(self.states)]).astype(int).tolist()
        head = [len(buckets), self.messages, len(self.constants)]
        begin = len(head) + len(buckets) + len(self.constants)
        places: list[int] = []
        body: list[int] = []
        table = self.messages
        for b in buckets:
            places.append(begin + len(body))
            K, rows = self.states[b.variable], self._size(b.neighbours)
            body += [b.variable, K, len(b.neighbours), rows, table, b.message, len(b.sources), first[b.variable]]
            body += [self.states[u] for u in b.neighbours]
            body += b.neighbours
            for source in b.sources:
                strides, stride = {}, 1
                for u in reversed(source.scope):
                    strides[u] = stride
                    stride *= self.states[u]
                body += [source.where, *(strides.get(u, 0) for u in b.neighbours), strides[b.variable]]
            table += rows * K
        return np.array(head + places + self.constants + body, np.int64), table
