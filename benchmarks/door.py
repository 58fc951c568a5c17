"""What the checks of arrays from outside cost, as a share of one pass of training, and of predicting the examples.

A pass of training is a tenth of what ten further passes of a fit take; the checks are made once for a whole fit. Some
are made by the copies for the kernels: these cost what such a copy takes longer than one that checks nothing, both into
memory that is there already. To predict is to bind the examples and to decode them all; then the weights are checked
too. Times are processor seconds, best of several::

    python benchmarks/door.py
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from machine import machine_line
from maxmargin.door import (
    check_compressed,
    copy_codes,
    copy_numbers,
    edge_list,
    first_bad_row,
    refuse_not_finite,
    sparse_block,
    weight_vector,
)
from maxmargin.estimators.base import Structured
from maxmargin.features.sequences import Sequences
from maxmargin.inference.min_cut import directions

RUNS = 15
LIMIT = 0.02


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def often(work: Callable[[], object], times: int = 20) -> float:
    """Processor seconds of work that is too short for the clock."""
    return seconds(lambda: [work() for _ in range(times)]) / times


def compared(
    name: str,
    check: Callable[[], object],
    estimator: Structured,
    X: object,
    y: object,
    copy: Callable[[], object] = lambda: None,
) -> float:
    """Print the shares of the check, less its copies without one, and return that of a pass of training."""
    few, many = (clone(estimator).set_params(max_passes=n, tol=0.0) for n in (2, 12))
    check(), copy()
    w = few.fit(X, y).weights_
    few.predict(X)  # kernels are loaded
    best = np.full(6, np.inf)
    for _ in range(RUNS):
        short = [often(work) for work in (check, copy, lambda: weight_vector(w, len(w)))]
        long = [seconds(work) for work in (lambda: few.predict(X), lambda: few.fit(X, y), lambda: many.fit(X, y))]
        best = np.minimum(best, short + long)
    checks, weights, predict, training = best[0] - best[1], *best[2:4], (best[5] - best[4]) / 10
    shares = checks / training, (checks + weights) / predict
    shown = " ".join(f"{1e3 * t:9.2f} ms {share:6.2%}" for t, share in zip((training, predict), shares, strict=True))
    print(f"{name:<40} {1e3 * checks:9.3f} ms {1e3 * weights:9.3f} ms {shown}", flush=True)
    return shares[0]


def tagging(rng: np.random.Generator, labels: int = 20) -> float:
    lengths = rng.integers(5, 40, size=400)
    tokens, width = int(lengths.sum()), 20_000
    rows = np.repeat(np.arange(tokens), 20)
    columns = rng.integers(width, size=len(rows))
    sparse = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(tokens, width))
    sequences = Sequences(np.concatenate([[0], np.cumsum(lengths)]), sparse=sparse)
    y = [[str(k) for k in rng.integers(labels, size=length)] for length in lengths]

    def check() -> None:
        check_compressed(sequences.sparse, "X")
        first_bad_row(sequences.sparse)

    return compared(f"chain, {tokens} tokens, {labels} labels", check, mm.SequenceTagger(C=0.1), sequences, y)


def classes(rng: np.random.Generator) -> float:
    X = sp.random_array((5_000, 5_000), density=0.01, rng=rng, format="csr")
    y = rng.integers(10, size=5_000)

    values = np.empty(X.nnz)

    def check() -> None:
        sparse_block(X, "X")
        copy_numbers([X.data], values)

    def copy() -> None:
        values[...] = X.data

    return compared(f"classes, {X.shape[0]} rows, {X.nnz} entries", check, mm.MulticlassClassifier(C=0.1), X, y, copy)


def images(rng: np.random.Generator) -> float:
    shape = (120, 120)
    J = len(directions(4))
    X = [{"node": rng.normal(size=(*shape, 8)), "edge": rng.random((J, *shape, 2))} for _ in range(3)]
    y = [(x["node"][..., 0] + rng.normal(size=shape) > 0).astype(int) for x in X]

    nodes, edges = ([x[name] for x in X] for name in ("node", "edge"))
    node_place, edge_place = (np.empty(sum(part.size for part in parts)) for parts in (nodes, edges))
    codes = np.empty(sum(mask.size for mask in y), np.int32)

    def check() -> None:
        copy_numbers(nodes, node_place)
        copy_numbers(edges, edge_place, least=0.0)
        copy_codes(y, codes, (0, 1, 255))

    def copy() -> None:
        for parts, place in ((nodes, node_place), (edges, edge_place), (y, codes)):
            begin = 0
            for part in parts:
                place[begin : begin + part.size] = part.reshape(-1)
                begin += part.size

    return compared("images, 3 of 120 x 120 pixels", check, mm.ImageSegmenter(), X, y, copy)


def graphs(rng: np.random.Generator) -> float:
    n = 200
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    X = [{"node": rng.normal(size=(n, 8)), "edges": edges, "edge": rng.random((n, 2))} for _ in range(20)]
    y = [rng.integers(3, size=n).tolist() for _ in X]

    def check() -> None:
        edge_list(n, edges)  # graphs of the same shape share their structure
        for x in X:
            refuse_not_finite(x["node"], "node")
            refuse_not_finite(x["edge"], "edge")

    return compared(f"graphs, 20 rings of {n} nodes", check, mm.GraphLabeler(), X, y)


def main() -> None:
    print(machine_line())
    warnings.simplefilter("ignore")  # these fits end early
    print(f"{'':<40} {'checks':>12} {'weights':>12} {'a pass':>12} {'share':>6} {'predict':>12} {'share':>6}")
    rng = np.random.default_rng(0)
    shares = [measure(rng) for measure in (tagging, classes, images, graphs)]
    print(f"largest share of a pass {max(shares):.2%}, limit {LIMIT:.0%}")


if __name__ == "__main__":
    main()
