"""One variable of a Bayesian network from the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli.demos.outcome import BLUE, GREEN
from maxmargin.datasets.small import load_garden
from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Diagnosed", "run"]

PLACES = {  # of the variables in the picture
    "season": (0.5, 1.0), "rain": (0.2, 0.68), "sun": (0.62, 0.68), "pests": (0.95, 0.5), "sprinkler": (0.0, 0.4),
    "soil": (0.42, 0.3), "plant": (0.7, 0.0),
}  # fmt: skip


@dataclass(frozen=True)
class Diagnosed:
    """States of the plants in the test rows, those that were found, and how probable each was."""

    model: DiscriminativeBayesNet
    truth: np.ndarray
    found: np.ndarray
    probabilities: np.ndarray  # (n, states), in the order of model.classes_

    def lines(self) -> Iterator[str]:
        """The share that is right, and how sure the network was."""
        yield f"plants right               {100 * np.mean(self.truth == self.found):5.1f} %"
        yield f"probability of the found   {100 * self.probabilities.max(axis=1).mean():5.1f} % on average"

    def draw(self, figure: Figure) -> None:
        """The graph of the network, and the counts of true and found states."""
        left, right = figure.subplots(1, 2)
        names = self.model.network_.names
        for name, parents in zip(names, self.model.network_.parents, strict=True):
            for parent in parents:
                arrow = {"arrowstyle": "->", "color": "0.4", "shrinkA": 16, "shrinkB": 16}
                left.annotate("", PLACES[name], PLACES[names[parent]], arrowprops=arrow)
        for name, (x, y) in PLACES.items():
            colour = GREEN if name == "plant" else BLUE
            box = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": "none"}
            left.text(x, y, name, ha="center", va="center", color="white", bbox=box)
        left.set(xlim=(-0.15, 1.1), ylim=(-0.12, 1.12), title="The network")
        left.axis("off")
        states = [str(state) for state in self.model.classes_]
        table = np.array([[np.sum((self.truth == a) & (self.found == b)) for b in states] for a in states])
        right.imshow(table, cmap="Greens")
        for (row, column), count in np.ndenumerate(table):
            colour = "white" if count > table.max() / 2 else "black"
            right.text(column, row, str(count), ha="center", va="center", color=colour)
        right.set_xticks(range(len(states)), states)
        right.set_yticks(range(len(states)), states)
        right.set(xlabel="found", ylabel="true", title="Plants of 100 test rows")


def run() -> Diagnosed:
    """A Bayesian network: what ails the plant, from what is known of the garden; the probabilities stay real ones."""
    garden = load_garden()
    train = {name: column[:300] for name, column in garden.data.items()}
    test = {name: column[300:] for name, column in garden.data.items()}
    net = DiscriminativeBayesNet.from_bif(garden.network, target="plant", C=0.3).fit(train, target="plant")
    found, probabilities = net.predict(test), net.predict_proba(test)
    return Diagnosed(net, np.array(test["plant"]), np.asarray(found), probabilities)
