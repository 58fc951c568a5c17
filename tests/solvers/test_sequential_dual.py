"""The preset follows the published method: the same weights pass by pass, for the hinge and for rounds of a ramp."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from agreement.ramped import COST_WEIGHTS, J, cccp, ramp_problem
from agreement.tiny import Tiny, best, engine_of
from maxmargin.solvers.driver import run
from trajectories.sdm import PlainSDM, ramp_rounds

# costs of random matrices, so that no two outputs tie at w = 0
PROBLEMS = [
    Tiny(kind, cost="matrix", weighted=weighted, C=C, seed=seed, n=n)
    for kind, weighted, C, seed, n in [
        ("chain", False, 0.3, 4, 4),
        ("chain", True, 2.0, 1, 5),
        ("multiclass", False, 1.0, 2, 6),
        ("chain", False, 20.0, 3, 4),
        ("multiclass", True, 5.0, 6, 4),
    ]
]


@pytest.mark.parametrize("every", [1.0, 3.0, 1e9])
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_the_path_is_the_published_one(tiny, every):
    """However often a certificate looks on: its planes take no part."""
    problem = tiny.problem()
    engine = engine_of(mm.SequentialDual(tau=1e-13, certificate_every=every), problem, seed=5)
    state, plain, rng = engine.init(problem), PlainSDM(tiny.planes, tiny.example_weight), np.random.default_rng(5)
    for _ in range(15):
        if engine.certificate_due(state):
            engine.certificate(state)
        engine.step(state)
        for i in rng.permutation(tiny.n):
            plain.visit(i)
        assert engine.weights(state) == pytest.approx(plain.w, abs=1e-8)
        assert plain.w == pytest.approx(plain.u, abs=1e-9)


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_the_working_sets_are_the_published_ones(tiny):
    """Growth by one plane a visit at most, nothing without a multiplier survives, and multipliers add up to C_i."""
    problem = tiny.problem()
    engine = engine_of(mm.SequentialDual(tau=1e-13, certificate_every=2.0), problem, seed=5)
    state, plain, rng = engine.init(problem), PlainSDM(tiny.planes, tiny.example_weight), np.random.default_rng(5)
    held = np.zeros(tiny.n, int)
    for _ in range(12):
        if engine.certificate_due(state):
            engine.certificate(state)
            assert np.array_equal(state.working_set.store.held, held), "a certificate left planes behind"
        engine.step(state)
        for i in rng.permutation(tiny.n):
            plain.visit(i)
        A, b, alpha, block = state.working_set.planes()
        counts = np.bincount(block, minlength=tiny.n)
        assert (counts <= held + 1).all()
        held = counts
        assert (alpha > 0).all()
        for i in range(tiny.n):
            own = {y: c for y, c in plain.sets[i].items() if y != plain.true[i] and c > 1e-9}
            rows, costs = tiny.planes[i]
            # multipliers need not be unique, what they add up to is
            mine = block == i
            u = sum((c * rows[y] for y, c in own.items()), 0 * plain.w)
            assert A[mine].T @ alpha[mine] == pytest.approx(u, abs=1e-7)
            assert alpha[mine] @ b[mine] == pytest.approx(sum(c * costs[y] for y, c in own.items()), abs=1e-7)
            total = alpha[mine].sum() + state.working_set.store.origin[i]
            assert total == pytest.approx(tiny.example_weight[i], abs=1e-9)


@pytest.mark.parametrize("ramp", ["cost_diminished", "best_output"])
@pytest.mark.parametrize("tiny", [replace(tiny, C=3.0) for tiny in PROBLEMS[:3]], ids=str)
def test_rounds_of_a_ramp_are_the_corrected_ones(tiny, ramp):
    """P rounds of T passes, the old linear term added back: the same weights at the end of each round."""
    passes, rounds = 6, 5
    (above, below), problem = COST_WEIGHTS[ramp], ramp_problem(tiny, ramp)
    solver = cccp(mm.SequentialDual(tau=1e-13, certificate_every=1e9), problem, seed=5, passes_per_round=float(passes))
    state, ends = solver.init(problem), []
    while len(ends) < rounds:
        solver.step(state)
        if solver.certificate_due(state):
            certificate = solver.certificate(state)
            if not state.due:  # J has not come down yet: the round goes on, which the plain loop does not know
                break
            ends.append(solver.weights(state).copy())
            assert certificate.primal == pytest.approx(J(tiny, ends[-1], ramp), rel=1e-9)
    rng = np.random.default_rng(5)
    orders = [[i for _ in range(passes) for i in rng.permutation(tiny.n)] for _ in ends]
    planes, costs = [(psi, above * cost) for psi, cost in tiny.planes], [cost for _, cost in tiny.planes]
    plain = list(ramp_rounds(planes, costs, tiny.example_weight, below, orders, add_back=True))
    assert len(ends) >= 2
    for ours, theirs in zip(ends, plain, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("tau", [1e-1, 1e-3, 1e-6])
def test_a_visit_ends_within_its_tolerance(tau):
    """At the end of a visit no plane of the example beats one that carries weight by more than tau times its cost."""
    for tiny in PROBLEMS:
        problem = tiny.problem()
        engine = engine_of(mm.SequentialDual(tau=tau, certificate_every=1e9), problem, seed=1)
        state, rng = engine.init(problem), np.random.default_rng(1)
        for _ in range(6):
            engine.step(state)
            last = rng.permutation(tiny.n)[-1]
            A, b, alpha, block = state.working_set.planes()
            mine = block == last
            origin = state.working_set.store.origin[last]
            g = np.append(b[mine] - A[mine] @ state.w, 0.0)
            carrying = np.append(alpha[mine] > 0, origin > 0)
            if tiny.example_weight[last] > 0 and mine.any():
                scale = tiny.planes[last][1].max()  # also of planes that left at the end of the visit
                assert g.max() - g[carrying].min() <= tau * scale + 1e-12


def test_a_looser_tolerance_takes_fewer_steps_and_still_converges():
    from maxmargin.solvers.working_set_kernel import STEPS

    tiny, steps = PROBLEMS[1], []
    for tau in (1e-1, 1e-9):
        problem = tiny.problem()
        result = run(engine_of(mm.SequentialDual(tau=tau), problem), problem, tol=1e-3, max_passes=400)
        assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-3)
        steps.append(int(result.state.working_set.store.size[STEPS]))
    assert steps[0] < steps[1]
