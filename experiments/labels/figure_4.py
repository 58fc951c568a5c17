"""Figure 4 and the plots of appendix I of Choi, Meshi and Srebro 2016 on Yeast: solvers and searches.

    MAXMARGIN_DATA=... make experiment-labels-convergence
    python experiments/labels/figure_4.py --quick

Slack rescaling with the full pairwise model, by Pegasos (stochastic gradients) and by cutting planes with a slack for
each example, each with several searches for the most violating set; and by our default solver with its exact oracle.
Every search asks the same oracle in plain Python (all sets as points), so seconds compare searches with each other, not
with ours. The objective of every point is the exact one, computed afterwards. Prints the last points and writes
``labels_convergence.png``: objective and test accuracy against seconds, queries and passes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import AllSets, Data, Searched, measures, parser, yeast

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.base import BoundModel
from maxmargin.models.label_set import LabelSet
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.solvers.driver import run

C, TOLERANCE = 0.1, 1e-3
RUNS = {
    "Pegasos, angular": (mm.Pegasos(project=False, averaging=None), "angular"),
    "Pegasos, bisecting": (mm.Pegasos(project=False, averaging=None), "bisecting"),
    "cutting planes, angular": (mm.CuttingPlane(slack="n"), "angular"),
    "cutting planes, bisecting": (mm.CuttingPlane(slack="n"), "bisecting"),
    "cutting planes, Sarawagi": (mm.CuttingPlane(slack="n"), "Sarawagi"),
    "ours": (mm.Auto(), None),
}
AXES = ("seconds", "queries", "passes")


@dataclass
class Watch(Callback):
    """Weights, seconds of processor time, queries and passes of every certificate."""

    points: list[tuple[np.ndarray, float, int, float]] = field(default_factory=list)

    def on_begin(self, run: Any) -> None:
        self.begin = time.process_time()

    def on_certificate(self, run: Any) -> None:
        spent = time.process_time() - self.begin
        self.points.append((run.weights().copy(), spent, run.state.argmax_calls, run.passes))


def curves(data: Data, passes: int) -> Iterator[tuple[str, np.ndarray, str]]:
    """For each run an array (points, 5): seconds, queries, passes, exact objective, test accuracy; and why it ended."""
    bound = LabelSet(graph="full").bind(data.X, data.Y)
    exact, all_sets = ModelOracle(bound, "slack"), AllSets(data.Y.shape[1], bound.layout.edges)
    test = LabelSet(graph="full").bind(data.X_test, layout=bound.layout)
    everyone = np.arange(len(data.X))
    for name, (solver, search) in RUNS.items():
        model: BoundModel = bound
        if search is not None:
            model = Searched.of(bound, data, search, all_sets, TOLERANCE)
        problem, watch = RescaledHinge(rescaling="slack").problem(model, C=C), Watch()
        ended = run(solver.engine(problem, 0), problem, tol=1e-4, max_passes=passes, callbacks=[watch]).status.code
        rows = []
        for w, *spent in watch.points:
            losses = exact.sum(w, everyone, np.ones(len(everyone))).losses
            accuracy = measures(data.Y_test, test.indicators(w).astype(int))[0]
            rows.append([*spent, 0.5 * w @ w + C * losses.sum(), accuracy])
        yield name, np.array(rows), ended


def draw(results: dict[str, np.ndarray], path: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, len(AXES), figsize=(13, 7), sharey="row", layout="constrained")
    least = min(rows[:, 3].min() for rows in results.values())
    for column, axis in enumerate(AXES):
        for name, rows in results.items():
            x = np.maximum(rows[:, column], 1e-3)
            panels[0, column].loglog(x, rows[:, 3] / least - 1.0 + 1e-6, marker=".", label=name)
            panels[1, column].semilogx(x, rows[:, 4], marker=".", label=name)
        panels[1, column].set_xlabel(axis)
    panels[0, 0].set_ylabel("objective over the least seen")
    panels[1, 0].set_ylabel("test accuracy")
    panels[0, 0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"picture: {path}")


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--examples", type=int, default=160)
    options.add_argument("--passes", type=int, default=40)
    chosen = options.parse_args(arguments)
    warnings.simplefilter("ignore")
    data = yeast().first(20 if chosen.quick else chosen.examples)
    results = {}
    print(f"{'':28}passes   queries a call  seconds  objective  accuracy  ended")
    for name, rows, ended in curves(data, 8 if chosen.quick else chosen.passes):
        seconds, queries, passes, objective, accuracy = rows[-1]
        each = queries / (passes * len(data.X))
        figures = f"{passes:6.0f}{each:17.1f}{seconds:9.1f}{objective:11.4f}{accuracy:10.3f}"
        print(f"{name:28}{figures}  {ended}", flush=True)
        results[name] = rows
    draw(results, chosen.outputs / "labels_convergence.png")


if __name__ == "__main__":
    main()
