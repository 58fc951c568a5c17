"""Ramp fits as runs: limits, wrong options, saving and resuming, workers, counted calls."""

from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import (
    CASES,
    EVERY,
    EXACT,
    J,
    cccp,
    grid,
    many,
    next_minimum,
    ramp_problem,
    solve_ramp,
)  # fmt: skip
from agreement.saved import SaveSecond
from agreement.tiny import Tiny, best
from estimators.plain_chain import PlainChain
from maxmargin.solvers.driver import run

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = [np.array([[1.0, 0.2], [0.1, 1.0], [0.9, -0.3]]), np.array([[-0.2, 1.1], [1.2, 0.0]])] * 4
Y = [["a", "b", "a"], ["b", "a"]] * 3 + [["b", "a", "b"], ["a", "b"]]  # the last two are wrong
TAGGER = {"C": 2.0, "loss": "ramp", "tol": 1e-7}


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("name", ["auto", "one", "bcfw", "pegasos"])
def test_most_rounds(name, rounds):
    tiny, ramp = CASES[1]
    result = solve_ramp(tiny, EVERY[name], ramp, tol=0.0, max_rounds=rounds, passes_per_round=2.0)
    assert result.status.code == "max_rounds"
    assert len(result.state.rounds) == rounds
    assert "round" in result.status.sentence


@pytest.mark.parametrize("passes", [2.0, 5.0])
def test_passes_of_a_round(passes):
    """With a look at all examples (two argmax per example) behind them, unless J asks for more."""
    tiny, ramp = CASES[1]
    result = solve_ramp(
        tiny, mm.SequentialDual(certificate_every=1e9), ramp, tol=0.0, max_rounds=5, passes_per_round=passes
    )
    ends = np.array([row["pass"] for row in result.state.rounds])
    lengths = np.diff(ends, prepend=0.0)
    assert (lengths >= passes + 2).all()
    assert (lengths == passes + 2).sum() >= 2


@pytest.mark.parametrize("name", ["auto", "product", "cutting plane, one"])
def test_a_round_that_is_solved_early_does_not_end_the_run(name):
    """More passes a round than its convex problem needs: the next round begins all the same."""
    tiny, ramp = CASES[0]
    result = solve_ramp(tiny, EXACT[name], ramp, passes_per_round=200.0)
    assert result.status.code == "converged", str(result.status)
    assert J(tiny, result.weights, ramp) == pytest.approx(next_minimum(tiny, result.weights, ramp).objective, rel=1e-7)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"loss": mm.Ramp(max_rounds=0)}, r"max_rounds must be a whole number >= 1 or None, got 0"),
        ({"loss": mm.Ramp(max_rounds=-1)}, r"max_rounds must be a whole number >= 1"),
        ({"loss": mm.Ramp(max_rounds=1.5)}, r"max_rounds must be a whole number >= 1 or None, got 1.5"),
        ({"loss": mm.Ramp(passes_per_round=0)}, r"passes_per_round must be a positive number or None, got 0"),
        ({"loss": mm.Ramp(passes_per_round=-2.0)}, r"passes_per_round must be a positive number"),
        ({"loss": mm.Ramp(passes_per_round="all")}, r"passes_per_round must be a positive number or None, got 'all'"),
        ({"max_passes": 0}, r"max_passes must be a positive number"),
        ({"C": -1.0}, r"C must be a finite number >= 0, got -1.0"),
        ({"solver": "perceptron"}, r"ramp"),
        ({"solver": "mira"}, r"ramp"),
    ],
    ids=str,
)
def test_bad_options(option, message):
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(**TAGGER | option).fit(X, Y)


def test_no_weight_at_all():
    result = solve_ramp(Tiny(C=0.0), mm.Auto(), "cost_diminished")
    assert result.certificate.primal == result.certificate.dual == 0 and not result.weights.any()


def test_the_third_ramp_goes_down_to_zero_weights():
    """Its global minimum: from zero it stays there, from elsewhere one round takes it there."""
    tiny = Tiny(seed=4)
    result = solve_ramp(tiny, mm.Auto(), "cost_diminished_vs_best")
    assert result.status.code == "converged" and not result.weights.any()
    assert result.certificate.primal == result.certificate.gap == 0
    following = next_minimum(tiny, best(tiny).weights, "cost_diminished_vs_best")
    assert np.abs(following.weights).max() <= 1e-3


class Save:
    """Keeps the arrays of one certificate."""

    def __init__(self, which):
        self.which, self.arrays = which, None

    def on_begin(self, run):
        pass

    def on_certificate(self, run):
        if len(run.history) == self.which:
            self.arrays = run.to_arrays()

    def on_end(self, run):
        pass


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize(("case", "name"), grid(5))
def test_resumed_runs_are_unbroken_ones(case, name, which):
    tiny, ramp = case
    options = {"tol": 1e-12, "max_passes": 40, "passes_per_round": 4.0, "seed": 3}
    certificates = len(solve_ramp(tiny, EVERY[name], ramp, **options).history)  # some runs end at once, by rounding
    assert certificates > 1, "nothing is left to resume"
    save = Save(min(which, certificates - 1))
    whole = solve_ramp(tiny, EVERY[name], ramp, callbacks=[save], **options)
    assert all(not array.dtype.hasobject for array in save.arrays.values())
    resumed = solve_ramp(tiny, EVERY[name], ramp, resume=save.arrays, **options)
    assert np.array_equal(whole.weights, resumed.weights)
    assert whole.certificate == resumed.certificate
    assert whole.state.rounds == resumed.state.rounds
    assert whole.state.oracle_calls == resumed.state.oracle_calls
    for column in ("primal", "dual", "oracle_calls"):
        assert [row[column] for row in whole.history] == [row[column] for row in resumed.history]


@pytest.mark.parametrize("start", ["zero", "hinge"])
@pytest.mark.parametrize("solver", ["auto", "sequential_dual", "pegasos"])
def test_an_estimator_resumes_from_a_file_whatever_its_start(solver, start, tmp_path):
    path = tmp_path / "run"
    X, Y = many(16)
    options = TAGGER | {"solver": solver, "loss": mm.Ramp(start=start), "max_passes": 40, "tol": 1e-12}
    whole = mm.SequenceTagger(**options, callbacks=[SaveSecond(path)]).fit(X, Y)
    resumed = mm.SequenceTagger(**options).fit(X, Y, resume=path)
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert np.array_equal(resumed.rounds_, whole.rounds_)
    assert resumed.certificate_ == whole.certificate_


def test_a_checkpoint_of_another_problem_is_refused():
    one, other = Tiny(C=1.0), Tiny(C=2.0)
    save = Save(1)
    solve_ramp(one, mm.Auto(), "best_output", callbacks=[save], max_passes=20)
    with pytest.raises(ValueError, match="another problem"):
        solve_ramp(other, mm.Auto(), "best_output", resume=save.arrays)


@pytest.mark.parametrize("start", ["zero", "hinge"])
@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "pegasos"])
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
def test_the_number_of_workers_does_not_matter(solver, start, ramp):
    X, Y = many()
    options = {"C": 1.0, "loss": mm.Ramp(ramp, start, max_rounds=3), "solver": solver, "tol": 0.01, "max_passes": 40}
    one, two = (mm.SequenceTagger(**options, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert np.array_equal(one.weights_, two.weights_)
    assert one.rounds_.equals(two.rounds_)


@pytest.mark.parametrize("ramp", ["cost_diminished", "cost_diminished_vs_best"])
def test_the_number_of_processes_does_not_matter(ramp):
    """Models in plain Python run in processes, whose oracles are copies."""
    X, Y = many(20)
    options = {"C": 1.0, "loss": mm.Ramp(ramp, "hinge", max_rounds=3), "tol": 0.01, "max_passes": 20}
    one, two = (mm.StructuredSVM(PlainChain(3), **options, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-9)
    assert np.array_equal(one.weights_, two.weights_)


def test_steps_make_the_calls_they_announce():
    problem = ramp_problem(Tiny(n=6, C=3.0), "best_output")
    for name in ("auto", "sequential", "pegasos"):
        solver = cccp(EVERY[name], problem)
        state = solver.init(problem)
        for _ in range(10):
            if solver.certificate_due(state):
                solver.certificate(state)
            before, announced = state.oracle_calls, solver.step_calls(state)
            solver.step(state)
            assert state.oracle_calls - before + 12 == pytest.approx(announced, abs=1)
            assert state.argmax_calls == state.oracle_calls
            assert state.passes == state.oracle_calls / 6
        assert state.seconds["oracle"] >= 0 and state.seconds["solver"] > 0


@pytest.mark.parametrize("start", ["zero", "hinge", np.ones(18)], ids=["zero", "hinge", "array"])
@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "pegasos"])
def test_every_call_is_counted(solver, start):
    """Those of the hinge fit that a ramp fit starts from, too."""
    X, Y = many(12)
    model, asked = PlainChain(3), []
    argmax = model.argmax
    model.argmax = lambda *args, **options: asked.append(args) or argmax(*args, **options)
    fit = mm.StructuredSVM(model, loss=mm.Ramp(start=start), solver=solver, max_passes=12, tol=1e-9).fit(X, Y)
    assert fit.oracle_calls_ == len(asked)
    assert fit.n_iter_ == len(asked) / 12


def test_a_budget_of_passes_is_kept():
    tiny, ramp = CASES[0]
    for name, passes in product(("auto", "sequential", "pegasos", "cutting plane, one"), (10, 33)):
        problem = ramp_problem(tiny, ramp)
        result = run(cccp(EVERY[name], problem), problem, tol=0.0, max_passes=passes)
        assert result.state.passes <= passes
