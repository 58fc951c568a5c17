"""From right sentences to what a lattice model learns from: costs of arcs and good paths.

**Lists.** The cost of a hypothesis is that of its text, exactly: 1 less its smoothed sentence BLEU, or any function.

**Lattices.** BLEU is no sum over arcs. There an arc costs

    sum over its words of (price - share of the n-grams that end in the word and are right) / length of what is right

with n = 1, ..., 4, as far back as all paths to the arc say the same: lattices of a decoder with a trigram model tell
two words before each arc (Tromble et al. 2008, Lattice minimum Bayes-risk decoding, for gains of this kind). The cost
of a path is that of its arcs less that of the good path. The good path says a right sentence, where one is in the
lattice; else it is the best by the true cost among the 100 cheapest outputs at a price of 1/2.

The price of a word is half the share that words of the good path have: then a wrong word too many costs as much as a
word of the good path that is missing. With a higher price long outputs are the worst ones, and training learns to say
little (``experiments/translation/lattices.py`` shows it).

A function of a whole text cannot be taken apart so: on lattices it only says which outputs are good, which is enough
where these must win by 1 (``n_good``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.datasets.lattice import Lattice
from maxmargin.door import LARGEST_FEATURE
from maxmargin.inference.paths import k_best_paths
from maxmargin.metrics.translation import sentence_bleu
from maxmargin.models.lattice_targets import Target

__all__ = [
    "COSTS",
    "ArcShares",
    "Judged",
    "TextCost",
    "arc_shares",
    "as_sentences",
    "bleu_cost",
    "cheapest",
    "judged",
    "n_gram_distance",
    "text_cost",
]

ORDER = 4  # the longest n-grams that gains look at
N_CANDIDATES = 100  # outputs of a lattice among which its best is looked for

Words = list[str]
TextCost = Callable[[Words, list[Words]], float]


class Judged(NamedTuple):
    """Costs of arcs, and good paths, each with an output of its own, the best first; none without a bad output."""

    target: Target
    good: list[np.ndarray]


def bleu_cost(hypothesis: Words, right: list[Words]) -> float:
    """1 less the smoothed BLEU of a sentence, from 0 to 1."""
    return 1.0 - sentence_bleu(hypothesis, right) / 100.0


COSTS: dict[str, TextCost] = {"bleu": bleu_cost}
OWN = "own"  # what a model file holds in place of a function


def text_cost(given: object) -> TextCost:
    """The cost of a text by its name, or a user's function."""
    if callable(given):
        return given
    if given == OWN:
        what = 'cost is "own", a function that the model file could not hold'
        raise ValueError(f"{what}; give it again with set_params(cost=...).")
    if not isinstance(given, str) or given not in COSTS:
        raise ValueError(f"cost is {given!r:.60}; give {', '.join(COSTS)} or a function.")
    return COSTS[given]


def as_sentences(given: object) -> list[Words] | None:
    """Right sentences: one text, or a list of texts or of lists of words; None for anything else."""
    if isinstance(given, str):
        return [given.split()]
    if not isinstance(given, (list, tuple)) or not given:
        return None
    if all(isinstance(sentence, str) for sentence in given):
        return [sentence.split() for sentence in given]
    if all(isinstance(s, (list, tuple)) and s and all(isinstance(word, str) for word in s) for s in given):
        return [list(sentence) for sentence in given]
    return None


def judged(lattice: Lattice, right: list[Words], cost: TextCost, n_good: int, example: int) -> Judged:
    """Costs of the arcs of a lattice by its right sentences, and its ``n_good`` best outputs."""
    known: dict[str, float] = {}

    def cost_of(text: str) -> float:
        if text not in known:
            value = cost(text.split(), right)
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not abs(value) <= LARGEST_FEATURE:
                raise ValueError(f"example {example}: the cost of {text!r:.60} is {value!r:.40}; it must be a number.")
            known[text] = float(value)
        return known[text]

    if lattice.flat:
        costs = np.array([cost_of(text) for text in lattice.words])
        candidates = [np.array([e], np.int32) for e in range(lattice.n_arcs)]
    else:
        shares = arc_shares(lattice, right)
        costs = shares.costs(0.5)
        said = (lattice.path_of(" ".join(words)) for words in right)
        found = k_best_paths(lattice.tails, lattice.heads, -costs, N_CANDIDATES, labels=lattice.words)
        candidates = [np.array(path, np.int32) for path in said if path is not None] + [path.arcs for path in found]
    distinct = _distinct(lattice, candidates)
    ranked = [distinct[text] for text in sorted(distinct, key=cost_of)]  # the first of equal ones first
    if not lattice.flat:
        costs = shares.costs(shares.price(ranked[0]))
    return Judged(Target(costs, ranked[0]), ranked[: min(n_good, len(ranked) - 1)])


def cheapest(lattice: Lattice, target: Target, n_good: int) -> Judged:
    """A target by its arcs, and the ``n_good`` outputs of least cost, the good path first."""
    if lattice.flat:  # of equal ones the first
        paths = list(np.argsort(target.costs, kind="stable").astype(np.int32)[:, None])
    else:
        found = k_best_paths(lattice.tails, lattice.heads, -target.costs, n_good + 1, labels=lattice.words)
        paths = [path.arcs for path in found]
    ranked = list(_distinct(lattice, [target.path, *paths]).values())
    return Judged(target, ranked[: min(n_good, len(ranked) - 1)])


def _distinct(lattice: Lattice, paths: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    """The first path of each output, by what it says."""
    found: dict[str, np.ndarray] = {}
    for path in paths:
        found.setdefault(lattice.text(path.tolist()), path)
    return found


class ArcShares(NamedTuple):
    """What the arcs of a lattice say, float64 (E,) each, and how long the right sentence is."""

    right: np.ndarray  # sum over the words of an arc of the share of right n-grams that end in the word
    words: np.ndarray  # their number
    length: float

    def costs(self, price: float) -> np.ndarray:
        """The cost of each arc at a price of a word, float64 (E,)."""
        return (price * self.words - self.right) / self.length

    def price(self, path: np.ndarray) -> float:
        """Half the share of right n-grams of a word of a path."""
        return float(self.right[path].sum() / max(self.words[path].sum(), 1.0) / 2.0)


def arc_shares(lattice: Lattice, right: list[Words]) -> ArcShares:
    """How much of what each arc says is right."""
    grams = {tuple(words[i : i + n]) for words in right for n in range(1, ORDER + 1) for i in range(len(words) - n + 1)}
    length = max(float(np.mean([len(words) for words in right])), 1.0)
    before: list[tuple[str, ...] | None] = [()] + [None] * (lattice.n_nodes - 1)  # what all paths to a node end with
    shares, counts = np.zeros(lattice.n_arcs), np.zeros(lattice.n_arcs)
    order, begin = lattice.leaving
    for v in range(lattice.n_nodes - 1):
        context = before[v] or ()
        for e in order[begin[v] : begin[v + 1]].tolist():
            said = (*context, *lattice.words[e].split())
            for end in range(len(context) + 1, len(said) + 1):
                sizes = range(1, min(ORDER, end) + 1)
                shares[e] += sum(said[end - n : end] in grams for n in sizes) / len(sizes)
            counts[e] = len(said) - len(context)
            u, tail = int(lattice.heads[e]), said[-(ORDER - 1) :]
            before[u] = tail if before[u] is None else _common_end(before[u] or (), tail)
    return ArcShares(shares, counts, length)


def _common_end(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    n = 0
    while n < min(len(first), len(second)) and first[-1 - n] == second[-1 - n]:
        n += 1
    return tuple(first[len(first) - n :])


def n_gram_distance(first: np.ndarray, second: np.ndarray) -> float:
    """How far apart two outputs are, as numbers of words: 1 less the share of words and pairs that they have in common.

    Twice the number of common ones, each counted as often as in both, over the number of all.
    """
    bags = []
    for words in (first.tolist(), second.tolist()):
        bag: dict[object, int] = {}
        for gram in [*words, *pairwise(words)]:
            bag[gram] = bag.get(gram, 0) + 1
        bags.append(bag)
    common = sum(min(count, bags[1].get(gram, 0)) for gram, count in bags[0].items())
    total = sum(bags[0].values()) + sum(bags[1].values())
    return 1.0 - 2.0 * common / total if total else 0.0
