"""The oracle that counts."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from agreement.matching import WithoutSlackSearch
from agreement.tiny import Tiny
from maxmargin.models import user
from maxmargin.models.chain import Chain
from maxmargin.models.search import answer_by_queries
from maxmargin.oracles.counting import CountingOracle
from maxmargin.oracles.oracle import ModelOracle
from reference.problems import random_chains

X, Y = random_chains(6, 3, 2, lengths=(2, 4), seed=1)
BOUND = Chain().bind(X, Y)
ALL = np.arange(6)


def weights(seed):
    return np.random.default_rng(seed).normal(size=BOUND.n_weights)


def test_counting_counts_examples_and_changes_nothing():
    bare, counting = ModelOracle(BOUND), CountingOracle(ModelOracle(BOUND))
    w = weights(0)
    planes = counting.planes(w, np.array([1, 4]))
    assert (counting.oracle_calls, counting.argmax_calls) == (2, 2)
    np.testing.assert_array_equal(planes.to_csr().toarray(), bare.planes(w, np.array([1, 4])).to_csr().toarray())
    a, b, losses, _ = counting.sum(w, ALL, np.ones(6))
    assert (counting.oracle_calls, counting.argmax_calls) == (8, 8)
    for ours, theirs in zip((a, b, losses), bare.sum(w, ALL, np.ones(6))[:3], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert counting.seconds > 0
    before = counting.seconds
    assert counting.count_fused(4, 1e9, (9, 1)) < 1e9  # at the pace of the calls that were timed
    assert (counting.oracle_calls, counting.argmax_calls, counting.unproven) == (12, 17, 1)
    assert counting.seconds > before
    assert (counting.n_examples, counting.n_columns) == (6, BOUND.n_weights)
    assert counting.longest == bare.longest


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "pegasos"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_history_counts_queries_and_proven_answers(solver, monkeypatch):
    """Of a search round a user's argmax: every question, and the share of answers whose bound is their value."""
    asked, answers = [], []

    class Counted(WithoutSlackSearch):
        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            asked.append(cost_weight)
            return super().argmax(x, w, y_true, cost_weight)

    def recorded(*arguments):
        answers.append(answer_by_queries(*arguments))
        return answers[-1]

    monkeypatch.setattr(user, "answer_by_queries", recorded)
    X, y = Tiny("own", n=4, seed=7).data
    model = mm.StructuredSVM(Counted(3, 2), rescaling="slack", solver=solver, max_passes=12, C=0.5)
    history = model.fit(list(X), [tuple(row.tolist()) for row in y]).history_
    assert history["argmax_calls"].iloc[-1] == len(asked) > len(answers) == history["oracle_calls"].iloc[-1]
    calls = np.diff(history["oracle_calls"], prepend=0)
    unproven = sum(answer.bound > answer.value * (1 + 1e-9) + 1e-12 for answer in answers)
    assert 0 < unproven < len(answers)
    assert calls @ (1.0 - history["proven"]) == pytest.approx(unproven)
