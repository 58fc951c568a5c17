"""Blocks of examples: streams of subsets, sums of planes, what planes prove, and warm starts at other weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.models.multiclass import Multiclass
from maxmargin.planes import Planes
from maxmargin.solvers.block_selection import select
from maxmargin.solvers.blocks import blocks_of, natural_scale, summed
from maxmargin.solvers.driver import run
from maxmargin.solvers.presets import SimplicialDecomposition


def test_subsets_that_overlap_are_unions_of_their_blocks():
    rng = np.random.default_rng(0)
    for _ in range(20):
        subsets = [np.flatnonzero(rng.random(9) < 0.4).tolist() or [0] for _ in range(4)] + [[1, 4, 8], list(range(9))]
        members, visits = blocks_of(subsets, 9)
        assert sorted(np.concatenate(members)) == list(range(9))
        for subset, blocks in zip(subsets, visits, strict=True):
            assert sorted(np.concatenate([members[b] for b in blocks])) == sorted(set(subset))


def test_shuffled_visits_see_everything_once_a_pass():
    rng, cursor = np.random.default_rng(0), np.zeros(6, np.int64)
    visits = np.concatenate([select("shuffled", None, rng, 2, cursor, 5) for _ in range(10)])
    passes = visits.reshape(4, 5)
    assert (np.sort(passes, axis=1) == np.arange(5)).all() and len({tuple(row) for row in passes}) > 1
    assert cursor[0] == 20


def test_sums_of_planes():
    rng = np.random.default_rng(1)
    dense, b = rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.6), rng.normal(size=4)
    example, weight = np.array([0, 2, 3, 5]), rng.random(6)
    rows = [(np.flatnonzero(a), a[np.flatnonzero(a)]) for a in dense]
    planes = Planes.from_rows(rows, b, example, np.zeros(4), 6)
    found = summed(planes, weight, [np.array([0, 1, 2]), np.array([4]), np.array([3, 5])])
    assert found.example.tolist() == [0, 2]
    for row, own in zip(range(2), ([0, 1], [2, 3]), strict=True):
        np.testing.assert_allclose(found.to_csr().toarray()[row], weight[example[own]] @ dense[own])
        assert found.b[row] == pytest.approx(weight[example[own]] @ b[own])


def test_the_natural_scale_is_the_best_multiplier_of_a_plane_alone():
    """Against a search along the multiplier: s v - s^2 |e|^2 / 2, over [0, total] or all s >= 0."""
    rng = np.random.default_rng(2)
    A, b, w = rng.normal(size=(8, 7)), rng.normal(size=8), rng.normal(size=7)
    A[:4, 5:] = 0.0
    total = np.concatenate([rng.random(4), np.full(4, np.inf)])
    scale, value = natural_scale(sp.csr_array(A), b, total, w, 5)
    for i in range(8):
        v, e = b[i] - A[i, :5] @ w[:5], A[i, 5:] @ A[i, 5:]
        most = total[i] if i < 4 else 1e3
        best = minimize_scalar(lambda s, v=v, e=e: 0.5 * s * s * e - s * v, bounds=(0, most), method="bounded",
                               options={"xatol": 1e-12})  # fmt: skip
        assert value[i] == pytest.approx(max(-best.fun, 0.0), abs=1e-5)
        if value[i] > 0 and i >= 4:
            assert scale[i] == pytest.approx(best.x, rel=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("working_set", [None, 8])
def test_sums_start_warm_at_another_weight_of_the_losses(loss, working_set):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 5))
    y = np.argmax(X[:, :3] + 0.7 * rng.normal(size=(24, 3)), axis=1)
    bound = Multiclass().bind(X, y)
    solver = SimplicialDecomposition("one", working_set=working_set)
    weak, strong = (RescaledHinge(loss).problem(bound, C=C) for C in (0.1, 0.3))
    before = run(solver.engine(weak, 0), weak, tol=1e-6, max_passes=2000)
    warm = run(solver.engine(strong, 0), strong, tol=1e-6, max_passes=2000, warm=before.state)
    cold = run(solver.engine(strong, 0), strong, tol=1e-6, max_passes=2000)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-5)
    assert warm.history[0]["dual"] > 0  # not from the origin
    uneven = RescaledHinge(loss).problem(bound, C=0.1, sample_weight=rng.random(24) + 0.5)
    if loss == "hinge":
        with pytest.raises(ValueError, match="one factor within a block"):
            run(solver.engine(uneven, 0), uneven, warm=before.state)
