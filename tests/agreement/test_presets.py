"""Every named method reaches the optimum of a conic solver on problems small enough to enumerate."""

from itertools import product

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, best, check_minimum, random_tiny, solve
from maxmargin import SimplicialDecomposition as Simplicial
from reference.certificate import recompute

VARIANTS = [  # cost, weighted, C, seed, ends
    ("hamming", False, 0.05, 0, False),
    ("matrix", True, 1.0, 1, True),
    ("hamming", True, 20.0, 2, False),
    ("matrix", False, 3.0, 3, False),
]
CASES = [
    Tiny(kind, loss, signed, cost, weighted, C, seed, n=4, ends=ends)
    for kind, loss, signed, (cost, weighted, C, seed, ends) in product(
        ["chain", "multiclass"], ["hinge", "squared_hinge"], [False, True], VARIANTS
    )
]


def columns(tiny):
    """Length of a plane: what a limit has to be compared with."""
    return tiny.planes[0][0].shape[1] + (tiny.n if tiny.squared else 0)


# presets that keep enough points to end after finitely many steps, up to rounding
EXACT = {
    "auto": lambda t: mm.Auto(),
    "auto, single planes": lambda t: mm.Auto(parts=1, batch=1, cached_passes=0),
    "sharded": lambda t: mm.Sharded(shards=2, visits_per_round=1),
    "sequential": lambda t: mm.SequentialDual(tau=1e-11),
    "bcfw, pairwise": lambda t: mm.BCFW(steps="pairwise"),
    "cutting plane, one": lambda t: mm.CuttingPlane("one"),
    "cutting plane, n": lambda t: mm.CuttingPlane("n"),
    "one": lambda t: Simplicial("one"),
    "one, unlimited": lambda t: Simplicial("one", limit=None),
    "one, limit d + 2": lambda t: Simplicial("one", limit=columns(t) + 2),
    "one, smo": lambda t: Simplicial("one", master="smo"),
    "one, nothing dropped": lambda t: Simplicial("one", drop=False),
    "one, working set": lambda t: Simplicial("one", working_set=2),
    "product": lambda t: Simplicial("product", master="newton"),
    "product, smo": lambda t: Simplicial("product", master="smo"),
    "product, limit d + 2": lambda t: Simplicial("product", limit=columns(t) + 2),
    "product, cyclic": lambda t: Simplicial("product", working_set=2, selection="cyclic"),
    "product, random": lambda t: Simplicial("product", working_set=2, selection="random", master="smo"),
    "product, gap": lambda t: Simplicial("product", working_set=2, selection="gap"),
    "product, key": lambda t: Simplicial("product", working_set=3, selection="key"),
    "product, permutation": lambda t: Simplicial("product", working_set=1, selection="permutation"),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("tiny", CASES, ids=str)
def test_exact_presets(tiny, name):
    assert_optimal(tiny, EXACT[name](tiny))


@pytest.mark.parametrize("tiny", [case for case in CASES if case.C < 20], ids=str)
def test_frank_wolfe_with_pairwise_steps(tiny):
    """Linear, but one simplex for all examples is badly conditioned where C is large."""
    assert_optimal(tiny, mm.FrankWolfe(steps="pairwise"))


def assert_optimal(tiny, preset):
    result = solve(tiny, preset, tol=1e-9, max_passes=3000)
    reference = best(tiny)
    assert result.status.code == "converged", str(result.status)
    assert result.certificate.primal == pytest.approx(reference.objective, rel=1e-6)
    assert result.certificate.dual == pytest.approx(reference.objective, rel=1e-6)
    assert np.abs(result.weights - reference.weights).max() <= 1e-4
    if tiny.signed:
        assert (result.weights[tiny.positive] >= 0).all()


# Few points kept: convergence is sublinear in general (rate 1/t), but fast where each block is a segment (two outputs)
# or where C is so small that the optimum is a corner. There, and only there, 1e-6 is within reach of a test.
FEW = {
    "frank-wolfe": mm.FrankWolfe(),
    "bcfw": mm.BCFW(),
    "bcfw, random": mm.BCFW(sampling="random"),
    "bcfw, gap": mm.BCFW(sampling="gap", certificate_every=2.0),
    "bcfw, cyclic": mm.BCFW(sampling="cyclic"),
    "one, limit 2": Simplicial("one", limit=2),
    "product, limit 1": Simplicial("product", limit=1),
    "product, limit 2": Simplicial("product", limit=2),
    "product, limit 1, working set": Simplicial("product", limit=1, working_set=1, master="smo"),
}
EASY = [
    Tiny("multiclass", loss, signed, cost, weighted, C, seed, n=2, K=2, F=4)
    for loss, signed, (cost, weighted, C, seed) in product(
        ["hinge", "squared_hinge"],
        [False, True],
        [("hamming", False, 0.1, 0), ("matrix", True, 1.0, 1), ("hamming", False, 1.0, 2)],
    )
] + [
    Tiny("chain", loss, signed, cost, weighted, 0.01, seed, n=3, K=2, F=3)
    for loss, signed, (cost, weighted, seed) in product(
        ["hinge", "squared_hinge"], [False, True], [("hamming", False, 0), ("matrix", True, 1)]
    )
]


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("tiny", EASY, ids=str)
def test_presets_that_keep_few_planes(tiny, name):
    result = solve(tiny, FEW[name], tol=1e-8, max_passes=1000)
    check_minimum(result, tiny)


# The general case at its sublinear rate, O(1/t): 200 passes bring both bounds to within a few per cent of the optimum,
# and they bracket it all the way.
@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize(
    "tiny",
    [
        Tiny(kind, loss, signed, "matrix" if signed else "hamming", signed, C, 4, n=3, K=3, F=3)
        for (kind, loss, signed), C in zip(
            product(["chain", "multiclass"], ["hinge", "squared_hinge"], [False, True]), [0.1, 1.0] * 4, strict=True
        )
    ],
    ids=str,
)
def test_sublinear_presets_approach_the_optimum(tiny, name):
    result = solve(tiny, FEW[name], tol=1e-6, max_passes=200)
    optimum = best(tiny).objective
    assert result.certificate.primal == pytest.approx(optimum, rel=0.06)
    assert result.certificate.dual == pytest.approx(optimum, rel=0.06)
    assert all(row["dual"] <= optimum * (1 + 1e-7) <= row["primal"] * (1 + 2e-7) for row in result.history)


@pytest.mark.parametrize("seed", range(3))
def test_limit_equal_to_the_dimension(seed):
    """r = d ends on most problems but need not: its optimal face may have d + 1 corners. Hence 1e-5, not 1e-6."""
    for loss in ("hinge", "squared_hinge"):
        tiny = Tiny("chain", loss, C=0.5, seed=seed, n=4, K=2, F=2)
        result = solve(tiny, Simplicial("one", limit=columns(tiny)), tol=1e-8, max_passes=400)
        assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["frank-wolfe", "bcfw", "one, limit 2", "product, limit 1"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sublinear_presets_with_patience(name, loss):
    tiny = Tiny("chain", loss, C=0.1, seed=0, n=4)
    result = solve(tiny, FEW[name], tol=1e-8, max_passes=6000)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_exact_presets_on_many_seeds(seed):
    rng = np.random.default_rng(seed)
    tiny = random_tiny(rng, seed, str(rng.choice(["hinge", "squared_hinge"])), exponents=(-2, 2))
    for name, preset in EXACT.items():
        result = solve(tiny, preset(tiny), tol=1e-8, max_passes=5000)
        assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6), name


def test_no_weight_at_all():
    """C = 0, and sample weights that are all zero: w = 0 with gap 0, after one look."""
    for loss, name in product(["hinge", "squared_hinge"], ["auto", "one", "product", "sequential"]):
        tiny = Tiny(loss=loss, C=0.0)
        result = solve(tiny, EXACT[name](tiny))
        assert result.status.code == "converged"
        assert result.certificate.primal == result.certificate.dual == 0
        assert not result.weights.any()


@pytest.mark.parametrize("name", EXACT)
def test_very_large_and_very_small_weights_of_the_losses(name):
    """Here the conic solver has no accuracy left; the certificate, recomputed from all outputs, has to speak."""
    for loss, C in product(["hinge", "squared_hinge"], [1e-8, 1e5]):
        tiny = Tiny("multiclass", loss, C=C, n=4, F=6, seed=5)  # separable, so that C = 1e5 has a finite limit
        result = solve(tiny, EXACT[name](tiny), tol=1e-7, max_passes=2000)
        assert result.status.code == "converged", str(result.status)
        check = recompute(result.weights, None, tiny.planes, tiny.example_weight, squared=tiny.squared)
        assert result.certificate.primal == pytest.approx(check.primal, rel=1e-9)
