"""What an estimator promises so that model files can hold it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from maxmargin.costs import Cost, MatrixCost, as_cost
from maxmargin.models.layout_state import StateReader, StorableLayout

__all__ = ["Extractor", "Fitted", "Saveable", "matrix_cost"]


class Extractor(Protocol):
    """Features that were fitted along with an estimator; the class method ``from_state(*state)`` brings them back."""

    def to_state(self) -> tuple[Mapping[str, object], Mapping[str, object]]: ...


@dataclass(frozen=True)
class Fitted:
    """What a model file holds of an estimator, besides its parameters and how its training went.

    ``layout`` is of the kind that the registry has for the estimator; ``weights`` are an array (n_weights,); ``facts``
    (plain values or arrays) what else it has learned; ``features`` are fitted. When saving, ``stand_ins`` are functions
    by name of parameters that a file may not be able to hold: they give a value that it can, or None for one that is
    given again at loading. ``inside`` is the fitted estimator that it was built round, if any: layout and weights are
    those of that one then.
    """

    layout: StorableLayout
    weights: np.ndarray
    facts: Mapping[str, object] = field(default_factory=dict)
    features: Extractor | None = None
    stand_ins: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    inside: Saveable | None = None

    @property
    def state(self) -> StateReader:
        """The facts, to be checked as they are taken; arrays are its tensors."""
        arrays = {name: fact for name, fact in self.facts.items() if isinstance(fact, np.ndarray)}
        return StateReader(self.facts, arrays)


class Saveable(ABC):
    """An estimator that is among the kinds of :mod:`maxmargin.estimators.registry`, or a subclass of one."""

    @abstractmethod
    def _check_fitted(self, values: bool = True) -> None:
        """A NotFittedError before ``fit``; with ``values`` an error too where someone has set hostile weights."""

    @abstractmethod
    def _fitted(self) -> Fitted:
        """All that :meth:`_take_fitted` needs."""

    @abstractmethod
    def _take_fitted(self, fitted: Fitted) -> None:
        """Set the fitted attributes from a file whose layout and weights are checked; ``fitted.facts`` are not."""

    def save(self, path: str | os.PathLike[str], precision: str = "float64") -> Path:
        """Write the fitted estimator to one model file; see :func:`maxmargin.estimators.model_files.save`.

        Parameters
        ----------
        path : path-like
            Replaced when it exists, and only once the new file is complete.
        precision : {"float64", "float32"}
            Of the weights. float64 predicts exactly the same after :meth:`load`; float32 takes about half the space.
        """
        from maxmargin.estimators.model_files import save

        return save(self, path, precision)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, model: object = None, verify: bool = True) -> Self:
        """The fitted estimator in a file of ``save``, ready to predict.

        Parameters
        ----------
        path : path-like
        model : object, optional
            For :class:`~maxmargin.estimators.structured_svm.StructuredSVM` with a model of your own: that model again,
            since a file does not hold code.
        verify : bool
            Check the data against its checksum; False saves reading a huge file twice.
        """
        from maxmargin.estimators.model_files import load_as

        return load_as(cls, path, model=model, verify=verify)


def matrix_cost(cost: object, classes: Sequence[object]) -> Cost:
    """The table of a cost over classes, for files, which cannot hold functions."""
    given = as_cost(cost)
    return MatrixCost(given.table(list(classes)), labels=list(classes), normalize=bool(given.normalize))
