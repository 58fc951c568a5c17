"""Matchings of 20 x 20 words: pairs a second, beside scipy's assignment solver, and seconds of certified training.

    python benchmarks/matching.py

Scores are those of a made bitext: 25 features for each pair of words, one of which tells true links from others, with
noise. ``decode`` is what ``predict`` does behind the features: scores and the best links. scipy is given the scores and
links every word, which is an easier problem: it has neither prices nor words without links. ``from text`` is all of
``predict``: it makes the features of word pairs too, by three alignment models of words and of their beginnings. One
thread, best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from machine import machine_line
from maxmargin.estimators.aligner import Aligner
from maxmargin.inference.matching_kernel import match_pairs

WORDS, FEATURES, PAIRS = 20, 25, 400


def example(rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, int]]]:
    x = rng.normal(size=(WORDS, WORDS, FEATURES))
    links = [(int(i), int(j)) for i, j in enumerate(rng.permutation(WORDS)) if rng.random() < 0.9]
    for link in links:
        x[link][0] += 4.0
    return x, links


def sentences(rng: np.random.Generator) -> tuple[str, str]:
    """Words of a made language, often the frequent ones, and their translations in nearly the same order."""
    words = (1000 * rng.random(WORDS) ** 3).astype(int)
    order = np.argsort(np.arange(WORDS) + rng.normal(scale=0.7, size=WORDS))
    return " ".join(f"{word}a" for word in words), " ".join(f"{word}b" for word in words[order])


def best(run: Callable[[], object]) -> float:
    """Processor seconds, best of five."""
    found = []
    for _ in range(5):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    print(machine_line())
    rng = np.random.default_rng(0)
    X, y = map(list, zip(*(example(rng) for _ in range(PAIRS)), strict=True))
    for links in (1, 3):
        aligner = Aligner(max_links=links, C=0.1).fit(X[:20], y[:20])
        seconds = best(lambda links=links: Aligner(max_links=links, C=0.1).fit(X, y))
        gap = Aligner(max_links=links, C=0.1).fit(X, y).certificate_.relative_gap
        print(
            f"{links} link{'s' * (links > 1)} a word: training on {PAIRS} pairs {seconds:.2f} s to a gap of {gap:.1e}"
        )
        bound = aligner.model_.bind(X, layout=aligner.layout_)
        decode = best(lambda bound=bound, aligner=aligner: bound.argmax(aligner.weights_))
        print(f"  decode  {PAIRS / decode:8.0f} pairs/s")
        tables = [x @ aligner.coef_ for x in X]
        prices = [np.ascontiguousarray(side) for side in aligner.prices_]

        def match(tables: list[np.ndarray] = tables, prices: list[np.ndarray] = prices) -> None:
            for table in tables:
                state, used = np.zeros((WORDS, WORDS), np.int32), np.zeros(2 * WORDS, np.int32)
                match_pairs(table, *prices, 0, state, used)

        ours = best(match)
        theirs = best(lambda tables=tables: [linear_sum_assignment(table, maximize=True) for table in tables])
        print(f"  links of given scores  {PAIRS / ours:8.0f} pairs/s; scipy's assignment {PAIRS / theirs:8.0f} pairs/s")
    pairs = [sentences(rng) for _ in range(PAIRS)]
    aligner = Aligner().fit(pairs[:20], [[(k, k) for k in range(WORDS)]] * 20, bitext=pairs)
    print(f"from text  {PAIRS / best(lambda: aligner.predict(pairs)):8.0f} pairs/s")


if __name__ == "__main__":
    main()
