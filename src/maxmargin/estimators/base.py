"""What all estimators share: from bound data to weights with a certificate."""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state

from maxmargin.callbacks.base import Callback
from maxmargin.contracts import BoundModel, Formulation, InnerSolver, Problem, Solver, State
from maxmargin.estimators.parameters import Training
from maxmargin.estimators.saveable import Saveable
from maxmargin.estimators.scikit import BaseEstimator
from maxmargin.formulations.latent import LatentProblem
from maxmargin.formulations.problem import Problem as HingeProblem
from maxmargin.formulations.ramp import Ramp
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.kernel import compile_seconds
from maxmargin.models.user import short
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.driver import Result
from maxmargin.solvers.history import as_frame
from maxmargin.solvers.presets import SOLVERS, solver_for

__all__ = ["Stopwatch", "Structured"]

Resume = Mapping[str, np.ndarray] | str | os.PathLike[str]


class Stopwatch:
    """Wall clock and seconds spent on kernels, since it was made."""

    def __init__(self) -> None:
        self._begin, self._compiled = time.perf_counter(), compile_seconds()

    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def compile_seconds(self) -> float:
        return compile_seconds() - self._compiled


class Structured(Saveable, Training, BaseEstimator, ABC):
    """Base of all estimators. Subclasses bind their data; everything from there to the certificate happens here.

    Fitted attributes of every estimator:

    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap`` at the final weights.
    history_ : pandas.DataFrame or list of dict
        One row per certificate: pass, oracle_calls, seconds, primal, dual, gap, ...
    status_ : Status
        Why training ended, with a sentence.
    n_iter_ : float
        Passes over the examples (oracle calls / examples).
    seconds_ : dict
        Time split: total, oracle, solver, compile.
    rounds_ : pandas.DataFrame or list of dict
        Of a ramp fit: one row a round of CCCP with its objective and the size of the concave set.
    weights_ : array (n_weights,)
        All weights in the layout of the model.
    """

    @abstractmethod
    def _predict_codes(self, weights: np.ndarray, X: Any) -> list:
        """Predictions at given weights."""

    @abstractmethod
    def _score_predictions(self, y: Any, predicted: list) -> float:
        """The estimator's default score."""

    def _train(
        self,
        bound: BoundModel,
        *,
        sample_weight: ArrayLike | None = None,
        positive: np.ndarray | None = None,
        resume: Resume | None = None,
        begin: Stopwatch | None = None,
        formulation: Formulation | None = None,
        latent: Callable[[np.ndarray], BoundModel] | None = None,
        refits: int = 0,
        warm: State | None = None,
    ) -> None:
        """Fit the weights of a bound model and set the fitted attributes.

        Parameters
        ----------
        begin : Stopwatch, optional
            When the fit began, so that the time to bind the data and to load its kernels counts too.
        formulation : Formulation, optional
            Takes the place of the one that the parameters name.
        latent : (weights) -> BoundModel, optional
            The examples with the best completions at some weights as true outputs, for ``refits`` further rounds.
        warm : State, optional
            Where to go on from; without it ``warm_start`` says whether that is where the last fit ended.
        """
        from maxmargin.execution.executors import make_executor
        from maxmargin.execution.sharded import ShardedOracle
        from maxmargin.solvers.driver import run

        budgets = self._budgets()
        formulation = self._formulation() if formulation is None else formulation

        def problem_of(model: BoundModel) -> Problem:
            return formulation.problem(model, C=self.C, sample_weight=sample_weight, positive=positive)

        problem = problem_of(bound)
        if self.C > 0 and not problem.weight.any():
            raise ValueError(
                "the weights of all examples are zero; give at least one a positive sample (or class) weight."
            )
        if latent is not None:
            problem = LatentProblem(problem, latent, problem_of)
        solver = self._solver(problem, bound.n_weights, refits, fresh=resume is None)
        executor = make_executor(self.n_jobs, compiled=bound.kernel() is not None)
        if warm is None and self.warm_start and resume is None:
            warm = self.__dict__.get("state_")
        bound_after = 0.0 if begin is None else begin.seconds()
        try:
            result = run(
                solver,
                problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor)),
                **budgets,
                callbacks=self._callbacks(),
                warm=warm,
                resume=resume,
                evaluate=self._evaluate,
            )
        finally:
            executor.close()
        self._set_result(result, bound)
        if begin is not None:
            self.seconds_["total"] += bound_after
            self.seconds_["compile"] = begin.compile_seconds()

    def _set_result(self, result: Result, bound: BoundModel) -> None:
        """The fitted attributes that every estimator has."""
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = result.weights
        for name in ("rounds_", "stream_", "n_seen_"):
            self.__dict__.pop(name, None)
        if result.state.rounds is not None:
            self.rounds_ = as_frame(result.state.rounds)
        self.certificate_ = result.certificate
        self.history_ = result.history.to_frame()
        self.status_ = result.status
        self.oracle_calls_ = result.state.oracle_calls
        self.n_iter_ = self.oracle_calls_ / max(1, bound.n_examples)
        self.seconds_ = result.seconds
        self.state_ = result.state
        if result.status.code not in ("converged", "finished"):
            warnings.warn(result.status.sentence, ConvergenceWarning, stacklevel=4)

    def _learn_more(self, bound: BoundModel, sample_weight: Any = None) -> None:
        """One pass of a primal solver over further examples; what was learned before carries on.

        Certificates need all examples, so there is none afterwards.
        """
        from maxmargin.solvers.primal import PrimalEngine

        problem = self._formulation().problem(bound, C=self.C, sample_weight=sample_weight)
        if "ramp" in problem.traits:
            raise ValueError(
                'partial_fit is for loss="hinge" and "squared_hinge"; the ramp needs all examples at once.'
            )
        solver = self._engine(problem)
        assert isinstance(solver, PrimalEngine) and isinstance(problem, HingeProblem)
        earlier = self.__dict__.get("stream_")
        seen = bound.n_examples + int(self.__dict__.get("n_seen_", 0))
        if solver.rule.method == "subgradient":  # steps are scaled to the sum over all examples seen so far
            problem = replace(problem, weight=problem.weight * seen / max(1, bound.n_examples))
        state = solver.adopt(problem, earlier)
        solver.step(state)
        self.stream_, self.n_seen_ = state, seen
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = solver.weights(state)
        self.n_iter_ = state.passes
        for name in ("certificate_", "history_", "status_", "state_", "rounds_", "temperature_"):
            self.__dict__.pop(name, None)

    def _solver(self, problem: Problem, n_weights: int, refits: int, fresh: bool) -> Solver:
        """The user's solver, seeded, with the outer loops that the problem asks for."""
        from maxmargin.solvers.outer import with_outer_loops

        start: np.ndarray | str | None = None
        if fresh and problem.traits & {"ramp", "latent"} and not (isinstance(self.start, str) and self.start == "zero"):
            hinge = isinstance(self.start, str) and self.start == "hinge"
            start = "hinge" if hinge else self._start_weights(self.start, n_weights)
        return with_outer_loops(
            self._engine(problem),
            problem,
            tol=self.tol,
            start=start,
            max_rounds=None if self.max_rounds is None else int(self.max_rounds),
            passes_per_round=None if self.passes_per_round is None else float(self.passes_per_round),
            refits=refits,
        )

    def _start_weights(self, start: Any, n_weights: int) -> np.ndarray:
        """The weights that a ramp fit starts from: an array, or those of a fitted estimator with the same labels."""
        if isinstance(start, Structured):
            start._check_fitted()
            names, others = _feature_names(self), _feature_names(start)
            if names is not None and others is not None and names != others:
                raise ValueError(
                    "the start model was trained on other features than these examples have; fit it on the same "
                    'examples, or begin with start="hinge".'
                )
            own, other = getattr(self, "classes_", None), getattr(start, "classes_", None)
            if own is not None and (other is None or list(own) != list(other)):
                raise ValueError(
                    f"the start model has other labels ({short(other)}) than the examples ({short(own)}); start from "
                    'a model of the same labels, or with start="hinge".'
                )
            start = start.weights_
        try:
            weights = np.asarray(start, dtype=np.float64)
        except (TypeError, ValueError):
            weights = np.empty(())
        if weights.ndim == 0:
            raise ValueError(f'start must be "zero", "hinge", a fitted estimator or an array; got {short(start)}.')
        if weights.shape != (n_weights,):
            raise ValueError(
                f"the start model has weights of shape {weights.shape}, these examples need ({n_weights},): it was "
                'trained on other features or labels. Start with start="hinge" instead.'
            )
        if not np.isfinite(weights).all():
            raise ValueError("the start model has weights that are not finite numbers.")
        return weights

    def _formulation(self) -> Formulation:
        rescaling = self.get_params(deep=False).get("rescaling", "margin")  # some estimators have no other
        if self.loss == "ramp":
            return Ramp(self.ramp, RescaledHinge(rescaling=rescaling))
        return RescaledHinge(self.loss, rescaling)

    def _engine(self, problem: Problem) -> InnerSolver:
        """What the solver brings to a problem, seeded."""
        seed = self.random_state
        if not (seed is None or isinstance(seed, (int, np.integer, np.random.Generator))):
            seed = check_random_state(seed).randint(2**31 - 1)
        return solver_for(self.solver, problem).engine(problem, seed)

    def _callbacks(self) -> list:
        callbacks = [] if self.callbacks is None else self.callbacks
        if not isinstance(callbacks, (list, tuple)) or not all(isinstance(c, Callback) for c in callbacks):
            raise TypeError(f"callbacks must be a list of maxmargin.callbacks.Callback objects, got {callbacks!r}.")
        callbacks = list(callbacks)
        if self.verbose:
            from maxmargin.callbacks.progress import Progress

            callbacks.append(Progress())
        return callbacks

    def _evaluate(self, weights: np.ndarray, X: Any, y: Any) -> float:
        return self._score_predictions(y, self._predict_codes(weights, X))

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with examples first.")

    def __sklearn_clone__(self) -> Any:
        """As scikit-learn does it, but a fitted model to start from stays fitted."""
        twin = super().__sklearn_clone__()
        start = self.start
        if isinstance(start, Structured):
            twin.start = start
        return twin

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("state_", None)  # the working set is large and refers to the training data
        state.pop("stream_", None)
        return state


def _feature_names(estimator: Any) -> list | None:
    """Names of the features that an estimator was fitted on, where it has them."""
    for part in ("features_", "layout_"):
        names = getattr(getattr(estimator, part, None), "names", None)
        if callable(names):
            try:
                return list(names())
            except ValueError:  # hashed features have none
                return None
    given = getattr(estimator, "feature_names_in_", None)
    return None if given is None else list(given)


def learns_from_streams(estimator: Any) -> bool:
    """Whether there is ``partial_fit``; an AttributeError, as scikit-learn wants it, says what would have it."""
    solver = SOLVERS.get(estimator.solver) if isinstance(estimator.solver, str) else estimator.solver
    if not getattr(solver, "incremental", False):
        raise AttributeError(
            f"partial_fit needs a solver that learns example by example: perceptron, mira, sgd or pegasos; "
            f"got {estimator.solver!r}."
        )
    return True
