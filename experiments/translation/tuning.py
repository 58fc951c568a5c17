"""Weights from lists of translations: every method of the table, and the rounds of decoding and tuning around it.

A round translates the development sentences with the present weights, adds the k best outputs to what is known of each
sentence, and tunes on all of it. Sentences of a list are judged by BLEU with one added to the counts of longer n-grams
(Lin, Och 2004, ORANGE); the oracle o_i of a list is its best by that. The cost is ``quality(o_i) - quality(y)``:

* margin, slack: rescaled hinges, ``1/2 |w|^2 + C sum_i loss_i``;
* ramp: the cost-diminished ramp, which stands up for translations that the model already likes;
* LP (7), LP (8): the five best of a list against all others with margins of 1 and ``|w|_1``: each bad output against
  the good one with the nearest features (7), or against all good ones (8). Wang, Shawe-Taylor 2009.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from decoder import START, Decoder, Options, Output
from lists import CandidateLists, ListModel
from mert import bleu_of_sums, mert
from pro import pro

from maxmargin import StructuredSVM
from maxmargin.formulations.references import References
from maxmargin.metrics.translation import bleu_statistics

__all__ = ["METHODS", "Pool", "Sentences", "Tuned", "quality", "scaled", "tune", "tuned_by"]

METHODS = ("MERT", "PRO", "margin", "slack", "ramp", "LP (7)", "LP (8)")
GRID = (0.01, 0.1, 1.0, 10.0)
N_GOOD = 5  # pseudo-references of the linear programs
LEAST = 0.05  # difference of quality of a pair of PRO

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

    def k_best(self, decoder: Decoder, w: np.ndarray, k: int) -> list[list[Output]]:
        """The k best distinct outputs of every sentence."""
        if not self.options:
            self.options = [decoder.options(words) for words in self.sources]
        pairs = zip(self.sources, self.options, strict=True)
        return [decoder.search(words, w, options).k_best(w, k) for words, options in pairs]


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

    def add(self, found: Sequence[Sequence[Output]]) -> int:
        """Add outputs; how many are new."""
        before = sum(map(len, self.outputs))
        for known, outputs in zip(self.outputs, found, strict=True):
            for output in outputs:
                known.setdefault(output.words, output.features)
        return sum(map(len, self.outputs)) - before

    def lists(self) -> CandidateLists:
        """The outputs as lists of candidates."""
        features = np.array([row for known in self.outputs for row in known.values()])
        counts = [self.sentences.statistics(i, list(known)) for i, known in enumerate(self.outputs)]
        statistics = np.concatenate(counts)
        starts = np.concatenate([[0], np.cumsum([len(known) for known in self.outputs])])
        return CandidateLists(features, statistics, quality(statistics), starts)


def scaled(lists: CandidateLists) -> tuple[CandidateLists, np.ndarray]:
    """Lists whose features have unit variance within a list, and the scales."""
    sizes = np.diff(lists.starts)
    means = np.add.reduceat(lists.features, lists.starts[:-1]) / sizes[:, None]
    scale = (lists.features - np.repeat(means, sizes, axis=0)).std(axis=0)
    scale[scale == 0.0] = 1.0
    return replace(lists, features=lists.features / scale), scale


def tuned_by(method: str, lists: CandidateLists, w: np.ndarray, C: float, seed: int = 0) -> np.ndarray:
    """Weights by one method; MERT begins at w, the others need C."""
    if method == "MERT":
        return mert(lists, bleu_of_sums, w, restarts=4, random_state=seed)
    if method == "PRO":
        return pro(lists, C, least=LEAST, random_state=seed)
    unit, scale = scaled(lists)
    oracle, every = unit.best(unit.quality), range(len(unit))
    shared = {"C": 100.0 * C / len(unit), "max_seconds": 60.0, "tol": 1e-2}
    if method.startswith("LP"):
        good, unit, oracle, every = pseudo_references(unit)
        pairing = "nearest" if method == "LP (7)" else "all"

        def closeness(one: np.ndarray, other: np.ndarray) -> float:
            return float(np.abs(unit.features[one[0]] - unit.features[other[0]]).sum())

        svm = StructuredSVM(ListModel(unit), formulation=References(good, pairing, "l1", closeness), **shared)
    elif method == "ramp":
        svm = StructuredSVM(ListModel(unit), loss="ramp", **shared)
    else:
        svm = StructuredSVM(ListModel(unit), rescaling=method, **shared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that ends by its budget
        svm.fit(every, oracle)
    return svm.weights_ / scale


def pseudo_references(
    lists: CandidateLists, n_good: int = N_GOOD
) -> tuple[list[list[int]], CandidateLists, np.ndarray, list[int]]:
    """The best candidates of every list, as references; lists in which nothing is left to be bad take no part."""
    every = [i for i in range(len(lists)) if lists.starts[i + 1] - lists.starts[i] > n_good]
    good = []
    for i in every:
        span = lists.span(i)
        good.append((span.start + np.argsort(-lists.quality[span], kind="stable")[:n_good]).tolist())
    return good, lists, np.array([outputs[0] for outputs in good]), every


def best_C(method: str, lists: CandidateLists, w: np.ndarray, grid: Sequence[float] = GRID) -> float:
    """The C whose weights, from two thirds of the lists, have the highest BLEU on the last third."""
    part = len(lists) * 2 // 3
    train, held = lists.some(range(part)), lists.some(range(part, len(lists)))

    def held_out(C: float) -> float:
        found = tuned_by(method, train, w, C)
        if not found.any():  # all candidates tie, and the first of a list, the best of the first weights, would win
            return -1.0
        return float(bleu_of_sums(held.statistics[held.best(held.features @ found)].sum(axis=0)[None])[0])

    return max(grid, key=held_out)


@dataclass
class Tuned:
    """Weights of a method, BLEU of the development sentences by round, the C chosen, and the pool."""

    weights: np.ndarray
    bleu: list[float]
    C: float
    pool: Pool


def tune(
    method: str, decoder: Decoder, sentences: Sentences, rounds: int = 5, k: int = 100,
    say: Callable[[str], None] = lambda line: None,
) -> Tuned:  # fmt: skip
    """Rounds of decoding and tuning; the weights of the round with the highest BLEU."""
    pool, w, C, history, tried = Pool(sentences), START, np.nan, [], []
    for r in range(rounds + 1):
        found = sentences.k_best(decoder, w, k)
        first = np.concatenate([sentences.statistics(i, [outputs[0].words]) for i, outputs in enumerate(found)])
        history.append(float(bleu_of_sums(first.sum(axis=0)[None])[0]))
        tried.append(w)
        say(f"{method:8s} round {r}: development BLEU {history[-1]:.2f}, {pool.add(found)} new outputs")
        if r == rounds:
            break
        lists = pool.lists()
        if method != "MERT":
            C = best_C(method, lists, w)
        new = tuned_by(method, lists, w, C, seed=r)
        w = new * (np.abs(START).sum() / max(np.abs(new).sum(), 1e-12))
    return Tuned(tried[int(np.argmax(history))], history, C, pool)
