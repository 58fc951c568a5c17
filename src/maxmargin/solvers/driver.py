"""The only loop: budgets, certificates, callbacks, Ctrl-C, resuming."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from maxmargin.callbacks.base import Callback
from maxmargin.certificate import Certificate, WeakDualityError
from maxmargin.contracts import Executor, Problem, Solver, State
from maxmargin.solvers.base import check_solver, one_blas_thread
from maxmargin.solvers.history import History
from maxmargin.solvers.proof import agree
from maxmargin.solvers.saved import COUNT, SECONDS, Saved
from maxmargin.solvers.status import Status, describe

__all__ = ["Result", "Run", "run"]

P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound=State)
Resume = Mapping[str, np.ndarray] | str | os.PathLike[str]
Evaluate = Callable[[np.ndarray, object, object], float]  # (weights, X, y) -> score

_STALLED_AFTER = 3  # certificates in a row with the same primal and the same dual
ROUNDING = 1e-14  # share of the first primal of a run


@dataclass(frozen=True)
class Result(Generic[S]):
    """The end of a run. ``certificate`` belongs to ``weights``; ``seconds`` has total, oracle, solver and compile."""

    state: S
    weights: np.ndarray
    certificate: Certificate
    history: History
    status: Status
    seconds: dict[str, float]


@dataclass
class Run(Generic[P, S]):
    """A run in progress, as callbacks see it."""

    solver: Solver[P, S]
    problem: P
    state: S
    tol: float
    history: History = field(default_factory=History)
    certificate: Certificate | None = None
    status: Status | None = None
    earlier: float = 0.0  # seconds of the runs that this one resumes
    begin: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=lambda: _compile_seconds())
    fresh: bool = False  # whether the certificate belongs to the present weights
    steps: int = 0
    unproven: int = 0  # oracle calls without a proven answer, up to the last certificate
    resumed: bool = False
    evaluate: Evaluate | None = None  # when an estimator is being fitted
    limits: Mapping[str, float | None] = field(default_factory=dict)  # budgets by name
    executor: Executor | None = None  # whose workers may have to be replaced

    @property
    def replaced(self) -> int:
        """Workers that have died in this run."""
        return 0 if self.executor is None else self.executor.replaced

    @property
    def passes(self) -> float:
        """Oracle calls divided by the number of examples."""
        return self.state.oracle_calls / max(1, self.problem.n_examples)

    @property
    def total_seconds(self) -> float:
        return self.earlier + time.perf_counter() - self.begin

    @property
    def seconds(self) -> dict[str, float]:
        """total (wall clock), oracle and solver (as the solver counts them), compile (kernels, within this run)."""
        own = {name: float(self.state.seconds.get(name, 0.0)) for name in ("oracle", "solver")}
        return {"total": self.total_seconds, **own, "compile": _compile_seconds() - self.compiled}

    def weights(self) -> np.ndarray:
        """The present weights; copy them to keep them."""
        return self.solver.weights(self.state)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """State and history as arrays; give them to :func:`run` as ``resume``."""
        arrays = {f"state/{name}": np.asarray(array) for name, array in self.state.to_arrays().items()}
        arrays |= {f"history/{name}": array for name, array in self.history.to_arrays().items()}
        arrays |= {"run/seconds": np.array(self.total_seconds), "run/fresh": np.array(self.fresh)}
        arrays["run/steps"] = np.array(self.steps, np.int64)
        return arrays

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint, atomically."""
        from maxmargin.persistence.checkpoint import save_checkpoint

        return save_checkpoint(path, self.to_arrays())


def run(
    solver: Solver[P, S],
    problem: P,
    *,
    tol: float = 1e-3,
    max_passes: float | None = None,
    max_oracle_calls: int | None = None,
    max_seconds: float | None = None,
    callbacks: Iterable[Callback] = (),
    warm: State | None = None,
    resume: Resume | None = None,
    evaluate: Evaluate | None = None,
    executor: Executor | None = None,
) -> Result[S]:
    """Run a solver until the relative gap is at most tol, a budget is spent, or someone stops it.

    Each round: when a certificate is due, compute it, record it, check weak duality (a WeakDualityError when it is
    impossible; see :meth:`Certificate.check`), tell the callbacks, and stop if relative_gap <= tol; then look at the
    budgets; then one step. Whatever ends the run, the result carries a certificate of the final weights. Budgets of
    calls include that certificate: a step is not begun when it and the certificate behind it would exceed them (but one
    step is always taken). Seconds can only be looked at afterwards.

    Ctrl-C ends the run in the same way. A second Ctrl-C, during the final certificate, gives that up too: the last
    dual value is kept (no solver lets its dual fall), the primal is unknown (inf) and ``certified`` is False.

    Parameters
    ----------
    solver, problem
        See :class:`Solver`; ``problem`` needs ``n_examples``.
    tol : float
        Relative gap: ``gap / max(|primal|, |dual|)``.
    max_passes, max_oracle_calls, max_seconds : number, optional
        Budgets, None for no limit. A resumed run counts from the beginning of the run it resumes.
    callbacks : iterable
        Objects with on_begin(run), on_certificate(run) (may return "stop") and on_end(run).
    warm
        Handed to ``solver.init``.
    resume : mapping or path, optional
        Arrays of :meth:`Run.to_arrays`, or a checkpoint file.
    evaluate : callable, optional
        (weights, X, y) -> score, for callbacks that hold out examples.
    executor : Executor, optional
        Where the oracle of the problem runs: history and status tell of workers that had to be replaced.
    """
    limits = {"max_passes": max_passes, "max_oracle_calls": max_oracle_calls, "max_seconds": max_seconds}
    _validate(tol, limits, warm, resume)
    check_solver(type(solver).__name__, solver.handles, problem)
    present = _begin(solver, problem, tol, warm, resume)
    present.evaluate, present.executor, present.limits = evaluate, executor, limits
    begun: list[Callback] = []  # only these are told anything: the others never saw the run
    try:
        try:
            for callback in callbacks:
                callback.on_begin(present)
                begun.append(callback)
            with one_blas_thread():
                code = _loop(present, begun, limits)
        except KeyboardInterrupt:
            code = "interrupted"
        if not present.fresh:
            code = _final_certificate(present, begun, code)
        assert present.certificate is not None
        present.certificate = solver.conclude(present.state, present.certificate, code)
        calls, seconds = present.state.oracle_calls, present.total_seconds
        budget, replaced = limits.get(code), present.replaced
        present.status = describe(code, present.certificate, tol, present.passes, calls, seconds, budget, replaced)
    finally:
        for callback in begun:
            callback.on_end(present)
    return Result(
        present.state, present.weights(), present.certificate, present.history, present.status, present.seconds
    )


def _loop(present: Run, callbacks: Sequence[Callback], limits: Mapping[str, float | None]) -> str:
    """Rounds until something ends the run; returns the status code."""
    solver, state = present.solver, present.state
    if present.fresh and _is_converged(present):
        return "converged"
    while True:
        if present.fresh and present.history.repeats() >= _STALLED_AFTER:
            return "stalled"
        if not present.fresh and solver.certificate_due(state):
            stop = _certify(present, callbacks)
            if _is_converged(present):
                return "converged"
            if stop:
                return "stopped by callback"
            assert present.certificate is not None
            if present.certificate.primal == np.inf and present.certificate.certified:
                return "overflow"
            continue
        ended = solver.finished(state)
        if ended is not None:
            return ended
        calls = state.oracle_calls + (solver.step_calls(state) if present.steps else 0)
        passes = calls / max(1, present.problem.n_examples)
        spent = {"max_passes": passes, "max_oracle_calls": calls, "max_seconds": present.total_seconds}
        for code, limit in limits.items():
            if limit is not None and (spent[code] > limit or limit == 0):
                return code
        present.steps += 1
        present.fresh = False  # before the step: an interrupted one has changed the weights too
        solver.step(state)


def _certify(present: Run, callbacks: Sequence[Callback]) -> bool:
    """Compute, record, check and tell; returns whether a callback wants to stop."""
    certificate = present.solver.certificate(present.state)
    present.certificate, present.fresh = certificate, True
    _record(present, certificate)
    try:
        certificate.check()
    except WeakDualityError as error:
        if not present.resumed:
            raise
        advice = "If only the resumed run fails, the checkpoint was changed: resume from an earlier one, or start anew."
        raise ValueError(f"{error}. {advice}") from error
    answers = [callback.on_certificate(present) for callback in callbacks]  # all hear it, also after a "stop"
    return "stop" in answers


def _final_certificate(present: Run, callbacks: Sequence[Callback], code: str) -> str:
    """Certify the final weights; a Ctrl-C meanwhile leaves an uncertified certificate."""
    try:
        _certify(present, callbacks)
    except KeyboardInterrupt:
        if not present.fresh:
            dual = present.certificate.dual if present.certificate is not None else -np.inf
            present.certificate, present.fresh = Certificate(np.inf, dual, certified=False), True
            _record(present, present.certificate)
        return "interrupted"
    return "converged" if code != "interrupted" and _is_converged(present) else code


def _record(present: Run, certificate: Certificate) -> None:
    state = present.state
    before = present.history.column("oracle_calls")[-1] if len(present.history) else 0
    present.history.record(certificate, present.passes, state.oracle_calls, state.argmax_calls, present.total_seconds)
    calls, unproven = state.oracle_calls - int(before), state.unproven - present.unproven
    present.history.annotate(proven=1.0 - unproven / calls if calls > 0 else 1.0)
    present.unproven = state.unproven
    if present.replaced:
        present.history.annotate(workers_replaced=present.replaced)


def _is_converged(present: Run) -> bool:
    if present.certificate is None:
        return False
    small = present.certificate.relative_gap <= present.tol
    if not small and present.tol > 0:  # an optimum of 0 has no relative gap: rounding of where the run began must do
        primal = present.history.column("primal")  # later ones can be anything: searches may leave bounds wide open
        small = present.certificate.gap <= ROUNDING * np.abs(primal[np.isfinite(primal)][:1]).sum()
    return small and present.solver.may_end(present.state)


def _begin(solver: Solver[P, S], problem: P, tol: float, warm: State | None, resume: Resume | None) -> Run[P, S]:
    begin, compiled = time.perf_counter(), _compile_seconds()
    if resume is None:
        return Run(solver, problem, solver.init(problem, warm), tol, begin=begin, compiled=compiled)
    if isinstance(resume, (str, os.PathLike)):
        from maxmargin.persistence.checkpoint import load_checkpoint

        resume = load_checkpoint(resume)
    whole = Saved(resume, "")
    saved, earlier = whole.part("state"), whole.part("run")
    if not earlier:
        raise ValueError("resume holds no run: give it a file that the callback Checkpoint wrote, or its arrays.")
    try:
        present = Run(solver, problem, solver.from_arrays(problem, saved), tol, begin=begin, compiled=compiled)
        present.history = History.from_arrays(whole.part("history"))
        present.earlier, present.resumed = float(earlier.reals("seconds", (), SECONDS)), True
        present.steps = int(earlier.whole("steps", np.int64, (), COUNT)) if "steps" in earlier else 1
        fresh = earlier.flag("fresh") and len(present.history) > 0
        twin = solver.from_arrays(problem, saved) if fresh else None
    except KeyError as error:
        raise ValueError(
            f"resume holds no {error.args[0]!r}: it was saved with another loss or by another family of solvers; "
            "resume with the same."
        ) from error
    if len(present.history):
        present.certificate = present.history.last_certificate()
        present.fresh = fresh and bool(np.isfinite(present.certificate.primal))
    if present.fresh and twin is not None:  # believed only if it can be found again; on a twin, which it may change
        _compare(present.certificate, solver.certificate(twin), whole)
    return present


def _compare(saved: Certificate | None, found: Certificate, whole: Saved) -> None:
    """Refuse a saved certificate that is not that of the saved weights."""
    assert saved is not None
    size = max(abs(saved.primal), abs(saved.dual)) if np.isfinite(saved.dual) else abs(saved.primal)
    same = agree(saved.primal, found.primal, size) and agree(saved.dual, found.dual, size)
    if not (same and saved.certified == found.certified):
        raise whole.refusal("history/primal", f"and history/dual end with {saved}, but the state has {found}")


def _validate(tol: float, limits: Mapping[str, float | None], warm: State | None, resume: Resume | None) -> None:
    if not tol >= 0:
        raise ValueError(f"tol must be a relative gap >= 0, got {tol}")
    for name, limit in limits.items():
        if limit is not None and not limit >= 0:
            raise ValueError(f"{name} must be >= 0 or None for no limit, got {limit}")
    if warm is not None and resume is not None:
        raise ValueError("warm and resume exclude each other: a resumed run starts from its own state")


def _compile_seconds() -> float:
    """Seconds spent on kernels so far; 0 when no kernel was loaded, in which case numba stays unloaded too."""
    module = sys.modules.get("maxmargin.kernel")
    return module.compile_seconds() if module is not None else 0.0
