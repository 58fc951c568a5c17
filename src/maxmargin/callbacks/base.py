"""The three moments at which a callback hears of a run."""

from __future__ import annotations

from typing import Any

__all__ = ["Callback"]


class Callback:
    """Hooks of a run; each does nothing unless a callback defines it.

    ``run`` offers ``solver``, ``problem``, ``state``, ``tol``, ``history`` (``history.annotate(name=value)`` adds to
    the newest row), ``certificate``, ``passes``, ``seconds``, ``weights()``, ``to_arrays()``, ``save(path)`` and, at
    the end, ``status`` (None when the run ended with an error).
    """

    def on_begin(self, run: Any) -> None:
        """Before the first step; a resumed run already has a history."""

    def on_certificate(self, run: Any) -> str | None:
        """After each certificate. Return "stop" to end the run."""

    def on_end(self, run: Any) -> None:
        """After the last certificate, and also when the run ends with an error."""
