"""A phrase-based decoder in which adjacent phrases may swap: lattices and k best outputs with 14 dense features.

    six orientation probabilities (monotone, swap, other; before and after a phrase), trigram language model,
    p(e | f), p(f | e), lex(e | f), lex(f | e), and penalties: -words, -phrases, -distance

all of them logs or negative counts, so that more is better. Phrases are taken from left to right, or two neighbouring
ones in reverse, as in Wang, Shawe-Taylor 2009, section 5.2. The search itself is in :mod:`decoder_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from decoder_kernel import k_best_distinct, max_marginals, search
from language_model import UNKNOWN, LanguageModel
from phrases import LONGEST, PhraseTable

from maxmargin.datasets import Lattice

__all__ = ["FEATURES", "START", "Decoder", "Output", "SearchGraph"]

FEATURES = (
    "before monotone", "before swap", "before other", "after monotone", "after swap", "after other", "language model",
    "p(e|f)", "p(f|e)", "lex(e|f)", "lex(f|e)", "words", "phrases", "distance",
)  # fmt: skip
LANGUAGE, FIXED, DISTANCE = 6, slice(7, 13), 13  # columns; those of FIXED depend on the phrase pair alone
START = np.array([0.05] * 6 + [0.5] + [0.2] * 4 + [-1.0, 0.0, 0.1])  # weights to begin with, near those of Moses
NO_PHRASE = np.log(1e-4)  # translation scores of a word that is copied because nothing translates it


class Options(NamedTuple):
    """Phrase pairs that fit a sentence, ordered by span; see :func:`decoder_kernel.search`."""

    place: np.ndarray  # int (n, longest + 1)
    first: np.ndarray  # int (n_options + 1,)
    words: np.ndarray  # numbers in the language model; from its size on, positions of copied words
    pair: np.ndarray  # int (n_options,): in the phrase table, -1 for a copied word
    fixed: np.ndarray  # float (n_options, 6): features of the phrase pair alone
    orientation: np.ndarray  # float (n_options, 6)
    text: list[tuple[str, ...]]


class Output(NamedTuple):
    """A translation, its features (14,), its score, and the arcs of its path."""

    words: tuple[str, ...]
    features: np.ndarray
    score: float
    arcs: np.ndarray


@dataclass(frozen=True)
class SearchGraph:
    """The lattice of a sentence: node 0 is the beginning, the last one the end, every arc leads to a later node.

    Parameters
    ----------
    n_nodes : int
    tails, heads : int array (A,)
        Arcs in order of their heads.
    features : float array (A, 14)
    option, before, after : int array (A,)
        Phrase pair (in ``options``) and orientations of each arc.
    state : int array (n_nodes, 2)
        The last two words at each node, as numbers of the language model.
    options : Options
    """

    n_nodes: int
    tails: np.ndarray
    heads: np.ndarray
    features: np.ndarray
    option: np.ndarray
    before: np.ndarray
    after: np.ndarray
    state: np.ndarray
    options: Options

    def words(self, arc: int) -> tuple[str, ...]:
        """The words of an arc."""
        return self.options.text[self.option[arc]]

    def lattice(self, scale: np.ndarray | float = 1.0) -> Lattice:
        """The lattice of :mod:`maxmargin`, features divided by a scale."""
        words = [" ".join(self.words(a)) for a in range(len(self.tails))]
        return Lattice(self.n_nodes, self.tails, self.heads, self.features / scale, words, FEATURES)

    def pruned(self, w: np.ndarray, most: int) -> SearchGraph:
        """The arcs whose best path is among the ``most`` best, and of the nodes those on paths to the end."""
        value = np.empty(len(self.tails))
        max_marginals(self.n_nodes, self.tails, self.heads, self.features @ w, value)
        alive = np.flatnonzero(np.isfinite(value))
        if not len(alive):
            raise ValueError("the lattice has no path from its beginning to its end.")
        kept = np.sort(alive[np.argsort(-value[alive], kind="stable")[:most]])
        # the best path through an arc is kept whole: each of its arcs has a path that is at least as good
        floor = value[kept].min() - 1e-9 * max(1.0, float(np.abs(value[kept]).max()))
        kept = np.flatnonzero(value >= floor)
        nodes = np.union1d([0, self.n_nodes - 1], np.concatenate([self.tails[kept], self.heads[kept]]))
        tails, heads = np.searchsorted(nodes, self.tails[kept]), np.searchsorted(nodes, self.heads[kept])
        parts = (self.features[kept], self.option[kept], self.before[kept], self.after[kept], self.state[nodes])
        return SearchGraph(len(nodes), tails, heads, *parts, self.options)

    def k_best(self, w: np.ndarray, k: int) -> list[Output]:
        """The k best outputs with distinct words, each by its best path."""
        first, flat = self._arc_words()
        begin = np.searchsorted(self.heads, np.arange(self.n_nodes + 1))
        shape = (self.n_nodes, k)
        best, arc, rank = np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64)
        hashed, count = np.empty(shape, np.uint64), np.zeros(self.n_nodes, np.int64)
        scores = self.features @ w
        found = k_best_distinct(
            self.n_nodes, begin, self.tails, scores, first, flat, k, best, arc, rank, hashed, count
        )  # fmt: skip
        outputs = []
        for r in range(found):
            path, node, at = [], self.n_nodes - 1, r
            while node:
                a = int(arc[node, at])
                path.append(a)
                node, at = int(self.tails[a]), int(rank[node, at])
            path.reverse()
            words = tuple(word for a in path for word in self.words(a))
            outputs.append(Output(words, self.features[path].sum(axis=0), float(best[-1, r]), np.array(path)))
        return outputs

    def sparse_features(self, model: LanguageModel) -> tuple[sp.csr_array, list[str]]:
        """Indicators of arcs and their names: known trigrams, phrase pairs, and pairs with the orientation before them.

        Trigrams and pairs are named by the numbers that they have in the language model and in the phrase table.
        """
        names: dict[str, int] = {}
        rows, columns = [], []
        for a in range(len(self.tails)):
            o = int(self.option[a])
            u, v = self.state[self.tails[a]].tolist()
            found = []
            for word in self.options.words[self.options.first[o] : self.options.first[o + 1]].tolist():
                w = word if word < model.n_words else UNKNOWN
                if model.knows(u, v, w):
                    found.append(f"trigram {u} {v} {w}")
                u, v = v, w
            pair = int(self.options.pair[o])
            if pair >= 0:
                found += [f"pair {pair}", f"pair {pair} {FEATURES[self.before[a]]}"]
            rows += [a] * len(found)
            columns += [names.setdefault(name, len(names)) for name in found]
        matrix = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(self.tails), len(names)))
        return matrix, list(names)

    def _arc_words(self) -> tuple[np.ndarray, np.ndarray]:
        """Words of all arcs, row-compressed."""
        sizes = np.diff(self.options.first)[self.option]
        first = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.options.first[self.option] - first[:-1], sizes) + np.arange(first[-1])
        return first, np.ascontiguousarray(self.options.words[at])


@dataclass(frozen=True)
class Decoder:
    """Translates sentences.

    Parameters
    ----------
    table : PhraseTable
    model : LanguageModel
    most_options : int
        Phrase pairs of one source phrase.
    swapped : int
        Words of a phrase that may swap.
    beam, gap_beam : int
        States that are kept of those with the same source words, without and with a gap.
    threshold : float
        Score by which a state may fall behind the best one.
    """

    table: PhraseTable
    model: LanguageModel
    most_options: int = 12
    swapped: int = 3
    beam: int = 40
    gap_beam: int = 8
    threshold: float = 12.0

    def options(self, source: Sequence[str]) -> Options:
        """The phrase pairs that fit a sentence, the best of each span by a fixed estimate."""
        n, size = len(source), self.model.n_words
        place = np.zeros((n, LONGEST + 1), np.int64)
        pair, text = [], []
        for i in range(n):
            for l in range(1, LONGEST + 1):
                place[i, l - 1] = len(pair)
                if i + l > n:
                    continue
                chosen = self._likely(source[i : i + l])
                for p in chosen:
                    pair.append(p)
                    text.append(self.table.targets[p])
                if l == 1 and not chosen:
                    pair.append(-1)
                    text.append((source[i],))
            place[i, LONGEST] = len(pair)
        which = np.array(pair, np.int64)
        lengths = [len(words) for words in text]
        words = [number for words in text for number in self.model.ids(words)]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        copied = which < 0
        fixed = np.full((len(which), 6), NO_PHRASE)
        fixed[~copied, :4] = self.table.scores[which[~copied]]
        fixed[:, 4], fixed[:, 5] = -np.array(lengths), -1.0
        orientation = np.full((len(which), 6), np.log(1 / 3))
        orientation[~copied] = self.table.orientations[which[~copied]]
        flat = np.array(words, np.int64)
        places = {int(first[o]): i for i in range(n) for o in range(int(place[i, 0]), int(place[i, 1])) if which[o] < 0}
        for at, i in places.items():
            flat[at] = size + i
        return Options(place, first, flat, which, fixed, orientation, text)

    def _likely(self, phrase: Sequence[str]) -> list[int]:
        """The best pairs of a source phrase: translation scores in equal parts."""
        found = self.table.pairs(phrase)
        estimate = self.table.scores[found.start : found.stop].sum(axis=1)
        return [found.start + int(p) for p in np.argsort(-estimate, kind="stable")[: self.most_options]]

    def search(self, source: Sequence[str], w: np.ndarray, options: Options | None = None) -> SearchGraph:
        """The lattice of a sentence at weights (14,); dead ends are left out."""
        if not len(source):
            raise ValueError("an empty sentence has no translation; leave it out.")
        options = self.options(source) if options is None else options
        nodes, arcs, language = search(
            tuple(self.model.tables), len(source), LONGEST, self.swapped, options.place, options.first, options.words,
            options.fixed @ w[FIXED], np.ascontiguousarray(options.orientation * w[:LANGUAGE]),
            np.array([w[LANGUAGE], w[DISTANCE]]), self.beam, self.gap_beam, self.threshold,
        )  # fmt: skip
        by_head = np.argsort(arcs[:, 1], kind="stable")
        return self._graph(nodes, arcs[by_head], language[by_head], options).pruned(w, len(arcs))

    def _graph(self, nodes: np.ndarray, arcs: np.ndarray, language: np.ndarray, options: Options) -> SearchGraph:
        """What the search has found, with features; it begins at two nodes, one for each promise, here they are one."""
        tails, heads = np.maximum(arcs[:, 0] - 1, 0), arcs[:, 1] - 1
        option, before, after = arcs[:, 2], arcs[:, 3], arcs[:, 4]
        features = np.zeros((len(arcs), len(FEATURES)))
        row = np.arange(len(arcs))
        features[row, before] = options.orientation[option, before]
        features[row, 3 + after] = options.orientation[option, 3 + after]
        features[:, LANGUAGE], features[:, FIXED], features[:, DISTANCE] = language, options.fixed[option], -arcs[:, 5]
        state = np.where(nodes[1:, :2] < self.model.n_words, nodes[1:, :2], UNKNOWN)
        parts = (np.ascontiguousarray(tails), np.ascontiguousarray(heads), features, option, before, after, state)
        return SearchGraph(len(nodes) - 1, *parts, options)
