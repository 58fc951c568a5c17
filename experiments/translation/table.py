"""Table 2 of Wang, Shawe-Taylor 2009 at the scale of one machine: translation from French, tuned in seven ways.

    MAXMARGIN_DATA=... make experiment-translation
    python experiments/translation/table.py --development 100 --rounds 2

Phrase pairs and a trigram language model come from the first 8,200 pairs of a word-aligned part of Europarl. Of the
other 1,800, sentences of at most 25 words on both sides tune the 14 dense features (first half) or test them. Printed
are BLEU and NIST of the test sentences, the p-value of the difference in BLEU to MERT (paired randomisation), oracle
BLEU (the best outputs among the k best, by sentence BLEU) and the share of references that the lattices contain. The
row "sparse" adds trigrams, phrase pairs and their orientations to the lattices of the method that was best on the
development sentences; its development column is BLEU on the third of them that chose C.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from decoder import FEATURES, START, Decoder, SearchGraph
from language_model import LanguageModel
from phrases import phrase_table
from tuning import METHODS, MOST_ARCS, SECONDS, Sentences, quality, tune

from maxmargin import LatticeRanker
from maxmargin.datasets import read_bitext, require
from maxmargin.datasets.bitext import read_links
from maxmargin.metrics.translation import bleu_of, nist, paired_randomisation

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

N_TRAIN = 8_200
LONGEST_SENTENCE = 25
EUROPARL = "Europarl, French and English; the first 10,000 pairs of the Moses regression tests"
PUBLISHED = {"LP (7)": (32.35, 7.95), "LP (8)": (32.30, 8.19), "MERT": (31.69, 7.94)}


def load(most: int) -> tuple[Decoder, Sentences, Sentences]:
    """A decoder, the development sentences, at most ``most`` of them, and the test sentences."""
    files = [require(f"europarl10k/europarl.{name}.xz", EUROPARL) for name in ("fr", "en", "align.fr-en")]
    bitext, links = read_bitext(files[0], files[1]), [found.sure for found in read_links(files[2])]
    table = phrase_table(bitext[:N_TRAIN], links[:N_TRAIN])
    model = LanguageModel(english for _, english in bitext[:N_TRAIN])
    rest = bitext[N_TRAIN:]
    halves = []
    for part in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
        short = [pair for pair in part if 0 < len(pair[0]) <= LONGEST_SENTENCE and 0 < len(pair[1]) <= LONGEST_SENTENCE]
        short = short if halves else short[:most]
        halves.append(Sentences([f for f, _ in short], [e for _, e in short]))
    print(f"{len(table)} phrase pairs, {len(table.number)} source phrases, {model.n_words} English words")
    print(f"{len(halves[0])} development and {len(halves[1])} test sentences of at most {LONGEST_SENTENCE} words")
    return Decoder(table, model), halves[0], halves[1]


def contains(graph: SearchGraph, reference: Sequence[str]) -> bool:
    """Whether a lattice has a path with these words."""
    reached: list[set[int]] = [set() for _ in range(graph.n_nodes)]
    reached[0].add(0)
    for a in range(len(graph.tails)):
        words = graph.words(a)
        for at in reached[graph.tails[a]]:
            if tuple(reference[at : at + len(words)]) == words:
                reached[graph.heads[a]].add(at + len(words))
    return len(reference) in reached[-1]


def best_by_quality(sentences: Sentences, found: Sequence[Sequence]) -> np.ndarray:
    """Statistics of the best output of each sentence."""
    rows = []
    for i, outputs in enumerate(found):
        statistics = sentences.statistics(i, [output.words for output in outputs])
        rows.append(statistics[int(np.argmax(quality(statistics)))])
    return np.array(rows)


def lattices(decoder: Decoder, sentences: Sentences, w: np.ndarray, name: str) -> None:
    """What the lattices could do: oracle BLEU, references that they contain, their size."""
    graphs, scores = sentences.search(decoder, w), []
    found = [graph.k_best(w, 300) for graph in graphs]
    for k in (1, 10, 100, 300):
        counts = best_by_quality(sentences, [outputs[:k] for outputs in found])
        scores.append(f"{k} best {bleu_of(counts.sum(axis=0)).score:.2f}")
    inside = np.mean([contains(graph, e) for graph, e in zip(graphs, sentences.references, strict=True)])
    nodes, arcs = np.mean([graph.n_nodes for graph in graphs]), np.mean([len(graph.tails) for graph in graphs])
    print(f"{name}: oracle BLEU of {', '.join(scores)}; the lattice contains {100 * inside:.1f} % of the references")
    print(f"    {nodes:.0f} nodes and {arcs:.0f} arcs on average", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--development", type=int, default=250, help="at most so many sentences tune")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--best", type=int, default=100, help="outputs of a sentence that a round adds")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    options = parser.parse_args()
    print(machine_line())
    begin = time.process_time()
    decoder, development, test = load(options.development)
    print(f"phrases and language model: {time.process_time() - begin:.0f} s", flush=True)
    lattices(decoder, development, START, "development")
    counts, rows = {}, {}
    for method in options.methods:
        begin = time.process_time()
        tuned = tune(method, decoder, development, options.rounds, options.best, lambda line: print(line, flush=True))
        seconds = time.process_time() - begin
        found = test.first_best(decoder, tuned.weights)
        counts[method] = np.concatenate([test.statistics(i, [words]) for i, words in enumerate(found)])
        rows[method] = (max(tuned.bleu), nist(found, test.references), tuned.C, seconds, tuned.weights)
    best = max(rows, key=lambda method: rows[method][0])
    begin = time.process_time()
    score, C, found = sparse(decoder, development, test, rows[best][4])
    counts["sparse"] = np.concatenate([test.statistics(i, [words]) for i, words in enumerate(found)])
    rows["sparse"] = (score, nist(found, test.references), C, time.process_time() - begin, rows[best][4])
    print_table(counts, rows)
    first = next(iter(rows))
    print(
        "\nweights: " + ", ".join(f"{name} {value:.3f}" for name, value in zip(FEATURES, rows[first][4], strict=True))
    )
    lattices(decoder, test, rows[first][4], f"test, weights of {first}")


def sparse(
    decoder: Decoder, development: Sentences, test: Sentences, w: np.ndarray
) -> tuple[float, float, list[tuple[str, ...]]]:
    """Lattices at weights w with sparse features as well: BLEU of held-out development sentences, C, translations.

    Margins, C by BLEU on the last third of the development sentences; the test lattices are searched by the ranker.
    """
    X, Z = (
        [graph.pruned(w, MOST_ARCS).lattice(1.0 / np.maximum(np.abs(w), 1e-3), decoder.model) for graph in graphs]
        for graphs in (development.search(decoder, w), test.search(decoder, w))
    )
    y = [" ".join(words) for words in development.references]
    part = len(X) * 2 // 3
    scores = {}
    for C in (0.01, 0.1, 1.0, 10.0):
        ranker = LatticeRanker(C=C, max_seconds=SECONDS, tol=1e-2).fit(X[:part], y[:part])
        scores[C] = ranker.score(X[part:], y[part:])
    C = max(scores, key=lambda C: scores[C])
    ranker = LatticeRanker(C=C, max_seconds=SECONDS, tol=1e-2).fit(X, y)
    print(f"sparse: {len(ranker.coef_)} features, {np.count_nonzero(ranker.coef_)} of them not 0", flush=True)
    return scores[C], C, [tuple(text.split()) for text in ranker.predict(Z)]


def print_table(counts: dict[str, np.ndarray], rows: dict[str, tuple]) -> None:
    """One row per method."""
    titles = ("development", "BLEU", "NIST", "p to MERT", "length", "C", "seconds", "published BLEU, NIST")
    print(f"\n{'':16s}" + " ".join(f"{title:>11s}" for title in titles))
    for method, statistics in counts.items():
        development, nist_score, C, seconds, _ = rows[method]
        score = bleu_of(statistics.sum(axis=0))
        p = np.nan
        if method != "MERT" and "MERT" in counts:
            p = paired_randomisation(statistics, counts["MERT"], lambda sums: bleu_of(sums).score)
        length = score.hypothesis_length / score.reference_length
        published = "{:.2f}, {:.2f}".format(*PUBLISHED[method]) if method in PUBLISHED else ""
        numbers = (development, score.score, nist_score, p, length, C, seconds)
        cells = " ".join(f"{value:11.{digits}f}" for value, digits in zip(numbers, (2, 2, 2, 4, 3, 2, 0), strict=True))
        print(f"{method:16s}{cells} {published:>11s}", flush=True)


if __name__ == "__main__":
    main()
