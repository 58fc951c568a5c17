"""Sets of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

from maxmargin.cli.demos.outcome import FALSE, GREEN, MISSED
from maxmargin.datasets.small import load_recipes
from maxmargin.estimators.multilabel_classifier import MultilabelClassifier
from maxmargin.metrics.label_sets import micro_f1, subset_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Labelled", "run"]

SHOWN = 20  # recipes


@dataclass(frozen=True)
class Labelled:
    """Indicators (n, n_labels) of the test recipes, and those that were found."""

    model: MultilabelClassifier
    names: list[str]
    truth: np.ndarray
    found: object

    def lines(self) -> Iterator[str]:
        """Shares of labels and of whole sets that are right, and the pair of labels with the largest weight."""
        found = np.asarray(self.found)
        yield f"micro F1           {100 * micro_f1(self.truth, found):5.1f} %"
        yield f"whole sets right   {100 * subset_accuracy(self.truth, found):5.1f} %"
        pair = self.model.edges_[int(np.argmax(self.model.edge_coef_))]
        yield f"go together best:  {' and '.join(self.names[int(label)] for label in pair)}"  # type: ignore[call-overload]

    def draw(self, figure: Figure) -> None:
        """One column per recipe, one row per label."""
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        truth, found = self.truth[:SHOWN].T.astype(int), np.asarray(self.found)[:SHOWN].T.astype(int)
        ax = figure.subplots()
        names = {"not a label": "0.93", "right": GREEN, "missed": MISSED, "false": FALSE}
        kind = np.where(truth == 1, np.where(found == 1, 1, 2), np.where(found == 1, 3, 0))
        ax.pcolormesh(kind, cmap=ListedColormap(list(names.values())), vmin=0, vmax=3, edgecolors="white", linewidth=2)
        ax.set_yticks(np.arange(len(self.names)) + 0.5, self.names)
        ax.set_xticks([])
        ax.invert_yaxis()
        ax.set(xlabel="test recipes", title="Labels of recipes")
        patches = [Patch(color=colour, label=name) for name, colour in names.items()]
        figure.legend(handles=patches, loc="outside lower center", ncols=4, frameon=False)


def run() -> Labelled:
    """Label sets: what a cookbook prints on recipes, by their ingredients; a weight for each pair of labels."""
    recipes = load_recipes()
    X, X_test, y, y_test = train_test_split(recipes.data, recipes.target, random_state=0)
    classifier = MultilabelClassifier(graph="full", C=0.1).fit(X, y)
    found = classifier.predict(X_test)
    return Labelled(classifier, recipes.target_names, y_test, found)
