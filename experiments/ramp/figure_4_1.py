"""Figure 4.1 of Mancev 2015: score against passes over CoNLL-2000, for the six methods at their published parameters.

    MAXMARGIN_DATA=... python experiments/ramp/figure_4_1.py [--sentences 1000]

Writes outputs/ramp_passes.png and prints the numbers. Weights are averaged, as published.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from common import chunking, fit
from table_5_1 import CHUNKING

from maxmargin.callbacks.base import Callback


class Watch(Callback):
    """Test accuracy of the weights at every certificate."""

    def __init__(self, corpus: Any) -> None:
        self.corpus, self.points = corpus, []

    def on_begin(self, run: Any) -> None:
        pass

    def on_certificate(self, run: Any) -> None:
        self.points.append(
            (run.passes, 100 * run.evaluate(run.weights().copy(), self.corpus.X_test, self.corpus.y_test))
        )

    def on_end(self, run: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path("outputs/ramp_passes.png"))
    options = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    corpus = chunking(options.sentences)
    figure, panel = plt.subplots(figsize=(7, 5))
    for method, loss, C, _, _, _ in CHUNKING:
        watch = Watch(corpus)
        extra = {"rounds": max(1, options.passes // 5)} if loss == "ramp" else {}
        fit(
            corpus, corpus.y, method, loss, C or 1 / (1e-3 * corpus.n), epochs=5 if loss == "ramp" else options.passes,
            callbacks=[watch], every=5.0, **extra,
        )  # fmt: skip
        print(f"{method:11} {loss:6} " + " ".join(f"{p:.0f}:{a:.2f}" for p, a in watch.points), flush=True)
        panel.plot(*zip(*watch.points, strict=True), marker=".", label=f"{method} {loss}")
    panel.set(xlabel="passes (certificates included)", ylabel="test token accuracy (%)")
    panel.legend()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=120)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
