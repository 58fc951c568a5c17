"""Rehearsal: a model on directed acyclic graphs, with k best paths. New files only.

An input is a graph with features on its arcs, an output a path from the first node to the last, as a tuple of arcs, and
the cost of a path is the number of its arcs that are not on the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin.contracts import Answer, Answers, Layout
from maxmargin.inference.recursion import Graph, graph_k_best
from maxmargin.models.base import BoundModel, digest
from maxmargin.parameters import Parameters


class Dag(NamedTuple):
    """Arcs by head: ``begin`` (N + 1,), ``tail`` (E,); ``features`` (E, F). Nodes are in topological order."""

    begin: np.ndarray
    tail: np.ndarray
    features: np.ndarray


@dataclass(frozen=True)
class DagLayout:
    n_weights: int

    def output(self, code):
        return code

    def cost(self, y_true, y) -> float:
        return float(len(set(y) - set(y_true)))

    groups, names, real = Layout.groups, Layout.names, Layout.real  # weights without names, none of them padding


class DagModel(Parameters):
    """Paths through graphs."""

    def bind(self, X, Y=None, *, layout: DagLayout | None = None) -> DagBound:
        layout = DagLayout(X[0].features.shape[1]) if layout is None else layout
        for i, graph in enumerate(X):
            if graph.features.shape[1] != layout.n_weights:
                raise ValueError(f"example {i} has {graph.features.shape[1]} features; the others {layout.n_weights}.")
        return DagBound(len(X), layout, frozenset({"exact", "k_best"}), X, Y)


@dataclass(frozen=True)
class DagBound(BoundModel):
    X: list = ()
    Y: list | None = None

    @property
    def fingerprint(self) -> str:
        return digest(*(graph.features for graph in self.X))

    def kernel(self, search="argmax") -> None:
        if search not in ("argmax", "best_wrong"):
            raise self.no_search(search)

    def k_best(self, w, example, k, cost_weight=0.0):
        """The k best paths and their scores, ``cost_weight`` times their cost added."""
        graph = self.X[example]
        arc = graph.features @ w
        if cost_weight:
            arc = arc + cost_weight * ~np.isin(np.arange(len(arc)), self.Y[example])
        node = np.zeros(len(graph.begin) - 1)
        found = graph_k_best(Graph(node, graph.begin, graph.tail, arc), k)
        paths = [tuple(int(a) for a in row if a >= 0) for row in found.arcs]
        return paths, found.scores

    def answer(self, w, example, cost_weight, search="argmax") -> Answer:
        y_true, features = self.Y[example], self.X[example].features
        wrong = search == "best_wrong" and cost_weight > 0.0
        paths, _ = self.k_best(w, example, 2 if wrong else 1, 0.0 if wrong else cost_weight)
        y = next((path for path in paths if path != y_true), y_true) if wrong else paths[0]
        psi = features[list(y_true)].sum(axis=0) - features[list(y)].sum(axis=0)
        cost = self.layout.cost(y_true, y)
        value = (cost_weight * (cost > 0) if wrong else cost_weight * cost) - float(w @ psi)
        return Answer(np.arange(len(psi), dtype=np.int32), psi, cost, value, max(value, 0.0))

    def argmax(self, w, examples=None, cost_weight=0.0) -> Answers:
        examples = range(self.n_examples) if examples is None else examples
        found = [self.k_best(w, int(i), 1, cost_weight) for i in examples]
        values = np.array([scores[0] for _, scores in found])
        return Answers([paths[0] for paths, _ in found], values, values, np.full(len(values), np.nan))
