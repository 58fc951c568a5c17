"""Table 1 and figures 1 and 2 of Wang, Shawe-Taylor 2009: parts of speech by linear programs and by their peers.

The paper tags 6,700 sentences of MEDLINE (MedPost); GENIA stands in for it, in random splits of 5,700 and 1,000
sentences. As there, the features of a label are its word and the label before. Ways to solve the same linear program
(unit margins, L1 penalty, one correct output) run beside the same loss with an L2 penalty, the averaged perceptron,
MIRA, a conditional random field (python-crfsuite, at its default stop) and a hidden Markov model by counting. C is
chosen on a tenth of the first training part. Times are processor seconds of training, all on one thread; those of the
linear programs include the certificate of the whole problem. "touched" are the weights that were not zero at any time,
"file" is the size of the saved model.

    MAXMARGIN_DATA=... make experiment-lp-tagging
    python experiments/linear_programs/tagging.py --quick              # 300 sentences, one split
    python experiments/linear_programs/tagging.py --repeats 1 --seconds 120   # each fit ends by then, with its gap
    python experiments/linear_programs/tagging.py --figures FOLDER     # figures 1 and 2 (pip install matplotlib)
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.datasets import require
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.estimators.sequence_tagger import SequenceTagger
from maxmargin.metrics import token_accuracy
from maxmargin.solvers.column_generation import ColumnGeneration, ColumnState
from maxmargin.solvers.linear_programs.extragradient import Extragradient
from maxmargin.solvers.linear_programs.highs import Highs
from maxmargin.solvers.linear_programs.primal_dual import PrimalDual
from maxmargin.solvers.mira import MIRA
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.recentred_engine import RecentredState

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

WHERE = "the GENIA treebank in McClosky's division, word and tag per line"
TOL = 1e-2  # certified relative gap of the linear programs
LP_GRID = (3.0, 10.0, 30.0)
L2_GRID = (0.1, 1.0, 10.0)
MIRA_GRID = (0.01, 0.1, 1.0)
PAPER = {
    "LP simplex": "4.94 +- 0.18", "LP extragradient": "4.92 +- 0.13", "perceptron": "5.38 +- 0.19",
    "MIRA": "4.91 +- 0.06", "CRF": "4.58 +- 0.14", "HMM": "20.02 +- 0.29",
}  # fmt: skip

Words, Tags = list[list[list[str]]], list[list[str]]


class Split(NamedTuple):
    """Sentences as lists of features, and their tags."""

    X_train: Words
    y_train: Tags
    X_test: Words
    y_test: Tags


class Result(NamedTuple):
    """What a method did on a split."""

    error: float  # per cent of the test tokens
    seconds: float
    rounds: float
    gap: float = np.nan
    share: float = np.nan  # of weights that are not zero,
    touched: float = np.nan  # or were not at any time
    size: float = np.nan  # of the model file, in kB


def read() -> list[list[tuple[str, str]]]:
    """All sentences of GENIA."""
    sentences: list[list[tuple[str, str]]] = [[]]
    for part in ("train", "dev", "test", "future_use"):
        with lzma.open(require(f"genia_pos/{part}.tsv.xz", WHERE), "rt", encoding="utf-8") as lines:
            for line in lines:
                word, _, tag = line.rstrip("\n").partition("\t")
                if tag and not line.startswith("#doc "):
                    sentences[-1].append((word, tag))
                elif sentences[-1]:
                    sentences.append([])
    return [sentence for sentence in sentences if sentence]


def split(sentences: list[list[tuple[str, str]]], n_train: int, n_test: int, seed: int) -> Split:
    """A random part for training and another for the test."""
    chosen = np.random.default_rng(seed).permutation(len(sentences))[: n_train + n_test]
    X = [[[f"w={word}"] for word, _ in sentences[i]] for i in chosen]
    y = [[tag for _, tag in sentences[i]] for i in chosen]
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def linear_program(solver: object, C: float, seconds: float) -> SequenceTagger:
    return SequenceTagger(penalty="l1", C=C, tol=TOL, solver=solver, max_seconds=seconds)


def fitted(model: SequenceTagger, data: Split) -> tuple[SequenceTagger, Result]:
    """Train and test."""
    begin = time.process_time()
    model.fit(data.X_train, data.y_train)
    seconds = time.process_time() - begin
    error = 100.0 * (1.0 - token_accuracy(data.y_test, model.predict(data.X_test)))
    touched, state = np.nan, model.state_
    if isinstance(state, (ColumnState, RecentredState)):
        touched = float(np.mean(state.columns if isinstance(state, ColumnState) else state.touched))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.mm")
        size = (Path(folder) / "model.mm").stat().st_size / 1000
    share, gap = float(np.mean(model.weights_ != 0.0)), model.certificate_.relative_gap
    return model, Result(error, seconds, model.n_iter_, gap, share, touched, size)


def hidden_markov(data: Split) -> Result:
    """Counts, smoothed; words that training does not have are one symbol."""
    known = {word for sentence in data.X_train for (word,) in sentence}
    X_train, X_test = (
        [[word if word in known else "<other>" for (word,) in sentence] for sentence in X]
        for X in (data.X_train, data.X_test)
    )
    begin = time.process_time()
    model = DiscriminativeHMM(C=0.0, reference="smoothed", symbols=sorted({*known, "<other>"}))
    model.fit(X_train, data.y_train)
    seconds = time.process_time() - begin
    return Result(100.0 * (1.0 - token_accuracy(data.y_test, model.predict(X_test))), seconds, 1)


def random_field(data: Split) -> Result:
    from peers import train_peer

    found = train_peer("lbfgs", *data)
    return Result(100.0 * (1.0 - found.accuracy), found.processor_seconds, found.iterations)


def chosen_C(make: Callable[[float], SequenceTagger], grid: tuple[float, ...], data: Split) -> float:
    """The C of least error on a tenth of the training part."""
    cut = len(data.X_train) * 9 // 10
    held = Split(data.X_train[:cut], data.y_train[:cut], data.X_train[cut:], data.y_train[cut:])
    return min(grid, key=lambda C: fitted(make(C), held)[1].error)


def methods(data: Split, seconds: float) -> dict[str, Callable[[Split], Result]]:
    """The rows of the table, their constants chosen on the first split."""
    C = chosen_C(lambda C: linear_program("auto", C, seconds), LP_GRID, data)
    quadratic = chosen_C(lambda C: SequenceTagger(rescaling="unit", C=C, tol=TOL), L2_GRID, data)
    mira = chosen_C(lambda C: SequenceTagger(solver=MIRA(), C=C), MIRA_GRID, data)
    print(f"C of the linear programs {C:g}, of L2 {quadratic:g}, of MIRA {mira:g}; both former to a certified 1 %")
    solvers = {
        "LP auto": "auto", "LP primal-dual": ColumnGeneration(PrimalDual()),
        "LP simplex": ColumnGeneration(Highs(method="simplex")),
        "LP interior point": ColumnGeneration(Highs(method="ipm")),
        "LP extragradient": ColumnGeneration(Extragradient(step="frobenius"), start="ones"),
    }  # fmt: skip
    rows: dict[str, Callable[[Split], Result]] = {
        name: lambda data, solver=solver: fitted(linear_program(solver, C, seconds), data)[1]
        for name, solver in solvers.items()
    }
    rows["L2, the same loss"] = lambda data: fitted(SequenceTagger(rescaling="unit", C=quadratic, tol=TOL), data)[1]
    rows["perceptron"] = lambda data: fitted(SequenceTagger(solver=Perceptron()), data)[1]
    rows["MIRA"] = lambda data: fitted(SequenceTagger(solver=MIRA(), C=mira), data)[1]
    return {"CRF": random_field, "HMM": hidden_markov} | rows


def table(splits: list[Split], seconds: float) -> None:
    words = ("error %", "paper", "seconds", "passes", "gap", "weights", "touched", "file kB")
    print(f"{'':18s} " + " ".join(f"{word:>{n}s}" for word, n in zip(words, (14, 14, 8, 7, 8, 8, 8, 8), strict=True)))
    spent = {}
    for name, run in methods(splits[0], seconds).items():
        found = np.array([run(data) for data in splits])
        spread = found[:, 0].std(ddof=1) if len(found) > 1 else 0.0
        error, spent[name], rounds, gap, share, touched, size = found.mean(axis=0)
        figures = f"{spent[name]:8.1f} {rounds:7.0f} {gap:8.1e} {100 * share:7.1f}% {100 * touched:7.1f}% {size:8.0f}"
        print(f"{name:18s} {error:6.2f} +- {spread:4.2f} {PAPER.get(name, ''):>14s} {figures}", flush=True)
    for name in ("LP extragradient", "CRF"):
        print(f"time of {name} / time of LP auto: {spent[name] / spent['LP auto']:.1f}")


def figures(data: Split, folder: Path, seconds: float, C: float = 10.0) -> None:
    """Figure 1: primal and dual values along the rounds; figure 2: processor seconds by round, for each master."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    masters = {"simplex": Highs(method="simplex"), "extragradient": Extragradient(step="frobenius")}
    for name, master in (masters | {"primal-dual": PrimalDual()}).items():
        rounds = fitted(linear_program(ColumnGeneration(master), C, seconds), data)[0].rounds_
        primal, dual = ([row[word] for row in rounds] for word in ("primal", "dual"))
        left.plot(dual, primal, marker=".", label=name)
        right.plot([row["oracle_seconds"] + row["solver_seconds"] for row in rounds], marker=".", label=name)
    ends = left.get_xlim()
    left.plot(ends, ends, color="grey", linewidth=0.8)
    left.set(xlabel="dual value", ylabel="primal value", title="towards the optimum", yscale="log")
    right.set(xlabel="round", ylabel="seconds so far", title="time by round", yscale="log")
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    plt.tight_layout()
    plt.savefig(folder / "linear_programs.png", dpi=120)
    print(f"wrote {folder / 'linear_programs.png'}")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true", help="300 training sentences, one split")
    words.add_argument("--train", type=int, default=5700)
    words.add_argument("--test", type=int, default=1000)
    words.add_argument("--repeats", type=int, default=5)
    words.add_argument("--seconds", type=float, default=600.0, help="the most that a fit may take")
    words.add_argument("--figures", type=Path, metavar="FOLDER", help="draw figures 1 and 2 instead of the table")
    given = words.parse_args()
    if given.quick:
        given.train, given.test, given.repeats = 300, 200, 1
    warnings.simplefilter("ignore")  # budgets that end a fit show in its gap
    sentences = read()
    splits = [split(sentences, given.train, given.test, seed) for seed in range(given.repeats)]
    if given.figures:
        figures(splits[0], given.figures, given.seconds)
        return
    print(machine_line())
    print(f"{given.train} training and {given.test} test sentences of GENIA, {given.repeats} random splits")
    table(splits, given.seconds)


if __name__ == "__main__":
    main()
