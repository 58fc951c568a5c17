"""Links between words and their translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maxmargin.cli.demos.outcome import FALSE, GREEN, MISSED
from maxmargin.datasets.links import Links, Pair
from maxmargin.datasets.small import load_bitext
from maxmargin.estimators.aligner import Aligner
from maxmargin.metrics.alignments import alignment_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Aligned", "run"]


@dataclass(frozen=True)
class Aligned:
    """Test pairs with their links, and those that were found with further pairs of sentences and without."""

    model: Aligner
    pairs: list[tuple[list[str], list[str]]]
    truth: list[Links]
    found: list[list[Pair]]
    without: list[list[Pair]]

    def lines(self) -> Iterator[str]:
        """Alignment error rates."""
        for name, found in (("with 240 pairs without links", self.found), ("without them", self.without)):
            yield f"alignment error rate {name:28}  {100 * alignment_report(self.truth, found).error_rate:5.1f} %"

    def draw(self, figure: Figure) -> None:
        """Three pairs as tables, the longest first."""
        longest = sorted(range(len(self.pairs)), key=lambda i: -len(self.pairs[i][0]))[:3]
        for ax, i in zip(figure.subplots(1, 3), longest, strict=True):
            (left, right), truth, found = self.pairs[i], self.truth[i], set(self.found[i])
            ax.set_xticks(range(len(right)), right, rotation=60)
            ax.set_yticks(range(len(left)), left)
            ax.set(xlim=(-0.5, len(right) - 0.5), ylim=(len(left) - 0.5, -0.5), aspect="equal")
            ax.grid(color="0.92")
            ax.set_axisbelow(True)
            marks = {GREEN: found & (truth.sure | truth.possible), MISSED: truth.sure - found}
            for colour, links in (marks | {FALSE: found - truth.sure - truth.possible}).items():
                ax.scatter([j for _, j in links], [i for i, _ in links], s=90, marker="s", color=colour)
        figure.suptitle("Links: right (green), missed (yellow), false (red)")


def run() -> Aligned:
    """Word alignment: learn from 10 linked sentence pairs and 240 without links, link 50 others."""
    text = load_bitext()
    pairs, links, test, truth = text.data[:10], text.target[:10], text.data[10:], text.target[10:]
    aligner = Aligner().fit(pairs, links, bitext=text.bitext)
    found = aligner.predict(test)
    without = Aligner().fit(pairs, links).predict(test)
    return Aligned(aligner, test, truth, found, without)
