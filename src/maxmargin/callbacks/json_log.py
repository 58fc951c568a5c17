"""A log for programs: one JSON object per line."""

from __future__ import annotations

import json
import math
import os
from typing import IO, Any

from maxmargin.callbacks.base import Callback

__all__ = ["JsonLog"]


class JsonLog(Callback):
    """Append lines with "event" = "begin", "certificate" or "end" to a file.

    A certificate line is the row of the history; the end line has the status and the split of the seconds. Numbers
    that are not finite are written as null, so every line is strict JSON.

    Parameters
    ----------
    file : path-like or open text file
        A path is opened for appending when the run begins and closed when it ends; an open file stays open.
    """

    def __init__(self, file: str | os.PathLike[str] | IO[str]) -> None:
        self.file = file

    def on_begin(self, run: Any) -> None:
        self._owned = isinstance(self.file, str | os.PathLike)
        self._out = open(self.file, "a", encoding="utf-8") if isinstance(self.file, str | os.PathLike) else self.file
        self._write(
            "begin", {"solver": type(run.solver).__name__, "n_examples": run.problem.n_examples, "tol": run.tol}
        )

    def on_certificate(self, run: Any) -> None:
        self._write("certificate", run.history[-1])

    def on_end(self, run: Any) -> None:
        status = run.status
        self._write(
            "end",
            {
                "status": status.code if status is not None else None,
                "sentence": status.sentence if status is not None else "The run ended with an error.",
                "seconds": run.seconds,
            },
        )
        if self._owned:
            self._out.close()

    def _write(self, event: str, entries: dict[str, Any]) -> None:
        line = json.dumps({"event": event, **_strict(entries)}, allow_nan=False, default=_number)
        self._out.write(line + "\n")
        self._out.flush()  # a log is read while the run goes on


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _strict(entry) for name, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return _strict(value.item()) if hasattr(value, "item") else str(value)
