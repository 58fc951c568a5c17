"""Packed planes: they hold what the pool holds, and no run differs from one without them, in any bit."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers import engine, packed
from maxmargin.solvers import packed_kernel as pk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.packed import PackedPlanes
from maxmargin.solvers.working_set import WorkingSet


def add(ws, block, row, b):
    index = np.flatnonzero(row).astype(np.int32)
    ws.grow(block, 1, 4 * len(row))
    if ws.store.size[wk.POOL_END] + len(index) > len(ws.store.columns):
        wk.compact(ws.store)
    return wk.insert(ws.store, block, index, row[index].astype(float), float(b), ws.table, ws.bits, ws.dense)


def random_row(rng, d):
    return rng.integers(-3, 4, d) * (rng.random(d) < 0.4)


def unpacked(words, column, d):
    """The vector that words stand for."""
    row = np.zeros(d)
    for word in words.tolist():
        row[column[word % (1 << pk.BITS)]] = word >> pk.BITS
    return row


@pytest.mark.parametrize("seed", range(5))
def test_words_follow_planes_that_come_and_go(seed):
    rng, d, n = np.random.default_rng(seed), 40, 3
    ws, planes = WorkingSet(np.ones(n), d, d), PackedPlanes(d)
    u, compactions = rng.normal(size=d), 0
    for _ in range(300):
        block = int(rng.integers(n))
        if ws.store.held[block] and rng.random() < 0.45:
            wk.remove(ws.store, block, int(rng.integers(ws.store.held[block])))
        else:
            add(ws, block, random_row(rng, d), rng.random())
        if rng.random() < 0.05:
            wk.compact(ws.store)
            compactions += 1
        if rng.random() < 0.3:
            assert planes.begin(ws, u)
            found, ids = planes._packed, ws.ids(np.arange(n))
            for plane, row in zip(ids, ws.rows(ids).toarray(), strict=True):
                begin = ws.store.start[plane]
                words = found.word[begin : begin + ws.store.length[plane]]
                assert (unpacked(words, found.column, d) == row).all()
            numbers = found.size[pk.NUMBERS]
            assert len(set(found.column[:numbers].tolist())) == numbers
            assert (found.u[:numbers] == u[found.column[:numbers]]).all()
    assert compactions > 3 and ws.store.size[wk.COMPACTIONS] >= compactions


@pytest.mark.parametrize("entry", [0.5, pk.LARGEST + 1.0, -pk.LARGEST - 1.0, 1e300, np.inf, np.nan])
def test_what_does_not_fit_ends_them(entry):
    ws, planes, row = WorkingSet(np.ones(1), 4, 4), PackedPlanes(4), np.array([0.0, -pk.LARGEST, pk.LARGEST, 1.0])
    add(ws, 0, row, 1.0)
    assert planes.begin(ws, np.zeros(4))
    row[1] = entry
    add(ws, 0, row, 1.0)
    assert not planes.begin(ws, np.zeros(4))
    wk.remove(ws.store, 0, 1)
    assert not planes.begin(ws, np.zeros(4))


def sentences(seed, n=120, features=60, labels=4):
    """Sequences of tokens with binary features, each label hinted at by some."""
    rng = np.random.default_rng(seed)
    hint = rng.integers(labels, size=features)
    X, y = [], []
    for length in rng.integers(3, 12, n):
        x = (rng.random((length, features)) < 0.1).astype(float)
        score = np.array([x @ (hint == k) for k in range(labels)]).T + 0.7 * rng.normal(size=(length, labels))
        X.append(x)
        y.append([f"L{k}" for k in score.argmax(axis=1)])
    return X, y


SOLVERS = {
    "few weights": (mm.Auto(), 1.0),  # with jumps
    "no jumps": (mm.Auto(extrapolate=False), 1.0),
    "real features": (mm.Auto(extrapolate=False), 0.3),
    "few bytes": (mm.Auto(memory=3 << 19), 1.0),
    "cutting planes": (mm.CuttingPlane("n"), 1.0),
    "working sets": (mm.SimplicialDecomposition(working_set=40), 1.0),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_runs_are_the_same_without(name, monkeypatch):
    solver, scale = SOLVERS[name]
    X, y = sentences(0)
    passes = []
    count = PackedPlanes.revisit

    def revisit(self, *arguments):
        passes.append(1)
        return count(self, *arguments)

    def fitted():
        return mm.SequenceTagger(solver=solver, tol=1e-4, max_passes=40).fit([scale * x for x in X], y)

    monkeypatch.setattr(PackedPlanes, "revisit", revisit)
    with_words = fitted()
    assert passes or name in ("real features", "working sets", "few bytes")
    assert not passes or name not in ("real features", "working sets")
    monkeypatch.setattr(engine, "packed_planes", lambda state, settings: None)
    without = fitted()
    assert (with_words.weights_ == without.weights_).all()
    assert with_words.certificate_ == without.certificate_
    assert with_words.history_["dual"].tolist() == without.history_["dual"].tolist()


def test_many_columns_end_them(monkeypatch):
    monkeypatch.setattr(packed, "MOST", 5)
    ws, planes = WorkingSet(np.ones(1), 9, 9), PackedPlanes(9)
    add(ws, 0, np.array([0, 1, 0, 1, 0, 1, 0, 1, 1.0]), 1.0)
    assert planes.begin(ws, np.zeros(9))
    add(ws, 0, np.array([1, 1, 0, 1, 0, 1, 0, 1, 1.0]), 1.0)
    assert not planes.begin(ws, np.zeros(9))
