"""Finding wrong labels in CoNLL-2000: some labels are changed on purpose, and `audit` has to find the sentences.

    MAXMARGIN_DATA=... make bench-audit               # most of the time is CRFsuite's
    python benchmarks/audit.py --peer averaged-perceptron-8      # a quick peer instead of lbfgs
    python benchmarks/audit.py --columns              # every column of the table as a ranking, on other seeds

Five per cent of the training sentences are corrupted in one of two ways: every token gets a label drawn uniformly at
random, or one random token gets another label. Sentences are ranked, and the rankings are judged by their average
precision and by the precision among the first k, where k is the number of corrupted sentences. Mistakes already in the
corpus count against every ranking alike. Intervals are for the difference of average precisions, over 1000 resamplings
of the sentences of one seed; they do not cover other draws of the wrong labels or of the folds.

Both sides see the same features and have five folds. They differ in three respects: `audit` draws the folds twice (once
with ``--repeats 1``), its C comes from cross-validation while CRFsuite keeps its default c2, and its score was designed
for labels that are replaced uniformly at random, as they are here. The form of the score and its constants were chosen
from several dozen variants on seed 101; seed 102 and the reported seed were not used.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

import maxmargin as mm
from chunking import sequences
from chunking_features import ChunkingVocabulary, chunk_labels, string_features
from machine import machine_line
from maxmargin.datasets.conll2000 import load_conll2000
from maxmargin.estimators.audit_evidence import judge
from maxmargin.estimators.auditing import audit
from peers import PEERS

C = 0.1  # chosen by cross-validation for these features (make bench-chunking)
SHARE = 0.05
FOLDS = 5
RESAMPLINGS = 1000
REPORTED, HELD_OUT = 0, (101, 102)


def spoil(y: list[list[str]], how: str, seed: int, by_frequency: bool = False) -> tuple[list[list[str]], np.ndarray]:
    """Labels with a share of the sentences corrupted, and a mask of these sentences."""
    rng = np.random.default_rng(seed)
    labels, counts = np.unique([label for sentence in y for label in sentence], return_counts=True)
    labels = labels.tolist()
    share = counts / counts.sum() if by_frequency else np.full(len(labels), 1.0 / len(labels))
    spoilt = [list(sentence) for sentence in y]
    for i in rng.choice(len(y), round(SHARE * len(y)), replace=False).tolist():
        if how == "every token":
            spoilt[i] = [labels[k] for k in rng.choice(len(labels), len(y[i]), p=share).tolist()]
        else:
            t = int(rng.integers(len(y[i])))
            other = np.where(np.array(labels) == y[i][t], 0.0, share)
            spoilt[i][t] = labels[int(rng.choice(len(labels), p=other / other.sum()))]
    return spoilt, np.array([a != b for a, b in zip(y, spoilt, strict=True)])


def records(table: Any) -> dict[str, np.ndarray]:
    """The numbers of an audit, by example."""
    order = np.argsort(table["example"])
    columns = {name: np.asarray(table[name])[order] for name in ("score", "margin", "hinge", "ramp", "violation")}
    lengths = np.array([len(given) for given in table["given"]])[order]
    columns["hinge / length"], columns["margin / length"] = columns["hinge"] / lengths, columns["margin"] / lengths
    return columns


def in_sample_hinge(X: mm.Sequences, y: list) -> np.ndarray:
    """Losses at the weights of a fit to all sentences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = mm.SequenceTagger(C=C, tol=0.01).fit(X, y)
    codes = [np.zeros(1, np.int64)] * len(y)
    return judge(tagger, X, y, codes, None, 0).hinge


def peer_rankings(name: str, attributes: list, y: list) -> dict[str, np.ndarray]:
    """1 - p(given labels) of CRFsuite out of fold, and 1 - its least probability of a single label."""
    import pycrfsuite

    algorithm, params = PEERS[name]
    whole, single = np.zeros(len(y)), np.zeros(len(y))
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    with tempfile.TemporaryDirectory() as folder:
        for f in range(FOLDS):
            trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
            for i in np.flatnonzero(fold != f).tolist():
                trainer.append(pycrfsuite.ItemSequence(attributes[i]), y[i])
            path = str(Path(folder) / f"{f}.crfsuite")
            trainer.train(path)
            tagger = pycrfsuite.Tagger()
            tagger.open(path)
            known = set(tagger.labels())
            for i in np.flatnonzero(fold == f).tolist():
                if known.issuperset(y[i]):
                    tagger.set(pycrfsuite.ItemSequence(attributes[i]))
                    whole[i] = tagger.probability(y[i])
                    single[i] = min(tagger.marginal(label, t) for t, label in enumerate(y[i]))
            tagger.close()
    return {
        f"crfsuite {name}, 1 - p(labels)": 1.0 - whole,
        f"crfsuite {name}, 1 - least p(label)": 1.0 - single,
    }


def resampled(spoilt: np.ndarray, ours: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """A 95 % interval of our average precision minus that of another ranking, over resampled sentences."""
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(RESAMPLINGS):
        chosen = rng.integers(len(spoilt), size=len(spoilt))
        truth = spoilt[chosen]
        differences.append(average_precision_score(truth, ours[chosen]) - average_precision_score(truth, other[chosen]))
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def row(name: str, spoilt: np.ndarray, ranking: np.ndarray, ours: np.ndarray | None = None) -> None:
    """One line: average precision, precision at k, and how far ours is above."""
    first = np.argsort(-ranking, kind="stable")[: spoilt.sum()]
    line = f"  {name:48} {average_precision_score(spoilt, ranking):7.4f} {spoilt[first].mean():14.4f}"
    if ours is not None:
        low, high = resampled(spoilt, ours, ranking)
        line += f"    {low:+.4f} to {high:+.4f}"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="lbfgs", choices=[*PEERS, "none"], help="how CRFsuite is trained")
    parser.add_argument("--seed", type=int, default=REPORTED, help="chooses the corrupted sentences and tokens")
    parser.add_argument("--by-frequency", action="store_true", help="draw wrong labels by their frequency")
    parser.add_argument("--repeats", type=int, default=2, help="how often audit draws the folds")
    parser.add_argument("--columns", action="store_true", help=f"compare columns of the table on seeds {HELD_OUT}")
    parser.add_argument("--sentences", type=int, default=None, help="use only this many sentences, for a quick run")
    options = parser.parse_args()
    print(machine_line())
    train = load_conll2000("train")[: options.sentences]
    y = chunk_labels(train)
    X = sequences(ChunkingVocabulary().fit_transform(train))
    estimator = mm.SequenceTagger(C=C)
    head = f"  {'':48} {'AP':>7} {'precision at k':>14}"

    for seed in HELD_OUT if options.columns else (options.seed,):
        for how in ("every token", "one token"):
            noisy, spoilt = spoil(y, how, seed, options.by_frequency)
            begin, busy = time.perf_counter(), time.process_time()
            found = records(audit(estimator, X, noisy, cv=FOLDS, repeats=options.repeats))
            seconds, busy = time.perf_counter() - begin, time.process_time() - busy
            print(f"\n{spoilt.sum()} of {len(y)} sentences corrupted in {how}, seed {seed}; ", end="")
            print(f"audit took {seconds:.0f} s, {busy:.0f} s of processor time")
            print(head if options.columns or how == "every token" else f"{head}    ours above it, 95 %")
            row("audit: score", spoilt, found["score"])
            if options.columns:
                for name, ranking in found.items():
                    if name != "score":
                        row(f"audit: {name}", spoilt, ranking)
            elif how == "one token":
                ours = found["score"]
                row("hinge loss in sample", spoilt, in_sample_hinge(X, noisy), ours)
                row("hinge loss out of fold", spoilt, found["hinge"], ours)
                if options.peer != "none":
                    for name, ranking in peer_rankings(options.peer, string_features(train), noisy).items():
                        row(name, spoilt, ranking, ours)


if __name__ == "__main__":
    main()
