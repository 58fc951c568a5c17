"""One label an example: the Crammer-Singer machine with a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from maxmargin.estimators.base import Moment, Structured, decode, learns_from_streams
from maxmargin.formulations.margin_rescaling import check_sample_weight
from maxmargin.models.multiclass import Multiclass, MulticlassBound

__all__ = ["MulticlassClassifier"]


class MulticlassClassifier(ClassifierMixin, Structured):
    """Multiclass classification by Crammer and Singer's machine, with any cost between classes.

    Minimises ``1/2 |W|^2 + C sum_i s_i max_y [ cost(y_i, y) - (W[:, y_i] - W[:, y]) . x_i ]``. With the default cost
    this is the objective of ``LinearSVC(multi_class="crammer_singer")``.

    Parameters
    ----------
    C : float
        Weight of the losses.
    loss : {"hinge", "squared_hinge", "ramp"}
        "ramp" is bounded, so that wrong labels can do little harm; it is minimised by a sequence of convex fits (CCCP).
    rescaling : {"margin", "slack"}
        Whether the cost of an output is its margin, or multiplies its violation of a margin of 1. Not for the ramp.
    ramp : {"cost_diminished", "best_output", "cost_diminished_vs_best"} or pair of float
        Which ramp; see :class:`~maxmargin.formulations.ramp.Ramp`.
    cost : str, mapping, array, callable or Cost
    class_weight : mapping or "balanced", optional
        Multiplies the weight of the examples of a class, as in scikit-learn.
    fit_intercept : bool
        A constant for each class, regularised like the other weights.
    intercept_scaling : float
        The constant feature behind the intercept; larger values regularise the intercept less.
    positive : bool, or indices or names of features
        Whether all coefficients, or those of some features, must be >= 0; the intercepts are free.
    solver, tol, max_passes, max_oracle_calls, max_seconds, max_rounds, passes_per_round, start, n_jobs, random_state, \
verbose, callbacks, warm_start
        See :class:`~maxmargin.estimators.structured_svm.StructuredSVM`.

    Attributes
    ----------
    classes_ : array (n_classes,)
    coef_ : array (n_classes, n_features)
    intercept_ : array (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MulticlassClassifier(C=1.0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        rescaling: str = "margin",
        ramp: Any = "cost_diminished",
        cost: Any = "hamming",
        class_weight: Mapping | str | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        positive: Any = False,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float | None = 1000,
        max_oracle_calls: int | None = None,
        max_seconds: float | None = None,
        max_rounds: int | None = None,
        passes_per_round: float | None = None,
        start: Any = "zero",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        callbacks: list | None = None,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.loss = loss
        self.rescaling = rescaling
        self.ramp = ramp
        self.cost = cost
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.max_oracle_calls = max_oracle_calls
        self.max_seconds = max_seconds
        self.max_rounds = max_rounds
        self.passes_per_round = passes_per_round
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, resume: Any = None) -> MulticlassClassifier:
        """Learn from examples X (n, n_features), dense or sparse, and labels y (n,)."""
        begin = Moment.now()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y)
        self.model_ = Multiclass(cost=self.cost, intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling)
        bound = self.model_.bind(X, y)
        self.layout_ = bound.layout
        self.classes_ = np.unique(y)
        positive = self._positive(X.shape[1])
        if positive is not None:
            intercept = np.zeros(int(bound.layout.intercept), bool)
            positive = np.repeat(np.concatenate([positive, intercept]), bound.layout.stride)
            positive &= bound.layout.real()
        self._train(bound, sample_weight=weights, positive=positive, resume=resume, begin=begin)
        self._set_coef()
        return self

    def _positive(self, n_features: int) -> np.ndarray | None:
        """Which features have coefficients >= 0, a mask; None when all are free."""
        if self.positive is None or self.positive is False:
            return None
        mask = np.zeros(n_features, bool)
        if self.positive is True:
            return ~mask
        names = getattr(self, "feature_names_in_", np.arange(n_features))
        place = {name: j for j, name in enumerate(names.tolist())} | {j: j for j in range(n_features)}
        for name in np.atleast_1d(np.asarray(self.positive)).tolist():
            if name not in place or isinstance(name, bool):
                raise ValueError(
                    f"positive names the feature {name!r}; give True, indices from 0 to {n_features - 1}, or names of "
                    "columns."
                )
            mask[place[name]] = True
        return mask

    @available_if(learns_from_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MulticlassClassifier:
        """Learn from further examples, one pass over them, with a solver of the primal family.

        Give all labels as ``classes`` in the first call. There is no certificate, which would need all examples.
        """
        first = "stream_" not in self.__dict__
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=first)
        check_classification_targets(y)
        if self.class_weight == "balanced" or self._positive(X.shape[1]) is not None:
            raise ValueError('partial_fit knows no class_weight="balanced" and no positive=; use fit.')
        weights = check_sample_weight(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y)
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
            self.model_ = Multiclass(
                cost=self.cost,
                intercept=self.fit_intercept,
                intercept_scaling=self.intercept_scaling,
                classes=self.classes_.tolist(),
            )
            bound = self.model_.bind(X, y)
            self.layout_ = bound.layout
        else:
            bound = self.model_.bind(X, y, layout=self.layout_)
        self._learn_more(bound, weights)
        self._set_coef()
        return self

    def _set_coef(self) -> None:
        groups = self.layout_.groups(self.weights_)
        self.coef_ = np.ascontiguousarray(groups["coef"].T)
        self.intercept_ = np.asarray(groups["intercept"])

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, n_classes); with two classes the difference (n,), positive for ``classes_[1]``."""
        scores = self._bound(X).scores(self.weights_)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of largest score."""
        bound = self._bound(X)
        return self.classes_[np.concatenate(decode(bound, self.weights_))] if bound.n_examples else self.classes_[:0]

    def _bound(self, X: Any) -> MulticlassBound:
        self._check_fitted()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self.model_.bind(X, None, layout=self.layout_)

    def _predict_codes(self, weights: np.ndarray, X: Any) -> list:
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        bound = self.model_.bind(X, None, layout=self.layout_)
        return [self.layout_.output(code) for code in decode(bound, weights)]

    def _score_predictions(self, y: Any, predicted: list) -> float:
        return float(np.mean(np.asarray(y) == np.asarray(predicted)))
