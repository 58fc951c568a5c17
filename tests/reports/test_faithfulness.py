"""Likelihood against accuracy: every number recomputed by hand from the fitted models."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maxmargin import DiscriminativeHMM
from maxmargin.reports.faithfulness import faithfulness, moved_tables, plot_faithfulness

rng = np.random.default_rng(0)
Y = [rng.integers(0, 3, 8).tolist() for _ in range(12)]
X = [[int(s) if rng.random() < 0.6 else int(rng.integers(0, 4)) for s in y] for y in Y]
TRAIN, HELD_OUT = (X[:8], Y[:8]), (X[8:], Y[8:])
COST = np.array([[0, 1, 4], [1, 0, 1], [4, 1, 0.0]])
MODEL = DiscriminativeHMM(classes=3, symbols=4, reference="smoothed", cost=COST)


def rows_of(table):
    return table.to_dict("records")


def joint(model, x, y):
    """ln P(x, y) of one sequence, with tables divided by their sums."""
    initial, transition, emission = model.initial_, model.transition_, model.emission_
    total = math.log(initial[y[0]] / initial.sum())
    for t, (state, symbol) in enumerate(zip(y, x, strict=True)):
        total += math.log(emission[state, symbol] / emission[state].sum())
        if t:
            total += math.log(transition[y[t - 1], state] / transition[y[t - 1]].sum())
    return total


@pytest.fixture(scope="module")
def table():
    return faithfulness(MODEL, TRAIN, HELD_OUT, C=[0.0, 0.01, 0.1])


def test_numbers_are_those_of_the_models(table):
    for row in rows_of(table):
        model = DiscriminativeHMM(**{**MODEL.get_params(), "C": row["C"]}).fit(*TRAIN)
        assert row["log_likelihood"] == pytest.approx(
            np.mean([joint(model, x, y) for x, y in zip(*HELD_OUT, strict=True)])
        )
        found = model.predict(HELD_OUT[0])
        assert row["accuracy"] == np.mean(np.array(found) == np.array(HELD_OUT[1]))
        costs = [
            sum(MODEL.cost[a, b] for a, b in zip(y, f, strict=True)) for y, f in zip(HELD_OUT[1], found, strict=True)
        ]
        assert row["cost"] == pytest.approx(np.mean(costs))
        c, p = model.reference_, np.exp(model.weights_)
        assert row["divergence"] == pytest.approx((c * np.log(c / p)).sum(), abs=1e-9)
        masses = [model.initial_.sum(), *model.transition_.sum(axis=1), *model.emission_.sum(axis=1)]
        assert row["lost_mass"] == pytest.approx(max(0.0, 1 - min(masses)), abs=1e-12)
        assert row["relative_gap"] <= 1e-3


def test_the_reference_does_not_move_and_c_pulls(table):
    rows = rows_of(table)
    assert rows[0]["divergence"] == pytest.approx(0.0, abs=1e-9) and rows[0]["lost_mass"] == pytest.approx(0, abs=1e-9)
    assert rows[0]["divergence"] < rows[1]["divergence"] < rows[2]["divergence"]
    assert not hasattr(MODEL, "weights_")


def test_moved_tables_add_up():
    model = DiscriminativeHMM(**{**MODEL.get_params(), "C": 0.1}).fit(*TRAIN)
    rows = rows_of(moved_tables(model, top=None))
    assert len(rows) == 7
    everything = {row["table"]: row for row in rows_of(model.movement())}
    for row in rows:
        assert row["divergence"] == pytest.approx(row["shape"] + row["mass"])
        assert row["divergence"] == pytest.approx(everything[row["table"]]["divergence"], abs=1e-9)
        assert row["lost_mass"] == pytest.approx(1 - everything[row["table"]]["mass"], abs=1e-9)
        assert row["shape"] >= 0 and row["mass"] >= 0
    divergences = [row["divergence"] for row in rows]
    assert divergences == sorted(divergences, reverse=True)
    first = next(row for row in rows if row["table"] == "emission of 1")
    c = model.layout_.groups(model.reference_)["emission"][1]
    k = int(np.argmax(np.abs(model.emission_[1] - c)))
    assert (first["value"], first["reference"], first["model"]) == (k, c[k], pytest.approx(model.emission_[1, k]))
    assert first["seen"] == sum(y.count(1) for y in TRAIN[1])
    lost = [row["lost_mass"] for row in rows_of(moved_tables(model, top=3, by="lost_mass"))]
    assert lost == sorted((row["lost_mass"] for row in rows), reverse=True)[:3]
    with pytest.raises(ValueError, match="by must be"):
        moved_tables(model, by="name")


def test_the_picture_shows_the_table(table):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = rows_of(table)
    axes = plot_faithfulness({"smoothed": table, "again": rows[::-1]})
    for number in (0, 2):
        curve = axes[0].lines[number]
        assert curve.get_xdata().tolist() == [row["log_likelihood"] for row in rows]
        assert curve.get_ydata().tolist() == [row["accuracy"] for row in rows]
        assert axes[0].lines[number + 1].get_xdata().tolist() == [rows[0]["log_likelihood"]]
    assert axes[1].lines[0].get_xdata().tolist() == [0.01, 0.1]
    assert axes[1].lines[0].get_ydata().tolist() == [row["divergence"] for row in rows[1:]]
    assert axes[0].get_legend().get_texts()[0].get_text() == "smoothed"
    one = plot_faithfulness(table, measure="cost")
    assert one[0].get_legend() is None and one[0].lines[0].get_ydata().tolist() == [row["cost"] for row in rows]
    with pytest.raises(ValueError, match="lacks one of C"):
        plot_faithfulness([{"C": 1.0}])
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_faithfulness({})
    with pytest.raises(ValueError, match="two are needed"):
        plot_faithfulness(table, axes=one[:1])
    pyplot.close("all")


def test_an_empty_grid():
    with pytest.raises(ValueError, match="C is empty"):
        faithfulness(MODEL, TRAIN, HELD_OUT, C=[])


def test_networks():
    from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet

    draws = np.random.default_rng(1)
    rain = draws.integers(0, 2, 40)
    frame = {
        "rain": ["no" if r == 0 else "yes" for r in rain],
        "wet": [int(r ^ (draws.random() < 0.3)) for r in rain],
        "cat": ["out" if draws.random() < 0.5 + 0.3 * r else "in" for r in rain],
    }
    train, held = ({name: column[part] for name, column in frame.items()} for part in (slice(30), slice(30, None)))
    net = DiscriminativeBayesNet(structure="naive", reference="smoothed")
    rows = rows_of(faithfulness(net, (train,), (held,), C=[0.0, 0.3], target="rain"))
    counts = {value: 1 + train["rain"].count(value) for value in ("no", "yes")}
    total = 0.0
    for r, w, c in zip(*held.values(), strict=True):  # smoothed naive Bayes by hand
        own = [(w2, c2) for r2, w2, c2 in zip(*train.values(), strict=True) if r2 == r]
        total += math.log(counts[r] / 32) + math.log((1 + sum(w2 == w for w2, _ in own)) / (2 + len(own)))
        total += math.log((1 + sum(c2 == c for _, c2 in own)) / (2 + len(own)))
    assert rows[0]["log_likelihood"] == pytest.approx(total / 10, abs=1e-6)
    assert rows[1]["divergence"] > rows[0]["divergence"] and "cost" in rows[0]
    model = DiscriminativeBayesNet(structure="naive", reference="smoothed", C=0.3).fit(train, target="rain")
    moved = {row["table"]: row for row in rows_of(moved_tables(model, top=None))}
    assert len(moved) == 5 and moved["P(wet | rain='no')"]["value"] in (0, 1)
    assert moved["P(cat | rain='yes')"]["value"] in ("in", "out") and moved["P(rain)"]["seen"] == 30
