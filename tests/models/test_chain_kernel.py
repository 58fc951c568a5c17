"""The chain kernel against looking at every labeling, with joint features made by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.costs import HammingCost, MatrixCost
from maxmargin.features.sequences import Sequences
from maxmargin.models.base import CompiledModel
from maxmargin.models.chain import Chain
from reference.enumeration import labelings

from .batches import decode, plane, planes, total


@dataclass(frozen=True)
class Problem:
    """A bound chain, and all that is needed to work it out by hand."""

    bound: CompiledModel
    X: list
    Y: list
    K: int
    cost: np.ndarray
    normalize: bool
    forbidden: frozenset
    fixed: list | None
    integral: bool

    def places(self):
        """Index of each weight in ``w``, by group, read off the layout."""
        groups = self.bound.layout.groups(np.arange(self.bound.n_weights, dtype=np.float64))
        if sp.issparse(groups.get("sparse")):
            observed = groups["sparse"].tocoo()
            table = np.full(observed.shape, -1.0)
            table[observed.row, observed.col] = observed.data
            groups["sparse"] = table
        return {name: table.astype(np.int64) for name, table in groups.items()}

    def phi(self, i, y, places):
        """Joint features of one output, dense."""
        out = np.zeros(self.bound.n_weights)
        x = self.X[i]
        T = len(y)
        for kind in ("sparse", "dense"):
            if kind not in x:
                continue
            features = x[kind].toarray() if sp.issparse(x[kind]) else x[kind]
            for t in range(T):
                for f in np.flatnonzero(features[t]):
                    if places[kind][f, y[t]] >= 0:
                        out[places[kind][f, y[t]]] += features[t, f]
        for t in range(1, T):
            out[places["transition"][y[t - 1], y[t]]] += 1
            if "edge" in x:
                for p in np.flatnonzero(x["edge"][t - 1]):
                    out[places["edge"][p, y[t - 1], y[t]]] += x["edge"][t - 1, p]
        if "start" in places and T:
            out[places["start"][y[0]]] += 1
            out[places["end"][y[-1]]] += 1
        return out

    def cost_of(self, i, y):
        total = sum(self.cost[a, b] for a, b in zip(self.Y[i], y, strict=True))
        return total / len(y) if self.normalize and len(y) else total

    def allowed(self, i, y):
        fixed = self.fixed is None or all(f is None or f == k for f, k in zip(self.fixed[i], y, strict=True))
        return fixed and not any(pair in self.forbidden for pair in pairwise(y))

    def outputs(self, i):
        return [y for y in map(np.ndarray.tolist, labelings(len(self.Y[i]), self.K)) if self.allowed(i, y)]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K = draw(st.integers(1, 6))
    lengths = draw(st.lists(st.integers(0, 5 if K < 4 else 3), min_size=1, max_size=4).filter(any))
    kinds = draw(st.sampled_from(["dense", "sparse", "both"]))
    binary, integral = draw(st.booleans()), draw(st.booleans())
    F, D, P = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    filling = draw(st.sampled_from([0.2, 0.6, 1.0]))  # full rows of 12 go through the unrolled loop of four

    def numbers(*shape):
        return rng.integers(-2, 3, shape).astype(float) if integral else rng.normal(size=shape)

    X = []
    for T in lengths:
        x = {}
        if kinds != "dense":
            mask = rng.random((T, F)) < filling
            x["sparse"] = sp.csr_array(mask * (1.0 if binary else numbers(T, F)))
        if kinds != "sparse":
            x["dense"] = numbers(T, D)
        if P:
            x["edge"] = numbers(max(T - 1, 0), P) * (rng.random((max(T - 1, 0), P)) < 0.7)
        X.append(x)
    forbidden = frozenset()
    if K > 1 and draw(st.booleans()):
        every = [(j, k) for j in range(K) for k in range(K)]
        # 0 may always follow 0, so that each length has an allowed labeling
        forbidden = frozenset(pair for pair in every if pair != (0, 0) and rng.random() < 0.4)
    Y = [_path(rng, T, K, forbidden) for T in lengths]
    fixed = None
    if draw(st.booleans()):
        fixed = [[k if rng.random() < 0.3 else None for k in y] for y in Y]
    table = rng.integers(0, 4, (K, K)).astype(float) if integral else rng.random((K, K)) * 3
    np.fill_diagonal(table, 0.0)
    normalize, hamming = draw(st.booleans()), draw(st.booleans())
    chain = Chain(
        weights="observed" if kinds != "dense" and draw(st.booleans()) else "all",
        ends=draw(st.booleans()),
        cost=HammingCost(normalize) if hamming else MatrixCost(table, normalize=normalize),
        constraints=forbidden or None,
        classes=range(K),
    )
    bound = chain.bind(X, Y, fixed=fixed)
    cost = 1.0 - np.eye(K) if hamming else table
    exact = integral and not (normalize and any(T > 1 for T in lengths))
    problem = Problem(bound, X, Y, K, cost, normalize, forbidden, fixed, exact)
    w = numbers(bound.n_weights) * draw(st.sampled_from([0.0, 1.0, 4.0]))
    lam = draw(st.sampled_from([0.0, 1.0, 0.5, 3.0, -1.0, -2.5]))
    return problem, w, lam


def _path(rng, T, K, forbidden):
    y = []
    for _ in range(T):
        choices = [k for k in range(K) if not y or (y[-1], k) not in forbidden]
        if not choices:
            return [0] * T  # a dead end
        y.append(int(rng.choice(choices)))
    return y


def runs(output, truth):
    """The outputs that make only one of the runs of errors."""
    wrong = np.flatnonzero(np.asarray(output) != truth)
    parts = []
    for run in np.split(wrong, np.flatnonzero(np.diff(wrong) > 1) + 1):
        part = list(truth)
        for t in run:
            part[t] = int(output[t])
        parts.append(part)
    return parts


@settings(max_examples=300, deadline=None)
@given(problems())
def test_argmax_value_cost_and_plane(case):
    problem, w, lam = case
    examples = np.arange(len(problem.Y))
    places = problem.places()
    outputs, costs, bounds, status = decode(problem.bound, w, examples, lam)
    found, _ = planes(problem.bound, w, examples, lam)
    assert status == -1
    assert [row.position for row in found] == examples.tolist()
    for i, y in enumerate(outputs):
        y, row = y.tolist(), found[i]
        true = problem.phi(i, problem.Y[i], places)
        every = problem.outputs(i)
        objective = [w @ problem.phi(i, z, places) + lam * problem.cost_of(i, z) - w @ true for z in every]
        best = int(np.argmax(objective))  # the first: enumeration visits labelings in the order of the tie rule
        assert problem.allowed(i, y)
        if problem.integral:
            assert y == every[best]
        else:
            assert objective[every.index(y)] == pytest.approx(objective[best], abs=1e-9)
        for emit in (0, 1):
            made, output, result = plane(problem.bound, w, i, lam, emit)
            assert made == emit
            assert output.tolist() == y
            assert result[0] == pytest.approx(objective[best], abs=1e-9)
            assert result[1] >= result[0]
        assert bounds[i] == pytest.approx(objective[best], abs=1e-9)
        assert row.bound == bounds[i]
        assert costs[i] == pytest.approx(problem.cost_of(i, y), abs=1e-12)
        assert row.b == lam * costs[i]
        np.testing.assert_allclose(row.a, true - problem.phi(i, y, places), atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(problems(), st.integers(2, 5), st.integers(0, 30), st.integers(0, 6))
def test_planes_of_runs_and_small_buffers(case, emit, spare, spare_rows):
    problem, w, lam = case
    examples = np.random.default_rng(spare).permutation(len(problem.Y))
    places = problem.places()
    outputs, _, bounds, _ = decode(problem.bound, w, examples, lam)
    found, _ = planes(problem.bound, w, examples, lam, emit=emit, spare=spare, spare_rows=spare_rows)
    at = 0
    for e, i in enumerate(examples):
        truth = problem.Y[i]
        expected = [outputs[e].tolist()]
        parts = runs(outputs[e], truth)
        if 2 <= len(parts) < emit:
            expected += parts
        for y in expected:
            row = found[at]
            at += 1
            assert row.position == e
            assert problem.allowed(i, y)
            assert row.b == pytest.approx(lam * problem.cost_of(i, y), abs=1e-12)
            assert row.bound == bounds[e]
            psi = problem.phi(i, truth, places) - problem.phi(i, y, places)
            np.testing.assert_allclose(row.a, psi, atol=1e-12)
            value = row.b - w @ row.a
            assert -1e-9 <= value <= row.bound + 1e-9
    assert at == len(found)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(1, 4), st.integers(0, 20))
def test_lift_adds_one_column_to_all_but_zero_planes(case, emit, spare):
    problem, w, lam = case
    lam = abs(lam) + 0.5  # so that b tells whether a plane has a cost
    examples = np.arange(len(problem.Y))[::-1]
    lift = np.arange(1.0, len(problem.Y) + 1)
    plain, _ = planes(problem.bound, w, examples, lam, emit=emit)
    longer = np.concatenate([w, np.full(len(lift), 1e6)])  # what follows is not the model's: it must not matter
    lifted, _ = planes(problem.bound, longer, examples, lam, emit=emit, lift=lift, spare=spare)
    assert len(lifted) == len(plain)
    for row, bare in zip(lifted, plain, strict=True):
        assert (row.position, row.b, row.bound) == (bare.position, bare.b, bare.bound)
        np.testing.assert_array_equal(row.a[: len(w)], bare.a)
        extra = np.zeros(len(lift))
        if bare.a.any() or bare.b > 0:
            extra[examples[row.position]] = lift[examples[row.position]]
        np.testing.assert_array_equal(row.a[len(w) :], extra)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_sum_is_the_sum_of_the_planes(case):
    problem, w, lam = case
    examples = np.arange(len(problem.Y))[::-1]
    scale = np.linspace(0.5, 2.0, len(examples))
    rows, _ = planes(problem.bound, w, examples, lam)
    a, b, bounds = total(problem.bound, w, examples, lam, scale)
    np.testing.assert_allclose(a, sum(s * row.a for s, row in zip(scale, rows, strict=True)), atol=1e-9)
    assert b == pytest.approx(sum(s * row.b for s, row in zip(scale, rows, strict=True)), abs=1e-9)
    assert bounds.tolist() == [row.bound for row in rows]


@settings(max_examples=100, deadline=None)
@given(problems())
def test_padding_and_labels_do_not_matter_to_prediction(case):
    problem, w, _ = case
    layout = problem.bound.layout
    examples = np.arange(len(problem.Y))
    garbled = np.where(layout.real(), w, 1e9)
    labelled, *_ = decode(problem.bound, w, examples, 0.0)
    unlabelled = Chain().bind(problem.X, layout=layout, fixed=problem.fixed)
    for cost_weight in (0.0, 1.0, -3.0):  # without labels there is no cost
        outputs, costs, _, status = decode(unlabelled, garbled, examples, cost_weight)
        assert status == -1
        assert not costs.any()
        assert [y.tolist() for y in outputs] == [y.tolist() for y in labelled]


@pytest.mark.parametrize(
    ("scheme", "classes", "pattern"),
    [
        ("iobes", ["B-X", "E-X", "I-X", "O", "S-X"], r"(O|S|BI*E)*"),
        ("bio", ["B-X", "I-X", "O"], r"(O|BI*)*"),
    ],
)
def test_what_may_begin_and_end_a_sequence(scheme, classes, pattern):
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(T, 2)) for T in (1, 2, 3, 4)]
    Y = [["O"] * len(x) for x in X]
    bound = Chain(constraints=scheme, classes=classes).bind(X, Y)
    groups = bound.layout.groups(np.arange(bound.n_weights))
    for lam in (0.0, 1.0, -1.0):
        for _ in range(20):
            w = rng.normal(size=bound.n_weights)
            emission, transition = w[groups["dense"]], w[groups["transition"]]
            outputs, _, bounds, _ = decode(bound, w, range(4), lam)
            for i, x in enumerate(X):
                objective = {}
                for y in map(np.ndarray.tolist, labelings(len(x), len(classes))):
                    if re.fullmatch(pattern, "".join(classes[k][0] for k in y)):
                        wrong = sum(classes[k] != "O" for k in y)
                        pairs = sum(transition[j, k] for j, k in pairwise(y))
                        objective[tuple(y)] = (x @ emission)[np.arange(len(x)), y].sum() + pairs + lam * wrong
                truth = objective[(classes.index("O"),) * len(x)]
                assert tuple(outputs[i].tolist()) == max(objective, key=objective.get)
                assert bounds[i] == pytest.approx(max(objective.values()) - truth, abs=1e-9)


def test_padded_rows_are_masked():
    K = 7  # padded to 8
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(4, 2)) for _ in range(5)]
    Y = [rng.integers(0, K, 4) for _ in X]
    bound = Chain(ends=True, classes=range(K)).bind(X, Y)
    real = bound.layout.real()
    assert bound.layout.stride == 8
    assert real.sum() == 2 * K + K * K + 2 * K
    w = np.where(real, rng.normal(size=bound.n_weights), 1e9)
    clean = np.where(real, w, 0.0)
    for lam in (0.0, 1.0, -1.0):
        for one, other in zip(decode(bound, w, range(5), lam)[0], decode(bound, clean, range(5), lam)[0], strict=True):
            assert one.tolist() == other.tolist()
    for row in planes(bound, w, range(5), 1.0)[0]:
        assert not row.a[~real].any()


def test_all_tied_gives_smallest_labels():
    bound = Chain(classes=range(3)).bind([np.ones((4, 1))], [[1, 2, 1, 0]])
    outputs, costs, bounds, _ = decode(bound, np.zeros(bound.n_weights), [0], 0.0)
    assert outputs[0].tolist() == [0, 0, 0, 0]
    assert (costs[0], bounds[0]) == (3.0, 0.0)


def test_negative_cost_weight_prefers_the_truth():
    bound = Chain(classes=range(3)).bind([np.ones((4, 1))], [[1, 2, 1, 0]])
    outputs, costs, bounds, _ = decode(bound, np.zeros(bound.n_weights), [0], -1.0)
    assert outputs[0].tolist() == [1, 2, 1, 0]
    assert (costs[0], bounds[0]) == (0.0, 0.0)


def test_no_allowed_output_at_prediction():
    chain = Chain(constraints=[(0, 1), (1, 0)])
    bound = chain.bind([np.ones((2, 1))] * 2, [[0, 0], [1, 1]])
    w = np.zeros(bound.n_weights)
    impossible = chain.bind([np.ones((2, 1))] * 2, layout=bound.layout, fixed=[[1, None], [0, 1]])
    outputs, _, _, status = decode(impossible, w, [0, 1], 0.0)
    assert status == 1
    assert outputs[0].tolist() == [1, 1]
    rows, _ = planes(impossible, w, [1], 0.0)
    assert [(row.a.any(), row.b, row.bound) for row in rows] == [(False, 0.0, 0.0)]
    a, b, bounds = total(impossible, w, [1], 0.0, np.ones(1))
    assert not a.any() and b == 0.0 and bounds[0] == 0.0


def test_small_rows_buffer_stops_and_resumes():
    # three wrong runs in each of four examples; buffers for one example at a time
    X, Y = [np.ones((5, 1))] * 4, [[0, 1, 0, 1, 0]] * 4
    bound = Chain(classes=range(2)).bind(X, Y)
    w = np.zeros(bound.n_weights)
    w[bound.layout.groups(np.arange(bound.n_weights))["dense"][0, 1]] = 10.0
    rows, calls = planes(bound, w, range(4), 1.0, emit=4)
    assert calls == 4
    assert [row.position for row in rows] == np.repeat(range(4), 4).tolist()
    assert [row.b for row in rows] == [3.0, 1.0, 1.0, 1.0] * 4
    everything, calls = planes(bound, w, range(4), 1.0, emit=4, spare=4 * bound.room, spare_rows=16)
    assert calls == 1
    assert all((a.a == b.a).all() and a.b == b.b for a, b in zip(rows, everything, strict=True))


def test_sequences_packed_or_listed_give_the_same():
    rng = np.random.default_rng(0)
    X = [{"sparse": sp.csr_array(rng.normal(size=(T, 4))), "edge": rng.normal(size=(T, 2))} for T in (3, 1, 0, 2)]
    Y = [rng.integers(0, 3, len(x["edge"])).tolist() for x in X]
    one, other = Chain(classes=range(3)).bind(X, Y), Chain(classes=range(3)).bind(Sequences.of(X), Y)
    w = rng.normal(size=one.n_weights)
    for a, b in zip(planes(one, w, range(4), 1.0)[0], planes(other, w, range(4), 1.0)[0], strict=True):
        np.testing.assert_array_equal(a.a, b.a)
    # row t of T edge rows describes the pair (t - 1, t); the first is ignored
    shorter = [{**x, "edge": x["edge"][1:]} for x in X]
    third = Chain(classes=range(3)).bind(shorter, Y)
    for a, b in zip(planes(one, w, range(4), 1.0)[0], planes(third, w, range(4), 1.0)[0], strict=True):
        np.testing.assert_array_equal(a.a, b.a)
