"""What ``slack_search=`` chooses from: value, bound and time of every search, over sets, at the weights of a slack fit.

    MAXMARGIN_DATA=... make experiment-labels-searches     # behind table 1
    python experiments/labels/searches_by_name.py --quick

"auto" is what training uses: all sets on Yeast (14 labels), branching on RCV1 (50 labels, all pairs). "angular" asks
HiGHS for the best set of an angle, with 100 nodes for each program: a third of a second with 14 labels, too long with
50, so RCV1 goes without it unless ``--searches`` names it. "relaxed" is over fractional sets, so its value is a bound
for sets. Values and bounds are means over the same states.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from common import Data, parser, rcv1, yeast

import maxmargin as mm
from maxmargin.models.label_set import LabelSet
from maxmargin.models.search import SLACK_SEARCHES, SearchedModel

C = {"yeast": 0.1, "rcv1": 0.001}


def show(data: Data, C: float, n: int, states: int, passes: int, searches: list[str]) -> None:
    data = data.first(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"graph": "full", "rescaling": "slack", "C": C, "max_passes": passes}
        w = mm.MultilabelClassifier(**options).fit(data.X, data.Y).weights_
    bound = LabelSet(graph="full").bind(data.X, data.Y)
    asked = np.linspace(0, n - 1, states).astype(int)
    print(f"\n{data.name}: {states} states of a slack fit with {n} examples")
    print("search           value     bound  queries       ms")
    for method in searches:
        if method == "relaxed" and "relaxed" not in bound.capabilities:
            continue
        model = SearchedModel.of(bound, method, "slack")
        model.answer(w, 0, 1.0, "slack")  # compiles
        begin = time.process_time()
        answers = [model.answer(w, int(i), 1.0, "slack") for i in asked]
        spent = 1e3 * (time.process_time() - begin) / states
        value, top, queries = (np.mean([getattr(a, name) for a in answers]) for name in ("value", "bound", "queries"))
        print(f"{method:15}{value:8.3f}{top:10.3f}{queries:9.1f}{spent:9.2f}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", nargs="+", choices=("yeast", "rcv1"), default=["yeast", "rcv1"])
    options.add_argument("--states", type=int, default=10)
    options.add_argument("--searches", nargs="+", choices=SLACK_SEARCHES)
    chosen = options.parse_args(arguments)
    for name in chosen.data:
        data = yeast() if name == "yeast" else rcv1()
        usual = [search for search in SLACK_SEARCHES if name == "yeast" or search != "angular"]
        searches = chosen.searches or usual
        show(data, C[name], 10 if chosen.quick else 40, chosen.states, 3 if chosen.quick else 10, searches)


if __name__ == "__main__":
    main()
