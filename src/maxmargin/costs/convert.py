"""Turn the ``cost`` parameter of an estimator into a Cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from maxmargin.costs.base import Cost
from maxmargin.costs.function import FunctionCost
from maxmargin.costs.hamming import HammingCost, WeightedHammingCost
from maxmargin.costs.matrix import MatrixCost

__all__ = ["as_cost"]

_NAMED: dict[str, type[Cost]] = {"hamming": HammingCost}
_NAMES = ", ".join(map(repr, _NAMED))


def as_cost(cost: object) -> Cost:
    """A Cost from a name, a matrix, label weights, a function, or a Cost.

    Parameters
    ----------
    cost : str, array (K, K), mapping, callable or Cost
        ``"hamming"``; a matrix over the sorted classes (:class:`MatrixCost`); a mapping from true label to weight
        (:class:`WeightedHammingCost`); ``f(true_label, label)`` (:class:`FunctionCost`); a Cost is returned as it is.
    """
    if isinstance(cost, Cost):
        return cost
    if isinstance(cost, str):
        if cost not in _NAMED:
            raise ValueError(f"cost {cost!r} is not known; use {_NAMES}, a matrix, a mapping, a function or a Cost")
        return _NAMED[cost]()
    if isinstance(cost, type) and issubclass(cost, Cost):
        raise TypeError(f"cost is the class {cost.__name__}; give an instance of it: {cost.__name__}(...)")
    if isinstance(cost, Mapping):
        return WeightedHammingCost(cost)
    if callable(cost):
        return FunctionCost(cost)
    if isinstance(cost, (np.ndarray, list, tuple)):
        return MatrixCost(cost)
    kinds = "a (K, K) matrix, a mapping from label to weight, a function f(true_label, label), or a Cost"
    raise TypeError(f"cost is a {type(cost).__name__}; give a name ({_NAMES}), {kinds}")
