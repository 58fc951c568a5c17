"""Table 2 of Wang, Shawe-Taylor 2009 at the scale of one machine: translation from French, tuned in seven ways.

    MAXMARGIN_DATA=... make experiment-translation
    python experiments/translation/table.py --development 100 --rounds 2

Phrase pairs and a trigram language model come from the first 8,200 pairs of a word-aligned part of Europarl. Of the
other 1,800, sentences of at most 25 words on both sides tune the 14 dense features (first half) or test them. Printed
are BLEU and NIST of the test sentences, the p-value of the difference in BLEU to MERT (paired randomisation), oracle
BLEU (the best outputs among the k best, by sentence BLEU) and the share of references that the lattices contain. The
rows "sparse" add trigrams, phrase pairs and their orientations to the k best outputs of the method that was best on the
development sentences; their development column is BLEU on the third of them that chose C.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from decoder import FEATURES, START, Decoder, SearchGraph
from language_model import LanguageModel
from phrases import phrase_table
from tuning import METHODS, MOST_ARCS, SECONDS, Pool, Sentences, Tuned, tune

from maxmargin import LatticeRanker
from maxmargin.datasets import Lattice, read_bitext, require
from maxmargin.datasets.bitext import read_links
from maxmargin.metrics.translation import bleu_of, nist, paired_randomisation, sentence_bleu

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

N_TRAIN = 8_200
LONGEST_SENTENCE = 25
SPARSE = {
    "margin, sparse": ({}, "all"),
    "LP (7), sparse": ({"penalty": "l1", "n_good": 5}, "nearest"),
    "LP (8), sparse": ({"penalty": "l1", "n_good": 5}, "all"),
}
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
    return np.array([sentences.statistics(i, [sentences.best(i, outputs).words])[0] for i, outputs in enumerate(found)])


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
    parser.add_argument(
        "--no-sparse", dest="sparse", action="store_false", help="leave out the rows of sparse features"
    )
    parser.add_argument("--keep", type=Path, help="JSON file of weights: methods in it are not tuned again")
    options = parser.parse_args()
    print(machine_line())
    begin = time.process_time()
    decoder, development, test = load(options.development)
    print(f"phrases and language model: {time.process_time() - begin:.0f} s", flush=True)
    lattices(decoder, development, START, "development")
    counts, rows = {}, {}
    for method in options.methods:
        tuned = tuned_or_kept(method, decoder, development, options)
        found = test.first_best(decoder, tuned.weights)
        counts[method] = np.concatenate([test.statistics(i, [words]) for i, words in enumerate(found)])
        rows[method] = (max(tuned.bleu), nist(found, test.references), tuned.C, tuned.seconds, tuned.weights)
    without_optimum(development, decoder, options.best)
    if options.sparse:
        best = max(rows, key=lambda method: rows[method][0])
        begin = time.process_time()
        for name, score, C, found in sparse_rows(decoder, development, test, rows[best][4], options.best):
            counts[name] = np.concatenate([test.statistics(i, [words]) for i, words in enumerate(found)])
            rows[name] = (score, nist(found, test.references), C, time.process_time() - begin, rows[best][4])
            begin = time.process_time()
    print_table(counts, rows)
    first = next(iter(rows))
    print(
        "\nweights: " + ", ".join(f"{name} {value:.3f}" for name, value in zip(FEATURES, rows[first][4], strict=True))
    )
    lattices(decoder, test, rows[first][4], f"test, weights of {first}")


def tuned_or_kept(method: str, decoder: Decoder, sentences: Sentences, options: argparse.Namespace) -> Tuned:
    """The result of a method, from the file of earlier ones if it is there."""
    key = f"{method}; {len(sentences)} sentences, {options.rounds} rounds, {options.best} best"
    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    if key not in kept:
        tuned = tune(method, decoder, sentences, options.rounds, options.best, lambda line: print(line, flush=True))
        kept[key] = [tuned.weights.tolist(), tuned.bleu, tuned.C, tuned.seconds]
        if options.keep:
            options.keep.parent.mkdir(parents=True, exist_ok=True)
            options.keep.write_text(json.dumps(kept, indent=1))
    weights, *rest = kept[key]
    return Tuned(np.array(weights), *rest)


def without_optimum(sentences: Sentences, decoder: Decoder, k: int) -> None:
    """The linear programs as printed: the five best of a list against all others, dense features."""
    pool = Pool(sentences)
    pool.add([graph.k_best(START, k) for graph in sentences.search(decoder, START)])
    lists = pool.lists()
    lists = replace(lists, features=lists.features / pool.scale)
    for pairing, C in ((pairing, C) for pairing in ("nearest", "all") for C in (0.1, 10.0)):
        ranker = LatticeRanker(C=C, penalty="l1", n_good=5, tol=1e-3).fit(
            lists.lattices(), lists.costs(), pairing=pairing
        )
        loss = ranker.certificate_.primal / (C * len(lists))
        print(
            f"five best against all others, {pairing}, C {C:g}: {np.count_nonzero(ranker.coef_)} weights not 0, "
            f"objective {loss:.4f} of that of w = 0, gap {ranker.certificate_.relative_gap:.1e}", flush=True
        )  # fmt: skip


def sparse_lists(decoder: Decoder, sentences: Sentences, w: np.ndarray, k: int) -> list[Lattice]:
    """The k best outputs of each sentence with dense and sparse features; dense ones count as at weights w."""
    found = []
    for graph in (graph.pruned(w, MOST_ARCS) for graph in sentences.search(decoder, w)):
        outputs = graph.k_best(w, k)
        indicators, names = graph.sparse_features(decoder.model)
        dense = np.array([output.features for output in outputs]) * np.maximum(np.abs(w), 1e-3)
        rows = sp.csr_array(np.array([np.bincount(o.arcs, minlength=len(graph.tails)) for o in outputs])) @ indicators
        texts = [" ".join(output.words) for output in outputs]
        features = sp.hstack([dense, rows], format="csr")
        found.append(Lattice.from_nbest(texts, features, [*FEATURES, *names], len(FEATURES)))
    return found


def sparse_rows(
    decoder: Decoder, development: Sentences, test: Sentences, w: np.ndarray, k: int
) -> Iterator[tuple[str, float, float, list[tuple[str, ...]]]]:
    """Name, BLEU of held-out development sentences, C, and translations of methods with sparse features.

    C by BLEU on the last third of the development sentences, on which the row's development BLEU is also measured.
    """
    X, Z = sparse_lists(decoder, development, w, k), sparse_lists(decoder, test, w, k)
    y, part = [" ".join(words) for words in development.references], len(X) * 2 // 3
    for name, (parameters, pairing) in SPARSE.items():
        ranker = LatticeRanker(max_seconds=SECONDS, tol=1e-2, **parameters)
        scores = {}
        for C in (0.1, 1.0, 10.0):
            ranker.set_params(C=C).fit(X[:part], y[:part], pairing=pairing)
            scores[C] = ranker.score(X[part:], y[part:]) if ranker.coef_.any() else -1.0  # as in tuning.best_C
        C = max(scores, key=lambda C: scores[C])
        ranker.set_params(C=C).fit(X, y, pairing=pairing)
        own, all_right = np.count_nonzero(ranker.coef_), np.mean(np.array(ranker.predict(X)) == oracle_texts(X, y))
        print(
            f"{name}: {own} of {len(ranker.coef_)} weights not 0; {100 * all_right:.0f} % of the oracles on top",
            flush=True,
        )
        yield name, scores[C], C, [tuple(text.split()) for text in ranker.predict(Z)]


def oracle_texts(X: Sequence[Lattice], y: Sequence[str]) -> np.ndarray:
    """The best output of each list by sentence BLEU."""
    return np.array(
        [max(x.words, key=lambda text: sentence_bleu(text.split(), [r.split()])) for x, r in zip(X, y, strict=True)]
    )


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
