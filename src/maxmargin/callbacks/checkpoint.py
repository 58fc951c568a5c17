"""Save the run every few certificates or seconds."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

from maxmargin.callbacks.base import Callback, Run

__all__ = ["Checkpoint"]


class Checkpoint(Callback):
    """Write the run to one file, atomically, each time either interval has passed, and at the end.

    Where that fails, as on a full disk, a warning says so, the file that was there stays, and training goes on.

    Parameters
    ----------
    path : path-like
        The file; each write replaces it. Continue with ``resume=path``.
    every : int, optional
        Certificates between two writes.
    seconds : float, optional
        Seconds between two writes, checked at each certificate. Without either interval, every certificate is saved.
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int | None = None, seconds: float | None = None) -> None:
        if every is not None and every < 1:
            raise ValueError(f"every must be at least 1 certificate, got {every}")
        if seconds is not None and not seconds >= 0:
            raise ValueError(f"seconds must be >= 0, got {seconds}")
        self.path, self.every, self.seconds = Path(path), every, seconds

    def on_begin(self, run: Run) -> None:
        folder = self.path.parent
        if not folder.is_dir():  # fail now, not after an hour of training
            raise FileNotFoundError(f"the folder {folder} of the checkpoint does not exist; create it first")
        self._rows, self._saved_at = len(run.history), time.monotonic()

    def on_certificate(self, run: Run) -> None:
        every = 1 if self.every is None and self.seconds is None else self.every
        count_due = every is not None and len(run.history) - self._rows >= every
        time_due = self.seconds is not None and time.monotonic() - self._saved_at >= self.seconds
        if count_due or time_due:
            self._save(run)

    def on_end(self, run: Run) -> None:
        if run.status is not None and len(run.history) > self._rows:  # after an error, keep the last good file
            self._save(run)

    def _save(self, run: Run) -> None:
        try:
            run.save(self.path)
        except OSError as error:  # a full disk must not cost the training that the checkpoint is to protect
            kept = "the checkpoint before it stays" if self.path.exists() else "there is none yet"
            warnings.warn(
                f"the checkpoint {self.path} cannot be written ({error.strerror or error}): {kept}, and training goes "
                "on. Make room on the disk, or stop and resume with another path.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._rows, self._saved_at = len(run.history), time.monotonic()
