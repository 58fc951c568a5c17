"""The generic product: any model, any formulation, any solver."""

from __future__ import annotations

from copy import copy
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from maxmargin.estimators.base import Stopwatch, Structured, learns_from_streams
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted, matrix_cost
from maxmargin.estimators.signs import positive_mask
from maxmargin.models.base import BoundModel
from maxmargin.models.chain import Chain
from maxmargin.models.graph import Graph
from maxmargin.models.multiclass import Multiclass
from maxmargin.models.user import PythonLayout, PythonModel

__all__ = ["StructuredSVM"]


@parameters
class StructuredSVM(WithMarginals, Structured):
    """Large-margin training of any model, also your own.

    Parameters
    ----------
    model : object
        :class:`~maxmargin.models.chain.Chain`, :class:`~maxmargin.models.multiclass.Multiclass`, or an object of your
        own with four functions: ``n_weights(X, Y)``, ``joint_features(x, y)``, ``cost(y_true, y)`` and
        ``argmax(x, w, y_true=None, cost_weight=0.0)``. :func:`maxmargin.testing.check_model` finds mistakes in it.
    rescaling : {"margin", "slack"}
        Whether the cost of an output is its margin, or multiplies its violation of a margin of 1. For "slack",
        which the ramp does not have, a model of your own needs ``slack_argmax``; see :mod:`maxmargin.models.user`.
    formulation : object, optional
        In place of ``loss`` and ``rescaling``.
    positive : name or names of groups of weights, array of indices, or bool array (n_weights,), optional
        Weights that must be >= 0; the names are those of the model's ``layout.groups``, such as "transition".
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

    model: Any = field(kw_only=False)
    rescaling: str = "margin"
    formulation: Any = None
    positive: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, resume: Any = None) -> StructuredSVM:
        """Learn the weights.

        Parameters
        ----------
        X : list of inputs
        y : list of outputs
        sample_weight : array (n_examples,), optional
        resume : path or mapping, optional
            A checkpoint of an interrupted fit on the same examples.
        """
        begin = Stopwatch()
        bound = self._bind_first(X, y)
        self._train(
            bound,
            formulation=self.formulation,
            sample_weight=sample_weight,
            positive=_positive(self.positive, bound),
            resume=resume,
            begin=begin,
        )
        self.coef_ = self.weights_
        return self

    @available_if(learns_from_streams)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> StructuredSVM:
        """Learn from further examples, one pass over them, with a solver of the primal family; no certificate."""
        if "stream_" not in self.__dict__:
            bound = self._bind_first(X, y)
        else:
            bound = self.model_.bind(X, y, layout=self.layout_)
        if self.positive is not None:
            raise ValueError("partial_fit does not keep weights >= 0; fit with a dual solver for positive=.")
        self._learn_more(bound, sample_weight)
        self.coef_ = self.weights_
        return self

    def _bind_first(self, X: Any, y: Any) -> BoundModel:
        self.model_ = self._model()
        bound = self.model_.bind(X, y)
        self.layout_ = bound.layout
        return bound

    def _model(self) -> Any:
        return self.model if callable(getattr(self.model, "bind", None)) else PythonModel(self.model)

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, stand_ins={"model": self._storable_model})

    def _storable_model(self) -> object:
        """The model with its cost as a table, which files can hold; None for one that has to be given again."""
        if type(self.model) not in (Chain, Multiclass, Graph):
            return None
        return copy(self.model).set_params(cost=matrix_cost(self.model.cost, self.layout_.labels.classes))

    def _take_fitted(self, fitted: Fitted) -> None:
        self.model_, self.layout_ = self._model(), fitted.layout
        if isinstance(self.model_, PythonModel) != isinstance(self.layout_, PythonLayout):
            raise ValueError(f"a {type(self.model).__name__} is not the model that it was trained with; give that one")
        self.weights_ = self.coef_ = fitted.weights

    def predict(self, X: Any) -> list:
        """The best output of each input."""
        self._check_fitted()
        return self._predict_codes(self.weights_, X)

    def _bound_scores(self, X: Any, probabilities: bool = False) -> tuple[BoundModel, np.ndarray]:
        self._check_fitted()
        return self.model_.bind(X, None, layout=self.layout_), self.weights_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean negative cost of the predictions, so that higher is better."""
        self._check_fitted()
        return self._score_predictions(y, self.predict(X))

    def _predict_codes(self, weights: np.ndarray, X: Any) -> list:
        bound = self.model_.bind(X, None, layout=self.layout_)
        return [self.layout_.output(code) for code in bound.argmax(weights).outputs]

    def _score_predictions(self, y: Any, predicted: list) -> float:
        cost = self.layout_.cost
        return -float(np.mean([cost(true, found) for true, found in zip(y, predicted, strict=True)])) if len(y) else 0.0


def _positive(positive: Any, bound: BoundModel) -> np.ndarray | None:
    """Weights that must be >= 0: those asked for, and those without which a model (a grid, say) has no exact argmax."""
    mask, needed = positive_mask(positive, bound.layout), bound.needs_positive
    return mask if needed is None else needed if mask is None else needed | mask
