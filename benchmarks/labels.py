"""Yeast (14 labels, full pairwise model): time of an exact query for each rescaling, and fits to a gap of 0.1 %.

Queries are asked at the weights of the fit, features included; times are processor time of one thread, best of several.
Figures of the test part stand beside those of Choi, Meshi and Srebro 2016, table 2; accuracy is the mean Jaccard index
of the two sets, label loss the share of wrong labels, and macro F1 the mean over labels::

    MAXMARGIN_DATA=... python benchmarks/labels.py [--C 0.1 1.0] [--queries]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import f1_score, hamming_loss, jaccard_score

from machine import machine_line
from maxmargin import LabelSet, MultilabelClassifier
from maxmargin.datasets.folder import require
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.rescaling import RESCALINGS

PAPER = {"slack": (0.54, 0.205, 0.661, 0.651), "margin": (0.545, 0.204, 0.666, 0.654)}
SOURCE = "http://mulan.sourceforge.net/datasets-mlc.html, saved as arrays X_train, Y_train, X_test, Y_test"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--C", type=float, nargs="+", default=[1.0])
    parser.add_argument("--queries", action="store_true", help="only the times of queries, after a short fit")
    options = parser.parse_args()
    data = np.load(require("yeast/yeast.npz", SOURCE))
    X, Y, X_test, Y_test = (data[name] for name in ("X_train", "Y_train", "X_test", "Y_test"))
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    print(machine_line())
    weights = MultilabelClassifier(graph="full", rescaling="slack", C=0.1, tol=0.05).fit(X, Y).weights_
    for name, microseconds in query_times(X, Y, weights).items():
        print(f"query, {name:10}  {microseconds:6.1f} microseconds")
    if options.queries:
        return
    print("\nrescaling     C  seconds      gap  accuracy  label loss  micro F1  macro F1")
    for rescaling, paper in PAPER.items():
        for C in options.C:
            begin = time.process_time()
            model = MultilabelClassifier(graph="full", rescaling=rescaling, C=C, tol=1e-3).fit(X, Y)
            seconds, predicted = time.process_time() - begin, model.predict(X_test)
            figures = (
                jaccard_score(Y_test, predicted, average="samples", zero_division=1.0),
                hamming_loss(Y_test, predicted),
                *(f1_score(Y_test, predicted, average=kind, zero_division=0.0) for kind in ("micro", "macro")),
            )
            shown = "{:10.3f}{:12.3f}{:10.3f}{:10.3f}".format(*figures)
            print(f"{rescaling:9}{C:6g}{seconds:9.1f}{model.certificate_.relative_gap:9.1e}{shown}")
        print("{:9} paper{:18}{:10.3f}{:12.3f}{:10.3f}{:10.3f}".format(rescaling, "", *paper))


if __name__ == "__main__":
    main()
