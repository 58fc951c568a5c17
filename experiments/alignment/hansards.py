"""Word alignment on the Hansards: 200 of 447 sentence pairs with gold links teach, 247 test, over random splits.

    MAXMARGIN_DATA=... make experiment-alignment
    python experiments/alignment/hansards.py --splits 1

Alignment models are learned without links from the 2,383 further pairs and the text of the 447, and in a second block
from 10,000 pairs of Europarl as well. Beside ours: what these models say alone, links where both directions agree;
model 2 also with directions that learn by themselves, as in the paper of the model. Everything that is chosen is chosen
on the 200 of each split: how many letters of words the models are learned of a second time by the error rate in four
folds, then C and the cost of a missed link on a quarter; rows with neighbours take what was chosen without. If the
command ``eflomal-align`` is there (pip install eflomal), its links are rows too, where both directions agree and grown
from there, over several runs, because it samples; ours is then also shown with the links of the first run as a further
opinion. Published with 0.5 to 1.1 million pairs: matching 10.7 (Taskar et al. 2005), 8.2, with fertility and quadratic
terms 6.1 (Lacoste-Julien et al. 2006). Times are processor seconds of training, one thread.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from maxmargin.datasets import Alignments, Links, load_hansards, read_bitext, require
from maxmargin.estimators.aligner import Aligner
from maxmargin.features.alignment import OPINION, AlignmentFeatures, sentence_pairs
from maxmargin.features.word_models import WordModels, learn
from maxmargin.metrics import alignment_error_rate, alignment_report

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

Link = tuple[int, int]
N_TRAIN = 200
N_FOLDS = 4
LETTERS = (0, 4, 6)
GRID = [(C, missed) for C in (0.1, 1.0, 10.0) for missed in (2.0, 3.0, 5.0)]
SETTINGS = {  # most links of a word, bonuses for links that touch
    "1 link a word": {"max_links": 1},
    "2 links a word": {"max_links": 2},
    "3 links a word": {"max_links": 3},
    "1 link a word, neighbours": {"max_links": 1, "neighbours": True},
    "2 links a word, neighbours": {"max_links": 2, "neighbours": True},
}
EUROPARL = "Europarl, French and English; the first 10,000 pairs of the Moses regression tests"


def agreed(models: WordModels, pairs: list, name: str) -> list[set[Link]]:
    """Links of words that choose each other by a model, rather than any other word or none."""
    bitext = models.lexicon.read(pairs)
    ways, found = models.posteriors(bitext, name), []
    for s in range(len(pairs)):
        right, left = bitext.table(ways[0], s), bitext.table(ways[1], s)
        none = 1.0 - right.sum(axis=0), 1.0 - left.sum(axis=1)
        chosen = (right >= np.maximum(right.max(axis=0, initial=0.0), none[0])) & (
            left >= np.maximum(left.max(axis=1, initial=0.0), none[1])[:, None]
        )
        found.append({(int(i), int(j)) for i, j in np.argwhere(chosen)})
    return found


def eflomal(pairs: list) -> list[tuple[set[Link], set[Link]]] | None:
    """Links from left to right and from right to left of each pair by eflomal, or None when it is not installed.

    Oestling, Tiedemann 2016, Efficient word alignment with Markov chain Monte Carlo.
    """
    command = shutil.which("eflomal-align", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
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


def baselines(data: Alignments, features: AlignmentFeatures, bitext: list) -> dict[str, list[set[Link]]]:
    """Links of the pairs of ``data`` by alignment models alone."""
    pairs = [[[word.lower() for word in words] for words in pair] for pair in sentence_pairs([*data.pairs, *bitext])]
    names = {"one": "model 1", "two": "model 2", "markov": "hidden Markov model"}
    known = pairs[: len(data.pairs)]
    found = {f"{title}, both directions agree": agreed(features.models_, known, name) for name, title in names.items()}
    found["model 2, each direction by itself, intersected"] = agreed(learn(pairs, agree=False), known, "two")
    return found


def error(tables: list[np.ndarray], data: Alignments, few: list[int], others: list[int], **how: object) -> float:
    """Alignment error rate on other examples of an aligner that has learned from few."""
    aligner = Aligner(tol=1e-2, **how).fit([tables[i] for i in few], [data.links[i] for i in few])
    return alignment_error_rate([data.links[i] for i in others], aligner.predict([tables[i] for i in others]))


def best_letters(tables: dict[int, list[np.ndarray]], data: Alignments, train: list[int]) -> int:
    """The number of letters with the least error over folds of the training examples."""
    folds = [train[k::N_FOLDS] for k in range(N_FOLDS)]

    def mean_error(letters: int) -> float:
        parts = [([i for i in train if i not in fold], fold) for fold in map(set, folds)]
        return float(np.mean([error(tables[letters], data, few, sorted(fold), max_links=1) for few, fold in parts]))

    return min(tables, key=mean_error)


def compare(data: Alignments, bitext: list, splits: int, runs_of_eflomal: int) -> None:
    runs = [found for found in (eflomal([*data.pairs, *bitext]) for _ in range(runs_of_eflomal)) if found is not None]
    runs = [found[: len(data.pairs)] for found in runs]
    links = [forward & reverse for forward, reverse in runs[0]] if runs else [set()] * len(data.pairs)
    examples = [(*pair, given) for pair, given in zip(data.pairs, links, strict=True)]
    asked = {}
    for letters in LETTERS:
        begin = time.process_time()
        features = AlignmentFeatures(letters=letters, opinion=True).fit([*data.pairs, *bitext])
        seconds = time.process_time() - begin
        asked[letters] = features.transform(examples)
    tables = {letters: [x[:, :, : -len(OPINION)] for x in known] for letters, known in asked.items()}
    print(f"\nbitext of {len(data.pairs) + len(bitext)} pairs; alignment models {seconds:.0f} s")
    said = {title: [found] for title, found in baselines(data, features, bitext).items()}
    ours = [(f"ours, {title}", tables, how) for title, how in SETTINGS.items()]
    if runs:
        said["eflomal, both directions agree"] = [[there & back for there, back in run] for run in runs]
        said["eflomal, grown from these"] = [[grown(there, back) for there, back in run] for run in runs]
        ours += [(f"{title}, asking eflomal", asked, how) for title, _, how in ours]
    else:
        print("eflomal-align is not installed; its rows are left out.")
    rows: dict[str, list[tuple[float, ...]]] = {title: [] for title in (*said, *(title for title, *_ in ours))}
    chosen: dict[str, list[str]] = {title: [] for title in rows}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(data.pairs)).tolist()
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        gold = [data.links[i] for i in test]
        for title, several in said.items():
            reports = [alignment_report(gold, [sorted(found[i]) for i in test]) for found in several]
            rows[title].append((*np.mean(reports, axis=0), 0.0, 0.0))
        letters = best_letters(tables, data, train)
        few, held_out = train[: 3 * N_TRAIN // 4], train[3 * N_TRAIN // 4 :]
        best: dict[tuple[bool, int], tuple[float, float]] = {}
        for title, known, how in ours:
            key = known is asked, how["max_links"]
            if key not in best:
                errors = [error(known[letters], data, few, held_out, C=C, missed=m, **how) for C, m in GRID]
                best[key] = GRID[int(np.argmin(errors))]
            C, missed = best[key]
            begin = time.process_time()
            aligner = Aligner(C=C, missed=missed, **how)
            aligner.fit([known[letters][i] for i in train], [data.links[i] for i in train])
            seconds = time.process_time() - begin
            report = alignment_report(gold, aligner.predict([known[letters][i] for i in test]))
            rows[title].append((*report, seconds, aligner.certificate_.relative_gap))
            chosen[title].append(f"{C:g}, {missed:g}")
        chosen["letters"] = [*chosen.get("letters", []), str(letters)]
        print(f"split {seed + 1} of {splits}", file=sys.stderr, flush=True)
    print_rows(rows, chosen)
    if runs:
        several = said["eflomal, both directions agree"]
        errors = [100 * alignment_error_rate(data.links, [sorted(links) for links in found]) for found in several]
        print(f"AER of the runs of eflomal on all {len(data.pairs)} pairs: {', '.join(f'{e:.2f}' for e in errors)}")


def print_rows(rows: dict[str, list[tuple[float, ...]]], chosen: dict[str, list[str]]) -> None:
    """Means over splits, in how many of them a row is below eflomal, and what was chosen how often."""
    print(f"letters: {', '.join(chosen['letters'])}")
    titles = f"{'precision':>9s} {'recall':>7s} {'AER':>14s} {'below eflomal':>14s} {'seconds':>8s} {'gap':>8s}"
    print(f"{'':47s} {titles}  C, missed")
    rival = [row[2] for row in rows.get("eflomal, both directions agree", [])]
    for title, found in rows.items():
        precision, recall, mean, seconds, gap = (100 * np.array(found)).mean(axis=0)
        spread = 100 * np.std([row[2] for row in found], ddof=1) if len(found) > 1 else 0.0
        below = (
            f"{sum(row[2] < other for row, other in zip(found, rival, strict=True))} of {len(found)}" if rival else ""
        )
        times = f"{seconds / 100:8.2f} {gap / 100:8.1e}" if gap else ""
        most = "; ".join(f"{what} ({n})" for what, n in Counter(chosen[title]).most_common(3))
        numbers = f"{precision:9.1f} {recall:7.1f} {mean:6.2f} +- {spread:4.2f} {below:>14s}"
        print(f"{title:47s} {numbers} {times}  {most}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3, help="of eflomal")
    parser.add_argument("--bitext", choices=["hansards", "europarl"], help="only this block; both when missing")
    options = parser.parse_args()
    print(machine_line())
    data = load_hansards()
    if options.bitext != "europarl":
        compare(data, data.bitext, options.splits, options.runs)
    if options.bitext == "hansards":
        return
    files = [require(f"europarl10k/europarl.{language}.xz", EUROPARL) for language in ("fr", "en")]
    compare(data, [*data.bitext, *read_bitext(*files)], options.splits, options.runs)


if __name__ == "__main__":
    main()
