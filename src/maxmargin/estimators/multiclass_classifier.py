"""One label per example: the Crammer-Singer machine with a certificate."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.calibration import best_temperature, check_temperature
from maxmargin.estimators.confidence import RankedOutputs
from maxmargin.estimators.feature_columns import ROWS, Matrix, feature_names, unconverted
from maxmargin.estimators.large_margin import GoodOutputs, learns_from_streams
from maxmargin.estimators.matrix_classifier import MatrixClassifier
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted, matrix_cost
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.models.labels import plain
from maxmargin.models.multiclass import Multiclass, MulticlassBound, MulticlassLayout
from maxmargin.pages.html import Section
from maxmargin.pages.labels import reliability

__all__ = ["MulticlassClassifier"]


def is_calibrated(classifier: MulticlassClassifier) -> bool:
    """Whether there are calibrated probabilities; an AttributeError, as scikit-learn wants it, says how to get them."""
    if "temperature_" not in vars(classifier):
        advice = "call fit_temperature with held-out examples first, or use scikit-learn's CalibratedClassifierCV"
        raise AttributeError(f"scores of a large-margin classifier are no probabilities; {advice}.")
    return True


@parameters
class MulticlassClassifier(RankedOutputs[Matrix, Hashable], MatrixClassifier[ArrayLike]):
    """Multiclass classification by Crammer and Singer's machine, with any cost between classes.

    Minimises ``1/2 |W|^2 + C sum_i s_i max_y [ cost(y_i, y) - (W[:, y_i] - W[:, y]) . x_i ]``. With the default cost
    this is the objective of ``LinearSVC(multi_class="crammer_singer")``.

    Parameters
    ----------
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    classes_ : array (n_classes,)
    coef_ : array (n_classes, n_features)
    intercept_ : array (n_classes,)
    temperature_ : float
        After :meth:`fit_temperature` only, which also makes ``predict_proba`` available.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MulticlassClassifier(C=1.0).fit(X, y).score(X, y) > 0.95
    True
    """

    parts: ClassVar[str] = "examples"

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: SampleWeight = None,
        *,
        resume: Resume = None,
        references: GoodOutputs | None = None,
        pairing: str = "all",
    ) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array, sparse matrix or frame (n, n_features)
        y : array (n,) of labels
        sample_weight : array (n,), optional
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        references : list, optional
            Further good labels of each example.
        pairing : {"all", "nearest"}
            Which labels they must outscore; see :class:`~maxmargin.formulations.references.References`.
        """
        begin = Stopwatch()
        self.__dict__.pop("temperature_", None)  # it belongs to an earlier fit
        X, y = validate_data(self, unconverted(X), y, **ROWS)
        check_classification_targets(y)
        weights = self._example_weights(sample_weight, y)
        self.model_, self.classes_ = self._model(), _distinct(y)
        bound = self.model_.bind(X, y)
        self.layout_ = bound.layout
        formulation = None
        if references is not None or pairing != "all":
            formulation = self._references(y.tolist(), references, pairing)[1]
        return self._fit_bound(bound, weights, resume, begin, formulation)

    def _example_weights(self, sample_weight: SampleWeight, y: np.ndarray) -> np.ndarray:
        weights = check_sample_weight(sample_weight, len(y))
        by_label = self._label_weights([y.tolist()])
        return weights if by_label is None else weights * compute_sample_weight(by_label, y)

    @available_if(learns_from_streams)
    def partial_fit(
        self, X: Matrix, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn from further examples, one pass over them, with a solver of the primal family.

        There is no certificate, which would need all examples.

        Parameters
        ----------
        X, y, sample_weight : as in fit
        classes : array, optional
            All labels that may occur; needed in the first call when y does not have them all.
        """
        first = "stream_" not in self.__dict__
        X, y = validate_data(self, unconverted(X), y, reset=first, **ROWS)
        check_classification_targets(y)
        if self.class_weight == "balanced":
            raise ValueError('partial_fit cannot know class_weight="balanced"; give a mapping, or use fit.')
        weights = self._example_weights(sample_weight, y)
        if first:
            self.classes_ = _distinct(y if classes is None else classes)
            self.model_ = self._model(self.classes_.tolist())
        bound = self.model_.bind(X, y, layout=None if first else self.layout_)
        self.layout_ = bound.layout
        self._learn_more(bound, weights)
        return self

    def _model(self, classes: Sequence[Hashable] | None = None) -> Multiclass:
        return Multiclass(
            cost=self.cost, fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling, classes=classes
        )

    def _fitted(self) -> Fitted:
        classes = self.classes_.tolist() if self.classes_.dtype.hasobject else self.classes_
        facts = {"classes": classes, "feature_names_in": feature_names(self)}
        stand_ins = {"cost": lambda: matrix_cost(self.cost, self.layout_.labels.classes)}
        return Fitted(self.layout_, self.weights_, facts, stand_ins=stand_ins)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(MulticlassLayout, fitted.layout)
        self.model_, self.layout_, self.weights_ = self._model(), layout, fitted.weights
        classes = fitted.state.fact("classes")
        self.classes_ = classes if isinstance(classes, np.ndarray) else np.array(classes, dtype=object)
        if self.classes_.tolist() != self.layout_.labels.classes:
            raise ValueError("its classes are not the labels of its layout")
        self._take_features(fitted.state)

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Scores (n, n_classes); with two classes the difference (n,), positive for ``classes_[1]``."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Matrix) -> np.ndarray:
        """The class of largest score."""
        outputs = self._bound(X).argmax(self.weights_).outputs
        return self.classes_[np.concatenate([np.empty(0, np.int64), *outputs])]

    def fit_temperature(self, X: Matrix, y: ArrayLike) -> Self:
        """Calibrate probabilities on held-out examples: sets ``temperature_``, which another ``fit`` forgets.

        The temperature T is the one for which the labels are most probable, with probabilities proportional to
        exp(score / T). The examples must not be those of training, whose scores are too sure. Predicted labels stay as
        they are. scikit-learn's ``CalibratedClassifierCV`` calibrates each class by itself, with more examples.

        References
        ----------
        Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017 (temperature scaling).
        """
        self._check_fitted()
        scores, labels = self._scores(X), plain(np.asarray(y))
        check_consistent_length(scores, labels)
        codes = [self.layout_.labels.encode([label], i) for i, label in enumerate(labels)]
        true = np.take_along_axis(scores, np.array(codes, np.int64).reshape(-1, 1), axis=1)

        def loss(temperature: float) -> float:
            return float((logsumexp(scores / temperature, axis=1, keepdims=True) - true / temperature).sum())

        self.temperature_ = best_temperature(loss, len(codes))
        return self

    @available_if(is_calibrated)
    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Calibrated probabilities (n, n_classes); only after :meth:`fit_temperature`, as margins are none."""
        return self.predict_marginals(X)

    @available_if(is_calibrated)
    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`."""
        return log_softmax(self._scores(X) / self.temperature_, axis=1)

    def predict_marginals(self, X: Matrix, temperature: float | None = None) -> np.ndarray:
        """Probabilities (n, n_classes) proportional to exp(score / temperature).

        The ``temperature`` is by default that of :meth:`fit_temperature`, or else 1, which is not calibrated.
        """
        learned = vars(self).get("temperature_", 1.0)
        return softmax(self._scores(X) / check_temperature(learned if temperature is None else temperature), axis=1)

    def _scores(self, X: Matrix) -> np.ndarray:
        return self._bound(X).scores(self._checked_weights())

    def _bind_held_out(self, X: Matrix, y: ArrayLike | None) -> MulticlassBound:
        """A label that training has not seen is judged like the one that fits worst."""
        if y is None:
            return self._bound(X)
        labels, given = self.layout_.labels, plain(np.asarray(y))
        if not all(label in labels.code for label in given):
            scores = self.model_.bind(X, None, layout=self.layout_).scores(self._checked_weights())
            worst = scores.argmin(axis=1).tolist()
            given = [a if a in labels.code else labels.classes[k] for a, k in zip(given, worst, strict=True)]
        return self.model_.bind(X, given, layout=self.layout_)

    def _labellings(self, y: ArrayLike, predicted: list) -> tuple[list, list]:
        return [[label] for label in plain(np.asarray(y))], [[label] for label in predicted]

    def _example_sections(self, X: object, y: object) -> list[Section]:
        sections = super()._example_sections(X, y)
        likely = self.predict_marginals(cast(Matrix, X))
        right = self.classes_[likely.argmax(axis=1)] == np.asarray(y)
        return [*sections, reliability(likely.max(axis=1), right.astype(float), "temperature_" in vars(self))]

    def _bound(self, X: Matrix) -> MulticlassBound:
        X = self._seen(X)
        return self.model_.bind(X, None, layout=self.layout_)

    def _predict_codes(self, weights: np.ndarray, X: Matrix) -> list[Hashable]:
        bound = self.model_.bind(self._unseen(X), None, layout=self.layout_)
        return [self.layout_.output(code) for code in bound.argmax(weights).outputs]

    def _score_predictions(self, y: ArrayLike, predicted: list, weights: np.ndarray | None = None) -> float:
        return float(np.average(np.asarray(y) == np.asarray(predicted), weights=weights))


def _distinct(labels: ArrayLike) -> np.ndarray:
    """The labels in order, as scikit-learn has them."""
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        raise TypeError("the labels in y are of kinds that have no order, such as text and numbers; use one.") from None
