"""Shared by the experiments on label sets: data, measures, and searches over all sets of a few labels.

Choi, Meshi, Srebro 2016, *Fast and scalable structural SVM with slack rescaling*. Their model is ours: a weight for
each feature and label, and one for each pair of labels that are on together. Their C multiplies ``|w|^2``, ours the
losses.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from hull_oracle import HullOracle
from sklearn.metrics import f1_score, hamming_loss, jaccard_score

from maxmargin.contracts import Answer, Answers, ModelKernel
from maxmargin.datasets.folder import require
from maxmargin.inference.constrained_oracle import TINY, ConstrainedOracle, pair_rows
from maxmargin.inference.roof_kernel import roof, roof_sizes
from maxmargin.inference.slack_search import (
    STRIP,
    Reply,
    SearchResult,
    Stop,
    Wedge,
    angular_search,
    bisecting_search,
    first_cost_weight,
    in_closed_angles,
    relaxed_search,
    sarawagi_gupta_search,
)
from maxmargin.kernel import kernel
from maxmargin.models.base import BoundModel
from maxmargin.models.label_set import LabelSetBound

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

YEAST = "http://mulan.sourceforge.net/datasets-mlc.html, saved as arrays X_train, Y_train, X_test, Y_test"
RCV1 = "rcv1subset1 of mulan with 944 binary features, packed bits X_train_packed, Y_train_packed and X_test, Y_test"
MEASURES = ("accuracy", "label loss", "micro F1", "macro F1", "example F1")
ENOUGH = 1e-3  # the paper stops angular search at 0.999 of the optimum
LABELS = 50  # of RCV1


@dataclass(frozen=True)
class Data:
    """A training and a test half: features (n, F) and indicators (n, M)."""

    name: str
    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray

    def again(self, seed: int) -> Data:
        """Another split of all examples into halves of the same sizes."""
        X, Y = np.concatenate([self.X, self.X_test]), np.concatenate([self.Y, self.Y_test])
        order, n = np.random.default_rng(seed).permutation(len(X)), len(self.X)
        return Data(self.name, X[order[:n]], Y[order[:n]], X[order[n:]], Y[order[n:]])

    def first(self, n: int) -> Data:
        """The same with n training examples."""
        return replace(self, X=self.X[:n], Y=self.Y[:n])


def yeast() -> Data:
    """1,500 and 917 genes, 103 features, 14 labels."""
    data = np.load(require("yeast/yeast.npz", YEAST))
    X, Y, X_test, Y_test = (data[name] for name in ("X_train", "Y_train", "X_test", "Y_test"))
    return Data("Yeast", X.astype(float), Y.astype(int), X_test.astype(float), Y_test.astype(int))


def rcv1() -> Data:
    """3,000 and 3,000 texts, 944 binary features, the 50 labels that are commonest in training.

    Rows have length 1, as the vectors of the original have.
    """
    data = np.load(require("rcv1/rcv1subset1_top944.npz", RCV1))
    X, X_test = (np.unpackbits(data[f"X_{half}_packed"], axis=1)[:, :944].astype(float) for half in ("train", "test"))
    Y, Y_test = (np.unpackbits(data[f"Y_{half}_packed"], axis=1)[:, :100].astype(int) for half in ("train", "test"))
    common = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:LABELS])
    X, X_test = (Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12) for Z in (X, X_test))
    return Data("RCV1", X, Y[:, common], X_test, Y_test[:, common])


def measures(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Those of :data:`MEASURES`: mean Jaccard index, share of wrong labels, F1 of all decisions, by label, by example.

    Two empty sets agree: 1. A label that never occurs and is never given counts 0 in the mean over labels.
    """
    return np.array([
        jaccard_score(true, found, average="samples", zero_division=1.0),
        hamming_loss(true, found),
        f1_score(true, found, average="micro"),
        f1_score(true, found, average="macro", zero_division=0.0),
        f1_score(true, found, average="samples", zero_division=1.0),
    ])  # fmt: skip


@kernel("float64(int32[::1], float64[::1], float64[::1], int32[::1], float64[::1], int32[::1], int32[::1])")
def cut(edges, gain, pair, iwork, fwork, one, other):  # type: ignore[no-untyped-def]
    """Roof duality, compiled."""
    return roof(edges, gain, pair, iwork, fwork, one, other)


class AllSets:
    """All sets of M labels as points (h, g), h = 1 + score - score of the truth, g = Hamming cost; asked in turn."""

    strip, beyond = 0.0, 0.0  # slopes are compared bit for bit, and every point is looked at

    def __init__(self, M: int, edges: np.ndarray) -> None:
        self.M = M
        self.sets = (np.arange(2**M)[:, None] >> np.arange(M) & 1).astype(np.int8)
        both = self.sets[:, edges[:, 0]] * self.sets[:, edges[:, 1]]
        self.features = np.concatenate([self.sets, both], axis=1).astype(float)

    def aim(self, scores: np.ndarray, pairs: np.ndarray, truth: np.ndarray) -> AllSets:
        """Scores (M,) of the labels of an example, (E,) of the pairs, and its true set (M,)."""
        total = self.features @ np.concatenate([scores, pairs])
        self.g = self.sets @ (1.0 - 2.0 * truth) + truth.sum()
        self.truth = int(truth @ (1 << np.arange(len(truth))))
        self.h = 1.0 + total - total[self.truth]
        self.h[self.truth] = 1.0
        return self

    def fresh(self) -> None:
        """Nothing is kept between searches."""

    def plain(self, lam: float) -> Reply[int]:
        value = self.h + lam * self.g
        return self.reply(int(value.argmax()), lam)

    def constrained(self, lam: float, wedge: Wedge) -> Reply[int] | None:
        inside = np.flatnonzero((self.h > 0.0) & (self.g > 0.0))
        slope = self.g[inside] / self.h[inside]
        ends = (wedge.closed_below & (slope == wedge.low)) | (wedge.closed_above & (slope == wedge.high))
        inside = inside[((slope > wedge.low) & (slope < wedge.high)) | ends]
        if not len(inside):
            return None
        return self.reply(int(inside[(self.h[inside] + lam * self.g[inside]).argmax()]), lam)

    def reply(self, z: int, lam: float) -> Reply[int]:
        h, g = float(self.h[z]), float(self.g[z])
        return Reply(h, g, h + lam * g, z)

    def again(self, z: int) -> Reply[int]:
        """The point of a set found before."""
        return self.reply(z, 0.0)

    def indicators(self, z: int) -> np.ndarray:
        """Which labels are on, and which pairs, (M + E,)."""
        return self.features[z]

    def best(self) -> float:
        """The largest product."""
        return max(0.0, float((self.h * self.g).max()))


class Relaxed:
    """The linear relaxation of all sets of M labels: points x = (z, y) with y_e between what two labels allow.

    Plain queries are cuts (roof duality). Queries of an angle are a few cuts, or with ``program`` one linear program
    with two rows more.
    """

    strip = STRIP

    def __init__(self, M: int, edges: np.ndarray, program: bool = False) -> None:
        self.M, self.edges, self.m = M, edges, len(edges)
        self.program = ConstrainedOracle(*pair_rows(M, edges)) if program else None
        ints, floats = roof_sizes(M, self.m)
        self.scratch = np.zeros(ints, np.int32), np.empty(floats), np.zeros(M, np.int32), np.zeros(M, np.int32)

    def aim(self, scores: np.ndarray, pairs: np.ndarray, truth: np.ndarray) -> Relaxed:
        """As :meth:`AllSets.aim`; z are flips of the truth."""
        sign, (j, k) = 1.0 - 2.0 * truth, self.edges.T
        gain = scores.copy()
        np.add.at(gain, j, pairs * truth[k])
        np.add.at(gain, k, pairs * truth[j])
        self.truth, self.sign = truth, sign
        self.gain, self.pair = sign * gain, sign[j] * sign[k] * pairs
        self.slopes = np.concatenate([self.gain, self.pair])
        self.fresh()
        return self

    def fresh(self) -> None:
        """Forget what earlier angles have found."""
        hull = HullOracle(self.support)
        self.constrained, self.beyond = (
            in_closed_angles(hull),
            TINY * (self.M + np.maximum(self.slopes, 0.0).sum()) ** 2,
        )
        if self.program is not None:
            self.program.aim(self.slopes, np.append(np.ones(self.M), np.zeros(self.m)), 1.0, least=0.5)
            self.constrained, self.beyond = in_closed_angles(self.program), self.program.beyond

    def support(self, a: float, b: float) -> Reply[np.ndarray]:
        """The point of largest ``a h + b g``."""
        iwork, fwork, one, other = self.scratch
        pair = a * self.pair
        upper = cut(self.edges.ravel(), a * self.gain + b, pair, iwork, fwork, one, other)
        z, (j, k) = (one + other) / 2, self.edges.T
        y = np.where(pair > 0, np.minimum(z[j], z[k]), np.maximum(z[j] + z[k] - 1.0, 0.0))
        reply = self.again(np.concatenate([z, y]))
        return reply._replace(bound=max(a + upper, a * reply.h + b * reply.g))

    def plain(self, lam: float) -> Reply[np.ndarray]:
        return self.support(1.0, lam)

    def again(self, x: np.ndarray) -> Reply[np.ndarray]:
        return Reply(1.0 + float(self.slopes @ x), float(x[: self.M].sum()), 0.0, x)

    def indicators(self, x: np.ndarray) -> np.ndarray:
        """How far each label and each pair is on, (M + E,)."""
        (z, y), (j, k), t, sign = np.split(x, [self.M]), self.edges.T, self.truth, self.sign
        flips = sign * z
        pairs = t[j] * t[k] + t[j] * flips[k] + t[k] * flips[j] + sign[j] * sign[k] * y
        return np.concatenate([t + flips, pairs])

    def best(self) -> float:
        """The relaxed optimum: on the last edge of a walk along the hull."""
        return max(relaxed_search(self.plain).value, 0.0)


@dataclass(frozen=True, kw_only=True)
class Searched(BoundModel):
    """A model of label sets whose slack argmax is a search over points, in plain Python.

    ``found`` holds the outputs of each example so far, so in a cutting-plane fit with a slack for each example the
    largest product among them is its slack. A search that finds nothing better answers with the best of them.
    """

    bound: LabelSetBound
    data: Data
    search: str
    points: AllSets | Relaxed
    tolerance: float
    found: list[list[Any]] = field(default_factory=list)

    @classmethod
    def of(cls, bound: LabelSetBound, data: Data, search: str, points: AllSets | Relaxed, tolerance: float) -> Searched:
        return cls(
            n_examples=len(data.X), layout=bound.layout, capabilities=frozenset(), bound=bound, data=data,
            search=search, points=points, tolerance=tolerance, found=[[] for _ in data.X],
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        return f"{self.bound.fingerprint} {self.search}"

    def kernel(self, search: str = "argmax") -> ModelKernel | None:
        return None

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        return self.bound.argmax(w, examples, cost_weight)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        if search != "slack" or cost_weight <= 0.0:
            return self.bound.answer(w, example, cost_weight, search)
        groups, layout, points = self.bound.layout.groups(w), self.bound.layout, self.points
        x, truth = np.append(self.data.X[example], 1.0), self.data.Y[example]
        points.aim(x[:-1] @ groups["coef"] + groups["intercept"], groups["edge"], truth)
        known = tuple(points.again(output) for output in self.found[example])
        slack = max((max(reply.h, 0.0) * reply.g for reply in known), default=0.0)
        result = self.ask(w, example, slack, known)
        output = result.output
        if result.value > slack:
            self.found[example].append(output)
        elif slack > 0.0:
            output = max(known, key=lambda reply: max(reply.h, 0.0) * reply.g).output
        if output is None:
            return Answer(np.empty(0, np.int32), np.empty(0), 0.0, 0.0, max(result.bound, 0.0), result.queries)
        reply, on, (j, k) = points.again(output), points.indicators(output), layout.edges.T
        rows = np.zeros((len(x), layout.stride))
        rows[:, : points.M] = np.outer(x, truth - on[: points.M])
        psi = np.concatenate([rows.ravel(), truth[j] * truth[k] - on[points.M :]])
        index, value = np.flatnonzero(psi).astype(np.int32), max(reply.h * reply.g, 0.0)
        return Answer(index, psi[index], reply.g, value, max(result.bound, value), result.queries)

    def ask(self, w: np.ndarray, example: int, slack: float, known: tuple[Reply, ...]) -> SearchResult:
        """What the search finds at the points as they are aimed now."""
        return searched(self.search, self.points, slack, self.tolerance, known)


def searched(name: str, points: Any, slack: float, tolerance: float, known: tuple[Reply, ...] = ()) -> SearchResult:
    """One of the three searches, begun where the library begins. ``slack`` is that of the sets found before.

    All end when their bound is below the slack plus ``tolerance``: then cutting planes want nothing. When they have
    more than that, they end when their bound is within 0.1 % or ``tolerance`` of it. Angular search knows the points
    found before (the paper's label cache); "angular, 0.999" ends by the 0.1 % alone.
    """
    stop = Stop(relative=ENOUGH, absolute=tolerance, enough=slack + tolerance)
    start = first_cost_weight(known, 1.0, 1.0 / points.M)
    if name == "angular":
        return angular_search(points.constrained, start, stop, known, strip=points.strip, beyond=points.beyond)
    if name == "angular, 0.999":
        return angular_search(
            points.constrained, start, Stop(relative=ENOUGH), known, strip=points.strip, beyond=points.beyond
        )
    if name == "bisecting":
        return bisecting_search(points.plain, start, stop)
    return sarawagi_gupta_search(points.plain, max(slack, 1e-9), start, stop._replace(queries=100))


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="a small share of the work; about a minute")
    made.add_argument("--outputs", type=Path, default=Path("outputs"), help="where the pictures go")
    return made
