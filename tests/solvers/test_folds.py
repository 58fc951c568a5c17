"""Folded blocks against the planes themselves: inner products, Gram rows, steps, jumps; planes that come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.solvers import folded_kernel as vk
from maxmargin.solvers import folds_kernel as fk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation_kernel import aim
from maxmargin.solvers.working_set import WorkingSet

N_COLUMNS = 40
planes_of = st.lists(
    st.dictionaries(
        st.integers(0, N_COLUMNS - 1), st.sampled_from([-2.0, -1.0, -0.5, 1.0, 1.0, 1.0, 3.0]), max_size=25
    ),
    min_size=1,
    max_size=6,
)


class Block:
    """A working set of one block, folded as its planes come and go."""

    def __init__(self, room=4000):
        self.ws = WorkingSet(np.array([1.0]), N_COLUMNS, N_COLUMNS)
        self.folds = fk.folds(1, 1, N_COLUMNS, room)
        self.scratch, self.sums, self.columns = fk.scratch(1, 2000), vk.sums(1, 2000, 60), 0

    @property
    def store(self):
        return self.ws.store

    def add(self, planes):
        self.ws.grow(0, len(planes) + 1, 30 * len(planes) + 1)
        held = int(self.store.held[0])
        for entries in planes:
            index = np.array(list(entries), np.int32)
            value = np.array(list(entries.values()), np.float64)
            b = float(len(entries)) + 0.25
            wk.insert(self.store, 0, index, value, b, self.ws.table, 0, self.ws.dense)
        fresh = int(self.store.held[0]) - held
        assert fk.fold(self.store, 0, self.folds, self.scratch, 0, fresh)
        self.columns = fk.number_columns(self.folds, self.columns)

    def remove(self, position):
        place = np.arange(60, dtype=np.int32)
        place[position] = place[self.store.held[0] - 1]
        wk.remove(self.store, 0, position)
        fk.keep_planes(self.store, 0, self.folds, self.scratch, 0, place)

    def matrix(self):
        """The planes themselves (m, N_COLUMNS)."""
        return self.ws.matrix(self.ws.ids(np.zeros(1, np.int64)), N_COLUMNS)

    def compact(self, u):
        return np.append(u[self.folds.column[: self.columns]], 0.0)

    def check(self, u):
        A, m = self.matrix(), int(self.store.held[0])
        g, b = np.zeros(60), self.store.b[self.store.slots[0, :m]]
        vk.folded_gradients(self.store, 0, self.folds, self.compact(u), self.sums, 0, g)
        np.testing.assert_allclose(g[:m], b - A @ u, atol=1e-12)
        ids = self.store.slots[0, :m]
        np.testing.assert_allclose(self.store.gram[ids, :m], A @ A.T, atol=1e-12)
        own = self.folds.block[0]
        used = np.count_nonzero(np.any(A != 0, axis=0))
        assert own[fk.PLANES] == m and own[fk.FOLDS] <= own[fk.COLUMNS] == used


@given(first=planes_of, more=planes_of, data=st.data())
@settings(max_examples=150, deadline=None)
def test_folded_planes_are_the_planes(first, more, data):
    """Products and Gram rows, from scratch, after more planes have joined, and after some have left."""
    u = np.random.default_rng(0).normal(size=N_COLUMNS)
    block = Block()
    block.add(first)
    block.check(u)
    block.add(more)
    block.check(u)
    while block.store.held[0] > 1 and data.draw(st.booleans()):
        block.remove(data.draw(st.integers(0, int(block.store.held[0]) - 1)))
        block.check(u)
    block.add(first[:1])
    block.check(u)


@given(first=planes_of, more=planes_of)
@settings(max_examples=60, deadline=None)
def test_a_visit_moves_u_as_the_multipliers_say(first, more):
    """u, the gain and ``sum alpha b`` follow from the multipliers that a visit finds; a share can be taken back."""
    block, u = Block(), np.zeros(N_COLUMNS)
    block.add(first)
    block.add(more)
    A, m, compact = block.matrix(), int(block.store.held[0]), block.compact(u)
    ids, visit = block.store.slots[0, :m], wk.Visit(wk.NO_LIMIT, 1, 1, 0.0, 50, 9, 6, *scratch_of(block))
    vk.visit_folded(block.store, np.zeros(1, np.int64), block.folds, compact, visit, block.sums, 0)
    vk.unload(block.store, 0, block.folds, 0)
    alpha, b = block.store.alpha[ids], block.store.b[ids]
    assert alpha.min() >= 0.0 and alpha.sum() + block.store.origin[0] == pytest.approx(1.0)
    moved = A.T @ alpha
    np.testing.assert_allclose(compact[:-1], moved[block.folds.column[: block.columns]], atol=1e-12)
    assert block.sums.gain[0, vk.LINEAR] == pytest.approx(alpha @ b)
    assert block.sums.gain[0, vk.GAIN] == pytest.approx(alpha @ b - 0.5 * moved @ moved)
    total = np.zeros(block.columns)
    vk.add_changes(np.zeros(1, np.int64), block.folds, block.sums, 0, total)
    np.testing.assert_allclose(total, compact[:-1], atol=1e-12)
    assert vk.take_back(block.store, np.zeros(1, np.int64), block.folds, 0, 0.25) == pytest.approx(0.75 * alpha @ b)
    vk.unload(block.store, 0, block.folds, 0)
    np.testing.assert_allclose(block.store.alpha[ids], 0.25 * alpha, atol=1e-15)


def scratch_of(block):
    return block.ws.table, block.ws.dense, block.ws.g, block.ws.change


@given(planes=planes_of, seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_jump_aims_as_without_folds(planes, seed):
    block = Block()
    block.add(planes)
    target = np.random.default_rng(seed).normal(0.2, 0.4, len(block.store.alpha))
    plain, total, other = np.zeros(N_COLUMNS), np.zeros(block.columns), target.copy()
    linear = aim(block.store, target, plain)
    assert vk.aim_folded(block.store, 0, block.folds, block.sums, 0, other, total) == pytest.approx(linear)
    np.testing.assert_allclose(other, target, atol=1e-15)
    np.testing.assert_allclose(total, plain[block.folds.column[: block.columns]], atol=1e-12)


def test_many_short_planes_that_do_not_fold():
    """Scratch must hold an end of each plane beside all entries."""
    block = Block()
    for k in range(12):
        block.add([{k: 1.0 + k}, {k: -1.0, k + 20: 2.5}])
    block.check(np.linspace(-1.0, 1.0, N_COLUMNS))


def test_no_room_is_said_and_changes_nothing():
    block = Block(room=50)
    block.add([{0: 1.0, 1: 1.0}])
    before = block.folds.block.copy()
    index = np.arange(30, dtype=np.int32)
    block.ws.grow(0, 2, 60)
    wk.insert(block.store, 0, index, np.arange(1.0, 31.0), 1.0, block.ws.table, 0, block.ws.dense)
    assert not fk.fold(block.store, 0, block.folds, block.scratch, 0, 1)
    np.testing.assert_array_equal(block.folds.block, before)
