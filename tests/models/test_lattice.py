"""The lattice model against trying all paths, and the checks of its data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.datasets import Lattice
from maxmargin.models.lattice import LatticeModel
from maxmargin.models.lattice_targets import Target
from maxmargin.testing import check_model
from reference.lattices import path_features, paths_of, random_lattice

RESCALINGS = {"slack": 1.0, "sqrt_slack": 0.5, "best_wrong": 0.0}


@st.composite
def problems(draw, flat=None):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole = draw(st.booleans())
    sizes = {"most_nodes": 2, "more": 6} if flat else {}
    lattices = [random_lattice(rng, whole=whole, **sizes) for _ in range(draw(st.integers(1, 3)))]
    targets = []
    for lattice in lattices:
        paths = paths_of(lattice)
        costs = rng.integers(0, 3, lattice.n_arcs).astype(float) if whole else rng.random(lattice.n_arcs)
        good = paths[rng.integers(len(paths))] if draw(st.booleans()) else min(paths, key=lambda p: costs[p].sum())
        targets.append(Target(costs, np.array(good, np.int32)))
    w = rng.integers(-2, 3, 3).astype(float) if whole else rng.normal(size=3)
    return lattices, targets, w


def differences(lattice, target, path):
    """psi and cost of a path by their definition."""
    cost = target.costs[path].sum() - target.costs[target.path].sum()
    return path_features(lattice, target.path.tolist()) - path_features(lattice, path), cost


def examples_of(problem):
    """The bound model, the weights, and each example by number."""
    lattices, targets, w = problem
    bound = LatticeModel().bind(lattices, targets)
    for i, (lattice, target) in enumerate(zip(lattices, targets, strict=True)):
        yield bound, w, i, lattice, target


def best_of(lattice, target, w, power):
    """The largest ``cost^power (1 - w . psi)`` of all paths that cost something, at least 0."""
    paths = [differences(lattice, target, path) for path in paths_of(lattice)]
    return max([0.0, *(cost**power * (1.0 - w @ psi) for psi, cost in paths if cost > 1e-12)])


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_most_violating_path_is_that_of_brute_force(problem):
    for bound, w, i, lattice, target in examples_of(problem):
        found_by_arcs = {tuple(path): differences(lattice, target, path) for path in paths_of(lattice)}
        for cost_weight in (0.0, 1.0, 0.4, -1.0):
            values = [cost_weight * cost - w @ psi for psi, cost in found_by_arcs.values()]
            found = bound.answer(w, i, cost_weight)
            assert found.value == pytest.approx(max(values), abs=1e-9)
            assert found.bound >= max(values) - 1e-9
            psi = np.zeros(3)
            psi[found.indices] = found.psi
            assert found.value == pytest.approx(cost_weight * found.cost - w @ psi, abs=1e-9)
            decoded = bound.layout.output(bound.argmax(w, np.array([i]), cost_weight).outputs[0])
            expected = found_by_arcs[tuple(decoded)]
            np.testing.assert_allclose(psi, expected[0], atol=1e-9)
            assert found.cost == pytest.approx(expected[1], abs=1e-9)


@pytest.mark.parametrize("flat", [True, False], ids=["lists", "lattices"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_rescaling_is_searched_exactly(flat, data):
    for bound, w, i, lattice, target in examples_of(data.draw(problems(flat))):
        for search, power in RESCALINGS.items():
            best, found = best_of(lattice, target, w, power), bound.answer(w, i, 1.0, search)
            assert found.value == pytest.approx(best, abs=1e-9) and found.bound == pytest.approx(best, abs=1e-9)
            psi = np.zeros(3)
            psi[found.indices] = found.psi
            if best > 0.0:
                assert found.cost**power * (1.0 - w @ psi) == pytest.approx(best, abs=1e-9)


def test_lattices_with_too_many_starts_have_a_bound():
    """A ladder of 2^30 paths whose costs all differ: what argmaxes find, and a bound that is above."""
    rng = np.random.default_rng(0)
    tails = np.repeat(np.arange(30), 2)
    ladder = Lattice(31, tails, tails + 1, rng.normal(size=(60, 2)), ["a", "b"] * 30)
    bound = LatticeModel().bind([ladder], [rng.random(60)])
    for search in ("slack", "sqrt_slack"):
        found = bound.answer(np.array([0.01, -0.02]), 0, 1.0, search)
        assert 0.0 < found.value <= found.bound < 2.0 * found.value


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_k_best_outputs_and_their_planes_are_those_of_brute_force(problem):
    for bound, w, i, lattice, target in examples_of(problem):
        best: dict[str, float] = {}
        for path in paths_of(lattice):
            text = lattice.text(path)
            best[text] = max(best.get(text, -np.inf), float(w @ path_features(lattice, path)))
        codes, scores = bound.k_best(w, i, 6)
        np.testing.assert_allclose(scores, sorted(best.values(), reverse=True)[:6], atol=1e-9)
        contents = set()
        for code, score in zip(codes, scores, strict=True):
            path = bound.layout.output(code)
            at, values = bound.difference(i, code)
            psi = np.zeros(3)
            psi[at] = values
            np.testing.assert_allclose(psi, differences(lattice, target, path)[0], atol=1e-9)
            assert best[lattice.text(path)] == pytest.approx(score, abs=1e-9)
            np.testing.assert_array_equal(bound.codes(i, path), code)
            vocabulary = lattice.codes.vocabulary
            assert " ".join(vocabulary[c] for c in bound.content(i, code)) == lattice.text(path)
            contents.add(bound.content(i, code).tobytes())
        assert len(contents) == len(codes)


def sample(seed=0, n=6, **sizes):
    rng = np.random.default_rng(seed)
    X = [random_lattice(rng, **sizes) for _ in range(n)]
    return X, [paths_of(x)[0] for x in X]


def test_the_model_passes_its_own_checks():
    X, Y = sample()
    report = check_model(LatticeModel(), X, Y)
    assert report.ok, report


def test_features_of_dicts_meet_the_weights_of_training():
    train = [Lattice.from_nbest(["a", "b"], [{"x": 1.0}, {"y": 1.0}])]
    bound = LatticeModel().bind(train, [np.array([0.0, 1.0])])
    assert bound.layout.names() == ["x", "y"]
    new = [Lattice.from_nbest(["c", "d"], [{"z": 5.0, "y": 2.0}, {"x": 3.0}])]
    found = LatticeModel().bind(new, layout=bound.layout).argmax(np.array([1.0, 10.0]))
    assert found.outputs[0].tolist() == [0] and found.value[0] == 20.0


def test_kinds_of_targets():
    lattice = Lattice(3, [0, 0, 1, 1], [1, 1, 2, 2], np.eye(4), list("abcd"))
    bound = LatticeModel().bind(
        [lattice] * 5, [np.array([1.0, 0.0, 0.5, 3.0]), {0, 3}, [0, 2], [[1, 3], [0, 3]], {0, 1, 2}]
    )
    assert [path.tolist() for path in bound.truth] == [[1, 2], [0, 3], [0, 2], [1, 3], [0, 2]]
    zero = np.zeros(4)
    assert [bound.answer(zero, i, 1.0).cost for i in range(5)] == [3.5, 2.0, 2.0, 1.0, 1.0]


ONE = Lattice.from_nbest(["a", "b"], [[1.0], [2.0]])
LADDER = Lattice(3, [0, 0, 1, 1], [1, 1, 2, 2], np.eye(4), list("abcd"))


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([], None, "X is empty"),
        (ONE, None, "give a list of lattices"),
        ([ONE, 3], None, "example 1 is a int"),
        ([ONE, {"n_nodes": 2}], None, "example 1: "),
        ([{"n_nodes": 3, "tails": [0, 1, 2], "heads": [1, 2, 1], "features": np.eye(3), "words": list("abc")}], None,
         "example 0: arc 1, from 1 to 2, is on a cycle"),
        ([ONE, {"n_nodes": 4, "tails": [0, 2], "heads": [3, 3], "features": np.eye(2), "words": list("ab")}], None,
         "example 1: node 1 cannot be reached from node 0; remove such nodes"),
        ([ONE, LADDER], None, "example 1 has the feature '1', unlike the others"),
        ([LADDER, ONE], None, "example 1 lacks the feature '1'"),
        ([ONE], [np.ones(3)], r"costs of example 0 have shape \(3,\)"),
        ([ONE], [np.array([np.nan, 1.0])], "costs of example 0"),
        ([ONE], [{2}], "good arcs of example 0"),
        ([ONE], [set()], "example 0 has no good path"),
        ([LADDER], [{0, 1}], "example 0 has no good path"),
        ([LADDER], [[0, 1]], "arcs 0, 1 of example 0 are no path"),
        ([LADDER], [[0]], "are no path"),
        ([LADDER], [[[0, 2], [2, 0]]], "arcs 2, 0 of example 0 are no path"),
        ([LADDER], [[0, 9]], "the path of example 0"),
        ([ONE], [None], "the target of example 0 is None"),
        ([ONE], [[0], [1]], "must agree"),
        ([Lattice.from_nbest(["a"], [{}])], None, "no features"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(X, Y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LatticeModel().bind(X, Y)


def test_outputs_that_are_not_there_are_named():
    bound = LatticeModel().bind([LADDER], [[0, 2]])
    assert bound.codes(0, "b d").tolist() == [1, 3]
    with pytest.raises(ValueError, match="example 0: no path says 'b b'"):
        bound.codes(0, "b b")


def test_fits_by_arcs_reach_their_tolerance():
    X, Y = sample(n=12)
    svm = mm.StructuredSVM(LatticeModel(), C=1.0, tol=1e-4).fit(X, Y)
    assert svm.certificate_.relative_gap <= 1e-4
