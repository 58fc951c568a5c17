"""Figure 4.1 of Mancev 2015: score against passes over the data, hinge and ramp, at the parameters of table 5.1.

    MAXMARGIN_DATA=... make experiment-ramp-passes         # ten minutes of processor time
    python experiments/ramp/figure_4_1.py --quick          # a minute

Passes of a ramp fit are counted over all its rounds. C of SDM and lambda of Pegasos are the published ones, so Pegasos
has a larger C on a share of Brown (``--share``) than on all of it. Writes ``ramp_passes.png``.
"""

from __future__ import annotations

import argparse
from typing import Any

from common import TABLE_5_1, Corpus, Point, Setting, chunking, fit, parser, picture, tagging

SHOWN = (5, 10, 20, 30, 40, 60, 80, 100, 150, 200)  # passes in the printed table


def curves(corpus: Corpus, passes: int, every: int) -> dict[tuple[str, str], list[Point]]:
    """Test scores during training, for every method and loss; printed as they arrive."""
    shown = [p for p in SHOWN if p <= passes]
    print(f"\n{corpus.name}: {len(corpus)} + {len(corpus.y_test)} sentences, {len(corpus.labels)} labels")
    print(f"{'test accuracy at pass':20}" + "".join(f"{p:8}" for p in shown) + f"{'paper':>9}{'seconds':>9}")
    found = {}
    for (method, loss), paper in TABLE_5_1[corpus.name].items():
        round_passes = passes if loss == "hinge" else min(paper.passes, passes)
        setting = Setting(method, loss, paper.strength, round_passes, passes // round_passes)
        fitted = fit(setting, corpus, every=every, watch=True)
        found[method, loss] = points = fitted.points
        row = "".join(_at(points, p) for p in shown)
        print(f"{method:13}{loss:7}{row}{paper.score:9.3f}{fitted.seconds:9.1f}", flush=True)
    return found


def _at(points: list[Point], passes: int) -> str:
    """The last score measured after at most this many passes."""
    before = [point.score for point in points if point.passes <= passes]
    return f"{before[-1]:8.3f}" if before else f"{'-':>8}"


def draw(results: dict[str, dict[tuple[str, str], list[Point]]], options: argparse.Namespace) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods = list(dict.fromkeys(method for method, _ in next(iter(results.values()))))
    size = (4.5 * len(results), 2.6 * len(methods))
    figure, panels = plt.subplots(
        len(methods), len(results), figsize=size, squeeze=False, sharex="col", sharey="col", layout="constrained"
    )
    for k, (name, found) in enumerate(results.items()):
        for method, panel in zip(methods, panels[:, k], strict=True):
            _panel(panel, method, found)
        panels[0, k].set_title(f"{name}: {methods[0]}")
        panels[-1, k].set_xlabel("passes")
    picture(figure, options.outputs / "ramp_passes.png")


def _panel(panel: Any, method: str, found: dict[tuple[str, str], list[Point]]) -> None:
    for loss, style in (("hinge", "-"), ("ramp", "--")):
        points = found[method, loss]
        panel.plot([p.passes for p in points], [p.score for p in points], style, marker=".", label=loss)
    panel.set(title=method, ylabel="test accuracy (%)")
    panel.grid(alpha=0.3)
    panel.legend()


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--share", type=float, default=0.05, help="share of the documents of Brown")
    options.add_argument("--passes", type=int, help="default: 60")
    options.add_argument("--every", type=int, default=5, help="passes between two scores")
    options.add_argument("--corpora", nargs="+", choices=TABLE_5_1, default=list(TABLE_5_1))
    chosen = options.parse_args(arguments)
    sentences = 500 if chosen.quick and chosen.sentences is None else chosen.sentences
    passes = chosen.passes or (20 if chosen.quick else 60)
    results = {}
    for name in chosen.corpora:
        corpus = chunking(sentences) if name == "chunking" else tagging(chosen.share, sentences)
        results[name] = curves(corpus, passes, chosen.every)
    draw(results, chosen)


if __name__ == "__main__":
    main()
