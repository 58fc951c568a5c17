"""Learn to read handwritten words made of digits: letter by letter, and as whole words.

The words follow a grammar that the readers are not told: only three digits may follow each digit. The images are
blurred and noisy, so single letters are often ambiguous. A multiclass classifier reads every letter on its own. A
sequence tagger learns from the same pixels *and* from which digit follows which, and reads the word as a whole.

    python examples/digit_words.py            # no data files needed; writes outputs/digit_words.png
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import MulticlassClassifier, Progress, SequenceTagger
from maxmargin.datasets import DigitWords, make_digit_words
from maxmargin.kernel import compile_seconds
from maxmargin.metrics import sequence_accuracy, token_accuracy
from maxmargin.reports import time_split
from maxmargin.reports.convergence import plot_convergence

Words = list[np.ndarray]
Fit = Callable[..., Any]
Read = Callable[[Any, Words], Words]

GRID = (0.03, 0.1, 0.3, 1.0)
QUICK_GRID = (0.1, 1.0)
SHOWN, SHOWN_LENGTH = 6, 7  # words in the picture, and their least length


def fit_alone(X: Words, y: Words, **options: Any) -> MulticlassClassifier:
    """Every image is one example."""
    return MulticlassClassifier(**options).fit(np.vstack(X), np.concatenate(y))


def read_alone(classifier: MulticlassClassifier, X: Words) -> Words:
    cuts = np.cumsum([len(x) for x in X])[:-1]
    return np.split(classifier.predict(np.vstack(X)), cuts)


def fit_words(X: Words, y: Words, **options: Any) -> SequenceTagger:
    """Every word is one example."""
    return SequenceTagger(**options).fit(X, y)


def read_words(tagger: SequenceTagger, X: Words) -> Words:
    return [np.array(word) for word in tagger.predict(X)]


def choose_C(fit: Fit, read: Read, X: Words, y: Words, grid: tuple[float, ...]) -> float:
    """The C of the grid that, trained on the first three quarters, reads most letters of the last quarter right."""
    cut = len(X) - len(X) // 4
    right = {C: token_accuracy(y[cut:], read(fit(X[:cut], y[:cut], C=C), X[cut:])) for C in grid}
    return max(right, key=right.__getitem__)


def draw(data: DigitWords, histories: dict[str, Any], readings: dict[str, Words], tol: float, path: Path) -> None:
    """Left: how the gap closed. Right: the first long test words and how they were read."""
    import matplotlib

    matplotlib.use("Agg")  # a file, not a window
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(14, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2.2), wspace=0.03)

    ax = left.subplots()
    plot_convergence(histories, ax, against=["pass"], tol=tol)
    ax.set_title("Training: proven distance from the optimum", fontsize="medium")

    shares = [
        f"{name}: {100 * token_accuracy(data.y_test, reading):.0f} % of letters, "
        f"{100 * sequence_accuracy(data.y_test, reading):.0f} % of words right"
        for name, reading in readings.items()
    ]
    right.suptitle(
        f"The first test words of {SHOWN_LENGTH} letters or more; errors in red\n" + "   ·   ".join(shares),
        fontsize="medium",
    )
    longest = max(len(word) for word in data.y_test)
    chosen = [i for i, word in enumerate(data.y_test) if len(word) >= SHOWN_LENGTH]
    panels = right.subplots(-(-SHOWN // 2), 2).ravel()
    for ax in panels:
        ax.axis("off")
    for i, ax in zip(chosen, panels, strict=False):
        truth = data.y_test[i]
        ax.set(xlim=(-2.2, longest + 0.2), ylim=(2.5, -1.0), aspect="equal")
        for t, pixels in enumerate(data.X_test[i]):
            box = (t + 0.05, t + 0.95, -0.05, -0.95)  # left, right, bottom, top
            ax.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1, extent=box)
        for line, (name, word) in enumerate({"truth": truth, **{k: r[i] for k, r in readings.items()}}.items()):
            height = 0.4 + 0.8 * line
            ax.text(-0.25, height, name, ha="right", va="center", fontsize=9, color="0.35")
            for t, digit in enumerate(word):
                wrong = digit != truth[t]
                style = {"color": "crimson", "weight": "bold"} if wrong else {"color": "0.5" if line == 0 else "black"}
                ax.text(t + 0.5, height, str(digit), ha="center", va="center", fontsize=12, **style)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to read handwritten words made of digits.")
    parser.add_argument("--quick", action="store_true", help="few words and a coarse tolerance")
    parser.add_argument("--output", type=Path, default=Path("outputs/digit_words.png"), help="where the picture goes")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    tol, grid = (1e-2, QUICK_GRID) if options.quick else (1e-3, GRID)
    data = make_digit_words(60 if options.quick else 400, random_state=0)
    X, y = data.X_train, data.y_train
    letters = sum(map(len, y))
    print(f"{len(X)} training words with {letters} letters, {len(data.X_test)} test words.")
    print("The first run compiles the kernels (under a minute); later runs load them from disk.", flush=True)

    readers: dict[str, tuple[Fit, Read]] = {
        "letters alone": (fit_alone, read_alone),
        "whole words": (fit_words, read_words),
    }
    fitted: dict[str, Any] = {}
    readings: dict[str, Words] = {}
    for name, (fit, read) in readers.items():
        C = choose_C(fit, read, X, y, grid)
        print(f"\n{name}: C = {C:g}, chosen from {', '.join(f'{c:g}' for c in grid)} on held-out training words")
        fitted[name] = fit(X, y, C=C, tol=tol, callbacks=[Progress(sys.stdout)])
        readings[name] = read(fitted[name], data.X_test)

    print(f"\n{'right on test words':22}{'letters':>10}{'words':>10}")
    for name, reading in readings.items():
        by_letter, by_word = token_accuracy(data.y_test, reading), sequence_accuracy(data.y_test, reading)
        print(f"{name:22}{100 * by_letter:8.1f} %{100 * by_word:8.1f} %")
    tagger = fitted["whole words"]
    print(f"\nCertificate (whole words): {tagger.certificate_}")
    print(f"Time of that fit: {time_split(tagger.seconds_)}")

    histories = {name: estimator.history_ for name, estimator in fitted.items()}
    draw(data, histories, readings, tol, options.output)
    print(f"\nWhole demo {time.perf_counter() - begin:.1f} s, including {compile_seconds():.1f} s for kernels.")
    print(f"Picture: {options.output.resolve()}")


if __name__ == "__main__":
    main()
