"""The three hooks of a callback, and the parts of a run that it may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

__all__ = ["Callback", "Run"]


class Certificate(Protocol):
    """Bounds on the optimum at the current weights."""

    @property
    def relative_gap(self) -> float: ...


class Status(Protocol):
    """Why a run ended."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def code(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def converged(self) -> bool: ...


class History(Protocol):
    """One row per certificate."""

    @property
    def rows(self) -> Sequence[Mapping[str, object]]: ...
    def annotate(self, **extras: object) -> None:
        """Add entries to the newest row."""
        ...

    def __len__(self) -> int: ...


class Problem(Protocol):
    """The problem that a run solves."""

    @property
    def n_examples(self) -> int: ...


class Run(Protocol):
    """A run in progress. ``status`` is None until the run ends, and stays None when it ends with an error."""

    @property
    def solver(self) -> object: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def tol(self) -> float: ...
    @property
    def history(self) -> History: ...
    @property
    def certificate(self) -> Certificate | None: ...
    @property
    def status(self) -> Status | None: ...
    @property
    def passes(self) -> float: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def evaluate(self) -> Callable[[np.ndarray, object, object], float] | None:
        """``evaluate(weights, X, y)`` scores held-out examples while an estimator is being fitted."""
        ...

    def weights(self) -> np.ndarray:
        """The current weights; copy them to keep them."""
        ...

    def to_arrays(self) -> dict[str, np.ndarray]:
        """State and history, for a checkpoint."""
        ...

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint."""
        ...


class Callback:
    """Hooks of a run; each does nothing unless a callback defines it."""

    def on_begin(self, run: Run) -> None:
        """Before the first step; a resumed run already has a history."""

    def on_certificate(self, run: Run) -> str | None:
        """After each certificate. Return "stop" to end the run."""

    def on_end(self, run: Run) -> None:
        """After the last certificate, and also when the run ends with an error."""
