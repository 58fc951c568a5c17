"""Labels in hierarchies: area under the precision-recall curve, and slack against margin rescaling (table 3).

Three sets stand in for SWIKI-2011 of the paper (Choi, Meshi, Srebro 2016), in the splits of Clus: Enron (988 mails,
1001 words, 56 labels), ImCLEF07A (10000 X-ray images, 80 features, 96 labels, one path each), cellcycle (2476 yeast
genes, 77 features, 499 functions). The published areas are those of C-HMCNN's paper (Giunchiglia, Lukasiewicz 2020),
computed as it computes them: :func:`maxmargin.metrics.micro_average_precision` over all labels.

The decision of a label is the best score with it on minus the best with it off, which never rises along a path. It says
on which side a label is, not how probable it is, and pairs of examples and labels are ranked together. So the ranking
is by :class:`maxmargin.CalibratedLabels`, which learns probabilities on folds of the training part.

On cellcycle hardly any label is ever more probable than not, and a hinge that fits well says "no" of every example.
With whitened features and C below 1 / n no example reaches its margin: then the weights of a label are the mean of its
examples in the metric of ridge regression, which ranks them. The settings come from trials on the training part
(folds, or the part that ``--choose`` holds out).

    python experiments/labels/hierarchies.py             # areas; a few minutes
    python experiments/labels/hierarchies.py --choose    # areas of a grid of settings on held-out training data
    python experiments/labels/hierarchies.py --slack     # table 3: slack against margin, paired over seeds
    python experiments/labels/hierarchies.py --quick     # small parts of the data
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from common import Data as Halves
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.preprocessing import StandardScaler, normalize

import maxmargin as mm
from maxmargin.metrics import micro_average_precision

FILES = {
    "enron": "hmc_enron/enron_corr",
    "imclef07a": "hmc_imclef07a/imclef07a",
    "cellcycle": "hmc_cellcycle_fun/cellcycle_fun",
}
PUBLISHED = {  # Clus-Ens, HMCN-F, C-HMCNN
    "enron": (0.681, 0.724, 0.756),
    "imclef07a": (0.777, 0.950, 0.956),
    "cellcycle": (0.227, 0.252, 0.255),
}


KINDS = ("linear", "Nystroem")


@dataclass(frozen=True)
class Setting:
    """What was chosen for a set: C, gamma of the kernel as a share of 1 / n_features, and its landmarks (0: linear).

    ``passes`` is what a fit may take where it has not converged to 0.1 %: less than a minute. With a ``ridge`` features
    are whitened, with ``rows`` they come a second time as rows of equal length. ``of`` and ``folds`` are those of
    CalibratedLabels.
    """

    C: float
    gamma: float = 0.0
    landmarks: int = 0
    passes: int = 300
    ridge: float | None = None
    rows: bool = False
    of: str = "decisions"
    folds: int = 3


CHOSEN = {
    ("enron", "linear"): Setting(1.0),
    ("enron", "Nystroem"): Setting(1.0, 1.0, 900),
    ("imclef07a", "linear"): Setting(0.1),
    ("imclef07a", "Nystroem"): Setting(10.0, 1.0, 2000, 40, folds=2),
    ("cellcycle", "linear"): Setting(2e-4, ridge=2000.0, rows=True, of="scores", folds=10),
    ("cellcycle", "Nystroem"): Setting(2e-4, 0.6, 1000, ridge=8.0, of="scores", folds=10),
}
GRID = {
    "linear": {"enron": [0.3, 1.0, 3.0], "imclef07a": [0.01, 0.1, 1.0], "cellcycle": [2e-4, 6e-4, 2e-3]},
    "Nystroem": {"enron": [1.0, 3.0], "imclef07a": [10.0, 40.0], "cellcycle": [2e-4, 6e-4]},
    "gamma": {"enron": [0.5, 1.0], "imclef07a": [0.7, 1.0, 1.5], "cellcycle": [0.3, 0.6]},
}


@dataclass(frozen=True)
class Data(Halves):
    """With the parent of each label; ``held`` marks the training examples that settings are chosen on."""

    parent: np.ndarray
    held: np.ndarray

    def choosing(self) -> Data:
        """The held-out part as the test part."""
        rest = ~self.held
        return Data(
            self.name, self.X[rest], self.Y[rest], self.X[self.held], self.Y[self.held], self.parent, self.held[rest]
        )

    def part(self, n: int, seed: int) -> Data:
        """n examples for training."""
        rows = np.random.default_rng(seed).permutation(len(self.X))[:n]
        return Data(self.name, self.X[rows], self.Y[rows], self.X_test, self.Y_test, self.parent, self.held[rows])

    def commonest(self, n: int) -> Data:
        """The n commonest labels; a parent is at least as common as its children."""
        kept = np.argsort(-self.Y.sum(axis=0), kind="stable")[:n]
        kept = np.flatnonzero(
            mm.with_ancestors(np.isin(np.arange(len(self.parent)), kept)[None].astype(int), self.parent)[0]
        )
        place = {int(k): i for i, k in enumerate(kept)}
        parent = np.array([place.get(int(self.parent[k]), -1) for k in kept])
        return Data(self.name, self.X, self.Y[:, kept], self.X_test, self.Y_test[:, kept], parent, self.held)


def load(name: str) -> Data:
    """One of the three sets; cellcycle has a validation part of its own, elsewhere every fourth example is held out."""
    folder = Path(os.environ.get("MAXMARGIN_DATA", Path.home() / ".cache/maxmargin/data"))
    path = folder / f"{FILES[name]}.npz"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: arrays X_train, Y_train, X_test, Y_test, parent; set MAXMARGIN_DATA.")
    with np.load(path) as z:
        X, Y, held = z["X_train"], z["Y_train"], np.arange(len(z["X_train"])) % 4 == 0
        if "X_valid" in z:
            held = np.repeat([False, True], [len(X), len(z["X_valid"])])
            X, Y = np.vstack([X, z["X_valid"]]), np.vstack([Y, z["Y_valid"]])
        return Data(name, X * 1.0, Y * 1, z["X_test"] * 1.0, z["Y_test"] * 1, z["parent"], held)


def features(data: Data, setting: Setting, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Of training and test examples: words by tf-idf; numbers imputed by means, standardised and cut off at 3.

    With landmarks, the features of a Gaussian kernel in their place.
    """
    if data.name == "enron":
        weights = TfidfTransformer().fit(data.X)
        X, X_test = (weights.transform(x).toarray() for x in (data.X, data.X_test))
    else:
        means = SimpleImputer().fit(data.X)
        scale = StandardScaler().fit(means.transform(data.X))
        X, X_test = (np.clip(scale.transform(means.transform(x)), -3, 3) for x in (data.X, data.X_test))
    if setting.landmarks:
        gamma = setting.gamma / (1.0 if data.name == "enron" else X.shape[1])
        kernel = Nystroem(gamma=gamma, n_components=min(setting.landmarks, len(X)), random_state=seed).fit(X)
        X, X_test = kernel.transform(X), kernel.transform(X_test)
    if setting.rows:
        X, X_test = (np.hstack([x, normalize(x) * np.sqrt(x.shape[1])]) for x in (X, X_test))
    return (X, X_test) if setting.ridge is None else whitened(X, X_test, setting.ridge)


def whitened(X: np.ndarray, X_test: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """``(X - mean) (S + ridge)^(-1/2)`` with S the scatter of X, scaled to rows of length 1 on average."""
    mean = X.mean(axis=0)
    values, vectors = np.linalg.eigh((X - mean).T @ (X - mean))
    change = vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
    change *= np.sqrt(len(X)) / np.linalg.norm((X - mean) @ change)
    return (X - mean) @ change, (X_test - mean) @ change


def classifier(data: Data, C: float, **options: object) -> mm.MultilabelClassifier:
    """Ends at a gap of 0.1 % or after some passes."""
    return mm.MultilabelClassifier(
        **({"hierarchy": data.parent, "C": C, "max_passes": 300, "random_state": 0} | options)
    )


@dataclass(frozen=True)
class Area:
    """Areas by decisions and by probabilities, incoherent outputs, gap and seconds (wall clock) of the fit.

    ``all_fits`` is processor time, those of the folds and the calibration among them.
    """

    decisions: float
    probabilities: float
    incoherent: int
    gap: float
    seconds: float
    all_fits: float


def area(data: Data, setting: Setting, seed: int = 0) -> Area:
    """Fit, calibrate on folds of the training part, and score the test part."""
    X, X_test = features(data, setting, seed)
    model = classifier(data, setting.C, max_passes=setting.passes)
    calibrated = mm.CalibratedLabels(estimator=model, folds=setting.folds, of=setting.of, random_state=seed)
    begin = time.process_time()
    calibrated.fit(X, data.Y)
    whole = time.process_time() - begin
    model = calibrated.estimator_
    found, likely, predicted = model.decision_function(X_test), calibrated.predict_proba(X_test), model.predict(X_test)
    below = np.flatnonzero(data.parent >= 0)
    broken = sum(int((y[:, below] > y[:, data.parent[below]]).sum()) for y in (predicted, found, likely))
    areas = (micro_average_precision(data.Y_test, scores) for scores in (found, likely))
    return Area(*areas, broken, model.certificate_.relative_gap, model.seconds_["total"], whole)


def settings_of(name: str, kind: str) -> Iterator[Setting]:
    for C in GRID[kind][name]:
        if kind == "linear":
            yield replace(CHOSEN[name, kind], C=C)
        else:
            yield from (replace(CHOSEN[name, kind], C=C, gamma=gamma) for gamma in GRID["gamma"][name])


def choose(names: list[str], kinds: list[str], most: int) -> None:
    """Areas on the held-out part of the training data, for each setting of the grid."""
    for name, kind in product(names, kinds):
        data = load(name).choosing()
        data = data.part(most, 0) if len(data.X) > most else data
        for setting in settings_of(name, kind):
            found = area(data, setting)
            print(f"{name:10} {kind:8} {setting}: decisions {found.decisions:.4f}, calibrated {found.probabilities:.4f}"
                  f", gap {found.gap:.2%}, {found.seconds:.1f} s", flush=True)  # fmt: skip


def areas(names: list[str], kinds: list[str], most: int, seeds: int) -> None:
    """The areas of the test sets."""
    print("area under the precision-recall curve, test sets; published: Clus-Ens, HMCN-F, C-HMCNN;")
    print("seconds of one fit by the clock, of all fits with those of the folds by the processor\n")
    print("| set | features | calibrated | decisions | published | incoherent | gap | seconds | all fits |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, kind in product(names, kinds):
        data = load(name)
        data = data.part(most, 0) if len(data.X) > most else data
        runs = [area(data, CHOSEN[name, kind], seed) for seed in range(seeds if kind == "Nystroem" else 1)]
        values = np.array([[run.probabilities, run.decisions] for run in runs])
        mean, spread = values.mean(axis=0), values.std(axis=0)
        cells = [f"{m:.4f}" + (f" ± {s:.4f}" if len(runs) > 1 else "") for m, s in zip(mean, spread, strict=True)]
        worst, longest = max(run.gap for run in runs), max(run.seconds for run in runs)
        whole = max(run.all_fits for run in runs)
        known = " ".join(f"{value:.3f}" for value in PUBLISHED[name])
        broken = sum(run.incoherent for run in runs)
        row = f"| {name} | {kind} | {cells[0]} | {cells[1]} | {known} | {broken} | {worst:.2%}"
        print(f"{row} | {longest:.1f} | {whole:.0f} |", flush=True)


# --- table 3 ----------------------------------------------------------------------------------------------------------

# values of C
TRIED = {"enron": [0.3, 1.0], "imclef07a": [0.03, 0.1], "cellcycle": [0.01, 0.1], "synthetic": [0.01, 0.1]}


def synthetic(seed: int, n: int = 400) -> tuple[Data, list[tuple[int, int]]]:
    """Examples with one to three of eleven leaves under inner labels with one or two parents, and the pairs."""
    rng = np.random.default_rng(seed)
    layers = (range(3), range(3, 9), range(9, 20))
    pairs = [(int(p), k) for above, layer in pairwise(layers) for k in layer
             for p in rng.choice(list(above), size=rng.integers(1, 3), replace=False)]  # fmt: skip
    bare = [p for p in range(9) if p not in {parent for parent, _ in pairs}]  # so that all leaves are in the last layer
    pairs += [(p, int(rng.choice(layers[1 if p < 3 else 2]))) for p in bare]
    leaves = np.zeros((n, 20), int)
    for row in leaves:
        row[rng.choice(layers[2], size=rng.integers(1, 4), replace=False)] = 1
    Y = mm.with_ancestors(leaves, pairs)
    X = Y @ rng.normal(size=(20, 15)) + 2.0 * rng.normal(size=(n, 15))
    half = n // 2
    nobody = np.full(20, -1)
    return Data("synthetic", X[:half], Y[:half], X[half:], Y[half:], nobody, np.arange(half) % 3 == 0), pairs


def scores(Y: np.ndarray, found: np.ndarray) -> list[float]:
    """Accuracy (Jaccard), label loss, micro and macro F1, as in the paper; labels that never occur count as right."""
    return [
        jaccard_score(Y, found, average="samples", zero_division=1.0),
        hamming_loss(Y, found),
        f1_score(Y, found, average="micro", zero_division=1.0),
        f1_score(Y, found, average="macro", zero_division=1.0),
    ]


@dataclass(frozen=True)
class Compared:
    """Of margin and slack: scores (2, 4), gap and seconds (processor) of the fit (2,); incoherent outputs of both."""

    scores: np.ndarray
    gap: np.ndarray
    seconds: np.ndarray
    incoherent: int


def compared(data: Data, X: np.ndarray, X_test: np.ndarray, Cs: list[float], options: dict) -> Compared:
    """C is chosen for each by micro F1 on the held-out part."""
    rows, gaps, seconds, broken = [], [], [], 0
    train, held = ~data.held, data.held
    for rescaling in ("margin", "slack"):
        told = {"rescaling": rescaling, "tol": 0.01, **options}
        tried = [classifier(data, C, **told).fit(X[train], data.Y[train]).predict(X[held]) for C in Cs]
        good = [f1_score(data.Y[held], y, average="micro", zero_division=1.0) for y in tried]
        begin = time.process_time()
        model = classifier(data, Cs[int(np.argmax(good))], **told).fit(X, data.Y)
        seconds.append(time.process_time() - begin)
        gaps.append(model.certificate_.relative_gap)
        found = model.predict(X_test)
        broken += int((mm.with_ancestors(found, told.get("hierarchy", data.parent)) != found).sum())
        rows.append(scores(data.Y_test, found))
    return Compared(np.array(rows), np.array(gaps), np.array(seconds), broken)


def slack_against_margin(names: list[str], n: int, seeds: int) -> None:
    """Table 3, paired over seeds: each draws the training examples (of the synthetic set, the graph too)."""
    print(f"margin and slack: {n} training examples, {seeds} seeds, ± standard deviation; differences are paired\n")
    print("| set | rescaling | accuracy | label loss | micro F1 | macro F1 | largest gap | seconds | incoherent |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in [*names, "synthetic"]:
        runs = []
        for seed in range(seeds):
            if name == "synthetic":
                data, pairs = synthetic(seed)
                X, X_test, options = data.X, data.X_test, {"hierarchy": pairs, "leaves_only": True}
            else:
                data, options = load(name).part(n, seed).commonest(50), {}
                X, X_test = features(data, Setting(1.0))
            runs.append(compared(data, X, X_test, TRIED[name], options))
        values = np.array([run.scores for run in runs])
        gap, seconds = (np.max([what(run) for run in runs], axis=0) for what in (lambda r: r.gap, lambda r: r.seconds))
        broken = sum(run.incoherent for run in runs)
        for i, row in enumerate(("margin", "slack")):
            cells = with_deviations(values[:, i])
            print(f"| {name} | {row} | {cells} | {gap[i]:.2%} | {seconds[i]:.1f} | {broken} |")
        print(f"| {name} | difference | {with_deviations(values[:, 1] - values[:, 0], '+')} | | | |", flush=True)


def with_deviations(values: np.ndarray, sign: str = "") -> str:
    """Means over the rows of values and standard deviations, as cells of a table."""
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    return " | ".join(f"{m:{sign}.4f} ± {s:.4f}" for m, s in zip(mean, spread, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--choose", action="store_true", help="areas on held-out training data, for all settings")
    parser.add_argument("--slack", action="store_true", help="table 3: slack against margin")
    parser.add_argument("--quick", action="store_true", help="small parts of the data, two seeds")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--features", nargs="*", default=list(KINDS), choices=KINDS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are printed
    most, seeds = (300, 2) if options.quick else (10**9, options.seeds)
    if options.choose:
        choose(options.sets, options.features, min(most, 4000))
    elif options.slack:
        slack_against_margin(options.sets, 100 if options.quick else 200, seeds)
    else:
        areas(options.sets, options.features, most, seeds)


if __name__ == "__main__":
    main()
