"""Models that travel in parts: a part has the planes of the whole, bit for bit, and nothing of the other examples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.inference.min_cut import directions
from maxmargin.oracles.oracle import ModelOracle

N = 11
PARTS = [(0, 4), (4, 5), (5, 11), (0, N), (3, 3)]


def grids(seed, neighbours, labels=True):
    rng, axes = np.random.default_rng(seed), 3 if neighbours in (6, 18, 26) else 2
    shapes = [tuple(rng.integers(1, 5, axes)) for _ in range(N)]
    J = len(directions(neighbours))
    X = [{"node": rng.normal(size=(*s, 3)), "edge": rng.random((J, *s, 2))} for s in shapes]
    Y = [rng.choice([0, 1, 255], s, p=[0.45, 0.45, 0.1]) for s in shapes]
    Y[0].flat[0] = 1
    model = mm.Grid(neighbours=neighbours)
    bound = model.bind(X, Y)
    return bound if labels else model.bind(X, layout=bound.layout)


def features(rng, kind, d=7):
    dense = np.round(rng.normal(size=(N, d)), 2) * (rng.random((N, d)) < 0.5)
    return sp.csr_array(dense) if kind == "sparse" else dense


def classes(seed, kind, labels=True):
    rng = np.random.default_rng(seed)
    X, y = features(rng, kind), np.arange(N) % 4
    bound = mm.Multiclass(cost=np.array([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]], float)).bind(X, y)
    return bound if labels else mm.Multiclass().bind(X, layout=bound.layout)


def sets(seed, kind, **words):
    rng = np.random.default_rng(seed)
    return mm.LabelSet(**words).bind(features(rng, kind), rng.random((N, 5)) < 0.4)


TREE = {"b": ["a"], "c": ["a"], "d": ["b"]}
GRAPH = {"b": ["a"], "c": ["a"], "d": ["b", "c"]}


def closed(seed, hierarchy, **words):
    """Sets of labels with all their ancestors."""
    rng = np.random.default_rng(seed)
    y = mm.with_ancestors([[k for k in "abcd" if rng.random() < 0.3] for _ in range(N)], hierarchy)
    return mm.LabelSet(hierarchy=hierarchy, **words).bind(features(rng, "dense"), y)


def sets_of_paths(seed):
    """Single labels with their ancestors."""
    rng = np.random.default_rng(seed)
    y = mm.with_ancestors([[rng.choice(list("abcd"))] for _ in range(N)], TREE)
    return mm.LabelSet(hierarchy=TREE, paths="single").bind(features(rng, "dense"), y)


BOUND = {
    "grid, 4 neighbours": lambda: grids(0, 4),
    "grid, 8 neighbours": lambda: grids(1, 8),
    "grid, 6 neighbours": lambda: grids(2, 6),
    "grid without masks": lambda: grids(0, 4, labels=False),
    "multiclass, dense": lambda: classes(0, "dense"),
    "multiclass, sparse": lambda: classes(1, "sparse"),
    "multiclass without labels": lambda: classes(0, "dense", labels=False),
    "label set": lambda: sets(0, "dense"),
    "label set, sparse": lambda: sets(1, "sparse"),
    "label set, no graph": lambda: sets(2, "dense", graph=None),
    "tree": lambda: closed(0, TREE),
    "several parents": lambda: closed(1, GRAPH),
    "single paths": lambda: sets_of_paths(2),
    "F1": lambda: sets(3, "dense", cost="f1"),
}


@pytest.mark.parametrize("first, last", PARTS)
@pytest.mark.parametrize("name", BOUND)
def test_planes_of_a_part_are_those_of_the_whole(name, first, last):
    bound = BOUND[name]()
    assert "parts" in bound.capabilities
    part, at = bound.holding(first, last)
    assert (part.n_examples, at) == (last - first, 0)
    rng = np.random.default_rng(0)
    w = rng.normal(size=bound.n_weights)
    if bound.needs_positive is not None:
        w = np.where(bound.needs_positive, np.abs(w), w)
    here, there = np.arange(first, last), np.arange(last - first)
    for rescaling in ("margin", "slack") if "without" not in name else ():  # planes need a truth
        whole, own = (
            ModelOracle(model, rescaling=rescaling).planes(w, ids) for model, ids in ((bound, here), (part, there))
        )
        for field in ("indptr", "indices", "data", "b", "bound"):
            np.testing.assert_array_equal(getattr(own, field), getattr(whole, field))
        np.testing.assert_array_equal(own.example + first, whole.example)
    for mine, others in zip(part.argmax(w)[0], bound.argmax(w, here)[0], strict=True):
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("name", BOUND)
def test_a_part_of_a_part_is_a_part(name):
    bound = BOUND[name]()
    twice, once = bound.holding(2, 9)[0].holding(1, 5)[0], bound.holding(3, 7)[0]
    for field in ("meta", "ints", "floats", "output_at", "least_cost"):
        np.testing.assert_array_equal(getattr(twice, field), getattr(once, field))
    assert twice.fingerprint == once.fingerprint != bound.fingerprint
    assert len(once.ints) < len(bound.ints)
