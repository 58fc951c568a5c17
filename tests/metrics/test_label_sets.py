"""Scores of label sets: counted by hand, by the formulas on sets, and inside searches of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sk
from sklearn.model_selection import GridSearchCV, KFold

import maxmargin as mm
from maxmargin.metrics import (
    example_f1,
    get_scorer,
    hierarchical_f1,
    jaccard_accuracy,
    label_loss,
    label_report,
    macro_f1,
    micro_average_precision,
    micro_f1,
    subset_accuracy,
)

METRICS = [subset_accuracy, jaccard_accuracy, label_loss, micro_f1, macro_f1, example_f1]
TRUE = [{"a"}, {"a", "b"}, set(), {"c"}]
FOUND = [{"a"}, {"b"}, set(), {"a", "c"}]


def test_by_hand():
    """Right: a, b, c; true: a a b c; predicted: a b a c. Wrong entries: two of twelve."""
    assert subset_accuracy(TRUE, FOUND) == 2 / 4
    assert jaccard_accuracy(TRUE, FOUND) == pytest.approx((1 + 1 / 2 + 1 + 1 / 2) / 4)
    assert label_loss(TRUE, FOUND) == pytest.approx(2 / 12)
    assert label_loss(TRUE, FOUND, labels="abcd") == pytest.approx(2 / 16)
    assert micro_f1(TRUE, FOUND) == pytest.approx(2 * 3 / (4 + 4))
    assert macro_f1(TRUE, FOUND) == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert macro_f1(TRUE, FOUND, labels="abcd") == pytest.approx((1 / 2 + 1 + 1 + 0) / 4)
    assert macro_f1(TRUE, FOUND, labels="abcd", zero_division=1.0) == pytest.approx((1 / 2 + 1 + 1 + 1) / 4)
    assert example_f1(TRUE, FOUND) == pytest.approx((1 + 2 / 3 + 1 + 2 / 3) / 4)
    report = label_report(TRUE, FOUND)
    assert [metric(TRUE, FOUND) for metric in METRICS] == [vars(report)[metric.__name__] for metric in METRICS]
    counts = {label: (s.n_true, s.n_predicted, s.n_right) for label, s in report.by_label.items()}
    assert counts == {"a": (2, 2, 1), "b": (1, 1, 1), "c": (1, 1, 1)}


def test_scikit_learn_agrees():
    """Each with scikit-learn's function of that name; areas as the code of C-HMCNN has them, without the root."""
    rng = np.random.default_rng(0)
    true, found = (rng.random((2, 40, 6)) < 0.3).astype(int)
    true[:3], found[1:4], true[:, 5], found[:, 5] = 0, 0, 0, 0  # empty sets, and a label that never occurs
    assert subset_accuracy(true, found) == pytest.approx(sk.accuracy_score(true, found))
    assert label_loss(true, found) == pytest.approx(sk.hamming_loss(true, found))
    assert jaccard_accuracy(true, found) == pytest.approx(
        sk.jaccard_score(true, found, average="samples", zero_division=1.0)
    )
    for metric, average in ((micro_f1, "micro"), (macro_f1, "macro")):
        assert metric(true, found) == pytest.approx(sk.f1_score(true, found, average=average, zero_division=0.0))
    assert example_f1(true, found) == pytest.approx(sk.f1_score(true, found, average="samples", zero_division=1.0))
    parent = [-1, 0, 0, 1, 1, 2]
    closed = [mm.with_ancestors(y, parent) for y in (true, found)]
    assert hierarchical_f1(true, found, parent) == pytest.approx(sk.f1_score(*closed, average="micro"))


@pytest.mark.parametrize("decimals", [8, 1])  # with ties
def test_area_by_its_formula(decimals):
    """``sum_t (R_t - R_(t-1)) P_t`` over all thresholds, of the pairs of an example and an evaluated label."""
    rng = np.random.default_rng(1)
    true, scores = (rng.random((20, 5)) < 0.3).astype(int), rng.random((20, 5)).round(decimals)
    y, s = true[:, 1:].ravel(), scores[:, 1:].ravel()
    area = recall = 0.0
    for threshold in sorted(set(s), reverse=True):
        above = s >= threshold
        precision, before = y[above].mean(), recall
        recall = y[above].sum() / y.sum()
        area += (recall - before) * precision
    assert micro_average_precision(true, scores, skip=[0]) == pytest.approx(area)


@pytest.mark.parametrize("metric", METRICS)
def test_forms_agree(metric):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    true, found = (rng.random((2, 30, 5)) < 0.3).astype(int)
    expected = metric(true, found)
    others = [lambda y: y.astype(bool), lambda y: y.tolist(), sp.csr_array, sp.csc_matrix, pd.DataFrame]
    for form in others:
        assert metric(form(true), form(found)) == expected
        assert metric(form(true), found) == expected
    sets, guesses = ([set(np.flatnonzero(row).tolist()) for row in y] for y in (true, found))
    assert metric(sets, guesses, labels=range(5)) == expected
    assert metric([tuple(s) for s in sets], found, labels=range(5)) == expected
    assert metric([list(s) for s in sets], [frozenset(s) for s in guesses], range(5)) == expected


def test_refused():
    for true, found, message in [
        (TRUE, FOUND[:2], "y_true is .4, 3. and y_pred .2, 3."),
        (np.eye(2), np.eye(3), "y_true is .2, 2. and y_pred .3, 3."),
        (2 * np.eye(2), np.eye(2), "y_true is a matrix with other entries than 0 and 1"),
        (np.eye(2), [{"a"}, {"b"}], "name the columns by labels="),
        (["ab", "c"], [{"a"}, {"c"}], "example 0 has 'ab' in place of a set"),
        ([set()], [set()], "there are no labels to score"),
    ]:
        with pytest.raises(ValueError, match=message):
            micro_f1(true, found)
    with pytest.raises(ValueError, match="example 3 has the label 'c', which is not among labels="):
        label_loss(TRUE, FOUND, labels="ab")


def test_in_searches():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, 4)) > 0.3).astype(int)
    sets = [{"abcd"[k] for k in np.flatnonzero(row)} for row in Y]
    for y in (Y, sets):
        for name in ("micro_f1", "neg_label_loss"):
            search = GridSearchCV(
                mm.MultilabelClassifier(), {"C": [1e-6, 10.0]}, scoring=get_scorer(name), cv=KFold(2)
            ).fit(X, y)
            assert search.best_params_ == {"C": 10.0}
            assert (search.best_score_ <= 0) == (name == "neg_label_loss")
