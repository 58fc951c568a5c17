"""What the classifiers of rows of a matrix share: features by name, intercepts, and the checks of X."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from maxmargin.estimators.base import Outputs
from maxmargin.estimators.feature_columns import (
    ROWS,
    Matrix,
    feature_names,
    stored_feature_names,
    unconverted,
    weights_by_feature,
)
from maxmargin.estimators.label_weights import LabelWeights
from maxmargin.estimators.large_margin import LargeMargin
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.typed_sklearn import ClassifierMixin
from maxmargin.models.layout_state import StateReader

__all__ = ["MatrixClassifier"]


@parameters
class MatrixClassifier(ClassifierMixin, LabelWeights, LargeMargin[Matrix, Outputs]):
    """Base of classifiers whose X is a matrix (n, n_features), with weights for each feature and class.

    Parameters
    ----------
    fit_intercept : bool
        A constant for each class, regularised like the other weights.
    intercept_scaling : float
        The constant feature behind the intercept; larger values regularise the intercept less.
    positive : None, True, name or names of features, group of weights, array of indices, or bool array (n_weights,)
        Weights that must be >= 0: those of some features (columns of a frame, or "x0", "x1", ...), of a group ("coef",
        "intercept"; "edge" of label sets), or all but the intercepts (True); indices and masks follow ``weights_``.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.
    """

    fit_intercept: bool = True
    intercept_scaling: float = 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> np.ndarray:
        return np.ascontiguousarray(self._groups()["coef"].T)

    @property
    def intercept_(self) -> np.ndarray:
        return np.array(self._groups()["intercept"])

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        coef = self._groups()["coef"]
        names, labels = feature_names(self), self.layout_.labels.classes
        order = np.argsort(-np.abs(coef), axis=None, kind="stable")[:top]
        places = zip(*np.unravel_index(order, coef.shape), strict=True)
        return [
            (f"{f'x{j}' if names is None else names[j]} → {labels[k]}", float(coef[j, k]))
            for j, k in places
            if coef[j, k] != 0
        ]

    def _named_weights(self, groups: Mapping[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
        return weights_by_feature(self, groups)

    def _seen(self, X: Matrix) -> Matrix:
        """X of a fitted estimator, checked: its columns are those of training."""
        self._check_fitted()
        return validate_data(self, unconverted(X), reset=False, **ROWS)

    @staticmethod
    def _unseen(X: Matrix) -> Matrix:
        """X of an estimator that is still in training, checked."""
        return check_array(unconverted(X), **ROWS)

    def _take_features(self, state: StateReader) -> None:
        """The number and the names of the features, from a file."""
        self.n_features_in_ = self.layout_.n_features
        names = stored_feature_names(state, self.n_features_in_)
        if names is not None:
            self.feature_names_in_ = names
