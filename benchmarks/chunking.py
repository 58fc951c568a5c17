"""CoNLL-2000 chunking: the presets of maxmargin and python-crfsuite on the same features, in one run.

    MAXMARGIN_DATA=... make bench-chunking            # everything, about ten minutes
    python benchmarks/chunking.py --quick             # without the slow peers
    python benchmarks/chunking.py --passes            # only the cost of a pass of the primal methods

Seconds are processor seconds of ``fit`` (maxmargin: including packing the data) and of ``train`` (CRFsuite: after
appending the data), on one thread with warm kernels. Features and compilation are timed separately. An oracle pass is
one argmax per training sentence, including those of certificates. C is chosen by cross-validation on the training
sentences.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from chunking_features import ChunkingVocabulary, TokenFeatures, chunk_labels, string_features
from machine import machine_line
from maxmargin.datasets.conll2000 import load_conll2000
from maxmargin.kernel import compile_seconds
from maxmargin.metrics import span_f1, token_accuracy
from peers import train_peer

CS = (0.05, 0.1, 0.2)
# for a good model soon, not for a tight certificate: no planes of parts, longer sweeps, one certificate at the end
FAST = {"parts": 1, "cached_passes": 2, "visits": 0.5, "certificate_every": 100.0}
FAST_PASSES = 8
FOLDS = 5
REPEATS = 3
PRIMAL_PASSES = 10


def sequences(features: TokenFeatures) -> mm.Sequences:
    """The features as the tagger takes them."""
    shape = (len(features.indptr) - 1, features.n_features)
    ones = np.ones(len(features.indices))
    return mm.Sequences(features.offsets, sparse=sp.csr_array((ones, features.indices, features.indptr), shape=shape))


def fit(solver: Any, C: float, X: Any, y: Any, **stopping: Any) -> tuple[mm.SequenceTagger, float]:
    """A fitted tagger and the processor seconds of the fit."""
    tagger = mm.SequenceTagger(C=C, solver=solver, **stopping)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(X, y)
    return tagger, time.process_time() - begin


def choose(X: mm.Sequences, y: list) -> float:
    """C by five-fold cross-validation on the training sentences: the smallest within one standard error of the best."""
    scores = np.zeros((len(CS), FOLDS))
    for fold in range(FOLDS):
        held = np.arange(len(X)) % FOLDS == fold
        X_fit, X_held = X[~held], X[held]
        y_fit = [labels for labels, h in zip(y, held, strict=True) if not h]
        y_held = [labels for labels, h in zip(y, held, strict=True) if h]
        for k, C in enumerate(CS):
            tagger, _ = fit(mm.Auto(**FAST), C, X_fit, y_fit, tol=0.0, max_passes=FAST_PASSES)
            scores[k, fold] = 100 * span_f1(y_held, tagger.predict(X_held))
    mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(FOLDS)
    for k, C in enumerate(CS):
        print(f"  C = {C:<5g} held-out F1 {mean[k]:.2f} +- {error[k]:.2f}")
    best = int(np.argmax(mean))
    return next(C for k, C in enumerate(CS) if mean[k] >= mean[best] - error[best])


def row(name: str, seconds: float, passes: float, y_test: list, predictions: list, gap: float | None) -> None:
    """One line of the table."""
    f1, accuracy = 100 * span_f1(y_test, predictions), 100 * token_accuracy(y_test, predictions)
    shown = f"{100 * gap:9.3f} %" if gap is not None else "          -"
    print(f"{name:42} {seconds:8.2f} s {passes:7.1f} {f1:7.2f} {accuracy:7.2f} {shown}", flush=True)


def passes(X: Any, y: list, X_test: Any, y_test: list, strings: list, strings_test: list, C: float) -> None:
    """Cost of a pass of each primal method and of CRFsuite's averaged perceptron; processor seconds, one thread.

    Ours count everything that a fit does, including packing the data and the final certificate.
    """
    solvers = {
        "perceptron": mm.Perceptron(),
        "mira": mm.MIRA(),
        "pegasos": mm.Pegasos(averaging="tail", certificate_every=100.0),
        "sgd": mm.SGD(certificate_every=100.0),
    }
    print(f"\n{PRIMAL_PASSES} passes, best of {REPEATS}: {'':10} {'s per pass':>12} {'F1':>7} {'of CRFsuite':>12}")
    best: dict[str, float] = {}
    f1: dict[str, float] = {}
    for _ in range(REPEATS):
        peer = train_peer("averaged-perceptron-10", strings, y, strings_test, y_test, max_iterations=PRIMAL_PASSES)
        best["peer"] = min(best.get("peer", np.inf), peer.processor_seconds / peer.iterations)
        f1["peer"] = peer.f1
        for name, solver in solvers.items():
            begin = time.process_time()
            tagger, _ = fit(solver, C, X, y, tol=0.0, max_passes=PRIMAL_PASSES + 1)
            seconds = (time.process_time() - begin) / PRIMAL_PASSES
            best[name] = min(best.get(name, np.inf), seconds)
            f1[name] = span_f1(y_test, tagger.predict(X_test))
    for name in best:
        title = "crfsuite averaged perceptron" if name == "peer" else f"maxmargin {name}"
        print(f"{title:36} {best[name]:10.3f} {100 * f1[name]:7.2f} {best[name] / best['peer']:12.2f}")


SHOWN = ("averaged-perceptron-10", "averaged-perceptron-50", "passive-aggressive", "l2sgd", "lbfgs")


def first_pass_below(history: Any, gap: float) -> float:
    """Oracle passes at the first certificate with at most this relative gap."""
    below = np.asarray(history["pass"])[np.asarray(history["relative_gap"]) <= gap]
    return below[0] if len(below) else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the averaged perceptron and the accelerated default")
    parser.add_argument("--peers", nargs="+", metavar="NAME", help="after it only these methods of CRFsuite")
    parser.add_argument("--passes", action="store_true", help="only the cost of a pass of the primal methods")
    options = parser.parse_args()
    print(machine_line())
    train, test = load_conll2000("train"), load_conll2000("test")
    y_train, y_test = chunk_labels(train), chunk_labels(test)
    begin = time.perf_counter()
    vocabulary = ChunkingVocabulary()
    X_train, X_test = sequences(vocabulary.fit_transform(train)), sequences(vocabulary.transform(test))
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    strings_train, strings_test = string_features(train), string_features(test)
    theirs = time.perf_counter() - begin
    print(f"features: ours {ours:.2f} s, strings for CRFsuite {theirs:.2f} s; {X_train.sparse.shape[1]} attributes")
    begin = time.perf_counter()
    warm, _ = fit("auto", 0.1, X_train[:200], y_train[:200], max_passes=5)
    warm.predict(X_test[:10])
    print(
        f"kernels: {compile_seconds():.2f} s to compile or load, "
        f"{time.perf_counter() - begin:.2f} s with a first small fit"
    )

    if options.passes:
        passes(X_train, y_train, X_test, y_test, strings_train, strings_test, 0.1)
        return
    C = choose(X_train, y_train)
    print(f"  chosen: C = {C:g}\n")

    print(f"{'':42} {'train':>10} {'passes':>7} {'F1':>7} {'acc':>7} {'rel. gap':>11}")
    best: dict[str, float] = {}
    fast: Any = None
    for _ in range(REPEATS):  # interleaved, so that a slow moment of the machine affects both
        result = train_peer("averaged-perceptron-8", strings_train, y_train, strings_test, y_test)
        best["ap8"] = min(best.get("ap8", np.inf), result.processor_seconds)
        fast, seconds = fit(mm.Auto(**FAST), C, X_train, y_train, tol=0.0, max_passes=FAST_PASSES)
        best["fast"] = min(best.get("fast", np.inf), seconds)
    row("crfsuite averaged-perceptron-8 (best of 3)", best["ap8"], 8, y_test, result.predictions, None)
    predictions = fast.predict(X_test)
    row(
        "maxmargin auto, fast setting (best of 3)",
        best["fast"],
        fast.n_iter_,
        y_test,
        predictions,
        fast.certificate_.relative_gap,
    )
    fast_f1 = span_f1(y_test, predictions)

    auto, seconds = fit("auto", C, X_train, y_train, tol=1e-3)
    row("maxmargin auto, to 0.1 %", seconds, auto.n_iter_, y_test, auto.predict(X_test), auto.certificate_.relative_gap)
    total = auto.seconds_["total"]
    split = ", ".join(f"{part} {auto.seconds_[part]:.2f} s" for part in ("oracle", "solver", "compile"))
    print(f"    time split: {split}, of {total:.2f} s; sequential sweeps are split by the cost of certificates")

    lbfgs = np.inf
    if not options.quick and options.peers is None:
        for name, solver in {
            "sequential_dual": mm.SequentialDual(certificate_every=9.0),
            "bcfw": mm.BCFW(certificate_every=9.0),
            "cutting_plane n": mm.CuttingPlane("n"),
            "cutting_plane one": mm.CuttingPlane("one"),
            "simplicial product": mm.SimplicialDecomposition("product"),
            "simplicial product, r = 3": mm.SimplicialDecomposition("product", limit=3),
            "simplicial one, r = 5": mm.SimplicialDecomposition("one", limit=5),
            "frank_wolfe": mm.FrankWolfe(),
        }.items():
            tagger, seconds = fit(solver, C, X_train, y_train, tol=1e-3, max_passes=10)
            gap = tagger.certificate_.relative_gap
            row(f"maxmargin {name}, 10 passes", seconds, tagger.n_iter_, y_test, tagger.predict(X_test), gap)
    for name in () if options.quick else options.peers or SHOWN:
        result = train_peer(name, strings_train, y_train, strings_test, y_test)
        row(f"crfsuite {name}", result.processor_seconds, result.iterations, y_test, result.predictions, None)
        lbfgs = result.processor_seconds if name == "lbfgs" else lbfgs

    if options.peers is None:
        passes(X_train, y_train, X_test, y_test, strings_train, strings_test, C)
    print("\ngoals")
    one, tenth = first_pass_below(auto.history_, 0.01), first_pass_below(auto.history_, 0.001)
    faster = best["ap8"] / best["fast"]
    print(
        f"  test F1 {100 * fast_f1:.2f} (goal 93.75) {faster:.2f} times as fast as 8 passes of the averaged perceptron"
    )
    if np.isfinite(lbfgs):
        print(f"  {lbfgs / best['fast']:.1f} times as fast as lbfgs (goal 20)")
    print(f"  gap <= 1 % after {one:.0f} oracle passes (goal 10), <= 0.1 % after {tenth:.0f} (goal 18)")


if __name__ == "__main__":
    main()
