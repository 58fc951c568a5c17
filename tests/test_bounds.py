"""Kernels that check every index: broken ones are caught however they are called, and no fit or prediction is one."""

from __future__ import annotations

import json
import textwrap
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.formulations.ramp import Ramp
from maxmargin.kernel_cache import cache_folder, checks_bounds
from reference.process import run_python

BROKEN = """
    import json
    from concurrent.futures import ThreadPoolExecutor
    import numpy as np
    from numba import types
    from maxmargin.kernel import kernel

    vector, whole = types.float64[::1], types.int64
    INNER = types.float64(vector, whole)

    @kernel(INNER, borrows=True)
    def inner(x, i):
        return x[i]

    @kernel(INNER, borrows=True)
    def caller(x, i):
        return inner(x, i)

    @kernel(types.float64(types.FunctionType(INNER), vector, whole), borrows=True)
    def asker(given, x, i):
        return given(x, i)

    x = np.arange(3.0)
    calls = [lambda i: inner(x, i), lambda i: caller(x, i), lambda i: asker(inner, x, i)]
    def outcome(call, i):
        try:
            return call(i)
        except IndexError:
            return "out of bounds"
    answers = [[outcome(call, i) for i in (1, 3, 2)] for call in calls]
    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(outcome, calls[2], 3).result() for _ in range(3)]
    print(json.dumps([answers, threads]))
"""


def test_a_broken_kernel_is_caught_however_it_is_called(tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_BOUNDSCHECK", "1")
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "broken.py").write_text(textwrap.dedent(BROKEN))
    for _ in range(2):  # compiled, then loaded
        answers, threads = json.loads(run_python("broken.py", folder=tmp_path).stdout)
        assert answers == [[1.0, "out of bounds", 2.0]] * 3
        assert threads == ["out of bounds"] * 3
    assert len(list((tmp_path / "cache" / "boundscheck").rglob("*.kernel"))) == 3


def test_kernels_with_and_without_checks_have_caches_of_their_own(monkeypatch):
    folders = []
    for value in ("", "0", "1"):
        monkeypatch.setenv("MAXMARGIN_BOUNDSCHECK", value)
        folders.append(cache_folder())
    assert folders[0] == folders[1] == folders[2].parent


# --- one fit of each kind; `make test-bounds` ------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(T, 3)) for T in (1, 5, 2, 4, 3, 6, 1, 2)]
Y = [RNG.integers(0, 3, len(x)).tolist() for x in X]
ROWS, CLASSES = RNG.normal(size=(40, 4)), RNG.integers(0, 3, 40)
SPARSE = sp.csr_array((RNG.random((40, 600)) < 0.008).astype(float))
LABELS = np.random.default_rng(1).random((40, 30)) < 0.3
TREE, DAG = [-1, -1, 0, 0, 1, 1, 4], [(0, 2), (0, 3), (1, 3), (1, 4), (3, 5)]


def closed_sets(pairs):
    """The first labels of each row, with their ancestors."""
    found = LABELS[:, : max(max(pair) for pair in pairs) + 1].copy()
    for parent, child in sorted(pairs, reverse=True):
        found[:, parent] |= found[:, child]
    return found


WORDS = [["abc"[a] for a in RNG.integers(0, 3, 5)] for _ in range(8)]
STATES = [RNG.integers(0, 2, 5).tolist() for _ in range(8)]
SENTENCES = [("a b c", "x y"), ("a", "x"), ("", "x"), ("b c d", "y z v w"), ("d", "")]
LINKS = ["0-0 1-1 2?1", "0-0", "", "0-0 1-1 2-1", ""]
PAIRS = [RNG.normal(size=(n, m, 2)) for n, m in ((5, 6), (1, 1), (7, 3), (0, 2))]
PAIR_LINKS = ["0-0 1-1 2-2 3?4", "0-0", "0-2 1-1 2-0", ""]
LADDER = mm.Lattice(4, [0, 0, 1, 2, 1], [1, 2, 3, 3, 2], RNG.normal(size=(5, 3)), ["a b", "a", "c", "b c", ""])
LIST = mm.Lattice.from_nbest(["a", "a b c", "a", ""], RNG.normal(size=(4, 3)))
TABLE, TARGET = RNG.integers(0, 3, (40, 4)).astype(str), RNG.integers(0, 2, 40)
RING = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
GRID = np.array([[r * 3 + c, s] for r in range(3) for c in range(3) for s in (r * 3 + c + 1, r * 3 + c + 3)])
GRID = GRID[(GRID[:, 1] < 9) & ~((GRID[:, 1] - GRID[:, 0] == 1) & (GRID[:, 1] % 3 == 0))]
GRAPHS = [{"node": RNG.normal(size=(9, 2)), "edges": GRID, "edge": RNG.normal(size=(len(GRID), 2))} for _ in range(5)]
FORESTS = [{**graph, "edges": GRID[::3], "edge": graph["edge"][::3]} for graph in GRAPHS]
NODES = [RNG.integers(0, 3, 9) for _ in GRAPHS]
MASKS = [(RNG.random((6, 7)) < 0.5).astype(np.uint8) for _ in range(4)]
IMAGES = [mask + RNG.normal(scale=0.5, size=mask.shape) for mask in MASKS]
VOLUMES = [(RNG.random((3, 4, 5)) < 0.5).astype(np.uint8) for _ in range(3)]
SHORT = {"max_passes": 12, "random_state": 0}
SHARDS = mm.Sharded(shards=3, visits_per_round=2)
SOLVERS = [
    "auto", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane", mm.CuttingPlane("n"), "simplicial",
    mm.SimplicialDecomposition(blocks="one", working_set=3, limit=2), mm.BCFW(averaging="tail", sampling="gap"),
    mm.Auto(memory=60_000), SHARDS, "pegasos", mm.Pegasos(averaging="weighted"), "sgd", "perceptron", "mira",
]  # fmt: skip
MASTERS = ("highs", "extragradient", "primal_dual")
FITS = [
    *((mm.SequenceTagger(solver=solver, **SHORT), X, Y) for solver in SOLVERS),
    *((mm.SequenceTagger(loss="squared_hinge", solver=solver, **SHORT), X, Y) for solver in SOLVERS[:7]),
    (mm.SequenceTagger(rescaling="slack", **SHORT), X, Y),
    (mm.SequenceTagger(positive="transition", n_jobs=2, **SHORT), X, Y),
    *((mm.SequenceTagger(loss=loss, solver=SHARDS, **SHORT), X, Y) for loss in ("squared_hinge", Ramp())),
    (mm.SequenceTagger(solver=mm.Sharded(shards=3, visits_per_round=2, averaging="tail"), **SHORT), X, Y),
    (mm.SequenceTagger(positive="transition", solver=SHARDS, n_jobs=2, **SHORT), X, Y),
    (mm.SequenceTagger(loss=Ramp(), **SHORT), X, Y),
    (mm.SequenceTagger(loss=Ramp(start="hinge"), solver="pegasos", **SHORT), X, Y),
    (mm.SequenceTagger(cost=1.0 - np.eye(3), **SHORT), X, Y),
    *((mm.MulticlassClassifier(solver=solver, **SHORT), ROWS, CLASSES) for solver in ("auto", "bcfw", "sgd")),
    (mm.MulticlassClassifier(**SHORT), SPARSE, CLASSES),  # the label dual
    *((mm.MulticlassClassifier(rescaling=way, **SHORT), ROWS, CLASSES) for way in ("slack", "sqrt_slack")),
    *(
        (mm.MultilabelClassifier(graph=graph, rescaling=way, **SHORT), ROWS, LABELS[:, :M])
        for graph, M in ((None, 30), ("tree", 30), ("full", 9))
        for way in ("margin", "slack", "unit")
    ),
    *((mm.MultilabelClassifier(graph=graph, cost="f1", **SHORT), ROWS, LABELS[:, :9]) for graph in (None, "full")),
    (mm.MultilabelClassifier(graph="full", rescaling="slack", **SHORT), ROWS, LABELS[:, :20]),
    *(
        (mm.MultilabelClassifier(hierarchy=pairs, rescaling=way, **SHORT), ROWS, closed_sets(pairs))
        for pairs in ([(p, c) for c, p in enumerate(TREE) if p >= 0], DAG)
        for way in ("margin", "slack")
    ),
    *((mm.SequenceTagger(penalty="l1", solver=mm.ColumnGeneration(master), **SHORT), X, Y) for master in MASTERS),
    (mm.MulticlassClassifier(penalty="l1", **SHORT), ROWS, CLASSES),
    *(
        (mm.Aligner(max_links=k, rescaling=way, neighbours=k == 1, **SHORT), SENTENCES, LINKS)
        for k in (1, 2)
        for way in ("margin", "slack")
    ),
    *(
        (mm.LatticeRanker(rescaling=way, **SHORT), lattices, ["a b c", "a", ["b c", "a b"]])
        for lattices in ([LADDER, LIST, LADDER], [LIST] * 3)
        for way in ("margin", "slack")
    ),
    *((mm.Aligner(neighbours=True, max_links=k, **SHORT), PAIRS, PAIR_LINKS) for k in (1, 2, (2, 1))),
    (mm.LatticeRanker(n_good=2, **SHORT), [LADDER, LIST], ["a b c", "a"]),
    (mm.LatticeRanker(n_good=2, penalty="l1", **SHORT), [LADDER, LIST], ["a b c", "a"]),
    (mm.DiscriminativeHMM(C=0.1, **SHORT), WORDS, STATES),
    (mm.DiscriminativeHMM(C=0.1, loss="squared_hinge", **SHORT), WORDS, STATES),
    (mm.DiscriminativeHMM(C=0.1, loss=Ramp(), **SHORT), WORDS, STATES),
    *((mm.DiscriminativeBayesNet(C=0.1, structure=s, **SHORT), TABLE, TARGET) for s in ("naive", "tan")),
    *((mm.GraphLabeler(method=method, **SHORT), GRAPHS, NODES) for method in ("auto", "branch_and_bound")),
    (mm.GraphLabeler(pairwise="potts", **SHORT), GRAPHS, NODES),
    *(
        (mm.GraphLabeler(rescaling="slack", slack_search=search, **SHORT), graphs, NODES)
        for search in ("auto", "angular", "bisecting")
        for graphs in (GRAPHS, FORESTS)
    ),
    *((mm.DiscriminativeHMM(C=0.1, rescaling=way, **SHORT), WORDS, STATES) for way in ("slack", "unit")),
    *((mm.ImageSegmenter(neighbours=n, **SHORT), IMAGES, MASKS) for n in (4, 8)),
    (mm.ImageSegmenter(tolerance=1.0, **SHORT), IMAGES, MASKS),
    (mm.ImageSegmenter(neighbours=6, **SHORT), [v + 0.1 for v in VOLUMES], VOLUMES),
]
VERBS: dict[str, tuple | None] = {
    "predict_marginals": (), "predict_margin": (), "decision_function": (), "predict_proba": (), "predict_kbest": (3,),
    "score": None, "mean_cost": None, "audit": None,
}  # fmt: skip


@pytest.mark.skipif(not checks_bounds(), reason="`make test-bounds` sets MAXMARGIN_BOUNDSCHECK=1")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", range(len(FITS)), ids=lambda i: f"{type(FITS[i][0]).__name__}-{i}")
def test_every_fit_and_prediction_stays_inside_its_arrays(case):
    estimator, inputs, outputs = FITS[case]
    fitted = estimator.fit(inputs, outputs)
    fitted.predict(inputs)
    for verb, arguments in VERBS.items():
        if hasattr(fitted, verb):
            with suppress(ValueError):  # not every model has marginals, or k best outputs
                getattr(fitted, verb)(inputs, *([outputs] if arguments is None else arguments))


@pytest.mark.skipif(not checks_bounds(), reason="`make test-bounds` sets MAXMARGIN_BOUNDSCHECK=1")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_strokes_and_their_colours_stay_inside_their_arrays():
    mask = np.zeros((20, 24), np.uint8)
    mask[5:15, 6:18] = 1
    image = (80 * mask[..., None] + RNG.integers(0, 100, (20, 24, 3))).astype(np.uint8)
    session = mm.ImageSegmenter(**SHORT).fit([image] * 2, [mask] * 2).interactive(image)
    for rows in (slice(0, 20, 5), slice(2, 20, 5)):
        strokes = np.full(mask.shape, -1)
        strokes[rows] = mask[rows]
        session.update(strokes)
    assert (session.mask == mask).mean() > 0.9
