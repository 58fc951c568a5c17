"""Parts of speech of words."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from maxmargin.cli.demos.outcome import FALSE, GREEN
from maxmargin.datasets.small import load_sentences
from maxmargin.estimators.sequence_tagger import SequenceTagger
from maxmargin.metrics.tokens import sequence_accuracy, token_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Tagged", "run"]

SHOWN = 7  # sentences


@dataclass(frozen=True)
class Tagged:
    """Words of the test sentences, their tags, and those that were found."""

    model: SequenceTagger
    words: list[list[str]]
    truth: list[list[str]]
    found: Sequence[list[Hashable]]

    def lines(self) -> Iterator[str]:
        """Shares of words and sentences that are right, and the first sentence."""
        yield f"words right      {100 * token_accuracy(self.truth, self.found):5.1f} %"
        yield f"sentences right  {100 * sequence_accuracy(self.truth, self.found):5.1f} %"
        yield " ".join(f"{word}/{tag}" for word, tag in zip(self.words[0], self.found[0], strict=True))

    def draw(self, figure: Figure) -> None:
        """Sentences, those with mistakes first: green tags are right, of red ones the true tag stands beside."""
        wrong_first = sorted(range(len(self.words)), key=lambda i: self.truth[i] == self.found[i])
        ax = figure.subplots()
        for row, i in enumerate(wrong_first[:SHOWN]):
            for column, word in enumerate(self.words[i]):
                tag, true = self.found[i][column], self.truth[i][column]
                ax.text(column, -row, word, ha="center", va="bottom", fontsize=10)
                label = tag if tag == true else f"{tag} ({true})"
                ax.text(column, -row - 0.1, label, ha="center", va="top", fontsize=7, color="white", bbox={
                    "boxstyle": "round,pad=0.25", "facecolor": GREEN if tag == true else FALSE, "edgecolor": "none",
                })  # fmt: skip
        longest = max(len(self.words[i]) for i in wrong_first[:SHOWN])
        ax.set(
            xlim=(-0.7, longest - 0.3), ylim=(-SHOWN + 0.4, 0.6), title="Found tags, and the true one where it differs"
        )
        ax.axis("off")


def run() -> Tagged:
    """Parts of speech: learn from 60 sentences, tag 340 others."""
    sentences = load_sentences()
    X, X_test, y, y_test = train_test_split(sentences.data, sentences.target, train_size=60, random_state=0)
    tagger = SequenceTagger(C=0.1).fit(X, y)
    found = tagger.predict(X_test)
    return Tagged(tagger, X_test, y_test, found)
