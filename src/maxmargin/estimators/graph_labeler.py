"""A label for every node of any graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import fields
from itertools import compress
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.costs import Cost
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.examples import Predictions, listed
from maxmargin.estimators.large_margin import LargeMargin
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted, matrix_cost
from maxmargin.inference.graph import BRANCHES, MAX_CELLS, PASSES, GraphAnswer
from maxmargin.models.graph import Graph, GraphLayout
from maxmargin.models.labels import check_lengths, is_label, label_lists, plain
from maxmargin.models.layout_state import StateReader

__all__ = ["GraphLabeler"]

Graphs = Sequence[Mapping[str, object]]
Labellings = Sequence[Sequence[Hashable]]


@parameters
class GraphLabeler(WithMarginals[Graphs, list[Hashable]], LargeMargin[Graphs, Labellings]):
    """Labels for the nodes of graphs, learned with a large margin.

    Minimises ``1/2 |w|^2 + C sum_i s_i loss_i(w)`` over the weights of the graph model (:mod:`maxmargin.models.graph`).
    Where the best labels cannot be found for certain, the certificate uses an upper bound of their score: it holds for
    every graph, and a gap that stays says how much the search may have missed.

    Parameters
    ----------
    pairwise : {"full", "symmetric", "potts"}
        Weights of an edge feature: for each ordered pair of labels, for each pair whatever its order, or one that
        counts against different labels.
    cost : str, mapping, array, callable or Cost
        "hamming", weights by true label, a (K, K) matrix, or a function of (true label, label).
    method : str
        How labels are found; "auto" is exact where it can be, see :class:`~maxmargin.models.graph.Graph`.
    positive : None, True, name or names of groups of weights, array of indices, or bool array (n_weights,)
        Weights that must be >= 0; names are "node", "edge" and "factor3", ... None: the edges of "potts", which then
        join labels, so that two labels are one cut. An empty list leaves all weights free.
    classes : sequence of hashable, optional
        All labels that may occur; learned from the training data when missing.
    ignore : hashable, optional
        The label of nodes to be left out of training.
    max_cells, message_passes, max_branches : int
        The most cells of the tables of a junction tree, passes of tree-reweighted messages, and parts of the labellings
        that a branch and bound looks at for one argmax.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    classes_ : list
    node_coef_ : array (F, K)
    edge_coef_ : array (G, K, K)
        Scores of pairs of labels, whatever ``pairwise`` is.
    method_ : dict
        How many training graphs each method answered, at the final weights.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.graph_labeler import GraphLabeler
    >>> rng = np.random.default_rng(0)
    >>> ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    >>> labels = [np.roll([0, 0, 1, 1, 2, 2], rng.integers(6)) for _ in range(20)]
    >>> graphs = [{"node": np.eye(3)[y] + rng.normal(scale=0.3, size=(6, 3)), "edges": ring} for y in labels]
    >>> labeler = GraphLabeler().fit(graphs[:15], labels[:15])
    >>> labeler.method_
    {'junction_tree': 15}
    >>> labeler.score(graphs[15:], labels[15:]) > 0.9
    True
    """

    parts: ClassVar[str] = "nodes"

    pairwise: str = "full"
    cost: str | Mapping[Hashable, float] | ArrayLike | Callable[[Hashable, Hashable], float] | Cost = "hamming"
    method: str = "auto"
    classes: Sequence[Hashable] | None = None
    ignore: Hashable = None
    max_cells: int = MAX_CELLS
    message_passes: int = PASSES
    max_branches: int = BRANCHES
    tol: float = 1e-2

    def fit(
        self,
        X: Graphs,
        y: Labellings,
        sample_weight: SampleWeight = None,
        *,
        node_cost: Sequence[ArrayLike] | None = None,
        resume: Resume = None,
    ) -> Self:
        """Learn from graphs and the labels of their nodes.

        Parameters
        ----------
        X : list of n mappings
            ``"node"``: array (nodes, F). ``"edges"``: int array (m, 2). ``"edge"``, optional: array (m, G), a constant
            when missing. ``"factors"``, optional: list of (scope, features), scopes of three nodes or more.
        y : list of n sequences of labels
        sample_weight : array (n,), optional
        node_cost : list of n arrays (nodes,), optional
            Multiplies the cost of each node.
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        """
        begin = Stopwatch()
        self.model_ = self._model()
        bound = self.model_.bind(X, y, node_cost=node_cost)
        self.layout_, self.classes_ = bound.layout, bound.layout.labels.classes
        positive = self.layout_.positive() if self.positive is None else self._positive(bound)
        positive = positive if positive is not None and positive.any() else None
        self._train(bound, sample_weight=sample_weight, positive=positive, resume=resume, begin=begin)
        self.method_ = dict(Counter(bound.solution(self.weights_, i).method for i in range(bound.n_examples)))
        return self

    @property
    def node_coef_(self) -> np.ndarray:
        return self._groups()["node"]

    @property
    def edge_coef_(self) -> np.ndarray:
        self._check_fitted()
        return self.layout_.tables(self.weights_)

    def predict(self, X: Graphs) -> Predictions[np.ndarray]:
        """The best labels of each graph, an array (nodes,)."""
        self._check_fitted()
        return Predictions(self._predict_codes(self.weights_, X))

    def predict_bounds(self, X: Graphs) -> list[GraphAnswer]:
        """For each graph the labels, their score, an upper bound of all scores, and the method that answered."""
        weights, bound = self._checked_weights(), self.model_.bind(X, None, layout=self.layout_)
        answers = (bound.solution(weights, i) for i in range(bound.n_examples))
        return [answer._replace(labels=self._labels(answer.labels)) for answer in answers]

    def _fitted(self) -> Fitted:
        stand_ins = {"cost": lambda: matrix_cost(self.cost, self.classes_)}
        return Fitted(self.layout_, self.weights_, {"method": self.method_}, stand_ins=stand_ins)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(GraphLayout, fitted.layout)
        self.model_, self.layout_, self.weights_ = self._model(), layout, fitted.weights
        self.classes_ = layout.labels.classes
        method = fitted.state.fact("method")
        if not isinstance(method, dict) or not all(type(name) is str for name in method):
            raise ValueError("its 'method' is not a mapping of names of methods to numbers of graphs")
        self.method_ = {name: StateReader(method, {}).whole(name) for name in method}

    def _model(self) -> Graph:
        return Graph(**{field.name: vars(self)[field.name] for field in fields(Graph)})  # all are parameters here too

    def _predict_codes(self, weights: np.ndarray, X: Graphs) -> list[np.ndarray]:
        X = listed(X)
        if isinstance(X, Sized) and len(X) == 0:
            return []
        bound = self.model_.bind(X, None, layout=self.layout_)
        return [self._labels(codes[:-1]) for codes in bound.argmax(weights).outputs]

    def _labels(self, codes: np.ndarray) -> np.ndarray:
        if len({*map(type, self.classes_)}) == 1 and isinstance(self.classes_[0], (str, bool, int, float)):
            return np.asarray(self.classes_)[codes]
        classes = np.empty(len(self.classes_), object)  # of several kinds, or tuples: numpy would make others of them
        classes[:] = self.classes_
        return classes[codes]

    def _labellings(self, y: Labellings, predicted: list) -> tuple[list, list]:
        told = [[not self.layout_.ignored(label) for label in labels] for labels in label_lists(y)]
        both = label_lists(y), [plain(found) for found in predicted]
        true, found = ([list(compress(row, kept)) for row, kept in zip(rows, told, strict=True)] for rows in both)
        return true, found

    def _score_predictions(self, y: Labellings, predicted: list, weights: np.ndarray | None = None) -> float:
        """Share of nodes with the right label, those to be ignored left out."""
        rows = label_lists(y)
        check_lengths([len(found) for found in predicted], rows, "y", "nodes", "labels")
        for i, labels in enumerate(rows):
            if not all(map(is_label, labels)):
                raise TypeError(f"graph {i}: labels must be hashable (text, numbers, tuples); give one for each node.")
        each = np.ones(len(rows)) if weights is None else weights
        judged = [
            (weight * (true == found), weight)
            for labels, answers, weight in zip(rows, predicted, each.tolist(), strict=True)
            for true, found in zip(labels, answers, strict=True)
            if not self.layout_.ignored(true)
        ]
        right, total = np.array(judged).reshape(-1, 2).sum(axis=0).tolist()
        return right / total if total else 0.0
