"""The snakes experiment: its features cell by cell, and a tiny run on snakes made here."""

import argparse

import numpy as np
import pytest

STEPS = {1: (-1, 0), 2: (1, 0), 3: (0, -1), 6: (0, 1)}  # what the four colours of a snake stand for here


def wander(rng, shape=(5, 6), length=5):
    """An image and its labels: every cell of the snake shows where the next one is, the last one repeats its colour."""
    while True:
        cell, cells, colours = tuple(rng.integers(0, shape)), [], []
        while len(cells) < length and cell not in cells and all(0 <= c < n for c, n in zip(cell, shape, strict=True)):
            colour = int(rng.choice(list(STEPS)))
            cells.append(cell)
            colours.append(colour)
            cell = tuple(np.add(cell, STEPS[colour]))
        if len(cells) == length:
            break
    code, labels = np.full(shape, 4), np.zeros(shape, np.uint8)
    for k, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
        code[cell], labels[cell] = colour, k + 1
    return (255 * ((code[..., None] >> np.arange(3)) & 1)).astype(np.uint8), labels


def test_windows_cell_by_cell(snakes):
    image, _ = wander(np.random.default_rng(0))
    code = (image > 0) @ np.array([1, 2, 4])
    found = snakes.windows(image).reshape(5, 6, 3, 3, 5)
    for p in np.ndindex(5, 6):
        for a, b in np.ndindex(3, 3):
            q = (p[0] + a - 1, p[1] + b - 1)
            colour = code[q] if 0 <= q[0] < 5 and 0 <= q[1] < 6 else 4
            assert found[p][a, b].tolist() == [float(colour == c) for c in snakes.COLOURS]


def test_edges_see_both_ends(snakes):
    image, _ = wander(np.random.default_rng(1))
    x, plain = snakes.graph(image, "conditional"), snakes.graph(image, "directional")
    assert len(x["edges"]) == 5 * 5 + 4 * 6 and x["edge"].shape == (49, 180)
    for e, (p, q) in enumerate(x["edges"]):
        across = q == p + 1
        assert plain["edge"][e].tolist() == [float(across), float(not across)]
        both = np.concatenate([x["node"][p], x["node"][q]])
        np.testing.assert_array_equal(x["edge"][e], np.concatenate([both * across, both * (not across)]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_conditional_edges_are_better_than_directions(snakes):
    rng = np.random.default_rng(2)
    pairs = [wander(rng) for _ in range(60)]
    data = {"X_train": [x for x, _ in pairs[:40]], "Y_train": [y for _, y in pairs[:40]]}
    data |= {"X_test": [x for x, _ in pairs[40:]], "Y_test": [y for _, y in pairs[40:]]}
    args = argparse.Namespace(C=0.1, tol=0.02, max_passes=40)
    few, many = (snakes.one_run(data, edges, "auto", args) for edges in ("directional", "conditional"))
    assert many["accuracy"] > few["accuracy"] and many["snake"] > few["snake"]
    assert many["certificate"].certified and many["certificate"].relative_gap < 0.05
    assert many["proven"] == 1.0


def test_missing_data(snakes, monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="is missing"):
        snakes.load()
