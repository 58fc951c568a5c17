"""Three word alignment models, learned from a bitext without any links; see the kernel for the formulas.

A :class:`Lexicon` numbers the words and the word pairs of a bitext, and :class:`WordModels` hold what was learned of
them: how well two words translate each other by models 1 and 2 and by the hidden Markov model, in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Bitext", "Lexicon", "Translation", "WordModel", "WordModels", "learn"]

Words = Sequence[str]
SentencePair = tuple[Words, Words]
ABSENT = 0.2  # probability that a word has no partner
LEAST = 1e-6  # t of a word pair that training would take to 0


class Bitext(NamedTuple):
    """Sentence pairs as numbers of words, -1 for those that are unknown, and of word pairs in the lexicon."""

    left: np.ndarray  # int64 (pairs + 1,): where the left words of each pair begin
    right: np.ndarray
    at: np.ndarray  # int64 (pairs + 1,): where its cells begin
    left_words: np.ndarray  # int32
    right_words: np.ndarray
    cells: np.ndarray  # int32, (n, m) of each pair

    def table(self, values: np.ndarray, s: int) -> np.ndarray:
        """Values (cells,) of one pair as (n, m)."""
        shape = int(self.left[s + 1] - self.left[s]), int(self.right[s + 1] - self.right[s])
        return values[self.at[s] : self.at[s + 1]].reshape(shape)


@dataclass(frozen=True)
class Lexicon:
    """The words of both sides, and the word pairs that occur together."""

    left: dict[str, int]  # the number of each word
    right: dict[str, int]
    left_count: np.ndarray  # float64: sentences with each word
    right_count: np.ndarray
    keys: np.ndarray  # int64, rising: left * n_right + right of each word pair
    together: np.ndarray  # float64: sentence pairs with both words

    @classmethod
    def of(cls, pairs: Sequence[SentencePair]) -> Lexicon:
        """All words and word pairs of a bitext. O(sum of n m)."""
        counts = [Counter(word for pair in pairs for word in dict.fromkeys(pair[side])) for side in (0, 1)]
        left, right = ({word: k for k, (word, _) in enumerate(count.most_common())} for count in counts)
        numbers = [np.array([n for _, n in count.most_common()] or [0], np.float64) for count in counts]
        rows = [np.unique(_keys(pair, left, right)) for pair in pairs]
        keys, together = np.unique(np.concatenate([np.empty(0, np.int64), *rows]), return_counts=True)
        return cls(left, right, numbers[0], numbers[1], keys, together.astype(np.float64))

    @property
    def owners(self) -> np.ndarray:
        """The left and the right word of each word pair, int64 (2, entries)."""
        return np.stack(np.divmod(self.keys, len(self.right_count)))

    @property
    def dice(self) -> np.ndarray:
        """Twice the sentence pairs with both words over the sentences with each, (entries,)."""
        left, right = self.owners
        return 2.0 * self.together / (self.left_count[left] + self.right_count[right])

    def read(self, pairs: Sequence[SentencePair]) -> Bitext:
        """Sentence pairs as numbers."""
        left, left_words = _numbers((pair[0] for pair in pairs), self.left)
        right, right_words = _numbers((pair[1] for pair in pairs), self.right)
        keys = np.concatenate([np.empty(0, np.int64), *(_keys(pair, self.left, self.right) for pair in pairs)])
        place = np.searchsorted(self.keys, keys)
        known = np.append(self.keys, -1)[place] == keys
        cells = np.where(known & (keys >= 0), place, -1).astype(np.int32)
        return Bitext(left, right, _offsets(np.diff(left) * np.diff(right)), left_words, right_words, cells)

    def of_cells(self, bitext: Bitext, values: np.ndarray) -> np.ndarray:
        """Values (entries,) of every cell, 0 where the word pair is unknown."""
        return np.append(values, 0.0)[bitext.cells]


class Translation(NamedTuple):
    """How well words translate each other."""

    pairs: np.ndarray  # float64 (2, entries): t(right | left) and t(left | right)
    none_right: np.ndarray  # t of each right word without a partner
    none_left: np.ndarray


class WordModel(NamedTuple):
    """One model: how well words translate each other, and how likely places (model 2) or steps (Markov) are."""

    translation: Translation
    places: np.ndarray  # float64 (2, 2 REACH + 1), in both directions; model 1 has no use for them


@dataclass(frozen=True)
class WordModels:
    """What was learned from a bitext."""

    lexicon: Lexicon
    one: WordModel
    two: WordModel
    markov: WordModel

    def posteriors(self, bitext: Bitext, name: str) -> np.ndarray:
        """What a model says of every cell, (2, cells): right words choose left ones, and the other way round.

        The names are "one", "two" and "markov".
        """
        from maxmargin.features.word_models_kernel import MARKOV, ONE, TWO, expect

        given, kind = {"one": (self.one, ONE), "two": (self.two, TWO), "markov": (self.markov, MARKOV)}[name]
        found, none, moved = np.empty((2, len(bitext.cells))), np.empty(0), np.zeros_like(given.places)
        expect(
            *bitext, *given.translation, given.places, kind, ABSENT, True, np.empty((2, 0)), none, none, moved, found
        )
        return found


def learn(pairs: Sequence[SentencePair], iterations: int = 5, *, agree: bool = True) -> WordModels:
    """Model 1, then from where that ended model 2 and the hidden Markov model. O(iterations * sum of n m (n + m)).

    Without ``agree`` each direction learns by itself, as in the papers of the models.
    """
    from maxmargin.features.word_models_kernel import MARKOV, ONE, REACH, TWO

    lexicon = Lexicon.of(pairs)
    bitext = lexicon.read(pairs)
    sizes = len(lexicon.left_count), len(lexicon.right_count)
    partners = [np.bincount(owner, minlength=n)[owner] for owner, n in zip(lexicon.owners, sizes, strict=True)]
    even = Translation(1.0 / np.stack(partners), np.full(sizes[1], 1.0 / sizes[1]), np.full(sizes[0], 1.0 / sizes[0]))
    away = np.arange(-REACH, REACH + 1)
    near, ahead = (np.exp(-np.abs(away - d) / 3.0) * np.ones((2, 1)) for d in (0, 1))  # steps are mostly one ahead

    def learned(now: WordModel, kind: int) -> WordModel:
        for _ in range(iterations):
            now = _improved(lexicon, bitext, now, kind, agree)
        return now

    one = learned(WordModel(even, near), ONE)
    two, markov = (learned(WordModel(one.translation, places), kind) for places, kind in ((near, TWO), (ahead, MARKOV)))
    return WordModels(lexicon, one, two, markov)


def _improved(lexicon: Lexicon, bitext: Bitext, now: WordModel, kind: int, agree: bool) -> WordModel:
    """One step of expectation and maximisation."""
    from maxmargin.features.word_models_kernel import expect

    counts = Translation(*map(np.zeros_like, now.translation))
    moved = np.full_like(now.places, 0.1)
    expect(*bitext, *now.translation, now.places, kind, ABSENT, agree, *counts, moved, np.empty((2, 0)))
    rows = []
    for owner, count, size in zip(
        lexicon.owners, counts.pairs, (len(lexicon.left_count), len(lexicon.right_count)), strict=True
    ):
        rows.append(np.maximum(count / (np.bincount(owner, count, size) + 1e-9)[owner], LEAST))
    none = [count / max(count.sum(), 1e-9) for count in counts[1:]]
    return WordModel(Translation(np.stack(rows), *none), moved / moved.sum(axis=1, keepdims=True))


def _offsets(lengths: ArrayLike) -> np.ndarray:
    """Where parts of these lengths begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _numbers(sentences: Iterable[Words], code: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Where sentences begin, and the numbers of their words."""
    rows = [[code.get(word, -1) for word in sentence] for sentence in sentences]
    return _offsets([len(row) for row in rows]), np.array([number for row in rows for number in row], np.int32)


def _keys(pair: SentencePair, left: dict[str, int], right: dict[str, int]) -> np.ndarray:
    """Keys of all word pairs of a sentence pair, (n m,), -1 where a word is unknown."""
    rows = np.array([left.get(word, -1) for word in pair[0]], np.int64)[:, None]
    columns = np.array([right.get(word, -1) for word in pair[1]], np.int64)
    return np.where((rows >= 0) & (columns >= 0), rows * max(1, len(right)) + columns, -1).ravel()
