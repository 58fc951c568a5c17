"""Conditional distributions as weights: where each lives, and the reference that training pulls it towards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin.models.base import offsets_of

__all__ = ["Tables", "reference_distribution"]

REFERENCES = ("uniform", "ml", "smoothed")


@dataclass(frozen=True)
class Tables:
    """Where each conditional distribution lives: table j is ``theta[starts[j]:starts[j + 1]]``."""

    starts: np.ndarray  # int64 (J + 1,)
    names: tuple[str, ...] | Callable[[int], str] = ()  # of tables, for messages and reports; empty for numbers

    def __post_init__(self) -> None:
        starts = np.ascontiguousarray(self.starts, np.int64)
        if starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or (np.diff(starts) < 1).any():
            raise ValueError("tables must begin at 0 and hold at least one entry each; leave out those that are empty.")
        if isinstance(self.names, tuple) and len(self.names) not in (0, len(starts) - 1):
            raise ValueError(f"{len(starts) - 1} tables have {len(self.names)} names; name every table or none.")
        object.__setattr__(self, "starts", starts)

    @staticmethod
    def of(sizes: Sequence[int] | np.ndarray, names: Sequence[str] = ()) -> Tables:
        """Tables of the given sizes, one after the other."""
        return Tables(offsets_of(sizes), tuple(names))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_weights(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def table(self) -> np.ndarray:
        """Table of each entry, (n_weights,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def name(self, j: int) -> str:
        """What messages call table j."""
        if callable(self.names):
            return self.names(j)
        return self.names[j] if self.names else f"table {j}"

    def sums(self, x: np.ndarray) -> np.ndarray:
        """Sum within each table along the last axis, (..., J)."""
        return np.add.reduceat(x, self.starts[:-1], axis=-1)

    def log_mass(self, theta: np.ndarray) -> np.ndarray:
        """``ln 1'e^{theta_j}`` of each table."""
        top = np.maximum.reduceat(theta, self.starts[:-1])
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return top + np.log(self.sums(np.exp(theta - top[self.table])))

    def feasible(self, theta: np.ndarray) -> np.ndarray:
        """The feasible shift: tables whose mass is above 1 are divided by it."""
        return theta - np.maximum(self.log_mass(theta), 0.0)[self.table]

    def anchor(self, reference: np.ndarray) -> np.ndarray:
        """``m = ln(c_j / 1'c_j)``, the reference as log-probabilities."""
        return np.log(reference) - np.log(self.sums(reference))[self.table]

    def normalised(self, theta: np.ndarray) -> np.ndarray:
        """Every table divided by its mass, so that all are distributions."""
        return theta - self.log_mass(theta)[self.table]


def reference_distribution(
    tables: Tables,
    reference: str | np.ndarray,
    counts: np.ndarray | None = None,
    *,
    smoothing: float = 1.0,
    floor: float = 1e-6,
) -> np.ndarray:
    """The distributions c that training pulls towards, (n_weights,), each table summing to 1; uniform without a count.

    The reference is "uniform", "ml", which divides ``counts``, how often each entry occurs in the training data,
    "smoothed", which adds ``smoothing`` to each before, or an array of a model's own probabilities. ``floor`` is the
    least probability: a reference of 0 would let theta run to minus infinity, and no bound could be proven.
    """
    if isinstance(reference, str):
        if reference not in REFERENCES:
            raise ValueError(f"reference must be {', '.join(REFERENCES)} or probabilities; got {reference!r}.")
        if reference != "uniform" and counts is None:
            raise ValueError(f'reference "{reference}" needs the counts of the training data.')
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise ValueError(f"smoothing must be a number >= 0, got {smoothing}.")
        c = np.zeros(tables.n_weights) if reference == "uniform" else np.asarray(counts, np.float64)
        c = c + smoothing if reference == "smoothed" else c
    else:
        c = np.array(reference, np.float64)
    if c.shape != (tables.n_weights,):
        raise ValueError(f"the reference must have {tables.n_weights} entries, one per weight; got shape {c.shape}.")
    bad = np.flatnonzero(~np.isfinite(c) | (c < 0))
    if len(bad):
        raise ValueError(f"the reference has {c[bad[0]]} in {tables.name(tables.table[bad[0]])}; use numbers >= 0.")
    if not (0 <= floor < 1):
        raise ValueError(f"floor must be a probability in [0, 1), got {floor}.")
    total, uniform = tables.sums(c)[tables.table], (1.0 / np.diff(tables.starts))[tables.table]
    c = np.where(total > 0, c / np.where(total > 0, total, 1.0), uniform)
    c = np.maximum(c, np.minimum(floor, uniform))
    if (c == 0).any():
        j = int(tables.table[np.flatnonzero(c == 0)[0]])
        raise ValueError(f"the reference has a zero in {tables.name(j)}; give a floor above 0, such as 1e-6.")
    return c / tables.sums(c)[tables.table]
