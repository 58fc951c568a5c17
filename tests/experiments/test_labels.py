"""The experiments on label sets, on a few made-up examples."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("highspy")


@pytest.fixture(scope="module")
def common(experiment):
    return experiment("labels", "common")


@pytest.fixture(scope="module")
def table_1(experiment):
    return experiment("labels", "table_1")


@pytest.fixture(scope="module")
def table_2(experiment):
    return experiment("labels", "table_2")


def made_up(common, n=12, M=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 4))
    Y = (X @ rng.normal(size=(4, M)) + rng.normal(size=(2 * n, M)) > 0).astype(int)
    return common.Data("Yeast", X[:n], Y[:n], X[n:], Y[n:])


@pytest.mark.parametrize("relaxed", [False, True])
def test_searches_answer_the_same_states(common, table_1, relaxed, capsys):
    counts = table_1.compare(made_up(common), C=0.3, iterations=4, relaxed=relaxed)
    table_1.show("Yeast", counts)
    assert "below the optimum" in capsys.readouterr().out
    angular, ours = counts.tallies["angular"], counts.tallies["ours"]
    assert 12 <= counts.states <= 60
    assert angular.short == 0 and angular.successes == counts.there > 0
    assert all(tally.successes <= angular.successes for tally in counts.tallies.values())
    if not relaxed:
        assert ours.successes == counts.there and counts.proven == counts.states


def test_angles_by_cuts_and_by_programs_agree(common):
    rng = np.random.default_rng(1)
    edges = np.array([(j, k) for j in range(6) for k in range(j + 1, 6)], np.int32)
    for _ in range(10):
        scores, pairs, truth = rng.normal(size=6), rng.normal(size=len(edges)), rng.integers(0, 2, 6)
        by_cuts, by_program = (common.Relaxed(6, edges, program).aim(scores, pairs, truth) for program in (False, True))
        for low, high in [(0.0, np.inf), (0.3, 2.0), (1.0, 1.5), (4.0, np.inf)]:
            wedge = common.Wedge(low, high, True, True)
            one, other = by_cuts.constrained(0.7, wedge), by_program.constrained(0.7, wedge)
            assert (one is None) == (other is None)
            if one is not None:
                assert one.bound == pytest.approx(other.bound, abs=1e-5)
                assert by_cuts.again(one.output)[:2] == pytest.approx(one[:2])


@pytest.mark.parametrize("relaxed", [False, True])
def test_planes_of_searches_have_the_value_that_was_found(common, relaxed):
    from maxmargin.models.label_set import LabelSet

    data = made_up(common)
    bound = LabelSet(graph="full").bind(data.X, data.Y)
    points = (common.Relaxed if relaxed else common.AllSets)(5, bound.layout.edges)
    model = common.Searched.of(bound, data, "angular", points, 1e-3)
    w = np.where(bound.layout.real(), np.random.default_rng(2).normal(size=bound.n_weights), 0.0)
    for i in range(bound.n_examples):
        answer = model.answer(w, i, 1.0, "slack")
        assert answer.cost * (1.0 - answer.psi @ w[answer.indices]) == pytest.approx(answer.value)
        exact = bound.answer(w, i, 1.0, "slack").value
        assert answer.bound >= exact * (1 - 1e-9)
        if not relaxed:
            assert answer.value == pytest.approx(exact, rel=2e-3, abs=2e-3)


def test_slack_and_margin_and_others_are_compared(common, table_2, capsys, monkeypatch):
    few = partial(table_2.forest, trees=5)
    monkeypatch.setitem(table_2.METHODS, "forest", (few, few, table_2.LEAVES))
    results = [table_2.run(made_up(common, 30, 14, seed), quick=True) for seed in range(2)]
    table_2.summary(results)
    assert set(results[0]) == set(table_2.ROWS)
    for name, figures in results[0].items():
        assert figures.shape == (len(common.MEASURES),) and ((figures >= 0) & (figures <= 1)).all(), name
    told = capsys.readouterr().out
    mean = np.mean([r["slack"][0] - r["margin"][0] for r in results])
    assert f"{mean:+.3f}" in told.split("difference")[1]
    assert told.count("missing costs 1;") >= 4  # what was chosen stands beside each row


def test_solvers_and_searches_are_drawn(common, experiment, tmp_path, capsys):
    figure_4 = experiment("labels", "figure_4")
    results, ended = {}, {}
    for name, rows, code in figure_4.curves(made_up(common), 30):
        results[name], ended[name] = rows, code
    assert set(results) == set(figure_4.RUNS) and ended["ours"] == "converged"
    least = results["ours"][-1, 3]
    for name, rows in results.items():
        assert (np.diff(rows[:, :3], axis=0) >= 0).all() and (rows[:, 3] >= least * (1 - 1e-3)).all(), name
    assert results["cutting planes, angular"][-1, 3] == pytest.approx(least, rel=2e-2)
    figure_4.draw(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000 and "picture.png" in capsys.readouterr().out


def test_searches_by_name_on_the_same_states(common, experiment, capsys):
    by_name = experiment("labels", "searches_by_name")
    by_name.show(made_up(common), C=0.3, n=6, states=2, passes=2, searches=["auto", "bisecting", "sarawagi_gupta"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("auto", "bis", "sara"))]
    exact = float(rows[0][2])
    assert len(rows) == 3 and all(float(value) <= exact <= float(bound) for _, value, bound, *_ in rows)
