"""Chunking from parts of speech with few sentences: hidden Markov models by counting and by margin.

Symbols are the parts of speech of CoNLL-2000, states are its chunk labels. Four models are trained on 50, 200 and 1,000
training sentences, drawn anew for each seed:

    ML             counts, with a floor of 1e-6 for what does not occur
    smoothed ML    counts plus a constant, chosen from 0.01, 0.1 and 1
    margin         DiscriminativeHMM with the smoothed ML model as its reference, C chosen from a grid that includes 0
    chain          SequenceTagger on the same parts of speech: no probabilities, no reference; C chosen from a grid

Constants are chosen by cross-validation within the training sentences, so no model sees other sentences. Scores are on
the 2,012 test sentences. Intervals (95 %, Student) are over seeds, that is, over draws of training sentences;
differences are paired. The last table shows the price: how far the model moves from its reference, and how much
likelihood it loses.

    python experiments/generative/chunking_hmm.py            # 10 seeds (5 with 1,000 sentences); needs MAXMARGIN_DATA
    python experiments/generative/chunking_hmm.py --quick    # 50 sentences, 3 seeds
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from few_labels import Data, cross_validated, interval

from maxmargin.datasets import load_conll2000
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.estimators.sequence_tagger import SequenceTagger
from maxmargin.metrics import span_f1, token_accuracy
from maxmargin.reports.faithfulness import faithfulness, moved_tables, plot_faithfulness
from maxmargin.solvers.proximal_point import ProximalPoint

SIZES = {50: 10, 200: 10, 1000: 5}  # training sentences: seeds
SMOOTHING = (0.01, 0.1, 1.0)
TOTALS = (0.0, 0.3, 1.0, 3.0)  # C times the number of sentences
CHAIN_C = (0.1, 0.3, 1.0, 3.0, 10.0)
FOLDS, FOLDS_OF_MANY, MANY = 4, 2, 1000  # of cross-validation; from MANY sentences on, fewer folds are enough
TOL, ROUGH = 2e-3, 5e-3  # of final fits, and of fits that choose constants
MODELS = ("ML", "smoothed ML", "margin", "chain")


class Task(NamedTuple):
    """Sentences, and the tag sets, which are known in advance."""

    train: Data
    test: Data
    states: list[str]
    symbols: list[str]


def load() -> Task:
    halves = []
    for split in ("train", "test"):
        sentences = load_conll2000(split)
        halves.append(Data([[w[1] for w in s] for s in sentences], [[w[2] for w in s] for s in sentences]))
    train, test = halves
    states = sorted({label for half in halves for y in half.y for label in y})
    return Task(train, test, states, sorted({tag for half in halves for x in half.X for tag in x}))


def hmm(task: Task, **words: Any) -> DiscriminativeHMM:
    solver = ProximalPoint(blocks=10)
    settings = {"tol": TOL, "max_passes": 100, "solver": solver, "classes": task.states, "symbols": task.symbols}
    return DiscriminativeHMM(**{**settings, **words})


class ChainTagger:
    """The conditional model with the same information: one feature per position, its part of speech."""

    def __init__(self, task: Task, C: float) -> None:
        self.tagger = SequenceTagger(C=C, tol=1e-2, classes=task.states, ends=True)

    def fit(self, X: list[list[str]], y: list[list[str]]) -> ChainTagger:
        self.tagger.fit(_features(X), y)
        return self

    def predict(self, X: list[list[str]]) -> list[list[str]]:
        return self.tagger.predict(_features(X))


def _features(X: list[list[str]]) -> list[list[dict[str, str]]]:
    return [[{"pos": tag} for tag in x] for x in X]


def run(task: Task, n: int, seed: int) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Accuracy and F1 of each model on the test set in per cent, and the chosen constants."""
    data = task.train.draw(n, seed)
    folds = FOLDS if n < MANY else FOLDS_OF_MANY
    smoothing = cross_validated(lambda s: _smoothed(task, s), SMOOTHING, data, seed, folds)
    begin = time.process_time()
    total = cross_validated(lambda c: _smoothed(task, smoothing, c / n, ROUGH), TOTALS, data, seed, folds)
    choosing = time.process_time() - begin
    chain_C = cross_validated(lambda c: ChainTagger(task, c), CHAIN_C, data, seed, folds)
    models = {
        "ML": hmm(task, C=0.0, reference="ml"),
        "smoothed ML": _smoothed(task, smoothing),
        "margin": _smoothed(task, smoothing, total / n),
        "chain": ChainTagger(task, chain_C),
    }
    scores, seconds = {}, {}
    for name, model in models.items():
        begin = time.process_time()
        model.fit(*data)
        seconds[name] = time.process_time() - begin
        found = model.predict(task.test.X)
        scores[name] = (100 * token_accuracy(task.test.y, found), 100 * span_f1(task.test.y, found))
    facts = {
        "smoothing": smoothing,
        "C n": total,
        "chain C": chain_C,
        "gap": models["margin"].certificate_.relative_gap,
        "seconds": seconds["margin"],
        "choosing": choosing,
    }
    return scores, facts


def _smoothed(task: Task, smoothing: float, C: float = 0.0, tol: float = TOL) -> DiscriminativeHMM:
    return hmm(task, C=C, reference="smoothed", smoothing=smoothing, tol=tol)


def print_size(n: int, scores: dict[str, np.ndarray], facts: list[dict[str, float]]) -> None:
    seeds = len(facts)
    print(f"\n{n} sentences, {seeds} seeds")
    print(f"  {'':12} {'accuracy':>16} {'F1':>16}   margin minus this: accuracy, F1; better on")
    for name in MODELS:
        accuracy, f1 = interval(scores[name][:, 0]), interval(scores[name][:, 1])
        line = f"  {name:12} {accuracy[0]:8.2f} ± {accuracy[1]:4.2f} {f1[0]:9.2f} ± {f1[1]:4.2f}"
        if name != "margin":
            gain = scores["margin"] - scores[name]
            (a, da), (b, db) = interval(gain[:, 0]), interval(gain[:, 1])
            line += f"   {a:+.2f} ± {da:.2f}, {b:+.2f} ± {db:.2f}; {(gain[:, 0] > 0).sum()} of {seeds}"
        print(line)
    chosen = [f"{key} {', '.join(f'{f[key]:g}' for f in facts)}" for key in ("smoothing", "C n", "chain C")]
    print(f"  chosen: {'; '.join(chosen)}")
    seconds, choosing = (np.median([f[key] for f in facts]) for key in ("seconds", "choosing"))
    print(
        f"  margin: median {seconds:.1f} s of processor time to fit, {choosing:.0f} s to choose C; "
        f"certified gaps up to {max(f['gap'] for f in facts):.1e}",
        flush=True,
    )


def print_faithfulness(task: Task, n: int, test: Data, path: Path) -> None:
    """Print and draw the price in likelihood."""
    import matplotlib

    matplotlib.use("Agg")
    data = task.train.draw(n, 0)
    grid = [c / n for c in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)]
    results = {}
    print(f"\nFaithfulness: seed 0 with {n} sentences; ln P(x, y) is per test sentence, renormalised")
    heads = ("C n", "ln P(x, y)", "accuracy", "divergence", "lost mass", "gap")
    print(f"  {'reference':18} " + " ".join(f"{head:>10}" for head in heads))
    for smoothing in (0.01, 1.0):
        name = f"smoothed by {smoothing:g}"
        results[name] = faithfulness(_smoothed(task, smoothing), data, test, grid)
        for row in _rows(results[name]):
            numbers = (row["C"] * n, row["log_likelihood"], 100 * row["accuracy"], row["divergence"], row["lost_mass"])
            print(f"  {name:18} " + " ".join(f"{x:10.3f}" for x in numbers) + f" {row['relative_gap']:10.1e}")
    model = _smoothed(task, 0.01, 1.0 / n).fit(*data)
    print("  tables that moved most, smoothed by 0.01, C n = 1")
    for row in _rows(moved_tables(model, top=6)):
        print(
            f"    {row['table']:26} divergence {row['divergence']:.3f}, lost mass {row['lost_mass']:.3f}; most in "
            f"{row['value']!r}: {row['reference']:.3f} -> {row['model']:.3f}; seen {row['seen']:.0f} times"
        )
    figure = plot_faithfulness(results)[0].figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


def _rows(table: Any) -> list[dict[str, Any]]:
    return table.to_dict("records") if hasattr(table, "to_dict") else table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only 50 sentences, 3 seeds and 300 test sentences")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="numbers of training sentences")
    parser.add_argument("--seeds", type=int, help="the same number for every size")
    parser.add_argument("--output", type=Path, default=Path("outputs"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    task = load()
    if options.quick:
        task = task._replace(test=task.test.take(np.arange(300)))
    everything = _smoothed(task, 0.01).fit(*task.train)
    found = everything.predict(task.test.X)
    print(
        f"smoothed ML with all {len(task.train.X)} sentences: accuracy {100 * token_accuracy(task.test.y, found):.2f}, "
        f"F1 {100 * span_f1(task.test.y, found):.2f}"
    )
    for n in [50] if options.quick else options.sizes:
        seeds = options.seeds or (3 if options.quick else SIZES.get(n, 5))
        runs = [run(task, n, seed) for seed in range(seeds)]
        print_size(n, {name: np.array([scores[name] for scores, _ in runs]) for name in MODELS}, [f for _, f in runs])
    size = 50 if options.quick else 200
    print_faithfulness(task, size, task.test, options.output / "chunking_hmm_faithfulness.png")


if __name__ == "__main__":
    main()
