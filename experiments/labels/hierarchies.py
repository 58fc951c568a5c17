"""Labels in hierarchies: area under the precision-recall curve, and slack against margin rescaling (table 3).

Three sets stand in for SWIKI-2011 of the paper (Choi, Meshi, Srebro 2016), in the splits of Clus: Enron (988 mails,
1001 words, 56 labels), ImCLEF07A (10000 X-ray images, 80 features, 96 labels, one path each), cellcycle (2476 yeast
genes, 77 features, 499 functions). The published areas are those of C-HMCNN's paper (Giunchiglia, Lukasiewicz 2020),
computed as it computes them: :func:`maxmargin.metrics.micro_average_precision` over all labels.

The decision of a label is the best score with it on minus the best with it off, which never rises along a path. It says
on which side a label is, not how probable it is, and pairs of examples and labels are ranked together. So each label
gets a logistic curve of its decision, fitted to decisions on folds of the training part (Platt 2000), and no label more
than its parent. The settings come from single trials on held-out training data (none for the landmarks of Enron);
``--choose`` runs the whole grid there, which has not been done yet but for a part of cellcycle.

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
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.preprocessing import StandardScaler

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


@dataclass(frozen=True)
class Setting:
    """What was chosen for a set: C, gamma of the kernel as a share of 1 / n_features, and its landmarks (0: linear).

    ``passes`` is what a fit may take where it has not converged to 0.1 %: less than a minute.
    """

    C: float
    gamma: float = 0.0
    landmarks: int = 0
    passes: int = 300


CHOSEN = {
    ("enron", "linear"): Setting(1.0),
    ("enron", "Nystroem"): Setting(1.0, 1.0, 900),
    ("imclef07a", "linear"): Setting(0.1),
    ("imclef07a", "Nystroem"): Setting(10.0, 1.0, 1500, 40),
    ("cellcycle", "linear"): Setting(0.003),
    ("cellcycle", "Nystroem"): Setting(1.0, 0.7, 500, 100),
}
GRID = {
    "linear": {"enron": [0.3, 1.0, 3.0], "imclef07a": [0.01, 0.1, 1.0], "cellcycle": [0.003, 0.01, 0.03]},
    "Nystroem": {"enron": [1.0, 3.0], "imclef07a": [10.0, 40.0], "cellcycle": [0.5, 1.0, 2.0]},
    "gamma": {"enron": [0.5, 1.0], "imclef07a": [0.7, 1.0, 1.5], "cellcycle": [0.5, 1.0]},
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
    return X, X_test


def fitted(X: np.ndarray, data: Data, rows: np.ndarray | slice, C: float, **options: object) -> mm.MultilabelClassifier:
    """A fit to some examples, to a gap of 0.1 % or for some passes."""
    settings = {"hierarchy": data.parent, "C": C, "max_passes": 300, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mm.MultilabelClassifier(**settings).fit(X[rows], data.Y[rows])


def logistic_curves(decisions: np.ndarray, Y: np.ndarray, pull: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts (M,) of the probability ``1 / (1 + exp(-a d - b))`` of each label.

    Slopes are pulled towards one for all labels, for many labels have few examples. Newton's method for all labels at
    once; Platt 2000, Probabilities for support vector machines.
    """

    def intercepts(a: float) -> np.ndarray:
        b = np.log((Y.mean(axis=0) + 1e-3) / (1.0 - Y.mean(axis=0) + 1e-3))
        for _ in range(30):
            p = expit(a * decisions + b)
            step = ((p - Y).sum(axis=0) + 0.02 * b) / ((p * (1 - p)).sum(axis=0) + 0.02)
            b = b - np.clip(step, -2.0, 2.0)
        return b

    def loss(log_slope: float) -> float:
        z = np.exp(log_slope) * decisions + intercepts(np.exp(log_slope))
        return float(np.logaddexp(0.0, z).sum() - (z * Y).sum())

    common = float(np.exp(minimize_scalar(loss, bounds=(-3.0, 4.0), method="bounded", options={"xatol": 0.05}).x))
    a, b = np.full(Y.shape[1], common), intercepts(common)
    for _ in range(40):
        p = expit(a * decisions + b)
        w, off = p * (1 - p), p - Y
        grad_a, grad_b = (off * decisions).sum(axis=0) + pull * (a / common - 1) / common, off.sum(axis=0) + 0.02 * b
        aa, ab = (w * decisions**2).sum(axis=0) + pull / common**2, (w * decisions).sum(axis=0)
        bb = w.sum(axis=0) + 0.02
        step_a, step_b = (np.array([bb * grad_a - ab * grad_b, aa * grad_b - ab * grad_a]) / (aa * bb - ab**2)).tolist()
        size = np.minimum(1.0, 2.0 / np.maximum(np.abs(step_b), 1e-9))
        a, b = a - size * step_a, b - size * step_b
    return np.maximum(a, 0.0), b


def coherent(scores: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """No label more than its parents."""
    scores, done = scores.copy(), parent < 0
    while not done.all():
        ready = np.flatnonzero(~done & done[parent])
        scores[:, ready] = np.minimum(scores[:, ready], scores[:, parent[ready]])
        done[ready] = True
    return scores


@dataclass(frozen=True)
class Area:
    """Areas by decisions and by probabilities, incoherent outputs, and the fit: gap and seconds of processor time."""

    decisions: float
    probabilities: float
    incoherent: int
    gap: float
    seconds: float


def area(data: Data, setting: Setting, seed: int = 0, folds: int = 2) -> Area:
    """Fit, calibrate on folds of the training part, and score the test part."""
    X, X_test = features(data, setting, seed)
    begin = time.process_time()
    model = fitted(X, data, slice(None), setting.C, max_passes=setting.passes)
    seconds = time.process_time() - begin
    fold, inside = np.random.default_rng(seed).permutation(len(X)) % folds, np.empty(data.Y.shape)
    for j in range(folds):
        inside[fold == j] = fitted(X, data, fold != j, setting.C, max_passes=setting.passes).decision_function(
            X[fold == j]
        )
    a, b = logistic_curves(inside, data.Y)
    found, predicted = model.decision_function(X_test), model.predict(X_test)
    likely = coherent(expit(a * found + b), data.parent)
    below = np.flatnonzero(data.parent >= 0)
    broken = sum(int((y[:, below] > y[:, data.parent[below]]).sum()) for y in (predicted, found, likely))
    areas = (micro_average_precision(data.Y_test, scores) for scores in (found, likely))
    return Area(*areas, broken, model.certificate_.relative_gap, seconds)


def settings_of(name: str, kind: str) -> Iterator[Setting]:
    for C in GRID[kind][name]:
        if kind == "linear":
            yield Setting(C)
        else:
            yield from (replace(CHOSEN[name, kind], C=C, gamma=gamma) for gamma in GRID["gamma"][name])


def choose(names: list[str], most: int) -> None:
    """Areas on the held-out part of the training data, for each setting of the grid."""
    for name, kind in product(names, ("linear", "Nystroem")):
        data = load(name).choosing()
        data = data.part(most, 0) if len(data.X) > most else data
        for setting in settings_of(name, kind):
            found = area(data, setting)
            print(f"{name:10} {kind:8} {setting}: decisions {found.decisions:.4f}, calibrated {found.probabilities:.4f}"
                  f", gap {found.gap:.2%}, {found.seconds:.1f} s", flush=True)  # fmt: skip


def areas(names: list[str], most: int, seeds: int) -> None:
    """The areas of the test sets."""
    print("area under the precision-recall curve, test sets; published: Clus-Ens, HMCN-F, C-HMCNN\n")
    print("| set | features | calibrated | decisions | published | incoherent | gap | processor seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name, kind in product(names, ("linear", "Nystroem")):
        data = load(name)
        data = data.part(most, 0) if len(data.X) > most else data
        runs = [area(data, CHOSEN[name, kind], seed) for seed in range(seeds if kind == "Nystroem" else 1)]
        values = np.array([[run.probabilities, run.decisions] for run in runs])
        mean, spread = values.mean(axis=0), values.std(axis=0)
        cells = [f"{m:.3f}" + (f" ± {s:.3f}" if len(runs) > 1 else "") for m, s in zip(mean, spread, strict=True)]
        worst, longest = max(run.gap for run in runs), max(run.seconds for run in runs)
        known = " ".join(f"{value:.3f}" for value in PUBLISHED[name])
        broken = sum(run.incoherent for run in runs)
        print(
            f"| {name} | {kind} | {cells[0]} | {cells[1]} | {known} | {broken} | {worst:.2%} | {longest:.1f} |",
            flush=True,
        )


# --- table 3 ----------------------------------------------------------------------------------------------------------


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


def compared(data: Data, X: np.ndarray, X_test: np.ndarray, Cs: list[float], options: dict) -> tuple[np.ndarray, float]:
    """Scores (2, 4) of margin and slack, C chosen for each by micro F1 on the held-out part; and the largest gap."""
    rows, worst = [], 0.0
    for rescaling in ("margin", "slack"):
        told = {"rescaling": rescaling, "tol": 0.01, **options}
        tried = [fitted(X, data, ~data.held, C, **told).predict(X[data.held]) for C in Cs]
        good = [f1_score(data.Y[data.held], y, average="micro", zero_division=1.0) for y in tried]
        model = fitted(X, data, slice(None), Cs[int(np.argmax(good))], **told)
        worst = max(worst, model.certificate_.relative_gap)
        rows.append(scores(data.Y_test, model.predict(X_test)))
    return np.array(rows), worst


def slack_against_margin(names: list[str], n: int, seeds: int) -> None:
    """Table 3, paired over seeds: each draws the training examples (the synthetic set: all)."""
    print(f"margin and slack: {n} training examples, {seeds} seeds; slack minus margin, paired, ± standard deviation\n")
    print(
        "| set | rescaling | accuracy | label loss | micro F1 | macro F1 | largest gap |\n|---|---|---|---|---|---|---|"
    )
    for name in [*names, "synthetic"]:
        runs, worst = [], 0.0
        for seed in range(seeds):
            if name == "synthetic":
                data, pairs = synthetic(seed)
                X, X_test, Cs, options = data.X, data.X_test, [0.01, 0.1], {"hierarchy": pairs, "leaves_only": True}
            else:
                data = load(name).part(n, seed)
                data = data.commonest(50)
                options = {}
                X, X_test = features(data, Setting(1.0))
                Cs = [CHOSEN[name, "linear"].C / 3, CHOSEN[name, "linear"].C]
            found, gap = compared(data, X, X_test, Cs, options)
            runs.append(found)
            worst = max(worst, gap)
        mean, change = np.mean(runs, axis=0), np.array([slack - margin for margin, slack in runs])
        for row, values in zip(("margin", "slack"), mean, strict=True):
            print(f"| {name} | {row} | " + " | ".join(f"{value:.4f}" for value in values) + f" | {worst:.2%} |")
        cells = [f"{m:+.4f} ± {s:.4f}" for m, s in zip(change.mean(axis=0), change.std(axis=0, ddof=1), strict=True)]
        print(f"| {name} | difference | " + " | ".join(cells) + " | |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--choose", action="store_true", help="areas on held-out training data, for all settings")
    parser.add_argument("--slack", action="store_true", help="table 3: slack against margin")
    parser.add_argument("--quick", action="store_true", help="small parts of the data, two seeds")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    most, seeds = (300, 2) if options.quick else (10**9, options.seeds)
    if options.choose:
        choose(options.sets, min(most, 4000))
    elif options.slack:
        slack_against_margin(options.sets, 150 if options.quick else 400, seeds)
    else:
        areas(options.sets, most, seeds)


if __name__ == "__main__":
    main()
