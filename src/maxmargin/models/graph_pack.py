"""Graphs into the flat arrays that the kernel reads, each with the search that suits its shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxmargin.inference.branch_kernel import scratch_size
from maxmargin.inference.graph import Structure
from maxmargin.inference.junction_tree import JunctionTree, TooWide
from maxmargin.inference.min_cut_graph_kernel import graph_rows
from maxmargin.inference.min_cut_kernel import STATE_SIZE
from maxmargin.models import graph_kernel as gk
from maxmargin.models.base import by_all_costs, least_positive, offsets_of, unit_where_small
from maxmargin.models.graph import Arrays, Graph, GraphBound, GraphLayout
from maxmargin.models.graph_input import GraphInput
from maxmargin.models.labels import check_count
from maxmargin.models.search import has_highs

__all__ = ["pack"]


def pack(
    layout: GraphLayout, graphs: list[GraphInput], codes: Arrays | None, costs: Arrays, model: Graph
) -> GraphBound:
    """The bound model; a ValueError names a graph that the method of the model cannot do."""
    K, F, G = len(layout.labels), layout.n_node, layout.n_edge
    n_nodes = np.array([len(graph.node) for graph in graphs])
    n_edges = np.array([len(graph.edge) for graph in graphs])
    starts, edge_starts = map(offsets_of, (n_nodes, n_edges))
    nodes, edges = int(starts[-1]), int(edge_starts[-1])
    method, branches = model.method, 1 if model.method == "trws" else model.max_branches
    if method == "cut":
        _check_cut(layout, graphs)

    rows = np.zeros((len(graphs), gk.ROW), np.int64)
    at_labels = rows.size + K * K
    tail: list[np.ndarray] = []
    at_tail = at_labels + (nodes if codes is not None else 0)
    at_factor_features = nodes * F + edges * G
    features: list[np.ndarray] = []
    trees: dict[int, tuple[int, JunctionTree | None]] = {}  # junction trees of structures, and where they stand
    meta_size, iwork, scratch = gk.META_SIZE, 1, 1
    for i, graph in enumerate(graphs):
        n, m, s = int(n_nodes[i]), int(n_edges[i]), graph.structure
        cuts = K == 2 and not graph.factors and not s.forest and method in ("auto", "cut")
        kind, tree, program = gk.TREE, None, 0
        if not _as_forest(graph, method, i):
            key = -1 - i if graph.factors else id(s)
            if key not in trees:
                trees[key] = (meta_size, _junction_tree(graph, K, method, model.max_cells, i))
            program, tree = trees[key]
            meta_size = max(meta_size, program + (0 if tree is None else len(tree.ints)))
            kind = gk.MESSAGES if tree is None else gk.JUNCTION
        parts = [s.edges.ravel(), s.begin, s.ends, s.order, s.up, *(_arcs(s) if cuts else [])]
        size = sum(map(len, parts))
        rows[i] = n, m, kind, cuts, starts[i], edge_starts[i], at_tail, program, len(graph.factors), at_tail + size
        for scope, x in graph.factors:
            parts.append(np.array([len(scope), len(x), layout.factor_starts[len(scope)], at_factor_features, *scope]))
            features.append(x)
            at_factor_features += len(x)
        tail += parts
        at_tail += sum(map(len, parts))
        tables = n * K + m * K * K * (1 if graph.factors else 2) + sum(K ** len(scope) for scope, _ in graph.factors)
        digits, cells = (tree.digits, tree.cells) if tree is not None else (0, 0)
        messages = scratch_size(n, m, K, branches) if kind == gk.MESSAGES else 0
        scratch = max(scratch, tables + max(n * K, 3 * m + 2 * n + 3 if cuts else 0, cells, messages))
        iwork = max(iwork, 3 * n, digits, STATE_SIZE + 5 * (n + 1) if cuts else 0)
    check_count(max(at_tail, at_factor_features), "numbers", "the graphs need", "bind in parts")

    at_costs = at_factor_features
    meta = np.zeros(meta_size, np.int64)
    meta[[gk.N_LABELS, gk.N_NODE, gk.N_EDGE, gk.N_PAIR, gk.SIGN]] = K, F, G, layout.n_pair, layout.sign
    meta[[gk.PASSES, gk.BRANCHES, gk.N_WEIGHTS]] = model.message_passes, branches, layout.n_weights
    meta[[gk.HAS_LABELS, gk.AT_ROWS, gk.AT_PLACE, gk.AT_LABELS]] = codes is not None, 0, rows.size, at_labels
    meta[[gk.AT_NODES, gk.AT_EDGES, gk.AT_COSTS, gk.AT_TABLE]] = 0, nodes * F, at_costs, at_costs + nodes
    for at, tree in trees.values():
        if tree is not None:
            meta[at : at + len(tree.ints)] = tree.ints
    ints = np.concatenate([rows.ravel(), layout.place.ravel(), *(codes or []), *tail]).astype(np.int32)
    floats = [*(graph.node.ravel() for graph in graphs), *(graph.edge.ravel() for graph in graphs), *features, *costs]
    exact = all(row[gk.KIND] in (gk.TREE, gk.JUNCTION) for row in rows)
    paid = [c[:, None] * layout.cost_table[y] for c, y in zip(costs, codes or (), strict=codes is not None)]
    trees_only = [row[gk.KIND] == gk.TREE for row in rows]
    units = [unit_where_small(each) if tree else 0.0 for each, tree in zip(paid, trees_only, strict=False)]
    pairs_only = codes is not None and not any(graph.factors for graph in graphs)
    constrained = {"constrained"} if pairs_only and has_highs() else set()
    return GraphBound(
        n_examples=len(graphs),
        layout=layout,
        capabilities=frozenset(({"exact", "k_best", "marginals"} if exact else set()) | constrained),
        plane=gk.graph_plane,
        meta=meta,
        ints=ints,
        floats=np.concatenate([*floats, layout.cost_table.ravel()]),
        room=layout.n_weights + 1,  # one more for the extra column of squared slacks
        iwork_size=iwork,
        fwork_size=layout.n_weights + layout.n_pair + scratch,
        output_at=(starts + np.arange(len(starts))).astype(np.int64),
        graphs=graphs,
        codes=codes,
        costs=costs,
        least_cost=np.array([least_positive(each) for each in paid]),
        searches=by_all_costs(_search, np.array(units)) if any(units) else {},
    )


def _search() -> Callable[..., int]:
    from maxmargin.models.graph_slack_kernel import graph_slack

    return graph_slack


def _as_forest(graph: GraphInput, method: str, i: int) -> bool:
    if graph.factors and method not in ("auto", "junction_tree"):
        raise ValueError(f'graph {i} has factors over more than two nodes; use method="junction_tree" or "auto".')
    forest = graph.structure.forest and not graph.factors
    if method == "tree" and not forest:
        raise ValueError(f'the edges of graph {i} close a cycle; method="tree" is for forests, use "auto".')
    return forest and method in ("auto", "tree", "cut")


def _junction_tree(graph: GraphInput, K: int, method: str, max_cells: int, i: int) -> JunctionTree | None:
    """None when another search has to do."""
    if method not in ("auto", "junction_tree"):
        return None
    s = graph.structure
    scopes = [(p,) for p in range(s.n_nodes)] + [tuple(e) for e in s.edges.tolist()]
    scopes += [scope for scope, _ in graph.factors]
    try:
        return JunctionTree.build(np.full(s.n_nodes, K), scopes, max_cells)
    except TooWide as error:
        if graph.factors or method == "junction_tree":
            raise ValueError(f"graph {i} is too wide for a junction tree (max_cells): {error}") from None
        return None


def _arcs(s: Structure) -> list[np.ndarray]:
    """The rows of arcs of the cut: begin, head, back, place."""
    n, m = s.n_nodes, len(s.edges)
    arcs = [np.zeros(size, np.int32) for size in (n + 2, 2 * m + 1, 2 * m + 1, m)]
    graph_rows(s.edges, *arcs)
    return arcs


def _check_cut(layout: GraphLayout, graphs: list[GraphInput]) -> None:
    if len(layout.labels) != 2 or layout.pairwise != "potts":
        what = f"there are {len(layout.labels)} labels and pairwise is {layout.pairwise!r}."
        raise ValueError(f'method="cut" needs two labels and pairwise="potts"; {what} method="auto" cuts where it can.')
    for i, graph in enumerate(graphs):
        if graph.edge.size and graph.edge.min() < 0:
            raise ValueError(f'graph {i} has negative edge features; method="cut" needs them >= 0, or use "auto".')
