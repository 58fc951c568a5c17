"""What all estimators share: from bound data to weights with a certificate."""

from __future__ import annotations

import os
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from traceback import walk_stack
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags, check_random_state

from maxmargin.callbacks.base import Callback
from maxmargin.contracts import BoundModel, Formulation, InnerSolver, Layout, Problem, SampleWeight, State
from maxmargin.door import weight_vector
from maxmargin.estimators.parameters import Training
from maxmargin.estimators.reporting import Labellings, Reported, labels_told, named_weights, score_section
from maxmargin.estimators.saveable import Saveable
from maxmargin.estimators.typed_sklearn import BaseEstimator
from maxmargin.formulations.latent import LatentProblem
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.formulations.ramp import Ramp
from maxmargin.kernel import compile_seconds
from maxmargin.models.user import short
from maxmargin.pages.html import Section
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.driver import Result
from maxmargin.solvers.history import as_frame
from maxmargin.solvers.presets import solver_for

__all__ = ["Stopwatch", "Structured"]

Resume = Mapping[str, np.ndarray] | str | os.PathLike[str] | None

Inputs = TypeVar("Inputs", contravariant=True)
Outputs = TypeVar("Outputs", contravariant=True)


@runtime_checkable
class NamedFeatures(Protocol):
    """An extractor whose features have names."""

    def transform(self, X: Any, /) -> object: ...
    def names(self) -> Iterable[str]: ...


class Stopwatch:
    """Wall clock and seconds spent on kernels, since it was made."""

    def __init__(self) -> None:
        self._begin, self._compiled = time.perf_counter(), compile_seconds()

    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def compile_seconds(self) -> float:
        return compile_seconds() - self._compiled


class Structured(Saveable, Reported, Training, BaseEstimator, ABC, Generic[Inputs, Outputs]):
    """Base of all estimators. Subclasses bind their data; everything from there to the certificate happens here.

    Fitted attributes of every estimator:

    certificate_ : Certificate, with ``primal``, ``dual``, ``gap``, ``relative_gap`` at the final weights
    history_ : table, one row per certificate: pass, oracle_calls, seconds, primal, dual, gap, ...; ``argmax_calls``
        counts the queries of searches, ``proven`` is the share of answers since the row before proven to be the best
    status_ : Status, why training ended, with a sentence
    n_iter_ : float, passes over the examples (oracle calls / examples)
    seconds_ : dict, time split: total, oracle, solver, compile
    rounds_ : table, of a ramp fit: per round of CCCP its objective and the size of the concave set
    weights_ : array (n_weights,), all weights in the layout of the model

    A table is a pandas frame, or without pandas a dict of columns: ``history_["gap"]`` is good for both.
    """

    traits: ClassVar[frozenset[str]] = frozenset({"quadratic"})  # of all problems that it makes
    parts: ClassVar[str] = "labels"  # what an output is made of, in words
    scored: ClassVar[str] = "share of right labels"  # what score returns, in words

    @abstractmethod
    def _formulation(self) -> Formulation:
        """What is minimised, as the parameters say it."""

    @abstractmethod
    def _predict_codes(self, weights: np.ndarray, X: Inputs) -> list:
        """Predictions at given weights."""

    @abstractmethod
    def _score_predictions(self, y: Outputs, predicted: list, weights: np.ndarray | None = None) -> float:
        """The estimator's default score; ``weights`` (n,) say how much each example counts."""

    @abstractmethod
    def predict(self, X: Inputs) -> object:
        """The best output of each example."""

    def score(self, X: Inputs, y: Outputs, sample_weight: SampleWeight = None) -> float:
        """How good the predictions are, more is better.

        Taggers, graphs and hidden Markov models: share of right labels. Images: mean intersection over union of the
        foregrounds. Links: 1 less the alignment error rate. Lattices: BLEU, from 0 to 100. StructuredSVM: mean negative
        cost.

        Parameters
        ----------
        X, y : as in fit
        sample_weight : array (n_examples,), optional
            How much each example counts.
        """
        self._check_fitted()
        found = self._predict_codes(self.weights_, X)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, len(found))
        return self._score_predictions(y, found, weights)

    def _bind_held_out(self, X: Inputs, y: Outputs | None) -> BoundModel:
        """Examples that were not trained on, bound to the fitted weights."""
        return self.model_.bind(X, y, layout=self.layout_)

    def _train(
        self,
        bound: BoundModel,
        *,
        sample_weight: SampleWeight = None,
        positive: np.ndarray | None = None,
        resume: Resume = None,
        begin: Stopwatch | None = None,
        latent: Callable[[np.ndarray], BoundModel] | None = None,
        refits: int = 0,
        first_completion: object = None,
        warm: State | None = None,
        formulation: Formulation | None = None,
        C: float | None = None,
    ) -> None:
        """Fit the weights of a bound model and set the fitted attributes.

        ``begin``: when the fit began, so that the time to bind the data and to load its kernels counts too.
        ``latent``: the examples with the best completions at some weights as true outputs, for ``refits`` further
        rounds; ``first_completion`` (estimator or weights): whose completions the first round begins with, else the
        outputs as they are. ``warm``: where to go on from; without it ``warm_start`` says whether where the last ended.
        ``formulation`` and ``C``: what is minimised, where it is not what the parameters alone say.
        """
        from maxmargin.execution.executors import make_executor
        from maxmargin.execution.sharded import spread_over
        from maxmargin.solvers.driver import run
        from maxmargin.solvers.outer import with_outer_loops

        self._check_budgets()
        formulation = self._formulation() if formulation is None else formulation
        weight_of_losses = self.C if C is None else C

        def problem_of(model: BoundModel) -> Problem:
            return formulation.problem(model, C=weight_of_losses, sample_weight=sample_weight, positive=positive)

        problem = problem_of(bound)
        if weight_of_losses > 0 and not problem.weight.any():
            advice = "give at least one a positive sample (or class) weight."
            raise ValueError(f"the weights of all examples are zero; {advice}")
        if latent is not None:
            problem = LatentProblem(problem, latent, problem_of)
        ramp, fresh = formulation if isinstance(formulation, Ramp) else None, resume is None
        solver = with_outer_loops(
            self._engine(problem),
            problem,
            tol=self.tol,
            start=self._ramp_start(ramp, bound.n_weights) if ramp and fresh else None,
            max_rounds=ramp.max_rounds if ramp else None,
            passes_per_round=ramp.passes_per_round if ramp else None,
            refits=refits,
            first_completion=self._weights_of(first_completion if fresh and latent else None, bound.n_weights),
        )
        executor = make_executor(self.n_jobs, compiled=bound.kernel() is not None, executor=self.executor)
        if warm is None and self.warm_start and resume is None:
            warm = self.__dict__.get("state_")
        bound_after = 0.0 if begin is None else begin.seconds()
        try:
            result = run(
                solver,
                problem.with_oracles(lambda oracle: spread_over(oracle, executor)),
                tol=self.tol,
                max_passes=self.max_passes,
                max_oracle_calls=self.max_oracle_calls,
                max_seconds=self.max_seconds,
                callbacks=self._callbacks(),
                warm=warm,
                resume=resume,
                evaluate=self._evaluate,
                executor=executor,
            )
            executor.recall()
        finally:
            executor.close()
        self._set_result(result, bound, weight_of_losses)
        if begin is not None:
            self.seconds_["total"] += bound_after
            self.seconds_["compile"] = begin.compile_seconds()

    def _set_result(self, result: Result, bound: BoundModel, C: float) -> None:
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = result.weights
        for name in ("rounds_", "stream_", "n_seen_"):
            self.__dict__.pop(name, None)
        if result.state.rounds is not None:
            self.rounds_ = as_frame(result.state.rounds)
        self.certificate_, self.status_, self.history_ = result.certificate, result.status, result.history.to_frame()
        self.oracle_calls_ = result.state.oracle_calls
        self.n_iter_ = self.oracle_calls_ / max(1, bound.n_examples)
        self.seconds_, self.state_ = result.seconds, result.state
        if self.status_.code in ("badly scaled", "overflow", "stalled"):
            from maxmargin.estimators.largest_feature import largest_feature

            largest = f"The largest feature, summed over an example, is {largest_feature(bound)}; C is {C:g}."
            sentence = f"{self.status_.sentence} {largest}"
            self.status_ = replace(self.status_, sentence=sentence)
        if self.status_.code not in ("converged", "finished"):
            warnings.warn(self.status_.sentence, ConvergenceWarning, stacklevel=_users_level())

    def _ramp_start(self, ramp: Ramp, n_weights: int) -> np.ndarray | str | None:
        """Where CCCP begins; None at zero weights."""
        if isinstance(ramp.start, str):
            return None if ramp.start == "zero" else ramp.start
        return self._weights_of(ramp.start, n_weights)

    def _weights_of(self, start: object, n_weights: int) -> np.ndarray | None:
        """The weights that training starts from: an array, or those of a fitted estimator with the same labels."""
        if start is None:
            return None
        if isinstance(start, Structured):
            start._check_fitted()
            names, others = _feature_names(self), _feature_names(start)
            if names is not None and others is not None and names != others:
                advice = 'fit it on the same examples, or begin with start="hinge".'
                raise ValueError(f"the start model was trained on other features than these examples have; {advice}")
            own, other = vars(self).get("classes_"), vars(start).get("classes_")
            if own is not None and (other is None or list(own) != list(other)):
                labels = f"other labels ({short(other)}) than the examples ({short(own)})"
                advice = 'start from a model of the same labels, or with start="hinge".'
                raise ValueError(f"the start model has {labels}; {advice}")
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

    def _engine(self, problem: Problem) -> InnerSolver:
        """What the solver brings to a problem, seeded."""
        seed = self.random_state
        if not (seed is None or isinstance(seed, (int, np.integer, np.random.Generator))):
            seed = check_random_state(seed).randint(2**31 - 1)
        if isinstance(seed, (int, np.integer)) and seed < 0:
            raise ValueError(f"random_state must not be negative, got {seed}; give a whole number >= 0 or None.")
        return solver_for(self.solver, problem).engine(problem, seed)

    def _callbacks(self) -> list[Callback]:
        callbacks = [] if self.callbacks is None else self.callbacks
        if not isinstance(callbacks, (list, tuple)) or not all(isinstance(c, Callback) for c in callbacks):
            raise TypeError(f"callbacks must be a list of maxmargin.callbacks.Callback objects, got {callbacks!r}.")
        callbacks = list(callbacks)
        if self.verbose:
            from maxmargin.callbacks.progress import Progress

            callbacks.append(Progress())
        return callbacks

    def _evaluate(self, weights: np.ndarray, X: object, y: object) -> float:
        return self._score_predictions(cast(Outputs, y), self._predict_codes(weights, cast(Inputs, X)))

    def _check_fitted(self, values: bool = True) -> None:
        if "weights_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with examples first.")
        logarithms = "tables" in self.traits
        weight_vector(self.weights_, self.layout_.n_weights, values=values, once=True, logarithms=logarithms)

    def _checked_weights(self) -> np.ndarray:
        """The weights as kernels take them: whoever has set them, they are finite and as many as the model has."""
        self._check_fitted()
        return weight_vector(self.weights_, self.layout_.n_weights)

    def _groups(self) -> dict[str, np.ndarray]:
        """The weights by name, for properties."""
        if "weights_" not in self.__dict__:
            raise AttributeError("the weights are there after fit.")
        self._check_fitted()
        return self.layout_.groups(self.weights_)

    def _example_sections(self, X: object, y: object) -> list[Section]:
        true, predicted = cast(Outputs, y), self._predict_codes(self.weights_, cast(Inputs, X))
        sections = [score_section(self._score_predictions(true, predicted), len(predicted), self.scored)]
        labels = self._labellings(true, predicted)
        if labels is not None:
            sections.append(labels_told(*labels, self.parts))
        return sections

    def _labellings(self, y: Outputs, predicted: list) -> tuple[Labellings, Labellings] | None:
        """The labels of all parts, true and predicted, where outputs are made of labels."""
        return None

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        return named_weights(self._groups(), _feature_names(self), top)

    def __sklearn_tags__(self) -> Tags:
        """Structured inputs are not arrays (n_examples, n_features), which most of scikit-learn's checks give."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, object]:
        large = ("state_", "stream_")  # working sets, which refer to the training data
        return {name: value for name, value in super().__getstate__().items() if name not in large}


def _feature_names(estimator: Structured) -> list | None:
    """Names of the features that an estimator was fitted on, where it has them."""
    fitted = vars(estimator)
    extractor, layout = fitted.get("features_"), cast(Layout | None, fitted.get("layout_"))
    if isinstance(extractor, NamedFeatures):
        try:
            return list(extractor.names())
        except ValueError:  # hashed features have none
            return None
    names = None if layout is None else layout.names()
    names = fitted.get("feature_names_in_") if names is None else names
    return None if names is None else list(names)


def _users_level() -> int:
    """The ``stacklevel`` of a warning that names the line from which the library was called."""
    frames = walk_stack(sys._getframe(1))
    return 1 + sum(
        1 for _ in takewhile(lambda at: at[0].f_globals.get("__name__", "").startswith("maxmargin."), frames)
    )
