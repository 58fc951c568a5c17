"""What all estimators share: from bound data to weights with a certificate."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state

from maxmargin.callbacks.base import Callback
from maxmargin.formulations.margin_rescaling import MarginRescaling
from maxmargin.kernel import compile_seconds
from maxmargin.models.base import BoundModel, CompiledModel
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.presets import as_solver

__all__ = ["Structured"]


class Moment(NamedTuple):
    """A point in time: wall clock, and seconds spent on kernels so far."""

    clock: float
    compiled: float

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), compile_seconds())


class Structured(BaseEstimator, ABC):
    """Base of all estimators. Subclasses bind their data; everything from there to the certificate happens here.

    Fitted attributes of every estimator:

    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap`` at the final weights.
    history_ : pandas.DataFrame or list of dict
        One row a certificate: pass, oracle_calls, seconds, primal, dual, gap, ...
    status_ : Status
        Why training ended, with a sentence.
    n_iter_ : float
        Passes over the examples (oracle calls / examples).
    seconds_ : dict
        Time split: total, oracle, solver, compile.
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
    ) -> None:
        """Fit the weights of a bound model and set the fitted attributes.

        ``begin`` is when the fit began, so that the time to bind the data and to load its kernels counts too.
        """
        from maxmargin.execution.executors import make_executor
        from maxmargin.execution.sharded import ShardedOracle
        from maxmargin.solvers.driver import run
        from maxmargin.solvers.engine import DualEngine

        _check_stopping(self)
        compiled = isinstance(bound, CompiledModel)
        problem = self._formulation().problem(bound, C=self.C, sample_weight=sample_weight, positive=positive)
        if self.C > 0 and not problem.weight.any():
            raise ValueError(
                "the weights of all examples are zero; give at least one a positive sample (or class) weight."
            )
        dials = as_solver(self.solver).dials(problem.n_examples, problem.n_columns)
        problem.oracle.parts = dials.parts
        executor = make_executor(self.n_jobs, problem.oracle, compiled=compiled)
        problem = replace(problem, oracle=ShardedOracle(problem.oracle, executor))
        warm = getattr(self, "state_", None) if self.warm_start and resume is None else None
        bound_after = 0.0 if begin is None else time.perf_counter() - begin.clock
        try:
            result = run(
                DualEngine(dials, _seed(self.random_state)),
                problem,
                tol=self.tol,
                max_passes=self.max_passes,
                max_oracle_calls=self.max_oracle_calls,
                max_seconds=self.max_seconds,
                callbacks=self._callbacks(),
                warm=warm,
                resume=resume,
                evaluate=self._evaluate,
            )
        finally:
            executor.close()
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = result.weights
        self.certificate_ = result.certificate
        self.history_ = result.history.to_frame()
        self.status_ = result.status
        self.n_iter_ = result.state.oracle_calls / max(1, bound.n_examples)
        self.oracle_calls_ = result.state.oracle_calls
        self.seconds_ = result.seconds
        if begin is not None:
            self.seconds_["total"] += bound_after
            self.seconds_["compile"] = compile_seconds() - begin.compiled
        self.state_ = result.state
        if not result.status.converged:
            warnings.warn(result.status.sentence, ConvergenceWarning, stacklevel=3)

    def _formulation(self) -> MarginRescaling:
        return MarginRescaling(loss=self.loss)

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

    def __getstate__(self) -> Mapping[str, Any]:
        state = dict(super().__getstate__())
        state.pop("state_", None)  # the working set is large and refers to the training data
        return state


def decode(bound: CompiledModel, weights: np.ndarray, cost_weight: float = 0.0) -> list[np.ndarray]:
    """Outputs that maximise the score (plus ``cost_weight`` times the cost), as integer codes, one array an example."""
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


def _seed(random_state: Any) -> Any:
    if random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator)):
        return random_state
    return check_random_state(random_state).randint(2**31 - 1)


def _check_stopping(estimator: Any) -> None:
    tol = estimator.tol
    if not isinstance(tol, (int, float, np.number)) or not tol >= 0:
        raise ValueError(f"tol must be a relative duality gap >= 0, got {tol!r}.")
    for name in ("max_passes", "max_oracle_calls", "max_seconds"):
        value = getattr(estimator, name)
        if value is not None and not (isinstance(value, (int, float, np.number)) and value > 0):
            raise ValueError(f"{name} must be a positive number or None, got {value!r}.")
