"""Table 1 of Choi, Meshi and Srebro 2016: three searches for the most violating set, on identical training states.

    MAXMARGIN_DATA=... make experiment-labels-searches
    python experiments/labels/table_1.py --quick

As in the paper, a cutting-plane fit with a slack for each of N = 160 examples asks for the most violating set of every
example in every iteration; all searches answer, at the same weights and with the same sets found before, and the answer
of angular search goes into the fit. A search succeeds when it finds a set whose violation is above the slack of those
found before by more than a tolerance, here 1 % of the largest loss at zero weights. The fit ends with an iteration
without a success. All searches end when their bound proves that there is no such set, and when they have one, within
that tolerance or 0.1 % of the best; the paper's angular search has only the last rule, which is a row of its own here.
Angular search knows the sets found before, and all searches begin where the library does: at the cost weight at which a
line touches the highest contour that meets the hull of those sets.

Yeast: all 2^14 sets are points, so every oracle is exact, and so is the answer that the searches are compared with.
RCV1 has 50 labels; there the paper's setting is used, the linear relaxation with fractional outputs. The oracle of a
plain query is one cut (roof duality), that of an angle a few (with ``--highs`` a linear program with two more rows),
and the exact answer is the relaxed optimum, on the last edge of the hull. C is such that the fit ends within the
iterations allowed. All is asked from plain Python, so times only compare with each other; "ours" is the compiled oracle
that training uses (Yeast: all sets; RCV1: branching over sets, which are fewer than the relaxed points, in every 16th
state).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from common import AllSets, Data, Relaxed, Searched, parser, rcv1, searched, yeast

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.inference.slack_search import Reply, SearchResult
from maxmargin.models.label_set import LabelSet
from maxmargin.solvers.driver import run

SEARCHES = ("angular", "bisecting", "Sarawagi", "angular, 0.999")
PAPER = {
    "Yeast": {"angular": (22.4, 3.8, 4.7), "bisecting": (16.5, 10.3, 3.6), "Sarawagi": (16.4, 43.2, 18.5)},
    "RCV1": {"angular": (25.6, 4.8, 4.4), "bisecting": (18.2, 12.7, 5.2), "Sarawagi": (18.0, 49.0, 20.9)},
}  # success in per cent, queries, milliseconds
N, C = 160, {"yeast": 0.1, "rcv1": 0.001}
TOLERANCE = 0.01
OURS_EVERY = 16  # states of RCV1, where branching takes a tenth of a second
SAME = 1e-6  # relative


@dataclass
class Tally:
    """What a search has done over the states in which it was asked."""

    asked: int = 0
    successes: int = 0
    queries: int = 0
    seconds: float = 0.0
    short: int = 0  # states at which it found less than the optimum, by more than the stopping rule allows


@dataclass
class Counts:
    """Tallies by search, the number of states, and the number of those where some set violates by enough."""

    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in (*SEARCHES, "ours")})
    states: int = 0
    there: int = 0
    proven: int = 0  # of those in which ours was asked
    # states in which angular search and the exact answer disagree on whether there is something to find, and by how far
    # the value and the optimum are apart there, relative to the optimum
    disagree: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Compared(Searched):
    """Every search answers; the answer of the first is used."""

    counts: Counts = field(default_factory=Counts)

    def ask(self, w: np.ndarray, example: int, slack: float, known: tuple[Reply, ...]) -> SearchResult:
        points, counts = self.points, self.counts
        best = points.best()
        wanted = slack + self.tolerance
        counts.states += 1
        counts.there += best > wanted
        results = {}
        for name in SEARCHES:
            tally, begin = counts.tallies[name], time.process_time()
            points.fresh()
            results[name] = result = searched(name, points, slack, self.tolerance, known)
            tally.seconds += time.process_time() - begin
            tally.asked += 1
            tally.successes += result.value > wanted
            tally.queries += result.queries
            tally.short += best > max(result.value * 1.001, result.value + self.tolerance, wanted) + SAME
            assert result.bound >= best * (1.0 - SAME), f"{name} bounds {best} by {result.bound}"
            if name == SEARCHES[0] and (result.value > wanted) != (best > wanted):
                counts.disagree.append(abs(result.value - best) / best)
        if isinstance(points, AllSets) or counts.states % OURS_EVERY == 0:
            self._ask_ours(w, example, best, wanted)
        return results[SEARCHES[0]]

    def _ask_ours(self, w: np.ndarray, example: int, best: float, wanted: float) -> None:
        tally, begin = self.counts.tallies["ours"], time.process_time()
        found = self.bound.answer(w, example, 1.0, "slack")
        tally.seconds += time.process_time() - begin
        tally.asked += 1
        tally.queries += 1
        tally.successes += found.value > wanted
        self.counts.proven += found.bound <= found.value + SAME * max(found.value, 1.0)
        exact = isinstance(self.points, AllSets)
        assert found.value <= best + SAME * max(best, 1.0) and (
            not exact or found.value >= best - SAME * max(best, 1.0)
        )


class UntilNothing(Callback):
    """Ends a fit after an iteration in which angular search has found nothing."""

    def __init__(self, counts: Counts) -> None:
        self.counts, self.before = counts, -1

    def on_certificate(self, run: object) -> str | None:
        before, self.before = self.before, self.counts.tallies[SEARCHES[0]].successes
        return "stop" if self.before == before else None


def compare(data: Data, C: float, iterations: int, relaxed: bool, highs: bool = False) -> Counts:
    """What all searches do in the states of a cutting-plane fit, over all sets or their relaxation."""
    bound = LabelSet(graph="full").bind(data.X, data.Y)
    M, edges = data.Y.shape[1], bound.layout.edges
    points = Relaxed(M, edges, program=highs) if relaxed else AllSets(M, edges)
    # at zero weights the set of all mistakes violates by M
    model = Compared.of(bound, data, SEARCHES[0], points, TOLERANCE * M)
    problem, end = RescaledHinge(rescaling="slack").problem(model, C=C), UntilNothing(model.counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(mm.CuttingPlane(slack="n").engine(problem, 0), problem, tol=0.0, max_passes=iterations, callbacks=[end])
    return model.counts


def show(name: str, counts: Counts) -> None:
    count = counts.states
    print(f"\n{name}: {count} states; in {100 * counts.there / count:.1f} % there is something to find")
    print("search            success %  (paper)  queries  (paper)      ms  (paper)  below the optimum %")
    for search, tally in counts.tallies.items():
        paper, count = PAPER[name].get(search), max(tally.asked, 1)
        figures = (100 * tally.successes / count, tally.queries / count, 1e3 * tally.seconds / count)
        shown = [
            f"{mine:9.2f}" + (f"  ({theirs:5.1f})" if paper else " " * 9)
            for mine, theirs in zip(figures, paper or figures, strict=True)
        ]
        print(f"{search:17}" + "".join(shown) + f"{100 * tally.short / count:12.1f}", flush=True)
    print(f"ours: asked in {count} states, proven in {100 * counts.proven / count:.1f} %")
    found = counts.tallies[SEARCHES[0]].successes
    print(f"angular finds something in {found} states; it is there in {counts.there}; disagree in", end=" ")
    print(f"{len(counts.disagree)}, by at most {max(counts.disagree, default=0.0):.1e} of the optimum", flush=True)


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", nargs="+", choices=("yeast", "rcv1"), default=["yeast", "rcv1"])
    options.add_argument("--iterations", type=int, default=60, help="at most")
    options.add_argument("--highs", action="store_true", help="angles by linear programs")
    chosen = options.parse_args(arguments)
    for name in chosen.data:
        data = (yeast() if name == "yeast" else rcv1()).first(20 if chosen.quick else N)
        iterations = 4 if chosen.quick else chosen.iterations
        show(data.name, compare(data, C[name], iterations, name == "rcv1", chosen.highs))


if __name__ == "__main__":
    main()
