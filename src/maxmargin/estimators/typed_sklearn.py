"""The base classes of scikit-learn, with the types that scikit-learn itself lacks.

Untyped bases would make a type checker accept any argument to the constructor of any estimator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sklearn.utils import Tags

    class BaseEstimator:
        """Parameters by name; fitted attributes may have any type."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: object) -> Self: ...
        def __sklearn_clone__(self) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...
        def __getstate__(self) -> dict[str, object]: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: object) -> None: ...

    class ClassifierMixin:
        """A score by accuracy."""

        def score(self, X: object, y: object, sample_weight: object = None) -> float: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["BaseEstimator", "ClassifierMixin"]
