"""The primal family as runs: saving and resuming, plain-Python models, warm starts, ends, wrong settings."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.saved import SaveSecond
from agreement.tiny import Tiny, best
from estimators.plain_chain import PlainChain
from maxmargin.solvers import primal_kernel as pk
from maxmargin.solvers.driver import run
from maxmargin.solvers.presets import solver_for
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PROBLEMS = [Tiny("chain", cost="matrix", C=1.0, seed=1), Tiny("chain", cost="matrix", weighted=True, C=0.3, seed=2)]


def started(solver, problem, seed=7):
    engine = solver.engine(problem, seed)
    return engine, engine.init(problem)


SAVED = {
    "pegasos": mm.Pegasos(certificate_every=3.0),
    "pegasos, projected, tail": mm.Pegasos(project=True, averaging="tail", certificate_every=1.0),
    "pegasos, random": mm.Pegasos(sampling="random", averaging="weighted", certificate_every=2.0),
    "sgd": mm.SGD("power", certificate_every=3.0),
    "perceptron": mm.Perceptron(),
    "mira": mm.MIRA(averaging="weighted"),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_state_goes_through_arrays_at_any_point(name, loss, signed):
    problem = replace(PROBLEMS[1], loss=loss, signed=signed).problem()
    engine, state = started(SAVED[name], problem)
    twins = []
    for _ in range(9):
        engine.step(state)
        twins = [engine.from_arrays(problem, twin.to_arrays()) for twin in twins]
        expected = engine.certificate(state)
        for twin in twins:
            engine.step(twin)
            assert np.array_equal(engine.weights(twin), engine.weights(state))
            assert engine.certificate(twin) == expected
            assert (twin.oracle_calls, twin.passes, twin.clean) == (state.oracle_calls, state.passes, state.clean)
        twins.append(engine.from_arrays(problem, state.to_arrays()))
        assert all(not array.dtype.hasobject for array in state.to_arrays().values())


def test_states_of_other_problems_are_refused():
    tiny = PROBLEMS[0]
    engine, state = started(mm.Pegasos(), tiny.problem())
    arrays = state.to_arrays()
    for other in (replace(tiny, C=2.0), replace(tiny, seed=5), replace(tiny, F=3), replace(tiny, cost="hamming")):
        with pytest.raises(ValueError, match="the saved state belongs to another problem"):
            engine.from_arrays(other.problem(), arrays)
        with pytest.raises(ValueError, match="warm start needs the same examples"):
            engine.init(other.problem(), warm=state)


def test_an_average_that_the_solver_does_not_make_is_refused():
    problem = PROBLEMS[0].problem()
    engine, state = started(mm.Pegasos(averaging=None), problem)
    arrays = state.to_arrays()
    arrays["numbers"] = arrays["numbers"].copy()
    arrays["numbers"][pk.RHO] = 3.0
    with pytest.raises(ValueError, match=r"numbers .*has an average, and this solver makes none"):
        engine.from_arrays(problem, arrays)


@pytest.mark.parametrize("name", [name for name in SAVED if name not in ("perceptron", "mira")])
def test_resumed_fits_are_unbroken_ones(name, tmp_path):
    X, y = random_chains(20, 3, 3, lengths=(1, 5), seed=0)
    options = {"solver": SAVED[name], "max_passes": 25, "tol": 1e-9, "random_state": 4}
    whole = mm.SequenceTagger(**options, callbacks=[SaveSecond(tmp_path / "run")]).fit(X, y)
    resumed = mm.SequenceTagger(**options).fit(X, y, resume=tmp_path / "run")
    assert np.array_equal(whole.weights_, resumed.weights_)
    assert whole.certificate_ == resumed.certificate_
    assert whole.oracle_calls_ == resumed.oracle_calls_


@pytest.mark.parametrize("positive", [None, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", SAVED)
def test_plain_python_models_take_the_same_steps(name, loss, positive):
    X, y = random_chains(8, 3, 2, lengths=(1, 4), seed=2)
    y = [labels.tolist() for labels in y]
    options = {"solver": SAVED[name], "loss": loss, "C": 0.05, "max_passes": 12, "tol": 0.0, "random_state": 1}
    options["positive"] = positive
    plain = mm.StructuredSVM(PlainChain(3), **options).fit(X, y)
    compiled = mm.StructuredSVM(mm.Chain(classes=[0, 1, 2]), **options).fit(X, y)
    assert compiled.weights_ == pytest.approx(plain.weights_, abs=1e-9)
    assert compiled.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-9)
    assert compiled.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-9)
    assert compiled.oracle_calls_ == plain.oracle_calls_


def test_plain_python_models_take_the_same_ramp_steps():
    X, y = random_chains(8, 3, 2, lengths=(1, 4), seed=2)
    y = [labels.tolist() for labels in y]
    options = {"solver": mm.Pegasos(project=True), "loss": mm.Ramp(passes_per_round=5), "max_passes": 50, "tol": 0.0}
    plain = mm.StructuredSVM(PlainChain(3), **options).fit(X, y)
    compiled = mm.StructuredSVM(mm.Chain(classes=[0, 1, 2]), **options).fit(X, y)
    assert compiled.weights_ == pytest.approx(plain.weights_, abs=1e-9)
    assert len(plain.rounds_) > 1 and np.allclose(plain.rounds_, compiled.rounds_)


@pytest.mark.parametrize(("before", "after"), list(product([None, "uniform", "tail"], repeat=2)), ids=str)
def test_warm_starts_carry_on(before, after):
    """From the weights and the step sizes of the earlier run, whatever either of them averages."""
    tiny = PROBLEMS[0]
    problem = tiny.problem()
    engine, state = started(mm.Pegasos(averaging=before), problem)
    for _ in range(20):
        engine.step(state)
    last = np.array(state.vector[: problem.n_weights] * state.numbers[0])
    other = mm.Pegasos(averaging=after).engine(problem, 1)
    warm = other.init(problem, warm=state)
    assert np.isfinite(other.weights(warm)).all()
    other.step(warm)
    moved = np.array(warm.vector[: problem.n_weights] * warm.numbers[0])
    assert 0 < np.abs(moved - last).max() <= 0.1 * (1 + np.abs(last).max())  # small steps, from where the old run stood
    certificate = other.certificate(warm).check()
    assert certificate.dual <= best(tiny).objective * (1 + 1e-7)
    assert certificate.primal >= best(tiny).objective * (1 - 1e-7)


# --- when it ends, and what is refused ------------------------------------------------------------------------------


def test_methods_without_an_objective_end_after_their_passes():
    problem = PROBLEMS[0].problem()
    for solver in (mm.Perceptron(passes=4), mm.MIRA(passes=4)):
        result = run(solver.engine(problem, 0), problem, tol=0.0, max_passes=100)
        assert result.status.code == "finished"
        assert result.state.passes == 4
        assert result.state.oracle_calls == 5 * problem.n_examples  # and one certificate
        assert "4" in result.status.sentence or "finished" in result.status.sentence.lower()


def test_finished_fits_do_not_warn(recwarn):
    X, y = random_chains(10, 3, 3, lengths=(1, 4), seed=0)
    tagger = mm.SequenceTagger(solver=mm.Perceptron(passes=3)).fit(X, y)
    assert tagger.status_.code == "finished"
    assert not [w for w in recwarn if "Convergence" in w.category.__name__]


def test_no_weight_at_all():
    """C = 0, or weights that are all zero: nothing moves, and w = 0 is the optimum."""
    for tiny in (Tiny(C=0.0), Tiny(loss="squared_hinge", C=0.0)):
        problem = tiny.problem()
        for solver in (mm.Pegasos(project=True), mm.SGD(), mm.Perceptron(), mm.MIRA()):
            result = run(solver.engine(problem, 0), problem, tol=1e-3, max_passes=5)
            assert not result.weights.any()
            assert result.certificate.primal == result.certificate.dual == 0


REFUSED = {
    "eta0": (lambda: mm.SGD("constant", eta0=0.0), r"eta0 must be positive: steps of size 0 learn nothing"),
    "negative eta0": (lambda: mm.SGD(eta0=-1.0), r"eta0 must be a finite number >= 0, got -1.0"),
    "t0": (lambda: mm.SGD(t0=np.inf), r"t0 must be a finite number >= 0, got inf"),
    "power": (lambda: mm.SGD("power", power=np.nan), r"power must be a finite number >= 0, got nan"),
    "schedule": (lambda: mm.SGD("cosine"), r"""schedule must be "inverse", "constant" or "power", got 'cosine'"""),
    "sampling": (lambda: mm.Pegasos(sampling="gap"), r'sampling must be "permutation" or "random", got \'gap\''),
    "averaging": (
        lambda: mm.Pegasos(averaging="late"),
        r'averaging must be None, "uniform", "weighted" or "tail", got',
    ),
    "certificates": (lambda: mm.Pegasos(certificate_every=0), r"certificate_every must be a positive number, got 0"),
    "no passes": (lambda: mm.Perceptron(passes=0), r"passes must be a positive number, got 0"),
    "no passes, mira": (lambda: mm.MIRA(passes=0), r"passes must be a positive number, got 0"),
    "negative passes": (lambda: mm.MIRA(passes=-3), r"passes must be a positive number, got -3"),
    "passes in words": (lambda: mm.Perceptron(passes="ten"), r"passes must be a positive number, got 'ten'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_settings(what):
    make, message = REFUSED[what]
    X, y = random_chains(4, 3, 2, seed=0)
    with pytest.raises(ValueError, match=message):
        mm.SequenceTagger(solver=make()).fit(X, y)


@pytest.mark.parametrize("name", ["pegasos", "sgd", "perceptron", "mira"])
def test_signs_are_kept(name):
    """In fits, and in streams of examples."""
    X, y = random_chains(12, 3, 2, seed=0)
    kept = mm.SequenceTagger(solver=name, positive=["transition"], max_passes=30).fit(X, y)
    assert (kept.transition_ >= 0).all() and kept.transition_.any()
    assert (mm.SequenceTagger(solver=name, max_passes=30).fit(X, y).transition_ < 0).any()
    stream = mm.SequenceTagger(solver=name, positive=["transition"])
    for part in (slice(0, 6), slice(6, 12)):
        stream.partial_fit(X[part], y[part], classes=kept.classes_)
        assert (stream.transition_ >= 0).all()
    assert (stream.coef_ < 0).any()


def test_names_and_rules():
    X, y = random_chains(4, 3, 2, seed=0)
    problem = mm.MarginRescaling().problem(mm.Chain().bind(X, y))
    assert isinstance(solver_for("pegasos", problem), mm.Pegasos) and isinstance(solver_for("mira", problem), mm.MIRA)
    with pytest.raises(ValueError, match=r"solver must be one of .*pegasos, sgd, perceptron, mira"):
        solver_for("adam", problem)
    with pytest.raises(TypeError, match=r"the class Pegasos: write Pegasos\(\)"):
        solver_for(mm.Pegasos, problem)
