"""Several good outputs: fits against the linear program over all pairs, the scan against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations.references import References
from reference.linear_programs import F, K, all_rows, chains_with_references


@pytest.mark.parametrize("pairing", ["all", "nearest"])
def test_the_oracle_finds_the_most_violated_pair(pairing):
    X, good = chains_with_references(n=20, seed=7)
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [outputs[0] for outputs in good])
    problem, rows = References(good, pairing).problem(bound), all_rows(X, good, pairing)
    rng = np.random.default_rng(0)
    for _ in range(5):
        table = [rng.normal(size=(F, K)), rng.normal(size=(K, K))]
        plain, w = np.concatenate([part.ravel() for part in table]), np.zeros(bound.n_weights)
        groups = bound.layout.groups(w)
        groups["dense"][...], groups["transition"][...] = table
        planes = problem.oracle.planes(w, np.arange(20), 3)
        losses = np.array([max(0.0, (b - A @ plain).max()) for A, b in rows])
        assert planes.losses(20) == pytest.approx(losses)
        first = np.flatnonzero(np.diff(planes.example, prepend=-1))
        assert np.maximum(planes.violations(w)[first], 0.0) == pytest.approx(losses)


def test_scans_that_end_early_are_counted_and_bounded(monkeypatch):
    X, good = chains_with_references(n=20, seed=7)
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [outputs[0] for outputs in good])
    oracle = References(good, "nearest").problem(bound).oracle
    w, every = np.random.default_rng(0).normal(size=bound.n_weights), np.arange(20)
    whole = oracle.planes(w, every)
    assert whole.counts[0] >= 20 and whole.counts[1] == 0
    monkeypatch.setattr("maxmargin.oracles.references.MOST_SCANNED", 1)
    early = oracle.planes(w, every)
    opened = np.count_nonzero(early.bound > np.maximum(early.violations(w), 0.0) + 1e-9)
    assert early.counts == (20, opened) and opened > 0
    assert (early.bound >= whole.bound - 1e-12).all()


def test_one_good_output_is_the_unit_margin():
    X, good = chains_with_references(seed=3)
    y = [outputs[0] for outputs in good]
    plain = mm.SequenceTagger(penalty="l1", C=2.0, tol=1e-7, classes=[0, 1, 2]).fit(X, y)
    for pairing in ("all", "nearest"):
        tagger = mm.SequenceTagger(penalty="l1", C=2.0, tol=1e-7, classes=[0, 1, 2])
        tagger.fit(X, y, references=[[] for _ in y], pairing=pairing)
        assert tagger.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


def test_classes_and_the_quadratic_penalty():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 20)
    X = np.eye(4, 5)[y] + 0.3 * rng.normal(size=(20, 5))
    good = [[int(label), 3] for label in y]
    svm = mm.StructuredSVM(mm.Multiclass(classes=[0, 1, 2, 3]), C=1.0, tol=1e-6, penalty="l2")
    svm.fit(X, y.tolist(), references=good)
    assert svm.status_.converged
    w = np.asarray(svm.weights_).reshape(5, -1)[:, :4]
    losses = [
        max(0.0, max(1 - x @ (w[:, g] - w[:, bad]) for g in set(goods) for bad in set(range(4)) - set(goods)))
        for x, goods in zip(X, good, strict=True)
    ]
    assert svm.certificate_.primal == pytest.approx(0.5 * (w**2).sum() + sum(losses), rel=1e-9)


def test_the_estimators_of_a_task_take_references_too():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 20)
    X = np.eye(4, 5)[y] + 0.3 * rng.normal(size=(20, 5))
    good = [[3] for _ in y]
    given = {"penalty": "l1", "C": 1.0, "tol": 1e-6}
    plain = mm.StructuredSVM(mm.Multiclass(fit_intercept=False), **given).fit(X, y.tolist(), references=good)
    task = mm.MulticlassClassifier(fit_intercept=False, **given).fit(X, y, references=good)
    assert task.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-5)
    assert task.certificate_.primal != pytest.approx(
        mm.MulticlassClassifier(fit_intercept=False, **given).fit(X, y).certificate_.primal, rel=1e-2
    )
    pairs = [rng.normal(size=(3, 3, 2)) for _ in range(6)]
    links = [[(0, 0), (1, 1), (2, 2)]] * 6
    others = [[[(0, 0), (1, 1)]]] * 6
    plain = mm.StructuredSVM(mm.Matching(1), **given).fit(pairs, links, references=others)
    task = mm.Aligner(max_links=1, **given).fit(pairs, links, references=others)
    assert task.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize(
    ("references", "y", "parameters", "told"),
    [
        ([[[0, 1]], []], None, {}, "example 1 has no good output"),
        ([[[0, 1]], [[a, b] for a in range(2) for b in range(2)]], None, {}, "example 1: every output is among"),
        ([[[0, 1]]], [[0, 1], [1, 0]], {}, "y has 2 entries and references 1"),
        ([[[0, 1]], [[0]]], None, {"y0": True}, "example 1 has 2 tokens"),
        ([[[0, 1]], [[0, 5]]], [[0, 1], [1, 0]], {}, "5"),
        ([[[0, 1]], [[1, 1]]], None, {"rescaling": "slack"}, "margins of 1"),
        ([[[0, 1]], [[1, 1]]], None, {"loss": "squared_hinge"}, "margins of 1"),
        ([[[0, 1]], [[1, 1]]], None, {"pairing": "some"}, "pairing must be"),
    ],
)
def test_bad_references_are_named(references, y, parameters, told):
    pairing = parameters.pop("pairing", "all")
    if parameters.pop("y0", False):
        y = [[0, 1], [1, 0]]
    X = [np.eye(2)[[0, 1]], np.eye(2)[[1, 0]]]
    tagger = mm.SequenceTagger(penalty="l1", classes=[0, 1], **parameters)
    with pytest.raises(ValueError, match=told):
        tagger.fit(X, y, references=references, pairing=pairing)


def test_models_without_a_list_of_outputs_are_refused():
    class Sign:
        def n_weights(self, X, Y):
            return 1

        def joint_features(self, x, y):
            return np.array([y * x / 2])

        def cost(self, y_true, y):
            return float(y_true != y)

        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            return max((-1, 1), key=lambda y: y * w[0] * x / 2 + cost_weight * (y != y_true))

    with pytest.raises(ValueError, match="references= needs the k best outputs"):
        mm.StructuredSVM(Sign(), penalty="l1").fit([1.0, -1.0], None, references=[[1], [-1]])


@pytest.mark.parametrize("estimator", [mm.SequenceTagger(), mm.MulticlassClassifier()])
def test_pairing_is_not_ignored(estimator):
    X, y = ([np.ones((2, 1))] * 2, [[0, 1]] * 2) if isinstance(estimator, mm.SequenceTagger) else (np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="pairing is 'nearest', which is for several good outputs"):
        estimator.fit(X, y, pairing="nearest")
