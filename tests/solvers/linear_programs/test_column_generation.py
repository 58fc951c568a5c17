"""Column generation against the linear program over all outputs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.driver import run
from maxmargin.solvers.linear_programs.highs import Highs, MasterError
from maxmargin.solvers.linear_programs.masters import AutoMaster
from maxmargin.solvers.linear_programs.program import Basis, Point, Program
from reference.linear_programs import check_solution, lp_optimum, unit
from reference.problems import chain_planes, multiclass_planes, random_cost_matrix
from reference.stopping import StopAfter, spoilt_checkpoint

CHAIN = mm.Chain(classes=[0, 1, 2])


def learnable_chains(n=8, K=3, F=4, seed=0, lengths=(2, 3)):
    """Features that tell the label of most tokens."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, K, rng.integers(lengths[0], lengths[1] + 1)) for _ in range(n)]
    return [np.eye(K, F)[y] + 0.4 * rng.normal(size=(len(y), F)) for y in Y], Y


def rows_of(X, Y, rescaling):
    if rescaling != "unit":
        return chain_planes(X, Y, 3, rescaling=rescaling).planes
    every = chain_planes(X, Y, 3)
    return [unit(A, costs) for (A, _), costs in zip(every.planes, every.costs, strict=True)]


def fitted(X, Y, **parameters):
    svm = mm.StructuredSVM(CHAIN, **{"penalty": "l1", "C": 2.0, "tol": 1e-7, **parameters})
    return svm.fit(X, [y.tolist() for y in Y])


@pytest.mark.parametrize("rescaling", ["unit", "margin", "slack"])
@pytest.mark.parametrize("positive", [None, True])
def test_the_optimum_over_all_outputs_and_bounds_around_it_at_every_round(rescaling, positive):
    for seed in range(3):
        X, Y = learnable_chains(seed=seed)
        best = lp_optimum(rows_of(X, Y, rescaling), 2.0, None if positive is None else np.ones(21, bool))
        check_solution(fitted(X, Y, rescaling=rescaling, positive=positive), best)


@pytest.mark.parametrize(
    "solver",
    [
        ColumnGeneration("highs"), ColumnGeneration(Highs("ipm")), ColumnGeneration("primal_dual"),
        ColumnGeneration("extragradient"), ColumnGeneration(start="ones"), ColumnGeneration(pricing=False),
        ColumnGeneration(rows=1, patience=0), ColumnGeneration(start=np.linspace(-1.0, 1.0, 21)),
    ],
    ids=repr,
)  # fmt: skip
def test_all_masters_and_settings_agree(solver):
    X, Y = learnable_chains(seed=5)
    svm = fitted(X, Y, solver=solver)
    assert svm.certificate_.primal == pytest.approx(lp_optimum(rows_of(X, Y, "unit"), 2.0), rel=2e-7)


def test_classes_with_costs_and_sample_weights():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 30)
    X, cost = np.eye(4, 6)[y] + 0.5 * rng.normal(size=(30, 6)), random_cost_matrix(4, seed=1)
    weight = rng.choice([0.0, 0.5, 2.0], 30)
    svm = mm.StructuredSVM(mm.Multiclass(cost=cost, fit_intercept=False, classes=[0, 1, 2, 3]), penalty="l1", tol=1e-8)
    svm.set_params(rescaling="margin").fit(X, y, sample_weight=weight)
    assert svm.certificate_.primal == pytest.approx(
        lp_optimum(multiclass_planes(X, y, 4, cost=cost).planes, weight), rel=1e-7
    )


@pytest.mark.parametrize("after", [1, 3])
def test_a_resumed_run_goes_on_as_if_nothing_had_happened(after):
    X, Y = learnable_chains(seed=2)
    whole = fitted(X, Y)
    stop = StopAfter(after)
    with pytest.warns(match="callback"):
        fitted(X, Y, callbacks=[stop])
    resumed = mm.StructuredSVM(CHAIN, penalty="l1", C=2.0, tol=1e-7).fit(X, [y.tolist() for y in Y], resume=stop.arrays)
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert list(resumed.history_["primal"]) == list(whole.history_["primal"])
    assert list(resumed.rounds_["rows"]) == list(whole.rounds_["rows"])


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("rows/b", lambda b: b + 1.0, "above what the example can lose"),
        ("proof", lambda proof: 100.0 * proof, "not feasible"),
        ("alpha", lambda alpha: alpha - 1.0, "alpha"),
        ("rows/indices", lambda at: at + 1000, "indices"),
        ("w", lambda w: w[:-1], "another problem"),
    ],
)
def test_changed_checkpoints_are_refused(name, change, told):
    X, Y = learnable_chains(seed=2)
    arrays = spoilt_checkpoint(partial(fitted, X, Y), 3, name, change)
    with pytest.raises(ValueError, match=told):
        mm.StructuredSVM(CHAIN, penalty="l1", C=2.0, tol=1e-7).fit(X, [y.tolist() for y in Y], resume=arrays)


def test_a_warm_start_at_another_C_takes_fewer_rounds():
    X, Y = learnable_chains(n=20, seed=3)
    Y = [y.tolist() for y in Y]
    svm = mm.StructuredSVM(CHAIN, penalty="l1", C=1.0, tol=1e-6, warm_start=True).fit(X, Y)
    cold = mm.StructuredSVM(CHAIN, penalty="l1", C=1.2, tol=1e-6).fit(X, Y)
    svm.set_params(C=1.2).fit(X, Y)
    assert svm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)
    assert svm.n_iter_ < cold.n_iter_
    with pytest.raises(ValueError, match="warm start"):
        svm.set_params(rescaling="margin").fit(X, Y)


@pytest.mark.parametrize("master", ["auto", Highs("simplex"), Highs("ipm"), "primal_dual", "extragradient"], ids=repr)
def test_column_generation_goes_on_where_a_recentred_dual_has_stopped(master):
    X, Y = learnable_chains(n=20, seed=3)
    svm = fitted(X, Y, solver=mm.RecentredDual(), tol=0.05, random_state=0)
    stopped = svm.certificate_.primal
    svm.set_params(solver=ColumnGeneration(master), tol=1e-6, warm_start=True, random_state=None)
    svm.fit(X, [y.tolist() for y in Y])
    assert svm.history_["primal"].iloc[0] == pytest.approx(stopped, rel=1e-9)  # begins with its weights,
    assert svm.history_["dual"].iloc[0] > 0.5 * stopped  # and what its rows prove
    best = lp_optimum(rows_of(X, Y, "unit"), 2.0)
    assert svm.certificate_.primal == pytest.approx(best, rel=1e-6) and svm.status_.converged
    assert (svm.history_["dual"] <= best * (1 + 1e-9)).all()
    svm.set_params(C=3.0).fit(X, [y.tolist() for y in Y])
    assert svm.certificate_.primal == pytest.approx(lp_optimum(rows_of(X, Y, "unit"), 3.0), rel=1e-6)


def test_other_families_of_states_are_refused():
    X, Y = learnable_chains(n=5)
    svm = fitted(X, Y, penalty="l2", rescaling="unit", tol=1e-2)
    with pytest.raises(ValueError, match="warm start"):
        svm.set_params(penalty="l1", warm_start=True).fit(X, [y.tolist() for y in Y])


def test_weights_to_begin_with_are_never_made_worse():
    """Where the objective rises on the way to the weights of a master, the oracle is asked nearer to the best ones."""
    X, Y = learnable_chains(n=20, seed=9)
    near = fitted(X, Y, tol=1e-3)
    with pytest.warns(match="max_passes"):
        svm = fitted(X, Y, solver=ColumnGeneration(Highs("simplex"), start=near.weights_), tol=1e-9, max_passes=3)
    assert svm.certificate_.primal <= near.certificate_.primal * (1 + 1e-12)
    rounds, primal = svm.rounds_, svm.history_["primal"].to_numpy()
    again = np.flatnonzero(np.diff(rounds["masters"]) == 0) + 1  # looks without a new master
    assert primal[0] == pytest.approx(near.certificate_.primal) and (primal[again] < primal[again - 1]).all()


def test_the_best_weights_of_a_run_that_ends_early_are_kept():
    X, Y = learnable_chains(n=20, seed=4)
    with pytest.warns(match="max_passes"):
        svm = fitted(X, Y, max_passes=4)
    assert svm.certificate_.primal == min(svm.history_["primal"])
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(CHAIN.bind(X, [y.tolist() for y in Y]), C=2.0)
    losses = problem.oracle.planes(svm.weights_, np.arange(20)).losses(20)
    assert problem.primal(svm.weights_, losses) == pytest.approx(svm.certificate_.primal, rel=1e-12)


def test_rows_without_multipliers_leave_and_few_columns_take_part():
    X, Y = learnable_chains(n=30, F=40, seed=6)
    svm = fitted(X, Y, solver=ColumnGeneration(patience=1), C=0.5)
    kept = fitted(X, Y, solver=ColumnGeneration(patience=1000), C=0.5)
    assert svm.rounds_["rows"].iloc[-1] < kept.rounds_["rows"].iloc[-1]
    assert svm.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=1e-6)
    assert svm.rounds_["columns"].iloc[-1] < 0.7 * len(svm.weights_)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"loss": "squared_hinge"}, "squared slacks"),
        ({"loss": "ramp"}, "ramp"),
        ({"penalty": "l0"}, 'penalty must be "l2" or "l1"'),
        ({"solver": "bcfw"}, r'penalty="l1".*solver="bcfw" does not offer; use solver="column_generation"'),
        ({"solver": ColumnGeneration("simplex")}, "master must be one of"),
        ({"solver": ColumnGeneration(rows=0)}, "rows must be a whole number"),
        ({"solver": ColumnGeneration(start="two")}, "start must be"),
        ({"solver": ColumnGeneration(start=np.zeros(4))}, "start must have 21 finite weights"),
        ({"penalty": "l2", "solver": "column_generation"}, "column_generation"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, told):
    X, Y = learnable_chains(n=3)
    with pytest.raises(ValueError, match=told):
        fitted(X, Y, **parameters)


# --- HiGHS ------------------------------------------------------------------------------------------------------------


def small_program(scale=1.0):
    A = sp.csr_array(scale * np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    return Program(A, np.ones(3), np.array([0, 1, 1]), np.array([1.0, 2.0]))


@pytest.mark.parametrize("method", ["auto", "simplex", "ipm"])
def test_highs_without_highspy_goes_through_scipy(monkeypatch, method):
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    program = small_program()
    point = Highs(method).solve(program, Point(np.zeros(3), np.zeros(3)), 1e-7)
    assert program.bounds(point).relative_gap <= 1e-7


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(ImportError, match="pip install highspy"):
        Highs("pdlp").solve(small_program(), Point(np.zeros(3), np.zeros(3)), 1e-7)


def test_the_word_of_highs_is_not_taken(monkeypatch):
    """A warm simplex that says "optimal" at a point that is not: the program is solved again, cold."""
    from maxmargin.solvers.linear_programs import highs

    program, asked, honest = small_program(), [], highs._run

    def lying(program, start, method, *settings):
        asked.append((method, start is not None))
        return (
            (Point(np.zeros(3), np.zeros(3)), "Optimal")
            if start is not None
            else honest(program, start, method, *settings)
        )

    monkeypatch.setattr(highs, "_run", lying)
    point = Highs().solve(program, Point(np.ones(3), np.full(3, 0.1)), 1e-7)
    assert program.bounds(point).relative_gap <= 1e-7
    assert asked == [("simplex", True), ("simplex", False)]


@pytest.mark.parametrize("word", ["Infeasible", "Unbounded"])
def test_a_program_that_no_method_solves_is_an_error_with_a_remedy(monkeypatch, word):
    from maxmargin.solvers.linear_programs import highs

    monkeypatch.setattr(highs, "_run", lambda *_: (None, word))
    with pytest.raises(MasterError, match=rf"3 rows and 3 weights \(simplex: {word}; .*Scale the features"):
        Highs().solve(small_program(), Point(np.zeros(3), np.zeros(3)), 1e-7)


def test_highs_that_has_no_time_gives_back_what_it_knows(monkeypatch):
    program, start = small_program(), Point(np.full(3, 0.3), np.full(3, 0.1))
    point = Highs(max_seconds=1e-9).solve(program, start, 1e-9)
    assert program.bounds(point).relative_gap <= program.bounds(start).relative_gap
    with pytest.raises(ValueError, match="max_seconds must be"):
        Highs(max_seconds=0.0).solve(program, start, 1e-9)


def test_a_step_solves_one_master_so_that_budgets_are_looked_at_between_them():
    X, Y = learnable_chains(n=30, F=40, seed=6)
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(CHAIN.bind(X, [y.tolist() for y in Y]), C=0.5)
    engine = ColumnGeneration().engine(problem)
    state = engine.init(problem)
    while engine.certificate(state).relative_gap > 1e-4:
        before = state.masters
        engine.step(state)
        assert state.masters <= before + 1


def test_masters_are_no_finer_than_the_gap_asks_while_rows_or_columns_join():
    X, Y = learnable_chains(n=30, F=40, seed=6)
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(CHAIN.bind(X, [y.tolist() for y in Y]), C=0.5)
    engine = ColumnGeneration(patience=1000).engine(problem)
    state, gap, sizes = engine.init(problem), 1.0, None
    while gap > 1e-4:
        gap = min(gap, engine.certificate(state).relative_gap)
        if state.masters == 0 or (len(state.rows), state.columns.sum()) != sizes:
            assert state.tol == pytest.approx(0.1 * gap)
        before = state.masters
        engine.step(state)
        if state.masters > before:
            sizes = len(state.rows), state.columns.sum()


def chains_program(rows):
    """The first rows of a linear program over all outputs."""
    X, Y = learnable_chains(n=12, seed=8)
    parts = rows_of(X, Y, "unit")
    order = np.random.default_rng(0).permutation(sum(len(b) for _, b in parts))[:rows]
    A, owner = np.vstack([A for A, _ in parts])[order], np.repeat(np.arange(12), [len(b) for _, b in parts])[order]
    return Program(sp.csr_array(A), np.ones(len(A)), owner, np.full(12, 2.0))


def test_a_basis_goes_on_when_rows_join(monkeypatch):
    pytest.importorskip("highspy")
    from maxmargin.solvers.linear_programs import masters

    few, many = chains_program(60), chains_program(100)
    point = Highs("simplex").solve(few, Point(np.zeros(21), np.zeros(60)), 1e-9)
    assert point.basis is not None and (point.basis.weights[point.w > 0] == 1).all()
    assert (point.basis.weights[point.w < 0] == -1).all() and point.basis.rows[point.alpha == 0].sum() > 0
    basis = point.basis._replace(rows=np.append(point.basis.rows, np.ones(40, bool)))
    start = Point(point.w, np.append(point.alpha, np.zeros(40)), basis)
    assert many.bounds(start).relative_gap > 1e-3
    cold = Highs("simplex").solve(many, Point(np.zeros(21), np.zeros(100)), 1e-9)
    monkeypatch.setattr(masters, "FEW", 0)
    monkeypatch.setattr(masters, "_primal_dual", None)  # not asked
    again = AutoMaster().solve(many, start, 1e-9)
    assert many.bounds(again).relative_gap <= 1e-9
    assert many.bounds(again).primal == pytest.approx(many.bounds(cold).primal, rel=1e-9)
    assert Highs().go_on(many, start._replace(basis=None), 1e-9) is None


def test_the_automatic_choice_leaves_a_basis_where_it_must_be_exact(monkeypatch):
    pytest.importorskip("highspy")
    from maxmargin.solvers.linear_programs import masters

    monkeypatch.setattr(masters, "FEW", 0)
    few, start = chains_program(60), Point(np.zeros(21), np.zeros(60))
    assert AutoMaster().solve(few, start, 1e-2).basis is None
    exact = AutoMaster().solve(few, start, 1e-6)
    assert exact.basis is not None and few.bounds(exact).relative_gap <= 1e-6
    assert sum(np.count_nonzero(part) for part in exact.basis) == 60  # as many as there are rows


def test_a_basis_that_leads_nowhere_is_left_alone():
    """One that is no basis: it is mended, or another method solves the program."""
    program = chains_program(100)
    wrong = Basis(np.full(21, -1, np.int8), np.zeros(12, bool), np.zeros(100, bool))
    start = Point(np.zeros(21), np.zeros(100), wrong)
    found = Highs().go_on(program, start, 1e-9)
    assert found is None or program.bounds(found).relative_gap <= 1e-9
    assert program.bounds(AutoMaster().solve(program, start, 1e-7)).relative_gap <= 1e-7


def test_the_automatic_choice_ends_with_highs_where_steps_are_too_few(monkeypatch):
    from maxmargin.solvers.linear_programs import masters

    monkeypatch.setattr(masters, "FEW", 0)
    program = small_program()
    point = AutoMaster(max_steps=1).solve(program, Point(np.zeros(3), np.zeros(3)), 1e-9)
    assert program.bounds(point).relative_gap <= 1e-9


def test_the_problem_runs_without_an_estimator():
    X, Y = learnable_chains(n=4)
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(CHAIN.bind(X, [y.tolist() for y in Y]), C=1.0)
    result = run(ColumnGeneration().engine(problem), problem, tol=1e-6)
    assert result.status.converged and problem.traits == {"l1"}
