"""The experiment on hierarchies on made-up data: outputs of the synthetic graph, features, and the tables."""

from functools import partial

import numpy as np
import pytest

import maxmargin as mm


@pytest.fixture(scope="module")
def script(experiment):
    return experiment("labels", "hierarchies")


def test_synthetic_labels_end_in_leaves(script):
    data, pairs = script.synthetic(0, n=60)
    np.testing.assert_array_equal(mm.with_ancestors(data.Y, pairs), data.Y)
    parents = {p for p, _ in pairs}
    assert parents == set(range(9)) and all(data.Y[:, 9:].sum(axis=1) >= 1)
    for p in parents:  # where it is on, so is a child
        assert (data.Y[:, p] <= data.Y[:, [k for q, k in pairs if q == p]].max(axis=1)).all()


def small(script, seed=0):
    """A tree of four labels."""
    rng = np.random.default_rng(seed)
    X, parent = rng.normal(size=(90, 6)), np.array([-1, 0, 0, 1])
    Y = mm.with_ancestors((X @ rng.normal(size=(6, 4)) > 1.5).astype(int), parent)
    X[::7, 2] = np.nan
    return script.Data("some", X[:60], Y[:60], X[60:], Y[60:], parent, np.arange(60) % 4 == 0)


def test_whitened_features_give_ridge_regression(script):
    """Their kernel is ``x (S + ridge)^-1 x'``."""
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)) + 1, rng.normal(size=(5, 4))
    found, found_test = script.whitened(X, X_test, 2.0)
    Z, Z_test = X - X.mean(axis=0), X_test - X.mean(axis=0)
    known = Z_test @ np.linalg.solve(Z.T @ Z + 2.0 * np.eye(4), Z.T)
    kernel = found_test @ found.T
    np.testing.assert_allclose(kernel / kernel[0, 0], known / known[0, 0])
    assert (found**2).sum() == pytest.approx(len(X))


@pytest.mark.parametrize("more", [{}, {"ridge": 1.0, "rows": True, "of": "scores"}, {"gamma": 1.0, "landmarks": 20}])
def test_areas_of_a_small_set(script, more):
    found = script.area(small(script), script.Setting(1.0, folds=2, **more))
    assert found.incoherent == 0 and found.gap <= 1e-3
    share = small(script).Y_test.mean()  # what chance gives
    assert share < found.probabilities <= 1 and share < found.decisions <= 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tables_are_printed(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "load", lambda name: small(script))
    monkeypatch.setattr(script, "CHOSEN", dict.fromkeys(script.CHOSEN, script.Setting(0.1, folds=2)))
    monkeypatch.setattr(script, "synthetic", partial(script.synthetic, n=40))
    script.areas(["enron"], ["linear"], 40, 1)
    script.choose(["enron"], ["linear"], 40)
    script.slack_against_margin(["enron"], 40, 2)
    printed = capsys.readouterr().out
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| enron")]
    assert [row[1] for row in rows] == ["linear", "margin", "slack", "difference"]
    assert (
        rows[0][5] == "0"
        and "±" in rows[3][2]
        and len([line for line in printed.splitlines() if "Setting" in line]) == 3
    )


def test_slack_and_margin_are_compared(script, capsys):
    data, pairs = script.synthetic(1, n=40)
    told = {"hierarchy": pairs, "leaves_only": True, "tol": 0.05}
    found = script.compared(data, data.X, data.X_test, [0.01], told)
    assert found.scores.shape == (2, 4) and ((found.scores >= 0) & (found.scores <= 1)).all()
    assert (found.gap <= 0.05).all() and found.incoherent == 0


def test_commonest_labels_keep_their_parents(script):
    parent = np.array([1, -1, 1, 0])
    Y = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    data = script.Data("some", np.ones((3, 1)), Y, np.ones((3, 1)), Y, parent, np.zeros(3, bool)).commonest(2)
    assert data.parent.tolist() == [1, -1] and data.Y.tolist() == [[1, 1], [1, 1], [0, 1]]
