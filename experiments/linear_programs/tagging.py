"""Table 1 and figures 1 and 2 of Wang, Shawe-Taylor 2009: parts of speech by linear programs and by their peers.

The paper tags 6,700 sentences of MEDLINE (MedPost); GENIA stands in for it, in random splits of 5,700 and 1,000
sentences. As there, the features of a label are its word and the label before. Four ways to solve the same linear
program (unit margins, L1 penalty, one correct output) run beside the averaged perceptron, MIRA, a conditional random
field (python-crfsuite, at its default stop) and a hidden Markov model by counting. C of the linear programs and of MIRA
is chosen on a tenth of the first training part. Times are processor seconds of training, all on one thread; those of
the linear programs include the certificate of the whole problem.

    MAXMARGIN_DATA=... make experiment-lp-tagging
    python experiments/linear_programs/tagging.py --quick              # 300 sentences, one split
    python experiments/linear_programs/tagging.py --figures FOLDER     # figures 1 and 2 (pip install matplotlib)
"""

from __future__ import annotations

import argparse
import lzma
import sys
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
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.linear_programs.extragradient import Extragradient
from maxmargin.solvers.linear_programs.highs import Highs
from maxmargin.solvers.linear_programs.primal_dual import PrimalDual
from maxmargin.solvers.mira import MIRA
from maxmargin.solvers.perceptron import Perceptron

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

WHERE = "the GENIA treebank in McClosky's division, word and tag per line"
TOL = 1e-2  # certified relative gap of the linear programs
MOST_SECONDS = 600.0
LP_GRID = (10.0, 30.0, 100.0)
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
    rounds: int
    gap: float = np.nan
    share: float = np.nan  # of weights that are not zero


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


def linear_program(master: object, C: float, tol: float = TOL) -> SequenceTagger:
    solver = ColumnGeneration(master=master)
    return SequenceTagger(penalty="l1", C=C, tol=tol, solver=solver, max_seconds=MOST_SECONDS)


def fitted(model: SequenceTagger, data: Split) -> tuple[SequenceTagger, Result]:
    """Train and test."""
    begin = time.process_time()
    model.fit(data.X_train, data.y_train)
    seconds = time.process_time() - begin
    error = 100.0 * (1.0 - token_accuracy(data.y_test, model.predict(data.X_test)))
    share = float(np.mean(model.weights_ != 0.0))
    rounds = len(model.rounds_) if model.penalty == "l1" else int(model.n_iter_)
    return model, Result(error, seconds, rounds, model.certificate_.relative_gap, share)


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


def methods(data: Split) -> dict[str, Callable[[Split], Result]]:
    """The rows of the table, their constants chosen on the first split."""
    C = chosen_C(lambda C: linear_program(PrimalDual(), C), LP_GRID, data)
    mira = chosen_C(lambda C: SequenceTagger(solver=MIRA(), C=C), MIRA_GRID, data)
    print(f"C of the linear programs {C:g}, of MIRA {mira:g}; the former to a certified {100 * TOL:g} %", flush=True)
    masters = {
        "LP simplex": Highs(method="simplex"), "LP interior point": Highs(method="ipm"),
        "LP extragradient": Extragradient(step="frobenius"), "LP primal-dual": PrimalDual(), "LP auto": "auto",
    }  # fmt: skip
    rows: dict[str, Callable[[Split], Result]] = {
        name: lambda data, master=master: fitted(linear_program(master, C), data)[1] for name, master in masters.items()
    }
    rows["L2, the same loss"] = lambda data: fitted(SequenceTagger(rescaling="unit", C=C, tol=TOL), data)[1]
    rows["perceptron"] = lambda data: fitted(SequenceTagger(solver=Perceptron()), data)[1]
    rows["MIRA"] = lambda data: fitted(SequenceTagger(solver=MIRA(), C=mira), data)[1]
    return rows | {"CRF": random_field, "HMM": hidden_markov}


def table(splits: list[Split]) -> None:
    print(f"{'':18s} {'error %':>14s} {'paper':>14s} {'seconds':>8s} {'rounds':>7s} {'gap':>8s} {'weights':>8s}")
    for name, run in methods(splits[0]).items():
        found = [run(data) for data in splits]
        errors = np.array([result.error for result in found])
        spread = errors.std(ddof=1) if len(errors) > 1 else 0.0
        seconds, rounds, gap, share = np.mean([result[1:] for result in found], axis=0)
        figures = f"{seconds:8.1f} {rounds:7.0f} {gap:8.1e} {100 * share:7.1f}%"
        print(f"{name:18s} {errors.mean():6.2f} +- {spread:4.2f} {PAPER.get(name, ''):>14s} {figures}", flush=True)


def figures(data: Split, folder: Path, C: float = 10.0) -> None:
    """Figure 1: primal and dual values along the rounds; figure 2: processor seconds by round, for each master."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    masters = {"simplex": Highs(method="simplex"), "extragradient": Extragradient(step="frobenius")}
    for name, master in (masters | {"primal-dual": PrimalDual()}).items():
        rounds = fitted(linear_program(master, C), data)[0].rounds_
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
    words.add_argument("--figures", type=Path, metavar="FOLDER", help="draw figures 1 and 2 instead of the table")
    given = words.parse_args()
    if given.quick:
        given.train, given.test, given.repeats = 300, 200, 1
    warnings.simplefilter("ignore")  # budgets that end a fit show in its gap
    sentences = read()
    splits = [split(sentences, given.train, given.test, seed) for seed in range(given.repeats)]
    if given.figures:
        figures(splits[0], given.figures)
        return
    print(machine_line())
    print(f"{given.train} training and {given.test} test sentences of GENIA, {given.repeats} random splits")
    table(splits)


if __name__ == "__main__":
    main()
