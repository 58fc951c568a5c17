"""Which blocks are visited next."""

import numpy as np
import pytest

from maxmargin.solvers.block_selection import POLICIES, select
from maxmargin.solvers.working_set import WorkingSet


def store_with(gap, held=None, origin=None):
    store = WorkingSet(np.ones(len(gap)), 4, 4).store
    store.gap[:] = gap
    if held is not None:
        store.held[:] = held
    if origin is not None:
        store.origin[:] = origin
    return store


@pytest.mark.parametrize("name", [*POLICIES, "cyclic"])
def test_answers_are_blocks(name):
    store = store_with([1.0, 0.0, 2.0, 0.5, 0.1])
    for count in (1, 2, 5, 9):
        chosen = select(name, store, np.random.default_rng(0), count, np.zeros(1, np.int64))
        assert chosen.dtype == np.int64
        assert ((chosen >= 0) & (chosen < 5)).all()
        if name != "random":
            assert len(set(chosen.tolist())) == len(chosen)
        if name not in ("whole", "key"):
            assert len(chosen) == (count if name == "random" else min(count, 5))


def test_unknown_policy():
    with pytest.raises(ValueError, match=r"selection must be one of cyclic.*got 'best'"):
        select("best", store_with([1.0]), np.random.default_rng(0), 1, np.zeros(1, np.int64))


def test_whole_goes_in_order_and_permutation_is_that_of_the_generator():
    store = store_with(np.ones(6))
    cursor = np.zeros(1, np.int64)
    assert select("whole", store, np.random.default_rng(1), 2, cursor).tolist() == [0, 1, 2, 3, 4, 5]
    expected = np.random.default_rng(1).permutation(6)
    assert np.array_equal(select("permutation", store, np.random.default_rng(1), 6, cursor), expected)
    assert np.array_equal(select("permutation", store, np.random.default_rng(1), 4, cursor), expected[:4])


def test_cyclic_goes_on_where_it_stopped():
    store, cursor = store_with(np.ones(5)), np.zeros(1, np.int64)
    rounds = [select("cyclic", store, np.random.default_rng(0), 2, cursor).tolist() for _ in range(5)]
    assert rounds == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]


def test_random_is_uniform_with_replacement():
    store, rng = store_with([5.0, 0.0, 0.0]), np.random.default_rng(0)
    counts = np.bincount(select("random", store, rng, 30_000, np.zeros(1, np.int64)), minlength=3)
    assert counts / 30_000 == pytest.approx(1 / 3, abs=0.02)


def test_gap_takes_blocks_never_seen_first():
    store = store_with([np.inf, 3.0, np.inf, 0.0])
    for seed in range(5):
        chosen = select("gap", store, np.random.default_rng(seed), 1, np.zeros(1, np.int64))
        assert sorted(chosen.tolist()) == [0, 2]


def test_gap_draws_in_proportion_and_forgets_nobody():
    store, rng = store_with([6.0, 3.0, 1.0, 0.0]), np.random.default_rng(0)
    counts = np.zeros(4)
    for _ in range(20_000):
        counts[select("gap", store, rng, 1, np.zeros(1, np.int64))] += 1
    share = counts / counts.sum()
    assert share == pytest.approx(0.97 * np.array([0.6, 0.3, 0.1, 0.0]) + 0.03 / 4, abs=0.015)
    assert counts[3] > 0
    store.gap[:] = 0.0  # at the optimum: uniform
    chosen = select("gap", store, rng, 4, np.zeros(1, np.int64))
    assert sorted(chosen.tolist()) == [0, 1, 2, 3]


def test_key_examples():
    """A gap, or multipliers away from the origin; when no block is key, all are."""
    store = store_with([0.0, 2.0, 0.0, 0.0], held=[0, 0, 1, 1], origin=[1.0, 1.0, 0.4, 1.0])
    chosen = select("key", store, np.random.default_rng(0), 4, np.zeros(1, np.int64))
    assert sorted(chosen.tolist()) == [1, 2]
    store = store_with(np.zeros(3), origin=np.ones(3))
    assert sorted(select("key", store, np.random.default_rng(0), 3, np.zeros(1, np.int64)).tolist()) == [0, 1, 2]
