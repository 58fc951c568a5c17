"""Word alignment on the Hansards: 200 of 447 sentence pairs with gold links teach, 247 test, over random splits.

    MAXMARGIN_DATA=... make experiment-alignment
    python experiments/alignment/hansards.py --splits 1

Alignment models are learned without links from the 2,383 further pairs and the text of the 447, and in a second block
from 10,000 pairs of Europarl as well. Beside ours: what the same two alignment models say alone, links where both
directions agree. C and the cost of a missed link are chosen by the error rate on a quarter of the 200, in the first
split. If the command ``eflomal-align`` is there (pip install eflomal), its links are a row too, where both directions
agree and grown from there, and ours is shown with its links as a further opinion. Published with 0.5 to 1.1 million
pairs: matching 10.7 (Taskar et al. 2005), 8.2, with fertility and quadratic terms 6.1 (Lacoste-Julien et al. 2006).
Times are processor seconds of training, one thread.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from maxmargin.datasets import Alignments, Links, load_hansards, read_bitext, require
from maxmargin.estimators.aligner import Aligner
from maxmargin.features.alignment import OPINION, AlignmentFeatures, sentence_pairs
from maxmargin.metrics import alignment_error_rate, alignment_report

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

Link = tuple[int, int]
N_TRAIN = 200
GRID = [(C, missed) for C in (0.1, 1.0, 10.0) for missed in (2.0, 3.0, 5.0)]
SETTINGS = {  # most links of a word, bonuses for links that touch
    "1 link a word": {"max_links": 1},
    "2 links a word": {"max_links": 2},
    "3 links a word": {"max_links": 3},
    "1 link a word, neighbours": {"max_links": 1, "neighbours": True},
    "2 links a word, neighbours": {"max_links": 2, "neighbours": True},
}
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


def eflomal(pairs: list) -> list[tuple[set[Link], set[Link]]] | None:
    """Links from left to right and from right to left of each pair by eflomal, or None when it is not installed.

    Oestling, Tiedemann 2016, Efficient word alignment with Markov chain Monte Carlo.
    """
    command = shutil.which("eflomal-align")
    if command is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [f"{' '.join(left).lower()} ||| {' '.join(right).lower()}\n" for left, right in sentence_pairs(pairs)]
        (folder / "text").write_text("".join(lines), encoding="utf-8")
        names = ["-i", folder / "text", "-f", folder / "forward", "-r", folder / "reverse"]
        subprocess.run([command, *map(str, names)], check=True, capture_output=True)
        ways = [
            [set(Links.parse(line).sure) for line in (folder / way).read_text().splitlines()]
            for way in ("forward", "reverse")
        ]
    return list(zip(*ways, strict=True))


def grown(forward: set[Link], reverse: set[Link]) -> set[Link]:
    """Links that both directions have, neighbours of links that one has, and links of words without any.

    The heuristic "grow-diag-final-and" of Koehn, Och, Marcu 2003, Statistical phrase-based translation.
    """
    found, union = forward & reverse, forward | reverse
    near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]

    def alone(link: Link, both: bool) -> bool:
        free = [all(other[side] != link[side] for other in found) for side in (0, 1)]
        return all(free) if both else any(free)

    waiting = sorted(found)
    while waiting:
        i, j = waiting.pop(0)
        for link in ((i + down, j + right) for down, right in near):
            if link in union - found and alone(link, both=False):
                found.add(link)
                waiting.append(link)
    for way in (forward, reverse):
        for link in sorted(way - found):
            if alone(link, both=True):
                found.add(link)
    return found


def compare(data: Alignments, bitext: list, splits: int) -> None:
    other = eflomal([*data.pairs, *bitext])
    links = [forward & reverse for forward, reverse in other or []] or [set()] * len(data.pairs)
    examples = [(*pair, given) for pair, given in zip(data.pairs, links[: len(data.pairs)], strict=True)]
    begin = time.process_time()
    features = AlignmentFeatures(opinion=True).fit([*data.pairs, *bitext])
    asked = features.transform(examples)
    tables = [x[:, :, : -len(OPINION)] for x in asked]
    print(f"\nbitext of {len(data.pairs) + len(bitext)} pairs; alignment models {time.process_time() - begin:.0f} s")
    said = {}
    if other is None:
        print("eflomal-align is not installed; its rows are left out.")
    else:
        said["eflomal, both directions agree"] = links
        said["eflomal, grown from these"] = [grown(*ways) for ways in other[: len(data.pairs)]]
    rows: dict[str, list[tuple[float, float, float, float, float]]] = {}
    chosen: dict[str, tuple[float, float]] = {}
    ours = [(f"ours, {title}", tables, how) for title, how in SETTINGS.items()]
    if other is not None:
        ours += [(f"{title}, asking eflomal", asked, how) for title, _, how in ours]
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(data.pairs)).tolist()
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        gold = [data.links[i] for i in test]
        for name, names in (("model 1", ("one right", "one left")), ("markov", ("markov right", "markov left"))):
            report = alignment_report(gold, agreed(features, [tables[i] for i in test], names))
            rows.setdefault(f"{name}, both directions agree", []).append((*report, 0.0, 0.0))
        for title, found in said.items():
            rows.setdefault(title, []).append((*alignment_report(gold, [sorted(found[i]) for i in test]), 0.0, 0.0))
        for title, known, how in ours:

            def part(at: list[int], known: list[np.ndarray] = known) -> tuple[list, list]:
                return [known[i] for i in at], [data.links[i] for i in at]

            if title not in chosen:
                few, held_out = part(train[: 3 * N_TRAIN // 4]), part(train[3 * N_TRAIN // 4 :])
                errors = [
                    alignment_error_rate(held_out[1], Aligner(C=C, missed=m, **how).fit(*few).predict(held_out[0]))
                    for C, m in GRID
                ]
                chosen[title] = GRID[int(np.argmin(errors))]
            C, missed = chosen[title]
            begin = time.process_time()
            aligner = Aligner(C=C, missed=missed, **how).fit(*part(train))
            seconds = time.process_time() - begin
            report = alignment_report(gold, aligner.predict(part(test)[0]))
            rows.setdefault(f"{title}, C = {C:g}, missed = {missed:g}", []).append(
                (*report, seconds, aligner.certificate_.relative_gap)
            )
    print(f"{'':60s} {'precision':>9s} {'recall':>7s} {'AER':>14s} {'seconds':>8s} {'gap':>8s}")
    for title, found in rows.items():
        precision, recall, error, seconds, gap = (100 * np.array(found)).mean(axis=0)
        spread = 100 * np.std([row[2] for row in found], ddof=1) if len(found) > 1 else 0.0
        times = f"{seconds / 100:8.2f} {gap / 100:8.1e}" if gap else ""
        print(f"{title:60s} {precision:9.1f} {recall:7.1f} {error:6.2f} +- {spread:4.2f} {times}", flush=True)


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
