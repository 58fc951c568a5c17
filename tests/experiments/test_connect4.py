"""The Connect-4 experiment: its structure search is a local optimum of the score, its loader reads the set."""

import importlib.util
import lzma
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

FOLDER = Path(__file__).parents[2] / "experiments" / "generative"


def module(name):
    spec = importlib.util.spec_from_file_location(f"{name}_experiment", FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def connect4():
    return module("connect4")


@pytest.fixture(scope="module")
def hill():
    return module("hill_climbing")


def total(codes, parents):
    """Log-likelihood at relative frequencies minus the penalty, row by row."""
    n, value = len(codes), 0.0
    for v, above in enumerate(parents):
        configurations = [tuple(row) for row in codes[:, list(above)]]
        for c in set(configurations):
            own = codes[[i for i in range(n) if configurations[i] == c], v]
            counts = np.bincount(own)
            counts = counts[counts > 0]
            value += float((counts * np.log(counts / counts.sum())).sum())
        value -= 0.5 * np.log(n) * 2 ** len(above)
    return value


def acyclic(parents):
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if not left & set(parents[v])}
        if not free:
            return False
        left -= free
    return True


def test_hill_climbing_ends_where_no_edge_helps(hill):
    rng = np.random.default_rng(0)
    a, b, d = (rng.random((3, 300)) < 0.5).astype(int)
    c = np.where(rng.random(300) < 0.9, a ^ b, 1 - (a ^ b))
    e = np.where(rng.random(300) < 0.8, a, d)
    codes = np.stack([a, b, c, d, e], axis=1)
    found = hill.hill_climb(codes, [2] * 5, 3)
    assert acyclic(found)
    best = total(codes, found)
    for u, v in product(range(5), repeat=2):
        if u == v:
            continue
        other = [set(above) for above in found]
        other[v] ^= {u}
        if acyclic(other) and len(other[v]) <= 3:
            assert total(codes, [tuple(sorted(x)) for x in other]) <= best + 1e-9
        if u in found[v]:
            other[u].add(v)  # turned round
            if acyclic(other) and len(other[u]) <= 3:
                assert total(codes, [tuple(sorted(x)) for x in other]) <= best + 1e-9


def test_edges_around_a_variable_are_those_of_its_families(hill):
    parents = [(), (0,), (1,), (2, 4), (), (3,)]
    assert hill.around(parents, 2) == [(1, 2), (2, 3), (4, 3)]


def test_the_set_is_read_and_trained_on(connect4, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    squares = rng.choice(list("bxo"), (400, 42))
    outcome = np.where(squares[:, 0] == "x", "win", np.where(squares[:, 7] == "o", "loss", "draw"))
    (tmp_path / "connect4").mkdir()
    with lzma.open(tmp_path / "connect4" / "connect-4.data.xz", "wt") as file:
        file.writelines(",".join([*row, end]) + "\n" for row, end in zip(squares, outcome, strict=True))
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    data = connect4.load()
    assert data.codes.shape == (400, 43) and data.states[-1].classes == ["draw", "loss", "win"]
    network = connect4.Network.of(
        [("class", "a1"), ("class", "b2")],
        {n: data.states[connect4.NAMES.index(n)].classes for n in ("class", "a1", "b2")},
    )
    part = connect4.Part(data, network, np.arange(400))
    assert part.frame["class"][:5] == outcome[:5].tolist()
    monkeypatch.setattr(connect4, "ROUNDS", 1)
    for together in (1, 6):
        with pytest.warns(ConvergenceWarning, match="Stopped by a callback"):
            _, model = connect4.rounds(network, part, 0.01, together)
        assert model.state_.visits >= 60 and model.certificate_.certified
        assert part.mistakes(model) < 200
