"""The ramp of generative models: CCCP round the proximal point method, against enumeration and a conic solver."""

from itertools import pairwise

import numpy as np
import pytest

from maxmargin.formulations.generative import Generative
from maxmargin.formulations.ramp import RAMPS, Ramp
from maxmargin.models.hmm import HMM
from maxmargin.solvers.cccp import CCCP
from maxmargin.solvers.driver import run
from maxmargin.solvers.proximal_point import ProximalPoint
from reference.generative import BLOCKS, SUBSETS, optimum, random_problem
from reference.generative_ramp import anchor, global_minimum, next_minimum, parts, ramp_objective, ramp_problem

EVERY = [*RAMPS, (2.0, -0.5)]
VARIANTS = BLOCKS | {
    "stream": {"blocks": SUBSETS, "visits": 1, "repeats": 2},
    "rules of the paper": {"rule": "paper", "gamma": 0.05, "theta": "newton"},
}


def name(ramp):
    return ramp if isinstance(ramp, str) else "({:g}, {:g})".format(*ramp)


class Case:
    """A random problem of six examples, its ramp objective and its stationary points."""

    def __init__(self, seed, ramp="cost_diminished", C=2.0, pull=0.0, weight=None, **words):
        self.above, self.below = RAMPS.get(ramp, ramp) if isinstance(ramp, str) else ramp
        self.planes, self.c, self.starts = random_problem(seed, **({"n": 6} | words))
        self.weight = np.full(len(self.planes), C) if weight is None else np.asarray(weight, float)
        self.pull = pull
        self.data = self.planes, self.weight, self.c, self.starts

    def problem(self):
        return ramp_problem(*self.data, self.above, self.below, self.pull)

    def J(self, theta):
        return ramp_objective(*self.data, theta, self.above, self.below, self.pull)

    def following(self, theta, ties=1e-9):
        return next_minimum(*self.data, theta, self.above, self.below, self.pull, ties)

    def solve(self, *, tol=1e-6, max_passes=2000, callbacks=(), resume=None, warm=None, options=None, **settings):
        problem = self.problem()
        solver = CCCP(ProximalPoint(**settings).engine(problem.convex, 0), **options or {})
        budgets = {"tol": tol, "max_passes": max_passes}
        return run(solver, problem, **budgets, callbacks=callbacks, resume=resume, warm=warm)

    def check(self, result, tol=1e-6):
        """Converged, honest, feasible, and stationary for someone else."""
        assert result.status.code == "converged", str(result.status)
        theta = result.weights
        J = self.J(theta)
        size = max(1.0, abs(J), abs(self.c @ anchor(self.c, self.starts)))  # of the terms: the conic solver errs by it
        assert result.certificate.primal == pytest.approx(J, rel=1e-9, abs=1e-12)
        value, _ = self.following(theta)
        assert -1e-6 * size <= J - value <= 1.1 * tol * size + 1e-7 * size
        assert result.certificate.dual <= value + 1e-7 * size
        assert (self.problem().convex.regulariser.tables.log_mass(theta) <= 1e-12).all()
        objectives = [row["objective"] for row in result.state.rounds]
        assert all(after <= before + 1e-9 * size for before, after in pairwise(objectives))


class Seen:
    """Keeps weights, values and arrays of every certificate."""

    def __init__(self):
        self.rows = []

    def on_begin(self, run):
        pass

    def on_certificate(self, run):
        self.rows.append((run.weights().copy(), run.certificate, run.to_arrays()))

    def on_end(self, run):
        pass


# --- where it ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp", EVERY, ids=name)
@pytest.mark.parametrize("variant", VARIANTS)
def test_ends_in_a_stationary_point(variant, ramp):
    sizes = set()
    for seed, C in ((0, 0.3), (2, 2.0), (3, 2.0), (4, 0.3)):
        case = Case(seed, ramp, C)
        result = case.solve(**VARIANTS[variant])
        case.check(result)
        sizes.add(int(result.state.rounds[-1]["concave"]))
    assert max(sizes) > 0, "nothing was ever subtracted"


@pytest.mark.parametrize("pull", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("variant", ["whole set", "groups in turn", "product"])
def test_with_a_quadratic_pull(variant, pull):
    for seed in (0, 2, 3):
        case = Case(seed, "cost_diminished", 1.0, pull)
        case.check(case.solve(**VARIANTS[variant]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_stationary_points_of_many_problems(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, rng.integers(1, 5))
    for ramp in EVERY:
        case = Case(seed, ramp, float(10 ** rng.uniform(-2, 1.3)), sizes=sizes, outputs=int(rng.integers(1, 12)))
        for variant in ("whole set", "groups in turn", "product"):
            case.check(case.solve(tol=1e-5, **VARIANTS[variant]), tol=1e-5)


@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
def test_against_the_global_minimum(ramp):
    """3 examples of 4 outputs: all 64 choices of concave outputs, each a convex problem."""
    for seed in (1, 3):
        case = Case(seed, ramp, 1.0, n=3, outputs=3)
        lowest, theta = global_minimum(*case.data, case.above, case.below)
        theta = case.problem().convex.regulariser.tables.feasible(theta)
        assert lowest == pytest.approx(case.J(theta), rel=1e-6, abs=1e-6)
        rng, values = np.random.default_rng(seed), []
        starts = [case.problem().convex.regulariser.tables.normalised(rng.normal(size=len(case.c))) for _ in range(6)]
        for start in [None, *starts]:
            result = case.solve(options={"start": start})
            case.check(result)
            values.append(case.J(result.weights))
        assert min(values) >= lowest - 1e-6
        assert min(values) == pytest.approx(lowest, rel=1e-5, abs=1e-6), "seven starts, and none has found it"
        stayed = case.solve(options={"start": theta})
        assert case.J(stayed.weights) <= lowest + 2e-6


def test_a_ramp_that_never_bends_is_the_hinge():
    """Where no output beats the truth by its cost at the optimum, nothing is subtracted and the answer is convex."""
    case = Case(1, "cost_diminished", 0.3)
    result = case.solve()
    value, theta = optimum(case.planes, case.weight, case.c, case.starts)
    assert not parts(case.planes, theta, case.below).any()
    assert result.certificate.primal == pytest.approx(value, rel=1e-5)
    assert [row["concave"] for row in result.state.rounds] == [0]


# --- on the way -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [None, 1.0, 4.0])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_certificate_is_valid_and_j_never_rises(variant, passes):
    """The primal is J; the dual is below the minimum of the majorant that touches J there."""
    case, seen = Case(3, "cost_diminished"), Seen()
    result = case.solve(callbacks=[seen], max_passes=80, options={"passes_per_round": passes}, **VARIANTS[variant])
    for theta, certificate, _ in seen.rows[:: max(1, len(seen.rows) // 8)]:
        assert certificate.primal == pytest.approx(case.J(theta), rel=1e-9)
        # the conic solver errs by a share of the terms, which are larger than their sum
        size = max(abs(certificate.primal), abs(case.c @ anchor(case.c, case.starts)))
        assert certificate.dual <= case.following(theta)[0] + 1e-5 * size
    objectives = [row["objective"] for row in result.state.rounds]
    assert len(objectives) > (0 if passes is None else 1)
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))
    assert result.certificate.primal <= min(objectives) * (1 + 1e-9)


def test_rounds_say_what_happened():
    case, seen = Case(3, "cost_diminished"), Seen()
    result = case.solve(callbacks=[seen])
    rows = result.state.rounds
    assert [row["round"] for row in rows] == list(range(1, len(rows) + 1)) and len(rows) > 2
    by_value = {certificate.primal: theta for theta, certificate, _ in seen.rows}
    concave = 0  # the first round begins with nothing subtracted
    for row in rows:
        theta = by_value[row["objective"]]
        assert row["concave"] == concave
        concave = int((parts(case.planes, theta, case.below) > 1e-12).sum())
    assert all(before["pass"] < after["pass"] for before, after in pairwise(rows))


def test_the_first_round_is_the_hinge_and_the_second_its_majorant():
    """Rounds solved to the end, each against the conic solver."""
    case = Case(3, "cost_diminished")
    value, theta = optimum(case.planes, case.weight, case.c, case.starts)
    first = case.solve(tol=0.0, max_passes=400, options={"max_rounds": 1, "passes_per_round": 120.0})
    assert first.state.inner.primal == pytest.approx(value, rel=1e-6)
    second = case.solve(tol=0.0, max_passes=400, options={"max_rounds": 1, "passes_per_round": 120.0, "start": theta})
    assert second.state.inner.primal == pytest.approx(case.following(theta, ties=0.0)[0], rel=1e-6)


@pytest.mark.parametrize("variant", ["whole set", "groups in turn", "product"])
def test_never_above_the_start(variant):
    case, rng = Case(3, "best_output"), np.random.default_rng(1)
    tables = case.problem().convex.regulariser.tables
    _, hinge = optimum(case.planes, case.weight, case.c, case.starts)
    for start in (tables.feasible(hinge), np.log(case.c), tables.normalised(2.0 * rng.normal(size=len(case.c)))):
        for passes in (3, 9, 40):
            result = case.solve(max_passes=passes, options={"start": start}, **VARIANTS[variant])
            assert result.certificate.primal == pytest.approx(case.J(result.weights), rel=1e-9)
            assert result.certificate.primal <= case.J(start) * (1 + 1e-9)


def test_no_call_is_made_twice():
    """The concave part is asked once for each theta, and every call is counted."""
    case = Case(3, "cost_diminished")
    problem, asked = case.problem(), []
    planes = problem.concave.planes
    problem.concave.planes = lambda w, examples, most=1: asked.append(w.copy()) or planes(w, examples)
    solver = CCCP(ProximalPoint().engine(problem.convex, 0))
    state = run(solver, problem, tol=1e-6).state
    assert state.concave.oracle_calls == 6 * len(asked)
    assert state.oracle_calls == state.inner.oracle_calls + state.concave.oracle_calls
    assert not any(np.array_equal(a, b) for a, b in pairwise(asked))


@pytest.mark.parametrize("which", [2, 5, 9])
@pytest.mark.parametrize("variant", ["whole set", "groups in turn", "product"])
def test_resumed_runs_are_unbroken_ones(variant, which):
    case, seen = Case(3, "cost_diminished"), Seen()
    options = {"tol": 1e-12, "max_passes": 60, "options": {"passes_per_round": 5.0}}
    whole = case.solve(callbacks=[seen], **options, **VARIANTS[variant])
    assert len(seen.rows) > which
    arrays = seen.rows[which - 1][2]
    assert all(not array.dtype.hasobject for array in arrays.values())
    resumed = case.solve(resume=arrays, **options, **VARIANTS[variant])
    assert np.array_equal(whole.weights, resumed.weights)
    assert whole.certificate == resumed.certificate and whole.state.rounds == resumed.state.rounds
    assert whole.state.oracle_calls == resumed.state.oracle_calls


@pytest.mark.parametrize("variant", ["whole set", "product"])
def test_a_warm_start_at_another_weight_of_the_losses(variant):
    before = Case(3, "cost_diminished", 1.0).solve(**VARIANTS[variant])
    case = Case(3, "cost_diminished", 2.0)
    case.check(case.solve(warm=before.state, **VARIANTS[variant]))
    again = Case(3, "cost_diminished", 1.0).solve(warm=before.state, **VARIANTS[variant])
    assert again.certificate.primal <= before.certificate.primal * (1 + 1e-9)
    assert again.state.passes < before.state.passes


def test_weights_of_zero_and_examples_without_other_outputs():
    planes, c, starts = random_problem(8, n=3)
    planes.append((np.zeros((0, len(c))), np.zeros(0)))  # only the truth
    planes.append((planes[0][0], np.zeros(5)))  # all costs are 0
    for variant in ("whole set", "product"):
        case = Case(8, "cost_diminished", n=3)
        case.planes, case.weight = planes, np.array([1.0, 0.0, 0.5, 1.0, 1.0])
        case.data = planes, case.weight, c, starts
        case.check(case.solve(**VARIANTS[variant]))
    idle = Case(8, "cost_diminished", 0.0)
    np.testing.assert_allclose(idle.solve().weights, np.log(idle.c), atol=1e-9)


def test_a_start_that_is_no_model_is_refused():
    case = Case(0)
    with pytest.raises(ValueError, match=r"no model of log-probabilities: table 2 sums to 4, more than 1"):
        case.solve(options={"start": np.zeros(len(case.c))})
    start = np.log(case.c) + 1e-9  # rounding is not held against it
    case.check(case.solve(options={"start": start}))


def test_the_squared_hinge_has_no_ramp():
    bound = HMM().bind([["a", "b"]], [[0, 1]])
    with pytest.raises(ValueError, match="the ramp is made of the hinge"):
        Ramp(convex=Generative("squared_hinge")).problem(bound)
