"""Weights from translations: every method of the table, and the rounds of decoding and tuning around it.

A round translates the development sentences with the present weights, adds the k best outputs of each sentence to its
list, and tunes on the lists. Outputs are judged by BLEU with one added to the counts of longer n-grams (Lin, Och 2004,
ORANGE); the oracle o_i of a list is its best by that. The cost is ``quality(o_i) - quality(y)``:

* margin, slack: rescaled hinges, ``1/2 |w|^2 + C sum_i loss_i``;
* ramp: the cost-diminished ramp, which stands up for translations that the model already likes;
* LP (7), LP (8): the best of a list against the worst with margins of 1 and ``|w|_1``: each bad output against the
  nearest good one (7), or against all good ones (8). Wang, Shawe-Taylor 2009. In the paper all others are bad. With 14
  features too few lists can be separated then: the loss of the rest is at least 1, what it is at w = 0, and w = 0 is
  the optimum (:mod:`table` prints this).

"lattices" after a name: the examples are the lattices of all rounds instead of lists, with the costs of arcs that
:class:`~maxmargin.LatticeRanker` makes of the reference. The good path is the best of the k best outputs at the weights
of the round, not of the whole lattice, whose best output is out of reach of 14 weights (:mod:`lattices` shows it).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from decoder import START, Decoder, Options, Output, SearchGraph
from lists import CandidateLists
from mert import bleu_of_sums, mert
from pro import pro

from maxmargin import LatticeRanker
from maxmargin.datasets import Lattice
from maxmargin.estimators.lattice_sentences import arc_shares
from maxmargin.metrics.translation import bleu_statistics
from maxmargin.models.lattice_targets import Target

__all__ = ["METHODS", "Pool", "Sentences", "Tuned", "quality", "tune", "tuned_by"]

METHODS = (
    "MERT", "PRO", "margin", "slack", "ramp", "LP (7)", "LP (8)",
    "margin, lattices", "ramp, lattices",
)  # fmt: skip
GRID = (0.01, 0.1, 1.0, 10.0)
N_GOOD, N_BAD = 2, 5  # outputs of a list that linear programs compare
LEAST = 0.05  # difference of quality of a pair of PRO
MOST_ARCS = 2_000  # of a lattice
SECONDS = 60.0  # budget of one fit

Words = Sequence[str]


@dataclass
class Sentences:
    """Source sentences with one reference each; statistics of translations are counted once."""

    sources: list[Words]
    references: list[Words]
    known: list[dict[tuple[str, ...], np.ndarray]] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sources)

    def statistics(self, i: int, outputs: Sequence[tuple[str, ...]]) -> np.ndarray:
        """BLEU counts of translations of sentence i, (m, 10)."""
        if not self.known:
            self.known = [{} for _ in self.sources]
        new = [words for words in dict.fromkeys(outputs) if words not in self.known[i]]
        self.known[i].update(zip(new, bleu_statistics(new, [self.references[i]] * len(new)), strict=True))
        return np.array([self.known[i][words] for words in outputs]).reshape(-1, 10)

    def best(self, i: int, outputs: Sequence[Output]) -> Output:
        """The best of some outputs of sentence i."""
        return outputs[int(np.argmax(quality(self.statistics(i, [output.words for output in outputs]))))]

    def search(self, decoder: Decoder, w: np.ndarray) -> list[SearchGraph]:
        """The lattice of every sentence."""
        if not self.options:
            self.options = [decoder.options(words) for words in self.sources]
        pairs = zip(self.sources, self.options, strict=True)
        return [decoder.search(words, w, options) for words, options in pairs]

    def first_best(self, decoder: Decoder, w: np.ndarray) -> list[tuple[str, ...]]:
        """The translation of every sentence."""
        return [graph.k_best(w, 1)[0].words for graph in self.search(decoder, w)]


def quality(statistics: np.ndarray) -> np.ndarray:
    """BLEU of single sentences from 0 to 1, one match and one n-gram added from 2-grams on, (m,)."""
    right, total = statistics[:, 2:6].copy(), statistics[:, 6:10].copy()
    right[:, 1:] += 1.0
    total[:, 1:] += 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(right / total).mean(axis=1) + np.minimum(0.0, 1.0 - statistics[:, 1] / statistics[:, 0])
    return np.exp(np.where(np.isfinite(logs), logs, -np.inf))


class Pool:
    """All outputs of some sentences that were ever among the k best, each by the path it was first found with."""

    def __init__(self, sentences: Sentences) -> None:
        self.sentences = sentences
        self.outputs: list[dict[tuple[str, ...], np.ndarray]] = [{} for _ in range(len(sentences))]
        self.lattices: list[list[tuple[Lattice, Target]]] = [[] for _ in range(len(sentences))]
        self.scale = np.ones(len(START))  # of features, the same in all rounds

    def add(self, found: Sequence[Sequence[Output]]) -> int:
        """Add outputs; how many are new."""
        before = sum(map(len, self.outputs))
        for known, outputs in zip(self.outputs, found, strict=True):
            for output in outputs:
                known.setdefault(output.words, output.features)
        if not before:
            rows = [np.array([*known.values()]) for known in self.outputs]
            spread = np.concatenate([features - features.mean(axis=0) for features in rows]).std(axis=0)
            self.scale = np.where(spread > 0.0, spread, 1.0)
        return sum(map(len, self.outputs)) - before

    def add_lattices(self, graphs: Sequence[SearchGraph], w: np.ndarray, k: int) -> None:
        """Add lattices, of arcs on good paths only, with the best of the k best outputs at weights w as good paths."""
        for i, graph in enumerate(graph.pruned(w, MOST_ARCS) for graph in graphs):
            best = self.sentences.best(i, graph.k_best(w, k))
            lattice = graph.lattice(self.scale)
            shares = arc_shares(lattice, [list(self.sentences.references[i])])
            self.lattices[i].append((lattice, Target(shares.costs(shares.price(best.arcs)), best.arcs)))

    def lists(self) -> CandidateLists:
        """The outputs as lists of candidates."""
        features = np.array([row for known in self.outputs for row in known.values()])
        counts = [self.sentences.statistics(i, list(known)) for i, known in enumerate(self.outputs)]
        statistics = np.concatenate(counts)
        starts = np.concatenate([[0], np.cumsum([len(known) for known in self.outputs])])
        texts = tuple(" ".join(words) for known in self.outputs for words in known)
        return CandidateLists(features, statistics, quality(statistics), starts, texts)


def tuned_by(
    method: str, pool: Pool, lists: CandidateLists, chosen: Iterable[int], w: np.ndarray, C: float, seed: int = 0
) -> np.ndarray:  # fmt: skip
    """Weights by one method from the lists or lattices of some sentences; MERT begins at w, the others need C."""
    chosen = list(chosen)
    part = lists.some(chosen)
    if method == "MERT":
        return mert(part, bleu_of_sums, w, restarts=4, random_state=seed)
    if method == "PRO":
        return pro(part, C, least=LEAST, random_state=seed)
    name, _, kind = method.partition(", ")
    part = replace(part, features=part.features / pool.scale)
    if kind == "lattices":
        X, y = zip(*(example for i in chosen for example in pool.lattices[i]), strict=True)
    elif name.startswith("LP"):
        part = extremes(part, N_GOOD, N_BAD)
        X, y = part.lattices(), part.costs()
    else:
        X, y = part.lattices(), part.costs()
    ranker = LatticeRanker(C=100.0 * C / len(X), max_seconds=SECONDS, tol=1e-2)
    if name.startswith("LP"):
        ranker.set_params(penalty="l1", n_good=N_GOOD)
    elif name == "ramp":
        ranker.set_params(loss="ramp")
    else:
        ranker.set_params(rescaling=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that ends by its budget
        ranker.fit(X, y, pairing="nearest" if name == "LP (7)" else "all")
    return ranker.coef_ / pool.scale


def extremes(lists: CandidateLists, n_good: int, n_bad: int) -> CandidateLists:
    """The best and the worst candidates of every list, the best first."""
    rows, sizes = [], []
    for span in map(lists.span, range(len(lists))):
        order = np.argsort(-lists.quality[span], kind="stable")
        kept = np.concatenate([order[:n_good], order[n_good:][-n_bad:]])
        rows.append(span.start + kept)
        sizes.append(len(kept))
    at = np.concatenate(rows)
    parts = (lists.features[at], lists.statistics[at], lists.quality[at], np.concatenate([[0], np.cumsum(sizes)]))
    return CandidateLists(*parts, tuple(lists.texts[y] for y in at.tolist()))


def best_C(method: str, pool: Pool, lists: CandidateLists, w: np.ndarray, grid: Sequence[float] = GRID) -> float:
    """The C whose weights, from two thirds of the sentences, have the highest BLEU on the lists of the last third."""
    part = len(lists) * 2 // 3
    held = lists.some(range(part, len(lists)))

    def held_out(C: float) -> float:
        found = tuned_by(method, pool, lists, range(part), w, C)
        if not found.any():  # all candidates tie, and the first of a list, the best of the first weights, would win
            return -1.0
        return float(bleu_of_sums(held.statistics[held.best(held.features @ found)].sum(axis=0)[None])[0])

    return max(grid, key=held_out)


@dataclass
class Tuned:
    """Weights of a method, BLEU of the development sentences by round, the C chosen last, and processor seconds."""

    weights: np.ndarray
    bleu: list[float]
    C: float
    seconds: float


def tune(
    method: str, decoder: Decoder, sentences: Sentences, rounds: int = 5, k: int = 100,
    say: Callable[[str], None] = lambda line: None,
) -> Tuned:  # fmt: skip
    """Rounds of decoding and tuning; the weights of the round with the highest BLEU."""
    begin = time.process_time()
    pool, w, C, history, tried = Pool(sentences), START, np.nan, [], []
    for r in range(rounds + 1):
        graphs = sentences.search(decoder, w)
        found = [graph.k_best(w, k) for graph in graphs]
        first = np.concatenate([sentences.statistics(i, [outputs[0].words]) for i, outputs in enumerate(found)])
        history.append(float(bleu_of_sums(first.sum(axis=0)[None])[0]))
        tried.append(w)
        say(f"{method:16s} round {r}: development BLEU {history[-1]:.2f}, {pool.add(found)} new outputs")
        if r == rounds:
            break
        if method.endswith("lattices"):
            pool.add_lattices(graphs, w, k)
        lists = pool.lists()
        if method != "MERT":
            C = best_C(method, pool, lists, w)
        new = tuned_by(method, pool, lists, range(len(sentences)), w, C, seed=r)
        w = new * (np.abs(START).sum() / max(np.abs(new).sum(), 1e-12))
    return Tuned(tried[int(np.argmax(history))], history, C, time.process_time() - begin)
