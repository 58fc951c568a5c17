"""The generic product: any model, any formulation, any solver."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from copy import copy
from dataclasses import field
from typing import ClassVar, Protocol, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from maxmargin.contracts import BoundModel, Formulation
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.examples import Predictions, listed
from maxmargin.estimators.large_margin import GoodOutputs, LargeMargin, learns_from_streams
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted, matrix_cost
from maxmargin.models.chain import Chain
from maxmargin.models.graph import Graph
from maxmargin.models.labels import Labels
from maxmargin.models.layout_state import StorableLayout
from maxmargin.models.multiclass import Multiclass
from maxmargin.models.user import Model, UserModel, as_model

__all__ = ["StructuredSVM"]

Objects = Sequence[object]


class KnownLayout(StorableLayout, Protocol):
    """What this estimator asks of the layout of a model; ``labels`` only where it stores a cost by its table."""

    @property
    def labels(self) -> Labels: ...

    def cost(self, y_true: object, y: object) -> float: ...


@parameters
class StructuredSVM(WithMarginals[Objects, object], LargeMargin[Objects, Objects]):
    """Large-margin training of any model, also your own.

    Parameters
    ----------
    model : object
        A model of :mod:`maxmargin.models` (``Chain``, ``Multiclass``, ``LabelSet``, ``Grid``, ``Graph``), or an object
        of your own with four functions: ``n_weights(X, Y)``, ``joint_features(x, y)``, ``cost(y_true, y)`` and
        ``argmax(x, w, y_true=None, cost_weight=0.0)``. :func:`maxmargin.testing.check_model` finds mistakes in it.
    formulation : Formulation, optional
        In place of ``loss``, ``penalty`` and ``rescaling``.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    coef_ : array (n_weights,)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVM
    >>> class Sign:
    ...     def n_weights(self, X, Y):
    ...         return len(X[0])
    ...
    ...     def joint_features(self, x, y):
    ...         return y * np.asarray(x) / 2
    ...
    ...     def cost(self, y_true, y):
    ...         return float(y_true != y)
    ...
    ...     def argmax(self, x, w, y_true=None, cost_weight=0.0):
    ...         return max((-1, 1), key=lambda y: y * (w @ np.asarray(x)) / 2 + cost_weight * (y != y_true))
    >>> svm = StructuredSVM(Sign(), C=1.0).fit([[1.0, 0.2], [-0.8, 0.1]], [1, -1])
    >>> svm.predict([[2.0, 0.0]])
    [1]
    """

    scored: ClassVar[str] = "mean negative cost"

    model: Model | UserModel = field(kw_only=False)
    formulation: Formulation | None = None

    def fit(
        self,
        X: Objects,
        y: Objects | None,
        sample_weight: SampleWeight = None,
        *,
        resume: Resume = None,
        references: GoodOutputs | None = None,
        pairing: str = "all",
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : list of inputs
        y : list of outputs
        sample_weight : array (n_examples,), optional
        resume : path or mapping, optional
            A checkpoint of an interrupted fit on the same examples.
        references : list, optional
            Further good outputs of each example; with ``y=None`` all of them.
        pairing : {"all", "nearest"}
            Which outputs they must outscore; see :class:`~maxmargin.formulations.references.References`.
        """
        begin, formulation = Stopwatch(), None
        if references is not None or y is None or pairing != "all":
            if self.formulation is not None and references is not None:
                raise ValueError("references= makes a formulation of its own; leave out formulation=.")
            y, formulation = self._references(y, references, pairing)
        bound = self._bind_first(X, y)
        return self._fit_bound(bound, sample_weight, resume, begin, formulation)

    @available_if(learns_from_streams)
    def partial_fit(self, X: Objects, y: Objects, sample_weight: SampleWeight = None) -> Self:
        """Learn from further examples, one pass over them, with a solver of the primal family; no certificate.

        Parameters
        ----------
        X, y, sample_weight : as in fit
        """
        first = "stream_" not in self.__dict__
        self._learn_more(self._bind_first(X, y) if first else self._bind_held_out(X, y), sample_weight)
        return self

    @property
    def coef_(self) -> np.ndarray:
        return self.weights_

    def predict(self, X: Objects) -> Predictions[object]:
        """The best output of each input."""
        self._check_fitted()
        return Predictions(self._predict_codes(self.weights_, X))

    def _formulation(self) -> Formulation:
        return super()._formulation() if self.formulation is None else self.formulation

    def _bind_first(self, X: Objects, y: Objects) -> BoundModel:
        self.model_ = self._model()
        bound = self.model_.bind(listed(X), listed(y))
        self.layout_ = cast(KnownLayout, bound.layout)
        return bound

    def _model(self) -> Model:
        return as_model(self.model)

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, stand_ins={"model": self._storable_model})

    def _storable_model(self) -> object:
        """The model with its cost as a table, which files can hold; None for one that has to be given again."""
        model: object = self.model
        if not isinstance(model, (Chain, Multiclass, Graph)) or type(model) not in (Chain, Multiclass, Graph):
            return None
        return copy(model).set_params(cost=matrix_cost(model.cost, self.layout_.labels.classes))

    def _take_fitted(self, fitted: Fitted) -> None:
        self.model_, self.layout_, self.weights_ = self._model(), cast(KnownLayout, fitted.layout), fitted.weights

    def _predict_codes(self, weights: np.ndarray, X: Objects) -> list:
        bound = self.model_.bind(listed(X), None, layout=self.layout_)
        return [self.layout_.output(code) for code in bound.argmax(weights).outputs]

    def _score_predictions(self, y: Objects, predicted: list, weights: np.ndarray | None = None) -> float:
        cost = self.layout_.cost
        if not isinstance(y, Sized) or len(y) != len(predicted):
            raise ValueError(f"X has {len(predicted)} examples; y must have one output for each, got {y!r:.80}.")
        costs = [cost(true, found) for true, found in zip(y, predicted, strict=True)]
        return -float(np.average(costs, weights=weights)) if costs else 0.0
