"""Table 5.1 of Mancev 2015: hinge and ramp, three methods, two corpora, parameters by cross-validation.

    MAXMARGIN_DATA=... make experiment-ramp-table          # half an hour of processor time
    python experiments/ramp/table_5_1.py --quick           # a minute
    python experiments/ramp/table_5_1.py --full            # the published grid, five folds, all of Brown: days

The published "F-measure" of chunking, near 96.08, agrees with token accuracy, not with the F1 of spans; both are shown.
The smaller grid has three strengths around the published ones, hinge {10, 20, 30} passes, ramp T in {5, 10} with all
rounds up to 30 passes, three of five folds, and a twentieth of the documents of Brown. The published grid has hinge
{10, 20, 30, 50, 100} passes (200 for tagging) and T in {5, 10, 15, 20} with all rounds up to 100 passes (200). The
paper does not give its strengths, so we try 1, 2 and 5 times the powers of ten. One run yields the scores of all its
passes and rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from common import TABLE_5_1, Corpus, Setting, chunking, fit, parser, scores, tagging

FOLDS = 5


@dataclass(frozen=True)
class Grid:
    """What cross-validation tries, and on how many of the five folds it does so."""

    C: Sequence[float]
    lam: Sequence[float]
    passes: Sequence[int]
    round_passes: Sequence[int]
    folds: int = FOLDS


def grid(corpus: Corpus, options: argparse.Namespace) -> Grid:
    """The grid of the options; see above."""
    if options.quick:
        return Grid((0.1,), (2e-3,), (5, 10), (5,), 1)
    if not options.full:
        lam = (5e-4, 1e-3, 2e-3) if corpus.name == "chunking" else (1e-3, 2e-3, 5e-3)
        return Grid((0.05, 0.1, 0.2), lam, (10, 20, 30), (5, 10), 3)
    passes = (10, 20, 30, 50, 100) if corpus.name == "chunking" else (10, 20, 30, 50, 100, 200)
    C = [m * 10.0**e for e in (-3, -2, -1) for m in (1, 2, 5)]
    return Grid(C, [m * 10.0**e for e in (-5, -4, -3, -2) for m in (1, 2, 5)], passes, (5, 10, 15, 20))


def choose(method: str, loss: str, corpus: Corpus, tried: Grid) -> tuple[Setting, float]:
    """The setting of best held-out token accuracy, and that accuracy."""
    best: tuple[Setting, float] | None = None
    most = max(tried.passes)
    folds = [corpus.fold(k, FOLDS) for k in range(tried.folds)]
    for strength in tried.lam if method.startswith("Pegasos") else tried.C:
        for passes in (most,) if loss == "hinge" else tried.round_passes:
            longest = Setting(method, loss, strength, passes, 1 if loss == "hinge" else most // passes)
            every = int(np.gcd.reduce(tried.passes)) if loss == "hinge" else passes
            held: dict[int, list[float]] = {}
            for fold in folds:
                for at, score in _path(fit(longest, fold, every=every, watch=True).points, loss).items():
                    held.setdefault(at, []).append(score)
            for at, found in held.items():
                if (loss == "hinge" and at not in tried.passes) or len(found) < len(folds):
                    continue
                shape = {"passes": at} if loss == "hinge" else {"passes": passes, "rounds": at}
                setting = Setting(method, loss, strength, **shape)
                if best is None or np.mean(found) > best[1]:
                    best = setting, float(np.mean(found))
    assert best is not None
    return best


def _path(points: list, loss: str) -> dict[int, float]:
    """Scores by passes (hinge), or by rounds, each at its end (ramp)."""
    if loss == "hinge":
        return {point.passes: point.score for point in points}
    ends: dict[int, float] = {}
    for point in points:
        if point.rounds:
            ends.setdefault(point.rounds, point.score)
    return ends


def table(corpus: Corpus, options: argparse.Namespace) -> None:
    """Print the table of one corpus as its rows arrive."""
    tried = grid(corpus, options)
    print(
        f"\n{corpus.name}: {len(corpus)} + {len(corpus.y_test)} sentences, {len(corpus.labels)} labels; rounds x passes"
    )
    print(f"{'':18}{'chosen':>22}{'held out':>10}{'test':>9}{'span F1':>9}{'seconds':>9}{'paper':>9}  with")
    results: dict[tuple[str, str], float] = {}
    for (method, loss), paper in TABLE_5_1[corpus.name].items():
        setting, held = choose(method, loss, corpus, tried)
        fitted = fit(setting, corpus)
        accuracy, f1 = scores(fitted.tagger, corpus)
        results[method, loss] = accuracy
        shown = f"{f1:9.2f}" if corpus.spans else f"{'-':>9}"
        print(
            f"{method:12}{loss:6}{_text(setting):>22}{held:10.3f}{accuracy:9.3f}{shown}{fitted.seconds:9.1f}"
            f"{paper.score:9.3f}  {_text(Setting(method, loss, paper.strength, paper.passes, paper.rounds))}",
            flush=True,
        )
    for method in dict.fromkeys(method for method, _ in results):
        ours = results[method, "ramp"] - results[method, "hinge"]
        rows = TABLE_5_1[corpus.name]
        theirs = rows[method, "ramp"].score - rows[method, "hinge"].score
        print(f"{method}: ramp - hinge {ours:+.3f} points of test accuracy; in the paper {theirs:+.3f}")


def _text(setting: Setting) -> str:
    name = "lambda" if setting.method.startswith("Pegasos") else "C"
    rounds = f"{setting.rounds} x " if setting.loss == "ramp" else ""
    return f"{name} {setting.strength:g}, {rounds}{setting.passes}"


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--full", action="store_true", help="the published grid, five folds, all of Brown")
    options.add_argument("--share", type=float, help="share of the documents of Brown")
    options.add_argument("--corpora", nargs="+", choices=TABLE_5_1, default=list(TABLE_5_1))
    chosen = options.parse_args(arguments)
    sentences = 500 if chosen.quick and chosen.sentences is None else chosen.sentences
    share = chosen.share or (1.0 if chosen.full else 0.05)
    for name in chosen.corpora:
        table(chunking(sentences) if name == "chunking" else tagging(share, sentences), chosen)


if __name__ == "__main__":
    main()
