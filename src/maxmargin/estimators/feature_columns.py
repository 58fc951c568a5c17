"""A matrix X of features: before it is checked, and the names of its columns, in ``positive`` and in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.door import sparse_block
from maxmargin.estimators.typed_sklearn import BaseEstimator
from maxmargin.models.layout_state import StateReader

__all__ = ["ROWS", "Matrix", "feature_names", "stored_feature_names", "unconverted", "weights_by_feature"]

Matrix: TypeAlias = ArrayLike | sp.csr_array
# what scikit-learn checks of X; that entries are finite is checked where models are bound, by an error with the example
ROWS = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}


def unconverted(X: Matrix) -> Matrix:
    """Sparse matrices are checked before scikit-learn converts them, which relies on their indices.

    Those that it need not convert are checked where models are bound.
    """
    if not sp.issparse(X) or (isinstance(X, (sp.csr_array, sp.csr_matrix)) and X.ndim == 2 and _is_float64(X.data)):
        return X
    return sparse_block(X, "X")


def _is_float64(data: object) -> bool:
    return type(data) is np.ndarray and data.dtype == np.float64


def feature_names(estimator: BaseEstimator) -> list[str] | None:
    """Names that the columns of X had in ``fit``."""
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else list(names.tolist())


def weights_by_feature(estimator: BaseEstimator, groups: Mapping[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Groups of weights, and the rows of ``coef`` by the names of their features: "x0", "x1", ... where X has none."""
    names = feature_names(estimator) or [f"x{j}" for j in range(len(groups["coef"]))]
    features = {name: [row] for name, row in zip(names, groups["coef"], strict=True) if name not in groups}
    return {name: [block] for name, block in groups.items()} | features


def stored_feature_names(state: StateReader, n_features: int) -> np.ndarray | None:
    """The names in a model file, checked."""
    names = state.fact("feature_names_in")
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features or {*map(type, names)} != {str}:
        raise ValueError(f"its names of features are not {n_features} texts")
    return np.array(names, dtype=object)
