"""Plots of fitted estimators in the manner of scikit-learn's displays.

A display holds the numbers behind a picture. ``from_estimator`` computes them, and ``plot`` draws them on any
matplotlib axes, as often as you like; ``ax_`` and ``figure_`` are those of the last drawing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from maxmargin.datasets.links import as_links
from maxmargin.reports.convergence import Rows, plot_convergence, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from maxmargin.datasets.lattice import Lattice
    from maxmargin.estimators.aligner import Aligner
    from maxmargin.estimators.base import Structured
    from maxmargin.estimators.lattice_ranker import LatticeRanker

__all__ = ["AlignmentDisplay", "ConfusionDisplay", "GapDisplay", "LatticeDisplay", "WeightsDisplay"]

BLUE, GREEN, RED = "#2f6db3", "#2e8b57", "#c0392b"
MOST_LABELS = 30  # of a confusion matrix, those with the most errors
MOST_ARCS = 200  # of a lattice
Labelling = Iterable[Iterable[Hashable]]


class Display:
    """What all displays share: the axes that they were last drawn on."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _axes(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """The given axes, or those of a new figure."""
        if ax is None:
            _, ax = require_matplotlib().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@dataclass
class GapDisplay(Display):
    """How the certified gap of fits fell, against passes or seconds.

    Parameters
    ----------
    histories : mapping of names to histories
        ``history_`` of fitted estimators.
    tol : float, optional
        A line at this relative gap.

    Examples
    --------
    >>> from maxmargin import MulticlassClassifier
    >>> from maxmargin.reports import GapDisplay
    >>> classifier = MulticlassClassifier().fit([[0.0], [1.0]] * 4, ["low", "high"] * 4)
    >>> GapDisplay.from_estimator(classifier).ax_.get_ylabel()
    'relative gap'
    """

    histories: Mapping[str, Rows]
    tol: float | None = None

    @classmethod
    def from_estimator(
        cls, *estimators: Structured, names: Sequence[str] | None = None, ax: Axes | None = None, against: str = "pass"
    ) -> Self:
        """Draw the gap of one fitted estimator or several.

        Parameters
        ----------
        *estimators : fitted estimators
        names : sequence of str, optional
            One per estimator; by default its class, with a number where there are several.
        ax : matplotlib axes, optional
        against : {"pass", "seconds", "oracle_calls", "argmax_calls"}
        """
        if names is None:
            kinds = [type(one).__name__ for one in estimators]
            names = kinds if len(kinds) < 2 else [f"{kind} {k}" for k, kind in enumerate(kinds)]
        for one in estimators:
            one._check_fitted()
        tolerances = {float(one.tol) for one in estimators}
        histories = {name: one.history_ for name, one in zip(names, estimators, strict=True)}
        return cls(histories, tolerances.pop() if len(tolerances) == 1 else None).plot(ax, against=against)

    def plot(self, ax: Axes | None = None, *, against: str = "pass") -> Self:
        """Draw the curves."""
        plot_convergence(self.histories, [self._axes(ax, (5.2, 3.8))], against=[against], tol=self.tol)
        return self


@dataclass
class ConfusionDisplay(Display):
    """Which labels are taken for which; rows are true labels.

    Parameters
    ----------
    matrix : array (n_labels, n_labels)
        Counts of the pairs of a true label and a predicted one.
    labels : sequence
        Of its rows and columns.
    """

    matrix: np.ndarray
    labels: Sequence[Hashable]

    @classmethod
    def from_estimator(cls, estimator: Structured, X: object, y: object, *, ax: Axes | None = None) -> Self:
        """Predict examples and draw what is confused, for estimators whose outputs are made of labels.

        Parameters
        ----------
        estimator : fitted SequenceTagger, MulticlassClassifier, GraphLabeler or DiscriminativeHMM
        X, y : as in score
        ax : matplotlib axes, optional
        """
        estimator._check_fitted()
        both = estimator._labellings(y, estimator._predict_codes(estimator.weights_, X))
        if both is None:
            name = type(estimator).__name__
            raise ValueError(f"the outputs of a {name} are not one label for each part; use report instead.")
        return cls.from_predictions(*both, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: Labelling, y_pred: Labelling, *, ax: Axes | None = None) -> Self:
        """Draw what is confused, from label sequences; beyond 30 labels, those with the most errors.

        Parameters
        ----------
        y_true, y_pred : sequences of label sequences
        ax : matplotlib axes, optional
        """
        counts, errors = Counter[tuple[Hashable, Hashable]](), Counter[Hashable]()
        for i, (true, found) in enumerate(zip(y_true, y_pred, strict=True)):
            left, right = list(true), list(found)
            if len(left) != len(right):
                raise ValueError(f"example {i} has {len(left)} true labels and {len(right)} predicted ones.")
            counts.update(zip(left, right, strict=True))
        for (a, b), n in counts.items():
            for label in (a, b):
                errors[label] += n * (a != b)
        labels = sorted((label for label, _ in errors.most_common(MOST_LABELS)), key=str)
        table = np.array([[counts[a, b] for b in labels] for a in labels]).reshape(len(labels), len(labels))
        return cls(table, labels).plot(ax)

    def plot(self, ax: Axes | None = None, *, cmap: str = "Blues") -> Self:
        """Draw the matrix: shades are shares of the true label, numbers are counts."""
        n = len(self.labels)
        ax = self._axes(ax, (2.2 + 0.42 * n, 1.8 + 0.38 * n))
        shares = self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        for i, j in zip(*np.nonzero(self.matrix), strict=True):
            colour = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, f"{self.matrix[i, j]}", ha="center", va="center", color=colour, fontsize="small")
        ax.set_xticks(range(n), [str(label) for label in self.labels], rotation=60, ha="right")
        ax.set_yticks(range(n), [str(label) for label in self.labels])
        ax.set(xlabel="predicted", ylabel="true")
        return self


@dataclass
class WeightsDisplay(Display):
    """The strongest weights of a model, by name.

    Parameters
    ----------
    weights : mapping of names to weights
        Drawn from the top.
    """

    weights: Mapping[str, float]

    @classmethod
    def from_estimator(cls, estimator: Structured, *, top: int = 20, ax: Axes | None = None) -> Self:
        """Draw the weights of largest absolute value.

        Parameters
        ----------
        estimator : fitted estimator
        top : int
            How many.
        ax : matplotlib axes, optional
        """
        estimator._check_fitted()
        return cls(dict(estimator._strongest_weights(top))).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw one bar per weight."""
        names, values = list(self.weights), list(self.weights.values())
        ax = self._axes(ax, (6.0, 0.8 + 0.24 * len(names)))
        ax.barh(range(len(names)), values, color=[BLUE if value >= 0 else RED for value in values])
        ax.set_yticks(range(len(names)), names, fontsize="small")
        ax.invert_yaxis()
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_xlabel("weight")
        ax.spines[["top", "right"]].set_visible(False)
        return self


@dataclass
class AlignmentDisplay(Display):
    """The links between two sentences: filled where found, ringed where they should be.

    Parameters
    ----------
    left, right : sequences of words
    found : iterable of (int, int)
        Predicted links.
    true : Links, text such as "0-0 1-2", or iterable of (int, int), optional
        Known links.
    """

    left: Sequence[str]
    right: Sequence[str]
    found: Iterable[tuple[int, int]]
    true: object = None

    @classmethod
    def from_estimator(
        cls, aligner: Aligner, pair: tuple[str | Sequence[str], str | Sequence[str]], true: object = None,
        *, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Predict the links of one sentence pair and draw them.

        Parameters
        ----------
        aligner : fitted Aligner
        pair : two sentences, as text or as lists of words
        true : Links, text or pairs, optional
            Known links, for comparison.
        ax : matplotlib axes, optional
        """
        left, right = (side.split() if isinstance(side, str) else list(side) for side in pair)
        return cls(left, right, aligner.predict([pair])[0], true).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw words of the first sentence from top to bottom, those of the second from left to right."""
        rows, columns = len(self.left), len(self.right)
        ax = self._axes(ax, (1.6 + 0.45 * columns, 1.4 + 0.38 * rows))
        found = set(self.found)
        known = None if self.true is None else as_links(self.true, 0, (rows, columns))
        for i, j in found:
            right = known is None or (i, j) in known.sure or (i, j) in known.possible
            ax.scatter(j, i, s=90, color=GREEN if right else RED, zorder=2)
        for i, j in () if known is None else known.sure:
            ax.scatter(j, i, s=190, facecolors="none", edgecolors="0.25", zorder=3)
        ax.set_xticks(range(columns), self.right, rotation=45, ha="right")
        ax.set_yticks(range(rows), self.left)
        ax.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6))
        ax.grid(alpha=0.3)
        return self


@dataclass
class LatticeDisplay(Display):
    """A word lattice with one path marked.

    Parameters
    ----------
    lattice : Lattice
        Of at most 200 arcs.
    path : sequence of int
        Its arcs, in order.
    """

    lattice: Lattice
    path: Sequence[int] = ()

    @classmethod
    def from_estimator(cls, ranker: LatticeRanker, lattice: Lattice, *, ax: Axes | None = None) -> Self:
        """Draw a lattice and mark its best path.

        Parameters
        ----------
        ranker : fitted LatticeRanker
        lattice : Lattice
        ax : matplotlib axes, optional
        """
        ranker._check_fitted()
        (chosen,) = ranker._predict_codes(ranker.weights_, [lattice])
        return cls(lattice, [int(arc) for arc in chosen.arcs]).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw nodes from left to right, and arcs between the same two nodes as a fan."""
        x = self.lattice
        if x.n_arcs > MOST_ARCS:
            raise ValueError(f"the lattice has {x.n_arcs} arcs; more than {MOST_ARCS} cannot be read in a picture.")
        longest = np.zeros(x.n_nodes)
        for tail, head in sorted(zip(x.tails.tolist(), x.heads.tolist(), strict=True)):
            longest[head] = max(longest[head], longest[tail] + 1)
        ax = self._axes(ax, (2.0 + 1.5 * longest[-1], 3.4))
        level, seen = Counter[float](), Counter[tuple[int, int]]()
        height = np.zeros(x.n_nodes)
        for node in range(x.n_nodes):  # nodes of one column above and below each other
            k = level[longest[node]]
            level[longest[node]] += 1
            height[node] = (k + 1) // 2 * (1 if k % 2 else -1)
        marked = set(self.path)
        for arc, (tail, head) in enumerate(zip(x.tails.tolist(), x.heads.tolist(), strict=True)):
            k = seen[tail, head]
            seen[tail, head] += 1
            bend = 0.55 * ((k + 1) // 2) * (1 if k % 2 else -1) + 0.35 * (longest[head] - longest[tail] - 1)
            middle = (longest[tail] + longest[head]) / 2, (height[tail] + height[head]) / 2 + bend
            t = np.linspace(0, 1, 25)
            ends = (longest[tail], height[tail]), (longest[head], height[head])
            along = [
                (1 - t) ** 2 * a + 2 * t * (1 - t) * (2 * m - (a + b) / 2) + t**2 * b
                for a, m, b in zip(ends[0], middle, ends[1], strict=True)
            ]
            best = arc in marked
            ax.plot(*along, color=GREEN if best else "0.7", linewidth=2.4 if best else 1.0, zorder=1)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            weight = "bold" if best else "normal"
            ax.text(*middle, x.words[arc] or "ε", ha="center", va="center", fontsize=9, weight=weight, bbox=box)
        ax.scatter(longest, height, s=60, color="white", edgecolors="0.3", zorder=3)
        ax.margins(0.08, 0.15)
        low, high = ax.get_ylim()
        ax.set_ylim(min(low, -1.0), max(high, 1.0))  # few arcs stay flat
        ax.axis("off")
        return self
