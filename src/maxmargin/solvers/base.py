"""What every solver object of the public face is, and the one check of a solver against a problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from maxmargin.certificate import Certificate
from maxmargin.contracts import InnerSolver, Oracle, Problem
from maxmargin.needs import require
from maxmargin.oracles.part import HoldsParts
from maxmargin.parameters import Parameters

if TYPE_CHECKING:
    from maxmargin.solvers.state import InnerState

__all__ = ["BaseSolver", "Engine", "check_solver", "is_doubtful", "one_blas_thread", "resolved"]

OTHER_FAMILY = "warm start needs the same loss and a solver of the same family as before; else set warm_start=False."
T = TypeVar("T")
EPS = float(np.finfo(np.float64).eps)
COARSE = 1e-4  # share of a cost: rounding errors of the scores beyond it hide what is left to gain
PATIENCE = 10  # certificates without progress, after which coarse scores end a run


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products of matrices on one thread: others only wait in a fit, and results must not depend on the cores."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


class BaseSolver(Parameters):
    """A solver with its own words, to be put into an estimator; stopping belongs to the estimator.

    ``handles`` names the traits (:data:`maxmargin.needs.TRAITS`) of the problems that it can solve, alone or inside
    an outer solver.
    """

    handles: frozenset[str] = frozenset()
    incremental: bool = False  # whether it learns example by example, so that there is partial_fit

    @abstractmethod
    def engine(self, problem: Problem, random_state: int | np.random.Generator | None = None) -> InnerSolver:
        """What the driver runs."""

    def count(self, n_examples: int) -> int:
        """The number of shards into which it cuts so many examples, wherever these are."""
        return 1

    def setting(self, kind: type[T], **others: Any) -> T:
        """A setting of an engine (a dataclass): its parameters of the same name as those here, and the others given."""
        own = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        return kind(**({name: x for name, x in self.get_params(deep=False).items() if name in own} | others))


class Engine:
    """What an engine without rounds answers the driver, unless it says otherwise."""

    passes_per_round: float | None = None  # of CCCP: the gap decides
    free_certificates = False

    def may_end(self, state: Any) -> bool:
        """Always: there are no rounds."""
        return True

    def finished(self, state: Any) -> str | None:
        """Only the gap, the budgets or a stall end a run."""
        return None

    def conclude(self, state: Any, certificate: Certificate, code: str) -> Certificate:
        """The run ends where it stands."""
        return certificate


def is_doubtful(state: InnerState, certificate: Certificate) -> bool:
    """Whether to ask if rounding hides the objective: long without progress, or a dual above the primal."""
    return state.without_gain >= PATIENCE or certificate.violates_duality()


def resolved(state: InnerState, certificate: Certificate, total: float, cost: float) -> Certificate:
    """Note whether rounding hides the objective (``state.coarse``); if so, a dual above the primal proves nothing.

    With features up to x and multipliers up to ``total``, ``u = sum alpha a`` is exact to ``eps total x`` and
    ``w . a`` to ``eps total x^2``, which is compared with the largest ``cost``.
    """
    with np.errstate(over="ignore"):
        noise = EPS * np.float64(total) * np.float64(largest_number(state.oracle)) ** 2
    state.coarse = not noise <= COARSE * cost
    untrue = state.coarse and certificate.violates_duality()
    return Certificate(certificate.primal, -np.inf, certified=False) if untrue else certificate


def largest_number(oracle: Oracle) -> float:
    """The largest number among the data of a compiled model, features above all; 0 for a model in plain Python."""
    spread = oracle.spread()
    if spread is not None and isinstance(spread[0], HoldsParts) and spread[0].elsewhere is not None:
        return spread[0].elsewhere.largest
    fused = oracle.fused()
    numbers = np.empty(0) if fused is None else np.abs(fused.kernel.floats)
    return float(numbers.max(initial=0.0, where=np.isfinite(numbers)))


def check_solver(name: str, handles: frozenset[str], problem: Problem) -> None:
    """Refuse a problem that a solver, by the name its reader knows, cannot handle, and say which ones can."""
    from maxmargin.solvers.presets import SOLVERS

    able = [f'"{other}"' for other, kind in SOLVERS.items() if problem.traits <= kind.handles]
    remedy = f"use solver={' or '.join(able)}" if able else "write a solver that declares it in handles"
    require("this problem", problem.traits, name, handles, remedy)
