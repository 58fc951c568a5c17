"""Reranking of Moses n-best lists: 100 sentences with 100 hypotheses and 15 features each, cross-validated.

    MAXMARGIN_DATA=... make experiment-reranking
    python experiments/lattices/reranking.py --folds 5

Each fifth of the lists is ranked by weights learned from the others. C is chosen by BLEU in a second cross-validation
inside these. Features are divided by their standard deviation within the lists of the training part. Words are in lower
case, as in the lists. Beside ours: the hypothesis of largest Moses score, and the best one of each list by sentence
BLEU. ``p`` is the paired approximate randomisation test against the Moses score; times are processor seconds of all
fits of a method, one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maxmargin import Lattice, LatticeRanker, Ramp
from maxmargin.datasets import read_nbest, require
from maxmargin.datasets.text_lines import decoded, opened
from maxmargin.estimators.lattice_sentences import Judged, bleu_cost, judged
from maxmargin.metrics import bleu_of, bleu_statistics, paired_randomisation
from maxmargin.models.lattice_targets import Target

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from machine import machine_line

WHERE = "mert/test_scorer_data of mosesdecoder (nbest.out and reference.txt)"
N_GOOD = 5
GRID = (0.0003, 0.003, 0.03, 0.3, 3.0)
SMOOTH = {"max_passes": 200, "tol": 1e-2}
METHODS: dict[str, dict[str, object]] = {
    "margin": {},
    "slack": {"rescaling": "slack"},
    "ramp": {"loss": Ramp("best_output")},
    "ramp, cost diminished": {"loss": Ramp("cost_diminished")},
    "L1, margin": {"penalty": "l1", "rescaling": "margin"},
    "L1, one good output (6)": {"penalty": "l1"},
    "L1, nearest good (7)": {"penalty": "l1", "n_good": N_GOOD, "pairing": "nearest"},
    "L1, all good (8)": {"penalty": "l1", "n_good": N_GOOD, "pairing": "all"},
    "(7), best and worst only": {"penalty": "l1", "n_good": N_GOOD, "pairing": "nearest", "worst": 30},
    "(8), best and worst only": {"penalty": "l1", "n_good": N_GOOD, "pairing": "all", "worst": 30},
}


class Lists:
    """The lists, what is known of each hypothesis, and BLEU of choices."""

    def __init__(self) -> None:
        found = read_nbest(require("moses_nbest/nbest100x100.txt.xz", WHERE))
        with opened(require("moses_nbest/reference.txt.xz", WHERE)) as (lines, name):
            texts = [line.lower().split() for _, line in decoded(lines, name)]
        self.lattices, self.references = found.lattices, [[texts[key]] for key in found.ids]
        self.judged: list[Judged] = [
            judged(x, refs, bleu_cost, N_GOOD, i)
            for i, (x, refs) in enumerate(zip(self.lattices, self.references, strict=True))
        ]
        self.first = [x.words[int(s.argmax())] for x, s in zip(found.lattices, found.scores, strict=True)]
        self.oracle = [x.text(one.target.path.tolist()) for x, one in zip(self.lattices, self.judged, strict=True)]

    def counts(self, texts: Sequence[str], of: Sequence[int]) -> np.ndarray:
        return bleu_statistics([text.split() for text in texts], [self.references[i] for i in of])

    def scaled(self, train: Sequence[int]) -> list[Lattice]:
        """All lists with features of one size within the training lists."""
        parts = [self.lattices[i].features.toarray() for i in train]
        width = np.sqrt(np.mean([part.var(axis=0) for part in parts], axis=0))
        width[width == 0.0] = 1.0
        return [Lattice.from_nbest(x.words, x.features.toarray() / width, x.names) for x in self.lattices]

    def ranked(self, method: dict[str, object], C: float, train: Sequence[int], test: Sequence[int]) -> list[str]:
        """The hypotheses of the test lists that weights from the training lists choose."""
        X = self.scaled(train)
        settings = {name: value for name, value in method.items() if name not in ("pairing", "worst")}
        if "n_good" in method:  # lists with one text only teach nothing
            train = [i for i in train if self.judged[i].good]
        y = [self.judged[i].target for i in train]
        taught = [X[i] for i in train]
        if "worst" in method:  # those in between are neither good nor bad
            kept = [self.extremes(i, int(str(method["worst"]))) for i in train]
            taught = [
                Lattice.from_nbest([x.words[e] for e in k], x.features[k], x.names)
                for x, k in zip(taught, kept, strict=True)
            ]
            y = [
                Target(self.judged[i].target.costs[k], np.array([0], np.int32))
                for i, k in zip(train, kept, strict=True)
            ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LatticeRanker(C=C, **settings, **SMOOTH)  # type: ignore[arg-type]
            model.fit(taught, y, pairing=str(method.get("pairing", "all")))
        return model.predict([X[i] for i in test])

    def extremes(self, i: int, worst: int) -> list[int]:
        """The good hypotheses of a list, then as many of the worst."""
        (costs, _), good = self.judged[i]
        first = [int(path[0]) for path in good]
        texts = {self.lattices[i].words[e] for e in first}
        others = [e for e in np.argsort(-costs, kind="stable").tolist() if self.lattices[i].words[e] not in texts]
        return first + others[:worst]


def parts(items: Sequence[int], n: int, seed: int) -> list[list[int]]:
    return [sorted(part.tolist()) for part in np.array_split(np.random.default_rng(seed).permutation(items), n)]


def score(counts: np.ndarray) -> float:
    return bleu_of(counts).score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--method", action="append", choices=[*METHODS], help="only this one; may be given again")
    parser.add_argument("--inner", type=int, default=3, help="folds inside, by which C is chosen")
    options = parser.parse_args()
    print(machine_line())
    data = Lists()
    everything = list(range(len(data.lattices)))
    distinct = np.mean([len(set(x.words)) for x in data.lattices])
    print(f"{len(everything)} lists, {distinct:.0f} distinct hypotheses each on average\n")
    first, oracle = data.counts(data.first, everything), data.counts(data.oracle, everything)
    print(f"{'':26}  BLEU  length        p  seconds  C of each fold")
    for name, counts in (("Moses score", first), ("best of each list", oracle)):
        total = counts.sum(axis=0)
        print(f"{name:26} {score(total):5.2f} {total[0] / total[1]:7.3f}")
    for name in options.method or METHODS:
        method = METHODS[name]
        begin, found, chosen = time.process_time(), np.zeros_like(first), []
        for test in parts(everything, options.folds, 0):
            train = [i for i in everything if i not in test]
            inner = parts(train, options.inner, 1)
            values = []
            for C in GRID:
                rows = [
                    data.counts(data.ranked(method, C, [i for i in train if i not in held], held), held)
                    for held in inner
                ]
                values.append(score(np.concatenate(rows).sum(axis=0)))
            chosen.append(GRID[int(np.argmax(values))])
            found[test] = data.counts(data.ranked(method, chosen[-1], train, test), test)
        total, p = found.sum(axis=0), paired_randomisation(first, found, score, 2000)
        seconds = time.process_time() - begin
        print(
            f"{name:26} {score(total):5.2f} {total[0] / total[1]:7.3f} {p:8.3f} {seconds:8.0f}  "
            f"{', '.join(f'{C:g}' for C in chosen)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
