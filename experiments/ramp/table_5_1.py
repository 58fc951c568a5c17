"""Table 5.1 of Mancev 2015: six methods on CoNLL-2000 and Brown, hinge against ramp, beside the published figures.

    MAXMARGIN_DATA=... python experiments/ramp/table_5_1.py                # a tenth of Brown, published parameters
    python experiments/ramp/table_5_1.py --cv                              # C by 5-fold cross-validation, small grid
    python experiments/ramp/table_5_1.py --cv --full --share 1             # the published grid, all of Brown: hours

The published "F-measure" of chunking (near 96.08) is what token accuracy gives, not the F1 of spans: both are shown.
Epochs are the published ones but at most 30 (``--full``: as published): accuracy no longer moves behind that.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import Corpus, brown, chunking, fit

from maxmargin.metrics import span_f1, token_accuracy

# method, loss, C (None: from lambda), lambda, (rounds, epochs), published score
CHUNKING = [
    ("SDM", "hinge", 0.1, None, (0, 100), 96.084),
    ("SDM", "ramp", 0.1, None, (10, 4), 96.076),
    ("Pegasos", "hinge", None, 2e-3, (0, 30), 96.041),
    ("Pegasos", "ramp", None, 2e-3, (5, 7), 96.072),
    ("Pegasos-WP", "hinge", None, 1e-3, (0, 100), 96.082),
    ("Pegasos-WP", "ramp", None, 1e-3, (10, 10), 96.086),
]
TAGGING = [
    ("SDM", "hinge", 0.1, None, (0, 200), 95.292),
    ("SDM", "ramp", 0.1, None, (20, 4), 95.216),
    ("Pegasos", "hinge", None, 1e-4, (0, 200), 95.065),
    ("Pegasos", "ramp", None, 1e-4, (20, 10), 95.079),
    ("Pegasos-WP", "hinge", None, 2e-3, (0, 200), 95.320),
    ("Pegasos-WP", "ramp", None, 2e-3, (20, 10), 95.319),
]
SMALL_GRID = (0.03, 0.1, 0.3)
FULL_GRID = tuple(10.0**k * m for k in range(-4, 1) for m in (1, 2, 5))
MOST_PASSES = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.1, help="of the documents of Brown; 0 leaves it out")
    parser.add_argument("--sentences", type=int, help="of CoNLL-2000; default: all")
    parser.add_argument("--cv", action="store_true", help="choose C by 5-fold cross-validation")
    parser.add_argument("--full", action="store_true", help="the published grid and epochs")
    options = parser.parse_args()
    tasks = [(chunking(options.sentences), CHUNKING)]
    if options.share > 0:
        tasks.append((brown(options.share), TAGGING))
    for corpus, rows in tasks:
        print(f"\n{corpus.name}: {corpus.n} training sentences, {len(corpus.labels)} labels")
        print("method      loss          C  rounds  epochs  accuracy  span F1  published")
        for method, loss, C, regularisation, (rounds, epochs), published in rows:
            C = C or 1 / (regularisation * corpus.n)
            if not options.full:
                epochs = min(epochs, MOST_PASSES if loss == "hinge" else max(1, MOST_PASSES // rounds))
            if options.cv:
                C = choose(corpus, method, loss, rounds, epochs, FULL_GRID if options.full else SMALL_GRID)
            begin = time.process_time()
            fitted = fit(corpus, corpus.y, method, loss, C, rounds=rounds, epochs=epochs)
            seconds = time.process_time() - begin
            found = fitted.predict(corpus.X_test)
            spans = f"{100 * span_f1(corpus.y_test, found):9.2f}" if corpus.name == "CoNLL-2000" else f"{'-':>9}"
            print(
                f"{method:12}{loss:7}{C:8.3g}{rounds or '-':>8}{epochs:8d}"
                f"{100 * token_accuracy(corpus.y_test, found):10.3f}{spans}{published:11.3f}   [{seconds:.0f} s]",
                flush=True,
            )


def choose(corpus: Corpus, method: str, loss: str, rounds: int, epochs: int, grid: tuple[float, ...]) -> float:
    """C by five-fold cross-validation of token accuracy."""
    scores = np.zeros(len(grid))
    for fold in range(5):
        held = np.arange(corpus.n) % 5 == fold
        inside = [labels for labels, h in zip(corpus.y, held, strict=True) if not h]
        outside = [labels for labels, h in zip(corpus.y, held, strict=True) if h]
        X, X_held = corpus.X[~held], corpus.X[held]
        for k, C in enumerate(grid):
            fitted = fit(corpus, inside, method, loss, C, rounds=rounds, epochs=epochs, X=X)
            scores[k] += token_accuracy(outside, fitted.predict(X_held))
    return grid[int(np.argmax(scores))]


if __name__ == "__main__":
    main()
