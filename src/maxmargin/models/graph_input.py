"""Graphs as users give them, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.inference.graph import Structure
from maxmargin.models.labels import plain

__all__ = ["GraphInput", "checked_graphs", "checked_labels", "checked_node_cost"]

KEYS = ("node", "edges", "edge", "factors")


@dataclass(frozen=True)
class GraphInput:
    """One graph: node features (n, F), its structure, edge features (m, G), factors (scope, features)."""

    node: np.ndarray
    structure: Structure
    edge: np.ndarray
    factors: Sequence[tuple[tuple[int, ...], np.ndarray]] = ()

    def with_edges_of(self, n_edge: int) -> GraphInput:
        """The same; without any edges also with the number of edge features that others have."""
        return self if len(self.edge) else replace(self, edge=np.empty((0, n_edge)))

    def without(self, used: np.ndarray) -> GraphInput:
        """The same with no features of nodes that are not used, nor of edges and factors at them."""
        if used.all():
            return self
        both = used[self.structure.edges].all(axis=1)
        return replace(
            self,
            node=self.node * used[:, None],
            edge=self.edge * both[:, None],
            factors=[(scope, x * used[list(scope)].all()) for scope, x in self.factors],
        )


def checked_graphs(X: Any) -> list[GraphInput]:
    """The graphs of a list of mappings, or a ValueError that names the graph."""
    X = [X] if isinstance(X, Mapping) else list(X)
    if not X:
        raise ValueError("there are no graphs; give at least one.")
    known: dict[tuple[int, bytes], Structure] = {}
    return [_checked_graph(x, i, known) for i, x in enumerate(X)]


def _checked_graph(x: Any, i: int, known: dict[tuple[int, bytes], Structure]) -> GraphInput:
    if not isinstance(x, Mapping) or "node" not in x or set(x) - set(KEYS):
        raise ValueError(
            f"graph {i} must be a mapping with the keys 'node', 'edges' and, if wanted, 'edge', 'factors'."
        )
    node = _numbers(x["node"], i, "node")
    edges = np.asarray(x.get("edges", np.empty((0, 2), np.int32)))
    key = (len(node), edges.tobytes())
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


def _checked_factor(pair: Any, i: int, f: int, n: int) -> tuple[tuple[int, ...], np.ndarray]:
    try:
        scope, x = tuple(map(int, pair[0])), np.atleast_1d(np.asarray(pair[1], np.float64))
    except (TypeError, ValueError, IndexError):
        raise ValueError(f"factor {f} of graph {i} must be a pair (scope, features).") from None
    if len(scope) < 3 or len(set(scope)) != len(scope) or not all(0 <= p < n for p in scope):
        raise ValueError(
            f"factor {f} of graph {i} has the scope {scope}; give three or more different nodes between 0 and {n - 1}."
        )
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError(f"factor {f} of graph {i} has features {x!r}; give a vector of finite numbers.")
    return scope, x


def _numbers(array: Any, i: int, name: str) -> np.ndarray:
    try:
        found = np.asarray(array)
    except ValueError:
        found = np.empty(0)
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise ValueError(
            f"the {name} features of graph {i} are {found.dtype} of shape {found.shape}; give a row of numbers for "
            f"each {name}."
        )
    if not np.isfinite(found).all():
        where = tuple(map(int, np.argwhere(~np.isfinite(found))[0]))
        raise ValueError(
            f"graph {i} has NaN or infinite {name} features, first at {where}; replace them before fitting."
        )
    return np.ascontiguousarray(found, np.float64)


def checked_labels(Y: Any, graphs: list[GraphInput]) -> list[list]:
    """Labels of the nodes of each graph."""
    rows = [plain(np.ravel(y) if isinstance(y, np.ndarray) else y) for y in Y]
    if len(rows) != len(graphs):
        raise ValueError(
            f"there are {len(graphs)} graphs and {len(rows)} sequences of labels; give one for each graph."
        )
    for i, (row, graph) in enumerate(zip(rows, graphs, strict=True)):
        if len(row) != len(graph.node):
            raise ValueError(f"graph {i} has {len(graph.node)} nodes and {len(row)} labels; give one for each node.")
    return rows


def checked_node_cost(costs: Any, graphs: list[GraphInput]) -> list[np.ndarray]:
    """Weights of nodes in the cost."""
    costs = [np.asarray(c, np.float64) for c in costs]
    if len(costs) != len(graphs):
        raise ValueError(f"there are {len(graphs)} graphs and {len(costs)} arrays of node costs; give one for each.")
    for i, (c, graph) in enumerate(zip(costs, graphs, strict=True)):
        if c.shape != (len(graph.node),) or not (np.isfinite(c).all() and (c >= 0).all()):
            raise ValueError(f"the node costs of graph {i} must be {len(graph.node)} finite numbers >= 0.")
    return costs
