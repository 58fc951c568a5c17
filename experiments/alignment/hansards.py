"""Word alignment on the Hansards: 200 of 447 sentence pairs with gold links teach, 247 test, over random splits.

    MAXMARGIN_DATA=... make experiment-alignment
    python experiments/alignment/hansards.py --splits 1

Alignment models are learned without links from the 2,383 further pairs and the text of the 447, and in a second block
from 10,000 pairs of Europarl as well. Beside ours: what the same two alignment models say alone, links where both
directions agree. C and the cost of a missed link are chosen by the error rate on a quarter of the 200, in the first
split. Published with 0.5 to 1.1 million pairs: matching 10.7 (Taskar et al. 2005), 8.2 with fertility and quadratic
terms 6.1 (Lacoste-Julien et al. 2006). Times are processor seconds of training, one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from maxmargin.datasets import Alignments, load_hansards, read_bitext, require
from maxmargin.estimators.aligner import Aligner
from maxmargin.features.alignment import AlignmentFeatures
from maxmargin.metrics import alignment_error_rate, alignment_report

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

N_TRAIN = 200
GRID = [(C, missed) for C in (0.1, 1.0, 10.0) for missed in (2.0, 3.0, 5.0)]
LINKS = (1, 2, 3)  # the most links of a word
EUROPARL = "Europarl, French and English; the first 10,000 pairs of the Moses regression tests"


def agreed(
    features: AlignmentFeatures, tables: list[np.ndarray], names: tuple[str, str]
) -> list[list[tuple[int, int]]]:
    """Links of words that are each other's likeliest partner by a model, the intersection of both directions."""
    right, left = (features.names().index(name) for name in names)
    found = []
    for x in tables:
        best = x[:, :, right] * x[:, :, left]
        mutual = (x[:, :, right] == x[:, :, right].max(axis=0, initial=0.0)) & (
            x[:, :, left] == x[:, :, left].max(axis=1, keepdims=True, initial=0.0)
        )
        found.append([(int(i), int(j)) for i, j in np.argwhere(mutual & (best > 0.1))])
    return found


def compare(data: Alignments, bitext: list, splits: int) -> None:
    begin = time.process_time()
    features = AlignmentFeatures().fit([*data.pairs, *bitext])
    tables = features.transform(data.pairs)
    print(f"\nbitext of {len(data.pairs) + len(bitext)} pairs; alignment models {time.process_time() - begin:.0f} s")
    rows: dict[str, list[tuple[float, float, float, float, float]]] = {}
    chosen: dict[int, tuple[float, float]] = {}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(data.pairs)).tolist()
        train, test = order[:N_TRAIN], order[N_TRAIN:]

        def part(at: list[int]) -> tuple[list, list]:
            return [tables[i] for i in at], [data.links[i] for i in at]

        X, gold = part(test)
        for name, names in (("model 1", ("one right", "one left")), ("markov", ("markov right", "markov left"))):
            report = alignment_report(gold, agreed(features, X, names))
            rows.setdefault(f"{name}, both directions agree", []).append((*report, 0.0, 0.0))
        for links in LINKS:
            if links not in chosen:
                few, held_out = part(train[: 3 * N_TRAIN // 4]), part(train[3 * N_TRAIN // 4 :])
                errors = [
                    alignment_error_rate(
                        held_out[1], Aligner(C=C, missed=m, max_links=links).fit(*few).predict(held_out[0])
                    )
                    for C, m in GRID
                ]
                chosen[links] = GRID[int(np.argmin(errors))]
            C, missed = chosen[links]
            begin = time.process_time()
            aligner = Aligner(C=C, missed=missed, max_links=links).fit(*part(train))
            seconds = time.process_time() - begin
            report = alignment_report(gold, aligner.predict(X))
            title = f"ours, {links} link{'s' * (links > 1)} a word, C = {C:g}, missed = {missed:g}"
            rows.setdefault(title, []).append((*report, seconds, aligner.certificate_.relative_gap))
    print(f"{'':44s} {'precision':>9s} {'recall':>7s} {'AER':>14s} {'seconds':>8s} {'gap':>8s}")
    for title, found in rows.items():
        precision, recall, error, seconds, gap = (100 * np.array(found)).mean(axis=0)
        spread = 100 * np.std([row[2] for row in found], ddof=1) if len(found) > 1 else 0.0
        times = f"{seconds / 100:8.2f} {gap / 100:8.1e}" if gap else ""
        print(f"{title:44s} {precision:9.1f} {recall:7.1f} {error:6.2f} +- {spread:4.2f} {times}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    print(machine_line())
    data = load_hansards()
    compare(data, data.bitext, options.splits)
    files = [require(f"europarl10k/europarl.{language}.xz", EUROPARL) for language in ("fr", "en")]
    compare(data, [*data.bitext, *read_bitext(*files)], options.splits)


if __name__ == "__main__":
    main()
