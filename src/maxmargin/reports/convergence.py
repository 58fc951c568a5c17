"""Plots of the gap in one or several histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Rows", "columns", "plot_convergence", "require_matplotlib"]


@runtime_checkable
class Columns(Protocol):
    """A pandas frame, or a dict of columns."""

    def keys(self) -> Iterable[str]: ...
    def __getitem__(self, name: str, /) -> ArrayLike: ...


Rows = Columns | Iterable[Mapping[str, float]]

LABELS = {"pass": "oracle passes", "seconds": "seconds", "oracle_calls": "oracle calls", "argmax_calls": "argmax calls"}
MARKED = 60  # longer curves get no markers, which would hide them
FLOOR = 1e-16  # stands for a gap of exactly 0 on the logarithmic axis


def plot_convergence(
    histories: Mapping[str, Rows],
    axes: object = None,
    *,
    against: Sequence[str] = ("pass", "seconds"),
    tol: float | None = None,
) -> np.ndarray:
    """Plot the relative gap (logarithmic) against oracle passes and seconds.

    Parameters
    ----------
    histories : mapping of names to histories
        ``history_`` of fitted estimators (tables or lists of rows) or :class:`~maxmargin.solvers.history.History`.
    axes : matplotlib axes or sequence of them, optional
        One per entry of ``against``; a new figure by default.
    against : sequence of {"pass", "seconds", "oracle_calls", "argmax_calls"}
        Quantities on the horizontal axes.
    tol : float, optional
        Draw a line at this relative gap.

    Returns
    -------
    array of matplotlib axes
        A gap of 0 is drawn at 1e-16; gaps that are not finite are left out.
    """
    pyplot = require_matplotlib()
    against = [against] if isinstance(against, str) else list(against)
    unknown = [column for column in against if column not in LABELS]
    if unknown:
        raise ValueError(f"against has the unknown entry {unknown[0]!r}; use {', '.join(LABELS)}.")
    if not histories:
        raise ValueError("there is no history to plot; pass {name: estimator.history_}.")
    if axes is None:
        size = (4.6 * len(against), 3.6)
        _, axes = pyplot.subplots(1, len(against), figsize=size, sharey=True, layout="constrained")
    axes = np.atleast_1d(np.asarray(axes, dtype=object))
    if len(axes) != len(against):
        raise ValueError(f"{len(axes)} axes for {len(against)} columns ({', '.join(against)}); give one per column.")
    source, curves = "history_ of a fitted estimator", {}
    for name, history in histories.items():
        curve = columns(name, history, ["relative_gap", *against], source)
        shown = np.isfinite(curve["relative_gap"])
        curves[name] = {column: values[shown] for column, values in curve.items()}
    for position, (ax, column) in enumerate(zip(axes, against, strict=True)):
        for name, curve in curves.items():
            gap = np.maximum(curve["relative_gap"], FLOOR)
            marker = "o" if len(gap) <= MARKED else None
            ax.plot(curve[column], gap, marker=marker, markersize=2.5, linewidth=1.4, label=name)
        if tol is not None:
            ax.axhline(tol, color="0.5", linestyle="--", linewidth=0.9, label=f"tol {tol:g}")
        ax.set_yscale("log")
        ax.set_xlabel(LABELS[column])
        ax.grid(True, which="major", alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        if position == 0:
            ax.set_ylabel("relative gap")
    axes[-1].legend(frameon=False, fontsize="small")
    return axes


def require_matplotlib() -> ModuleType:
    """The module ``matplotlib.pyplot``, or an ImportError that says how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install matplotlib") from error
    return pyplot


def columns(name: str, rows: Rows, wanted: Sequence[str], source: str) -> dict[str, np.ndarray]:
    """Columns of a table, or of a list of rows, as float64; ``source`` says where proper rows come from."""
    try:
        if isinstance(rows, Columns):
            return {column: np.asarray(rows[column], np.float64) for column in wanted}
        listed = list(rows)
        return {column: np.array([row[column] for row in listed], np.float64) for column in wanted}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name!r} lacks one of {', '.join(wanted)}; pass {source}.") from error
