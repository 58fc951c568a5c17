"""The presets take the steps of the methods whose names they bear."""

from itertools import islice

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, walk
from maxmargin import SimplicialDecomposition as Simplicial
from trajectories.plain import block_frank_wolfe, cone_frank_wolfe, frank_wolfe, sequential_dual

# the cost matrix is random, so that no two outputs tie at w = 0
PROBLEMS = [
    Tiny(kind, cost="matrix", weighted=weighted, signed=signed, C=C, seed=seed, n=4)
    for kind, weighted, C, seed in [
        ("chain", False, 0.3, 4),
        ("chain", True, 2.0, 1),
        ("multiclass", False, 1.0, 2),
        ("chain", False, 20.0, 3),
    ]
    for signed in (False, True)
]
PLAIN = [tiny for tiny in PROBLEMS if not tiny.signed]


def steps(preset, tiny, count, seed=0):
    """Weights after each of ``count`` steps; whole-set presets look at all examples before each of them."""
    for engine, _, state in walk(preset, tiny, count, seed):
        yield engine.weights(state).copy()


def assert_same(ours, theirs, count):
    compared = 0
    for t, (a, b) in enumerate(zip(islice(ours, count), islice(theirs, count), strict=True)):
        assert a == pytest.approx(b, abs=1e-9 * (1 + np.abs(b).max())), f"step {t}"
        compared += 1
    assert compared == count


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_frank_wolfe(tiny):
    theirs = frank_wolfe(tiny.planes, tiny.example_weight, tiny.positive)
    assert_same(steps(mm.FrankWolfe(), tiny, 30), theirs, 30)


@pytest.mark.parametrize("seed", range(4))
def test_frank_wolfe_on_a_cone(seed):
    tiny = Tiny("chain", "squared_hinge", cost="matrix", C=0.5, seed=seed, n=4)
    assert_same(steps(mm.FrankWolfe(), tiny, 20), cone_frank_wolfe(tiny.planes, tiny.example_weight), 20)


@pytest.mark.parametrize("master", ["smo", "newton"])
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_one_simplex_with_limit_one_is_frank_wolfe(tiny, master):
    ours = steps(Simplicial("one", limit=1, master=master), tiny, 30)
    assert_same(ours, frank_wolfe(tiny.planes, tiny.example_weight, tiny.positive), 30)
    assert_same(steps(Simplicial("one", limit=1, master=master), tiny, 30), steps(mm.FrankWolfe(), tiny, 30), 30)


def passes(trajectory, n):
    """Every n-th element: the weights at the end of each pass."""
    return islice(trajectory, n - 1, None, n)


@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_block_coordinate_frank_wolfe(tiny):
    rng = np.random.default_rng(7)
    order = (i for _ in range(25) for i in rng.permutation(tiny.n))
    theirs = block_frank_wolfe(tiny.planes, tiny.example_weight, order, tiny.positive)
    assert_same(steps(mm.BCFW(certificate_every=1e9), tiny, 25, seed=7), passes(theirs, tiny.n), 25)


@pytest.mark.parametrize("tiny", PROBLEMS[:4], ids=str)
def test_block_coordinate_frank_wolfe_with_replacement(tiny):
    rng = np.random.default_rng(3)
    order = (i for _ in range(25) for i in rng.integers(0, tiny.n, tiny.n))
    theirs = block_frank_wolfe(tiny.planes, tiny.example_weight, order, tiny.positive)
    assert_same(steps(mm.BCFW("random", certificate_every=1e9), tiny, 25, seed=3), passes(theirs, tiny.n), 25)


@pytest.mark.parametrize("master", ["smo", "newton"])
@pytest.mark.parametrize("tiny", PROBLEMS, ids=str)
def test_product_with_limit_one_and_one_example_is_a_block_step(tiny, master):
    preset = Simplicial("product", limit=1, working_set=1, selection="cyclic", master=master)
    order = (i for _ in range(10) for i in range(tiny.n))
    theirs = block_frank_wolfe(tiny.planes, tiny.example_weight, order, tiny.positive)
    # up to the first certificate, which comes after two passes and is a step of another kind
    assert_same(steps(preset, tiny, 2 * tiny.n), theirs, 2 * tiny.n)


@pytest.mark.parametrize("tiny", PLAIN, ids=str)
def test_sequential_dual(tiny):
    rng = np.random.default_rng(5)
    order = (i for _ in range(12) for i in rng.permutation(tiny.n))
    theirs = sequential_dual(tiny.planes, tiny.example_weight, order)
    ours = steps(mm.SequentialDual(tau=1e-14, certificate_every=1e9), tiny, 12, seed=5)
    assert_same(ours, passes(theirs, tiny.n), 12)


def test_same_seed_same_steps_and_other_seed_other_steps():
    tiny = PLAIN[1]
    for preset in (mm.BCFW(), mm.SequentialDual(), mm.Auto(), Simplicial(working_set=2, selection="random")):
        first, again, other = (list(steps(preset, tiny, 6, seed=seed)) for seed in (1, 1, 2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
