"""Table 1 of Choi, Meshi and Srebro 2016: three searches for the most violating set, on identical training states.

    MAXMARGIN_DATA=... make experiment-labels-searches
    python experiments/labels/table_1.py --quick

A cutting-plane fit with a slack for each of N = 160 examples gives the states: the weights of every iteration, and for
each example the sets found in the iterations before. Every search is asked at every state. As in the paper, a search
succeeds when it finds a set whose violation is above the slack of those found before by more than a tolerance, here 1 %
of the largest loss at zero weights. All searches end when their bound proves that there is no such set, and when they
have one, within that tolerance or 0.1 % of the best; the paper's angular search has only the last rule, which is a row
of its own here. Angular search knows the sets found before.

Yeast: all 2^14 sets are points, so every oracle is exact, and so is the answer that the searches are compared with.
RCV1 has 50 labels; there the paper's setting is used, the linear relaxation with fractional outputs. The oracle of a
plain query is one cut (roof duality), that of an angle HiGHS with two more rows, and the exact answer is the relaxed
optimum, on the last edge of the hull. The searches are in plain Python, so their times only compare with each other;
"ours" is the compiled oracle that training uses (Yeast: all sets; RCV1: relaxation and branching over sets).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from common import AllSets, Data, Relaxed, first_weight, parser, rcv1, searched, yeast

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.models.label_set import LabelSet, LabelSetBound
from maxmargin.oracles.oracle import ModelOracle

SEARCHES = ("angular", "bisecting", "Sarawagi", "angular, 0.999")
PAPER = {
    "Yeast": {"angular": (22.4, 3.8, 4.7), "bisecting": (16.5, 10.3, 3.6), "Sarawagi": (16.4, 43.2, 18.5)},
    "RCV1": {"angular": (25.6, 4.8, 4.4), "bisecting": (18.2, 12.7, 5.2), "Sarawagi": (18.0, 49.0, 20.9)},
}  # success in per cent, queries, milliseconds
N = 160
TOLERANCE = 0.01
SAME = 1e-6  # relative


class Weights(Callback):
    """Keeps the weights of every certificate."""

    def on_begin(self, run: object) -> None:
        self.kept: list[np.ndarray] = []

    def on_certificate(self, run: object) -> None:
        self.kept.append(run.weights().copy())


def states(data: Data, C: float, iterations: int) -> tuple[LabelSetBound, list[np.ndarray]]:
    """The bound model, and the weights of each iteration of a cutting-plane fit with slack rescaling."""
    watch = Weights()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.MultilabelClassifier(
            graph="full", rescaling="slack", C=C, solver=mm.CuttingPlane(slack="n"), tol=1e-3, max_passes=iterations,
            callbacks=[watch],
        ).fit(data.X, data.Y)  # fmt: skip
    return LabelSet(graph="full").bind(data.X, data.Y), watch.kept[:iterations]


@dataclass
class Tally:
    """What a search has done over all states."""

    successes: int = 0
    queries: int = 0
    seconds: float = 0.0
    short: int = 0  # states at which it found less than the optimum, by more than the stopping rule allows


def aimed(points: AllSets | Relaxed, data: Data, bound: LabelSetBound, w: np.ndarray) -> Iterator[int]:
    """Aim the points at each example in turn."""
    groups = bound.layout.groups(w)
    scores = data.X @ groups["coef"] + groups["intercept"]
    for i in range(len(data.X)):
        points.aim(scores[i], groups["edge"], data.Y[i])
        yield i


def compare(data: Data, C: float, iterations: int) -> tuple[dict[str, Tally], int, int]:
    """Tallies by search, the number of states, and the number of those where some set violates by enough."""
    bound, kept = states(data, C, iterations)
    M, edges = data.Y.shape[1], bound.layout.edges
    points = AllSets(M, edges) if M <= 16 else Relaxed(M, edges)
    tolerance = TOLERANCE * M  # at zero weights the set of all mistakes violates by M
    tallies = {name: Tally() for name in (*SEARCHES, "ours")}
    found: list[list[object]] = [[] for _ in data.X]
    count = there = 0
    for w in kept:
        begin = time.process_time()
        ours = ModelOracle(bound, "slack").planes(w, np.arange(len(data.X)))
        tallies["ours"].seconds += time.process_time() - begin
        for i in aimed(points, data, bound, w):
            known = tuple(points.again(output) for output in found[i])
            slack = max((max(reply.h, 0.0) * reply.g for reply in known), default=0.0)
            best, start = points.best(), first_weight(M, points.highest())
            count += 1
            there += best > slack + tolerance
            for name in SEARCHES:
                begin = time.process_time()
                result = searched(name, points, start, slack, tolerance, known)
                tally = tallies[name]
                tally.seconds += time.process_time() - begin
                tally.successes += result.value > slack + tolerance
                tally.queries += result.queries
                tally.short += best > max(result.value * 1.001, result.value + tolerance, slack + tolerance) + SAME
                assert result.bound >= best * (1.0 - SAME), f"{name} bounds {best} by {result.bound}"
                if name == "angular" and result.output is not None:
                    found[i].append(result.output)
            if isinstance(points, AllSets):
                assert abs(ours.bound[i] - best) <= SAME * max(best, 1.0)
            tallies["ours"].successes += ours.bound[i] > slack + tolerance
    return tallies, count, there


def show(name: str, tallies: dict[str, Tally], count: int, there: int) -> None:
    print(f"\n{name}: {count} states; in {100 * there / count:.1f} % there is something to find")
    print("search            success %  (paper)  queries  (paper)      ms  (paper)  below the optimum %")
    for search, tally in tallies.items():
        paper = PAPER[name].get(search)
        figures = (100 * tally.successes / count, tally.queries / count, 1e3 * tally.seconds / count)
        shown = [
            f"{mine:9.1f}" + (f"  ({theirs:5.1f})" if paper else " " * 9)
            for mine, theirs in zip(figures, paper or figures, strict=True)
        ]
        print(f"{search:17}" + "".join(shown) + f"{100 * tally.short / count:12.1f}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", nargs="+", choices=("yeast", "rcv1"), default=["yeast", "rcv1"])
    options.add_argument("--C", type=float, default=0.1)
    options.add_argument("--iterations", type=int, default=20)
    chosen = options.parse_args(arguments)
    for name in chosen.data:
        data = (yeast() if name == "yeast" else rcv1()).first(20 if chosen.quick else N)
        tallies, count, there = compare(data, chosen.C, 4 if chosen.quick else chosen.iterations)
        show(data.name, tallies, count, there)


if __name__ == "__main__":
    main()
