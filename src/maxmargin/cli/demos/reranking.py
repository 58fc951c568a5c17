"""The best of a list of translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli.demos.outcome import BLUE, GREEN
from maxmargin.datasets.small import load_nbest
from maxmargin.estimators.lattice_ranker import LatticeRanker
from maxmargin.metrics.translation import bleu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Reranked", "run"]

NAMES = {"lm0": "language model", "tm0": "translation model", "d0": "moved words", "w0": "word penalty"}


@dataclass(frozen=True)
class Reranked:
    """References of the test lists, the first hypothesis of the system, and the one that was learned to choose."""

    model: LatticeRanker
    truth: list[str]
    first: list[str]
    found: list[str]

    def lines(self) -> Iterator[str]:
        """How good both choices are."""
        for name, outputs in (("first of the system", self.first), ("learned choice", self.found)):
            right = np.mean([one == other for one, other in zip(outputs, self.truth, strict=True)])
            yield f"{name:20} BLEU {bleu(outputs, self.truth).score:5.1f}, {100 * right:3.0f} % as in the reference"

    def draw(self, figure: Figure) -> None:
        """The learned weights, and BLEU before and after."""
        left, right = figure.subplots(1, 2)
        names = [NAMES[name] for name in self.model.layout_.names()]
        left.barh(names, self.model.coef_, color=BLUE)
        left.axvline(0.0, color="0.4", linewidth=1)
        left.set(title="Learned weights")
        scores = [bleu(outputs, self.truth).score for outputs in (self.first, self.found)]
        bars = right.bar(["first of the system", "learned choice"], scores, color=["0.6", GREEN], width=0.6)
        right.bar_label(bars, fmt="%.1f")
        right.set(title="BLEU on 20 test lists", ylim=(0, 110))


def run() -> Reranked:
    """Reranking: learn from 40 n-best lists to choose the best translation, try it on 20 others."""
    lists = load_nbest()
    ranker = LatticeRanker(C=1.0).fit(lists.data[:40], lists.target[:40])
    found = ranker.predict(lists.data[40:])
    first = [hypotheses.words[0] for hypotheses in lists.data[40:]]
    return Reranked(ranker, lists.target[40:], first, found)
