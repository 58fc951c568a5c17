"""How a ramp fit ends: seconds to an objective near the final one, and to the certificate that ends the fit.

    MAXMARGIN_DATA=... make bench-ramp-end
    python benchmarks/ramp_end.py --sentences 600          # a quick run
    python benchmarks/ramp_end.py --touching               # without ties, as in version 0.1, for comparison

UD English EWT, short sentences, parts of speech, a tenth of the sentences with every token relabelled at random, C =
0.1, default tolerance. Near the end, outputs of the concave part tie, and which of them the argmax names changes from
round to round. Counted as gap, these changes keep a fit from ending long after its objective has settled. Seconds are
processor seconds of one thread. Seconds per pass grow during a fit because the planes with weight do.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import maxmargin as mm
from machine import machine_line
from maxmargin.callbacks.base import Callback
from maxmargin.datasets.columns import read_columns
from maxmargin.datasets.folder import require
from maxmargin.features.choose import default_words
from maxmargin.solvers import outer

C, SHARE, LONGEST = 0.1, 0.1, 23
CLOSE = 1e-4


def sentences(n: int, seed: int) -> tuple[mm.Sequences, list[list[str]]]:
    """Features and labels of the first n short sentences, a share of them relabelled."""
    path = require("ud_english_ewt/train.tsv.xz", "lines 'form<TAB>UPOS<TAB>...', a blank line between sentences")
    chosen = [s for s in read_columns(path, separator="\t") if len(s) <= LONGEST][:n]
    y = [[token[1] for token in sentence] for sentence in chosen]
    rng, labels = np.random.default_rng(seed), sorted({label for labels in y for label in labels})
    for i in rng.permutation(len(y))[: round(SHARE * len(y))]:
        y[i] = [labels[k] for k in rng.integers(len(labels), size=len(y[i]))]
    return default_words().fit_transform([[token[0] for token in sentence] for sentence in chosen]), y


class Watch(Callback):
    """Processor seconds and planes at each certificate."""

    def on_begin(self, run: object) -> None:
        self.begin, self.seconds, self.planes = time.process_time(), [], []

    def on_certificate(self, run) -> None:  # type: ignore[no-untyped-def]
        self.seconds.append(time.process_time() - self.begin)
        self.planes.append(run.state.inner.working_set.n_planes)

    def on_end(self, run: object) -> None:
        pass


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sentences", type=int, default=4274)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--max-passes", type=float, default=400)
    options.add_argument("--touching", action="store_true", help="count ties as gap, as version 0.1 did")
    given = options.parse_args()
    print(machine_line())
    X, y = sentences(given.sentences, given.seed)
    print(f"{len(y)} sentences, {X.n_tokens} tokens, {SHARE:.0%} relabelled, C = {C}, tol = 1e-3")
    if given.touching:
        outer.TIES = 0.0
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.SequenceTagger(C=C, loss="ramp", max_passes=5).fit(X[np.arange(30)], y[:30])  # compiles
        tagger = mm.SequenceTagger(
            C=C, loss="ramp", random_state=0, max_passes=given.max_passes, callbacks=[watch]
        ).fit(X, y)
    objective, passes, gap = (np.array(tagger.history_[name]) for name in ("primal", "pass", "relative_gap"))
    print("   pass   seconds   objective   relative gap   planes")
    for row in zip(passes, watch.seconds, objective, gap, watch.planes, strict=True):
        print("{:7.0f} {:9.2f} {:11.3f} {:14.5f} {:8}".format(*row))
    close = int(np.flatnonzero(objective <= (1 + CLOSE) * objective[-1])[0])
    print(tagger.status_)
    print(
        f"within {CLOSE:g} of the final objective: pass {passes[close]:.0f}, {watch.seconds[close]:.1f} s; end: pass "
        f"{passes[-1]:.0f}, {watch.seconds[-1]:.1f} s; ratio {watch.seconds[-1] / watch.seconds[close]:.2f}"
    )


if __name__ == "__main__":
    main()
