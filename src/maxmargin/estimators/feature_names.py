"""Names of the columns of X: in ``positive``, and in model files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from maxmargin.estimators.typed_sklearn import BaseEstimator
from maxmargin.models.layout_state import StateReader

__all__ = ["feature_names", "stored_feature_names", "weights_by_feature"]


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
