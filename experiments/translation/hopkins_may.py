"""The synthetic test of tuning methods: can they recover known weights from 500 lists of 100 candidates?

    make experiment-hopkins-may
    python experiments/translation/hopkins_may.py --features 10 50

Weights w* are drawn uniformly from [-1, 1], features from [0, 1]; the quality of a candidate is ``w* . phi``, scaled
to unit variance (which moves no optimum); in the second half of the table normal noise of standard deviation 0.1 is
added to it. A method sees features and qualities; what counts is the cosine of its weights to w*. After Hopkins, May
2011, Tuning as ranking, whose test this follows; sizes and noise are ours.

* MERT: line searches along features and random directions, see :mod:`mert`; score of the corpus: the mean quality of
  the chosen candidates. One random start and as many restarts as ``--moves`` line searches.
* PRO: 50 of 5,000 pairs from each list, logistic regression.
* margin: ``LatticeRanker`` with margin rescaling, the best candidate of a list against all others, cost = what the
  best gains over them; certified to 0.1 % or as far as ``--seconds`` go.

C of PRO and margin: the one whose weights, from four fifths of the lists, choose the best candidates of the last fifth.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lists import CandidateLists
from mert import mert
from pro import pro

from maxmargin import LatticeRanker

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

FEATURES = (10, 20, 50, 100, 200, 500, 1000)
NOISE = (0.0, 0.1)
GRID = (0.1, 1.0, 10.0, 100.0)
METHODS = ("MERT", "PRO", "margin")

Fit = Callable[[CandidateLists, float], np.ndarray]


def synthetic(
    d: int, noise: float = 0.0, n_lists: int = 500, n_candidates: int = 100, seed: int = 0
) -> tuple[CandidateLists, np.ndarray]:
    """Lists and the weights behind them."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(-1.0, 1.0, d)
    features = rng.uniform(0.0, 1.0, (n_lists * n_candidates, d))
    quality = features @ w
    quality = (quality - quality.mean()) / quality.std() + noise * rng.normal(size=len(quality))
    starts = np.arange(n_lists + 1) * n_candidates
    return CandidateLists(features, quality[:, None], quality, starts), w


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) if a.any() and b.any() else 0.0


def mean_quality(lists: CandidateLists, w: np.ndarray) -> float:
    """Mean quality of the candidates that weights choose."""
    return float(lists.quality[lists.best(lists.features @ w)].mean())


def margin(lists: CandidateLists, C: float, seconds: float) -> np.ndarray:
    """Weights of the margin-rescaled hinge; C is divided by the number of lists times the variance of a feature."""
    variance = float(lists.features.var(axis=0).mean())
    ranker = LatticeRanker(C=C / (len(lists) * variance), max_seconds=seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that ends by its budget says so
        ranker.fit(lists.lattices(), lists.costs())
    return ranker.coef_


def chosen(lists: CandidateLists, fit: Fit, grid: tuple[float, ...]) -> tuple[np.ndarray, float]:
    """Weights from all lists at the C that does best on the last fifth, and that C."""
    four_fifths = len(lists) * 4 // 5
    train, held = lists.some(range(four_fifths)), lists.some(range(four_fifths, len(lists)))
    C = max(grid, key=lambda C: mean_quality(held, fit(train, C)))
    return fit(lists, C), C


def run(d: int, noise: float, options: argparse.Namespace) -> dict[str, float]:
    """Cosines of one row, printed."""
    lists, truth = synthetic(d, noise, seed=options.seed)
    found, notes = {}, []
    for method in METHODS:
        begin = time.process_time()
        if method == "MERT":
            start = np.random.default_rng(options.seed + 1).uniform(-1.0, 1.0, d)
            restarts = max(0, options.moves // (5 * (d + 8)) - 1)  # a descent takes about five sweeps
            w = mert(lists, lambda sums: sums[:, 0] / len(lists), start, restarts=restarts, sweeps=10)
            note = f"{restarts} restarts"
        elif method == "PRO":
            w, C = chosen(lists, lambda part, C: pro(part, C), options.grid)
            note = f"C {C:g}"
        else:
            w, C = chosen(lists, lambda part, C: margin(part, C, options.seconds), options.grid)
            note = f"C {C:g}"
        found[method] = cosine(w, truth)
        notes.append(f"{note}, {time.process_time() - begin:.0f} s")
    cells = "".join(f"{found[m]:9.4f} ({note})".ljust(34) for m, note in zip(METHODS, notes, strict=True))
    print(f"{noise:5.1f} {d:9d} {cells}", flush=True)
    return found


def picture(rows: dict[tuple[float, int], dict[str, float]], path: Path) -> None:
    """Cosine against the number of features, one panel for each noise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(NOISE), sharey=True)
    for ax, noise in zip(axes, NOISE, strict=True):
        for method, marker in zip(METHODS, "os^", strict=True):
            points = sorted((d, found[method]) for (level, d), found in rows.items() if level == noise)
            ax.plot(*zip(*points, strict=True), marker=marker, label=method)
        ax.axhline(0.95, color="grey", linewidth=0.8, linestyle=":")
        ax.set(xscale="log", xlabel="features", title=f"noise {noise:g}" if noise else "no noise")
    axes[0].set(ylabel="cosine to the true weights", ylim=(0.0, 1.02))
    axes[0].legend(loc="lower left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=list(FEATURES))
    parser.add_argument("--grid", type=float, nargs="+", default=list(GRID), help="values of C to choose from")
    parser.add_argument("--moves", type=int, default=5_000, help="line searches of MERT, about")
    parser.add_argument("--seconds", type=float, default=30.0, help="budget of a margin fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("outputs/hopkins_may.png"))
    options = parser.parse_args()
    print(machine_line())
    print(f"{'noise':>5s} {'features':>9s} " + "".join(f"{method:>9s}".ljust(34) for method in METHODS))
    rows = {(noise, d): run(d, noise, options) for noise in NOISE for d in options.features}
    picture(rows, options.picture)


if __name__ == "__main__":
    main()
