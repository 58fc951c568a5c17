"""A log for programs: one JSON object per line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from maxmargin.callbacks.base import Callback, Run

__all__ = ["JsonLog"]


@dataclass(repr=False, eq=False)
class JsonLog(Callback):
    """Append lines with "event" = "begin", "certificate" or "end" to a file.

    A certificate line is the row of the history; the end line has the status and where the seconds went. Numbers
    that are not finite are written as null, so every line is strict JSON. If ``file`` is a path it is opened
    for appending when the run begins, and closed when it ends; an open text file stays open.
    """

    file: str | os.PathLike[str] | TextIO

    def on_begin(self, run: Run) -> None:
        self._owned = isinstance(self.file, str | os.PathLike)
        self._out = open(self.file, "a", encoding="utf-8") if isinstance(self.file, str | os.PathLike) else self.file
        facts = {"solver": type(run.solver).__name__, "n_examples": run.problem.n_examples, "tol": run.tol}
        self._write("begin", facts)

    def on_certificate(self, run: Run) -> None:
        self._write("certificate", run.history.rows[-1])

    def on_end(self, run: Run) -> None:
        error = {"status": None, "sentence": "The run ended with an error."}
        end = error if run.status is None else {"status": run.status.code, "sentence": run.status.sentence}
        self._write("end", {**end, "seconds": run.seconds})
        if self._owned:
            self._out.close()

    def _write(self, event: str, entries: Mapping[str, object]) -> None:
        line = json.dumps(_strict({"event": event, **entries}), allow_nan=False, default=str)
        self._out.write(line + "\n")
        self._out.flush()  # others read the log during the run


def _strict(value: object) -> object:
    """Numpy values as plain ones, numbers that are not finite as None."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _strict(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
