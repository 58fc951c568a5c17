"""Figure 5.1 of Mancev 2015: hinge against ramp on CoNLL-2000 with 0, 5, 10, 15 and 20 % outliers.

    MAXMARGIN_DATA=... python experiments/ramp/figure_5_1.py            # five seeds, both C
    python experiments/ramp/figure_5_1.py --sentences 1000 --seeds 2    # a quick look

An outlier is a training sentence with every token relabelled uniformly at random. Hinge and ramp are fitted to the same
corrupted labels, so differences are paired by seed. C is the published one, or tuned on corrupted held-out sentences
(``--tune``). Writes outputs/ramp_outliers.png.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from common import chunking, corrupt, fit, interval

from maxmargin.metrics import span_f1, token_accuracy

SHARES = (0.0, 0.05, 0.10, 0.15, 0.20)
METHODS = ("SDM", "Pegasos-WP")
LOSSES = {"hinge": {}, "ramp": {}, "ramp, early": {"early": True}}
GRID = (0.02, 0.05, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, help="of the training data; default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--C", type=float, default=0.1, help="the published C_d")
    parser.add_argument("--tune", action="store_true", help="choose C on corrupted held-out sentences instead")
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    parser.add_argument("--output", type=Path, default=Path("outputs/ramp_outliers.png"))
    options = parser.parse_args()
    corpus = chunking(options.sentences)
    print(f"{corpus.n} training sentences; hinge 20 epochs, ramp 4 rounds of 5 epochs; test token accuracy and span F1")
    scores: dict[tuple, np.ndarray] = {}
    for method in METHODS:
        for share in options.shares:
            table = np.zeros((options.seeds, len(LOSSES), 2))
            begin = time.process_time()
            for seed in range(options.seeds):
                y = corrupt(corpus.y, corpus.labels, share, seed)
                for k, (loss, extra) in enumerate(LOSSES.items()):
                    kind = loss.split(",")[0]
                    C = tune(corpus, y, method, kind, extra, seed) if options.tune else options.C
                    found = fit(
                        corpus, y, method, kind, C, epochs=20 if kind == "hinge" else 5, seed=seed, **extra
                    ).predict(corpus.X_test)
                    table[seed, k] = 100 * token_accuracy(corpus.y_test, found), 100 * span_f1(corpus.y_test, found)
            scores[method, share] = table
            text = "   ".join(f"{loss} {a:.2f} ({f:.2f})" for loss, (a, f) in zip(LOSSES, table.mean(0), strict=True))
            for k, loss in enumerate(LOSSES):
                if k:
                    mean, half = interval(table[:, k, 0] - table[:, 0, 0])
                    text += f"   {loss} - hinge {mean:+.2f} +- {half:.2f}"
            print(f"{method:11} {100 * share:3.0f} %  {text}   [{time.process_time() - begin:.0f} s]", flush=True)
    draw(scores, options.shares, options.output)


def tune(corpus, y: list, method: str, loss: str, extra: dict, seed: int) -> float:
    """The C of best accuracy on a corrupted fifth of the training sentences."""
    held = np.arange(corpus.n) % 5 == seed % 5
    X, inside = corpus.X[~held], [labels for labels, h in zip(y, held, strict=True) if not h]
    X_held, outside = corpus.X[held], [labels for labels, h in zip(y, held, strict=True) if h]
    epochs = 20 if loss == "hinge" else 5
    scores = [
        token_accuracy(outside, fit(corpus, inside, method, loss, C, epochs=epochs, X=X, **extra).predict(X_held))
        for C in GRID
    ]
    return GRID[int(np.argmax(scores))]


def draw(scores: dict, shares, path: Path) -> None:
    """Accuracy against the share of outliers, one panel a method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(METHODS), figsize=(10, 4), sharey=True)
    for panel, method in zip(panels, METHODS, strict=True):
        for k, loss in enumerate(LOSSES):
            means = [scores[method, share][:, k, 0].mean() for share in shares]
            panel.plot([100 * share for share in shares], means, marker="o", label=loss)
        panel.set(title=method, xlabel="outliers (% of sentences)", ylabel="test token accuracy (%)")
        panel.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
