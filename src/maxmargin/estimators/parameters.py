"""The parameters that estimators share: each stands here once, with its default, its meaning and its check.

An estimator is a dataclass with keyword arguments. It declares what it adds, or what has another default there, and
inherits the rest; the line :data:`SHARED` of its docstring gives way to what its bases say of the parameters that it
does not describe itself. scikit-learn reads the constructor that comes of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import TypeGuard, TypeVar, dataclass_transform

import numpy as np

from maxmargin.callbacks.base import Callback
from maxmargin.execution.ray_workers import Ray
from maxmargin.formulations.ramp import Ramp
from maxmargin.solvers.base import BaseSolver

__all__ = ["SHARED", "Training", "check_tol", "parameters"]

ALL_AT_ONCE = 'partial_fit is for loss="hinge" and "squared_hinge"; the ramp needs all examples at once.'
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
        Weight of the losses: ``1/2 |w|^2 + C sum_i s_i loss_i``, or another R(w) by ``penalty``; larger fits the
        training data more closely.
    loss : {"hinge", "squared_hinge", "ramp"} or Ramp
        A ramp is bounded, so that wrong labels can do little harm; it is minimised by a sequence of convex fits (CCCP).
        "ramp" is ``Ramp()``; :class:`~maxmargin.formulations.ramp.Ramp` says which others there are, where training
        begins, and how many convex fits it makes.
    solver : str or solver object
        "auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane", "pegasos", "sgd", "perceptron",
        "mira", "sharded", "column_generation" and "recentred_dual" (for ``penalty="l1"``), or an object of one of
        their classes. "sharded" shares out a whole fit among ``n_jobs`` workers: the choice for several cores, see
        :class:`~maxmargin.solvers.sharded.Sharded`.
    tol : float
        Relative duality gap at which training ends.
    max_passes, max_oracle_calls, max_seconds : number or None
        Budgets. A fit that ends by one of them warns, and is usable.
    n_jobs : int or None
        Number of workers; None is 1, -1 all cores. The default solver asks its oracle on several of them but does the
        rest of the fit on one; ``solver="sharded"`` uses them for the whole fit. The weights do not depend on it.
    executor : {"auto", "serial", "threads", "processes", "ray"} or Ray
        What workers are. "auto" is threads, or processes for models in plain Python. "ray" is actors of a Ray cluster,
        :class:`~maxmargin.execution.ray_workers.Ray` says which; there ``n_jobs=None`` is all of its processors. The
        weights do not depend on it.
    random_state : int or None
    verbose : int
        1 shows progress.
    callbacks : list of Callback, optional
    warm_start : bool
        Start from the multipliers of the previous fit; the examples must be the same, C may differ.
    """

    C: float = 1.0
    loss: str | Ramp = "hinge"
    solver: str | BaseSolver = "auto"
    tol: float = 1e-3
    max_passes: float | None = 1000
    max_oracle_calls: int | None = None
    max_seconds: float | None = None
    n_jobs: int | None = None
    executor: str | Ray = "auto"
    random_state: int | np.random.Generator | np.random.RandomState | None = 0
    verbose: int = 0
    callbacks: Sequence[Callback] | None = None
    warm_start: bool = False

    def _ramp(self) -> Ramp | None:
        """The ramp that ``loss`` stands for; None for a convex loss."""
        return self.loss if isinstance(self.loss, Ramp) else Ramp() if self.loss == "ramp" else None

    def _check_budgets(self) -> None:
        check_tol(self.tol)
        for name in ("max_passes", "max_oracle_calls", "max_seconds"):
            value = vars(self)[name]
            if value is not None and not (_is_float(value) and value > 0):
                raise ValueError(f"{name} must be a positive number or None, got {value!r:.60}.")


def check_tol(tol: object) -> None:
    """Refuse anything but a relative duality gap."""
    if not _is_float(tol) or not float(tol) >= 0:
        raise ValueError(f"tol must be a relative duality gap >= 0, got {tol!r:.60}.")


def _is_float(value: object) -> TypeGuard[float]:
    """Whether a value is a number that a float can hold."""
    if isinstance(value, int):
        return abs(value) < 2**1000
    return isinstance(value, (float, np.integer, np.floating))
