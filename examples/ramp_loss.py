"""Wrong labels: why they harm the hinge, and when they harm the ramp less.

The hinge loss of an example grows without bound as its label gets less likely, so a few wrong labels can pull all
weights in their direction. A ramp is the hinge minus a second maximum: it saturates at twice the cost, and beyond that
point an example has no pull at all. The picture has three panels: both losses against the margin (after figure 2.1 of
Mancev 2015); both along a line of weights for a label sequence, with the bounds of the ramp; and the difference in a
tagger's accuracy as more and more training sequences are labelled at random. The ramp is no free lunch: what it gains
where there are many wrong labels, it may lose where there are few, more so with a large C. The table shows both.

    python examples/ramp_loss.py            # no data files needed; writes outputs/ramp_loss.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import Chain, Multiclass, Ramp, SequenceTagger
from maxmargin.datasets import make_chains
from maxmargin.formulations.ramp import RampProblem
from maxmargin.metrics import token_accuracy

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
WEIGHTS = (0.1, 1.0)  # C: the larger, the more closely both losses follow the given labels
SHOWN = {"cost_diminished": "ramp, cost diminished", "best_output": "ramp, best output"}
COLOURS = {"hinge": "tab:blue", "ramp, cost diminished": "crimson", "ramp, best output": "tab:orange"}


def losses(problem: RampProblem, w: np.ndarray) -> dict[str, float]:
    """Hinge and ramp of the first example at ``w``, and the costs of the outputs at their two maxima."""
    above, below = (oracle.planes(w, np.arange(1)) for oracle in (problem.convex.oracle, problem.concave))
    hinge, concave = float(above.bound[0]), float(below.bound[0])
    return {"hinge": hinge, "ramp": hinge - concave, "high": 2 * float(above.b[0]), "low": -2 * float(below.b[0])}


def against_the_margin(ramp: str, margins: np.ndarray) -> list[dict[str, float]]:
    """One example, two labels: the margin is the score of its own label minus the score of the other."""
    problem = Ramp(ramp).problem(Multiclass(classes=[0, 1]).bind(np.ones((1, 1)), [0]))
    return [losses(problem, np.array([margin, 0.0])) for margin in margins]


def along_a_line(ramp: str, steps: np.ndarray) -> list[dict[str, float]]:
    """A sequence of five labels with one feature per token: ``steps`` are the weights of the true labels."""
    y = [0, 2, 1, 1, 0]
    problem = Ramp(ramp).problem(Chain(classes=[0, 1, 2]).bind([np.eye(5)], [y]))
    own = np.zeros(problem.convex.n_columns)
    own[: 5 * 3].reshape(5, 3)[np.arange(5), y] = 1.0
    others = np.random.default_rng(4).normal(size=len(own))
    return [losses(problem, t * own + others) for t in steps]


def relabelled(y: list[np.ndarray], share: float, n_labels: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The sequences, a share of them with every label drawn at random."""
    wrong = set(rng.permutation(len(y))[: round(share * len(y))].tolist())
    return [rng.integers(0, n_labels, len(labels)) if i in wrong else labels for i, labels in enumerate(y)]


def survival(n: int, seeds: range, C: float) -> dict[str, np.ndarray]:
    """Share of test labels read right, (seeds, shares) for each loss; both learn from the same labels."""
    losses: dict[str, dict[str, Any]] = {"hinge": {}, SHOWN["cost_diminished"]: {"loss": Ramp(start="hinge")}}
    right: dict[str, list[list[float]]] = {name: [] for name in losses}
    for seed in seeds:
        data = make_chains(n + 400, n_labels=4, n_features=10, lengths=(3, 8), distance=2.0, random_state=seed)
        rng = np.random.default_rng(seed)
        noisy = [relabelled(data.y[:n], share, 4, rng) for share in SHARES]
        for name, options in losses.items():
            taggers = [SequenceTagger(C=C, tol=1e-2, **options).fit(data.X[:n], labels) for labels in noisy]
            right[name].append([token_accuracy(data.y[n:], tagger.predict(data.X[n:])) for tagger in taggers])
    return {name: np.array(values) for name, values in right.items()}


def difference(by_loss: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ramp minus hinge in points, and its standard error; paired, because draws differ more than losses do."""
    hinge, ramp = by_loss.values()
    points = 100 * (ramp - hinge)
    return points.mean(axis=0), points.std(axis=0, ddof=1) / np.sqrt(len(points))


def draw(right: dict[float, dict[str, np.ndarray]], path: Path) -> None:
    """The three panels."""
    import matplotlib

    matplotlib.use("Agg")  # a file, not a window
    from matplotlib import pyplot

    figure, (left, middle, last) = pyplot.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    margins = np.linspace(-3, 3, 241)
    for ramp, name in SHOWN.items():
        found = against_the_margin(ramp, margins)
        if ramp == "cost_diminished":
            left.plot(margins, [f["hinge"] for f in found], color=COLOURS["hinge"], label="hinge")
            left.plot(margins, [f["ramp"] - f["hinge"] for f in found], "--", color="0.6", label="what is subtracted")
        left.plot(margins, [f["ramp"] for f in found], color=COLOURS[name], label=name)
    left.set(xlabel="margin", ylabel="loss", ylim=(-2.2, 4.2), title="Two labels")

    steps = np.linspace(-6.0, 6.0, 601)
    found = along_a_line("cost_diminished", steps)
    low, high = ([f[key] for f in found] for key in ("low", "high"))
    middle.fill_between(steps, low, high, color="0.85", label="2 cost(y-) to 2 cost(y+)", step="mid")
    middle.plot(steps, [f["hinge"] for f in found], color=COLOURS["hinge"], label="hinge")
    middle.plot(steps, [f["ramp"] for f in found], color=COLOURS[SHOWN["cost_diminished"]], label="ramp")
    middle.set(xlabel="weight of the true labels")
    middle.set_title("A sequence of five labels")

    for (C, by_loss), colour in zip(right.items(), ("crimson", "tab:purple"), strict=True):
        mean, error = difference(by_loss)
        last.errorbar(100 * np.array(SHARES), mean, error, color=colour, label=f"C = {C:g}", marker="o", capsize=3)
    last.axhline(0.0, color="0.4", linewidth=1)
    last.set(xlabel="% of training sequences labelled at random", ylabel="points of accuracy, ramp minus hinge")
    last.set_title("Gain and loss (mean and standard error of paired fits)")
    for ax in (left, middle, last):
        ax.legend(fontsize="small")
        ax.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Wrong labels under the hinge and the ramp loss.")
    parser.add_argument("--output", type=Path, default=Path("outputs/ramp_loss.png"), help="where the picture goes")
    parser.add_argument("--quick", action="store_true", help="few sequences, two draws")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    n, seeds = (40, range(10, 12)) if options.quick else (150, range(10, 15))
    print(f"{n} training sequences, {len(seeds)} draws; right test labels, in %", flush=True)
    right = {C: survival(n, seeds, C) for C in WEIGHTS}
    print(f"\n{'labelled at random':34}" + "".join(f"{100 * share:7.0f} %" for share in SHARES))
    for C, by_loss in right.items():
        for name, values in by_loss.items():
            print(f"{f'{name}, C = {C:g}':34}" + "".join(f"{value:9.2f}" for value in 100 * values.mean(axis=0)))
        mean, error = difference(by_loss)
        print(f"{'ramp minus hinge':34}" + "".join(f"{value:+9.2f}" for value in mean))
        print(f"{'standard error':34}" + "".join(f"{value:9.2f}" for value in error))
    draw(right, options.output)
    print(f"\nWhole demo {time.perf_counter() - begin:.1f} s.\nPicture: {options.output.resolve()}")


if __name__ == "__main__":
    main()
