"""How a ramp fit ends: seconds to an objective near the final one, and to the certificate that ends the fit.

    MAXMARGIN_DATA=... make bench-ramp-end                         # some minutes
    python benchmarks/ramp_end.py --corpus ewt --sentences 600     # a quick run
    python benchmarks/ramp_end.py --corpus ewt --sentences 4274    # about 50,000 tokens
    python benchmarks/ramp_end.py --tol 1e-4                       # fits that go on until the objective stands still
    python benchmarks/ramp_end.py --touching                       # without ties, as in version 0.1, for comparison

Parts of speech of three corpora (UD English EWT, GENIA, Brown), short sentences, a tenth of them with every token
relabelled at random, C = 0.1; the default tolerance unless told otherwise. Near the end, outputs of the concave part
tie, and which of them the argmax names changes from round to round. Counted as gap, these changes keep a fit from
ending long after its objective has settled. Whether the objective has settled at all is shown by going on to a tenth of
the tolerance: it says what the fit has left. Seconds are processor seconds of one thread.
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

C, SHARE, LONGEST, TOL = 0.1, 0.1, 23, 1e-3
CLOSE = 1e-4
FILES = {
    "ewt": ("ud_english_ewt/train.tsv.xz", "lines 'form<TAB>UPOS<TAB>...', a blank line between sentences"),
    "genia": ("genia_pos/train.tsv.xz", "lines 'word<TAB>tag', a blank line between sentences"),
    "brown": ("brown/brown.tsv.xz", "lines 'word<TAB>tag', a blank line between sentences"),
}


def sentences(corpus: str, n: int, seed: int) -> tuple[mm.Sequences, list[list[str]]]:
    """Features and labels of the first n short sentences, a share of them relabelled."""
    rows = read_columns(require(*FILES[corpus]), separator="\t", comments="#doc ")
    chosen = [s for s in rows if len(s) <= LONGEST][:n]
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


def fit(X: mm.Sequences, y: list[list[str]], tol: float, max_passes: float) -> tuple[mm.SequenceTagger, Watch]:
    watch = Watch()
    tagger = mm.SequenceTagger(C=C, loss="ramp", tol=tol, random_state=0, max_passes=max_passes, callbacks=[watch])
    return tagger.fit(X, y), watch


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", choices=[*FILES, "all"], default="all")
    options.add_argument("--sentences", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--tol", type=float, default=TOL, help="relative gap at which a fit ends")
    options.add_argument("--max-passes", type=float, default=400)
    options.add_argument("--touching", action="store_true", help="count ties as gap, as version 0.1 did")
    options.add_argument("--rows", action="store_true", help="print every certificate")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    print(machine_line())
    if given.touching:
        outer.TIES = 0.0
    compiled = False
    for corpus in FILES if given.corpus == "all" else [given.corpus]:
        X, y = sentences(corpus, given.sentences, given.seed)
        if not compiled:
            fit(X[np.arange(30)], y[:30], given.tol, 5)
            compiled = True
        labels = len({label for labels in y for label in labels})
        print(
            f"\n{corpus}: {len(y)} sentences, {X.n_tokens} tokens, {labels} labels, {SHARE:.0%} relabelled, C = {C}, "
            f"tol = {given.tol:g}"
        )
        tagger, watch = fit(X, y, given.tol, given.max_passes)
        objective, passes, gap = (np.array(tagger.history_[name]) for name in ("primal", "pass", "relative_gap"))
        if given.rows:
            print("   pass   seconds   objective   relative gap   planes")
            for row in zip(passes, watch.seconds, objective, gap, watch.planes, strict=True):
                print("{:7.0f} {:9.2f} {:11.3f} {:14.5f} {:8}".format(*row))
        close = int(np.flatnonzero(objective <= (1 + CLOSE) * objective[-1])[0])
        print(f"  {tagger.status_}")
        print(
            f"  within {CLOSE:g} of the final objective: pass {passes[close]:.0f}, {watch.seconds[close]:.1f} s; end: "
            f"pass {passes[-1]:.0f}, {watch.seconds[-1]:.1f} s; ratio {watch.seconds[-1] / watch.seconds[close]:.2f}",
            flush=True,
        )
        tagger.set_params(tol=0.1 * given.tol, warm_start=True, callbacks=None).fit(X, y)
        left, reached = objective[-1] / tagger.certificate_.primal - 1.0, tagger.certificate_.relative_gap
        print(f"  {tagger.n_iter_:.0f} passes more, to a gap of {reached:.1e}: {left:.1e} below it", flush=True)


if __name__ == "__main__":
    main()
