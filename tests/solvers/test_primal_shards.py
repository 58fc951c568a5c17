"""The primal family in shards and with batches: dense steps by hand, proofs, workers and resumed runs."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, check_certificates
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.chain import Chain
from maxmargin.models.user import PythonModel
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.solvers import primal_kernel as pk
from maxmargin.solvers.driver import run
from maxmargin.solvers.primal_pass import Steps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PROBLEMS = [
    Tiny("chain", cost="matrix", C=1.0, seed=1),
    Tiny("chain", cost="matrix", weighted=True, C=0.3, seed=2, ends=True),
    Tiny("multiclass", cost="matrix", C=2.0, seed=3),
]
SOLVERS = {
    "pegasos": mm.Pegasos(),
    "sgd": mm.SGD(t0=5.0, averaging=None),
    "perceptron": mm.Perceptron(averaging=None),
    "mira": mm.MIRA(averaging=None),
}
DIVIDED = {"shards": {"shards": 3}, "batches": {"batch": 4}, "both": {"shards": 2, "batch": 3}, "many": {"shards": 99}}


def changed(solver, **values):
    return type(solver)(**{**solver.get_params(deep=False), **values})


def plain_pass(solver, planes, C, w, steps, rng):
    """One pass by the formulas, dense: every shard from the same weights, then their mean by size; w and its steps.

    Also the sum of all iterates, for the uniform average.
    """
    n = len(planes)
    shards = np.array_split(np.arange(n), min(solver.shards, n))
    mixed, taken, total = np.zeros_like(w), 0, np.zeros_like(w)
    plans = [shard[rng.permutation(len(shard))] for shard in shards]
    for plan in plans:
        own, t = w.copy(), steps * len(plan) / n
        for begin in range(0, len(plan), solver.batch):
            t += 1
            taken += 1
            change = np.zeros_like(w)
            together = plan[begin : begin + solver.batch]
            eta = min(1.0, 1.0 / (t + getattr(solver, "t0", 0.0)))
            for i in together:
                A, b = planes[i]
                y = int(np.argmax((0.0 if isinstance(solver, mm.Perceptron) else b) - A @ own))
                a, loss = A[y], b[y] - A[y] @ own
                if isinstance(solver, mm.Perceptron):
                    change += a * (C[i] > 0)
                elif loss > 0 and isinstance(solver, mm.MIRA):
                    change += min(C[i], loss / (a @ a)) * a / len(together)
                elif loss > 0:
                    change += eta * n * C[i] * a / len(together)
            own = own * (1.0 - eta if isinstance(solver, (mm.Pegasos, mm.SGD)) else 1.0) + change
            total += own
        mixed += len(plan) / n * own
    return mixed, steps + taken, total


@pytest.mark.parametrize("divided", DIVIDED)
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_passes_equal_plain_ones(tiny, name, divided):
    """The weights after every pass, and the average of all iterates."""
    solver, problem = changed(SOLVERS[name], **DIVIDED[divided]), tiny.problem()
    weights = np.where(tiny.example_weight > 0, tiny.example_weight, 0.0)
    last, mean = (changed(solver, averaging=rule).engine(problem, 7) for rule in (None, "uniform"))
    states = last.init(problem), mean.init(problem)
    w, steps, rng, sums = np.zeros(problem.n_weights), 0, np.random.default_rng(7), np.zeros(problem.n_weights)
    for _ in range(6):
        w, steps, total = plain_pass(solver, tiny.planes, weights, w, steps, rng)
        sums += total
        last.step(states[0])
        mean.step(states[1])
        scale = 1e-9 * (1 + np.abs(w).max())
        assert last.weights(states[0]) == pytest.approx(w, abs=scale)
        assert mean.weights(states[1]) == pytest.approx(sums / steps, abs=scale)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("averaging", [None, "weighted", "tail"])
@pytest.mark.parametrize("divided", ["shards", "batches", "both"])
def test_certificates_are_proofs(divided, averaging, loss):
    for tiny in (replace(tiny, loss=loss) for tiny in PROBLEMS):
        for solver in SOLVERS.values():
            check_certificates(changed(solver, averaging=averaging, **DIVIDED[divided]), tiny, steps=5)


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_mixed_pegasos_gives_nothing_of_its_dual_away(tiny):
    """Multipliers of each example add up to at most C_i after whole passes, also where shards differ in size."""
    problem = tiny.problem()
    engine = mm.Pegasos(shards=3).engine(problem, 0)
    state, d = engine.init(problem), problem.n_weights
    for _ in range(8):
        engine.step(state)
        zeta = state.numbers[0] * state.vector[d : d + tiny.n]
        assert (zeta <= tiny.example_weight * (1 + 1e-9)).all()


@pytest.mark.parametrize("solver", [mm.Pegasos(shards=5), mm.MIRA(shards=4, batch=2, passes=8)], ids=str)
def test_weights_do_not_depend_on_workers_or_interruptions(solver):
    tiny = Tiny("chain", cost="matrix", C=1.0, seed=1)
    found = []
    for executor in (Serial(), Threads(2), Threads(8)):
        problem = tiny.problem().with_oracles(lambda oracle, own=executor: ShardedOracle(oracle, own))
        found.append(run(solver.engine(problem, 0), problem, tol=0.0, max_passes=8))
        executor.close()
    for other in found[1:]:
        np.testing.assert_array_equal(other.weights, found[0].weights)
    problem = tiny.problem()
    whole, engine = solver.engine(problem, 0), solver.engine(problem, 0)
    states = whole.init(problem), engine.init(problem)
    for _ in range(6):
        whole.step(states[0])
        engine.step(states[1])
        states = states[0], engine.from_arrays(problem, states[1].to_arrays())
    np.testing.assert_array_equal(whole.weights(states[0]), engine.weights(states[1]))


def test_models_in_plain_python_take_batches():
    """A batch is one call of the oracle, and the steps are those of the compiled model."""
    from estimators.plain_chain import PlainChain

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(2, 5), 3)) for _ in range(11)]
    Y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    for solver in (mm.Pegasos(batch=4), mm.Pegasos(shards=2, batch=3)):
        plain = mm.StructuredSVM(PlainChain(3), solver=solver, max_passes=5, tol=0.0).fit(X, Y)
        fast = mm.SequenceTagger(solver=solver, max_passes=5, tol=0.0).fit(X, Y)
        assert plain.certificate_.primal == pytest.approx(fast.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("augmented", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_steps_need_no_examples_but_their_own(loss, augmented, plain):
    """An oracle that has only some of the examples, and counts them from 0, makes the same steps on these."""
    from estimators.plain_chain import PlainChain
    from reference.problems import random_chains

    X, Y = random_chains(20, 3, 3, lengths=(1, 5), seed=3)
    Y = [list(map(int, y)) for y in Y]
    model = PythonModel(PlainChain(3)) if plain else Chain()
    whole = RescaledHinge(loss=loss).problem(model.bind(X, Y), C=0.7)
    few = model.bind(X[6:15], Y[6:15], layout=whole.oracle.model.layout)
    lift = whole.oracle.lift[6:15]
    rule, plan, found = mm.MIRA(augmented=augmented, batch=2).rule(), np.array([9, 14, 6, 7, 9, 11]), []
    parts = replace(whole, oracle=whole.part(6, 15).oracle), replace(whole, oracle=ModelOracle(few, lift=lift))
    for steps in (Steps(rule, whole), Steps(rule, parts[0], 6), Steps(rule, parts[1], 6)):
        columns, numbers = whole.n_weights + 2 * 20 + 2, np.zeros(pk.NUMBERS)
        vector, mean, numbers[pk.SCALE] = np.zeros(columns), np.zeros(columns), 1.0
        asked = steps.take(plan, np.inf, vector, mean, numbers)
        assert asked.calls == len(plan) and asked.fused is not plain
        found.append((vector, mean, numbers))
    assert found[0][0].any()
    for other in found[1:]:
        for one, own in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(own, one)


def test_further_examples_in_shards():
    """Each ``partial_fit`` has shards of its own, and steps go on from those of the last."""
    tiny = Tiny("chain", cost="matrix", C=1.0, seed=1)
    problem, engine = tiny.problem(), mm.Pegasos(shards=3).engine(tiny.problem(), 0)
    state = engine.init(problem)
    engine.step(state)
    more = engine.adopt(problem, state)
    assert more.shards is None
    engine.step(more)
    engine.step(state)
    assert more.numbers[pk.STEPS] == state.numbers[pk.STEPS] == 2 * tiny.n
    assert more.shards is not state.shards


@pytest.mark.parametrize("wrong", [{"shards": 0}, {"batch": 0}, {"shards": 1.5}, {"batch": "all"}, {"batch": None}])
def test_odd_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number >= 1"):
        mm.Pegasos(**wrong).rule()
