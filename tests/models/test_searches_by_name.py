"""Slack searches that are chosen by name, or by what a model declares, against all outputs."""

from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.contracts import offers_constrained, offers_relaxed
from maxmargin.models import label_set
from maxmargin.models import search as by_name
from maxmargin.models.graph import Graph
from maxmargin.models.label_set import LabelSet
from maxmargin.models.search import SLACK_SEARCHES, SearchedModel
from maxmargin.models.user import PythonModel
from maxmargin.testing import ModelError, check_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SEEDS = st.integers(0, 2**32 - 1)
NAMES = SLACK_SEARCHES[1:]


class Points:
    """An own model: output y has the features and the cost of row y of a table, minus those of the truth."""

    def __init__(self, rows, costs):
        self.rows, self.costs = np.asarray(rows, float), np.asarray(costs, float)

    def n_weights(self, X, Y):
        return self.rows.shape[1]

    def joint_features(self, x, y):
        return x * self.rows[y]

    def cost(self, y_true, y):
        return float(abs(self.costs[y] - self.costs[y_true]))

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        cost = 0.0 if y_true is None else np.abs(self.costs - self.costs[y_true])
        return int(np.argmax(x * self.rows @ w + cost_weight * cost))


class Angled(Points):
    asked = 0

    def constrained_argmax(self, x, w, y_true, cost_weight, low, high):
        self.asked += 1
        g, h = np.abs(self.costs - self.costs[y_true]), 1.0 + x * (self.rows - self.rows[y_true]) @ w
        with np.errstate(invalid="ignore"):
            inside = (h > 0) & (g > 0) & (g >= low * h) & (g <= high * h)
        return int(np.argmax(np.where(inside, h + cost_weight * g, -np.inf))) if inside.any() else None

    def points(self, x, w, y_true, lam):
        return lam + x * (self.rows - self.rows[y_true]) @ w, np.abs(self.costs - self.costs[y_true])


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([0.3, 1.0, 4.0]))
def test_an_own_argmax_within_an_angle_makes_slack_exact(seed, lam):
    rng = np.random.default_rng(seed)
    M = int(rng.integers(2, 12))
    costs = rng.integers(0, 4, M) if seed % 2 else 3.0 * rng.random(M)
    model, y = Angled(rng.normal(size=(M, 3)), costs), int(rng.integers(M))
    bound = PythonModel(model).bind([1.0], [y])
    assert offers_constrained(bound)
    w = rng.normal(size=3)
    h, g = model.points(1.0, w, y, lam)
    best = float((h * g)[(h > 0) & (g > 0)].max(initial=0.0))
    answer = bound.answer(w, 0, lam, "slack")
    assert answer.value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert best * (1 - 1e-12) <= answer.bound <= best * (1 + 1e-5) + 1e-5
    assert answer.queries == 1 + model.asked <= 2 * M + 2
    assert answer.cost * (lam - w[answer.indices] @ answer.psi) == pytest.approx(best, rel=1e-9, abs=1e-12)
    for method in NAMES[:-1]:
        chosen = SearchedModel.of(bound, method, "slack").answer(w, 0, lam, "slack")
        assert chosen.value <= best * (1 + 1e-9) and chosen.bound >= best * (1 - 1e-12)


def test_a_fit_with_it_reaches_the_exact_certificate():
    rng = np.random.default_rng(0)
    rows, costs = rng.normal(size=(8, 4)), rng.integers(0, 4, 8)
    X, y = rng.normal(size=12).tolist(), rng.integers(0, 8, 12).tolist()
    options = {"C": 0.5, "rescaling": "slack", "tol": 1e-4, "max_passes": 100}
    svm = mm.StructuredSVM(Angled(rows, costs), **options).fit(X, y)
    assert svm.certificate_.relative_gap <= 1e-4
    model, w = svm.layout_.model, svm.weights_
    losses = 0.0
    for x, true in zip(X, y, strict=True):
        h, g = model.points(x, w, true, 1.0)
        losses += float((h * g).max(initial=0.0))
    assert svm.certificate_.primal == pytest.approx(0.5 * w @ w + 0.5 * losses, rel=1e-5)


def test_an_answer_outside_the_angle_is_named():
    class Wrong(Angled):
        def constrained_argmax(self, x, w, y_true, cost_weight, low, high):
            return 1

    bound = PythonModel(Wrong([[0.0], [1.0], [5.0]], [0.0, 1.0, 9.0])).bind([1.0], [0])
    with pytest.raises(ValueError, match=r"example 0: constrained_argmax returned an output with cost 1 .* was asked"):
        bound.answer_between(np.ones(1), 0, 1.0, 1.0, 3.0, 4.0)


def test_checks_of_own_models_look_at_angles():
    rng = np.random.default_rng(1)
    rows, costs, X, y = rng.normal(size=(6, 2)), rng.integers(0, 4, 6), [1.0, -0.5], [0, 3]
    report = check_model(Angled(rows, costs), X, y, outputs=lambda x: range(6))
    assert report.ok and report.capabilities["constrained_argmax"]

    class Anywhere(Angled):
        def constrained_argmax(self, x, w, y_true, cost_weight, low, high):
            return self.argmax(x, w, y_true, cost_weight)

    class Nowhere(Angled):
        def constrained_argmax(self, x, w, y_true, cost_weight, low, high):
            return None

    for model, said in ((Anywhere, "asked was cost between"), (Nowhere, "constrained_argmax returned None for")):
        with pytest.raises(ModelError, match=said):
            check_model(model(rows, costs), X, y, outputs=lambda x: range(6))


def sets_of(bound, w, Y, cost):
    """(h, g) of all sets of each example, h with margin 0."""
    groups, M = bound.layout.groups(w), Y.shape[1]
    sets, (j, k) = np.array(list(product((0, 1), repeat=M))), bound.layout.edges.T
    pairs = (sets[:, j] * sets[:, k]) @ groups["edge"]
    for i, true in enumerate(Y):
        total = sets @ bound.scores(w, np.array([i]))[0] + pairs
        yield total - total[(sets == true).all(axis=1)][0], (sets != true) @ cost


@pytest.mark.parametrize("seed", range(4))
def test_label_sets_by_every_search(seed):
    pytest.importorskip("highspy")
    rng = np.random.default_rng(seed)
    X, Y, M = rng.normal(size=(3, 2)), rng.integers(0, 2, (3, 5)), 5
    cost = rng.integers(1, 4, M).astype(float)
    with mock.patch.object(label_set, "MOST_ENUMERATED", 0):
        bound = LabelSet(graph="full", cost=dict(enumerate(cost))).bind(X, Y)
        assert offers_constrained(bound) and offers_relaxed(bound)
        w = rng.normal(size=bound.n_weights)
        for i, (h, g) in enumerate(sets_of(bound, w, Y, cost)):
            best = max(0.0, float(((1.0 + h) * g).max()))
            for method in NAMES:
                answer = SearchedModel.of(bound, method, "slack").answer(w, i, 1.0, "slack")
                value = answer.cost * (1.0 - float(w[answer.indices] @ answer.psi))
                assert answer.value == pytest.approx(max(value, 0.0), abs=1e-9)
                assert answer.bound >= best * (1 - 1e-12)
                if method == "angular":
                    assert best - 1e-6 <= answer.value and answer.bound <= best * (1 + 2e-6) + 1e-5
                if method == "relaxed":
                    assert answer.bound == pytest.approx(answer.value, rel=1e-9, abs=1e-9)
                else:
                    assert answer.value <= best + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_graphs_by_integer_programs_are_exact(seed):
    pytest.importorskip("highspy")
    rng = np.random.default_rng(seed)
    n, edges = 4, np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    X = [{"node": rng.normal(size=(n, 2)), "edges": edges, "edge": rng.normal(size=(len(edges), 1))}]
    y = [["abc"[k] for k in rng.integers(3, size=n)]]
    bound = Graph(method="integer", classes=list("abc")).bind(X, y)
    assert offers_constrained(bound)
    w = rng.normal(size=bound.n_weights)
    inner = bound.inner
    problem, true = inner.problem(w, 0), inner.codes[0]
    best = max(
        (1.0 + problem.score(codes) - problem.score(true)) * (codes != true).sum()
        for codes in np.array(list(product(range(3), repeat=n)), np.int32)
    )
    answer = bound.answer(w, 0, 1.0, "slack")
    assert answer.value == pytest.approx(best, rel=1e-6) and best <= answer.bound <= best * (1 + 2e-6)
    assert answer.cost * (1.0 - w[answer.indices] @ answer.psi) == pytest.approx(best, rel=1e-6)
    rough = SearchedModel.of(Graph(classes=list("abc")).bind(X, y), "angular", "slack").answer(w, 0, 1.0, "slack")
    assert rough.value == pytest.approx(best, rel=1e-6)


@pytest.fixture(scope="module")
def many_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    return X, (X @ rng.normal(size=(4, 20)) + 0.5 * rng.normal(size=(20, 20)) > 0.5).astype(int)


def test_relaxed_sets_have_a_certificate_of_an_upper_bound(many_labels):
    X, Y = many_labels
    options = {"graph": "full", "rescaling": "slack", "C": 0.05, "tol": 1e-3}
    sets = mm.MultilabelClassifier(**options).fit(X, Y)
    relaxed = mm.MultilabelClassifier(slack_search="relaxed", **options).fit(X, Y)
    assert sets.inference_ == "branch and bound; slack: branching"
    assert relaxed.inference_ == "branch and bound; slack: relaxed"
    assert relaxed.certificate_.relative_gap <= 1e-3
    assert relaxed.certificate_.primal >= sets.certificate_.dual * (1 - 1e-9)
    again = mm.MultilabelClassifier(slack_search="bisecting", **options).fit(X, Y)
    assert again.certificate_.dual <= sets.certificate_.primal * (1 + 1e-9)
    assert again.certificate_.primal >= sets.certificate_.dual * (1 - 1e-9)


def test_which_predictions_are_not_proven(many_labels):
    X, Y = many_labels
    with mock.patch.object(label_set, "MOST_WORK", 0):
        model = mm.MultilabelClassifier(graph="full", C=1.0, max_passes=3).fit(X, Y)
        before = model.fractional_
        assert model.unproven(X).shape == (20,) and model.unproven(X).dtype == bool
        assert int(model.unproven(X).sum()) == before == model.fractional_
    assert not mm.MultilabelClassifier(max_passes=1).fit(X, Y).unproven(X).any()
    assert mm.MultilabelClassifier(max_passes=1).fit(X, Y).inference_ == "label by label"


def test_what_cannot_be_searched_is_said(many_labels):
    X, Y = many_labels
    with pytest.raises(ValueError, match=r"slack_search must be one of auto, angular, bisecting, .*; got 'anguler'"):
        mm.MultilabelClassifier(rescaling="slack", slack_search="anguler").fit(X, Y)
    with pytest.raises(ValueError, match=r'slack_search="golden" is for rescaling="slack"; with "sqrt_slack" use'):
        mm.MultilabelClassifier(rescaling="sqrt_slack", slack_search="golden").fit(X, Y)
    chains = [np.eye(2)], [["a", "b"]]
    with mock.patch.object(by_name, "has_highs", lambda: True):
        with pytest.raises(ValueError, match=r'slack_search="angular" needs the argmax among .* the chain model'):
            mm.SequenceTagger(rescaling="slack", slack_search="angular").fit(*chains)
    with pytest.raises(ValueError, match=r'slack_search="relaxed" needs an argmax over a convex set'):
        mm.SequenceTagger(rescaling="slack", slack_search="relaxed").fit(*chains)


def test_without_highs_angular_search_gives_way_to_bisecting():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.integers(0, 2, (6, 4))
    with (
        mock.patch.object(by_name, "has_highs", lambda: False),
        mock.patch.object(label_set, "has_highs", lambda: False),
    ):
        bound = LabelSet(graph="full").bind(X, Y)
        with pytest.warns(UserWarning, match=r'needs HiGHS \(pip install .*; slack_search="bisecting" is used'):
            chosen = SearchedModel.of(bound, "angular", "slack")
    assert chosen.method == "bisecting"
