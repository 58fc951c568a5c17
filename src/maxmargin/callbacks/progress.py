"""Show the progress of a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from maxmargin.callbacks.base import Callback, Run

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["Progress", "seconds_left"]

Row = Mapping[str, object]
_HEAD = f"{'pass':>8} {'calls':>10} {'seconds':>9} {'primal':>13} {'dual':>13} {'rel. gap':>9}"


class Progress(Callback):
    """A live table on a terminal, with the time that is left; one clean line per certificate elsewhere.

    Parameters
    ----------
    file : open text file, optional
        Where to write; standard error by default.
    rows : int
        Number of rows in the live table.
    """

    def __init__(self, file: TextIO | None = None, *, rows: int = 8) -> None:
        self.file, self.rows = file, rows

    def on_begin(self, run: Run) -> None:
        self._out = self.file if self.file is not None else sys.stderr
        self._live = self._make_live()
        if self._live is not None:
            self._live.start()
        else:
            print(_HEAD, file=self._out, flush=True)

    def on_certificate(self, run: Run) -> None:
        if self._live is not None:
            self._live.update(self._table(run), refresh=True)
        else:
            print(_line(run.history.rows[-1]), file=self._out, flush=True)

    def on_end(self, run: Run) -> None:
        if self._live is not None:
            self._live.stop()
        if run.status is not None:
            print(run.status.sentence, file=self._out, flush=True)

    def _make_live(self) -> Live | None:
        if not self._out.isatty():
            return None
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            return None
        return Live(console=Console(file=self._out), auto_refresh=False)

    def _table(self, run: Run) -> Table:
        from rich.table import Table

        left = seconds_left(run.history.rows, run.tol, run.limits)
        told = "" if left is None else f"; about {_told(left)} left"
        table = Table(title=f"{type(run.solver).__name__}, tol {run.tol:.2g}{told}")
        for name in ("pass", "oracle calls", "seconds", "primal", "dual", "relative gap"):
            table.add_column(name, justify="right")
        for row in run.history.rows[-self.rows :]:
            table.add_row(*_line(row).split())
        return table


def seconds_left(rows: Sequence[Row], tol: float, limits: Mapping[str, float | None]) -> float | None:
    """When a run will end, from its certificates so far; None while nothing can be said.

    The gap goes on falling by the same factor per second as in the second half of the time so far, or a budget ends the
    run before that.
    """
    return min(_ends(rows, tol, limits), default=None)


def _ends(rows: Sequence[Row], tol: float, limits: Mapping[str, float | None]) -> Iterator[float]:
    """Seconds to each possible end of a run."""
    if not rows:
        return
    seconds, gap = _number(rows[-1], "seconds"), _number(rows[-1], "relative_gap")
    columns = {"max_passes": "pass", "max_oracle_calls": "oracle_calls", "max_seconds": "seconds"}
    for name, column in columns.items():
        limit, spent = limits.get(name), _number(rows[-1], column)
        if limit is not None and spent > 0:
            yield max(0.0, limit - spent) * seconds / spent
    half = next((row for row in rows if _number(row, "seconds") >= seconds / 2), rows[-1])
    before, since = _number(half, "relative_gap"), seconds - _number(half, "seconds")
    if tol > 0 and 0 < gap < before < math.inf and since > 0:
        yield max(0.0, math.log(gap / tol)) * since / math.log(before / gap)


def _number(row: Row, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, (int, float)) else math.nan


def _told(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _line(row: Row) -> str:
    return (
        f"{row['pass']:8.2f} {row['oracle_calls']:10d} {row['seconds']:9.2f} {row['primal']:13.6g} "
        f"{row['dual']:13.6g} {row['relative_gap']:9.2e}"
    )
