"""Adaptation of a tagger to another domain: parts of speech of newspaper text to biomedical abstracts.

A hidden Markov model of words and parts of speech, estimated by counting on Wall Street Journal text (CoNLL-2000), has
to tag abstracts of GENIA, with 20 or 100 labelled sentences. Words that occur at least 50 times in the newspaper are
symbols; all others are grouped into classes by ending and spelling. There are four models:

    source     counts of the newspaper
    target     counts of the labelled abstracts alone
    pooled     counts of the newspaper plus a multiple of those of the abstracts, chosen from 1, 10, ..., 10,000
    margin     DiscriminativeHMM on the labelled abstracts with the pooled model as its reference, C chosen from a grid
               that includes 0

Constants are chosen by cross-validation within the labelled abstracts. Scores are accuracies on the 1,360 sentences of
GENIA's test half. Intervals (95 %, Student) are over seeds, that is, over draws of labelled sentences; differences are
paired. Taggers with features of the neighbouring words do far better on both domains. The question here is what a
margin adds to the same tables of probabilities.

    python experiments/generative/adaptation.py            # 5 seeds; needs MAXMARGIN_DATA
    python experiments/generative/adaptation.py --quick    # 20 labelled sentences, 2 seeds, 200 test sentences
"""

from __future__ import annotations

import argparse
import lzma
import re
import time
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from few_labels import Data, cross_validated, interval

from maxmargin.datasets import load_conll2000, require
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.solvers.proximal_point import ProximalPoint

SIZES = (20, 100)
FREQUENT = 50
SMOOTHING = 0.01
MULTIPLES = (1.0, 10.0, 100.0, 1e3, 1e4)
TOTALS = (0.0, 0.3, 1.0, 3.0)  # C times the number of sentences
FOLDS = 2
TOL = 5e-3
MODELS = ("source", "target", "pooled", "margin")
ENDINGS = (
    "ing", "ed", "ly", "tion", "ness", "ment", "ous", "ive", "al", "ic", "able", "ible", "ent", "ant", "ity", "er",
    "or", "in", "ase", "s", "y",
)  # fmt: skip
_WHERE = "the GENIA treebank in McClosky's division, as xz text with a line 'word<TAB>tag' for each token"


class Task(NamedTuple):
    """Newspaper sentences, labelled abstracts to draw from, test abstracts, and all states and symbols."""

    source: Data
    target: Data
    test: Data
    states: list[str]
    symbols: list[str]


def load() -> Task:
    newspaper = [[(word, tag) for word, tag, _ in sentence] for sentence in load_conll2000("train")]
    counts = Counter(word for sentence in newspaper for word, _ in sentence)
    known = {word for word, n in counts.items() if n >= FREQUENT}
    halves = [newspaper, read_genia("train"), read_genia("test")]
    data = [
        Data([[symbol(w, known) for w, _ in s] for s in half], [[t for _, t in s] for s in half]) for half in halves
    ]
    states = sorted({tag for half in data for y in half.y for tag in y})
    return Task(*data, states, sorted({word for half in data for x in half.X for word in x}))


def read_genia(split: str) -> list[list[tuple[str, str]]]:
    sentences: list[list[tuple[str, str]]] = [[]]
    with lzma.open(require(f"genia_pos/{split}.tsv.xz", _WHERE), "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#doc "):
                continue
            word, _, tag = line.rstrip("\n").partition("\t")
            if tag:
                sentences[-1].append((word, tag))
            elif sentences[-1]:
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def symbol(word: str, known: set[str]) -> str:
    """The word itself if it is frequent, otherwise its class."""
    if word in known:
        return word
    if re.fullmatch(r"[\d.,%/-]+", word):
        return "<number>"
    capital = "C" if word[0].isupper() else ""
    for ending in ENDINGS:
        if word.lower().endswith(ending) and len(word) > len(ending) + 2:
            return f"<{capital}-{ending}>"
    if word.isupper():
        return "<upper>"
    if any(sign.isdigit() for sign in word):
        return "<digit>"
    return "<hyphen>" if "-" in word else f"<{capital}>"


def hmm(task: Task, **words: Any) -> DiscriminativeHMM:
    solver = ProximalPoint(blocks=5, limit=60)
    settings = {"tol": TOL, "max_passes": 60, "solver": solver, "classes": task.states, "symbols": task.symbols}
    return DiscriminativeHMM(**{**settings, **words})


class Pooled:
    """Counts of the source plus a multiple of those of the target, and a margin on the target if C > 0."""

    def __init__(self, task: Task, source: DiscriminativeHMM, multiple: float, C: float = 0.0) -> None:
        self.task, self.source, self.multiple, self.C = task, source, multiple, C

    def fit(self, X: list[list[str]], y: list[list[str]]) -> DiscriminativeHMM:
        layout = self.source.layout_
        own = self.source.model_.bind(X, y, layout=layout).counts()
        counts = self.source.counts_ + self.multiple * own + SMOOTHING
        reference = layout.groups(counts / layout.tables.sums(counts)[layout.tables.table])
        return hmm(self.task, C=self.C, reference=reference).fit(X, y)


def run(task: Task, source: DiscriminativeHMM, n: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Test accuracy of each model in per cent, and the chosen constants."""
    data = task.target.draw(n, seed)
    multiple = cross_validated(lambda m: Pooled(task, source, m), MULTIPLES, data, seed, FOLDS)
    total = cross_validated(lambda c: Pooled(task, source, multiple, c / n), TOTALS, data, seed, FOLDS)
    begin = time.process_time()
    margin = Pooled(task, source, multiple, total / n).fit(*data)
    facts = {"multiple": multiple, "C n": total, "gap": margin.certificate_.relative_gap}
    facts["seconds"] = time.process_time() - begin
    models = {
        "source": source,
        "target": hmm(task, C=0.0, reference="smoothed", smoothing=SMOOTHING).fit(*data),
        "pooled": Pooled(task, source, multiple).fit(*data),
        "margin": margin,
    }
    return {name: 100 * model.score(*task.test) for name, model in models.items()}, facts


def print_size(n: int, scores: dict[str, np.ndarray], facts: list[dict[str, float]]) -> None:
    print(f"\n{n} labelled abstract sentences, {len(facts)} seeds")
    for name in MODELS:
        mean, half = interval(scores[name])
        line = f"  {name:8} {mean:6.2f} ± {half:.2f}" if name != "source" else f"  {name:8} {mean:6.2f}       "
        if name != "margin":
            gain = scores["margin"] - scores[name]
            more, width = interval(gain)
            line += f"   margin minus this {more:+.2f} ± {width:.2f}, better on {(gain > 0).sum()} of {len(facts)}"
        print(line)
    chosen = [f"{key} {', '.join(f'{f[key]:g}' for f in facts)}" for key in ("multiple", "C n")]
    seconds, gap = np.median([f["seconds"] for f in facts]), max(f["gap"] for f in facts)
    print(f"  chosen: {'; '.join(chosen)}; median {seconds:.1f} s to fit, certified gaps up to {gap:.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    task = load()
    if options.quick:
        task = task._replace(test=task.test.take(np.arange(200)))
    source = hmm(task, C=0.0, reference="smoothed", smoothing=SMOOTHING).fit(*task.source)
    print(f"{len(task.states)} states, {len(task.symbols)} symbols; accuracy on GENIA in percent")
    for n in SIZES[:1] if options.quick else SIZES:
        runs = [run(task, source, n, seed) for seed in range(2 if options.quick else options.seeds)]
        print_size(n, {name: np.array([scores[name] for scores, _ in runs]) for name in MODELS}, [f for _, f in runs])


if __name__ == "__main__":
    main()
