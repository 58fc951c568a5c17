"""Audit: evidence equals enumeration, planted mistakes come first, odd data do not crash."""

from __future__ import annotations

import doctest
import importlib
import sys
from importlib.abc import MetaPathFinder
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold

import maxmargin as mm
from estimators.plain_chain import PlainChain
from maxmargin.estimators.audit_evidence import WRONG, NeighbourCounts, doubts, example_scores, judge
from maxmargin.estimators.auditing import audit
from maxmargin.models.labels import Labels
from maxmargin.solvers.engine import DualEngine

CLASSES = ["a", "b", "c"]
TURNED = {"a": "b", "b": "c", "c": "a"}


def chains(n, seed=0, least=1):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(3, size=rng.integers(least, 6)) for _ in range(n)]
    X = [np.eye(3)[row] + rng.normal(scale=0.15, size=(len(row), 3)) for row in codes]
    return X, [[CLASSES[k] for k in row] for row in codes]


def points(n=30):
    """Two classes on a line, far apart."""
    x = np.concatenate([np.linspace(-3, -1, n), np.linspace(1, 3, n)])
    return x[:, None], np.repeat(["left", "right"], n)


def records(table):
    return table.to_dict("records")


def scores_of_all(tagger, x, edge=None):
    """Every labelling of a sequence, with its score from the weights as they are published."""
    groups = tagger.layout_.groups(tagger.weights_)
    for labels in product(range(3), repeat=len(x)):
        score = sum(x[t] @ groups["dense"][:, k] for t, k in enumerate(labels))
        score += sum(groups["transition"][pair] for pair in pairwise(labels))
        if labels:
            score += groups["start"][labels[0]] + groups["end"][labels[-1]]
        if edge is not None:
            score += sum(edge[t] @ groups["edge"][:, j, k] for t, (j, k) in enumerate(pairwise(labels), start=1))
        yield labels, score


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "edges"])
def fitted(request):
    """A tagger, held-out sequences with wrong labels among them, and tables of the scores of all labellings."""
    X, y = chains(30, seed=1)
    held, given = chains(12, seed=2)
    given = [
        [TURNED[label] if (i + t) % 4 == 0 else label for t, label in enumerate(row)] for i, row in enumerate(given)
    ]
    edges = None
    if request.param:
        rng = np.random.default_rng(3)
        edges = [rng.normal(size=(len(x), 2)) for x in held]
        X = [{"dense": x, "edge": rng.normal(size=(len(x), 2))} for x in X]
    tagger = mm.SequenceTagger(C=0.5, ends=True).fit(X, y)
    tables = [dict(scores_of_all(tagger, x, None if edges is None else edges[i])) for i, x in enumerate(held)]
    held = held if edges is None else [{"dense": x, "edge": e} for x, e in zip(held, edges, strict=True)]
    return tagger, held, given, [np.array([CLASSES.index(k) for k in row]) for row in given], tables


def test_losses_and_suggestions_are_those_of_the_enumeration(fitted):
    tagger, held, given, codes, tables = fitted
    found = judge(tagger, held, given, codes, NeighbourCounts.of(codes, Labels(CLASSES)), 0)
    changed = 0
    for i, (y, table) in enumerate(zip(codes, tables, strict=True)):
        own = table[tuple(y)]
        values = {
            c: max((score - own + c * sum(a != b for a, b in zip(labels, y, strict=True)), labels) for labels, score in
                   table.items())
            for c in (1, 0, -1)
        }  # fmt: skip
        for c, value in ((1, found.hinge[i]), (0, found.margin[i]), (-1, found.concave[i])):
            assert value == pytest.approx(values[c][0], abs=1e-9)
        best = next((values[c][1] for c in (-1, 0) if values[c][0] > 1e-9), tuple(y))
        assert found.suggested[i] == [CLASSES[k] for k in best]
        changed += found.suggested[i] != given[i]
    assert 0 < changed < len(given)


def test_doubts_are_log_odds_of_single_changes(fitted):
    """Scores by enumeration, log counts by hand, scales by a search without derivatives."""
    tagger, held, given, codes, tables = fitted
    found = np.concatenate(judge(tagger, held, given, codes, NeighbourCounts.of(codes, Labels(CLASSES)), 0).doubt)
    pairs = [pair for row in given for pair in pairwise(["<", *row, ">"])]
    rows, own = [], []
    for i, (y, table) in enumerate(zip(codes, tables, strict=True)):
        around = ["<", *given[i], ">"]
        for t in range(len(y)):
            columns = []
            for k in range(3):
                changed = (*y[:t].tolist(), k, *y[t + 1 :].tolist())
                self_made = int(k == y[t])
                left = pairs.count((around[t], CLASSES[k])) - self_made
                right = pairs.count((CLASSES[k], around[t + 2])) - self_made
                columns.append((table[changed], np.log(left + 0.1), np.log(right + 0.1)))
            rows.append(columns)
            own.append(y[t])
    rows, own = np.array(rows), np.array(own)  # (parts, labels, tables)

    def height(logs):
        logits = rows @ np.exp(logs)
        p = np.exp(logits[np.arange(len(own)), own] - np.logaddexp.reduce(logits, axis=1))
        prior = norm(np.log([4.0, 0.3, 0.3]), 0.5).logpdf(logs).sum()
        return -np.log((1 - WRONG) * p + WRONG / 3).sum() - prior

    scales = np.exp(minimize(height, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x)
    odds = [np.logaddexp.reduce(np.delete(row, k)) - row[k] for row, k in zip(rows @ scales, own, strict=True)]
    np.testing.assert_allclose(found, odds, atol=1e-3)


def test_odds_of_an_example_are_those_of_all_ways_to_be_wrong():
    rng = np.random.default_rng(0)
    doubt, lengths, K = rng.normal(scale=4.0, size=9), np.array([4, 0, 1, 4]), 5
    found = example_scores(doubt, np.repeat(np.arange(4), lengths), lengths, K)
    begin = 0
    for i, T in enumerate(lengths.tolist()):
        p = 1 / (1 + np.exp(doubt[begin : begin + T]))  # of the given labels, were no label drawn by chance
        # a label is right with 1 - e; else e / (K - 1) for the given one in place of a true one with 1 - p
        wrong = 0.0
        for size in range(1, T + 1):
            for places in combinations(range(T), size):
                wrong += np.prod(
                    [WRONG * (1 - p[t]) / (K - 1) if t in places else (1 - WRONG) * p[t] for t in range(T)]
                )
        if T:
            assert found[i] == pytest.approx(np.log(wrong / np.prod((1 - WRONG) * p) / T), rel=1e-9)
        else:
            assert found[i] == -100.0
        begin += T


def test_mean_odds_are_the_likelihood_ratio_of_one_replaced_label():
    """Why doubts take the neighbours as given: by enumeration of a distribution over three dependent labels."""
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.full(27, 0.3)).reshape(3, 3, 3)
    for y in product(range(3), repeat=3):
        replaced = 0.0  # probability of y when one label, anywhere, became any other one
        for t in range(3):
            for k in set(range(3)) - {y[t]}:
                true = list(y)
                true[t] = k
                replaced += joint[tuple(true)] / 3 / 2
        mean = 0.0
        for t in range(3):
            column = joint[tuple(slice(None) if s == t else y[s] for s in range(3))]
            logits = np.log(np.tile(column, (2, 1)))
            # equal rows and both answers leave the scale to the bounds, so the odds are taken by hand
            mean += np.exp(np.logaddexp.reduce(np.delete(logits[0], y[t])) - logits[0, y[t]]) / 3
        assert replaced / joint[y] == pytest.approx(mean / 2, rel=1e-9)


def test_no_labels_no_doubts():
    assert doubts([np.zeros((0, 3))], np.zeros(0, np.int64), 0).shape == (0,)
    assert (doubts([np.zeros((2, 1))], np.zeros(2, np.int64), 0) == -np.inf).all()


def test_planted_mistakes_come_first():
    X, y = chains(60)
    planted = {3: 0, 17: 1, 40: 0}
    for i, t in planted.items():
        t = min(t, len(y[i]) - 1)
        planted[i], y[i][t] = t, TURNED[y[i][t]]
    before = [list(row) for row in y]
    for estimator in (mm.SequenceTagger(), mm.StructuredSVM(mm.Chain()), mm.SequenceTagger(loss="squared_hinge")):
        rows = records(audit(estimator, X, y))
        assert len(rows) == 60 and sorted(row["example"] for row in rows) == list(range(60))
        assert {row["example"] for row in rows[:3]} == set(planted)
        assert all(a["score"] >= b["score"] for a, b in pairwise(rows))
        for row in rows[:3]:
            t, wrong = planted[row["example"]], row["given"][planted[row["example"]]]
            assert row["given"] == y[row["example"]] and row["positions"] == [t] and row["worst"] == t
            assert TURNED[row["suggested"][t]] == wrong and row["agreement"] == 1.0
            assert row["hinge"] >= row["margin"] > 0 and 0 <= row["ramp"] <= row["hinge"]
        assert not hasattr(estimator, "weights_")
    assert y == before


def test_ramp_loss_judges_too():
    X, y = chains(40)
    y[5][0] = TURNED[y[5][0]]
    row = records(audit(mm.SequenceTagger(loss="ramp"), X, y, repeats=1))[0]
    assert row["example"] == 5 and row["positions"] == [0]


def test_classes_the_further_on_the_wrong_side_the_worse():
    X, y = points()
    for i in (0, 12, 27):  # at -3, -2.2 and -1.1: wrong by ever less
        y[i] = "right"
    rows = records(audit(mm.MulticlassClassifier(), X, y))
    assert [row["example"] for row in rows[:3]] == [0, 12, 27]
    assert all(row["suggested"] == "left" and row["positions"] == [0] for row in rows[:3])
    assert rows[0]["margin"] > rows[1]["margin"] > rows[2]["margin"] > 0
    assert all(row["positions"] == [] and row["suggested"] == row["given"] for row in rows[3:])
    same = records(audit(mm.StructuredSVM(mm.Multiclass(fit_intercept=True)), X, y))
    assert [row["example"] for row in same[:3]] == [0, 12, 27]


def test_without_weights_rare_labels_are_doubtful():
    """C = 0: every score is zero, so losses are the cost, and labels are judged by how often they occur."""
    X, y = np.ones((12, 1)), np.array(["a"] * 8 + ["b"] * 4)
    rows = records(audit(mm.MulticlassClassifier(C=0.0), X, y, cv=4))
    assert {row["example"] for row in rows[:4]} == {8, 9, 10, 11}
    for row in rows:
        assert (row["hinge"], row["ramp"], row["margin"], row["violation"]) == (1.0, 1.0, 0.0, 0.0)
        assert row["positions"] == []


def test_nobody_judges_what_it_has_seen():
    """A feature of its own for each example: who has seen an example fits it, who has not knows nothing about it."""
    y = ["a", "b"] * 10
    estimator = mm.MulticlassClassifier(fit_intercept=False, C=100.0)
    assert estimator.fit(np.eye(20), y).score(np.eye(20), y) == 1.0
    for row in records(audit(estimator, np.eye(20), y, cv=3)):
        assert row["hinge"] == 1.0 and row["margin"] == 0.0


def test_a_model_of_ones_own():
    X, y = chains(30, seed=5)
    y = [[CLASSES.index(label) for label in row] for row in y]
    y[4] = [(k + 1) % 3 for k in y[4]]
    rows = records(audit(mm.StructuredSVM(PlainChain(3)), X, y, cv=3, repeats=1))
    assert rows[0]["example"] == 4 and rows[0]["positions"]
    compiled = {row["example"]: row for row in records(audit(mm.StructuredSVM(mm.Chain()), X, y, cv=3, repeats=1))}
    for row in rows:
        assert row["hinge"] == pytest.approx(compiled[row["example"]]["hinge"], abs=0.7)  # fits are coarse


def test_single_labels_are_found_where_sums_are_not_enough():
    """Hard sequences of many lengths: sums grow with the length, a single wrong label does not."""
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(rng.integers(3, 25), 3)) for _ in range(250)]
    y = [[CLASSES[k] for k in (x + rng.normal(scale=0.3, size=x.shape)).argmax(axis=1)] for x in X]
    wrong = rng.choice(250, 25, replace=False)
    for i in wrong:
        t = rng.integers(len(y[i]))
        y[i][t] = TURNED[y[i][t]]
    rows = records(audit(mm.SequenceTagger(tol=0.05), X, y, repeats=1))
    truth = np.isin([row["example"] for row in rows], wrong)
    by_score, by_hinge = (average_precision_score(truth, [row[name] for row in rows]) for name in ("score", "hinge"))
    assert by_score > by_hinge + 0.2


def test_same_seed_same_table():
    X, y = chains(25, seed=8)
    first, again = (records(audit(mm.SequenceTagger(), X, y, cv=3)) for _ in range(2))
    threads = records(audit(mm.SequenceTagger(n_jobs=2), X, y, cv=3))
    other = records(audit(mm.SequenceTagger(), X, y, cv=3, random_state=1))
    assert first == again == threads and first != other


def test_splits_of_ones_own_and_progress():
    X, y = chains(24, seed=9)
    y[2][0] = TURNED[y[2][0]]
    calls = []
    rows = records(audit(mm.SequenceTagger(), X, y, cv=KFold(4), after_fold=lambda: calls.append(1)))
    assert len(calls) == 4 and rows[0]["example"] == 2
    everything = np.arange(24)
    pairs = [(everything[everything % 2 == k], everything[everything % 2 != k]) for k in (0, 1)]
    assert records(audit(mm.SequenceTagger(), X, y, cv=pairs))[0]["example"] == 2
    with pytest.raises(ValueError, match=r"example 1 is held out by no split"):
        audit(mm.SequenceTagger(), X, y, cv=pairs[1:])
    with pytest.raises(ValueError, match=r"split 0 of cv fits and judges example 0"):
        audit(mm.SequenceTagger(), X, y, cv=[(everything, everything)])


@pytest.mark.found("D: Ctrl-C loses nothing")
@pytest.mark.parametrize("where", ["inside the fit, which ends early", "outside of it"])
def test_ctrl_c_keeps_the_folds_that_are_complete(monkeypatch, where):
    (X, y), fit, calls = chains(12, least=2), mm.SequenceTagger.fit, []
    whole = audit(mm.SequenceTagger(), X, y, 3, repeats=1).set_index("example")

    def interrupted_at(last):
        calls.clear()

        def fitted(self, *given):
            calls.append(1)
            if len(calls) < last:
                return fit(self, *given)
            if where == "outside of it":
                raise KeyboardInterrupt
            monkeypatch.setattr(DualEngine, "step", pressed)
            return fit(self, *given)

        monkeypatch.setattr(mm.SequenceTagger, "fit", fitted)

    def pressed(self, state):
        raise KeyboardInterrupt

    interrupted_at(3)
    with pytest.warns(ConvergenceWarning, match="Interrupted after 2 folds"):
        part = audit(mm.SequenceTagger(), X, y, 3, repeats=1).set_index("example")
    assert len(part) == 8 and len(calls) == 3
    pd.testing.assert_frame_equal(part, whole.loc[part.index])
    interrupted_at(1)
    with pytest.raises(KeyboardInterrupt):
        audit(mm.SequenceTagger(), X, y, 3)


def test_text_and_ready_features():
    X = [["the", "dog"], ["a", "dog"], ["the", "cat"], ["a", "cat"]] * 5
    y = [["D", "N"] for _ in X]
    y[6] = ["D", "D"]
    rows = records(audit(mm.SequenceTagger(), X, y))
    assert rows[0]["example"] == 6 and rows[0]["suggested"] == ["D", "N"]
    ready = mm.TextFeatures("U00:%x[0,0]\n").fit_transform(X)
    assert records(audit(mm.SequenceTagger(), ready, y))[0]["example"] == 6


@pytest.mark.parametrize("wrap", [sp.coo_matrix, pd.DataFrame, np.ndarray.tolist], ids=["sparse", "frame", "lists"])
def test_inputs_of_many_kinds(wrap):
    X, y = points(10)
    y[0] = "right"
    rows = records(audit(mm.MulticlassClassifier(), wrap(X), pd.Series(y), cv=4))
    assert rows == records(audit(mm.MulticlassClassifier(), X, y, cv=4)) and rows[0]["example"] == 0


def test_labels_that_a_fold_has_never_seen():
    X, y = chains(20, seed=10, least=2)
    y[3][1] = "once"
    row = records(audit(mm.SequenceTagger(), X, y))[0]
    assert row["example"] == 3 and row["suggested"][1] in CLASSES
    points_X, points_y = points(6)
    points_y = points_y.astype(object)
    points_y[2] = "once"
    row = records(audit(mm.MulticlassClassifier(), points_X, points_y))[0]
    assert row["example"] == 2 and row["given"] == "once" and row["suggested"] == "left"
    assert all(np.isfinite(row["score"]) for row in records(audit(mm.MulticlassClassifier(), points_X, points_y)))


def test_one_class_in_a_fold_and_one_class_at_all():
    X, y = np.array([[0.0], [0.1], [5.0]]), ["a", "a", "b"]
    assert len(audit(mm.MulticlassClassifier(), X, y, cv=3)) == 3
    rows = records(audit(mm.MulticlassClassifier(), X, ["a"] * 3, cv=3))
    assert all(row["score"] == -100.0 and row["positions"] == [] for row in rows)
    rows = records(audit(mm.SequenceTagger(), [np.ones((2, 1))] * 3, [["a", "a"]] * 3, cv=3))
    assert all(row["score"] == -100.0 for row in rows)


def test_sequences_without_tokens():
    X, y = chains(12, seed=11)
    X[4], y[4] = np.zeros((0, 3)), []
    (row,) = [row for row in records(audit(mm.SequenceTagger(), X, y, cv=3)) if row["example"] == 4]
    assert (row["score"], row["positions"], row["worst"], row["suggested"]) == (-100.0, [], -1, [])


def test_constraints_hold_in_suggestions_and_errors_name_the_example():
    rng = np.random.default_rng(12)
    X = [rng.normal(size=(4, 3)) for _ in range(30)]
    y = [[("O", "B-X", "B-Y")[k] for k in x.argmax(axis=1)] for x in X]
    estimator = mm.SequenceTagger(constraints="bio", classes=["O", "B-X", "B-Y", "I-X"])
    rows = records(audit(estimator, X, y, cv=3))
    for row in rows:
        assert all(right != "I-X" or left in ("B-X", "I-X") for left, right in pairwise(["O", *row["suggested"]]))
    y[17] = ["O", "I-X", "O", "O"]
    with pytest.raises(ValueError, match=r"example 17, position 1: the given label 'I-X'"):
        audit(estimator, X, y, cv=3)
    with pytest.raises(ValueError, match=r"example 17 has the label 'I-X'"):
        audit(mm.SequenceTagger(classes=["O", "B-X", "B-Y"]), X, y, cv=3)


class NoPandas(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname == "pandas":
            raise ImportError("pandas is not there")


@pytest.mark.found("C: without pandas")
def test_without_pandas_a_dict_of_columns(monkeypatch):
    X, y = points(6)
    frame = audit(mm.MulticlassClassifier(), X, y, cv=3, repeats=1)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)  # None in its place would confuse scikit-learn 1.6
    monkeypatch.setattr(sys, "meta_path", [NoPandas(), *sys.meta_path])
    table = audit(mm.MulticlassClassifier(), X, y, cv=3, repeats=1)
    assert isinstance(table, dict) and list(table) == list(frame)
    for name in table:
        assert table[name].shape == (12,) and table[name].tolist() == frame[name].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 13}, r"cv is 13; with 12 examples it must be from 2 to 12"),
        ({"cv": 1}, r"cv is 1; with 12 examples"),
        ({"repeats": 0}, r"repeats must be a whole number >= 1"),
        ({"repeats": 1.5}, r"repeats must be a whole number >= 1"),
        ({"tol": -1.0}, r"tol must be a relative duality gap"),
        ({"tol": "x"}, r"tol must be a relative duality gap >= 0, got 'x'"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(ValueError, match=message):
        audit(mm.MulticlassClassifier(), *points(6), **options)


def test_bad_data():
    X, y = points(6)
    with pytest.raises(ValueError, match=r"X has 12 examples and y has 11; they must agree"):
        audit(mm.MulticlassClassifier(), X, y[:-1])
    with pytest.raises(TypeError, match=r"audit needs a SequenceTagger, .* got LogisticRegression"):
        audit(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match=r"cv is 5; with 0 examples"):
        audit(mm.SequenceTagger(), [], [])
    bad = X.copy()
    bad[7] = np.nan
    with pytest.raises(ValueError, match=r"NaN"):
        audit(mm.MulticlassClassifier(), bad, y)
    sequences, labels = chains(12, seed=13)
    sequences[7] = sequences[7] * np.nan
    with pytest.raises(ValueError, match=r"sequence 7 has NaN"):
        audit(mm.SequenceTagger(), sequences, labels, cv=3)


def test_estimator_is_left_as_it_was():
    X, y = chains(12, seed=14)
    estimator = mm.SequenceTagger(C=0.3, warm_start=True, verbose=0)
    before = clone(estimator).get_params()
    audit(estimator, X, y, cv=3, repeats=1)
    assert estimator.get_params() == before


def test_example_of_the_docstring():
    result = doctest.testmod(importlib.import_module("maxmargin.estimators.auditing"))
    assert result.attempted > 0 and result.failed == 0
