"""Edited checkpoints of every solver family, with valid digests: a resumed run is refused, or what it says is true.

A fit of each family is saved on its way. A case changes one or two of its arrays, writes them as a checkpoint of their
own, resumes, and holds the result against the problem: the objective of the weights is computed again, no certified
bound may lie beyond the optimum that an untouched run has enclosed, and nothing is NaN.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from tools.attack import Foreign

import maxmargin as mm
from maxmargin.callbacks import Callback
from maxmargin.certificate import Certificate
from maxmargin.estimators.base import Structured
from maxmargin.formulations.problem import Problem
from maxmargin.formulations.ramp import Ramp, RampProblem
from maxmargin.oracles.counting import all_losses
from maxmargin.persistence.checkpoint import save_checkpoint

NUMBER = 2000
SHARE = 1e-6  # of the objective, by which numbers may differ
AVERAGING = ("bcfw", "recentred", "shards, averaged", "shards, tail")  # how the names of solvers that average begin
Arrays = dict[str, np.ndarray]


class Saving(Callback):
    """Keeps the problem of a run, and its arrays at some certificates."""

    def __init__(self, *at: int) -> None:
        self.at, self.arrays, self.problem = at, [], None

    def on_begin(self, run: object) -> None:
        self.problem = run.problem

    def on_certificate(self, run: object) -> None:
        if len(run.history) in self.at:
            self.arrays.append(run.to_arrays())


@dataclass
class Base:
    """A fit and what was saved on its way."""

    name: str
    estimator: Structured
    X: object
    y: object
    saved: list[Arrays]
    problem: object
    optimum: Certificate  # of a run to a small gap; of a ramp, only of this run

    def resume(self, arrays: Arrays) -> Structured:
        """Write a checkpoint and go on from it."""
        handle, path = tempfile.mkstemp(suffix=".checkpoint")
        os.close(handle)
        try:
            save_checkpoint(path, arrays)
            return clone(self.estimator).fit(self.X, self.y, resume=path)
        finally:
            Path(path).unlink()

    def check(self, fitted: Structured, forged: bool) -> None:
        """Raise :class:`Foreign` where the result cannot be.

        Averages of multipliers hold planes that are gone and cannot be looked at: there, forged ones may raise the
        bound of the optimum, never above the objective of the weights.
        """
        found, w = fitted.certificate_, fitted.weights_
        if not np.isfinite([found.primal, *w]).all() or np.isnan(found.dual):
            raise Foreign(f"{self.name}: {found} and weights {w}"[:300])
        size = SHARE * max(1.0, abs(found.primal))
        if found.certified and found.dual > found.primal + size:
            raise Foreign(f"{self.name}: weak duality does not hold: {found}")
        objective = objective_of(self.problem, w)
        if objective is not None and found.certified and abs(found.primal - objective) > size:
            raise Foreign(f"{self.name}: the primal is {found.primal}, the objective of the weights {objective}")
        sure = isinstance(self.problem, Problem) and found.certified
        sure = sure and not (forged and any(map(self.name.startswith, AVERAGING)))
        if sure and found.dual > self.optimum.primal + size:
            raise Foreign(f"{self.name}: the bound {found.dual} is above the optimum {self.optimum}")


def objective_of(problem: object, weights: np.ndarray) -> float | None:
    """The objective of weights, where it does not depend on the run."""
    convex = problem.convex if isinstance(problem, RampProblem) else problem
    if not isinstance(convex, Problem):
        return None
    w = np.zeros(convex.n_columns)
    w[: len(weights)] = weights
    value = convex.primal(w, all_losses(convex.oracle, w))
    return value - problem.linearise(w).value if isinstance(problem, RampProblem) else value


class Sign:
    """A model in plain Python: two outputs."""

    def n_weights(self, X: list, Y: list) -> int:
        return len(X[0])

    def joint_features(self, x: np.ndarray, y: int) -> np.ndarray:
        return y * np.asarray(x) / 2

    def cost(self, y_true: int, y: int) -> float:
        return float(y_true != y)

    def argmax(self, x: np.ndarray, w: np.ndarray, y_true: int | None = None, cost_weight: float = 0.0) -> int:
        return max((-1, 1), key=lambda y: y * (w @ np.asarray(x)) / 2 + cost_weight * (y != y_true))


@cache
def bases() -> tuple[Base, ...]:
    """A fit of each family on a handful of examples."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 2)) for T in (1, 3, 2, 4, 2, 3)]
    y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    rows, labels = rng.normal(size=(9, 3)), rng.integers(0, 3, 9)
    words = [["ab"[int(a)] for a in rng.integers(0, 2, 4)] for _ in range(6)]
    states = [rng.integers(0, 2, 4).tolist() for _ in range(6)]
    table = rng.integers(0, 2, (12, 3)).astype(str)
    target = rng.integers(0, 2, 12)
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    graphs = [{"node": rng.normal(size=(4, 2)), "edges": ring} for _ in range(4)]
    nodes = [rng.integers(0, 2, 4) for _ in range(4)]
    pairs = [rng.normal(size=(3, 2, 2)) for _ in range(6)]
    links = ["0-0 1-1", "2-0", "", "0-1", "1-0 2-1", "0-0"]
    lists = [mm.Lattice.from_nbest(["a b", "a", "b c"], rng.normal(size=(3, 2))) for _ in range(6)]
    told = ["a b", "a", "b", "b c", "a c", "a b"]
    masks = [(rng.random((5, 5)) < 0.5).astype(np.uint8) for _ in range(3)]
    images = [mask + rng.normal(scale=0.5, size=mask.shape) for mask in masks]
    hard = {"tol": 1e-5, "max_passes": 25, "random_state": 0}
    sparse = sp.csr_array((rng.random((30, 400)) < 0.01).astype(float))
    sparse_labels, tree = rng.integers(0, 3, 30), [(0, 1), (0, 2), (2, 3)]
    closed = mm.with_ancestors((rng.random((9, 4)) < 0.4).astype(int), tree)
    searched = mm.MultilabelClassifier(graph="full", rescaling="slack", slack_search="bisecting", **hard)
    tagger = partial(mm.SequenceTagger, C=1.0, **hard)
    ramp = Ramp("best_output")
    kinds: dict[str, tuple[Structured, object, object]] = {
        "auto": (tagger(), X, y),
        "auto, squared": (tagger(loss="squared_hinge"), X, y),
        "auto, positive": (tagger(positive="transition"), X, y),
        "auto, short memory": (tagger(solver=mm.Auto(memory=60_000)), X, y),
        "sequential dual": (tagger(solver=mm.SequentialDual(certificate_every=2.0)), X, y),
        "bcfw, averaged": (tagger(solver=mm.BCFW(averaging="weighted", certificate_every=2.0)), X, y),
        "bcfw, tail": (tagger(solver=mm.BCFW(averaging="tail", sampling="gap", certificate_every=2.0)), X, y),
        "frank-wolfe": (tagger(solver="frank_wolfe"), X, y),
        "cutting plane": (tagger(solver="cutting_plane"), X, y),
        "cutting plane, squared": (tagger(solver="cutting_plane", loss="squared_hinge"), X, y),
        "cutting plane, n": (tagger(solver=mm.CuttingPlane("n")), X, y),
        "simplicial": (tagger(solver=mm.SimplicialDecomposition(blocks="one", working_set=2, limit=2)), X, y),
        "pegasos": (tagger(solver=mm.Pegasos(certificate_every=2.0)), X, y),
        "pegasos, averaged": (tagger(solver=mm.Pegasos(certificate_every=2.0, averaging="tail")), X, y),
        "pegasos, squared": (tagger(solver=mm.Pegasos(certificate_every=2.0), loss="squared_hinge"), X, y),
        "perceptron": (tagger(solver=mm.Perceptron(passes=3)), X, y),
        "mira": (tagger(solver=mm.MIRA(passes=3)), X, y),
        "column generation": (tagger(penalty="l1", solver="column_generation"), X, y),
        "recentred dual": (tagger(penalty="l1", solver="recentred_dual"), X, y),
        "recentred dual, positive": (tagger(penalty="l1", solver="recentred_dual", positive="transition"), X, y),
        "shards": (tagger(solver=mm.Sharded(shards=2)), X, y),
        "shards, averaged": (tagger(solver=mm.Sharded(shards=2, averaging="weighted")), X, y),
        "shards, tail": (tagger(solver=mm.Sharded(shards=3, averaging="tail")), X, y),
        "shards, squared": (tagger(solver=mm.Sharded(shards=3), loss="squared_hinge"), X, y),
        "shards, positive": (tagger(solver=mm.Sharded(shards=2), positive="transition"), X, y),
        "ramp": (tagger(loss=ramp), X, y),
        "ramp in shards": (tagger(loss=ramp, solver=mm.Sharded(shards=2)), X, y),
        "ramp after hinge": (tagger(loss=Ramp(start="hinge"), tol=1e-3), X, y),
        "ramp by pegasos": (tagger(loss=ramp, solver=mm.Pegasos(certificate_every=2.0)), X, y),
        "multiclass, sparse": (mm.MulticlassClassifier(**hard), sparse, sparse_labels),
        "hierarchy": (mm.MultilabelClassifier(hierarchy=tree, **hard), rows, closed),
        "label sets, searched": (searched, rows, closed),
        "multiclass": (mm.MulticlassClassifier(**hard), rows, labels),
        "model in Python": (mm.StructuredSVM(Sign(), **hard), list(rows), (2 * (labels > 0) - 1).tolist()),
        "matching": (mm.Aligner(**hard), pairs, links),
        "matching, neighbours": (mm.Aligner(neighbours=True, **hard), pairs, links),
        "lattice": (mm.LatticeRanker(**hard), lists, told),
        "lattice, several": (mm.LatticeRanker(n_good=2, **hard), lists, told),
        "graph": (mm.GraphLabeler(**hard), graphs, nodes),
        "segmenter": (mm.ImageSegmenter(tolerance=1.0, refits=2, **hard), images, masks),
        "hmm": (mm.DiscriminativeHMM(C=0.1, **hard), words, states),
        "hmm, squared": (mm.DiscriminativeHMM(C=0.1, loss="squared_hinge", **hard), words, states),
        "hmm, ramp": (mm.DiscriminativeHMM(C=0.1, loss=ramp, **hard | {"tol": 1e-3}), words, states),
        "bayes net": (mm.DiscriminativeBayesNet(C=0.1, structure="tan", **hard), table, target),
    }
    return tuple(_base(name, *kind) for name, kind in kinds.items())


def _base(name: str, estimator: Structured, X: object, y: object) -> Base:
    saving = Saving(1, 2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(estimator).set_params(callbacks=[saving]).fit(X, y)
        if isinstance(saving.problem, Problem) and fitted.certificate_.relative_gap > SHARE:
            solver = {} if "tables" in saving.problem.traits else {"solver": "auto"}
            fitted = clone(estimator).set_params(tol=SHARE, max_passes=2000, **solver).fit(X, y)
    return Base(name, estimator, X, y, saving.arrays, saving.problem, fitted.certificate_)


# --- edits ------------------------------------------------------------------------------------------------------------


def _one(change: Callable[[np.ndarray, np.random.Generator], object]) -> Callable:
    """An edit of one entry."""

    def edit(array: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        if array.size == 0:
            return None
        made = array.copy().reshape(-1)
        at = rng.integers(made.size)
        with np.errstate(all="ignore"):
            made[at] = np.asarray(change(made[at], rng)).astype(array.dtype)
        return made.reshape(array.shape)

    return edit


def _all(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Callable:
    """An edit of the whole array."""

    def edit(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(change(array, rng))

    return edit


FORMS: dict[str, Callable] = {
    "shorter": _all(lambda a, rng: a[:-1] if a.ndim else a.reshape(1)),
    "longer": _all(lambda a, rng: np.concatenate([a, a[:1]]) if a.ndim and len(a) else np.zeros(3, a.dtype)),
    "empty": _all(lambda a, rng: a.reshape(-1)[:0]),
    "another dimension": _all(lambda a, rng: a[None]),
    "float32": _all(lambda a, rng: a.astype(np.float32)),
    "int64": _all(lambda a, rng: a.astype(np.int64)),
    "text": _all(lambda a, rng: np.array("text")),
    "booleans": _all(lambda a, rng: a.astype(bool)),
    "big-endian": _all(lambda a, rng: a.astype(a.dtype.newbyteorder(">"))),
}
REALS: dict[str, Callable] = {
    **{str(x): _one(lambda a, rng, x=x: x) for x in (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308, 1e-310, 1e100)},
    "all nan": _all(lambda a, rng: np.full_like(a, np.nan)),
    "all 1e300": _all(lambda a, rng: np.full_like(a, 1e300)),
    "a bit more": _one(lambda a, rng: a * 1.01 + 1e-3),
    "a bit less": _one(lambda a, rng: a * 0.99 - 1e-3),
    "twice": _all(lambda a, rng: 2.0 * a),
    "negated": _all(lambda a, rng: -a),
    "noise": _all(lambda a, rng: a + rng.normal(size=a.shape)),
    "shuffled": _all(lambda a, rng: rng.permutation(a) if a.ndim else a + 1),
}
WHOLE: dict[str, Callable] = {
    **{str(x): _one(lambda a, rng, x=x: np.int64(x)) for x in (-1, 0, 1, 2, 7, 1000, 2**31 - 1, -(2**31), 2**62)},
    "one more": _one(lambda a, rng: np.int64(a) + 1),
    "one less": _one(lambda a, rng: np.int64(a) - 1),
    "all -1": _all(lambda a, rng: np.full_like(a, -1)),
    "all largest": _all(lambda a, rng: np.full_like(a, np.iinfo(a.dtype).max) if a.dtype.kind in "iu" else ~a),
    "random": _all(lambda a, rng: rng.integers(-3, 50, a.shape).astype(a.dtype)),
    "shuffled": _all(lambda a, rng: rng.permutation(a) if a.ndim else a + 1),
}
TEXTS = ("", "garbage", "[" * 5000, "{}", "null", '{"bit_generator": "PCG64"}', '[{"primal": 1}]', "[1, 2, 3]")
RANDOM_STATE = {
    "bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}, "has_uint32": 7, "uinteger": 2**40,
}  # fmt: skip


def edits(array: np.ndarray) -> dict[str, Callable]:
    """What may be done to an array."""
    if array.dtype.kind == "U":
        texts = {repr(text)[:30]: _all(lambda a, rng, text=text: np.array(text)) for text in TEXTS}
        return texts | {"odd state": _all(lambda a, rng: np.array(json.dumps(RANDOM_STATE))), "no text": FORMS["empty"]}
    return (REALS if array.dtype.kind == "f" else WHOLE) | FORMS


def forge(arrays: Arrays, problem: object, rng: np.random.Generator) -> str | None:
    """Change a plane of a working set, and with it all sums and products that depend on it; returns what was done.

    With care, the plane is tilted at random and lifted until it touches the loss, at zero or at the weights.
    """
    at = next((name.removesuffix("set/held") for name in arrays if name.endswith("set/held")), None)
    if at is None or not arrays[f"{at}set/held"].any():
        return None
    names = ("slots", "held", "start", "length", "b", "alpha", "columns", "entries", "gram", "linear")
    part = {name: arrays[f"{at}set/{name}"].copy() for name in names}
    u = arrays[f"{at}u"].copy()
    block = int(rng.choice(np.flatnonzero(part["held"])))
    ids = part["slots"][block, : part["held"][block]]
    plane = int(rng.choice(ids))
    rows = {int(p): slice(part["start"][p], part["start"][p] + part["length"][p]) for p in ids}
    before, alpha, b = part["entries"][rows[plane]].copy(), part["alpha"][plane], part["b"][plane]
    plain = isinstance(problem, Problem) and problem.quadratic and not problem.squared
    careful = plain and len(part["held"]) == problem.n_examples
    what = str(rng.choice(["b", "entries", "both", *["tilt"] * (3 * careful)]))
    if what in ("entries", "both"):
        part["entries"][rows[plane]] *= rng.choice([-1.0, 0.5, 0.99, 1.01, 2.0, 100.0])
    elif what == "tilt":
        part["entries"][rows[plane]] += (
            rng.choice([0.01, 0.1, 1.0]) * np.abs(before).max(initial=0.0) * rng.normal(size=before.shape)
        )
    u[part["columns"][rows[plane]]] += alpha * (part["entries"][rows[plane]] - before)
    if what in ("b", "both"):
        b = b * rng.choice([0.5, 0.99, 1.01, 1.5, 100.0]) + rng.choice([0.0, 1e-3])
    elif what == "tilt":
        w = problem.regulariser.weights(u)
        value = w[part["columns"][rows[plane]]] @ part["entries"][rows[plane]]
        b = min(all_losses(problem.oracle, x)[block] + v for x, v in ((0.0 * w, 0.0), (w, value)))
    part["linear"] += alpha * (b - part["b"][plane])
    part["b"][plane] = b
    dense = np.zeros((len(ids), len(u)))
    for row, p in zip(dense, ids, strict=True):
        row[part["columns"][rows[int(p)]]] = part["entries"][rows[int(p)]]
    part["gram"][ids, : len(ids)] = dense @ dense.T
    arrays |= {f"{at}set/{name}": array for name, array in part.items()} | {f"{at}u": u}
    arrays["run/fresh"] = np.array(False)  # the certificate would be another
    return f"{what} of plane {plane} of block {block}, and what follows"


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every array of every family is edited in turn, in as many ways as there is time for."""
    places = [(base, k, name) for base in bases() for k, arrays in enumerate(base.saved) for name in arrays]
    order = rng.permutation(len(places))
    for i in range(number):
        base, k, name = places[order[i % len(places)]]
        yield _case(base, k, name, int(rng.integers(2**32)))


def _case(base: Base, k: int, name: str, seed: int) -> tuple[str, Callable[[], object]]:
    rng, arrays = np.random.default_rng(seed), dict(base.saved[k])
    kind = rng.random()
    forged = forge(arrays, base.problem, rng) if kind < 0.2 else None
    names = [] if forged else [name] if kind < 0.85 else [name, str(rng.choice(list(arrays)))]
    done = [forged] if forged else []
    for which in names:
        if rng.random() < 0.03:
            arrays.pop(which, None)
            done.append(f"{which} missing")
        elif which in arrays:
            known = edits(arrays[which])
            edit = str(rng.choice(list(known)))
            made = known[edit](arrays[which], rng)
            if made is not None:
                arrays[which] = made
            done.append(f"{which} {edit}")

    def run() -> object:
        fitted = base.resume(arrays)
        base.check(fitted, forged is not None)
        return fitted

    return f"{base.name}, checkpoint {k}, seed {seed}: {', '.join(done)}", run
