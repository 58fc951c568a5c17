"""The parameters that estimators share: each stands here once, with its default, its meaning and its check.

An estimator is a dataclass with keyword arguments. It declares what it adds, or what has another default there, and
inherits the rest; the line :data:`SHARED` of its docstring gives way to what its bases say of the parameters that it
does not describe itself. scikit-learn reads the constructor that comes of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar, dataclass_transform

import numpy as np

__all__ = ["SHARED", "Training", "check_tol", "parameters"]

SHARED = "... and the parameters that all estimators share; see maxmargin.estimators.parameters."

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: type[T]) -> type[T]:
    """Class decorator: annotated names are arguments of the constructor, and the docstring describes them all."""
    if cls.__doc__:  # there are none under python -OO
        cls.__doc__ = _completed(cls)
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


def _completed(cls: type) -> str:
    """The docstring of a class with the descriptions of its bases in it, the nearest first, each parameter once."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    said = {name for names, _ in _described(doc) for name in names}
    added = []
    for base in (kind for kind in cls.__mro__[1:] if is_dataclass(kind)):
        for names, text in _described(inspect.cleandoc(base.__doc__ or "")):
            if said.isdisjoint(names):
                added.append(text)
            said.update(names)
    return doc.replace(SHARED, "\n".join(added))


def _described(doc: str) -> Iterator[tuple[list[str], str]]:
    """Names and text of each entry in the section Parameters of a docstring."""
    section = re.search(r"^Parameters\n-+\n(.+?)(?:\n\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    for text in re.split(r"\n(?=\S)", section[1]) if section else []:
        yield text.partition(" :")[0].split(", "), text


@parameters
class Training:
    """What every estimator can be told about its training.

    Parameters
    ----------
    C : float
        Weight of the losses: ``1/2 |w|^2 + C sum_i s_i loss_i``; larger fits the training data more closely.
    loss : {"hinge", "squared_hinge", "ramp"}
        "ramp" is bounded, so that wrong labels can do little harm; it is minimised by a sequence of convex fits (CCCP).
    ramp : {"cost_diminished", "best_output", "cost_diminished_vs_best"} or pair of float
        Which ramp; see :class:`~maxmargin.formulations.ramp.Ramp`.
    max_rounds, passes_per_round : number or None
        Of CCCP, for the ramp: the most convex fits, and passes for each; None lets the gap decide.
    start : {"zero", "hinge"}, fitted estimator or array
        Where a ramp fit begins: at zero weights (its first round is then the hinge), from a hinge fit, or from a model.
    solver : str or solver object
        "auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane", "pegasos", "sgd", "perceptron",
        "mira", or an object of one of their classes.
    tol : float
        Relative duality gap at which training ends.
    max_passes, max_oracle_calls, max_seconds : number or None
        Budgets. A fit that ends by one of them warns, and is usable.
    n_jobs : int or None
        Workers for oracle calls: threads, or processes for models in plain Python. The weights do not depend on it.
    random_state : int or None
    verbose : int
        1 shows progress.
    callbacks : list of Callback, optional
    warm_start : bool
        Start from the multipliers of the previous fit; the examples must be the same, C may differ.
    """

    C: float = 1.0
    loss: str = "hinge"
    ramp: Any = "cost_diminished"
    max_rounds: int | None = None
    passes_per_round: float | None = None
    start: Any = "zero"
    solver: Any = "auto"
    tol: float = 1e-3
    max_passes: float | None = 1000
    max_oracle_calls: int | None = None
    max_seconds: float | None = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0
    callbacks: list | None = None
    warm_start: bool = False

    def _budgets(self) -> dict[str, Any]:
        """When training ends, as the driver takes it; checked."""
        check_tol(self.tol)
        names = ("max_passes", "max_oracle_calls", "max_seconds")
        for name in names:
            _check_budget(name, getattr(self, name))
        _check_budget("passes_per_round", self.passes_per_round)
        rounds, start = self.max_rounds, self.start
        if rounds is not None and not (isinstance(rounds, (int, np.integer)) and rounds >= 1):
            raise ValueError(f"max_rounds must be a whole number >= 1 or None, got {rounds!r}.")
        if isinstance(start, str) and start not in ("zero", "hinge"):
            raise ValueError(f'start must be "zero", "hinge", a fitted estimator or an array; got {start!r}.')
        return {name: getattr(self, name) for name in ("tol", *names)}


def check_tol(tol: Any) -> None:
    """Refuse what is no relative duality gap."""
    if not isinstance(tol, (int, float, np.number)) or not tol >= 0:
        raise ValueError(f"tol must be a relative duality gap >= 0, got {tol!r}.")


def _check_budget(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, (int, float, np.number)) and value > 0):
        raise ValueError(f"{name} must be a positive number or None, got {value!r}.")
