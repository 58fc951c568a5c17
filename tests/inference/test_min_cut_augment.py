"""Cuts where excesses and wants nearly cancel, so that changes need flow along shortest paths from the scarce kind."""

import time

import numpy as np
import pytest

from maxmargin.inference.min_cut import GridCut, grid_cut, workspace_sizes

from .cut_energies import brute_force, grid_pairs, pair_capacities


def critical_energy(shape, scarce, whole, seed=0):
    """Costs without structure, of which almost all get the label that is not ``scarce``."""
    rng = np.random.default_rng(seed)
    unary, capacities = rng.random((*shape, 2)), 0.5 * rng.random((len(shape), *shape))
    unary[..., scarce] += 0.005
    return (np.round(1000.0 * unary), np.round(1000.0 * capacities)) if whole else (unary, capacities)


def shuffled(rng, unary, share):
    """The costs of some pixels in another order among themselves."""
    unary = unary.copy()
    where = rng.random(unary.shape[:-1]) < share
    unary[where] = rng.permutation(unary[where])
    return unary


def pymaxflow_value(unary, pairs, capacities):
    maxflow = pytest.importorskip("maxflow")
    graph = maxflow.GraphFloat()
    nodes = graph.add_grid_nodes(unary.size // 2)
    graph.add_edges(pairs[:, 0], pairs[:, 1], capacities, capacities)
    graph.add_grid_tedges(nodes, unary.reshape(-1, 2)[:, 1], unary.reshape(-1, 2)[:, 0])
    return graph.maxflow()


@pytest.mark.parametrize("scarce", [0, 1])
@pytest.mark.parametrize("whole", [False, True])
def test_scattered_changes_of_nearly_critical_volumes(scarce, whole):
    rng = np.random.default_rng(1)
    shape = (18, 18, 18)
    unary, capacities = critical_energy(shape, scarce, whole)
    pairs, which = grid_pairs(shape, 6)
    chosen = pair_capacities(capacities, pairs, which)
    cut = GridCut(shape)
    labels, _ = cut.solve(unary, capacities)
    assert abs(labels.mean() - (1 - scarce)) < 0.05  # the other label has almost all
    for _ in range(5):
        unary = shuffled(rng, unary, 0.05)
        labels, value = cut.solve(unary)
        expected, least = grid_cut(unary, capacities)
        np.testing.assert_array_equal(labels, expected)
        if whole:
            assert value == least == pymaxflow_value(unary, pairs, chosen)
        else:
            assert value == pytest.approx(least, rel=1e-11)
            assert value == pytest.approx(pymaxflow_value(unary, pairs, chosen), rel=1e-11)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_all_that_can_flow_flows(sign):
    from maxmargin.inference.min_cut_augment_kernel import augment_all
    from maxmargin.inference.min_cut_grid_kernel import grid_labels, grid_layout, grid_load
    from maxmargin.inference.min_cut_kernel import OFFSETS, STATE_SIZE, grid_flow

    rng = np.random.default_rng(2)
    shape, sides = (3, 4), (1, 3, 4, 4)
    pairs, which = grid_pairs(shape, 4)
    n_int, n_float = workspace_sizes(shape, 4)
    n = grid_layout(*sides)[3]
    augmented = 0
    for _ in range(200):
        excess = rng.integers(1, 4, 12).astype(float)
        excess[rng.integers(12)] = -8.0  # one wants, and more is there than it wants
        excess *= -sign
        capacities = rng.integers(0, 4, (2, *shape)).astype(float)
        work, fwork = np.zeros(n_int, np.int32), np.empty(n_float)
        assert grid_load(*sides, excess, capacities.ravel(), work, fwork) == -1
        residual, left = fwork[: 4 * n], fwork[4 * n : 5 * n]
        offsets = work[OFFSETS:STATE_SIZE]
        work[STATE_SIZE : STATE_SIZE + n] = sign > 0.0  # all others are on the other side
        augment_all(n, 4, offsets, work, residual, left)
        assert residual.min() >= 0.0 and left.sum() == excess.sum()
        assert not work[STATE_SIZE + 2 * n :].any()  # the lists are empty again
        before, wanted = left.copy(), (sign * left).clip(0.0).sum()
        augmented += wanted < 8.0
        grid_flow(n, 4, None, offsets, None, work, residual, left, fwork[5 * n], False)
        np.testing.assert_array_equal(left, before)  # nothing was left to flow
        labels = np.empty(12, np.int32)
        value = grid_labels(*sides, labels, work, fwork)
        unary = np.stack([np.zeros(12), excess], axis=1)
        least, ones = brute_force(unary, pairs, pair_capacities(capacities, pairs, which))
        assert value == least
        np.testing.assert_array_equal(labels, ones)
    assert augmented > 100


def best_row(unary, capacity):
    """The least energy of one row with one capacity, by dynamic programming."""
    zero, one = unary[0]
    for a, b in unary[1:].tolist():
        zero, one = min(zero, one + capacity) + a, min(one, zero + capacity) + b
    return min(zero, one)


@pytest.mark.parametrize("place", [0, 20_000])
@pytest.mark.parametrize("want", [4_000.0, 28_000.0, 80_000.0])
@pytest.mark.parametrize("again", [False, True])
def test_the_time_of_a_long_row_does_not_grow_with_its_square(place, want, again):
    """One pixel wants what all others have: at once, or after a change of some others."""
    n = 40_000
    unary = np.zeros((1, n, 2))
    unary[0, :, 1] = 1.0
    unary[0, place, 0] = want
    cut = GridCut((1, n))
    if again:
        cut.solve(unary, 1e6)
        unary = unary.copy()
        unary[0, ::25, 1] = 2.0
    begin = time.thread_time()
    _, value = cut.solve(unary, None if again else 1e6)
    assert time.thread_time() - begin < 1.0  # a square takes several seconds
    assert value == best_row(unary[0], 1e6)


@pytest.mark.parametrize("largest", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("shape, neighbours", [((300, 300), 4), ((150, 150), 8), ((40, 40, 40), 6)])
def test_the_time_of_shortest_paths_is_bounded(shape, neighbours, largest):
    """Both labels common, and long paths for much flow: the work has a budget, and the forest does the rest."""
    rng = np.random.default_rng(3)
    unary, capacities = rng.random((*shape, 2)), largest * rng.random((neighbours // 2, *shape))
    cut = GridCut(shape, neighbours)
    begin = time.thread_time()
    cut.solve(unary, capacities)
    cold = time.thread_time() - begin
    for _ in range(3):
        unary = unary.copy()
        where = rng.random(shape) < 0.05
        unary[where] = rng.random((int(where.sum()), 2))
        begin = time.thread_time()
        labels, value = cut.solve(unary)
        assert time.thread_time() - begin < 3.0 * cold + 0.5
        expected, least = grid_cut(unary, capacities, neighbours)
        np.testing.assert_array_equal(labels, expected)
        assert value == pytest.approx(least, rel=1e-11)
