"""Graphs with cycles and too many labels to try all sets, on sets that are few enough to try them all."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.models import label_set
from maxmargin.models.label_set import LabelSet
from maxmargin.oracles.oracle import ModelOracle
from reference.label_sets import value

from .batches import decode, plane
from .test_label_set import RESCALINGS, problems

WORK = st.sampled_from([0, 300, 10**12])  # relaxation alone, a small budget, one that is never spent


@st.composite
def cyclic(draw, most=12):
    """A problem bound without the exact methods of few labels, and the budget of its branching."""
    work = draw(WORK)
    with mock.patch.object(label_set, "MOST_ENUMERATED", 0), mock.patch.object(label_set, "MOST_WORK", work):
        return draw(problems(most=most, cycles=True)), work


@settings(max_examples=120, deadline=None)
@given(cyclic(), st.sampled_from([0.0, 1.0, 0.5, -1.0]))
def test_no_bound_is_below_the_best_set_and_a_large_budget_finds_it(case, lam):
    (bound, _, Y, costs, sets, w, scores, _), work = case
    outputs, found_costs, bounds, status = decode(bound, w, np.arange(len(Y)), lam)
    assert status == -1
    for i in range(len(Y)):
        true = int((sets == Y[i]).all(axis=1).argmax())
        objective = scores[i] + lam * costs[i] - scores[i, true]
        at = int((sets == outputs[i]).all(axis=1).argmax())
        assert found_costs[i] == pytest.approx(costs[i, at], abs=1e-12)
        assert objective[at] - 1e-9 <= objective.max() <= bounds[i] + 1e-9
        if work > 300 or (w[len(w) - len(bound.layout.edges) :] >= 0).all():  # a cut alone is exact for these
            assert objective[at] == pytest.approx(objective.max(), abs=1e-9)
            assert bounds[i] == pytest.approx(objective.max(), abs=1e-9)
        made, output, result = plane(bound, w, i, lam, 1)
        assert (made, output.tolist(), result[1]) == (1, outputs[i].tolist(), bounds[i])
        assert result[0] == pytest.approx(objective[at], abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(cyclic(), st.sampled_from(RESCALINGS[1:]), st.sampled_from([1.0, 0.4, 3.0]))
def test_other_rescalings(case, rescaling, lam):
    (bound, _, Y, costs, sets, w, scores, _), work = case
    answers = ModelOracle(bound, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        h = scores[i] - scores[i, (sets == Y[i]).all(axis=1).argmax()]
        best = max(0.0, value(h, costs[i], lam, rescaling).max())
        assert answers.bound[i] >= best - 1e-9
        found = answers.violations(w)[i]
        assert found <= best + 1e-9
        if work > 300:
            assert answers.bound[i] == pytest.approx(best, abs=1e-8)
            assert found == pytest.approx(best, abs=1e-8) or best == 0.0


@settings(max_examples=40, deadline=None)
@given(cyclic(most=9))
def test_max_marginals(case):
    (bound, _, _, _, sets, w, scores, _), work = case
    found = bound.max_marginals(w)
    best = scores.argmax(axis=1)
    for i, k in np.ndindex(found.shape):
        on = sets[:, k] == 1
        if work > 300:
            assert found[i, k] == pytest.approx(scores[i, on].max() - scores[i, ~on].max(), abs=1e-9)
    if work > 300 and len(found):
        margins = np.sort(scores, axis=1)
        clear = margins[:, -1] > margins[:, -2] + 1e-9 if margins.shape[1] > 1 else np.ones(len(found), bool)
        np.testing.assert_array_equal((found > 0)[clear], sets[best[clear]] == 1)


def test_scratch_is_handed_back_as_zeros():
    rng = np.random.default_rng(0)
    with mock.patch.object(label_set, "MOST_ENUMERATED", 0):
        bound = LabelSet(graph="full").bind(rng.normal(size=(4, 3)), rng.integers(0, 2, (4, 9)))
    w = rng.normal(size=bound.n_weights)
    for search in ("argmax", "slack", "sqrt_slack", "best_wrong"):
        k = bound.kernel(search)
        work = k.workspace()
        index, entries, result = np.empty(k.room, np.int32), np.empty(k.room), np.ones(5)
        for i in range(4):
            k.search(k.plane, k.meta, k.ints, k.floats, w, i, 1.0, 1, *work, index, entries, result)
            assert not work[0].any()


def test_many_labels_train_with_a_certificate():
    """Twenty labels in a full graph: more than trying all sets is for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    Y = (X @ rng.normal(size=(5, 20)) + 0.5 * rng.normal(size=(30, 20)) > 0.5).astype(int)
    for rescaling in ("margin", "slack"):
        model = mm.MultilabelClassifier(graph="full", rescaling=rescaling, C=0.1, tol=1e-2).fit(X, Y)
        assert model.inference_ == "branch and bound" + ("; slack: branching" if rescaling == "slack" else "")
        assert model.certificate_.relative_gap <= 1e-2
        assert 0.0 <= model.history_["proven"].to_numpy()[-1] <= 1.0 and model.fractional_ <= len(X)
        assert (model.history_["argmax_calls"] >= model.history_["oracle_calls"]).all()
        scores = model.decision_function(X)
        np.testing.assert_array_equal(scores > 0, model.predict(X) == 1)


def test_forests_with_weighted_costs_are_exact():
    rng = np.random.default_rng(1)
    M = 8
    graph = [(k, int(rng.integers(k))) for k in range(1, M)]
    weights = dict(enumerate(rng.integers(1, 5, M) / 2))
    X, Y = rng.normal(size=(5, 3)), rng.integers(0, 2, (5, M))
    with mock.patch.object(label_set, "MOST_ENUMERATED", 0):
        bound = LabelSet(graph=graph, cost=weights).bind(X, Y)
    assert bound.layout.inference == "dynamic program"
    w = rng.normal(size=bound.n_weights)
    answers = ModelOracle(bound, "slack").planes(w, np.arange(5))
    few = ModelOracle(LabelSet(graph=graph, cost=weights).bind(X, Y), "slack").planes(w, np.arange(5))
    np.testing.assert_allclose(answers.bound, few.bound)
    np.testing.assert_allclose(answers.violations(w), few.bound)
