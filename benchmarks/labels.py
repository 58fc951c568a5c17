"""Yeast (14 labels, full pairwise model): time of an exact query for each rescaling, and fits to a gap of 0.1 %.

Queries are asked at the weights of the fit, features included; times are processor time of one thread, best of several.
Figures of the test part stand beside those of Choi, Meshi and Srebro 2016, table 2. Accuracy is the mean Jaccard index
of the two sets, label loss the share of wrong labels, micro F1 over all labels of all examples. The last column is the
mean F1 over examples, beside what the paper calls macro F1: our mean over labels, near 0.37, is far from it. For C and
costs that are chosen on the training part see ``make experiment-labels-table``::

    MAXMARGIN_DATA=... python benchmarks/labels.py [--C 0.1 1.0] [--queries]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from machine import machine_line
from maxmargin import LabelSet, MultilabelClassifier
from maxmargin.datasets import load_yeast
from maxmargin.metrics import example_f1, jaccard_accuracy, label_loss, micro_f1
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.rescaling import RESCALINGS

PAPER = {"slack": (0.54, 0.205, 0.661, 0.651), "margin": (0.545, 0.204, 0.666, 0.654)}


def query_times(X: np.ndarray, Y: np.ndarray, w: np.ndarray, repeats: int = 5) -> dict[str, float]:
    """Microseconds of a query by rescaling, over all examples."""
    bound, examples = LabelSet(graph="full").bind(X, Y), np.arange(len(X))
    found = {}
    for name in RESCALINGS:
        oracle, best = ModelOracle(bound, name), np.inf
        for _ in range(repeats):
            begin = time.process_time()
            oracle.sum(w, examples, np.ones(len(X)))
            best = min(best, time.process_time() - begin)
        found[name] = 1e6 * best / len(X)
    return found


def figures(true: np.ndarray, predicted: np.ndarray) -> tuple[float, ...]:
    """Accuracy, label loss, micro F1, and F1 by example."""
    metrics = (jaccard_accuracy, label_loss, micro_f1, example_f1)
    return tuple(metric(true, predicted) for metric in metrics)


def shown(values: tuple[float, ...]) -> str:
    return "{:10.3f}{:12.3f}{:10.3f}{:12.3f}".format(*values)


def fit(X: np.ndarray, Y: np.ndarray, rescaling: str, C: float, tol: float) -> MultilabelClassifier:
    return MultilabelClassifier(graph="full", rescaling=rescaling, C=C, tol=tol).fit(X, Y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--C", type=float, nargs="+", default=[1.0])
    parser.add_argument("--queries", action="store_true", help="only the times of queries, after a short fit")
    options = parser.parse_args()
    train, test = load_yeast("train"), load_yeast("test")
    X, Y, X_test, Y_test = train.X, train.Y, test.X, test.Y
    print(machine_line())
    for name, microseconds in query_times(X, Y, fit(X, Y, "slack", 0.1, 0.05).weights_).items():
        print(f"query, {name:10}  {microseconds:6.1f} microseconds")
    if options.queries:
        return
    print("\nrescaling     C  seconds      gap  accuracy  label loss  micro F1  example F1")
    for rescaling, paper in PAPER.items():
        for C in options.C:
            begin = time.process_time()
            model = fit(X, Y, rescaling, C, 1e-3)
            seconds, gap = time.process_time() - begin, model.certificate_.relative_gap
            found = shown(figures(Y_test, model.predict(X_test)))
            print(f"{rescaling:9}{C:6g}{seconds:9.1f}{gap:9.1e}{found}")
        print(f"{rescaling:9} paper{'':18}{shown(paper)}")


if __name__ == "__main__":
    main()
