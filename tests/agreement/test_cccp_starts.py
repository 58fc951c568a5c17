"""Where ramp fits begin: at zero weights, from a hinge fit, a model, an array, or an earlier ramp fit."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from agreement.ramped import COST_WEIGHTS, EVERY, J, cccp, next_minimum, ramp_problem, solve_ramp
from agreement.tiny import Tiny, best
from maxmargin import SimplicialDecomposition as Simplicial
from maxmargin.solvers.driver import run

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("ramp", COST_WEIGHTS)
@pytest.mark.parametrize("name", ["auto", "sequential", "one", "bcfw", "pegasos"])
def test_never_above_the_start(name, ramp):
    """From the hinge solution and from anywhere, with any budget."""
    tiny = Tiny("chain", C=3.0, seed=4)
    hinge = best(tiny).weights
    for start, passes in product([hinge, np.random.default_rng(1).normal(size=len(hinge))], [3, 9, 40]):
        result = solve_ramp(tiny, EVERY[name], ramp, start=start, max_passes=passes)
        assert result.certificate.primal == pytest.approx(J(tiny, result.weights, ramp), rel=1e-9, abs=1e-12)
        assert result.certificate.primal <= J(tiny, start, ramp) * (1 + 1e-9)


@pytest.mark.parametrize("ramp", COST_WEIGHTS)
def test_the_first_round_linearises_at_the_start(ramp):
    tiny = Tiny("chain", C=3.0, seed=4)
    _, below = COST_WEIGHTS[ramp]
    start = 2.0 * np.random.default_rng(3).normal(size=tiny.planes[0][0].shape[1])
    concave = sum((below * cost - psi @ start).max() > 1e-12 for psi, cost in tiny.planes)
    assert concave > 0
    result = solve_ramp(tiny, mm.Auto(), ramp, start=start, max_rounds=1)
    assert result.state.rounds[0]["concave"] == concave
    # a round solved to the end is the minimum of the majorant at the start
    problem = ramp_problem(tiny, ramp)
    solver = cccp(Simplicial("product"), problem, start=start, max_rounds=1, passes_per_round=40.0)
    state = run(solver, problem, tol=0.0, max_passes=60).state
    assert solver.inner.weights(state.inner) == pytest.approx(next_minimum(tiny, start, ramp).weights, abs=1e-4)


@pytest.mark.parametrize("name", ["auto", "one"])
def test_a_start_is_brought_to_the_signs_that_weights_must_have(name):
    """J of weights that are not allowed may lie below all that are: the run would end there, or nowhere."""
    tiny = Tiny("chain", signed=True, C=3.0, seed=4)
    start = best(Tiny("chain", C=3.0, seed=4)).weights
    assert (start[tiny.positive] < -1e-3).any()
    for passes in (4, 3000):
        result = solve_ramp(tiny, EVERY[name], "cost_diminished", start=start, max_passes=passes)
        assert (result.weights[tiny.positive] >= 0).all()
    assert result.status.code == "converged"
    assert J(tiny, result.weights, "cost_diminished") <= J(
        tiny, np.where(tiny.positive, np.maximum(start, 0.0), start), "cost_diminished"
    )


X = [np.array([[1.0, 0.2], [0.1, 1.0], [0.9, -0.3]]), np.array([[-0.2, 1.1], [1.2, 0.0]])] * 4
Y = [["a", "b", "a"], ["b", "a"]] * 3 + [["b", "a", "b"], ["a", "b"]]  # the last two are wrong
TAGGER = {"C": 2.0, "loss": "ramp", "tol": 1e-7}


@pytest.mark.parametrize("solver", ["auto", "sequential_dual", "cutting_plane", "simplicial"])
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
def test_starts_of_an_estimator(solver, ramp):
    options = TAGGER | {"solver": solver, "loss": mm.Ramp(ramp)}
    hinge = mm.SequenceTagger(**options | {"loss": "hinge"}).fit(X, Y)
    fits = {
        "zero": mm.SequenceTagger(**options).fit(X, Y),
        "hinge": mm.SequenceTagger(**options | {"loss": mm.Ramp(ramp, start="hinge")}).fit(X, Y),
        "model": mm.SequenceTagger(**options | {"loss": mm.Ramp(ramp, start=hinge)}).fit(X, Y),
        "array": mm.SequenceTagger(**options | {"loss": mm.Ramp(ramp, start=hinge.weights_)}).fit(X, Y),
    }
    for fit in fits.values():
        assert fit.status_.code == "converged"
        assert fit.predict(X)[-2:] == [["a", "b", "a"], ["b", "a"]]  # it saw through the wrong labels
    assert np.array_equal(fits["model"].weights_, fits["array"].weights_)
    assert fits["hinge"].weights_ == pytest.approx(fits["array"].weights_, abs=1e-3)
    assert not hasattr(hinge, "rounds_") and len(fits["hinge"].rounds_) >= 1


def test_a_zero_start_is_a_hinge_fit_at_first():
    tiny = Tiny("chain", C=3.0, seed=4)
    for ramp in ("cost_diminished", "best_output"):
        problem = ramp_problem(tiny, ramp)
        solver = cccp(Simplicial("product"), problem, max_rounds=1, passes_per_round=40.0)
        state = run(solver, problem, tol=0.0, max_passes=60).state
        assert solver.inner.weights(state.inner) == pytest.approx(best(tiny).weights, abs=1e-4)


OTHER = {
    "a word": ("warm", r'start must be "zero", "hinge", a fitted estimator or an array; got \'warm\''),
    "other shape": (np.zeros(3), r"weights of shape \(3,\), these examples need \(8,\): it was trained on"),
    "a number": (1.0, r'start must be "zero", "hinge", a fitted estimator or an array; got 1.0'),
    "nothing": (None, r'start must be "zero", "hinge", a fitted estimator or an array; got None'),
    "NaN": (np.full(8, np.nan), r"the start model has weights that are not finite numbers"),
    "rubbish": (object(), r'start must be "zero", "hinge", a fitted estimator or an array'),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHER)
def test_starts_that_are_refused(what):
    start, message = OTHER[what]
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=start)}).fit(X, Y)


def test_start_models_that_are_refused():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=mm.SequenceTagger())}).fit(X, Y)
    others = mm.SequenceTagger().fit(X, [[label.upper() for label in labels] for labels in Y])
    with pytest.raises(ValueError, match=r"the start model has other labels .*'A'.* than the examples .*'a'"):
        mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=others)}).fit(X, Y)
    wider = mm.SequenceTagger().fit([np.hstack([x, x]) for x in X], Y)
    with pytest.raises(ValueError, match=r"weights of shape \(12,\), these examples need \(8,\)"):
        mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=wider)}).fit(X, Y)


def test_a_start_model_with_as_many_other_features_is_refused():
    """The weights would fit in number only."""
    labels = [["p", "q", "p"], ["q", "p"]]
    first = mm.SequenceTagger().fit([["a", "b", "c"], ["b", "a"]], labels)
    with pytest.raises(ValueError, match="the start model was trained on other features than these examples have"):
        mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=first)}).fit([["x", "y", "z"], ["y", "x"]], labels)
    mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=first)}).fit([["a", "b", "c"], ["b", "a"]], labels)


def test_a_start_model_stays_fitted_in_copies():
    """scikit-learn's searches copy estimators, and unfit what is inside them."""
    first = mm.SequenceTagger(max_passes=2).fit(X, Y)
    ramp = mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=first)})
    twin = clone(ramp)
    assert twin.loss.start is first and twin is not ramp
    assert np.array_equal(twin.fit(X, Y).weights_, ramp.fit(X, Y).weights_)
    assert len(mm.audit(mm.SequenceTagger(**TAGGER | {"loss": mm.Ramp(start=first)}), X, Y, cv=2)) == len(X)


@pytest.mark.parametrize("solver", ["auto", "sequential_dual", "pegasos"])
def test_a_warm_start_goes_on_where_the_fit_ended(solver):
    """Nothing is left to do, so little happens; and J does not rise."""
    tol = 0.1 if solver == "pegasos" else 1e-6
    fit = mm.SequenceTagger(**TAGGER | {"tol": tol}, solver=solver, warm_start=True, max_passes=3000).fit(X, Y)
    assert fit.status_.code == "converged"
    weights, value = fit.weights_.copy(), fit.certificate_.primal
    fit.fit(X, Y)
    assert fit.certificate_.primal <= value * (1 + 1e-9)
    assert fit.n_iter_ <= 15
    if solver != "pegasos":  # whose steps have no end
        assert fit.weights_ == pytest.approx(weights, abs=1e-4)


def test_warm_starts_between_losses_and_families():
    """Either it works, or a sentence says what to do."""
    for solver, loss in product(["auto", "pegasos"], ["hinge", "ramp"]):
        fit = mm.SequenceTagger(C=2.0, loss=loss, solver=solver, tol=0.1, warm_start=True, max_passes=2000).fit(X, Y)
        for after in ({"loss": "ramp"}, {"loss": "hinge"}, {"solver": "bcfw"}, {"solver": mm.SGD(averaging=None)}):
            again = mm.SequenceTagger(**fit.get_params() | after)
            again.state_ = fit.state_
            try:
                again.fit(X, Y)
            except ValueError as error:
                assert "warm start needs" in str(error)
            else:
                assert again.certificate_.primal <= fit.certificate_.primal * 1.5 + 20
