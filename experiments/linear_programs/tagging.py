"""Table 1 and figures 1 and 2 of Wang, Shawe-Taylor 2009: parts of speech by linear programs and by their peers.

The paper tags 6,700 sentences of MEDLINE (MedPost); GENIA stands in for it, in random splits of 5,700 and 1,000
sentences. As there, the features of a label are its word and the label before. Ways to solve the same linear program
(unit margins, L1 penalty, one correct output; "auto" is the recentred dual for 200 sentences or more) run beside the
same loss with an L2 penalty, the averaged perceptron, MIRA, a conditional random field (python-crfsuite, at its default
stop) and a hidden Markov model by counting. C is chosen on a tenth of the first training part. Times are processor
seconds of training, all on one thread; those of the linear programs include the certificate of the whole problem.
"touched" are the weights that were not zero at any time, "file" is the size of the saved model.

The first table has the size of the paper. From nothing, column generation takes many rounds there, so that each master
begins with the rows, multipliers and weights of a recentred dual that was stopped at a gap of at most 5 %, or 1.5 % for
simplex and extragradient ("start"), whose time and passes count. The last row is the paper's method as printed, from w
= 1, which ends when it has taken ``--times`` the time of the recentred dual. The second table has so few sentences
(``--few``) that masters can begin as in the paper, at w = 1, each for itself; figures 1 and 2 are drawn from these
runs. A run of column generation ends after ``--seconds`` of processor time, and its row then shows the gap that it has
reached. With ``--keep`` the results of the first table are kept in a file, and a run that was ended goes on behind
them.

    MAXMARGIN_DATA=... make experiment-lp-tagging
    python experiments/linear_programs/tagging.py --train 300 --repeats 1        # without figures 1 and 2 (matplotlib)
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.callbacks.base import Callback, Run
from maxmargin.datasets import require
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.estimators.sequence_tagger import SequenceTagger
from maxmargin.metrics import token_accuracy
from maxmargin.reports import generalisation
from maxmargin.solvers.column_generation import ColumnGeneration, ColumnState
from maxmargin.solvers.linear_programs.extragradient import Extragradient
from maxmargin.solvers.linear_programs.highs import Highs
from maxmargin.solvers.linear_programs.primal_dual import PrimalDual
from maxmargin.solvers.linear_programs.program import Master
from maxmargin.solvers.mira import MIRA
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.recentred_engine import RecentredState

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

WHERE = "the GENIA treebank in McClosky's division, word and tag per line"
TOL = 1e-2  # certified relative gap of the linear programs,
FIRST = 0.05  # and that at which column generation takes over;
LATER = 0.015  # for masters that hardly move from there
MOST_STEPS = 6_000_000  # of the extragradient method in one master, divided by the number of sentences
CLOCK = 10.0  # seconds by the clock of one HiGHS master, for each processor second of a run
OURS = "LP recentred dual"
PRINTED = "LP as printed"
FAST = (OURS, "HMM", "L2, the same loss", "perceptron", "MIRA")  # rows of all splits,
SLOWEST = ("LP simplex", "LP extragradient", "CRF")  # and of the first alone
LP_GRID = (3.0, 10.0, 30.0)
L2_GRID = (0.1, 1.0, 10.0)
MIRA_GRID = (0.01, 0.1, 1.0)
PAPER = {
    "LP simplex": "4.94 +- 0.18", "LP extragradient": "4.92 +- 0.13", PRINTED: "4.92 +- 0.13",
    "perceptron": "5.38 +- 0.19",
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
    start: float = np.nan  # the certified gap at which column generation took over
    bound: float = np.nan  # on the error of a sentence, by section 6 of the paper; above 1 it says nothing


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


def linear_program(solver: object, C: float, tol: float = TOL) -> SequenceTagger:
    return SequenceTagger(penalty="l1", C=C, tol=tol, solver=solver)


class Curve(Callback):
    """Processor seconds, primal and dual values at each certificate, of each fit; ends a fit after ``most`` seconds."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.fits: list[list[tuple[float, float, float]]] = []

    def on_begin(self, run: Run) -> None:
        self.fits.append([])
        self.began = time.process_time()

    def on_certificate(self, run: Run) -> str | None:
        assert run.certificate is not None
        spent = time.process_time() - self.began
        self.fits[-1].append((spent, run.certificate.primal, run.certificate.dual))
        return "stop" if spent > self.most else None


def fitted(model: SequenceTagger, data: Split, curve: Curve | None = None) -> Result:
    """Train and test."""
    begin = time.process_time()
    model.set_params(callbacks=None if curve is None else [curve]).fit(data.X_train, data.y_train)
    seconds = time.process_time() - begin
    error = 100.0 * (1.0 - token_accuracy(data.y_test, model.predict(data.X_test)))
    touched, state = np.nan, model.state_
    if isinstance(state, (ColumnState, RecentredState)):
        touched = float(np.mean(state.columns if isinstance(state, ColumnState) else state.touched))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.mm")
        size = (Path(folder) / "model.mm").stat().st_size / 1000
    share, gap, bound = float(np.mean(model.weights_ != 0.0)), model.certificate_.relative_gap, np.nan
    if model.penalty == "l1":
        longest = max(map(len, data.X_train + data.X_test))
        bound = generalisation(model, data.X_train, data.y_train, largest=longest).bound
    return Result(error, seconds, model.n_iter_, gap, share, touched, size, bound=bound)


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
    return min(grid, key=lambda C: fitted(make(C), held).error)


def masters(n: int, seconds: float) -> dict[str, Master]:
    """The masters of column generation, for n sentences and so many processor seconds."""
    return {
        "LP primal-dual": PrimalDual(),
        "LP interior point": Highs("ipm", CLOCK * seconds),
        "LP simplex": Highs("simplex", CLOCK * seconds),
        "LP extragradient": Extragradient(max_steps=MOST_STEPS // n),
    }


def constants(data: Split) -> tuple[float, float, float]:
    """C of the linear programs, of L2 and of MIRA, by the first split."""
    C = chosen_C(lambda C: linear_program("recentred_dual", C), LP_GRID, data)
    quadratic = chosen_C(lambda C: SequenceTagger(rescaling="unit", C=C, tol=TOL), L2_GRID, data)
    return C, quadratic, chosen_C(lambda C: SequenceTagger(solver=MIRA(), C=C), MIRA_GRID, data)


Method = Callable[[Split], Result]


def programs(n: int, C: float, seconds: float) -> dict[str, Method]:
    """Linear programs of the paper's size: the masters after a common start, and the paper's method without it."""

    def column_generation(name: str, master: Master) -> Method:
        def run(data: Split) -> Result:
            model = linear_program("recentred_dual", C, LATER if name in SLOWEST else FIRST)
            first = fitted(model, data)
            touched = model.state_.touched
            model.set_params(solver=ColumnGeneration(master), tol=TOL, warm_start=True)
            found = fitted(model, data, Curve(seconds))
            spent, rounds = first.seconds + found.seconds, first.rounds + found.rounds
            share = float(np.mean(touched | model.state_.columns))
            return found._replace(seconds=spent, rounds=rounds, touched=share, start=first.gap)

        return run

    return {name: column_generation(name, master) for name, master in masters(n, seconds).items()}


def unaided(n: int, C: float, seconds: float, curves: dict[str, Curve]) -> dict[str, Method]:
    """Linear programs by themselves: masters begin at w = 1, as in the paper, and leave their curves."""

    def run(name: str, solver: object) -> Method:
        curves[name] = Curve(seconds)
        return lambda data: fitted(linear_program(solver, C), data, curves[name])

    solvers = {name: ColumnGeneration(master, start="ones") for name, master in masters(n, seconds).items()}
    return {name: run(name, solver) for name, solver in {OURS: "recentred_dual", **solvers}.items()}


def as_printed(n: int, C: float, seconds: float) -> Method:
    """The paper's algorithm: extragradient masters of its step, from w = 1."""
    solver = ColumnGeneration(Extragradient("frobenius", max_steps=MOST_STEPS // n), start="ones")
    return lambda data: fitted(linear_program(solver, C), data, Curve(seconds))


def peers(quadratic: float, mira: float) -> dict[str, Method]:
    """The rows that are no linear programs."""
    return {
        "CRF": random_field,
        "HMM": hidden_markov,
        "L2, the same loss": lambda data: fitted(SequenceTagger(rescaling="unit", C=quadratic, tol=TOL), data),
        "perceptron": lambda data: fitted(SequenceTagger(solver=Perceptron()), data),
        "MIRA": lambda data: fitted(SequenceTagger(solver=MIRA(), C=mira), data),
    }


class Kept:
    """Results in a file, a line of JSON for each method and split: a run that was ended goes on behind them."""

    def __init__(self, path: Path | None, setting: str) -> None:
        self.path, self.setting, self.known = path, setting, dict[tuple[str, str, int], Result]()
        for line in path.read_text().splitlines() if path and path.exists() else ():
            *key, numbers = json.loads(line)
            self.known[tuple(key)] = Result(*numbers)
        if self.known:
            print(f"{len(self.known)} results of an earlier part of this run are kept")

    def result(self, name: str, number: int, run: Callable[[], Result]) -> Result:
        """That of the file, or else of a run."""
        key = self.setting, name, number
        if key in self.known:
            return self.known[key]
        found = run()
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                print(json.dumps([*key, found]), file=file)
        return found


class Table:
    """Rows of results, printed one by one."""

    def __init__(self, kept: Kept) -> None:
        self.kept, self.found = kept, dict[str, np.ndarray]()  # (splits, fields of a result)
        cost, model = ("seconds", "passes", "gap", "start"), ("weights", "touched", "file kB", "bound")
        words, widths = ("splits", "error %", "paper", *cost, *model), (6, 14, 14, 8, 7, 8, 8, 8, 8, 8, 8)
        print(f"{'':18s} " + " ".join(f"{word:>{n}s}" for word, n in zip(words, widths, strict=True)))

    def row(self, name: str, run: Method, splits: list[Split]) -> None:
        results = [self.kept.result(name, k, partial(run, data)) for k, data in enumerate(splits)]
        found = self.found[name] = np.array(results)
        spread, mean = found[:, 0].std(ddof=1) if len(found) > 1 else np.nan, Result(*found.mean(axis=0))
        beside = f"{len(found):6d} {mean.error:6.2f} +- {spread:4.2f} {PAPER.get(name, ''):>14s}"
        cost = f"{mean.seconds:8.1f} {mean.rounds:7.0f} {found[:, 3].max():8.1e} {mean.start:8.1e}"
        model = f"{100 * mean.share:7.1f}% {100 * mean.touched:7.1f}% {mean.size:8.0f} {mean.bound:8.1g}"
        print(f"{name:18s} {beside} {cost} {model}".replace("nan%", "   -").replace("nan", "  -"), flush=True)

    def beside_ours(self, errors: bool) -> None:
        """Ratios of times, and differences of errors where they say something, split by split."""
        if OURS not in self.found:
            return
        print("beside the recentred dual, on the splits that both have:")
        for name, found in self.found.items():
            if name != OURS:
                own = self.found[OURS][: len(found)]
                beside = f", error {(found[:, 0] - own[:, 0]).mean():+.2f}" if errors else ""
                print(f"  {name}: {found[:, 1].sum() / own[:, 1].sum():.1f} of its time{beside}")
        solved = {name: found for name, found in self.found.items() if found[:, 3].max() <= TOL and name[:2] == "LP"}
        if not errors or len(solved) < 2:
            return
        few = min(map(len, solved.values()))
        means = [found[:few, 0].mean() for found in solved.values()]
        print(f"  linear programs to 1 %, {few} splits: errors at most {max(means) - min(means):.2f} apart")


def figures(curves: dict[str, Curve], path: Path) -> None:
    """Figure 1: primal against dual values, and the best of these; figure 2: processor seconds by round."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for colour, (name, curve) in enumerate(curves.items()):
        for k, rows in enumerate(map(np.array, curve.fits)):
            style = {"marker": ".", "color": f"C{colour}", "label": name if k == 0 else None}
            left.plot(rows[:, 2], rows[:, 1], **style)
            right.plot(np.arange(1, len(rows) + 1), rows[:, 0], **style)
    proven = max(dual for curve in curves.values() for rows in curve.fits for _, _, dual in rows)
    left.axhline(proven, color="grey", linewidth=0.8)
    left.set(xlabel="dual value", ylabel="primal value", title="towards the optimum", yscale="log")
    right.set(xlabel="round", ylabel="processor seconds so far", title="time by round", yscale="log")
    right.legend()
    plt.tight_layout()
    plt.savefig(path, dpi=120)
    print(f"picture: {path}")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--train", type=int, default=5700, help="training sentences of the first table")
    words.add_argument("--few", type=int, default=100, help="training sentences of the second; 0: none")
    words.add_argument("--test", type=int, default=1000)
    words.add_argument("--repeats", type=int, default=5)
    words.add_argument("--slow-repeats", type=int, default=2, help="splits for the faster masters")
    words.add_argument("--constants", type=float, nargs=3, metavar=("LP", "L2", "MIRA"), help="C, instead of a search")
    words.add_argument("--seconds", type=float, default=120.0, help="processor seconds of column generation")
    words.add_argument("--few-seconds", type=float, default=30.0, help="the same in the second table")
    words.add_argument("--times", type=float, default=6.0, help="times of the recentred dual for the paper's method")
    words.add_argument("--rows", nargs="+", help="only these rows of the first table")
    words.add_argument("--keep", type=Path, metavar="FILE", help="for results, so that a run that was ended can go on")
    words.add_argument("--figures", type=Path, metavar="FOLDER", help="for figures 1 and 2")
    given = words.parse_args()
    warnings.simplefilter("ignore")  # budgets that end a fit show in its gap
    sentences = read()
    print(machine_line())
    splits = [split(sentences, given.train, given.test, seed) for seed in range(given.repeats)]
    print(f"{given.train} training and {given.test} test sentences of GENIA, {given.repeats} random splits")
    C, quadratic, mira = given.constants or constants(splits[0])
    print(f"C of the linear programs {C:g}, of L2 {quadratic:g}, of MIRA {mira:g}; both former to a certified 1 %")
    setting = f"{given.train} {given.test} {C:g} {quadratic:g} {mira:g} {given.seconds:g} {given.times:g}"
    slow, table = splits[: given.slow_repeats], Table(Kept(given.keep, setting))
    fitted(linear_program("recentred_dual", C), split(sentences, 200, 10, 0))  # kernels are compiled
    rows: dict[str, Method] = {OURS: lambda data: fitted(linear_program("recentred_dual", C), data)}
    rows |= programs(given.train, C, given.seconds) | peers(quadratic, mira)
    for name, run in rows.items():
        if not given.rows or name in given.rows:
            table.row(name, run, splits if name in FAST else splits[:1] if name in SLOWEST else slow)
    if OURS in table.found and (not given.rows or PRINTED in given.rows):
        limit = given.times * float(table.found[OURS][0, 1])
        table.row(PRINTED, as_printed(given.train, C, limit), splits[:1])
    table.beside_ours(errors=True)
    if given.few:
        print(f"{given.few} training and {given.test} test sentences, each master by itself, C = {C:g}")
        curves, alone, table = dict[str, Curve](), split(sentences, given.few, given.test, 0), Table(Kept(None, ""))
        for name, run in unaided(given.few, C, given.few_seconds, curves).items():
            table.row(name, run, [alone])
        table.beside_ours(errors=False)
        if given.figures:
            given.figures.mkdir(parents=True, exist_ok=True)
            figures(curves, given.figures / f"linear_programs_{given.few}.png")


if __name__ == "__main__":
    main()
