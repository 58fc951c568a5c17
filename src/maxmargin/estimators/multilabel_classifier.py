"""A set of labels per example, with weights between labels that go together, and a certificate."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Self, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from maxmargin.costs import Cost
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import RankedOutputs
from maxmargin.estimators.feature_columns import ROWS, Matrix, feature_names, unconverted
from maxmargin.estimators.large_margin import learns_from_streams, rescaling_of
from maxmargin.estimators.matrix_classifier import MatrixClassifier
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.metrics.label_sets import label_report
from maxmargin.models.hierarchy import HierarchyLike
from maxmargin.models.label_graph import NetworkGraph, Pair
from maxmargin.models.label_set import LabelSet, LabelSetBound, LabelSetLayout
from maxmargin.models.label_targets import DTYPES, FORMS, INDICATORS, LabelTargets, class_array
from maxmargin.pages.html import Section
from maxmargin.pages.labels import label_set_section

__all__ = ["MultilabelClassifier"]

Sets: TypeAlias = ArrayLike | sp.csr_array | Sequence[Iterable[Hashable]]
Graph: TypeAlias = str | Iterable[Pair] | NetworkGraph | None


@parameters
class MultilabelClassifier(RankedOutputs[Matrix, set[Hashable]], MatrixClassifier[Sets]):
    """Multi-label classification by a large-margin model of all labels together.

    A set y of labels scores ``sum_(k in y) (coef_[k] . x + intercept_[k])``, and a weight for each pair of labels in y
    that the graph joins. Inference is exact: without edges and in trees for any number of labels, with any graph for up
    to 18 labels, with any number where no pair has a negative weight (``positive="edge"``). Larger graphs with cycles,
    and slack rescaling with weighted costs of more than 18 labels, are solved by relaxation (roof duality) and branch
    and bound within a budget. Where the budget ends, the answer comes with the bound of the relaxation: the certificate
    counts the bound, so its gap is true, ``history_["proven"]`` is the share of answers in training that are proven to
    be the best, ``fractional_`` counts the training examples whose prediction is not, and :meth:`unproven` tells which
    predictions of other examples are not.

    Parameters
    ----------
    graph : None, "tree", "full", pairs of labels, or networkx.Graph
        Pairs of labels with a weight for both being on. None: labels are independent but for the loss. "tree": the
        spanning forest of the largest mutual information between labels of the training data.
    cost : {"hamming", "f1", "jaccard"}, HammingCost, WeightedHammingCost, or mapping of label to weight
        "hamming": the number of wrong labels; a mapping weighs them, and WeightedHammingCost weighs missed labels
        (by="true") or added ones (by="label"). "f1", "jaccard": 1 minus the F1 score or the Jaccard index of the sets;
        with a graph for up to 18 labels.
    class_weight : mapping of label to number, or "balanced", optional
        Multiplies the cost of missing a label; "balanced" gives every label the same total over the examples that have
        it. For costs that add up over labels.
    hierarchy : None, networkx.DiGraph, pairs (parent, child), mapping of child to parent(s), or vector of parents
        A label is on only where all its parents are, in y and in all answers; a vector has the number of the parent's
        column for each label, -1 for roots. The cost counts all labels. ``graph`` must be None: edges between parents
        and children would add nothing.
    paths : {"multiple", "single"}
        With a hierarchy, "single" answers with one label and its ancestors.
    leaves_only : bool
        With a hierarchy, answers are sets of leaves with their ancestors; otherwise a path may stop at any label.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    classes_ : array (n_labels,)
        The labels, in the order of the columns of indicator matrices.
    coef_ : array (n_labels, n_features)
    intercept_ : array (n_labels,)
    edges_ : list of pairs of labels
    edge_coef_ : array (n_edges,)
    inference_ : str
        How the best set is found: "label by label", "dynamic program", "numbers of mistakes", "all sets", "minimum cut"
        (of more than 18 labels, where no pair has a negative weight), "branch and bound", or in hierarchies "dynamic
        program", "minimum cut" or "all outputs". After slack rescaling also how the most violating set was found, as
        "branch and bound; slack: branching".
    fractional_ : int
        Training examples whose best set, at the final weights, is not proven: the relaxation is fractional, and the
        budget of branching ended. Predictions change nothing in it; ask :meth:`unproven` about them.

    Notes
    -----
    ``y`` is an indicator matrix (array, sparse matrix, or frame with a column per label), or a list of sets of labels;
    ``predict`` answers in the form that ``fit`` was given. A single column may hold any two numbers, the larger one for
    on. Lists of lists are a matrix where they have equal lengths and hold only 0 and 1. scikit-learn's
    ``cross_val_score`` and searches take matrices and lists of sets; lists of lists of labels only where ``cv`` is a
    splitter such as ``KFold()``. Its scorers, such as "f1_micro", want matrices: ``MultiLabelBinarizer`` makes them.

    Examples
    --------
    >>> from maxmargin import MultilabelClassifier
    >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]]
    >>> y = [{"sun"}, {"rain"}, {"rain", "sun", "rainbow"}, set()]
    >>> model = MultilabelClassifier(graph="full", C=10.0).fit(X, y)
    >>> [sorted(labels) for labels in model.predict([[1, 1], [0, 1]])]
    [['rain', 'rainbow', 'sun'], ['sun']]

    A rainbow without rain is impossible here:

    >>> model = MultilabelClassifier(hierarchy={"rainbow": "rain"}, C=10.0).fit(X, y)
    >>> [sorted(labels) for labels in model.predict([[1, 1], [0, 1]])]
    [['rain', 'rainbow', 'sun'], ['sun']]
    """

    graph: Graph = None
    cost: str | Mapping[Hashable, float] | Cost = "hamming"
    hierarchy: HierarchyLike | None = None
    paths: str = "multiple"
    leaves_only: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Matrix, y: Sets, sample_weight: SampleWeight = None, *, resume: Resume = None) -> Self:
        """Learn from examples and their sets of labels.

        Parameters
        ----------
        X : array, sparse matrix or frame (n, n_features)
        y : indicator matrix (n, n_labels), or list of n sets of labels
        sample_weight : array (n,), optional
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        """
        begin = Stopwatch()
        X, targets = self._checked(X, y)
        self.model_ = self._model()
        bound = self._bind_targets(X, targets, None)
        weights = check_sample_weight(sample_weight, bound.n_examples)
        self._fit_bound(bound, weights, resume, begin)
        self.fractional_ = int(bound.unproven(self.weights_).sum())
        return self

    @available_if(learns_from_streams)
    def partial_fit(
        self, X: Matrix, y: Sets, classes: Iterable[Hashable] | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn from further examples, one pass over them, with a solver of the primal family.

        There is no certificate, which would need all examples.

        Parameters
        ----------
        X, y, sample_weight : as in fit
        classes : iterable of labels, optional
            All labels that may occur; needed in the first call unless y is a matrix or has them all.
        """
        first = "stream_" not in self.__dict__
        if isinstance(self.graph, str) and self.graph == "tree":
            raise ValueError('partial_fit cannot learn graph="tree" from a part of the examples; give its edges.')
        if self.class_weight == "balanced":
            raise ValueError('partial_fit cannot know class_weight="balanced"; give a mapping, or use fit.')
        X, targets = self._checked(X, y, classes if first else self.layout_.labels.classes, reset=first)
        if first:
            self.model_ = self._model()
        bound = self._bind_targets(X, targets, None if first else self.layout_)
        self._learn_more(bound, check_sample_weight(sample_weight, bound.n_examples))
        return self

    def _checked(
        self, X: Matrix, y: object, classes: Iterable[Hashable] | None = None, reset: bool = True
    ) -> tuple[Matrix, LabelTargets]:
        X = validate_data(self, unconverted(X), reset=reset, **ROWS)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        return X, LabelTargets.of(y, classes, None if reset else self.target_values_)

    def _bind_targets(self, X: Matrix, targets: LabelTargets, layout: LabelSetLayout | None) -> LabelSetBound:
        weights = self._label_weights(targets.sets()) if layout is None else None
        bound = self.model_.bind(X, targets, layout=layout, class_weight=weights)
        self.layout_, self.classes_ = bound.layout, class_array(bound.layout.labels.classes)
        self.target_form_, self.target_dtype_, self.target_values_ = targets.form, targets.dtype, targets.off_on
        return bound

    def _model(self) -> LabelSet:
        own = ("graph", "cost", "hierarchy", "paths", "leaves_only", "fit_intercept", "intercept_scaling")
        return LabelSet(**{name: vars(self)[name] for name in own})

    @property
    def edge_coef_(self) -> np.ndarray:
        return np.array(self._groups()["edge"])

    @property
    def edges_(self) -> list[tuple[Hashable, Hashable]]:
        classes = self.layout_.labels.classes
        return [(classes[j], classes[k]) for j, k in self.layout_.edges.tolist()]

    @property
    def inference_(self) -> str:
        best = self.layout_.inference_at(self.weights_)
        if rescaling_of(self.penalty, self.rescaling) not in ("slack", "sqrt_slack"):
            return best
        how = self.layout_.slack_inference if self.slack_search == "auto" else self.slack_search
        return f"{best}; slack: {how}"

    def _fitted(self) -> Fitted:
        facts: dict[str, object] = {"feature_names_in": feature_names(self), "form": self.target_form_}
        facts |= {"dtype": self.target_dtype_.str, "values": [float(value) for value in self.target_values_]}
        stand_ins = {"graph": lambda: [list(edge) for edge in self.edges_], "hierarchy": self._pairs}
        return Fitted(self.layout_, self.weights_, facts, stand_ins=stand_ins)

    def _pairs(self) -> list[list[Hashable]]:
        """The pairs of parent and child of the hierarchy."""
        classes, outputs = self.layout_.labels.classes, self.layout_.outputs
        return [] if outputs is None else [[classes[p], classes[k]] for p, k in outputs.hierarchy.edges.tolist()]

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(LabelSetLayout, fitted.layout)
        self.model_, self.layout_, self.weights_ = self._model(), layout, fitted.weights
        self.classes_ = class_array(self.layout_.labels.classes)
        self._take_features(fitted.state)
        self.target_form_ = str(fitted.state.choice("form", FORMS))
        self.target_dtype_ = np.dtype(str(fitted.state.choice("dtype", DTYPES)))
        known = "values" in fitted.state.facts  # files of earlier versions have none
        off, on = fitted.state.pair("values", ("off", "on"), -1e300) if known else INDICATORS
        with np.errstate(invalid="ignore", over="ignore"):
            if not off < on or not np.array_equal(np.array([off, on]).astype(self.target_dtype_), [off, on]):
                raise ValueError(f"its values {off:g} and {on:g} are not two numbers of {self.target_dtype_}")
        if (off, on) != INDICATORS and len(self.classes_) != 1:
            raise ValueError(f"its values are {off:g} and {on:g}, which only a single label may have")
        self.target_values_ = off, on

    def decision_function(self, X: Matrix) -> np.ndarray:
        """For each label the best score of a set with it minus that of one without, (n, n_labels); positive is on.

        In a hierarchy no label has more than its parents.
        """
        return self._bound(X).max_marginals(self._checked_weights())

    def label_scores(self, X: Matrix) -> np.ndarray:
        """What each label scores by itself, ``X @ coef_.T + intercept_``, (n, n_labels)."""
        return self._bound(X).scores(self._checked_weights())

    def predict(self, X: Matrix) -> object:
        """The sets of largest score, in the form of y in ``fit``."""
        on = self._bound(X).indicators(self.weights_)
        form = (self.target_form_, self.target_dtype_, self.target_values_)
        return LabelTargets(on, self.layout_.labels, *form).in_form(X)

    def unproven(self, X: Matrix) -> np.ndarray:
        """Which of the sets that ``predict`` answers with are not proven to be the best, bool (n,).

        All False where inference is exact; with branch and bound, True where its budget ended.
        """
        return self._bound(X).unproven(self._checked_weights())

    def score(self, X: Matrix, y: Sets, sample_weight: object = None) -> float:
        """Share of examples whose set is predicted exactly (subset accuracy, as in scikit-learn).

        ``sample_weight`` (n,) says how much each example counts.
        """
        right = self._right(y, self._bound(X).indicators(self.weights_))
        return float(np.average(right, weights=check_sample_weight(cast(SampleWeight, sample_weight), len(right))))

    def _right(self, y: Sets, on: np.ndarray) -> np.ndarray:
        true = LabelTargets.of(y, self.layout_.labels.classes, self.target_values_).on
        if len(true) != len(on):
            raise ValueError(f"X has {len(on)} examples and y has {len(true)}; they must agree.")
        return (true == on).all(axis=1)

    def _example_sections(self, X: object, y: object) -> list[Section]:
        on, labels = self._bound(cast(Matrix, X)).indicators(self.weights_), self.layout_.labels.classes
        true = LabelTargets.of(y, labels, self.target_values_).on
        return [label_set_section(label_report(true, on, labels), len(on))]

    def _bind_held_out(self, X: Matrix, y: Sets | None) -> LabelSetBound:
        bound = self._bound(X)
        if y is None:
            return bound
        targets = LabelTargets.of(y, self.layout_.labels.classes, self.target_values_)
        return self.model_.bind(X, targets, layout=self.layout_)

    def _bound(self, X: Matrix) -> LabelSetBound:
        X = self._seen(X)
        return self.model_.bind(X, None, layout=self.layout_)

    def _predict_codes(self, weights: np.ndarray, X: Matrix) -> list[np.ndarray]:
        return list(self.model_.bind(self._unseen(X), None, layout=self.layout_).indicators(weights))

    def _score_predictions(self, y: Sets, predicted: list[np.ndarray], weights: np.ndarray | None = None) -> float:
        return float(np.average(self._right(y, np.array(predicted)), weights=weights))
