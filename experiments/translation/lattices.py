"""Why whole lattices are hard to learn from, and what helps: margins with several costs and good paths.

    MAXMARGIN_DATA=... python experiments/translation/lattices.py

Lattices of 90 development sentences at the first weights, 60 of which tune. First, what there is to learn from: the
first outputs of the decoder, the best of its 100 best, and the best of the whole lattice, each with its score by the
present weights. Then margins with C = 0.1 and BLEU and length of new translations, of the 60 and of the other 30: with

* the best output of the lattice as the good one, and words that cost 1/2, whatever they are;
* the same, and words at half the share of right n-grams in the good output, which is what LatticeRanker does;
* the best of the 100 best outputs as the good one, with both prices;
* lists of the 100 best, for comparison.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from decoder import START, Decoder, SearchGraph
from table import load, machine_line
from tuning import MOST_ARCS, Pool, Sentences

from maxmargin import LatticeRanker
from maxmargin.datasets import Lattice
from maxmargin.estimators.lattice_sentences import ArcShares, arc_shares, bleu_cost, judged
from maxmargin.metrics.translation import bleu_of
from maxmargin.models.lattice_targets import Target

N_SENTENCES, N_TUNED, N_BEST, C = 90, 60, 100, 0.1


def shown(statistics: np.ndarray) -> str:
    """BLEU, and the length as a share of the reference's."""
    counts = statistics.sum(axis=0)
    return f"BLEU {bleu_of(counts).score:5.2f}, length {counts[0] / counts[1]:.3f}"


def outputs_of(
    sentences: Sentences, graphs: Sequence[SearchGraph], shares: Sequence[ArcShares], paths: Sequence[np.ndarray]
) -> str:
    """What paths say, their mean score at the first weights, and the share of right n-grams of their words."""
    texts = [tuple(word for a in path for word in graph.words(a)) for graph, path in zip(graphs, paths, strict=True)]
    found = np.concatenate([sentences.statistics(i, [words]) for i, words in enumerate(texts)])
    scores = [graph.features[path].sum(axis=0) @ START for graph, path in zip(graphs, paths, strict=True)]
    share = np.mean([2.0 * share.price(path) for share, path in zip(shares, paths, strict=True)])
    return f"{shown(found)}, score {np.mean(scores):.1f}, share {share:.2f}"


def tuned(decoder: Decoder, sentences: Sentences, pool: Pool, X: Sequence[Lattice], y: Sequence[object]) -> str:
    """New translations with the weights that the first examples teach."""
    ranker = LatticeRanker(C=100.0 * C / N_TUNED, tol=1e-2).fit(X[:N_TUNED], y[:N_TUNED])
    w = ranker.coef_ / pool.scale
    found = sentences.first_best(decoder, w * np.abs(START).sum() / np.abs(w).sum())
    counts = np.concatenate([sentences.statistics(i, [words]) for i, words in enumerate(found)])
    return f"{shown(counts[:N_TUNED])}; others {shown(counts[N_TUNED:])}"


def main() -> None:
    warnings.simplefilter("ignore")
    print(machine_line())
    decoder, sentences, _ = load(N_SENTENCES)
    pool, graphs = Pool(sentences), sentences.search(decoder, START)
    pool.add([graph.k_best(START, N_BEST) for graph in graphs])
    graphs = [graph.pruned(START, MOST_ARCS) for graph in graphs]
    outputs = [graph.k_best(START, N_BEST) for graph in graphs]
    X = [graph.lattice(pool.scale) for graph in graphs]
    right = [[list(reference)] for reference in sentences.references]
    shares = [arc_shares(x, r) for x, r in zip(X, right, strict=True)]
    whole = [judged(x, r, bleu_cost, 1, i).target.path for i, (x, r) in enumerate(zip(X, right, strict=True))]
    near = [sentences.best(i, found).arcs for i, found in enumerate(outputs)]
    good = {"best of the lattice": whole, f"best of the {N_BEST} best": near}
    print(f"{'first outputs':32s} {outputs_of(sentences, graphs, shares, [found[0].arcs for found in outputs])}")
    for name, paths in good.items():
        print(f"{name:32s} {outputs_of(sentences, graphs, shares, paths)}")
    print("\ntranslations after tuning")
    for name, paths in good.items():
        for title, fixed in (("words cost 1/2", True), ("half its share", False)):
            known = zip(shares, paths, strict=True)
            y = [Target(share.costs(0.5 if fixed else share.price(path)), path) for share, path in known]
            print(f"{name + ', ' + title:38s} {tuned(decoder, sentences, pool, X, y)}", flush=True)
    lists = pool.lists()
    lists = replace(lists, features=lists.features / pool.scale)
    print(f"{'lists':38s} {tuned(decoder, sentences, pool, lists.lattices(), lists.costs())}")


if __name__ == "__main__":
    main()
