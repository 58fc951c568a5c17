"""The proximal point method for L1 penalties against the linear program over all outputs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers.column_generation import ColumnState
from maxmargin.solvers.recentred_dual import MANY
from maxmargin.solvers.recentred_engine import RecentredState
from reference.linear_programs import check_solution, lp_optimum, unit
from reference.problems import chain_planes, multiclass_planes, random_cost_matrix
from reference.stopping import StopAfter, spoilt_checkpoint

CHAIN = mm.Chain(classes=[0, 1, 2])


def learnable_chains(n=12, K=3, F=4, seed=0):
    """Features that tell the label of most tokens."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, K, rng.integers(2, 4)) for _ in range(n)]
    return [np.eye(K, F)[y] + 0.4 * rng.normal(size=(len(y), F)) for y in Y], [y.tolist() for y in Y]


def optimum(X, Y, C, rescaling="unit", positive=None):
    """Over all outputs, by a general solver."""
    every = chain_planes(X, [np.array(y) for y in Y], 3, **({} if rescaling == "unit" else {"rescaling": rescaling}))
    planes = every.planes
    if rescaling == "unit":
        planes = [unit(A, costs) for (A, _), costs in zip(every.planes, every.costs, strict=True)]
    return lp_optimum(planes, C, None if positive is None else np.ones(21, bool))


def fitted(X, Y, fit=None, **parameters):
    given = {"penalty": "l1", "C": 2.0, "tol": 1e-6, "solver": "recentred_dual", "random_state": 0, **parameters}
    return mm.StructuredSVM(CHAIN, **given).fit(X, Y, **(fit or {}))


@pytest.mark.parametrize("rescaling", ["unit", "margin", "slack"])
@pytest.mark.parametrize("positive", [None, True])
def test_the_optimum_over_all_outputs_and_bounds_around_it_at_every_look(rescaling, positive):
    for seed in range(3):
        X, Y = learnable_chains(seed=seed)
        svm = fitted(X, Y, rescaling=rescaling, positive=positive)
        check_solution(svm, optimum(X, Y, 2.0, rescaling, positive))
        assert svm.state_.touched[svm.weights_ != 0].all()


@pytest.mark.parametrize("C", [1e-3, 0.05, 0.5, 30.0])
def test_small_and_large_C(C):
    """From no weights at all to no training error."""
    X, Y = learnable_chains(seed=7)
    svm = fitted(X, Y, C=C)
    assert svm.certificate_.primal == pytest.approx(optimum(X, Y, C), rel=1e-6)
    assert svm.weights_.any() == (C > 0.1)


@pytest.mark.parametrize("solver", [mm.RecentredDual(scale=0.05), mm.RecentredDual(scale=5.0, visits=1.0)], ids=repr)
def test_the_scale_changes_the_way_and_not_the_end(solver):
    X, Y = learnable_chains(seed=5)
    assert fitted(X, Y, solver=solver).certificate_.primal == pytest.approx(optimum(X, Y, 2.0), rel=1e-6)


def test_units_of_the_features_do_not_matter():
    """Features times s and C divided by s: the same problem in other units, and hence the same number of passes."""
    X, Y = learnable_chains(n=30, seed=3)
    model = mm.MulticlassClassifier(
        penalty="l1", solver="recentred_dual", fit_intercept=False, random_state=0, tol=1e-4
    )
    tokens, labels = np.vstack(X), np.concatenate(Y)
    one, other = model.set_params(C=1.0).fit(tokens, labels), None
    passes, weights = one.n_iter_, one.weights_.copy()
    other = model.set_params(C=1.0 / 1024).fit(tokens * 1024, labels)
    assert other.n_iter_ == passes
    np.testing.assert_allclose(other.weights_ * 1024, weights, rtol=1e-9)


def test_classes_with_costs_and_sample_weights():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 30)
    X, cost = np.eye(4, 6)[y] + 0.5 * rng.normal(size=(30, 6)), random_cost_matrix(4, seed=1)
    weight = rng.choice([0.0, 0.5, 2.0], 30)
    model = mm.Multiclass(cost=cost, fit_intercept=False, classes=[0, 1, 2, 3])
    svm = mm.StructuredSVM(model, penalty="l1", tol=1e-6, solver="recentred_dual", rescaling="margin")
    svm.fit(X, y, sample_weight=weight)
    best = lp_optimum(multiclass_planes(X, y, 4, cost=cost).planes, weight)
    assert svm.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("after", [1, 4])
def test_a_resumed_run_goes_on_as_if_nothing_had_happened(after):
    X, Y = learnable_chains(seed=2)
    whole, stop = fitted(X, Y), StopAfter(after)
    with pytest.warns(match="callback"):
        fitted(X, Y, callbacks=[stop])
    resumed = fitted(X, Y, fit={"resume": stop.arrays})
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert list(resumed.history_["primal"]) == list(whole.history_["primal"])


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("inner/set/b", lambda b: b + 1.0, "checkpoint"),
        ("proof/linear", lambda linear: 2.0 * linear, "above the losses"),
        ("proof/u", lambda u: 0.5 * u, "above the losses|is proven"),
        ("counts", lambda counts: counts * [1.0, 2.0], "above the losses"),
        ("best", lambda w: 2.0 * w, "primal"),
        ("recentred_numbers", lambda x: np.where(np.arange(len(x)) == 0, -1.0, x), "scale"),
        ("centre", lambda w: w[:-1], "another problem"),
        ("touched", lambda touched: touched.astype(float), "touched"),
    ],
)
def test_changed_checkpoints_are_refused(name, change, told):
    X, Y = learnable_chains(seed=2)
    arrays = spoilt_checkpoint(partial(fitted, X, Y), 4, name, change)
    with pytest.raises(ValueError, match=told):
        fitted(X, Y, fit={"resume": arrays})


def test_a_warm_start_at_another_C_takes_fewer_passes():
    X, Y = learnable_chains(n=40, seed=3)
    svm = fitted(X, Y, C=1.0, tol=1e-3, warm_start=True)
    cold = fitted(X, Y, C=1.1, tol=1e-3)
    svm.set_params(C=1.1).fit(X, Y)
    assert svm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-3)
    assert svm.n_iter_ <= cold.n_iter_
    svm.fit(X, Y)
    assert svm.n_iter_ == 1  # nothing is left to do
    with pytest.raises(ValueError, match="warm start"):
        svm.set_params(rescaling="margin").fit(X, Y)
    svm.set_params(rescaling=None, solver="column_generation").fit(X, Y)  # goes on with the rows,
    with pytest.raises(ValueError, match="same family"):
        svm.set_params(solver="recentred_dual").fit(X, Y)  # but not back


def test_the_best_weights_of_a_run_that_ends_early_are_kept():
    X, Y = learnable_chains(n=20, seed=4)
    with pytest.warns(match="max_passes"):
        svm = fitted(X, Y, max_passes=9)
    assert svm.certificate_.primal == min(svm.history_["primal"])
    problem = svm.state_.problem
    losses = problem.oracle.planes(svm.weights_, np.arange(20)).losses(20)
    assert problem.primal(svm.weights_, losses) == pytest.approx(svm.certificate_.primal, rel=1e-12)


def test_auto_chooses_by_the_number_of_examples():
    X, Y = learnable_chains(n=MANY, seed=1)
    many, few = (fitted(X[:n], Y[:n], solver="auto", tol=1e-2).state_ for n in (MANY, MANY - 1))
    assert isinstance(many, RecentredState) and isinstance(few, ColumnState)


def test_solver_objects_travel_with_a_model(tmp_path):
    X, Y = learnable_chains()
    solver = mm.RecentredDual(scale=0.2, cached_passes=3)
    mm.SequenceTagger(penalty="l1", solver=solver).fit(X, Y).save(tmp_path / "tagger.mm")
    assert repr(mm.load(tmp_path / "tagger.mm").solver) == repr(solver)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"penalty": "l2"}, "recentred_dual"),
        ({"solver": mm.RecentredDual(scale=0.0)}, "scale must be"),
        ({"solver": mm.RecentredDual(scale="two")}, "scale must be"),
        ({"solver": mm.RecentredDual(max_steps=0)}, "max_steps must be a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, told):
    X, Y = learnable_chains(n=3)
    with pytest.raises(ValueError, match=told):
        fitted(X, Y, **parameters)
