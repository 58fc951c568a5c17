"""Probabilities of labels that can be compared across labels, from the decisions of a multi-label classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Self, cast

import numpy as np
from scipy.special import expit, logit
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from maxmargin.estimators.base import SampleWeight
from maxmargin.estimators.feature_columns import ROWS, Matrix, feature_names, unconverted
from maxmargin.estimators.multilabel_classifier import MultilabelClassifier, Sets
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.reporting import Reported, run_of
from maxmargin.estimators.saveable import Fitted, Saveable
from maxmargin.estimators.typed_sklearn import BaseEstimator, ClassifierMixin
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.models.label_targets import LabelTargets
from maxmargin.pages.html import Section
from maxmargin.pages.labels import reliability
from maxmargin.pages.run import Run

__all__ = ["CalibratedLabels"]

STEPS, LONGEST = 30, 2.0  # of Newton's method, and the most that a constant moves in one
LARGEST = 1e100  # number of a curve in a file: products with decisions stay finite
LEARNED = ("slopes", "intercepts", "centres", "means", "shared")
SURE = 1e-15  # no label is surer than that, on or off
PRIOR = 0.02  # how much constants are pulled to 0, so that labels without examples have one


@parameters
class CalibratedLabels(Saveable, Reported, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Probabilities of labels, learned on decisions about examples that were held out.

    A decision of :class:`MultilabelClassifier` says on which side of the margin a label is, not how probable it is, so
    decisions about a rare and a common label cannot be compared. Here each label k gets a logistic curve of its
    decision d_k, and what the curves leave unexplained is learned from the probabilities q of all labels:

        q_k = 1 / (1 + exp(-a_k (d_k - c_k) - b_k))         p = q + (q - mean q) A

    Curves maximise the likelihood, their slopes pulled to a common one in units of the spread of each decision, for
    many labels have few examples (Platt 2000). A is the ridge regression of ``y - q`` on q: labels that go together
    tell of each other (Breiman, Friedman 1997). Both see decisions of models that were fitted to other folds. Decisions
    count from their mean c over the examples of their own fit: a fold with many examples of a label leaves few to the
    others, whose constants would tell the curve so. In a hierarchy no label is more probable than its parents.

    Parameters
    ----------
    estimator : MultilabelClassifier
        A copy of it is fitted to all examples; further copies are fitted to all folds but one.
    folds : int
        How many fits there are for the held-out decisions.
    of : {"decisions", "scores"}
        What curves are of: for each label the best score of a set with it minus that of one without, or the score of
        the label by itself, which says more where labels are weak and hardly any is ever decided for.
    pull : float
        Strength of the pull of slopes to the common one, in units of the information of an example.
    sharing : float or None
        Ridge of the regression, as a multiple of the mean variance of the q_k: smaller lets labels tell more of each
        other. None: curves alone.
    random_state : int or None
        Seed of the folds.

    Attributes
    ----------
    estimator_ : MultilabelClassifier
        Fitted to all examples.
    classes_ : array (n_labels,)
    slopes_, intercepts_, centres_ : array (n_labels,)
        a, b and c.
    means_ : array (n_labels,)
        Means of q over the training examples.
    shared_ : array (n_labels, n_labels)
        A; empty where sharing is None.

    Notes
    -----
    ``folds + 1`` fits, and O(n M^2 + M^3) for M labels where they share. Platt 2000, Probabilities for support vector
    machines. Breiman, Friedman 1997, Predicting multivariate responses in multiple linear regression.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CalibratedLabels, MultilabelClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> Y = np.array([X[:, 0] > 0, (X[:, 0] > 0) & (X[:, 1] > 0)]).T.astype(int)
    >>> model = CalibratedLabels(estimator=MultilabelClassifier(hierarchy=[-1, 0])).fit(X, Y)
    >>> likely = model.predict_proba([[2, 2], [2, -2]])
    >>> (likely > 0.5).tolist()
    [[True, True], [True, False]]
    """

    estimator: MultilabelClassifier
    folds: int = 5
    of: str = "decisions"
    pull: float = 10.0
    sharing: float | None = 1.0
    random_state: int | None = 0

    def __sklearn_tags__(self) -> Tags:
        return self.estimator.__sklearn_tags__()

    def fit(self, X: Matrix, y: Sets, sample_weight: SampleWeight = None) -> Self:
        """Fit the estimator to all examples, and the probabilities to held-out decisions.

        Parameters
        ----------
        X : array or sparse matrix (n, n_features)
        y : sets of labels, in any form that the estimator takes
        sample_weight : array (n,), optional
            How much each example counts, in the fits and in the likelihood.
        """
        _check(self)
        rows = check_array(unconverted(X), input_name="X", estimator=self, **ROWS)
        if rows.shape[0] < self.folds:
            what = f"folds={self.folds} needs at least as many examples, got n_samples={rows.shape[0]}"
            raise ValueError(f"{what}; give more, or set folds lower.")
        self._take_estimator(clone(self.estimator).fit(X, y, sample_weight))
        targets = LabelTargets.of(y, self.estimator_.layout_.labels.classes)
        on = targets.on.astype(np.float64)
        self.centres_ = self._seen(self.estimator_, X).mean(axis=0)
        weights, held = check_sample_weight(sample_weight, len(on)), np.empty(on.shape)
        weights = np.ones(len(on)) if weights is None else weights
        for rest, fold in KFold(self.folds, shuffle=True, random_state=self.random_state).split(on):
            part = replace(targets, on=targets.on[rest])
            scale = len(on) / len(rest)  # fewer examples pull as strongly as all: decisions keep their size
            model = clone(self.estimator).fit(rows[rest], part, scale * weights[rest])
            held[fold] = self._seen(model, rows[fold]) - self._seen(model, rows[rest]).mean(axis=0)
        spread = np.maximum(held.std(axis=0), 1e-12)
        curves = _curves(held / spread, on, weights, self.pull)
        self.slopes_, self.intercepts_ = curves.slope / spread, curves.intercept
        alone = expit(self.slopes_ * held + self.intercepts_)
        self.means_, self.shared_ = np.average(alone, axis=0, weights=weights), np.zeros((0, 0))
        if self.sharing is not None:
            centred = alone - self.means_
            gram = centred.T @ (weights[:, None] * centred)
            ridge = self.sharing * max(float(np.trace(gram)) / len(gram), 1e-12)
            seen = centred.T @ (weights[:, None] * (on - alone))
            self.shared_ = np.linalg.solve(gram + ridge * np.eye(len(gram)), seen)
        return self

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Probabilities (n, n_labels); in a hierarchy no label has more than its parents."""
        self._check_fitted()
        likely = expit(self.slopes_ * (self._seen(self.estimator_, X) - self.centres_) + self.intercepts_)
        if len(self.shared_):
            likely = likely + (likely - self.means_) @ self.shared_
        likely = np.clip(likely, SURE, 1.0 - SURE)
        outputs = self.estimator_.layout_.outputs
        if outputs is not None:
            for k in outputs.hierarchy.order.tolist():
                for parent in outputs.hierarchy.parents[k]:
                    likely[:, k] = np.minimum(likely[:, k], likely[:, parent])
        return likely

    def _seen(self, model: MultilabelClassifier, X: Matrix) -> np.ndarray:
        """What curves are of, (n, M)."""
        return model.decision_function(X) if self.of == "decisions" else model.label_scores(X)

    def _take_estimator(self, fitted: MultilabelClassifier) -> None:
        self.estimator_, self.classes_, self.n_features_in_ = fitted, fitted.classes_, fitted.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if feature_names(fitted) is not None:
            self.feature_names_in_ = fitted.feature_names_in_

    def _check_fitted(self, values: bool = True) -> None:
        if "shared_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with examples first.")
        self.estimator_._check_fitted(values)

    def _example_sections(self, X: object, y: object) -> list[Section]:
        likely = self.predict_proba(cast(Matrix, X))
        on = LabelTargets.of(cast(Sets, y), self.estimator_.layout_.labels.classes, self.estimator_.target_values_).on
        told = reliability(likely.ravel(), on.astype(np.float64).ravel(), True)
        return [*self.estimator_._example_sections(X, y), told]

    def _run(self) -> Run:
        return replace(run_of(self.estimator_), parameters=run_of(self).parameters)

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        return self.estimator_._strongest_weights(top)

    def _fitted(self) -> Fitted:
        facts = {name: np.asarray(vars(self)[f"{name}_"], np.float64) for name in LEARNED}
        return Fitted(self.estimator_.layout_, self.estimator_.weights_, facts, inside=self.estimator_)

    def _take_fitted(self, fitted: Fitted) -> None:
        _check(self)
        assert isinstance(fitted.inside, MultilabelClassifier)
        self._take_estimator(fitted.inside)
        M = len(self.classes_)
        for name in LEARNED:
            shape = (M,) if name != "shared" else (0, 0) if self.sharing is None else (M, M)
            found = fitted.state.floats(name, shape)
            if np.abs(found).max(initial=0.0) > LARGEST:
                raise ValueError(f"its tensor {name!r} has numbers beyond {LARGEST:g}")
            setattr(self, f"{name}_", found)
        if (self.slopes_ < 0.0).any() or not ((self.means_ >= 0.0) & (self.means_ <= 1.0)).all():
            raise ValueError("its tensor 'slopes' has negative numbers, or 'means' some that are no probabilities")

    def predict(self, X: Matrix) -> object:
        """The sets of the estimator: those of largest score."""
        self._check_fitted()
        return self.estimator_.predict(X)

    def score(self, X: Matrix, y: Sets, sample_weight: object = None) -> float:
        """Subset accuracy of the estimator; examples count by ``sample_weight``."""
        self._check_fitted()
        return self.estimator_.score(X, y, sample_weight)


def _check(given: CalibratedLabels) -> None:
    if not isinstance(given.estimator, MultilabelClassifier):
        raise TypeError(f"estimator is {given.estimator!r:.60}; give a MultilabelClassifier.")
    if not isinstance(given.folds, (int, np.integer)) or given.folds < 2:
        raise ValueError(f"folds is {given.folds!r}; give a whole number of at least 2.")
    if given.of not in ("decisions", "scores"):
        raise ValueError(f'of is {given.of!r}; give "decisions" or "scores".')
    if not _positive(given.pull):
        raise ValueError(f"pull is {given.pull!r}; give a positive number.")
    if given.sharing is not None and not _positive(given.sharing):
        raise ValueError(f"sharing is {given.sharing!r}; give a positive number, or None for curves alone.")


def _positive(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and 0.0 < float(value) < np.inf


class _Curves(NamedTuple):
    slope: np.ndarray
    intercept: np.ndarray


def _curves(decisions: np.ndarray, on: np.ndarray, weights: np.ndarray, pull: float) -> _Curves:
    """Slopes and intercepts (M,) of the most likely logistic curves of decisions (n, M).

    Newton's method for all labels at once: first for one slope of all labels and an intercept of each, then for a slope
    of each with the penalty ``pull / 2 (slope - common)^2``. O(n M) a step.
    """
    w = weights[:, None]
    share = (weights @ on + 0.5) / (weights.sum() + 1.0)
    slope, intercept, common = np.zeros(on.shape[1]), logit(share), 0.0
    for own in (False, True):
        for _ in range(STEPS):
            q = expit(slope * decisions + intercept)
            off, curved = w * (q - on), w * q * (1.0 - q)
            to_slope, to_intercept = (off * decisions).sum(axis=0), off.sum(axis=0) + PRIOR * intercept
            bend, cross = (curved * decisions**2).sum(axis=0), (curved * decisions).sum(axis=0)
            flat = curved.sum(axis=0) + PRIOR
            if own:
                to_slope, bend = to_slope + pull * (slope - common), bend + pull
            left, room = to_slope - cross / flat * to_intercept, bend - cross**2 / flat
            step = left / room if own else np.full(len(slope), left.sum() / max(room.sum(), 1e-12))
            move = (to_intercept - cross * step) / flat
            size = np.minimum(1.0, LONGEST / np.maximum(np.abs(move), 1e-12))
            slope, intercept = slope - (size if own else size.min()) * step, intercept - size * move
        common = float(slope[0]) if not own else common
    return _Curves(np.maximum(slope, 0.0), intercept)
