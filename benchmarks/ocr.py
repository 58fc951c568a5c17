"""Handwritten words (OCR letters): all presets on both usual splits, on one thread.

Large split: train on folds 1-9 (6,251 words), test on fold 0 (626). Small split: the reverse. Features are the 128
pixels and a constant; the chain has weights for the first and the last letter of a word. C is chosen on held-out words
of the training part. Kernels are compiled first, and the test words are predicted after the solver has ended::

    python benchmarks/ocr.py              # needs MAXMARGIN_DATA; about 7 minutes; writes outputs/ocr_convergence.png
    python benchmarks/ocr.py --split small
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from machine import Others, machine_line
from maxmargin import (
    BCFW,
    Auto,
    CuttingPlane,
    FrankWolfe,
    Sequences,
    SequenceTagger,
    SequentialDual,
    SimplicialDecomposition,
)
from maxmargin.datasets import load_ocr_letters
from maxmargin.kernel import compile_seconds
from maxmargin.metrics import token_error

PRESETS: dict[str, Any] = {
    "Auto": Auto(),
    "SequentialDual": SequentialDual(),
    "BCFW": BCFW(),
    "SimplicialDecomposition(limit=5)": SimplicialDecomposition("product", limit=5),
    "CuttingPlane(n)": CuttingPlane("n"),
    "CuttingPlane(one)": CuttingPlane("one"),
    "FrankWolfe": FrankWolfe(),
}
GRID = (0.1, 0.3, 1.0, 3.0)
TOL = 1e-3
# Linear chains on (most of) the large split; Ratliff, Bagnell, Zinkevich 2007 report 13 % after learning 5,500 words.
PUBLISHED = "about 12 %"


@dataclass(frozen=True)
class Split:
    """Training words, test words, and the seconds that each preset may take."""

    name: str
    X: Any
    y: list[np.ndarray]
    X_test: Any
    y_test: list[np.ndarray]
    seconds: float


def load_splits() -> dict[str, Split]:
    X, y, folds = load_ocr_letters()
    with_constant = [np.hstack([x, np.ones((len(x), 1))]) for x in X]

    def words(chosen: np.ndarray) -> tuple[Any, list[np.ndarray]]:
        places = np.flatnonzero(chosen)
        return Sequences.of([with_constant[i] for i in places]), [y[i] for i in places]

    first, rest = words(folds == 0), words(folds > 0)
    return {"large": Split("large", *rest, *first, 30.0), "small": Split("small", *first, *rest, 12.0)}


def tagger(C: float, **options: Any) -> SequenceTagger:
    return SequenceTagger(C=C, ends=True, n_jobs=1, random_state=0, **options)


def error(fitted: SequenceTagger, X: Any, y: list[np.ndarray]) -> float:
    return 100 * token_error(y, fitted.predict(X))


def choose_C(split: Split) -> float:
    """The C with the fewest wrong letters on every fifth word of the training part."""
    held = np.arange(len(split.y)) % 5 == 0
    rest, places = np.flatnonzero(~held), np.flatnonzero(held)
    errors = {}
    for C in GRID:
        # a budget of passes, not of seconds: the choice must not depend on the machine
        fitted = tagger(C, tol=1e-2, max_passes=40).fit(split.X[rest], [split.y[i] for i in rest])
        errors[C] = error(fitted, split.X[places], [split.y[i] for i in places])
    listed = ", ".join(f"{C:g}: {wrong:.2f} %" for C, wrong in errors.items())
    best = min(errors, key=errors.__getitem__)
    print(f"C = {best:g} (token error on held-out words by C: {listed})")
    return best


def warm(split: Split) -> None:
    """Run every preset on a few words, so that nothing compiles while the clock runs."""
    few = np.arange(20)
    for preset in PRESETS.values():
        fitted = SequenceTagger(ends=True, solver=preset, max_passes=8).fit(split.X[few], split.y[:20])
        fitted.predict(split.X[few])


def measure(split: Split) -> dict[str, Any]:
    """Print the table of one split; returns the histories."""
    tokens = sum(map(len, split.y))
    print(f"\n{split.name} split: train {len(split.y)} words, {tokens} letters; test {len(split.y_test)} words")
    C = choose_C(split)
    print(f"tol {TOL:g}, at most {split.seconds:g} s each; others: cores kept busy by other processes meanwhile")
    columns = f"{'passes':>8} {'oracle calls':>13} {'seconds':>9} {'rel. gap':>10} {'test error':>11} {'others':>7}"
    head = f"{'preset':34} {columns}"
    print(head + "\n" + "-" * len(head), flush=True)
    histories, errors = {}, {}
    for name, preset in PRESETS.items():
        with Others() as others:
            fitted = tagger(C, solver=preset, tol=TOL, max_passes=None, max_seconds=split.seconds).fit(split.X, split.y)
        histories[name] = fitted.history_
        errors[name] = error(fitted, split.X_test, split.y_test)
        print(
            f"{name:34} {fitted.n_iter_:8.1f} {fitted.oracle_calls_:13d} {fitted.seconds_['total']:9.2f} "
            f"{fitted.certificate_.relative_gap:10.2e} {errors[name]:9.2f} % {others.cores:7.2f}",
            flush=True,
        )
    if split.name == "large":
        print(f"token error of Auto: {errors['Auto']:.2f} %; published for linear chains on this split: {PUBLISHED}")
    return histories


def draw(histories: dict[str, dict[str, Any]], path: Path) -> None:
    """One row per split: the gap against seconds and against oracle calls."""
    from maxmargin.reports.convergence import plot_convergence, require_matplotlib

    pyplot = require_matplotlib()
    pyplot.switch_backend("Agg")
    rows = len(histories)
    figure, axes = pyplot.subplots(rows, 2, figsize=(12, 4.4 * rows), sharey="row", squeeze=False, layout="constrained")
    for row, (name, curves) in zip(axes, histories.items(), strict=True):
        plot_convergence(curves, row, against=("seconds", "oracle_calls"), tol=TOL)
        row[-1].get_legend().remove()
        for ax in row:
            ax.set_xscale("log")
            ax.set_title(f"OCR letters, {name} split", fontsize="medium")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="All presets on the OCR letters.")
    parser.add_argument("--split", choices=("large", "small", "both"), default="both")
    parser.add_argument("--output", type=Path, default=Path("outputs/ocr_convergence.png"))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # a preset that ends by its budget warns; the table shows its gap
    begin = time.perf_counter()
    print(machine_line(threads=1))
    with threadpool_limits(1):
        splits = load_splits()
        warm(splits["small"])
        print(f"kernels: {compile_seconds():.1f} s to compile or load, before any clock below", flush=True)
        names = ("large", "small") if options.split == "both" else (options.split,)
        histories = {name: measure(splits[name]) for name in names}
        draw(histories, options.output)
    print(f"\nwhole benchmark {time.perf_counter() - begin:.0f} s\npicture: {options.output.resolve()}")


if __name__ == "__main__":
    main()
