"""Minimum cuts of grids against looking at every labeling, against each other, and against PyMaxflow."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference.min_cut import GridCut, directions, graph_cut, grid_cut, workspace_sizes

from .cut_energies import KINDS, brute_force, energy, grid_pairs, pair_capacities

TINY = [(4, s) for s in [(1, 1), (1, 2), (1, 9), (9, 1), (3, 3), (2, 5)]]
TINY += [(8, s) for s in [(1, 1), (1, 7), (5, 1), (3, 3), (2, 5)]]
TINY += [(k, s) for k in (6, 18, 26) for s in [(1, 1, 1), (1, 1, 8), (1, 3, 3), (2, 2, 2), (5, 1, 2), (2, 2, 3)]]


def random_energy(rng, shape, neighbours, kind):
    """Costs and capacities: real, small integers (many ties), mostly zero capacities, or in separate parts."""
    full = (neighbours // 2, *shape)
    if kind == "real":
        return rng.normal(size=(*shape, 2)), rng.exponential(size=full) * rng.choice([0.1, 1.0, 10.0])
    unary = rng.integers(-4, 5, (*shape, 2)).astype(float)
    capacities = rng.integers(0, 4, full).astype(float)
    if kind == "zero":
        capacities *= rng.random(full) < 0.3
    if kind == "parts":  # nothing crosses the middle of the last axis
        capacities[..., max(0, shape[-1] // 2 - 1) : shape[-1] // 2 + 1] = 0.0
    return unary, capacities


@pytest.mark.parametrize("kind", ["integer", "zero", "real"])
@pytest.mark.parametrize(("neighbours", "shape"), TINY)
def test_every_labeling_of_tiny_grids(neighbours, shape, kind):
    rng = np.random.default_rng([neighbours, *shape])
    pairs, which = grid_pairs(shape, neighbours)
    for _ in range(20):
        unary, capacities = random_energy(rng, shape, neighbours, kind)
        labels, value = grid_cut(unary, capacities, neighbours)
        chosen = pair_capacities(capacities, pairs, which)
        least, ones = brute_force(unary, pairs, chosen)
        assert value == pytest.approx(least, rel=1e-12, abs=1e-12)
        assert energy(unary, pairs, chosen, labels.ravel()) == pytest.approx(least, rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(labels.ravel(), ones)  # ties too: the fewest ones


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from([4, 8]), st.data())
def test_hypothesis_looks_for_trouble(height, width, neighbours, data):
    numbers = st.sampled_from([0.0, 1.0, 2.0, 1e-9, 1e9, 0.5, 3.0])
    n = height * width
    unary = np.array(data.draw(st.lists(numbers, min_size=2 * n, max_size=2 * n))).reshape(height, width, 2)
    size = n * neighbours // 2
    capacities = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size))).reshape(-1, height, width)
    labels, value = grid_cut(unary, capacities, neighbours)
    pairs, which = grid_pairs((height, width), neighbours)
    chosen = pair_capacities(capacities, pairs, which)
    least, _ = brute_force(unary, pairs, chosen)
    scale = 1e-9 * (1.0 + unary.max() + chosen.max(initial=0.0))  # 1e-9 beside 1e9 is beyond the last digit
    assert value == pytest.approx(least, rel=1e-9, abs=scale)
    assert energy(unary, pairs, chosen, labels.ravel()) == pytest.approx(least, rel=1e-9, abs=scale)


@pytest.mark.parametrize("neighbours", sorted(KINDS))
def test_directions_name_half_of_the_neighbours(neighbours):
    dimensions, far, most = KINDS[neighbours]
    steps = directions(neighbours)
    assert steps.shape == (neighbours // 2, dimensions)
    everyone = {tuple(s) for s in [*steps.tolist(), *(-steps).tolist()]}
    assert len(everyone) == neighbours
    assert all(np.abs(s).max() == far and np.abs(s).sum() <= most for s in everyone)


@pytest.mark.parametrize(
    ("neighbours", "shape"), [(4, (17, 23)), (8, (20, 15)), (6, (5, 9, 7)), (18, (6, 5, 7)), (26, (4, 8, 5))]
)
@pytest.mark.parametrize("kind", ["real", "integer", "parts"])
def test_grids_are_graphs(neighbours, shape, kind):
    rng = np.random.default_rng(0)
    pairs, which = grid_pairs(shape, neighbours)
    for _ in range(5):
        unary, capacities = random_energy(rng, shape, neighbours, kind)
        labels, value = grid_cut(unary, capacities, neighbours)
        chosen = pair_capacities(capacities, pairs, which)
        expected, other = graph_cut(unary.reshape(-1, 2), pairs, chosen)
        np.testing.assert_array_equal(labels.ravel(), expected)
        assert value == pytest.approx(other, rel=1e-12)
        assert value == pytest.approx(energy(unary, pairs, chosen, labels.ravel()), rel=1e-9)


def pymaxflow_value(unary, capacities, neighbours):
    maxflow = pytest.importorskip("maxflow")
    shape = unary.shape[:-1]
    graph = maxflow.GraphFloat()
    nodes = graph.add_grid_nodes(shape)
    low = unary.min(axis=-1)  # its terminal capacities must not be negative
    for step, capacity in zip(directions(neighbours), capacities, strict=True):
        structure = np.zeros((3,) * len(shape))
        structure[tuple(1 + step)] = 1.0
        graph.add_grid_edges(nodes, weights=capacity, structure=structure, symmetric=True)
    graph.add_grid_tedges(nodes, unary[..., 1] - low, unary[..., 0] - low)
    return graph.maxflow() + low.sum()


def compare_with_pymaxflow(seed, rounds):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        neighbours = int(rng.choice(sorted(KINDS)))
        shape = tuple(int(n) for n in rng.integers(1, 14 if neighbours in (4, 8) else 7, KINDS[neighbours][0]))
        if rng.random() < 0.2:
            shape = (*(1,) * (len(shape) - 1), int(rng.integers(1, 60)))
        unary, capacities = random_energy(rng, shape, neighbours, rng.choice(["real", "integer", "zero", "parts"]))
        labels, value = grid_cut(unary, capacities, neighbours)
        expected = pymaxflow_value(unary, capacities, neighbours)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        pairs, which = grid_pairs(shape, neighbours)
        own = energy(unary, pairs, pair_capacities(capacities, pairs, which), labels.ravel())
        assert own == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_random_grids_against_pymaxflow():
    compare_with_pymaxflow(seed=0, rounds=100)


@pytest.mark.slow
def test_thousands_of_random_grids_against_pymaxflow():
    compare_with_pymaxflow(seed=1, rounds=4000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighbours", "shape"), [(4, (150, 150)), (8, (120, 90)), (6, (20, 30, 25)), (26, (15, 20, 18))]
)
def test_larger_grids_against_pymaxflow(neighbours, shape):
    rng = np.random.default_rng(2)
    for kind in ("real", "integer", "zero", "parts"):
        unary, capacities = random_energy(rng, shape, neighbours, kind)
        value = grid_cut(unary, capacities, neighbours)[1]
        assert value == pytest.approx(pymaxflow_value(unary, capacities, neighbours), rel=1e-9)


def test_a_long_row_carries_its_narrowest_place():
    unary = np.zeros((1, 5000, 2))
    unary[0, 0, 1] = unary[0, -1, 0] = 100.0  # the first pixel wants 0, the last one 1
    capacities = np.linspace(3.0, 2.0, 5000)[None, None].repeat(2, axis=0)
    capacities[0, 0, 1234] = 1.25
    labels, value = grid_cut(unary, capacities)
    assert value == 1.25
    np.testing.assert_array_equal(labels[0], np.arange(5000) > 1234)


def test_numbers_of_very_different_size():
    rng = np.random.default_rng(3)
    shape = (30, 30)
    pairs, which = grid_pairs(shape, 4)
    for _ in range(20):
        unary = 10.0 ** rng.uniform(-9, 9, (*shape, 2))
        capacities = 10.0 ** rng.uniform(-9, 9, (2, *shape))
        labels, value = grid_cut(unary, capacities)
        own = energy(unary, pairs, pair_capacities(capacities, pairs, which), labels.ravel())
        assert value == pytest.approx(own, rel=1e-9)


def changed(rng, unary, where):
    """The costs with new ones in a small block, here and there, or everywhere."""
    unary = unary.copy()
    place = ...
    if where == "block":
        place = tuple(slice(b, b + 3) for b in rng.integers(0, unary.shape[:-1]))
    elif where == "scattered":
        place = rng.random(unary.shape[:-1]) < rng.choice([0.01, 0.05, 0.12])
    unary[place] = rng.permutation(unary[place].ravel()).reshape(unary[place].shape)
    return unary


@pytest.mark.parametrize(("neighbours", "shape"), [(4, (40, 40)), (8, (30, 35)), (6, (9, 10, 11)), (26, (8, 9, 10))])
@pytest.mark.parametrize("kind", ["integer", "real", "zero"])
@pytest.mark.parametrize("where", ["block", "scattered"])
def test_cutting_again_is_cutting_afresh(neighbours, shape, kind, where):
    rng = np.random.default_rng(4)
    unary, capacities = random_energy(rng, shape, neighbours, kind)
    cut = GridCut(shape, neighbours)
    cut.solve(unary, capacities)
    for round in range(60):
        unary = changed(rng, unary, where if round % 10 != 9 else "everywhere")
        if round % 20 == 19:
            capacities = random_energy(rng, shape, neighbours, kind)[1]
            labels, value = cut.solve(unary, capacities)
        else:
            labels, value = cut.solve(unary)
        expected, least = grid_cut(unary, capacities, neighbours)
        assert value == pytest.approx(least, rel=1e-11)
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize(
    ("neighbours", "shape"), [(4, (150, 300)), (8, (90, 200)), (6, (30, 25, 40)), (18, (9, 40, 30))]
)
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_scattered_changes_of_larger_grids(neighbours, shape, kind):
    rng = np.random.default_rng(13)
    unary, capacities = random_energy(rng, shape, neighbours, kind)
    cut = GridCut(shape, neighbours)
    cut.solve(unary, capacities)
    for _ in range(6):
        unary = changed(rng, unary, "scattered")
        labels, value = cut.solve(unary)
        expected, least = grid_cut(unary, capacities, neighbours)
        assert value == pytest.approx(least, rel=1e-11)
        np.testing.assert_array_equal(labels, expected)
        assert value == pytest.approx(pymaxflow_value(unary, capacities, neighbours), rel=1e-9)


def best_row(unary, capacities):
    """The least energy of one row by dynamic programming."""
    costs = unary[0]
    for one, capacity in zip(unary[1:], capacities[:-1], strict=True):
        costs = np.minimum(costs, costs[::-1] + capacity) + one
    return costs.min()


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_changes_that_turn_a_deep_forest_around(step):
    # All excess has to go a long way, so that looking for roots soon costs more than a new forest.
    rng = np.random.default_rng(14)
    n = 4000
    unary = np.zeros((1, n, 2))
    unary[0, :, 1] = rng.integers(0, 3, n)
    unary[0, ::500, 0] = 700.0
    capacities = np.broadcast_to(900.0 + rng.integers(0, 50, n), (2, 1, n))
    cut = GridCut((1, n))
    cut.solve(unary, capacities)
    for round in range(12):
        unary = unary.copy()
        place = rng.choice(n, 200, replace=False)
        unary[0, place, round % 2] += step * round + rng.integers(0, 5, 200)
        labels, value = cut.solve(unary)
        assert value == best_row(unary[0], capacities[0, 0])
        np.testing.assert_array_equal(labels, grid_cut(unary, capacities)[0])


def test_nothing_changed():
    unary, capacities = random_energy(np.random.default_rng(5), (12, 13), 4, "real")
    cut = GridCut((12, 13))
    labels, value = cut.solve(unary, capacities)
    again, same = cut.solve(unary)
    assert same == value
    np.testing.assert_array_equal(again, labels)


@pytest.mark.parametrize("again", [False, True])
def test_forbidden_labels(again):
    rng = np.random.default_rng(6)
    shape = (3, 4)
    pairs, which = grid_pairs(shape, 8)
    for _ in range(50):
        unary, capacities = random_energy(rng, shape, 8, "integer")
        cut = GridCut(shape, 8)
        if again:
            cut.solve(unary, capacities)
        forbidden = rng.random((*shape, 2)) < 0.2
        forbidden[forbidden.all(axis=-1)] = False
        labels, value = cut.solve(np.where(forbidden, np.inf, unary), None if again else capacities)
        chosen = pair_capacities(capacities, pairs, which)
        least, ones = brute_force(np.where(forbidden, 1e6, unary), pairs, chosen)
        assert value == least
        np.testing.assert_array_equal(labels.ravel(), ones)
        labels, value = cut.solve(unary)  # and free again
        least, ones = brute_force(unary, pairs, chosen)
        assert value == least
        np.testing.assert_array_equal(labels.ravel(), ones)


@pytest.mark.parametrize(
    ("neighbours", "shape"), [(4, (7, 9)), (8, (6, 5)), (6, (3, 4, 5)), (18, (3, 3, 4)), (26, (2, 5, 4))]
)
def test_the_kernel_needs_nothing_but_its_scratch(neighbours, shape):
    from maxmargin.inference.min_cut_grid_kernel import cut_grid

    rng = np.random.default_rng(7)
    n_int, n_float = workspace_sizes(shape, neighbours)
    work, fwork = np.zeros(n_int + 5, np.int32), np.full(n_float + 5, np.nan)
    sides = (*(1,) * (3 - len(shape)), *shape)
    for _ in range(5):
        unary, capacities = random_energy(rng, shape, neighbours, "integer")
        excess = (unary[..., 1] - unary[..., 0]).ravel()
        labels = np.full(excess.size + 1, 9, np.int32)
        value = cut_grid(*sides, neighbours, excess, capacities.ravel(), labels, work, fwork)
        expected, least = grid_cut(unary, capacities, neighbours)
        assert value + unary[..., 0].sum() == least
        np.testing.assert_array_equal(labels[:-1], expected.ravel())
        assert labels[-1] == 9
        assert not work.any()  # zeros again
        assert np.isnan(fwork[-5:]).all()  # nothing written behind the end
    capacities[0, ..., 0] = -1.0
    capacities[1:] = 0.0
    assert shape[-1] == 1 or np.isnan(cut_grid(*sides, neighbours, excess, capacities.ravel(), labels, work, fwork))
    assert not work.any()


def test_inputs_are_left_alone_and_read_only_ones_are_fine():
    unary, capacities = random_energy(np.random.default_rng(8), (6, 7), 4, "real")
    before = unary.copy(), capacities.copy()
    unary.flags.writeable = capacities.flags.writeable = False
    cut = GridCut((6, 7))
    cut.solve(unary, capacities)
    cut.solve(unary)
    np.testing.assert_array_equal(unary, before[0])
    np.testing.assert_array_equal(capacities, before[1])


def test_capacities_outside_the_grid_are_not_read():
    unary, capacities = random_energy(np.random.default_rng(9), (5, 6), 8, "integer")
    expected, value = grid_cut(unary, capacities, 8)
    capacities[0, :, -1] = capacities[1, -1, :] = np.nan
    labels, same = grid_cut(unary, capacities, 8)
    assert same == value
    np.testing.assert_array_equal(labels, expected)


def test_one_number_serves_all_capacities():
    unary = np.random.default_rng(10).normal(size=(8, 9, 2))
    labels, value = grid_cut(unary, 0.7)
    expected, same = grid_cut(unary, np.full((2, 8, 9), 0.7))
    assert value == same
    np.testing.assert_array_equal(labels, expected)


def test_many_images_in_threads():
    rng = np.random.default_rng(11)
    energies = [random_energy(rng, (60, 70), 4, "real") for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda e: grid_cut(*e), energies))
    for (labels, value), each in zip(threaded, energies, strict=True):
        expected, same = grid_cut(*each)
        assert value == same
        np.testing.assert_array_equal(labels, expected)


def costs(**changes):
    unary = np.zeros((3, 4, 2))
    for place, value in changes.items():
        unary[tuple(int(i) for i in place[1:])] = value
    return unary


@pytest.mark.parametrize(
    ("unary", "capacities", "neighbours", "message"),
    [
        (np.zeros((3, 4)), 1.0, None, "the last axis must hold the costs of labels 0 and 1"),
        (np.zeros((3, 4, 3)), 1.0, None, "the last axis must hold"),
        (np.zeros((4, 2)), 1.0, None, r"the grid has shape \(4,\)"),
        (np.zeros((0, 4, 2)), 1.0, None, r"the grid has shape \(0, 4\)"),
        (costs().astype(complex), 1.0, None, "unary must be an array of real numbers, not of type complex128"),
        (costs(), "a lot", None, "capacities must be an array of real numbers, not of type <U5"),
        (costs(), 1.0, 6, r"neighbours is 6 .* give one of \(4, 8\)"),
        (np.zeros((2, 2, 2, 2)), 1.0, 8, r"give one of \(6, 18, 26\)"),
        (costs(_120=np.nan), 1.0, None, r"unary\[1, 2, 0\] is nan"),
        (costs(_120=-np.inf), 1.0, None, r"unary\[1, 2, 0\] is -inf"),
        (costs(_12=np.inf), 1.0, None, r"unary\[1, 2\] forbids both labels"),
        (costs(_111=-1e308, _121=-1e308), 1.0, None, "their sums overflow"),
        (costs(), np.ones((3, 3, 4)), None, r"capacities have shape \(3, 3, 4\).*\(2, 3, 4\)"),
        (costs(), -1.0, None, r"capacities\[0, 0, 0\] is -1.0"),
        (costs(), np.where(np.arange(24) == 13, np.inf, 1.0).reshape(2, 3, 4), None, r"capacities\[1, 0, 1\] is inf"),
        (costs(), np.where(np.arange(24) == 5, np.nan, 1.0).reshape(2, 3, 4), None, r"capacities\[0, 1, 1\] is nan"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(unary, capacities, neighbours, message):
    with pytest.raises(ValueError, match=message):
        grid_cut(unary, capacities, neighbours)


def test_wrong_calls_are_named():
    with pytest.raises(ValueError, match="the first cut needs capacities"):
        GridCut((3, 4)).solve(costs())
    with pytest.raises(ValueError, match=r"unary has shape \(3, 5, 2\).*\(3, 4, 2\)"):
        GridCut((3, 4)).solve(np.zeros((3, 5, 2)), 1.0)
    for shape in ((2.5, 3), 5, "33", (2, -1), ()):
        with pytest.raises(ValueError, match=r"the grid has shape .* whole numbers >= 1"):
            GridCut(shape)
    with pytest.raises(ValueError, match="give 4 or 8 for flat grids"):
        directions(5)
    with pytest.raises(ValueError, match="more than the 2147483647"):
        workspace_sizes((1000, 1000, 1000), 26)


def test_a_refused_call_leaves_nothing_half_done():
    rng = np.random.default_rng(12)
    unary, capacities = random_energy(rng, (9, 9), 4, "integer")
    cut = GridCut((9, 9))
    cut.solve(unary, capacities)
    with pytest.raises(ValueError, match=r"is nan"):
        cut.solve(np.full((9, 9, 2), np.nan))
    with pytest.raises(ValueError, match=r"is nan"):
        cut.solve(np.full((9, 9, 2), np.nan), 1e9)
    expected, value = grid_cut(unary, capacities)
    assert cut.solve(unary)[1] == value  # refused before anything was touched
    broken = capacities.copy()
    broken[1, 5, 5] = -1.0
    with pytest.raises(ValueError, match=r"capacities\[1, 5, 5\]"):
        cut.solve(unary, broken)
    with pytest.raises(ValueError, match="the first cut needs capacities"):
        cut.solve(unary)
    labels, same = cut.solve(unary, capacities)
    assert same == value
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("huge", [1e10, 1e16, 1e20, 1e300, np.inf])
def test_a_huge_cost_comes_and_goes(huge):
    """As people write them to fix a pixel; what they are added to must not drown."""
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 9, (12, 12, 2)).astype(float)
    fixed = unary.copy()
    fixed[3, 4, 0], fixed[7, 7, 1] = huge, huge
    cut = GridCut((12, 12))
    first = cut.solve(unary, 2.0)
    labels, energy = cut.solve(fixed)
    assert labels[3, 4] == 1 and labels[7, 7] == 0
    forced = unary.copy()
    forced[3, 4, 0], forced[7, 7, 1] = 1e4, 1e4
    assert energy == grid_cut(forced, 2.0)[1]
    again = cut.solve(unary)
    assert again[1] == first[1] and np.array_equal(again[0], first[0])


def test_a_deep_forest_does_not_make_cutting_again_slow():
    """One pixel that holds the whole picture, and a little excess everywhere that has to get there."""
    side, rng = 256, np.random.default_rng(0)
    unary = np.zeros((side, side, 2))
    unary[0, 0, 0] = 1e8
    cut = GridCut((side, side))
    cut.solve(unary, 1e7)
    changed = unary.copy()
    changed[rng.random((side, side)) < 0.1, 1] += 1.0
    cold = min(timed(lambda: grid_cut(changed, 1e7)) for _ in range(3))
    again = timed(lambda: cut.solve(changed))
    assert cut.solve(changed)[1] == grid_cut(changed, 1e7)[1]
    assert again <= 5.0 * cold + 0.02


def timed(function):
    begin = time.thread_time()
    function()
    return time.thread_time() - begin
