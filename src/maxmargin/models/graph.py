"""A label for every node of a graph: scores of nodes, of edges, and of factors over more nodes.

    w . phi(x, y) = sum_p w_node[:, y_p] . x_p + sum_{e = (p, q)} w_edge[:, y_p, y_q] . x_e
                    + sum_f w_arity[:, y_scope(f)] . x_f

The argmax is exact on forests, for two labels with edges that favour equal ones, and where the treewidth is small. In
all other cases it comes with an upper bound, which the certificate uses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.contracts import Answer, Answers
from maxmargin.costs import as_cost
from maxmargin.door import weight_vector
from maxmargin.inference import graph as inference
from maxmargin.inference.graph import BRANCHES, MAX_CELLS, METHODS, PASSES, GraphAnswer, GraphProblem
from maxmargin.models.base import BoundModel, CompiledModel, offsets_of
from maxmargin.models.graph_input import GraphInput, checked_graphs, checked_labels, checked_node_cost
from maxmargin.models.labels import Labels, check_count, is_label, plain
from maxmargin.models.layout_state import StateReader, StorableLayout, facts_of
from maxmargin.models.search import BY_QUERIES, answer_by_queries
from maxmargin.parameters import Parameters

__all__ = ["Graph", "GraphBound", "GraphLayout", "PlainGraphBound"]

Arrays = list[np.ndarray]
PAIRWISE = ("full", "symmetric", "potts")
CODED = ("tree", "cut", "junction_tree", "trws", "branch_and_bound")  # methods in the order of the kernel's codes
COMPILED = ("auto", *CODED)


@dataclass(frozen=True)
class GraphLayout(StorableLayout):
    """Where each weight lives: node features first, then edge features, then factors by arity."""

    labels: Labels
    n_node: int
    n_edge: int
    pairwise: str
    factors: tuple[tuple[int, int], ...]  # (arity, features)
    cost_table: np.ndarray
    normalize: bool
    ignore: Hashable

    @property
    def place(self) -> np.ndarray:
        """Which of its weights an edge feature reads for each pair of labels, (K, K); -1 for none."""
        K = len(self.labels)
        i, j = np.indices((K, K))
        if self.pairwise == "potts":
            return np.where(i == j, -1, 0)
        if self.pairwise == "symmetric":
            low, high = np.minimum(i, j), np.maximum(i, j)
            return low * K - low * (low - 1) // 2 + high - low
        return i * K + j

    @property
    def n_pair(self) -> int:
        """Weights of one edge feature."""
        K = len(self.labels)
        return {"full": K * K, "symmetric": K * (K + 1) // 2, "potts": 1}[self.pairwise]

    @property
    def sign(self) -> int:
        """Potts weights count against different labels, so that positive weights join."""
        return -1 if self.pairwise == "potts" else 1

    @property
    def factor_starts(self) -> dict[int, int]:
        """First weight of the factors of each arity."""
        first = len(self.labels) * self.n_node + self.n_edge * self.n_pair
        ends = offsets_of([features * len(self.labels) ** arity for arity, features in self.factors])
        return {arity: first + int(at) for (arity, _), at in zip(self.factors, ends, strict=False)}

    @property
    def n_weights(self) -> int:
        K = len(self.labels)
        return K * self.n_node + self.n_edge * self.n_pair + sum(f * K**arity for arity, f in self.factors)

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``node`` (F, K), ``edge`` (G, K, K), (G, K (K + 1) / 2) or (G,), and ``factor3`` (features, K, K, K), ..."""
        K, F, G = len(self.labels), self.n_node, self.n_edge
        shape = {"full": (G, K, K), "symmetric": (G, self.n_pair), "potts": (G,)}[self.pairwise]
        out = {"node": w[: F * K].reshape(F, K), "edge": w[F * K : F * K + G * self.n_pair].reshape(shape)}
        for (arity, features), at in zip(self.factors, self.factor_starts.values(), strict=True):
            out[f"factor{arity}"] = w[at : at + features * K**arity].reshape(features, *(K,) * arity)
        return out

    def tables(self, w: np.ndarray) -> np.ndarray:
        """Scores of pairs of labels for each edge feature, (G, K, K), whatever the kind of weights."""
        rows = self.groups(w)["edge"].reshape(self.n_edge, self.n_pair)
        return self.sign * np.where(self.place >= 0, rows[:, self.place], 0.0)

    def positive(self) -> np.ndarray:
        """Mask of the weights that make edges attractive when they are >= 0: those of Potts edges."""
        mask = np.zeros(self.n_weights, bool)
        if self.pairwise == "potts":
            mask[len(self.labels) * self.n_node :][: self.n_edge] = True
        return mask

    def output(self, codes: np.ndarray) -> list[Hashable]:
        """Labels of a decoded graph; the last code is that of the method."""
        return self.labels.decode(codes[:-1])

    def cost(self, y_true: Iterable[Hashable], y: Iterable[Hashable]) -> float:
        """Cost of labels where others are true."""
        pairs = [(t, f) for t, f in zip(plain(y_true), plain(y), strict=True) if not self.ignored(t)]
        return self.labels.cost(self.cost_table, [t for t, _ in pairs], [f for _, f in pairs], self.normalize)

    def ignored(self, label: Hashable) -> bool:
        return self.ignore is not None and label == self.ignore

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        factors = [list(factor) for factor in self.factors]
        return facts_of(self, pairwise=self.pairwise, ignore=self.ignore, factors=factors), {"cost": self.cost_table}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> GraphLayout:
        state = StateReader(facts, tensors)
        factors = []
        for factor in state.items("factors"):
            if not isinstance(factor, (list, tuple)) or len(factor) != 2:
                raise ValueError("its 'factors' are not pairs of an arity and a number of features")
            pair = StateReader({"arity of a factor": factor[0], "features of a factor": factor[1]}, {})
            factors.append((pair.whole("arity of a factor", 3, 32), pair.whole("features of a factor")))
        if len(dict(factors)) < len(factors):
            raise ValueError("its 'factors' have an arity twice")
        table = state.cost_table("cost", len(state.labels("labels")))
        given = {"pairwise": state.choice("pairwise", PAIRWISE), "ignore": state.label("ignore")}
        return cls(**state.announced(cls, factors=tuple(factors), cost_table=table, **given))


@dataclass(frozen=True, kw_only=True)
class GraphBound(CompiledModel):
    """The graph model bound to n graphs."""

    layout: GraphLayout
    graphs: Sequence[GraphInput]
    codes: Sequence[np.ndarray] | None  # true labels, int32; 0 where they are ignored
    costs: Sequence[np.ndarray]  # weight of each node in the cost, float64

    def problem(self, w: np.ndarray, i: int, cost_weight: float = 0.0) -> GraphProblem:
        """The scores of graph ``i``, costs included, as a problem for any of the methods of inference."""
        w = weight_vector(w[: self.n_weights], self.n_weights)
        graph, groups = self.graphs[i], self.layout.groups(w)
        unary = graph.node @ groups["node"]
        if self.codes is not None and cost_weight:
            unary += cost_weight * self.costs[i][:, None] * self.layout.cost_table[self.codes[i]]
        pairwise = np.tensordot(graph.edge, self.layout.tables(w), 1)
        factors = [(scope, np.tensordot(x, groups[f"factor{len(scope)}"], 1)) for scope, x in graph.factors]
        return GraphProblem(graph.structure, unary, np.ascontiguousarray(pairwise), factors)

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, nodes + 1) and scores (m,) of the k best labellings, best first; the last code is the method."""
        labels, scores = inference.k_best(self.problem(w, example), k)
        return np.column_stack([labels, np.full(len(labels), CODED.index("junction_tree"))]), scores

    def marginals(self, w: np.ndarray, example: int) -> np.ndarray:
        """Probabilities (nodes, K) of the labels under the distribution proportional to exp(score)."""
        return inference.marginals(self.problem(w, example))

    def answer_between(
        self, w: np.ndarray, example: int, cost_weight: float, mu: float, low: float, high: float
    ) -> Answer | None:
        from maxmargin.models.graph_angles import best_between

        return best_between(self, w, example, cost_weight, mu, low, high)

    def joint_features(self, i: int, codes: np.ndarray) -> np.ndarray:
        """phi of labels (n,) of graph ``i``, (n_weights,)."""
        layout, graph = self.layout, self.graphs[i]
        phi = np.zeros(self.n_weights)
        groups = layout.groups(phi)  # views
        np.add.at(groups["node"].T, codes, graph.node)
        place = layout.place[tuple(codes[graph.structure.edges].T)]
        rows = groups["edge"].reshape(layout.n_edge, layout.n_pair)
        np.add.at(rows.T, place[place >= 0], layout.sign * graph.edge[place >= 0])
        for scope, x in graph.factors:
            groups[f"factor{len(scope)}"][(slice(None), *codes[list(scope)])] += x
        return phi

    def solution(self, w: np.ndarray, i: int, cost_weight: float = 0.0) -> GraphAnswer:
        """Labels of one graph as codes, their score, the bound, and the method that the kernel used."""
        (codes,), value, bound, _ = self.argmax(w, np.array([i]), cost_weight)
        truth = 0.0 if self.codes is None else float(self.joint_features(i, self.codes[i]) @ w[: self.n_weights])
        return GraphAnswer(codes[:-1].copy(), float(truth + value[0]), float(truth + bound[0]), CODED[codes[-1]])


@dataclass(frozen=True)
class PlainGraphBound(BoundModel):
    """The graph model with a method of inference that is not compiled as a whole."""

    layout: GraphLayout
    _: KW_ONLY
    inner: GraphBound
    method: str
    limits: tuple[int, int, int]

    @property
    def fingerprint(self) -> str:
        """Digest of the packed data."""
        return self.inner.fingerprint

    def kernel(self, search: str = "argmax") -> None:
        """None: this method runs from Python."""
        if search not in ("argmax", *BY_QUERIES):
            raise self.no_search(search)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """The labels found, or the true ones where those score more."""
        if search in BY_QUERIES and cost_weight > 0.0:
            return answer_by_queries(self, w, example, cost_weight, search)
        inner = self.inner
        assert inner.codes is not None
        true, found = inner.codes[example], self.solution(w, example, cost_weight)
        truth = inner.problem(w, example, cost_weight).score(true)
        labels, score = (found.labels, found.value) if found.value >= truth else (true, truth)
        psi = inner.joint_features(example, true) - inner.joint_features(example, labels)
        cost = float(inner.costs[example] @ inner.layout.cost_table[true, labels])
        index = np.flatnonzero(psi)
        value = cost_weight * cost - float(w[: self.n_weights] @ psi)
        bound = max(value + max(found.bound - score, 0.0), 0.0)
        return Answer(index.astype(np.int32), psi[index], cost, value, bound)

    def answer_between(
        self, w: np.ndarray, example: int, cost_weight: float, mu: float, low: float, high: float
    ) -> Answer | None:
        return self.inner.answer_between(w, example, cost_weight, mu, low, high)

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """Labels as codes, and -1 behind them, where compiled methods have their number; scores, not differences."""
        examples = np.arange(self.n_examples) if examples is None else np.asarray(examples)
        found = [self.solution(w, int(i), cost_weight) for i in examples]
        numbers = np.array([(answer.value, answer.bound, np.nan) for answer in found]).reshape(-1, 3)
        return Answers([np.append(answer.labels, -1) for answer in found], *numbers.T)

    def solution(self, w: np.ndarray, i: int, cost_weight: float = 0.0) -> GraphAnswer:
        """Labels of one graph as codes, their score, the bound and the method."""
        return inference.solve(self.inner.problem(w, i, cost_weight), self.method, *self.limits)


@dataclass(repr=False, eq=False)
class Graph(Parameters):
    """A label for every node.

    Parameters
    ----------
    pairwise : {"full", "symmetric", "potts"}
        One weight of an edge feature for each ordered pair of labels, one for each pair whatever its order, or a single
        one that counts against different labels.
    cost : str, mapping, array, callable or Cost
        Cost of a label where another is true; see :func:`maxmargin.costs.as_cost`.
    method : str
        As in :func:`maxmargin.inference.graph.graph_argmax`; all but "roof_duality", "expansion", "relaxation" and
        "integer" are compiled as a whole.
    classes : sequence of hashable, optional
        All labels that may occur; learned from the training data when missing.
    ignore : hashable, optional
        The label of nodes to be left out: they, their edges and factors count for nothing in training.
    max_cells, message_passes, max_branches : int
        Limits of the methods, as there.
    """

    pairwise: str = "full"
    _: KW_ONLY
    max_cells: int = MAX_CELLS
    message_passes: int = PASSES
    max_branches: int = BRANCHES
    cost: object = "hamming"
    method: str = "auto"
    classes: Sequence[Hashable] | None = None
    ignore: Hashable = None

    def bind(
        self,
        X: object,
        Y: Iterable[Iterable[Hashable]] | None = None,
        *,
        layout: GraphLayout | None = None,
        node_cost: Iterable[ArrayLike] | None = None,
    ) -> GraphBound | PlainGraphBound:
        """Pack graphs (and their labels) for the kernel.

        Parameters
        ----------
        X : list of n mappings
            ``"node"``: array (nodes, F). ``"edges"``: int array (m, 2). ``"edge"``, optional: array (m, G), a constant
            when missing. ``"factors"``, optional: list of (scope, features), scopes of three nodes or more.
        Y : list of n sequences of labels; missing at prediction time
        layout : GraphLayout of the training data, for further data
        node_cost : list of n arrays (nodes,), optional
            Multiplies the cost of each node, for instance by the number of pixels it stands for.
        """
        from maxmargin.models.graph_pack import pack

        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}.")
        limits = (self.max_cells, self.message_passes, self.max_branches)
        inference.check_limits(*limits)
        graphs = checked_graphs(X)
        labels = None if Y is None else checked_labels(Y, graphs)
        if layout is None:
            if labels is None:
                raise ValueError("labels are needed to learn the layout of a graph model; pass Y.")
            layout = self._layout(graphs, labels)
        graphs = [graph.with_edges_of(layout.n_edge) for graph in graphs]
        for i, graph in enumerate(graphs):
            if (graph.node.shape[1], graph.edge.shape[1]) != (layout.n_node, layout.n_edge):
                what = f"graph {i} has {graph.node.shape[1]} node and {graph.edge.shape[1]} edge features"
                raise ValueError(f"{what}; the others, or the training data, have {layout.n_node} and {layout.n_edge}.")
            for f, (scope, x) in enumerate(graph.factors):
                if (len(scope), len(x)) not in layout.factors:
                    what = f"factor {f} of graph {i} is over {len(scope)} nodes with {len(x)} features"
                    raise ValueError(f"{what}; the data have (nodes, features) {list(layout.factors)}.")
        codes, costs = None, [np.zeros(len(graph.node)) for graph in graphs]
        if labels is not None:
            codes, costs, used = _truth(layout, labels)
            if node_cost is not None:
                given = checked_node_cost(node_cost, graphs)
                costs = [c * factor for c, factor in zip(costs, given, strict=True)]
            graphs = [graph.without(mask) for graph, mask in zip(graphs, used, strict=True)]
        bound = pack(layout, graphs, codes, costs, self)
        if self.method in COMPILED:
            return bound
        offered = {"exact"} | (bound.capabilities & {"constrained"}) if self.method == "integer" else ()
        return PlainGraphBound(len(graphs), layout, frozenset(offered), inner=bound, method=self.method, limits=limits)

    def _layout(self, graphs: list[GraphInput], Y: list[list[Hashable]]) -> GraphLayout:
        if self.pairwise not in PAIRWISE:
            raise ValueError(f"pairwise must be one of {', '.join(PAIRWISE)}; got {self.pairwise!r}.")
        if not is_label(self.ignore):
            raise ValueError(f"ignore must be one label or None, got {str(self.ignore)[:40]!r}.")
        seen = (label for row in Y for label in row if self.ignore is None or label != self.ignore)
        labels = Labels.chosen(self.classes, seen)
        if len(labels) == 0:
            raise ValueError("no node has a label; there is nothing to learn.")
        cost = as_cost(self.cost)
        widths: dict[int, int] = {}
        for scope, x in (factor for graph in graphs for factor in graph.factors):
            widths.setdefault(len(scope), len(x))
        layout = GraphLayout(
            labels=labels,
            n_node=graphs[0].node.shape[1],
            n_edge=next((graph.edge.shape[1] for graph in graphs if len(graph.edge)), 0),
            pairwise=self.pairwise,
            factors=tuple(sorted(widths.items())),
            cost_table=np.ascontiguousarray(cost.table(labels.classes), np.float64),
            normalize=bool(cost.normalize),
            ignore=self.ignore,
        )
        check_count(layout.n_weights, "weights", "the graphs make", "give other features", least=1)
        return layout


def _truth(layout: GraphLayout, labels: list[list[Hashable]]) -> tuple[Arrays, Arrays, Arrays]:
    """Codes of the true labels, what a node weighs in the cost, 0 when it is ignored, and which are not ignored."""
    used = [np.array([not layout.ignored(label) for label in row], bool) for row in labels]
    codes = [np.zeros(len(row), np.int32) for row in labels]
    for i, row in enumerate(labels):
        codes[i][used[i]] = layout.labels.encode([label for label in row if not layout.ignored(label)], i)
    costs = [mask / max(1, int(mask.sum())) if layout.normalize else mask.astype(np.float64) for mask in used]
    return codes, costs, used
