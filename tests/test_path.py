"""The regularisation path: every claimed bound against the true optimum, and no oracle call between the fits."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.certificate import Certificate
from maxmargin.estimators.path import largest_step, scaled_bound
from reference.problems import chain_planes, random_chains, random_multiclass
from reference.qp import objective, solve_primal

X, Y = random_chains(8, 3, 2, lengths=(1, 4), seed=5)
PLANES = chain_planes(X, Y, 3).planes


class Counted:
    """Multiclass in plain Python, counting its argmax calls."""

    def __init__(self):
        self.calls = 0

    def n_weights(self, X, Y):
        return 2 * 3

    def joint_features(self, x, y):
        table = np.zeros((2, 3))
        table[:, y] = x
        return table.ravel()

    def cost(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        self.calls += 1
        scores = np.asarray(x) @ w.reshape(2, 3)
        return int((scores if y_true is None else scores + cost_weight * (np.arange(3) != y_true)).argmax())


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("positive", [None, ["transition"]])
@pytest.mark.parametrize("tol", [0.3, 0.05])
def test_every_bound_on_the_path_holds(tol, positive, rescaling):
    planes = chain_planes(X, Y, 3, rescaling=rescaling).planes
    estimator = mm.SequenceTagger(positive=positive, rescaling=rescaling)
    path = mm.regularisation_path(estimator, X, Y, C_min=0.05, C_max=2.0, tol=tol)
    assert path.points[0].C == 0.05 and path.points[-1].C_until == 2.0
    for left, right in zip(path.points, path.points[1:], strict=False):
        assert left.C < left.C_until == right.C
    sign = None if positive is None else np.r_[np.zeros(6, bool), np.ones(9, bool)]
    for C in np.geomspace(0.05, 2.0, 25):
        weights, certificate = path.at(C)
        best = solve_primal(planes, C, positive=sign).objective
        assert certificate.relative_gap <= tol * (1 + 1e-9)
        assert certificate.dual <= best * (1 + 1e-8)  # a bound from below
        value = objective(planes, C, weights)
        assert value <= certificate.primal * (1 + 1e-9)  # what is claimed of these weights is true of them
        assert value <= best / (1 - tol) * (1 + 1e-8)
        if sign is not None:
            assert (weights[sign] >= 0).all()


def test_fits_on_the_path_are_cold_fits():
    path = mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=0.1, C_max=1.0, tol=0.1)
    for point in path.points:
        cold = mm.SequenceTagger(C=point.C, tol=1e-8).fit(X, Y).certificate_.primal
        assert point.certificate.dual <= cold * (1 + 1e-9)
        assert cold * (1 - 1e-9) <= point.certificate.primal <= cold * (1 + 0.03 / 0.97 + 1e-9)
    assert path.passes == pytest.approx(sum(point.passes for point in path.points))


def test_the_path_asks_nothing_between_fits_and_leaves_the_estimator_alone():
    inputs, labels = random_multiclass(12, 3, 2, seed=0)
    model = Counted()
    estimator = mm.StructuredSVM(model, C=7.0)
    path = mm.regularisation_path(estimator, list(inputs), labels.tolist(), C_min=0.1, C_max=1.0, tol=0.2)
    assert not hasattr(estimator, "weights_") and estimator.C == 7.0
    models = [model, estimator.model]
    calls = [m.calls for m in models]
    for C in np.linspace(0.1, 1.0, 7):
        path.at(C)
    assert [m.calls for m in models] == calls
    assert path.passes < 100


def test_sample_weights_travel_along():
    weight = np.linspace(0.5, 1.5, len(X))
    path = mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=0.1, C_max=0.5, tol=0.1, sample_weight=weight)
    for C in (0.1, 0.3, 0.5):
        best = solve_primal(PLANES, C * weight).objective
        _, certificate = path.at(C)
        assert certificate.dual <= best * (1 + 1e-8) and best <= certificate.primal * (1 + 1e-8)


def test_a_single_value_of_C():
    path = mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=0.3, C_max=0.3, tol=0.1)
    assert len(path.points) == 1
    assert path.at(0.3)[1].relative_gap <= 0.1


def test_steps_are_as_long_as_the_bound_allows():
    certificate = Certificate(1.01, 1.0)
    step = largest_step(certificate, linear=1.5, tol=0.1)
    assert step > 1.0
    for rho, holds in ((step, True), (1.001 * step, False)):
        dual, gap = scaled_bound(certificate, 1.5, rho)
        assert (gap <= 0.1 * dual) is holds
    assert largest_step(Certificate(0.0, 0.0), linear=0.0, tol=0.1) > 1e5  # nothing to learn at any C


def test_refused():
    with pytest.raises(ValueError, match=r"need 0 < C_min <= C_max, got 0 and 1"):
        mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=0, C_max=1)
    with pytest.raises(ValueError, match=r"tol must be between 0 and 1, got 0"):
        mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=1, C_max=2, tol=0)
    with pytest.raises(ValueError, match=r'needs loss="hinge"; for other losses fit with warm_start=True'):
        mm.regularisation_path(mm.SequenceTagger(loss="squared_hinge"), X, Y, C_min=1, C_max=2)
    squared = mm.StructuredSVM(mm.Chain(), formulation=mm.MarginRescaling("squared_hinge"))
    with pytest.raises(ValueError, match=r'needs loss="hinge"'):
        mm.regularisation_path(squared, X, Y, C_min=1, C_max=2)
    path = mm.regularisation_path(mm.SequenceTagger(), X, Y, C_min=0.1, C_max=0.2, tol=0.2)
    with pytest.raises(ValueError, match=r"goes from C = 0.1 to 0.2; C = 0.3 is outside"):
        path.at(0.3)


@pytest.mark.parametrize("solver", ["simplicial", "sequential_dual", "bcfw"])
def test_paths_of_other_solvers(solver):
    estimator = mm.SequenceTagger(solver=solver, max_passes=50_000)
    path = mm.regularisation_path(estimator, X, Y, C_min=0.1, C_max=0.4, tol=0.3)
    for C in (0.1, 0.2, 0.4):
        weights, certificate = path.at(C)
        best = solve_primal(PLANES, C).objective
        assert certificate.dual <= best * (1 + 1e-8) and certificate.relative_gap <= 0.3 * (1 + 1e-9)
        assert objective(PLANES, C, weights) <= certificate.primal * (1 + 1e-9)


def test_solvers_without_multipliers_are_refused():
    with pytest.raises(ValueError, match=r"the path needs multipliers, which solver='perceptron' does not have"):
        mm.regularisation_path(mm.SequenceTagger(solver="perceptron"), X, Y, C_min=1, C_max=1)


@pytest.mark.found("B8")
@pytest.mark.parametrize("solver", ["perceptron", "mira", "sgd", "pegasos", mm.Pegasos(), mm.MIRA()])
def test_the_primal_family_is_refused_before_the_first_fit(solver):
    class NoFit(mm.SequenceTagger):
        def fit(self, *examples, **more):
            raise AssertionError

    with pytest.raises(ValueError, match=r"cannot at another C; got solver=.*, use \"auto\""):
        mm.regularisation_path(NoFit(solver=solver), X, Y, C_min=0.1, C_max=1)


@pytest.mark.parametrize("solver", ["frank_wolfe", "cutting_plane"])
def test_sums_over_all_examples_go_on_at_another_C_too(solver):
    path = mm.regularisation_path(
        mm.SequenceTagger(solver=solver, max_passes=50_000), X, Y, C_min=0.1, C_max=4.0, tol=0.3
    )
    for C in (0.1, 0.7, 4.0):
        weights, certificate = path.at(C)
        assert certificate.relative_gap <= 0.3
        assert objective(PLANES, C, weights) <= certificate.primal * (1 + 1e-9)


def test_solvers_that_cannot_change_C_are_refused():
    estimator = mm.SequenceTagger(solver="sgd", max_passes=50_000)
    assert mm.regularisation_path(estimator, X, Y, C_min=0.1, C_max=0.1, tol=0.5).at(0.1)[1].relative_gap <= 0.5
    with pytest.raises(ValueError, match=r"cannot at another C; got solver='sgd', use \"auto\""):
        mm.regularisation_path(estimator, X, Y, C_min=0.1, C_max=4.0, tol=0.3)
