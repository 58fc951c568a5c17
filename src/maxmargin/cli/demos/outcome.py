"""What every demo gives back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from maxmargin.estimators.base import Structured

__all__ = ["BLUE", "FALSE", "GREEN", "MISSED", "Outcome"]

GREEN, BLUE, MISSED, FALSE = "#2a9d5c", "#3b6fb6", "#c9971c", "#c8413b"  # right, given, missing, wrong


class Outcome(Protocol):
    """A fitted estimator and what it did on examples that it had not seen."""

    @property
    def model(self) -> Structured: ...

    def lines(self) -> Iterable[str]:
        """What to print about the test examples."""
        ...

    def draw(self, figure: Figure) -> None:
        """The picture."""
        ...
