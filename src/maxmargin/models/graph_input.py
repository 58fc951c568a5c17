"""Graphs as users give them, checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from operator import index
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import numbers, refuse_not_finite
from maxmargin.inference.graph import Structure
from maxmargin.models.labels import label_lists

__all__ = ["GraphInput", "checked_graphs", "checked_labels", "checked_node_cost"]

Factor = tuple[tuple[int, ...], np.ndarray]
T = TypeVar("T")
KEYS = ("node", "edges", "edge", "factors")
Known = dict[tuple[int, str, tuple[int, ...], bytes], Structure]  # by number of nodes and all that edges are


@dataclass(frozen=True)
class GraphInput:
    """One graph: node features (n, F), its structure, edge features (m, G), factors (scope, features)."""

    node: np.ndarray
    structure: Structure
    edge: np.ndarray
    factors: Sequence[Factor] = ()

    def with_edges_of(self, n_edge: int) -> GraphInput:
        """The same; without any edges also with the number of edge features that others have."""
        return self if len(self.edge) else replace(self, edge=np.empty((0, n_edge)))

    def without(self, used: np.ndarray) -> GraphInput:
        """The same with no features of nodes that are not used, nor of edges and factors at them."""
        if used.all():
            return self
        both = used[self.structure.edges].all(axis=1)
        factors = [(scope, x * used[list(scope)].all()) for scope, x in self.factors]
        return replace(self, node=self.node * used[:, None], edge=self.edge * both[:, None], factors=factors)


def checked_graphs(X: object) -> list[GraphInput]:
    """The graphs of a list of mappings, or a ValueError that names the graph."""
    graphs = [X] if isinstance(X, Mapping) or not isinstance(X, Iterable) else list(X)
    if not graphs:
        raise ValueError("there are no graphs; give at least one.")
    known: Known = {}
    return [_checked_graph(x, i, known) for i, x in enumerate(graphs)]


def _checked_graph(x: object, i: int, known: Known) -> GraphInput:
    if not isinstance(x, Mapping) or "node" not in x or set(x) - set(KEYS):
        raise ValueError(f"graph {i} must be a mapping with the keys 'node', 'edges' and perhaps 'edge', 'factors'.")
    node = _numbers(x["node"], i, "node")
    edges = np.asarray(x.get("edges", np.empty((0, 2), np.int32)))
    key = (len(node), edges.dtype.str, edges.shape, edges.tobytes())
    if key not in known:  # graphs of the same shape share their structure
        try:
            known[key] = Structure.of(len(node), edges)
        except ValueError as error:
            raise ValueError(f"graph {i}: {error}.") from None
    structure = known[key]
    m = len(structure.edges)
    edge = np.ones((m, 1)) if x.get("edge") is None else _numbers(x["edge"], i, "edge")
    if len(edge) != m:
        raise ValueError(f"graph {i} has {m} edges and {len(edge)} rows of edge features; give one for each edge.")
    factors = [_checked_factor(pair, i, f, len(node)) for f, pair in enumerate(x.get("factors") or ())]
    return GraphInput(node, structure, edge, factors)


def _checked_factor(pair: tuple[Sequence[int], ArrayLike], i: int, f: int, n: int) -> Factor:
    try:
        scope, x = tuple(map(index, pair[0])), np.atleast_1d(np.asarray(pair[1], np.float64))
    except (TypeError, ValueError, LookupError):
        raise ValueError(f"factor {f} of graph {i} must be a pair (scope, features).") from None
    if len(scope) < 3 or len(set(scope)) != len(scope) or not all(0 <= p < n for p in scope):
        raise ValueError(f"factor {f} of graph {i} has the scope {scope}; give three or more nodes from 0 to {n - 1}.")
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError(f"factor {f} of graph {i} has features {x!r}; give a vector of finite numbers.")
    return scope, x


def _numbers(array: ArrayLike, i: int, name: str) -> np.ndarray:
    try:
        found = np.asarray(array)
    except ValueError:
        found = np.empty(0)
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise ValueError(f"the {name} features of graph {i} are {found.dtype} {found.shape}; give rows of numbers.")
    refuse_not_finite(found, f"graph {i} has NaN or infinite {name} features")
    return np.ascontiguousarray(found, np.float64)


def checked_labels(Y: Iterable[Iterable[Hashable]], graphs: list[GraphInput]) -> list[list[Hashable]]:
    """Labels of the nodes of each graph."""
    rows = label_lists(np.ravel(y) if isinstance(y, np.ndarray) else y for y in _listed(Y, "labels"))
    _check_number(rows, graphs, "sequences of labels")
    for i, (row, graph) in enumerate(zip(rows, graphs, strict=True)):
        if len(row) != len(graph.node):
            raise ValueError(f"graph {i} has {len(graph.node)} nodes and {len(row)} labels; give one for each node.")
    return rows


def checked_node_cost(costs: Iterable[ArrayLike], graphs: list[GraphInput]) -> list[np.ndarray]:
    """Weights of nodes in the cost."""
    arrays = [numbers(c, f"the node costs of graph {i}") for i, c in enumerate(_listed(costs, "node costs"))]
    _check_number(arrays, graphs, "arrays of node costs")
    for i, (c, graph) in enumerate(zip(arrays, graphs, strict=True)):
        if c.shape != (len(graph.node),) or not (np.isfinite(c).all() and (c >= 0).all()):
            raise ValueError(f"the node costs of graph {i} must be {len(graph.node)} finite numbers >= 0.")
    return arrays


def _listed(given: Iterable[T], what: str) -> list[T]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"the {what} are {given!r:.80}; give a list with one entry for each graph.")
    return list(given)


def _check_number(found: Sized, graphs: list[GraphInput], what: str) -> None:
    if len(found) != len(graphs):
        raise ValueError(f"there are {len(graphs)} graphs and {len(found)} {what}; give one for each graph.")
