"""Ramp losses against enumeration: their bounds, their planes, and the convex problems above them."""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny
from estimators.plain_chain import PlainChain
from maxmargin.formulations.ramp import RAMPS
from maxmargin.models.user import PythonModel
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from reference.problems import chain_planes, multiclass_planes, random_chains, random_cost_matrix, random_multiclass
from reference.ramp import linear_term, parts, ramp_objective

EVERY = [*RAMPS, (2.0, -0.5), (0.7, -3.0)]


def name(ramp):
    return ramp if isinstance(ramp, str) else "({:g}, {:g})".format(*ramp)


def cost_weights(ramp):
    return {"cost_diminished": (1, -1), "best_output": (1, 0), "cost_diminished_vs_best": (0, -1)}.get(name(ramp), ramp)


def problem_of(tiny, ramp):
    return mm.Ramp(ramp).problem(
        tiny.bound, C=tiny.C, sample_weight=tiny.sample_weight, positive=tiny.positive if tiny.signed else None
    )


def bounds_of(oracle, w):
    """The value of an oracle's part, an entry an example."""
    planes = oracle.planes(w, np.arange(oracle.n_examples))
    values = np.zeros(oracle.n_examples)
    values[planes.example] = planes.bound
    return values


def tied(seed):
    """A problem of small whole numbers, in which almost everything ties, as (bound model, planes, weights)."""
    rng = np.random.default_rng(seed)
    K, cost = 3, random_cost_matrix(3, seed=seed, integer=True) if seed % 2 else "hamming"
    options = {"cost": cost, "classes": list(range(K))}
    if seed % 3:
        X, y = random_chains(4, K, 2, lengths=(1, 3), seed=seed, integer=True)
        planes = chain_planes(X, y, K, cost=cost).planes
        bound = mm.Chain(**options).bind(X, [labels.tolist() for labels in y])
    else:
        X, y = random_multiclass(4, K, 2, seed=seed)
        X = np.round(X)
        planes = multiclass_planes(X, y, K, cost=cost).planes
        bound = mm.Multiclass(**options).bind(X, y.tolist())
    return bound, planes, rng.integers(-1, 2, planes[0][0].shape[1]).astype(float)


@pytest.mark.parametrize("ramp", EVERY, ids=name)
def test_values_and_bounds(ramp):
    """Between (lam+ - lam-) cost(y-) and (lam+ - lam-) cost(y+), whichever of the outputs that tie is meant."""
    above, below = cost_weights(ramp)
    strict = 0
    for seed in range(60):
        if seed % 2:
            bound, planes, w = tied(seed)
        else:
            tiny = Tiny(["chain", "multiclass"][seed % 4 // 2], cost="matrix" if seed % 8 else "hamming", seed=seed)
            bound, planes = tiny.bound, tiny.planes
            w = np.random.default_rng(seed).normal(size=planes[0][0].shape[1]) * 10 ** (seed % 5 - 2.0)
        problem = mm.Ramp(ramp).problem(bound)
        ramps = bounds_of(problem.convex.oracle, w) - bounds_of(problem.concave, w)
        assert ramps == pytest.approx(parts(planes, w, above) - parts(planes, w, below), abs=1e-9)
        for value, (psi, cost) in zip(ramps, planes, strict=True):
            convex, concave = above * cost - psi @ w, below * cost - psi @ w
            high = (above - below) * cost[convex >= convex.max() - 1e-12]
            low = (above - below) * cost[concave >= concave.max() - 1e-12]
            assert low.max() - 1e-9 <= value <= high.min() + 1e-9
            strict += low.max() < value < high.min()
        assert (ramps >= -1e-12).all()
        assert (ramps <= (above - below) * np.array([cost.max() for _, cost in planes]) + 1e-9).all()
    assert strict > 0, "the bounds were attained everywhere, which proves little"


@pytest.mark.parametrize("ramp", EVERY, ids=name)
def test_the_majorant_touches_and_lies_above(ramp):
    above, below = cost_weights(ramp)
    apart = 0.0
    for kind, weighted, seed in product(["chain", "multiclass"], [False, True], range(4)):
        tiny = Tiny(kind, cost="matrix" if seed % 2 else "hamming", weighted=weighted, C=0.8, seed=seed)
        problem, rng = problem_of(tiny, ramp), np.random.default_rng(seed)
        here = 2.0 * rng.normal(size=problem.convex.n_columns)
        majorant = problem.majorant(problem.linearise(here))
        for w in [here, 0 * here, -here, *(here + 10**k * rng.normal(size=len(here)) for k in (-3, -1, 0, 1))]:
            value = majorant.primal(w, bounds_of(majorant.oracle, w))
            J = ramp_objective(tiny.planes, tiny.example_weight, w, above, below)
            assert value >= J - 1e-9 * max(1.0, abs(J))
            if w is here:
                assert value == pytest.approx(J, rel=1e-12)
            apart = max(apart, value - J)
    assert apart > 1.0, "a majorant that is J everywhere would be no test"


@pytest.mark.parametrize("ramp", EVERY, ids=name)
@pytest.mark.parametrize("weighted", [False, True])
def test_linearise(ramp, weighted):
    """The planes of the best outputs, found by enumeration; where several tie, a plane of one of them."""
    _, below = cost_weights(ramp)
    sizes = set()
    for kind, seed in product(["chain", "multiclass"], range(6)):
        tiny = Tiny(kind, cost="matrix" if seed % 2 else "hamming", weighted=weighted, C=1.7, seed=seed)
        problem = problem_of(tiny, ramp)
        w = np.random.default_rng(seed).normal(size=problem.convex.n_columns)
        found = problem.linearise(w)
        best = [int((below * cost - psi @ w).argmax()) for psi, cost in tiny.planes]
        v, offset = linear_term(tiny.planes, tiny.example_weight, best, below)
        assert found.term.shift == pytest.approx(v, abs=1e-12)
        assert found.term.offset == pytest.approx(offset, abs=1e-12)
        assert found.value == pytest.approx(tiny.example_weight @ parts(tiny.planes, w, below), rel=1e-12)
        positive = (parts(tiny.planes, w, below) > 1e-12) & (tiny.example_weight > 0)
        assert found.term.planes.example.tolist() == np.flatnonzero(positive).tolist()
        for a, i in zip(found.term.planes.to_csr().toarray(), found.term.planes.example, strict=True):
            assert a == pytest.approx(tiny.planes[i][0][best[i]], abs=1e-12)
        sizes.add(len(found))
    assert len(sizes) > 1


@pytest.mark.parametrize("ramp", EVERY, ids=name)
def test_linearise_where_outputs_tie(ramp):
    """Any of the tied planes will do, but the value is one and the true output counts as nothing."""
    _, below = cost_weights(ramp)
    for seed in range(40):
        bound, planes, w = tied(seed)
        problem = mm.Ramp(ramp).problem(bound, C=0.5)
        found = problem.linearise(w)
        values = parts(planes, w, below)
        assert found.value == pytest.approx(0.5 * values.sum(), abs=1e-12)
        assert found.term.planes.example.tolist() == np.flatnonzero(values > 1e-12).tolist()
        planes_found = found.term.planes
        for a, b, i in zip(planes_found.to_csr().toarray(), planes_found.b, planes_found.example, strict=True):
            psi, cost = planes[i]
            best = below * cost - psi @ w >= values[i] - 1e-12
            assert (np.abs(psi[best] - a).max(axis=1) + np.abs(below * cost[best] - b) <= 1e-12).any()
        assert found.term.offset + w @ found.term.shift == pytest.approx(-found.value, abs=1e-12)


@pytest.mark.parametrize("ramp", EVERY, ids=name)
def test_nothing_is_subtracted_at_zero_weights(ramp):
    """All outputs tie with the true one there, also those that cost nothing: the first round is convex."""
    for seed in range(12):
        bound, planes, _ = tied(seed)
        problem = mm.Ramp(ramp).problem(bound)
        at_zero, none = problem.linearise(np.zeros(planes[0][0].shape[1])), problem.none()
        for found in (at_zero, none):
            assert len(found) == found.term.offset == found.value == 0
            assert found.term.shift.shape == (planes[0][0].shape[1],) and not found.term.shift.any()


def test_the_third_ramp_is_least_at_zero_weights():
    """It is never negative and 0 at w = 0: only a start from a model makes sense for it."""
    above, below = RAMPS["cost_diminished_vs_best"]
    for seed in range(10):
        tiny = Tiny(seed=seed, cost="matrix")
        w = np.random.default_rng(seed).normal(size=tiny.planes[0][0].shape[1])
        assert ramp_objective(tiny.planes, tiny.example_weight, 0 * w, above, below) == 0
        assert ramp_objective(tiny.planes, tiny.example_weight, w, above, below) >= 0.5 * w @ w - 1e-12


def test_bounded_where_the_hinge_is_not():
    """The further off the label, the larger the hinge; the ramp stays at twice the cost, exactly."""
    bound = mm.Multiclass(classes=[0, 1]).bind(np.array([[1.0]]), [0])
    problem = mm.Ramp().problem(bound)
    for margin in (0.0, -0.5, -1.0, -3.0, -1e6):
        w = np.array([margin, 0.0])
        hinge, concave = (bounds_of(oracle, w)[0] for oracle in (problem.convex.oracle, problem.concave))
        assert hinge == 1.0 - margin
        assert hinge - concave == pytest.approx(min(1.0 - margin, 2.0), rel=1e-9)


def test_a_model_in_plain_python_gives_the_same_planes():
    X, y = random_chains(6, 3, 2, lengths=(1, 4), seed=3)
    y = [labels.tolist() for labels in y]
    for ramp, seed in product(RAMPS, range(3)):
        compiled = mm.Ramp(ramp).problem(mm.Chain(classes=[0, 1, 2]).bind(X, y), C=2.0)
        plain = mm.Ramp(ramp).problem(PythonModel(PlainChain(3)).bind(X, y), C=2.0)
        w = np.random.default_rng(seed).normal(size=compiled.convex.n_columns)
        one, other = compiled.linearise(w), plain.linearise(w)
        assert len(one) == len(other) > 0
        assert one.term.shift == pytest.approx(other.term.shift, abs=1e-12)
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert one.term.offset == pytest.approx(other.term.offset, abs=1e-12)


class Rough(PlainChain):
    """A search that may miss the maximum, and says so."""

    exact = False


def test_a_rough_argmax_still_gives_a_majorant():
    """What is subtracted must be reached, not only bounded from above: no bound of r_i is known, its plane is."""
    X, y = random_chains(4, 3, 2, lengths=(1, 3), seed=0)
    planes = chain_planes(X, y, 3).planes
    problem = mm.Ramp().problem(PythonModel(Rough(3)).bind(X, [labels.tolist() for labels in y]))
    w = 2.0 * np.random.default_rng(0).normal(size=problem.convex.n_columns)
    found = problem.linearise(w)
    assert found.value == pytest.approx(parts(planes, w, -1.0).sum(), rel=1e-12)
    assert found.term.planes.example.tolist() == np.flatnonzero(parts(planes, w, -1.0) > 1e-12).tolist()


class Relaxed(CountingOracle):
    """Planes of outputs that may be second best, with an upper bound of the best: what a relaxation gives."""

    def planes(self, w, examples, most=1):
        rng = np.random.default_rng(zlib.crc32(w.tobytes()))
        best, other = self.oracle.planes(w, examples), self.oracle.planes(w + rng.normal(size=len(w)), examples)
        rows = np.where(rng.random(len(best)) < 0.5, np.arange(len(best)), len(best) + np.arange(len(other)))
        return replace(Planes.concatenate([best, other]).take(rows), bound=best.bound + 0.3)


def test_an_argmax_with_a_bound_still_gives_a_majorant():
    """The bound of r_i must not be subtracted; and planes known to be better than what is found are kept."""
    worse = 0
    for seed in range(20):
        tiny = Tiny("chain", C=1.5, seed=seed)
        problem, rng = mm.Ramp().problem(tiny.bound, C=tiny.C), np.random.default_rng(seed)
        rough = replace(problem, concave=Relaxed(problem.concave))
        w = 2.0 * rng.normal(size=problem.convex.n_columns)
        first = rough.linearise(w)
        exact = tiny.example_weight @ parts(tiny.planes, w, -1.0)
        assert first.value <= exact + 1e-12
        assert first.term.offset + w @ first.term.shift == pytest.approx(-first.value, abs=1e-10)
        worse += first.value < exact - 1e-9
        there = w + 0.3 * rng.normal(size=len(w))
        second = rough.linearise(there, first.term.planes)
        assert second.value >= -(first.term.offset + there @ first.term.shift) - 1e-10
        assert second.term.planes.example.tolist() == sorted(set(second.term.planes.example.tolist()))
        assert second.term.offset + there @ second.term.shift == pytest.approx(-second.value, abs=1e-10)
    assert worse > 5, "the relaxation found all maxima, which proves nothing"


def test_a_graph_with_frustrated_cycles():
    """Messages give labels and a bound above them; junction trees know the truth."""
    rng, n = np.random.default_rng(0), 7
    edges = np.array([(i, j) for i in range(n) for j in range(i)])
    X = [{"node": rng.normal(size=(n, 2)), "edges": edges, "edge": rng.normal(size=(len(edges), 2))} for _ in range(4)]
    Y = [rng.integers(0, 3, n).tolist() for _ in X]
    exact, rough = (
        mm.Ramp().problem(mm.Graph(**options).bind(X, Y))
        for options in ({"method": "junction_tree"}, {"method": "trws", "message_passes": 2})
    )
    for seed in range(5):
        w = 2.0 * np.random.default_rng(seed).normal(size=exact.convex.n_columns)
        bound = bounds_of(rough.concave, w).sum()
        assert rough.linearise(w).value <= exact.linearise(w).value + 1e-9 < bound


def test_planes_can_be_taken_in_any_order():
    planes = Tiny("chain", n=6).bound
    planes = mm.Ramp().problem(planes).convex.oracle.planes(np.ones(planes.n_weights), np.arange(6))
    rows = np.array([4, 0, 0, 5])
    taken = planes.take(rows)
    assert np.array_equal(taken.to_csr().toarray(), planes.to_csr().toarray()[rows])
    for name in ("b", "example", "bound"):
        assert np.array_equal(getattr(taken, name), getattr(planes, name)[rows])
    assert len(planes.take(rows[:0])) == 0


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ramp",
    ["hinge", "", None, 1.0, (1.0,), (1.0, -1.0, 0.0), (0.0, 0.0), (-1.0, -2.0), (1.0, 0.5), (np.nan, -1.0),
     (np.inf, 0.0), ("a", "b"), [None, None]],
    ids=repr,
)  # fmt: skip
def test_what_is_not_a_ramp(ramp):
    message = r"ramp must be one of cost_diminished, best_output, cost_diminished_vs_best, or a pair of cost weights"
    with pytest.raises(ValueError, match=message):
        mm.Ramp(ramp).problem(Tiny().bound)
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(loss=mm.Ramp(ramp)).fit([np.ones((2, 1))], [["a", "b"]])


def test_pairs_of_any_kind_are_understood():
    for ramp in ((1, 0), [1.0, -1.0], np.array([0.5, -0.5])):
        assert mm.Ramp(ramp).cost_weights() == tuple(ramp)


@pytest.mark.parametrize("C", [-1.0, np.nan, np.inf, "1"])
def test_bad_weight_of_the_losses(C):
    with pytest.raises(ValueError, match=r"C must be a finite number >= 0"):
        mm.Ramp().problem(Tiny().bound, C=C)


def test_bad_sample_weights_and_signs():
    bound = Tiny(n=3).bound
    with pytest.raises(ValueError, match=r"sample_weight of example 1 is -1.0"):
        mm.Ramp().problem(bound, sample_weight=np.array([1.0, -1.0, 1.0]))
    with pytest.raises(ValueError, match=r"positive must have one entry per weight"):
        mm.Ramp().problem(bound, positive=np.ones(2, bool))
