"""The grid model against trying every mask, its training against a conic solver, and the checks of its data."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin import MarginRescaling
from maxmargin.inference.min_cut import directions
from maxmargin.kernel import kernel
from maxmargin.models.grid import IGNORE, Grid, sure_labels
from maxmargin.models.signature import PLANE_SIGNATURE
from maxmargin.solvers.driver import run
from maxmargin.testing import check_model
from reference.qp import solve_primal

from .batches import decode, plane, planes

SHAPES = {4: [(2, 2), (3, 3), (1, 5)], 8: [(2, 2), (3, 3), (4, 1)], 6: [(2, 2, 2), (1, 2, 3)], 18: [(2, 2, 2)],
          26: [(2, 2, 2), (2, 1, 3)]}  # fmt: skip


def masks_of(shape):
    return [np.reshape(bits, shape) for bits in product([0, 1], repeat=int(np.prod(shape)))]


def phi(x, mask, neighbours, used):
    """Joint features of a mask, pixel by pixel; pixels that are not used are not there."""
    node, edge = np.zeros(x["node"].shape[-1]), np.zeros(x["edge"].shape[-1])
    for p in np.ndindex(mask.shape):
        node += mask[p] * used[p] * x["node"][p]
        for j, step in enumerate(directions(neighbours)):
            q = tuple(np.add(p, step))
            if all(0 <= a < n for a, n in zip(q, mask.shape, strict=True)) and used[p] and used[q]:
                edge -= (mask[p] != mask[q]) * x["edge"][(j, *p)]
    return np.concatenate([node, edge])


def example(rng, shape, neighbours, F=2, G=2, ignored=0.2):
    x = {"node": rng.normal(size=(*shape, F)), "edge": rng.random((neighbours // 2, *shape, G))}
    return x, np.where(rng.random(shape) < ignored, IGNORE, rng.integers(0, 2, shape))


def examples(seed, neighbours, ignored=0.2):
    rng = np.random.default_rng(seed)
    pairs = [example(rng, shape, neighbours, ignored=ignored) for shape in SHAPES[neighbours]]
    X, Y = [x for x, _ in pairs], [y for _, y in pairs]
    Y[0].flat[0] = 1
    return X, Y, rng


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 0.5, -1.0, -3.0]))
def test_argmax_and_plane_equal_brute_force(neighbours, seed, lam):
    X, Y, rng = examples(seed, neighbours)
    extra = [rng.random(y.shape) for y in Y]
    bound = Grid(neighbours).bind(X, Y, pixel_cost=extra)
    w = rng.normal(size=4) * [1.0, 1.0, 0.5, 0.5]
    w[2:] = np.abs(w[2:])
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        used = y != IGNORE
        truth = phi(x, np.where(used, y, 0), neighbours, used)
        values = []
        for mask in masks_of(y.shape):
            cost = (extra[i] * used * (mask != y)).sum()
            values.append(w @ (phi(x, mask, neighbours, used) - truth) + lam * cost)
        output, a, b, value, limit = answer(bound, w, i, lam)
        assert value == pytest.approx(max(values), abs=1e-9)
        assert limit == pytest.approx(max(values), abs=1e-9)
        mask = output.reshape(y.shape)
        np.testing.assert_allclose(a, truth - phi(x, mask, neighbours, used), atol=1e-9)
        assert b == pytest.approx((extra[i] * used * (mask != y)).sum())


def answer(bound, w, i, lam):
    """What the kernel says: output, plane (a, b), value, bound."""
    (row,), _ = planes(bound, w, [i], lam)
    made, output, result = plane(bound, w, i, lam, 1)
    assert made == 1 and row.b == lam * result[2]
    return output, row.a, result[2], result[0], result[1]


@pytest.mark.parametrize("neighbours", sorted(SHAPES))
def test_contract(neighbours):
    X, Y, _ = examples(1, neighbours)
    check_model(Grid(neighbours, cost="balanced", boundary=1.0), X, Y, n_trials=8)


def test_negative_edge_weights_are_not_certified():
    X, Y, _ = examples(2, 4)
    bound = Grid(4).bind(X, Y)
    w = np.array([0.3, -0.2, 0.5, -0.1])
    _, a, b, value, limit = answer(bound, w, 1, 1.0)
    assert limit == np.inf
    assert value == pytest.approx(b - w @ a)


@pytest.mark.parametrize("neighbours", [4, 26])
def test_fixed_pixels(neighbours):
    X, Y, rng = examples(3, neighbours, ignored=0.0)
    layout = Grid(neighbours).bind(X, Y).layout
    fixed = [rng.integers(-1, 2, y.shape) for y in Y]
    w = np.array([1.0, -2.0, 0.7, 0.4])
    bound = Grid(neighbours).bind(X, layout=layout, fixed=fixed)
    for i, found in enumerate(decode(bound, w, np.arange(len(X)), 0.0)[0]):
        used = np.ones(Y[i].shape, bool)
        allowed = [m for m in masks_of(Y[i].shape) if ((fixed[i] < 0) | (fixed[i] == m)).all()]
        best = max(allowed, key=lambda m: w @ phi(X[i], m, neighbours, used))
        np.testing.assert_array_equal(found, best.ravel())


PRESETS = {
    "auto": mm.Auto(),
    "one": mm.SimplicialDecomposition("one"),
    "one, limit 6": mm.SimplicialDecomposition("one", limit=6),
    "product": mm.SimplicialDecomposition("product"),
    "product, working set": mm.SimplicialDecomposition("product", working_set=2),
    "cutting plane, n": mm.CuttingPlane("n"),
    "cutting plane, one": mm.CuttingPlane("one"),
    "sequential": mm.SequentialDual(tau=1e-11),
    "product, limit 6": mm.SimplicialDecomposition("product", limit=6),
    "bcfw, pairwise": mm.BCFW(steps="pairwise"),
    "bcfw, pairwise, gap": mm.BCFW("gap", steps="pairwise"),
    "frank-wolfe, pairwise": mm.FrankWolfe(steps="pairwise"),
}


@cache
def watching_kernel():
    """The kernel of the grid, which also keeps the least edge weight it ever saw as the last of the floats."""
    from maxmargin.models.grid_kernel import N_EDGE, N_NODE, grid_plane

    @kernel(PLANE_SIGNATURE)
    def watching(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
        for k in range(meta[N_NODE], meta[N_NODE] + meta[N_EDGE]):
            floats[-1] = min(floats[-1], w[k])
        return grid_plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result)

    return watching


def enumerated(loss, C):
    """A bound model whose sign constraints bind, watched, its problem, and the answer of a conic solver."""
    X, Y, _ = examples(5, 4)
    # one edge feature at odds with the masks, so that its sign constraint binds
    Y[1] = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    bound = Grid(4).bind(X, Y)
    all_planes = []
    for x, y in zip(X, Y, strict=True):
        used = y != IGNORE
        truth = phi(x, np.where(used, y, 0), 4, used)
        a = [truth - phi(x, mask, 4, used) for mask in masks_of(y.shape)]
        all_planes.append((np.array(a), np.array([(used * (mask != y)).sum() for mask in masks_of(y.shape)], float)))
    positive = bound.layout.positive()
    squared = loss == "squared_hinge"
    reference = solve_primal(
        all_planes, np.full(len(X), (2.0 if squared else 1.0) * C), squared=squared, positive=positive
    )
    assert (reference.weights[2:] < 1e-6).any(), "no constraint binds: the problem tests too little"

    watched = replace(bound, plane=watching_kernel(), floats=np.append(bound.floats, np.inf))
    return watched, MarginRescaling(loss=loss).problem(watched, C=C, positive=positive), reference


@pytest.mark.parametrize("C", [0.1, 2.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", PRESETS)
def test_training_agrees_with_a_conic_solver(name, loss, C):
    watched, problem, reference = enumerated(loss, C)
    result = run(PRESETS[name].engine(problem, 0), problem, tol=1e-9, max_passes=5000)
    assert result.status.code == "converged", str(result.status)
    assert 0.0 <= watched.floats[-1] < np.inf, "a negative capacity was sent to the cut"
    assert result.certificate.certified
    assert result.certificate.primal == pytest.approx(reference.objective, rel=1e-6)
    assert result.certificate.dual == pytest.approx(reference.objective, rel=1e-6)
    assert (result.weights[2:4] >= 0).all()


# With one plane per example, or one for all, convergence is at the rate 1/t: a digit costs ten times the passes.
@pytest.mark.parametrize(
    "C, loss, rel, passes",
    [
        (0.1, "hinge", 1e-6, 2000),
        (2.0, "hinge", 2e-2, 200),
        pytest.param(2.0, "hinge", 1e-6, 120_000, marks=pytest.mark.slow),
        pytest.param(0.1, "squared_hinge", 2e-5, 30_000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("solver", [mm.BCFW(), mm.FrankWolfe()], ids=["bcfw", "frank_wolfe"])
def test_methods_of_one_plane_close_in_on_it(solver, C, loss, rel, passes):
    watched, problem, reference = enumerated(loss, C)
    result = run(solver.engine(problem, 0), problem, tol=1e-8, max_passes=passes)
    assert 0.0 <= watched.floats[-1] < np.inf, "a negative capacity was sent to the cut"
    assert result.certificate.dual <= reference.objective * (1 + 1e-9)
    assert result.certificate.primal >= reference.objective * (1 - 1e-9)
    assert result.certificate.primal == pytest.approx(reference.objective, rel=rel)
    assert result.certificate.dual == pytest.approx(reference.objective, rel=rel)


def test_costs():
    mask = np.array([[1, 1, 0, 0, 0, IGNORE]])
    x = {"node": np.ones((1, 6, 1))}
    bound = Grid(cost="balanced").bind([x], [mask])
    costs = bound.layout.pixel_costs(mask)
    assert costs[mask == 1].sum() == pytest.approx(costs[mask == 0].sum()) and costs[0, 5] == 0.0
    near = Grid(boundary=2.0, width=1.0).bind([x], [mask]).layout.pixel_costs(mask)[0]
    np.testing.assert_allclose(near, [1 + 2 * np.exp(-0.5), 3.0, 3.0, 1 + 2 * np.exp(-0.5), 1 + 2 * np.exp(-2.0), 0.0])
    plain = Grid(normalize=True).bind([x], [mask]).layout
    assert plain.cost(mask, np.zeros((1, 6))) == pytest.approx(2 / 5)
    assert plain.cost(mask, np.ones(6)) == pytest.approx(3 / 5)
    both = [np.array([[1, 0, 0, 0]]), np.array([[1, 1, 1, 0]])]
    layout = Grid(cost="balanced_image").bind([{"node": np.ones((1, 4, 1))}] * 2, both).layout
    for mask in both:
        costs = layout.pixel_costs(mask)
        assert costs[mask == 1].sum() == pytest.approx(costs[mask == 0].sum()) and costs.sum() == pytest.approx(4.0)


def test_ignored_pixels_have_no_say():
    X, Y, _ = examples(7, 8, ignored=0.4)
    w = np.array([1.0, -1.0, 0.6, 0.3])
    far = [np.where((y == IGNORE)[..., None], 50.0, x["node"]) for x, y in zip(X, Y, strict=True)]
    other = [{"node": node, "edge": x["edge"]} for node, x in zip(far, X, strict=True)]
    for i in range(len(X)):
        before, after = (answer(Grid(8).bind(data, Y), w, i, 1.0) for data in (X, other))
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[1], after[1])


def _bad(**changes):
    X, Y, _ = examples(0, 4, ignored=0.0)
    changes.get("x", lambda X: None)(X)
    changes.get("y", lambda Y: None)(Y)
    return X, Y


@pytest.mark.parametrize(
    "change, message",
    [
        ({"x": lambda X: X[1]["node"].__setitem__((0, 1, 0), np.nan)}, r"image 1 has NaN .* node features, first at"),
        ({"x": lambda X: X[2]["edge"].__setitem__((0, 0, 0, 0), -1.0)}, "image 2 has negative edge features"),
        ({"x": lambda X: X.__setitem__(0, {"node": np.ones((2, 2))})}, "node features of image 0 are"),
        ({"x": lambda X: X[1].__setitem__("edge", np.ones((1, 3, 3, 2)))}, "edge features of image 1 have shape"),
        ({"x": lambda X: X[1].__setitem__("edge", X[1]["edge"] + 0j)}, "edge features of image 1 have .* complex"),
        ({"x": lambda X: X[1].__setitem__("edge", X[1]["edge"].astype(int) - 1)}, "image 1 has negative edge features"),
        ({"x": lambda X: X[2].pop("edge")}, "image 2 has 2 node and 0 edge features"),
        ({"x": lambda X: X[2].pop("node")}, "image 2 must be a mapping"),
        ({"x": lambda X: X.clear()}, "there are no images"),
        ({"y": lambda Y: Y.__setitem__(1, np.zeros((3, 4), int))}, r"mask of image 1 has shape \(3, 4\)"),
        ({"y": lambda Y: Y[1].__setitem__((0, 0), 2)}, "mask of image 1 has the label 2.*GraphLabeler"),
        ({"y": lambda Y: [y.fill(0) for y in Y]}, "no mask has any foreground"),
        ({"y": lambda Y: Y.pop()}, "3 images and 2 masks"),
    ],
)
def test_bad_input(change, message):
    X, Y = _bad(**change)
    with pytest.raises(ValueError, match=message):
        Grid(4).bind(X, Y)


@pytest.mark.parametrize(
    "options, message",
    [({"neighbours": 5}, "neighbours is 5"), ({"cost": "dice"}, "cost must be one of"), ({"boundary": -1}, "boundary")],
)
def test_bad_options(options, message):
    X, Y = _bad()
    with pytest.raises(ValueError, match=message):
        Grid(**options).bind(X, Y)


def test_other_truths_and_fixed_labels_are_those_of_a_fresh_binding():
    X, Y, rng = examples(11, 4, ignored=0.2)
    w = np.array([1.0, -1.0, 0.4, 0.7])
    bound = Grid(4).bind(X, Y)
    others = [np.where(y == IGNORE, IGNORE, rng.integers(0, 2, y.shape)) for y in Y]
    fresh = Grid(4).bind(X, others, layout=bound.layout)
    moved = bound.with_truth([np.where(y == IGNORE, 0, y) for y in others])
    for i in range(len(X)):
        np.testing.assert_allclose(answer(moved, w, i, 1.0)[1], answer(fresh, w, i, 1.0)[1], atol=1e-12)
    fixed = [np.where(y == IGNORE, -1, rng.integers(-1, 2, y.shape)) for y in Y]
    ours = decode(bound.with_fixed(fixed), w, np.arange(len(X)), 0.0)[0]
    for x, mask, known, y in zip(X, ours, fixed, Y, strict=True):
        mask = mask.reshape(y.shape)
        assert (mask[known >= 0] == known[known >= 0]).all()
        used = y != IGNORE
        allowed = [m for m in masks_of(y.shape) if (m[known >= 0] == known[known >= 0]).all()]
        best = max(w @ phi(x, m, 4, used) for m in allowed)
        assert w @ phi(x, mask, 4, used) == pytest.approx(best)


def test_sure_labels_are_far_from_the_other_label():
    mask = np.zeros((5, 9), int)
    mask[:, 4:] = 1
    mask[0, 0] = IGNORE
    known = sure_labels(mask, 2.0)
    assert known[1].tolist() == [0, 0, -1, -1, -1, -1, 1, 1, 1] and known[0, 0] == -1
    assert (sure_labels(np.ones((2, 2), int), 3.0) == 1).all()  # there is no other label
