"""The experiment on hierarchies on made-up data: outputs of the synthetic graph, calibration, coherence, table 3."""

import numpy as np
import pytest
from scipy.special import expit

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


def test_logistic_curves_are_found_again(script):
    rng = np.random.default_rng(0)
    decisions, a, b = rng.normal(size=(20000, 2)), np.array([2.0, 1.5]), np.array([-1.0, 0.5])
    on = (rng.random(decisions.shape) < expit(a * decisions + b)).astype(int)
    found = script.logistic_curves(decisions, on)
    np.testing.assert_allclose(found, [a, b], atol=0.1)


def test_no_label_more_than_its_parent(script):
    scores = script.coherent(np.array([[0.2, 0.9, 0.5, 0.1]]), np.array([2, 0, -1, 2]))
    np.testing.assert_array_equal(scores, [[0.2, 0.2, 0.5, 0.1]])


def test_slack_and_margin_are_compared(script, capsys):
    data, pairs = script.synthetic(1, n=40)
    told = {"hierarchy": pairs, "leaves_only": True, "tol": 0.05}
    found, gap = script.compared(data, data.X, data.X_test, [0.01], told)
    assert found.shape == (2, 4) and ((found >= 0) & (found <= 1)).all() and gap <= 0.05


def test_commonest_labels_keep_their_parents(script):
    parent = np.array([1, -1, 1, 0])
    Y = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    data = script.Data("some", np.ones((3, 1)), Y, np.ones((3, 1)), Y, parent, np.zeros(3, bool)).commonest(2)
    assert data.parent.tolist() == [1, -1] and data.Y.tolist() == [[1, 1], [1, 1], [0, 1]]
