"""Objects whose constructor arguments can be read, set and cloned by name, as scikit-learn expects of components.

Kept apart from scikit-learn so that models, costs and solvers do not import it.
"""

from __future__ import annotations

import inspect
from abc import ABC
from typing import Any, Self

import numpy as np

__all__ = ["Parameters"]


class Parameters(ABC):  # noqa: B024 (subclasses declare the abstract methods)
    """Stores its constructor arguments unchanged under their own names and checks them when it uses them."""

    @classmethod
    def _names(cls) -> list[str]:
        own = cls.__init__ is not object.__init__  # which takes anything
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"] if own else []

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name; with ``deep`` also those of components, as ``component__name``."""
        params = {}
        for name in self._names():
            params[name] = value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: object) -> Self:
        """Set constructor arguments by name and return the object itself."""
        for name, value in params.items():
            name, _, inner = name.partition("__")
            if inner and name in self._names():
                getattr(self, name).set_params(**{inner: value})
                continue
            if name not in self._names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = inspect.signature(type(self).__init__).parameters
        shown = []
        for name, value in self.get_params(deep=False).items():
            default = given[name].default
            if value is default or (isinstance(value, (bool, int, float, str)) and value == default):
                continue
            if isinstance(value, np.ndarray):
                shown.append(f"{name}=<array of shape {value.shape}>")
            else:
                text = repr(value)
                shown.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
        return f"{type(self).__name__}({', '.join(shown)})"
