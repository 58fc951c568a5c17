"""The three hooks of a callback, and the parts of a run that it may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from maxmargin.certificate import Certificate

__all__ = ["Callback", "Run"]


class Status(Protocol):
    @property
    def code(self) -> str: ...
    @property
    def sentence(self) -> str: ...


class History(Protocol):
    @property
    def rows(self) -> Sequence[Mapping[str, object]]: ...
    def annotate(self, **extras: object) -> None: ...
    def __len__(self) -> int: ...


class Problem(Protocol):
    @property
    def n_examples(self) -> int: ...


class Run(Protocol):
    """A run in progress.

    ``history.annotate(name=value)`` adds to the newest row. ``evaluate(weights, X, y)`` scores held-out examples during
    the fit of an estimator. Copy ``weights()`` to keep them. ``status`` is None until the run ends, and stays None when
    it ends with an error.
    """

    tol: float
    certificate: Certificate | None
    limits: Mapping[str, float | None]  # max_passes, max_oracle_calls, max_seconds

    @property
    def solver(self) -> object: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def history(self) -> History: ...
    @property
    def status(self) -> Status | None: ...
    @property
    def passes(self) -> float: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def evaluate(self) -> Callable[[np.ndarray, object, object], float] | None: ...
    def weights(self) -> np.ndarray: ...
    def save(self, path: str | Path) -> Path: ...


class Callback:
    """Hooks of a run; each does nothing unless a callback defines it."""

    def on_begin(self, run: Run) -> None:
        """Before the first step; a resumed run already has a history."""

    def on_certificate(self, run: Run) -> str | None:
        """After each certificate. Return "stop" to end the run."""

    def on_end(self, run: Run) -> None:
        """After the last certificate, and also when the run ends with an error."""
