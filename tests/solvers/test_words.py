"""Planes in words against the planes themselves: products, steps, jumps; planes that come and go, and both forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.solvers import words_kernel as vk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation_kernel import aim
from maxmargin.solvers.working_set import WorkingSet, extended

N_COLUMNS = 40
planes_of = st.lists(
    st.dictionaries(st.integers(0, N_COLUMNS - 1), st.sampled_from([-511.0, -2.0, -1.0, 1.0, 1.0, 3.0]), max_size=25),
    min_size=1,
    max_size=6,
)
forms = st.sampled_from([vk.PACKED, vk.PLAIN])


class Block:
    """A working set of one block, in words as its planes come and go. Plain words have entries that are halves."""

    def __init__(self, form):
        self.ws = WorkingSet(np.array([1.0]), N_COLUMNS, N_COLUMNS)
        self.words, self.columns = vk.no_words(N_COLUMNS), 0
        self.words.mask[0] = form
        self.scale = 1.0 if form == vk.PACKED else 0.5

    @property
    def store(self):
        return self.ws.store

    def add(self, planes):
        self.ws.grow(0, len(planes) + 1, 30 * len(planes) + 1)
        store, fresh = self.store, []
        self.words = self.words._replace(word=extended(self.words.word, len(self.words.word), len(store.columns)))
        for entries in planes:
            index, begin = np.array(list(entries), np.int32), store.size[wk.POOL_END]
            value = self.scale * np.array(list(entries.values()), np.float64)
            wk.insert(store, 0, index, value, len(entries) + 0.25, self.ws.table, self.ws.bits, self.ws.dense)
            first = vk.write(store, self.words, begin, store.size[wk.POOL_END])
            fresh += [first] if first >= 0 else []
        self.columns = vk.number_columns(store, self.words, np.array(fresh, np.int64), self.columns)

    def matrix(self):
        """The planes themselves (m, N_COLUMNS)."""
        return self.ws.matrix(self.ws.ids(np.zeros(1, np.int64)), N_COLUMNS)

    def compact(self, u):
        return np.append(u[self.words.column[: self.columns]], 0.0)

    def check(self, u):
        """Each word leads to the column and the entry beside it."""
        store, mask = self.store, int(self.words.mask[0])
        for plane in self.ws.ids(np.zeros(1, np.int64)):
            own = slice(store.start[plane], store.start[plane] + store.length[plane])
            word = self.words.word[own]
            np.testing.assert_array_equal(self.words.column[word & mask], store.columns[own])
            if mask == vk.PACKED:
                np.testing.assert_array_equal(word >> vk.BITS, store.entries[own])
        seen = self.words.column[: self.columns]
        assert len(np.unique(seen)) == self.columns
        np.testing.assert_array_equal(self.words.number[seen], np.arange(self.columns))


def scratch_of(block):
    return block.ws.table, block.ws.dense, block.ws.g, block.ws.change


@given(first=planes_of, more=planes_of, form=forms, data=st.data())
@settings(max_examples=150, deadline=None)
def test_words_are_the_planes(first, more, form, data):
    """From scratch, after more planes have joined, and after some have left."""
    u, block = np.random.default_rng(0).normal(size=N_COLUMNS), Block(form)
    block.add(first)
    block.check(u)
    block.add(more)
    block.check(u)
    while block.store.held[0] > 1 and data.draw(st.booleans()):
        wk.remove(block.store, 0, data.draw(st.integers(0, int(block.store.held[0]) - 1)))
    block.add(first[:1])
    block.check(u)


@given(first=planes_of, more=planes_of, form=forms)
@settings(max_examples=60, deadline=None)
def test_a_visit_moves_u_as_the_multipliers_say(first, more, form):
    """u, the gain and ``sum alpha b`` follow from the multipliers that a visit finds; a share can be taken back."""
    block, u = Block(form), np.zeros(N_COLUMNS)
    block.add(first)
    block.add(more)
    A, m, compact = block.matrix(), int(block.store.held[0]), block.compact(u)
    ids, visit = block.store.slots[0, :m], wk.Visit(wk.NO_LIMIT, 1, 1, 0.0, 50, 9, 6, *scratch_of(block))
    sums, blocks = vk.sums(1, 60, 6, 60, 0), np.zeros(1, np.int64)
    vk.visit_words(block.store, block.words, blocks, 0, 1, compact, visit, sums, 0)
    alpha, b = block.store.alpha[ids].copy(), block.store.b[ids]
    assert alpha.min() >= 0.0 and alpha.sum() + block.store.origin[0] == pytest.approx(1.0)
    moved = A.T @ alpha
    np.testing.assert_allclose(compact[:-1], moved[block.words.column[: block.columns]], atol=1e-9)
    assert sums.gain[0, vk.LINEAR] == pytest.approx(alpha @ b)
    assert sums.gain[0, vk.GAIN] == pytest.approx(alpha @ b - 0.5 * moved @ moved)
    total = np.zeros(block.columns)
    vk.add_changes(block.store, block.words, blocks, sums.before[0], total)
    np.testing.assert_allclose(total, compact[:-1], atol=1e-9)
    assert vk.take_back(block.store, blocks, sums.before[0], 0.25) == pytest.approx(0.75 * alpha @ b)
    np.testing.assert_allclose(block.store.alpha[ids], 0.25 * alpha, atol=1e-15)
    assert block.store.origin[0] == pytest.approx(1.0 - 0.25 * alpha.sum())


@given(planes=planes_of, form=forms, seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_jump_aims_as_without_words(planes, form, seed):
    block = Block(form)
    block.add(planes)
    target = np.random.default_rng(seed).normal(0.2, 0.4, len(block.store.alpha))
    plain, total, other = np.zeros(N_COLUMNS), np.zeros(block.columns), target.copy()
    linear = aim(block.store, target, plain)
    assert vk.aim_words(block.store, block.words, 0, other, total) == pytest.approx(linear)
    np.testing.assert_allclose(other, target, atol=1e-15)
    np.testing.assert_allclose(total, plain[block.words.column[: block.columns]], atol=1e-12)


@pytest.mark.parametrize(
    ("entries", "fits"),
    [([1.0, -511.0, 511.0, 0.0], True), ([1.0, 0.5], False), ([512.0], False), ([np.inf], False), ([np.nan], False)],
    ids=str,
)
def test_entries_that_packed_words_hold(entries, fits):
    assert vk.is_small_and_whole(np.array(entries)) == fits
