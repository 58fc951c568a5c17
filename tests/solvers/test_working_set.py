"""The working set: Gram entries, removal, merging and memory, against dense arithmetic."""

import subprocess
import sys

import numpy as np
import pytest

from maxmargin.solvers import working_set
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.saved import Saved
from maxmargin.solvers.saved_set import saved_set
from maxmargin.solvers.working_set import WorkingSet


def assert_placed(ws):
    """Every plane is in one block or unused."""
    used = [int(p) for block in range(ws.n_blocks) for p in ws.store.slots[block, : ws.store.held[block]]]
    free = ws.store.free[: ws.store.size[wk.FREE]].tolist()
    assert sorted(used + free) == list(range(len(ws.store.b)))
    assert ws.store.size[wk.POOL_LIVE] == ws.store.length[used].sum()


def close_holes(ws, entries):
    """What visits do before they write: planes removed earlier leave holes, which growing does not close."""
    if ws.store.size[wk.POOL_END] + entries > len(ws.store.columns):
        wk.compact(ws.store)
    assert ws.store.size[wk.POOL_END] + entries <= len(ws.store.columns)


def add(ws, block, row, b):
    """Insert a dense row as a sparse plane; returns its position, -1 for a plane already there."""
    index = np.flatnonzero(row).astype(np.int32)
    ws.grow(block, 1, 4 * ws.n_columns + len(index))
    close_holes(ws, 5 * ws.n_columns)
    return wk.insert(ws.store, block, index, row[index].astype(float), float(b), ws.table, ws.bits, ws.dense)


def random_set(seed, n=3, d=12, most=6, limit=None, total=None):
    """A working set with random planes and random feasible multipliers."""
    rng = np.random.default_rng(seed)
    total = rng.uniform(0.5, 2.0, n) if total is None else total
    ws = WorkingSet(np.asarray(total, float), d, d, limit)
    for block in range(n):
        for _ in range(int(rng.integers(1, most + 1))):
            add(ws, block, rng.normal(size=d) * (rng.random(d) < 0.5), rng.random())
        ids = ws.store.slots[block, : ws.store.held[block]]
        share = rng.dirichlet(np.ones(len(ids) + 1)) * (total[block] if np.isfinite(total[block]) else 1.0)
        ws.store.alpha[ids] = share[:-1]
        ws.store.origin[block] = share[-1] if np.isfinite(total[block]) else np.inf
    u = np.zeros(d)
    wk.rebuild(ws.store, u)
    return ws, u


def assert_gram(ws):
    """The cached products are those of the planes."""
    A, _, _, owner = ws.planes()
    dense = A.toarray()
    for block in range(ws.n_blocks):
        rows = dense[owner == block]
        ids = ws.store.slots[block, : ws.store.held[block]]
        assert ws.store.gram[ids][:, : len(ids)] == pytest.approx(rows @ rows.T, abs=1e-12)
    assert_placed(ws)


@pytest.mark.parametrize("seed", range(10))
def test_gram_through_insertions_and_removals(seed):
    rng = np.random.default_rng(seed)
    ws, _ = random_set(seed, n=4, d=10, most=3)
    for _ in range(60):
        block = int(rng.integers(4))
        if rng.random() < 0.4 and ws.store.held[block]:
            wk.remove(ws.store, block, int(rng.integers(ws.store.held[block])))
        else:
            add(ws, block, rng.normal(size=10) * (rng.random(10) < 0.6), rng.random())
        if rng.random() < 0.1:
            wk.compact(ws.store)
        assert_gram(ws)


def test_planes_come_back_as_they_went_in():
    rng = np.random.default_rng(0)
    rows, owners = rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5), rng.integers(0, 5, 40)
    ws = WorkingSet(np.ones(5), 7, 7)
    for row, owner in zip(rows, owners, strict=True):
        assert add(ws, owner, row, row.sum()) >= 0
    A, b, alpha, block = ws.planes()
    order = np.argsort(owners, kind="stable")
    assert np.array_equal(A.toarray(), rows[order])
    assert np.array_equal(block, owners[order])
    assert b == pytest.approx(rows[order].sum(axis=1))
    assert not alpha.any()
    assert ws.n_planes == 40


def test_equal_planes_are_refused_and_nearly_equal_ones_are_not():
    ws = WorkingSet(np.ones(2), 4, 4)
    row = np.array([1.0, 0.0, -2.0, 3.0])
    assert add(ws, 0, row, 1.0) == 0
    assert add(ws, 0, row, 1.0) == -1
    assert add(ws, 0, row, 1.0 + 1e-9) == 1  # same vector, other cost
    assert add(ws, 0, row * (1 + 1e-9), 1.0) == 2
    assert add(ws, 1, row, 1.0) == 0  # another block
    assert add(ws, 1, np.zeros(4), 0.0) == 1  # the zero plane
    assert add(ws, 1, np.zeros(4), 0.0) == -1
    assert ws.store.size[wk.DUPLICATES] == 2


def test_long_planes_are_compared_through_a_dense_vector():
    d = wk.HASHED + 500
    rng = np.random.default_rng(1)
    ws = WorkingSet(np.ones(1), d, d)
    rows = [rng.normal(size=d), rng.normal(size=d) * (rng.random(d) < 0.01), rng.normal(size=d)]
    for row in rows:
        assert add(ws, 0, row, 1.0) >= 0
    assert add(ws, 0, rows[0], 1.0) == -1
    ids = ws.store.slots[0, :3]
    assert ws.store.gram[ids][:, :3] == pytest.approx(np.array(rows) @ np.array(rows).T, rel=1e-10, abs=1e-8)
    assert not ws.dense.any()
    assert not ws.table.any()


@pytest.mark.parametrize("rule", [wk.ITERATE, wk.MERGE])
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_making_room_keeps_the_current_point(seed, limit, rule):
    """Fewer extreme points, at most one stored iterate, and the same sum alpha a, sum alpha b and block sums."""
    total = np.array([1.5, np.inf, 0.7])
    ws, u = random_set(seed, total=total, most=6)
    linear = ws.linear
    before = [ws.store.alpha[ws.store.slots[i, : ws.store.held[i]]].sum() for i in range(3)]
    ws.grow(0, 8, 40 * 12)
    for block in range(3):
        for _ in range(8):
            ws.grow(block, 1, 10 * 12)
            close_holes(ws, 10 * 12)
            wk.make_room(ws.store, block, limit, rule, 1, ws.change, ws.dense)
    after = np.zeros(12)
    wk.rebuild(ws.store, after)
    assert after == pytest.approx(u, abs=1e-12)
    assert ws.linear == pytest.approx(linear, rel=1e-12)
    assert_gram(ws)
    for i in range(3):
        ids = ws.store.slots[i, : ws.store.held[i]]
        assert ws.store.iterate[ids].sum() <= 1
        assert (ws.store.iterate[ids] == 0).sum() <= limit - 1
        if rule == wk.MERGE:
            assert ws.store.alpha[ids].sum() == pytest.approx(before[i], rel=1e-12)
        elif np.isfinite(total[i]):
            assert ws.store.alpha[ids].sum() + ws.store.origin[i] == pytest.approx(total[i], rel=1e-12)
    assert not ws.dense.any()


def test_a_plane_without_weight_goes_first():
    ws, u = random_set(3, n=1, most=6, total=np.array([1.0]))
    ids = ws.store.slots[0, : ws.store.held[0]]
    ws.store.origin[0] += ws.store.alpha[ids[0]]
    ws.store.alpha[ids[0]] = 0.0
    wk.rebuild(ws.store, u)
    held, gone = len(ids), ids[0]
    wk.make_room(ws.store, 0, held, wk.MERGE, 1, ws.change, ws.dense)
    assert ws.store.held[0] == held - 1
    assert gone not in ws.store.slots[0, : held - 1]
    assert ws.store.size[wk.MERGES] == 0


def test_forgetting_counts_visits_without_weight():
    ws = WorkingSet(np.ones(1), 5, 5)
    for k in range(3):
        add(ws, 0, np.eye(5)[k], 1.0)
    ws.store.alpha[ws.store.slots[0, 1]] = 0.5
    for visit in range(4):
        wk.forget(ws.store, 0, 3)
        assert ws.store.held[0] == (3 if visit < 3 else 1)
    assert ws.store.alpha[ws.store.slots[0, 0]] == 0.5


def test_an_interrupt_while_planes_and_pool_grow_keeps_everything(monkeypatch):
    ws, u = random_set(4, n=3, d=30)
    wk.remove(ws.store, 0, 0)
    wk.rebuild(ws.store, u)
    before = ws.planes()[0].toarray()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(working_set, "extended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ws.reserve(9, 2 * len(ws.store.b), 2 * len(ws.store.columns))
    monkeypatch.undo()
    np.testing.assert_array_equal(ws.planes()[0].toarray(), before)
    assert_gram(ws)
    add(ws, 1, np.ones(30), 1.0)
    assert_gram(ws)


def test_growth_keeps_everything():
    rng = np.random.default_rng(2)
    ws, u = random_set(5, n=2, d=30)
    linear = ws.linear
    for _ in range(300):
        add(ws, int(rng.integers(2)), rng.normal(size=30), rng.random())
    after = np.zeros(30)
    wk.rebuild(ws.store, after)
    assert after == pytest.approx(u, abs=1e-13)
    assert ws.linear == pytest.approx(linear, rel=1e-13)
    assert_gram(ws)


@pytest.mark.parametrize("seed", range(6))
def test_short_memory_merges_and_keeps_the_point(seed):
    """A budget that is soon spent: planes are merged, the point stays, and nothing outside the arrays is touched."""
    rng = np.random.default_rng(seed)
    n, d = 6, 50
    ws = WorkingSet(np.ones(n), d, d, None, budget=75_000)
    restricted = False
    for _ in range(400):
        block = int(rng.integers(n))
        own = int(ws.store.length[ws.store.slots[block, : ws.store.held[block]]].sum())
        while True:
            u = np.zeros(d)
            wk.rebuild(ws.store, u)
            now = ws.grow(block, 1, 2 * (own + d))
            restricted |= now
            after = np.zeros(d)
            wk.rebuild(ws.store, after)
            assert after == pytest.approx(u, abs=1e-12)
            if not now:
                break
            own = int(ws.store.length[ws.store.slots[block, : ws.store.held[block]]].sum())
        close_holes(ws, 2 * (own + d))
        if ws.limit is not None:
            wk.make_room(ws.store, block, ws.limit, wk.MERGE, 1, ws.change, ws.dense)
        row = rng.normal(size=d)
        index = np.arange(d, dtype=np.int32)
        at = wk.insert(ws.store, block, index, row, float(rng.random()), ws.table, ws.bits, ws.dense)
        share = 0.3 * ws.store.origin[block]
        ws.store.alpha[ws.store.slots[block, at]] = share
        ws.store.origin[block] -= share
    assert restricted
    assert ws.limit is not None
    assert ws.store.size[wk.MERGES] > 0
    assert sum(array.nbytes for array in ws.store) <= 1.2 * ws.budget
    assert_gram(ws)


def test_hopeless_memory_is_refused_with_advice():
    ws = WorkingSet(np.ones(4), 1000, 1000, 2, budget=10_000)
    with pytest.raises(MemoryError, match=r"two planes per block.*[Rr]aise the solver's memory"):
        ws.grow(0, 1, 5000)


@pytest.mark.parametrize("seed", range(4))
def test_round_trip_through_arrays(seed):
    ws, u = random_set(seed, limit=4, total=np.array([1.0, np.inf, 0.0]))
    arrays = ws.to_arrays()
    like = WorkingSet(ws.store.total, ws.n_columns, ws.longest, 4, ws.budget)
    again = saved_set(Saved(arrays), like, 4, quadratic=True)
    assert all(not array.dtype.hasobject for array in arrays.values())
    for name, array in again.to_arrays().items():
        assert np.array_equal(array, arrays[name]), name
    after = np.zeros(len(u))
    wk.rebuild(again.store, after)
    assert np.array_equal(after, u)
    assert (again.limit, again.budget, again.n_columns) == (ws.limit, ws.budget, ws.n_columns)
    add(again, 0, np.ones(len(u)), 1.0)  # and it goes on growing
    assert_gram(again)


def test_rescaling_follows_the_totals():
    ws, _ = random_set(9, n=3, total=np.array([1.0, 2.0, 0.5]))
    ws.rescale(np.array([3.0, 1.0, 0.0]), None, 12)
    _, _, alpha, block = ws.planes()
    sums = np.bincount(block, weights=alpha, minlength=3)
    assert sums + ws.store.origin == pytest.approx([3.0, 1.0, 0.0])
    assert (alpha >= 0).all()
    assert not alpha[block == 2].any()
    old = random_set(9, n=3, total=np.array([1.0, 2.0, 0.5]))[0].planes()
    assert alpha[block == 0] == pytest.approx(3.0 * old[2][old[3] == 0])
    assert alpha[block == 1] == pytest.approx(0.5 * old[2][old[3] == 1])


def test_scales_bound_the_dual():
    """total (or the multipliers of an orthant) and the largest |b|, block by block."""
    ws, _ = random_set(2, n=3, total=np.array([1.0, np.inf, 0.5]))
    totals, largest = ws.scales()
    _, b, alpha, block = ws.planes()
    assert totals == pytest.approx([1.0, alpha[block == 1].sum(), 0.5])
    assert largest == pytest.approx([np.abs(b[block == i]).max() for i in range(3)])


@pytest.mark.parametrize("how", ["ahead", "no more", "limited"])
def test_the_pool_grows_where_it_is(how, monkeypatch):
    """It moves only where there is no room behind it; under a limit no more memory is taken than was asked for."""
    ws, rng = WorkingSet(np.array([1.0]), 500, 500), np.random.default_rng(0)
    monkeypatch.setattr(working_set, "unused_is_free", lambda: how != "limited")
    if how == "no more":
        monkeypatch.setattr(working_set, "AHEAD", 1 << 34)
    places, sizes = set(), set()
    for _ in range(60):
        assert add(ws, 0, rng.normal(size=500), rng.random()) >= 0
        places.add(ws.store.entries.ctypes.data)
        sizes.add(len(ws.store.entries))
    assert_gram(ws)
    assert len(sizes) > 3 and (len(places) < len(sizes) - 1 if how == "ahead" else len(places) > 2)
    if how == "limited":
        assert ws.store.entries.base is None or len(ws.store.entries.base) == len(ws.store.entries)


def test_a_limit_on_memory_is_seen():
    pytest.importorskip("resource")
    if not working_set.unused_is_free():
        pytest.skip("this process is under a limit")
    program = (
        "import resource; from maxmargin.solvers.working_set import unused_is_free\n"
        "print(unused_is_free()); resource.setrlimit(resource.RLIMIT_DATA, (1 << 34, resource.RLIM_INFINITY))\n"
        "print(unused_is_free())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split()[-2:] == ["True", "False"]
