"""The generic product: any model, any formulation, any solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from maxmargin.estimators.base import Moment, Structured, decode, learns_from_streams
from maxmargin.estimators.signs import positive_mask
from maxmargin.models.base import BoundModel, CompiledModel
from maxmargin.models.user import PythonModel

__all__ = ["StructuredSVM"]


class StructuredSVM(Structured):
    """Large-margin training of any model, also your own.

    Parameters
    ----------
    model : object
        :class:`~maxmargin.models.chain.Chain`, :class:`~maxmargin.models.multiclass.Multiclass`, or an object of your
        own with four functions: ``n_weights(X, Y)``, ``joint_features(x, y)``, ``cost(y_true, y)`` and
        ``argmax(x, w, y_true=None, cost_weight=0.0)``. :func:`maxmargin.testing.check_model` finds mistakes in it.
    C : float
        Weight of the losses: ``1/2 |w|^2 + C sum_i s_i loss_i``.
    loss : {"hinge", "squared_hinge", "ramp"}
        "ramp" is bounded, so that wrong labels can do little harm; it is minimised by a sequence of convex fits (CCCP).
    rescaling : {"margin", "slack"}
        Whether the cost of an output is its margin, or multiplies its violation of a margin of 1. For "slack",
        which the ramp does not have, a model of your own needs ``slack_argmax``; see :mod:`maxmargin.models.user`.
    ramp : {"cost_diminished", "best_output", "cost_diminished_vs_best"} or pair of float
        Which ramp; see :class:`~maxmargin.formulations.ramp.Ramp`.
    formulation : object, optional
        In place of ``loss`` and ``rescaling``.
    positive : name or names of groups of weights, array of indices, or bool array (n_weights,), optional
        Weights that must be >= 0; the names are those of the model's ``layout.groups``, such as "transition".
    solver : str or solver object
        "auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane", or one of their classes.
    tol : float
        Relative duality gap at which training ends.
    max_passes, max_oracle_calls, max_seconds : number or None
        Budgets.
    max_rounds, passes_per_round : number or None
        Of CCCP, for the ramp: the most convex fits, and passes for each; None lets the gap decide.
    start : {"zero", "hinge"}, fitted estimator or array
        Where a ramp fit begins: at zero weights (its first round is then the hinge), from a hinge fit, or from a model.
    n_jobs : int or None
        Workers for oracle calls: threads for compiled models, processes for models in plain Python. The weights do not
        depend on it.
    random_state : int or None
    verbose : int
        1 shows progress.
    callbacks : list of Callback, optional
    warm_start : bool
        Start from the multipliers of the previous fit; the examples must be the same, C may differ.

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

    def __init__(
        self,
        model: Any,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        rescaling: str = "margin",
        ramp: Any = "cost_diminished",
        formulation: Any = None,
        positive: Any = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_passes: float | None = 1000,
        max_oracle_calls: int | None = None,
        max_seconds: float | None = None,
        max_rounds: int | None = None,
        passes_per_round: float | None = None,
        start: Any = "zero",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        callbacks: list | None = None,
        warm_start: bool = False,
    ) -> None:
        self.model = model
        self.C = C
        self.loss = loss
        self.rescaling = rescaling
        self.ramp = ramp
        self.formulation = formulation
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.max_oracle_calls = max_oracle_calls
        self.max_seconds = max_seconds
        self.max_rounds = max_rounds
        self.passes_per_round = passes_per_round
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start

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
        begin = Moment.now()
        self.model_ = self.model if callable(getattr(self.model, "bind", None)) else PythonModel(self.model)
        bound = self.model_.bind(X, y)
        self.layout_ = bound.layout
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
            self.model_ = self.model if callable(getattr(self.model, "bind", None)) else PythonModel(self.model)
            bound = self.model_.bind(X, y)
            self.layout_ = bound.layout
        else:
            bound = self.model_.bind(X, y, layout=self.layout_)
        if self.positive is not None:
            raise ValueError("partial_fit does not keep weights >= 0; fit with a dual solver for positive=.")
        self._learn_more(bound, sample_weight)
        self.coef_ = self.weights_
        return self

    def predict(self, X: Any) -> list:
        """The best output of each input."""
        self._check_fitted()
        return self._predict_codes(self.weights_, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean negative cost of the predictions, so that higher is better."""
        self._check_fitted()
        return self._score_predictions(y, self.predict(X))

    def _predict_codes(self, weights: np.ndarray, X: Any) -> list:
        bound = self.model_.bind(X, None, layout=self.layout_)
        if not isinstance(bound, CompiledModel):
            return [bound.decode(weights, i) for i in range(bound.n_examples)]
        codes = decode(bound, weights)
        return [self.layout_.output(code) for code in codes]

    def _score_predictions(self, y: Any, predicted: list) -> float:
        cost = self.layout_.cost
        return -float(np.mean([cost(true, found) for true, found in zip(y, predicted, strict=True)])) if len(y) else 0.0


def _positive(positive: Any, bound: BoundModel) -> np.ndarray | None:
    """Weights that must be >= 0: those asked for, and those without which a model (a grid, say) has no exact argmax."""
    mask = positive_mask(positive, bound.layout)
    if "exact_if_positive" not in bound.capabilities:
        return mask
    needed = bound.layout.positive()
    return needed if mask is None else needed | mask
