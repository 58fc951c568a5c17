"""What all estimators share: from bound data to weights with a certificate."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state

from maxmargin.callbacks.base import Callback
from maxmargin.estimators.parameters import Training
from maxmargin.estimators.scikit import BaseEstimator
from maxmargin.formulations.generative import GenerativeProblem
from maxmargin.formulations.margin_rescaling import MarginRescaling
from maxmargin.formulations.ramp import Ramp, RampProblem
from maxmargin.formulations.slack_rescaling import SlackRescaling
from maxmargin.kernel import compile_seconds
from maxmargin.models.base import BoundModel, CompiledModel
from maxmargin.models.user import short
from maxmargin.oracles.wrapper import innermost
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.history import as_frame
from maxmargin.solvers.presets import as_solver
from maxmargin.solvers.primal import PrimalSolver

__all__ = ["Structured"]

RESCALINGS = {"margin": MarginRescaling, "slack": SlackRescaling}


class Moment(NamedTuple):
    """A point in time: wall clock, and seconds spent on kernels so far."""

    clock: float
    compiled: float

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), compile_seconds())


class Structured(Training, BaseEstimator, ABC):
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
        sample_weight: Any = None,
        positive: np.ndarray | None = None,
        resume: Any = None,
        begin: Moment | None = None,
        formulation: Any = None,
    ) -> None:
        """Fit the weights of a bound model and set the fitted attributes.

        ``begin`` is when the fit began, so that the time to bind the data and to load its kernels counts too;
        ``formulation`` takes the place of the one that the parameters name.
        """
        from maxmargin.execution.executors import make_executor
        from maxmargin.execution.sharded import ShardedOracle
        from maxmargin.solvers.driver import run

        budgets = self._budgets()
        formulation = self._formulation() if formulation is None else formulation
        problem = formulation.problem(bound, C=self.C, sample_weight=sample_weight, positive=positive)
        ramp = isinstance(problem, RampProblem)
        convex = problem.convex if ramp else problem
        if self.C > 0 and not convex.weight.any():
            raise ValueError(
                "the weights of all examples are zero; give at least one a positive sample (or class) weight."
            )
        solver = self._engine(convex)
        executor = make_executor(self.n_jobs, convex.oracle, compiled=isinstance(bound, CompiledModel))
        convex = replace(convex, oracle=ShardedOracle(convex.oracle, executor))
        warm = getattr(self, "state_", None) if self.warm_start and resume is None else None
        spent = 0  # calls of a hinge fit that a ramp fit starts from; it has budgets of its own
        bound_after = 0.0 if begin is None else time.perf_counter() - begin.clock
        try:
            if ramp:
                concave = ShardedOracle(problem.concave, executor)
                problem = replace(problem, convex=convex, concave=concave)
                solver, warm, spent = self._cccp(solver, problem, warm, resume, budgets)
            else:
                problem = convex
            result = run(
                solver,
                problem,
                **budgets,
                callbacks=self._callbacks(),
                warm=warm,
                resume=resume,
                evaluate=self._evaluate,
            )
        finally:
            executor.close()
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = result.weights
        for name in ("rounds_", "stream_", "n_seen_"):
            self.__dict__.pop(name, None)
        if ramp:
            self.rounds_ = as_frame(result.state.rounds)
        self.certificate_ = result.certificate
        self.history_ = result.history.to_frame()
        self.status_ = result.status
        self.oracle_calls_ = spent + result.state.oracle_calls
        self.n_iter_ = self.oracle_calls_ / max(1, bound.n_examples)
        self.seconds_ = result.seconds
        if begin is not None:
            self.seconds_["total"] += bound_after
            self.seconds_["compile"] = compile_seconds() - begin.compiled
        self.state_ = result.state
        if result.status.code not in ("converged", "finished"):
            warnings.warn(result.status.sentence, ConvergenceWarning, stacklevel=3)

    def _learn_more(self, bound: BoundModel, sample_weight: Any = None) -> None:
        """One pass of a primal solver over further examples; what was learned before carries on.

        Certificates need all examples, so there is none afterwards.
        """
        from maxmargin.solvers.primal import PrimalEngine

        formulation = self._formulation()
        if isinstance(formulation, Ramp):
            raise ValueError(
                'partial_fit is for loss="hinge" and "squared_hinge"; the ramp needs all examples at once.'
            )
        problem = formulation.problem(bound, C=self.C, sample_weight=sample_weight)
        solver = self._engine(problem)
        assert isinstance(solver, PrimalEngine)
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

    def _cccp(self, inner: Any, problem: RampProblem, warm: Any, resume: Any, budgets: Mapping[str, Any]) -> tuple:
        """The outer loop of a ramp fit round the convex solver, and the state it starts from."""
        from maxmargin.solvers.cccp import CCCP
        from maxmargin.solvers.driver import run

        rounds, passes = self.max_rounds, self.passes_per_round
        start, spent, interrupted = None, 0, False
        if warm is None and resume is None:
            if isinstance(self.start, str) and self.start == "hinge":
                oracle = innermost(problem.convex.oracle)
                above, oracle.cost_weight = oracle.cost_weight, 1.0
                hinge = run(inner, problem.convex, **budgets)
                oracle.cost_weight, spent = above, hinge.state.oracle_calls
                interrupted = hinge.status.code == "interrupted"
                # multipliers of planes with other offsets would be those of another problem
                warm, start = (hinge.state, None) if above == 1.0 else (None, np.array(hinge.weights))
            elif not (isinstance(self.start, str) and self.start == "zero"):
                start = self._start_weights(self.start, problem.convex.n_weights)
        rounds, passes = None if rounds is None else int(rounds), None if passes is None else float(passes)
        outer = CCCP(inner, max_rounds=rounds, passes_per_round=passes, start=start, interrupted=interrupted)
        return outer, warm, spent

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

    def _formulation(self) -> Any:
        rescaling = getattr(self, "rescaling", "margin")  # some estimators have no other
        if not isinstance(rescaling, str) or rescaling not in RESCALINGS:
            raise ValueError(f"rescaling must be one of {', '.join(RESCALINGS)}; got {rescaling!r}.")
        if self.loss != "ramp":
            return RESCALINGS[rescaling](loss=self.loss)
        if rescaling != "margin":
            raise ValueError('the ramp has no slack-rescaled form; use loss="hinge" or rescaling="margin".')
        return Ramp(self.ramp)

    def _engine(self, problem: Any) -> Any:
        """What the solver brings to a problem, seeded."""
        solver = as_solver(self.solver, generative=isinstance(problem, GenerativeProblem))
        seed = self.random_state
        if not (seed is None or isinstance(seed, (int, np.integer, np.random.Generator))):
            seed = check_random_state(seed).randint(2**31 - 1)
        return solver.engine(problem, seed)

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
    if not isinstance(as_solver(estimator.solver), PrimalSolver):
        raise AttributeError(
            f"partial_fit needs a solver that learns example by example: perceptron, mira, sgd or pegasos; "
            f"got {estimator.solver!r}."
        )
    return True


def decode(bound: CompiledModel, weights: np.ndarray, cost_weight: float = 0.0) -> list[np.ndarray]:
    """Outputs that maximise the score (plus ``cost_weight`` times the cost): one array of codes per example."""
    from maxmargin.oracles.batch_kernel import decode_batch

    n, at = bound.n_examples, bound.output_at
    outputs = np.empty(at[-1], np.int32)
    cost, value = np.empty(n), np.empty(n)
    stuck = decode_batch(
        bound.kernel, bound.meta, bound.ints, bound.floats, writable(weights), np.arange(n), cost_weight,
        *bound.workspace(), at, outputs, cost, value,
    )  # fmt: skip
    if stuck >= 0:
        raise ValueError(
            f"example {stuck}: the constraints and fixed labels together allow no output; loosen one of them."
        )
    return [outputs[at[i] : at[i + 1]] for i in range(n)]


def writable(weights: np.ndarray) -> np.ndarray:
    """The weights as kernels take them; a copy when they were loaded as a read-only memory map."""
    return np.require(weights, np.float64, ["C", "W"])
