"""Lattices: milliseconds of the best path and of the 100 best distinct outputs, and training time by number of arcs.

    python benchmarks/lattice.py [--quick] [--output outputs/lattices.png]

A lattice is made like that of a decoder for a sentence of 50 words: 100 nodes for each word (one for each 20 arcs in
training), and arcs of one to three words that lead on by as many, with 15 dense features each. Training has five
lattices, and arcs that begin with a wrong word cost 1. ``decode`` is what ``predict`` does with a bound
lattice: scores of arcs from their features, then the best path. Processor time, one thread, best of seven.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from machine import machine_line, save_picture
from maxmargin import LatticeRanker
from maxmargin.datasets import Lattice
from maxmargin.inference import best_path
from maxmargin.models import LatticeModel

LENGTH, FEATURES, VOCABULARY = 50, 15, 40


def lattice(rng: np.random.Generator, n_arcs: int, wide: int = 100) -> Lattice:
    """A lattice with about so many arcs, whose first feature knows the right words, with noise."""
    n = 2 + (LENGTH - 1) * wide

    def nodes(column: np.ndarray) -> np.ndarray:
        inner = 1 + (column - 1) * wide + rng.integers(0, wide, len(column))
        return np.where(column <= 0, 0, np.where(column >= LENGTH, n - 1, inner))

    begin = rng.integers(0, LENGTH, n_arcs)
    length = np.minimum(rng.integers(1, 4, n_arcs), LENGTH - begin)
    words = [
        " ".join(f"{column + k}.{int(abs(rng.normal()) * VOCABULARY / 3)}" for k in range(size))
        for column, size in zip(begin.tolist(), length.tolist(), strict=True)
    ]
    features = rng.normal(size=(n_arcs, FEATURES))
    right = np.array([word.split()[0].endswith(".0") for word in words])
    features[:, 0] += right
    return Lattice(n, nodes(begin), nodes(begin + length), features, words, trim=True)


def best(run: Callable[[], object], times: int = 7) -> float:
    """Processor seconds, best of several."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def decoding(sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    w = np.concatenate([[2.0], rng.normal(size=FEATURES - 1)])
    print("      arcs    nodes   decode   best_path   100 best outputs   times decode")
    for size in sizes:
        x = lattice(rng, size, wide=min(100, size // 100))
        bound = LatticeModel().bind([x])
        bound.argmax(w)
        bound.k_best(w, 0, 2)
        scores = x.features @ w
        decode, path = (
            best(lambda bound=bound: bound.argmax(w)),
            best(lambda x=x, s=scores: best_path(x.tails, x.heads, s)),
        )
        many = best(lambda bound=bound: bound.k_best(w, 0, 100))
        print(
            f"{x.n_arcs:10,} {x.n_nodes:8,} {1e3 * decode:5.2f} ms {1e3 * path:8.2f} ms {1e3 * many:15.2f} ms "
            f"{many / decode:13.1f}"
        )


def training(sizes: list[int], path: Path | None) -> None:
    print("\n      arcs   training   passes   microseconds per arc and pass   gap")
    found = []
    for size in sizes:
        rng = np.random.default_rng(1)
        X = [lattice(rng, size, wide=max(size // 1000, 1)) for _ in range(5)]
        arcs = sum(x.n_arcs for x in X)
        targets = [np.array([1.0 - text.split()[0].endswith(".0") for text in x.words]) for x in X]

        def fit(X: list = X, targets: list = targets) -> LatticeRanker:
            return LatticeRanker(C=1.0, tol=1e-2).fit(X, targets)

        model, seconds = fit(), best(fit, 3)
        found.append((arcs, seconds))
        per = 1e6 * seconds / arcs / model.n_iter_
        print(f"{arcs:10,} {seconds:8.2f} s {model.n_iter_:8.0f} {per:31.3f}   {model.certificate_.relative_gap:.1e}")
    slope = np.polyfit(*np.log(np.array(found)).T, 1)[0]
    print(f"seconds grow with the {slope:.2f}th power of the number of arcs")
    if path is not None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
        arcs, seconds = np.array(found).T
        axes.loglog(arcs, seconds, "o-", label="training to a gap of 1 %")
        axes.loglog(arcs, seconds[-1] * arcs / arcs[-1], "--", color="grey", label="linear")
        axes.set(xlabel="arcs of all lattices", ylabel="processor seconds")
        axes.legend()
        save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the arcs")
    parser.add_argument("--output", type=Path, default=Path("outputs/lattices.png"), help="the picture")
    options = parser.parse_args()
    print(machine_line())
    scale = 10 if options.quick else 1
    decoding([size // scale for size in (10_000, 30_000, 100_000, 300_000)])
    training([size // scale for size in (10_000, 20_000, 50_000, 100_000, 200_000)], options.output)


if __name__ == "__main__":
    main()
