"""Costs between outputs (Delta): how bad a label is where another is true."""

from maxmargin.costs.base import Cost, is_integral
from maxmargin.costs.convert import as_cost
from maxmargin.costs.function import FunctionCost
from maxmargin.costs.hamming import HammingCost, WeightedHammingCost
from maxmargin.costs.matrix import MatrixCost

__all__ = ["Cost", "FunctionCost", "HammingCost", "MatrixCost", "WeightedHammingCost", "as_cost", "is_integral"]
