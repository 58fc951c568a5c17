"""Labels of the nodes of graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

from maxmargin.cli.demos.outcome import FALSE, GREEN
from maxmargin.datasets.small import load_houses
from maxmargin.estimators.graph_labeler import GraphLabeler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Recognised", "run"]

SHOWN = 4  # houses


@dataclass(frozen=True)
class Recognised:
    """Kinds of the rooms of the test houses, and those that were found."""

    model: GraphLabeler
    truth: Sequence[list[str]]
    found: Sequence[np.ndarray]

    def lines(self) -> Iterator[str]:
        """Shares of rooms and of whole houses that are right, and how the labels were found."""
        both = zip(self.truth, self.found, strict=True)
        right = np.array([[a == b for a, b in zip(true, found, strict=True)] for true, found in both])
        yield f"rooms right        {100 * right.mean():5.1f} %"
        yield f"whole houses right {100 * right.all(axis=1).mean():5.1f} %"
        yield f"found by           {', '.join(self.model.method_)}"

    def draw(self, figure: Figure) -> None:
        """Houses as circles of rooms: green ones are right, under red ones stands the true kind."""
        for ax, true, found in zip(figure.subplots(1, SHOWN), self.truth, self.found, strict=False):
            angle = 2 * np.pi * np.arange(len(true)) / len(true)
            ax.plot(np.cos(np.append(angle, 0)), np.sin(np.append(angle, 0)), color="0.6", zorder=1)
            for a, right, kind in zip(angle, true, found, strict=True):
                label, colour = (str(kind), GREEN) if kind == right else (f"{kind}\n({right})", FALSE)
                box = {"boxstyle": "round,pad=0.3", "facecolor": colour, "edgecolor": "none"}
                ax.text(np.cos(a), np.sin(a), label, ha="center", va="center", fontsize=7, color="white", bbox=box)
            ax.set(xlim=(-1.5, 1.5), ylim=(-1.4, 1.4), aspect="equal")
            ax.axis("off")
        figure.suptitle("Rooms of four houses, and the true kind where it differs")


def run() -> Recognised:
    """Graphs: recognise the rooms of a house, which have doors to each other."""
    houses = load_houses()
    X, X_test, y, y_test = train_test_split(houses.data, houses.target, random_state=0)
    labeler = GraphLabeler(C=1.0).fit(X, y)
    found = labeler.predict(X_test)
    return Recognised(labeler, y_test, found)
