"""The sequential dual method for sets of labels in trees: projections, optima against the engine of planes, saving."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.formulations import MarginRescaling
from maxmargin.models.label_set import LabelSet
from maxmargin.solvers.driver import run
from maxmargin.solvers.label_dual import LabelDual, LabelEngine, LabelState
from reference.hierarchies import outputs


def problem_of(seed, M=6, n=25, C=0.5, weight=None, **options):
    rng = np.random.default_rng(seed)
    parent = np.array([-1] + [int(rng.integers(-1, k)) for k in range(1, M)])
    sets = outputs([[p] if p >= 0 else [] for p in parent.tolist()], leaves_only=options.get("leaves_only", False))
    X, Y = rng.normal(size=(n, 4)), sets[rng.integers(len(sets), size=n)]
    X[-1] = 0.0
    bound = LabelSet(hierarchy=parent, **options).bind(X, Y)
    return MarginRescaling().problem(bound, C=C, sample_weight=weight), parent, sets, Y


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 9]), st.booleans())
def test_nearest_point_of_the_hull_and_largest_gain(seed, M, integral):
    """The nearest point p to z is where ``(z - p) . (y - p) <= 0`` for all outputs y."""
    problem, parent, sets, Y = problem_of(seed, M, n=3)
    rng, kernel = np.random.default_rng(seed), problem.oracle.fused().kernel
    for i in range(3):
        v = rng.integers(-2, 3, M).astype(float) if integral else rng.normal(size=M)
        work = np.empty(6 * M)
        gain = kernel.labels.excess(kernel.meta, kernel.ints, kernel.floats, i, v.copy(), work)
        assert gain == pytest.approx(((sets - Y[i]) @ v).max(), abs=1e-12)
        moved = v.copy()
        kernel.labels.retreat(kernel.meta, kernel.ints, kernel.floats, i, moved, work)
        p = Y[i] - moved
        assert ((p >= 0.0) & (p <= 1.0)).all() and all(p[k] <= p[q] + 1e-12 for k, q in enumerate(parent) if q >= 0)
        assert ((sets - p) @ (Y[i] + v - p)).max() <= 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cost", ["hamming", {0: 2.0, 3: 0.0}])
def test_agrees_with_the_engine_of_planes(seed, cost):
    """Weights with zeros, costs by label, and an example without features, with and without an intercept."""
    weight = np.random.default_rng(seed).integers(0, 3, 25).astype(float)
    for intercept in (True, False):
        problem, *_ = problem_of(seed, weight=weight, cost=cost, fit_intercept=intercept)
        assert LabelDual.suits(problem)
        found = run(LabelEngine(0), problem, tol=1e-9)
        other = run(mm.Auto().engine(problem, 0), problem, tol=1e-9)
        assert found.certificate.relative_gap <= 1e-9
        np.testing.assert_allclose(found.certificate.dual, other.certificate.dual, rtol=3e-9)
        np.testing.assert_allclose(found.weights, other.weights, atol=2e-4)


def test_a_visit_solves_the_block():
    problem, *_ = problem_of(1, C=5.0)
    engine = LabelEngine(0)
    state = engine.init(problem)
    for i in np.random.default_rng(0).integers(problem.n_examples, size=100):
        engine._sweep(state, np.array([i]), solve=True)
        engine._sweep(state, np.array([i]), solve=False)
        assert state.gap[i] <= 1e-8


def test_it_is_the_default_where_there_is_a_projection():
    _, parent, _, Y = problem_of(2)
    X = np.random.default_rng(0).normal(size=(25, 4))
    model = mm.MultilabelClassifier(hierarchy=parent).fit(X, Y)
    assert isinstance(model.state_, LabelState)
    assert not LabelDual.suits(problem_of(2, leaves_only=True)[0])
    again = mm.MultilabelClassifier(hierarchy=parent, C=2.0, warm_start=True).fit(X, Y)
    assert again.set_params(C=4.0).fit(X, Y).status_.code == "converged"


def test_saved_runs_go_on_and_bad_multipliers_are_refused():
    problem, *_ = problem_of(3, C=2.0)
    engine = LabelEngine(0)
    state = engine.init(problem)
    for _ in range(3):
        engine.step(state)
    arrays = state.to_arrays()
    again = engine.from_arrays(problem, arrays)
    for other in (state, again):
        engine.step(other)
    np.testing.assert_allclose(again.u, state.u, atol=1e-12)
    for change in (3.0, -3.0):
        wrong = {name: array.copy() for name, array in arrays.items()}
        wrong["beta"][0] += change
        with pytest.raises(ValueError, match="multipliers that are not feasible"):
            engine.from_arrays(problem, wrong)
