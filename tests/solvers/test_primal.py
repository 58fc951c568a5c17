"""The primal family: lazy steps equal naive ones, certificates are proofs, runs can be saved."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import COST_WEIGHTS, J, ramp_problem
from agreement.tiny import Tiny, best, check_certificates
from maxmargin.solvers.driver import run
from reference.ramp import linear_term_at, minimise_majorant
from trajectories.primal import PlainPrimal

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# costs of random matrices, so that no two outputs tie where it matters
PROBLEMS = [
    Tiny("chain", cost="matrix", C=1.0, seed=1),
    Tiny("chain", cost="matrix", weighted=True, C=0.3, seed=2, ends=True),
    Tiny("multiclass", cost="matrix", C=2.0, seed=3),
    Tiny("chain", cost="matrix", signed=True, C=1.0, seed=5),
    Tiny("multiclass", cost="matrix", signed=True, weighted=True, C=2.0, seed=9),
]


def radius(tiny):
    """Of the ball for the hinge; squared slacks: sum C_i L_i^2."""
    largest = np.array([cost.max() for _, cost in tiny.planes])
    return float(np.sqrt(tiny.example_weight @ largest ** (2 if tiny.squared else 1)))


def naive_of(solver, tiny):
    """The same method, dense and step by step."""
    rule = {mm.Perceptron: "perceptron", mm.MIRA: "mira"}.get(type(solver), "subgradient")
    options = {"augmented": getattr(solver, "augmented", rule != "perceptron"), "squared": tiny.squared}
    options["positive"] = tiny.positive
    if getattr(solver, "project", False):
        options["radius"] = radius(tiny)
    if isinstance(solver, mm.SGD):
        options["eta"] = {
            "inverse": lambda t: 1.0 / (t + solver.t0),
            "constant": lambda t: solver.eta0,
            "power": lambda t: solver.eta0 / t**solver.power,
        }[solver.schedule]
    return PlainPrimal(tiny.planes, tiny.example_weight, rule, **options)


def order(solver, rng, n):
    return rng.permutation(n) if solver.sampling == "permutation" else rng.integers(0, n, n)


def started(solver, problem, seed=7):
    engine = solver.engine(problem, seed)
    return engine, engine.init(problem)


def with_average(solver, averaging):
    return type(solver)(**solver.get_params() | {"averaging": averaging})


# --- closed forms -------------------------------------------------------------------------------------------------

PSI = np.array([1.5, -1.5])  # of one example with features 1.5 and one wrong label


def one_example(C, **options):
    bound = mm.Multiclass(classes=[0, 1], **options).bind(np.array([[1.5]]), [0])
    return mm.MarginRescaling().problem(bound, C=C)


@pytest.mark.parametrize("C", [0.05, 0.2])
def test_pegasos_is_exact_where_the_margin_is_never_reached(C):
    """C |psi|^2 < 1: the example violates its margin at every step, so every iterate is C psi, the optimum."""
    problem = one_example(C)
    engine, state = started(mm.Pegasos(), problem)
    for _ in range(5):
        engine.step(state)
        assert engine.weights(state)[:2] == pytest.approx(C * PSI)
        certificate = engine.certificate(state)
        assert certificate.gap == pytest.approx(0.0, abs=1e-14)
        assert certificate.primal == pytest.approx(C - 0.5 * C**2 * PSI @ PSI)


@pytest.mark.parametrize("C", [0.05, 0.2, 1.0, 50.0])
def test_mira_solves_one_example_in_one_step(C):
    """min(C, L / |psi|^2) psi is the optimum of the whole problem."""
    problem = one_example(C, cost=np.array([[0.0, 2.0], [2.0, 0.0]]))
    result = run(mm.MIRA(passes=1).engine(problem, 0), problem, tol=1e-12)
    assert result.weights[:2] == pytest.approx(min(C, 2.0 / (PSI @ PSI)) * PSI)
    assert result.certificate.relative_gap <= 1e-12


def test_mira_ends_when_nothing_is_left_to_mend():
    problem = one_example(50.0)
    engine, state = started(mm.MIRA(passes=9, averaging=None), problem)
    for passes, ended in ((1, None), (2, "finished")):
        engine.step(state)
        assert state.passes == passes and engine.finished(state) == ended


def test_perceptron_on_one_example():
    """One mistake (ties are a mistake here: the wrong label has the smaller code), then none: it ends by itself."""
    bound = mm.Multiclass(classes=[0, 1]).bind(np.array([[1.5]]), [1])
    problem = mm.MarginRescaling().problem(bound, C=1.0)
    result = run(mm.Perceptron(passes=50).engine(problem, 0), problem, tol=0.0)
    assert result.weights[:2] == pytest.approx(-PSI)
    assert result.status.code == "finished" and result.state.passes == 2


# --- step by step -------------------------------------------------------------------------------------------------

SOLVERS = {
    "pegasos": mm.Pegasos(),
    "pegasos, projected": mm.Pegasos(project=True),
    "pegasos, random": mm.Pegasos(sampling="random"),
    "pegasos, projected, random": mm.Pegasos(project=True, sampling="random"),
    "sgd, inverse": mm.SGD(t0=5.0, averaging=None),
    "sgd, constant": mm.SGD("constant", eta0=0.05, averaging=None),
    "sgd, large": mm.SGD("constant", eta0=0.9, averaging=None),  # the scale falls below 1e-6 every few steps
    "sgd, cut": mm.SGD("constant", eta0=3.0, averaging=None),  # cut to 1: only the last plane is left
    "sgd, power": mm.SGD("power", eta0=0.5, power=0.6, averaging=None),
    "perceptron": mm.Perceptron(averaging=None),
    "perceptron, random": mm.Perceptron(averaging=None, sampling="random"),
    "mira": mm.MIRA(averaging=None),
    "mira, predictions": mm.MIRA(augmented=False, averaging=None),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_lazy_steps_equal_naive_ones(tiny, name):
    """The weights after every pass, and all three averages on the way."""
    averages = ("uniform", "weighted", "tail")
    lazy = {rule: started(with_average(SOLVERS[name], rule), tiny.problem()) for rule in (None, *averages)}
    naive, rng = naive_of(SOLVERS[name], tiny), np.random.default_rng(7)
    for _ in range(17):
        for i in order(SOLVERS[name], rng, tiny.n):
            naive.step(i)
        for rule, (engine, state) in lazy.items():
            engine.step(state)
            found = engine.weights(state)
            if rule == "tail":  # the mean of the iterates from some pass on, of the later half of them at least
                ends = range(0, naive.t // 2 + 1, tiny.n)
                means = [naive.cut(np.mean(naive.iterates[first:], axis=0)) for first in ends]
                scale = 1e-9 * (1 + np.abs(found).max())
                assert min(np.abs(mean - found).max() for mean in means) <= scale, f"after {naive.t} steps"
            else:
                assert found == pytest.approx(naive.average(rule), abs=1e-9 * (1 + np.abs(found).max()))
    assert naive.updates > 1


@pytest.mark.parametrize("solver", [mm.SGD("constant", eta0=0.01, averaging=None), mm.SGD(t0=300.0)], ids=str)
@pytest.mark.parametrize("tiny", [replace(tiny, loss="squared_hinge", C=0.05) for tiny in PROBLEMS], ids=str)
def test_steps_of_the_squared_hinge(tiny, solver):
    """The plane times its loss, for steps that are small beside the curvature."""
    engine, state = started(with_average(solver, "weighted"), tiny.problem())
    naive, rng = naive_of(solver, tiny), np.random.default_rng(7)
    for _ in range(10):
        engine.step(state)
        for i in order(solver, rng, tiny.n):
            naive.step(i)
        assert engine.weights(state) == pytest.approx(naive.average("weighted"), abs=1e-9)


@pytest.mark.parametrize("averaging", [None, "uniform", "weighted"])
@pytest.mark.parametrize(
    "name", ["pegasos", "pegasos, projected", "pegasos, random", "sgd, constant", "sgd, large", "sgd, power"]
)
@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
def test_steps_on_the_majorants_of_a_ramp(ramp, name, averaging):
    """Three rounds, each from where the last one ended; steps subtract the concave planes as they add the others."""
    tiny, solver = Tiny("chain", cost="matrix", weighted=True, C=2.0, seed=4), with_average(SOLVERS[name], averaging)
    problem = ramp_problem(tiny, ramp)
    _, below = COST_WEIGHTS[ramp]
    engine, state = started(solver, problem.convex)
    naive, rng = naive_of(solver, tiny), np.random.default_rng(7)
    concave = 0
    for round_ in range(3):
        for _ in range(4):
            engine.step(state)
            for i in order(solver, rng, tiny.n):
                naive.step(i)
            found = engine.weights(state)
            assert found == pytest.approx(naive.average(averaging), abs=1e-9 * (1 + np.abs(found).max())), round_
        w = 3.0 * np.random.default_rng(round_).normal(size=len(naive.w))
        outputs = [int((below * cost - psi @ w).argmax()) for psi, cost in tiny.planes]
        rows = np.array([psi[y] for (psi, _), y in zip(tiny.planes, outputs, strict=True)])
        concave += int(rows.any(axis=1).sum())
        engine.move(state, problem.majorant(problem.linearise(w)))
        naive.subtract(rows, state.radius)
        assert engine.weights(state) == pytest.approx(naive.w, abs=1e-9 * (1 + np.abs(naive.w).max()))
    assert concave > 3


def test_long_runs_keep_their_accuracy():
    """Some thousand steps, scaled and averaged lazily, with the norm of the projection kept up to date on the way."""
    tiny = PROBLEMS[0]
    for solver in (mm.Pegasos(project=True, averaging="weighted"), mm.SGD("constant", eta0=0.3, averaging="uniform")):
        engine, state = started(solver, tiny.problem())
        naive, rng = naive_of(solver, tiny), np.random.default_rng(7)
        for _ in range(600):
            engine.step(state)
            for i in order(solver, rng, tiny.n):
                naive.step(i)
        assert engine.weights(state) == pytest.approx(naive.average(solver.averaging), abs=1e-8)


# --- certificates -------------------------------------------------------------------------------------------------

CERTIFIED = {
    **{name: solver for name, solver in SOLVERS.items() if "random" not in name},
    "pegasos, random": mm.Pegasos(sampling="random"),
    "pegasos, uniform": mm.Pegasos(averaging="uniform"),
    "pegasos, weighted": mm.Pegasos(averaging="weighted"),
    "pegasos, tail": mm.Pegasos(averaging="tail"),
    "pegasos, projected, tail": mm.Pegasos(project=True, averaging="tail"),
    "perceptron, averaged": mm.Perceptron(),
    "mira, averaged": mm.MIRA(averaging="tail"),
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", CERTIFIED)
def test_every_certificate_is_a_proof(name, loss):
    for tiny in PROBLEMS:
        check_certificates(CERTIFIED[name], replace(tiny, loss=loss), steps=9)


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_permutations_make_the_weights_a_dual_point(tiny):
    """After whole passes Pegasos' own multipliers are feasible, so no part of its dual value is given away."""
    problem = tiny.problem()
    engine, state = started(mm.Pegasos(), problem)
    naive, rng = naive_of(mm.Pegasos(), tiny), np.random.default_rng(7)
    for _ in range(12):
        engine.step(state)
        for i in rng.permutation(tiny.n):
            naive.step(i)
        assert (naive.zeta <= tiny.example_weight * (1 + 1e-12)).all()
        dual = naive.linear - 0.5 * naive.w @ naive.w
        assert engine.certificate(state).dual >= dual - 1e-9 * abs(dual)


@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize(
    "name", ["pegasos", "pegasos, projected", "pegasos, weighted", "pegasos, random", "sgd, power"]
)
def test_certificates_of_majorants(name, ramp):
    tiny = Tiny("chain", cost="matrix", weighted=True, C=2.0, seed=4)
    used = np.flatnonzero(tiny.example_weight)
    planes, C = [tiny.planes[i] for i in used], tiny.example_weight[used]
    problem, (above, below) = ramp_problem(tiny, ramp), COST_WEIGHTS[ramp]
    engine, state = started(CERTIFIED[name], problem.convex)
    for round_ in range(3):
        w = 2.0 * np.random.default_rng(round_).normal(size=problem.convex.n_columns)
        engine.move(state, problem.majorant(problem.linearise(w)))
        v, offset = linear_term_at(planes, C, w, below)
        optimum = minimise_majorant(planes, C, v, offset, above).objective
        for _ in range(4):
            engine.step(state)
            certificate = engine.certificate(state).check()
            assert certificate.dual <= optimum + 1e-7 * abs(optimum)
            assert certificate.primal >= optimum - 1e-7 * abs(optimum)
            assert certificate.primal >= J(tiny, engine.weights(state), ramp) - 1e-9  # a majorant is above J


@pytest.mark.parametrize("averaging", [None, "weighted", "tail"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("tiny", [*PROBLEMS, Tiny(C=0.5, seed=4)], ids=str)
def test_pegasos_reaches_one_per_cent(tiny, project, averaging):
    problem = tiny.problem()
    solver = mm.Pegasos(project=project, averaging=averaging)
    result = run(solver.engine(problem, 0), problem, tol=1e-2, max_passes=1500)
    assert result.status.code == "converged", str(result.status)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-2)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_squared_hinge_does_not_blow_up(C):
    """The squared loss has no bounded subgradient: the first steps must not throw the weights off for good."""
    tiny = Tiny("chain", "squared_hinge", cost="matrix", C=C, seed=1)
    problem = tiny.problem()
    result = run(mm.Pegasos(averaging="weighted").engine(problem, 0), problem, tol=1e-3, max_passes=400)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=0.1)


@pytest.mark.parametrize("name", ["sgd, inverse", "sgd, power", "perceptron, averaged", "mira, averaged"])
def test_the_others_learn_too(name):
    """Sequences whose features tell their labels: hardly a mistake is left on the training data."""
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, T) for T in rng.integers(2, 7, 40)]
    X = [np.eye(3)[labels] + 0.3 * rng.normal(size=(len(labels), 3)) for labels in y]
    tagger = mm.SequenceTagger(solver=CERTIFIED[name], max_passes=20).fit(X, [labels.tolist() for labels in y])
    assert tagger.score(X, [labels.tolist() for labels in y]) > 0.95
    assert tagger.certificate_.dual <= tagger.certificate_.primal


# --- the ball -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_the_ball_holds_the_optimum(kind, loss):
    tight = 0.0
    for seed, C in product(range(4), [0.01, 0.3, 10.0]):
        tiny = Tiny(kind, loss, cost="matrix" if seed % 2 else "hamming", weighted=seed > 1, C=C, seed=seed)
        _, state = started(mm.Pegasos(project=True), tiny.problem())
        assert state.radius == pytest.approx(radius(tiny))
        tight = max(tight, np.linalg.norm(best(tiny).weights) / state.radius)
    assert 0.3 < tight <= 1.0


@pytest.mark.parametrize("ramp", COST_WEIGHTS)
def test_the_ball_of_a_majorant_holds_its_optimum(ramp):
    """That of the hinge does, too: the planes that are subtracted are among those that are added.

    So the third ramp, whose planes have no offsets, sends every start to zero weights in one round.
    """
    above, below = COST_WEIGHTS[ramp]
    for seed, C in product(range(6), [0.1, 3.0]):
        tiny = Tiny(cost="matrix" if seed % 2 else "hamming", C=C, seed=seed)
        problem = ramp_problem(tiny, ramp)
        engine, state = started(mm.Pegasos(project=True), problem.convex)
        for scale in (0.1, 30.0):
            w = scale * np.random.default_rng(seed).normal(size=problem.convex.n_columns)
            engine.move(state, problem.majorant(problem.linearise(w)))
            v, offset = linear_term_at(tiny.planes, tiny.example_weight, w, below)
            length = np.linalg.norm(minimise_majorant(tiny.planes, tiny.example_weight, v, offset, above).weights)
            assert length <= state.radius + 1e-3
            assert length <= np.sqrt(above) * radius(tiny) + 1e-3
