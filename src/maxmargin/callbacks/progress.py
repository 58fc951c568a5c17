"""Show the progress of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from maxmargin.callbacks.base import Callback, Run

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["Progress"]

_HEAD = f"{'pass':>8} {'calls':>10} {'seconds':>9} {'primal':>13} {'dual':>13} {'rel. gap':>9}"


class Progress(Callback):
    """A live table on a terminal (when rich is installed), one clean line per certificate elsewhere.

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

        table = Table(title=f"{type(run.solver).__name__}, tol {run.tol:.2g}")
        for name in ("pass", "oracle calls", "seconds", "primal", "dual", "relative gap"):
            table.add_column(name, justify="right")
        for row in run.history.rows[-self.rows :]:
            table.add_row(*_line(row).split())
        return table


def _line(row: Mapping[str, object]) -> str:
    return (
        f"{row['pass']:8.2f} {row['oracle_calls']:10d} {row['seconds']:9.2f} {row['primal']:13.6g} "
        f"{row['dual']:13.6g} {row['relative_gap']:9.2e}"
    )
