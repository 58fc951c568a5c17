"""The oracle that counts."""

from __future__ import annotations

import numpy as np

from maxmargin.models.chain import Chain
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
