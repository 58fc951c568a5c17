"""Graphs over labels, and what label sets cost."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from maxmargin.costs import HammingCost, WeightedHammingCost
from maxmargin.models.labels import Labels, weighted

__all__ = ["COST_KINDS", "Forest", "NetworkGraph", "Pair", "forest_of", "label_costs", "label_edges"]

COST_KINDS = ("hamming", "f1", "jaccard")
GRAPHS = 'None, "tree", "full", pairs of labels or a graph of networkx'
Pair: TypeAlias = tuple[Hashable, Hashable]


@runtime_checkable
class NetworkGraph(Protocol):
    """What is asked of a graph of networkx."""

    @property
    def nodes(self) -> Collection[Hashable]: ...
    @property
    def edges(self) -> Iterable[Pair]: ...
    def is_directed(self) -> bool: ...


def label_edges(graph: object, on: np.ndarray, labels: Labels) -> np.ndarray:
    """Pairs of labels that have a weight, int32 (E, 2), lower number first.

    Parameters
    ----------
    graph : None, "tree", "full", iterable of pairs of labels, or graph of networkx
        "tree" is the spanning forest of the largest mutual information between labels (Chow and Liu 1968).
    on : bool array (n, M)
        The sets of the training examples.
    """
    M = len(labels)
    if graph is None:
        return np.empty((0, 2), np.int32)
    if isinstance(graph, str):
        if graph == "full":
            return np.column_stack(np.triu_indices(M, 1)).astype(np.int32)
        if graph == "tree":
            from maxmargin.models.structure import chow_liu

            parents = chow_liu(on.astype(np.int64), [2] * M)
            return _ordered([(k, p) for k, above in enumerate(parents) for p in above])
        raise ValueError(f"graph must be {GRAPHS}; got {graph!r}.")
    if isinstance(graph, NetworkGraph):
        graph = [(edge[0], edge[1]) for edge in graph.edges]  # those of a multigraph have a key behind
    if not isinstance(graph, Iterable):
        raise TypeError(f"graph must be {GRAPHS}; got {graph!r:.80}.")
    pairs = []
    for edge in graph:
        ends = tuple(edge) if isinstance(edge, (tuple, list, np.ndarray)) else ()
        if len(ends) != 2:
            raise ValueError(f"graph has {edge!r:.60} in place of an edge; give pairs of labels.")
        codes = [labels.code.get(end, -1) if isinstance(end, Hashable) else -1 for end in ends]
        if min(codes) < 0:
            missing = ends[codes.index(-1)]
            raise ValueError(
                f"graph has an edge to {missing!r}, which is not a label; labels are {labels.classes[:8]}."
            )
        if codes[0] == codes[1]:
            raise ValueError(f"graph has an edge from {ends[0]!r} to itself; give pairs of different labels.")
        pairs.append((codes[0], codes[1]))
    return _ordered(pairs)


def _ordered(pairs: list[tuple[int, int]]) -> np.ndarray:
    distinct = sorted({(min(pair), max(pair)) for pair in pairs})
    return np.array(distinct, np.int32).reshape(-1, 2)


class Forest(NamedTuple):
    """A graph without cycles, int32 (M,) each: labels, roots first; the parent of each (-1: none), the edge to it."""

    order: np.ndarray
    parent: np.ndarray
    above: np.ndarray

    def siblings(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First child and next sibling of each label (-1: none; roots are siblings), int32 (M,).

        And the number of labels, or the sum of their weights, in the trees of a label and of its later siblings.
        """
        M = len(self.order)
        child, following = np.full(M + 1, -1), np.full(M, -1)
        whole = np.ones(M) if weights is None else weights.astype(np.float64)
        size = whole.copy()
        for k in self.order[::-1]:  # ``child[-1]`` is the first root
            after = following[k] = child[self.parent[k]]
            child[self.parent[k]] = k
            size[k] = whole[k] + (size[after] if after >= 0 else 0)
            if self.parent[k] >= 0:
                whole[self.parent[k]] += whole[k]
        return child[:M].astype(np.int32), following.astype(np.int32), size.astype(np.int32)


def forest_of(n_labels: int, edges: np.ndarray) -> Forest | None:
    """The forest that these edges make; None when they make a cycle. O(M + E)."""
    graph = csr_array((np.ones(len(edges)), edges.T), shape=(n_labels, n_labels))
    order: list[int] = []
    parent, above = np.full(n_labels, -1, np.int32), np.zeros(n_labels, np.int32)
    seen = np.zeros(n_labels, bool)
    for root in range(n_labels):
        if not seen[root]:
            found, before = breadth_first_order(graph, root, directed=False)
            seen[found] = True
            order += found.tolist()
            parent[found[1:]] = before[found[1:]]
    inner = np.flatnonzero(parent >= 0)
    if len(inner) < len(edges):
        return None
    numbers = edges.astype(np.int64) @ (n_labels, 1)  # these rise
    low, high = np.minimum(inner, parent[inner]), np.maximum(inner, parent[inner])
    above[inner] = np.searchsorted(numbers, low * n_labels + high)
    return Forest(np.array(order, np.int32), parent, above)


def label_costs(
    cost: object, labels: Labels, class_weight: Mapping[Hashable, float] | None = None
) -> tuple[int, np.ndarray]:
    """The kind of a cost, a place in :data:`COST_KINDS`, and costs (M, 2) of adding and of missing each label.

    Parameters
    ----------
    cost : {"hamming", "f1", "jaccard"}, HammingCost, WeightedHammingCost, or mapping of label to weight
        A mapping weighs mistakes of both sorts; WeightedHammingCost those by="true" (a label is missed) or by="label"
        (one is added).
    class_weight : mapping of label to weight, optional
        Multiplies the cost of missing it.
    """
    weights, kind = np.ones((len(labels), 2)), 0
    if isinstance(cost, str):
        if cost not in COST_KINDS:
            raise ValueError(f"cost must be {', '.join(COST_KINDS)}, or weights of labels; got {cost!r}.")
        kind = COST_KINDS.index(cost)
    elif isinstance(cost, WeightedHammingCost):
        if cost.by not in ("true", "label"):
            raise ValueError(f"by is {cost.by!r}; use 'true' (a label is missed) or 'label' (one is added).")
        weights[:, int(cost.by == "true")] = _weights(cost.weights, labels)
    elif isinstance(cost, Mapping):
        weights[:] = _weights(cost, labels)[:, None]
    elif not isinstance(cost, HammingCost):
        raise TypeError(f"cost is a {type(cost).__name__}; give {', '.join(COST_KINDS)}, or weights of labels.")
    if isinstance(cost, (HammingCost, WeightedHammingCost)) and cost.normalize:
        weights /= len(labels)
    if class_weight is not None:
        if kind:
            raise ValueError(f'class_weight is for costs that add up over labels; cost="{cost}" is one of whole sets.')
        weights[:, 1:] = weighted(weights[:, 1:], labels, class_weight)
    return kind, weights


def _weights(given: Mapping[Hashable, float], labels: Labels) -> np.ndarray:
    unknown = [label for label in given if label not in labels.code]
    if unknown:
        raise ValueError(f"cost weighs {unknown[0]!r}, which is not a label; labels are {labels.classes[:8]}.")
    weights = np.array([float(given.get(label, 1.0)) for label in labels.classes])
    for label, weight in zip(labels.classes, weights, strict=True):
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"the cost of label {label!r} is {weight}; give a finite number >= 0.")
    return weights
