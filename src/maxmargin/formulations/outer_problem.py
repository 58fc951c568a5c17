"""Problems that are solved as a sequence of others: what these have in common is that of the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from maxmargin.contracts import LabelBlocks, Problem

__all__ = ["OuterProblem"]

Inner = TypeVar("Inner", bound=Problem, covariant=True)


@dataclass(frozen=True)
class OuterProblem(Generic[Inner]):
    """Examples, columns, weights C_i and domain of ``first``, and one trait more, which asks for an outer solver."""

    first: Inner

    trait: ClassVar[str]

    @property
    def n_examples(self) -> int:
        return self.first.n_examples

    @property
    def n_columns(self) -> int:
        return self.first.n_columns

    @property
    def weight(self) -> np.ndarray:
        return self.first.weight

    @property
    def traits(self) -> frozenset[str]:
        return self.first.traits | {self.trait}

    @property
    def labels(self) -> LabelBlocks | None:
        return self.first.labels

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """As the problem of every round."""
        return self.first.feasible(w)
