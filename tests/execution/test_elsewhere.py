"""Questions about examples that are with the workers: answered as the oracle that has them all would."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from maxmargin.execution.executors import Threads
from maxmargin.execution.sharded import spread_over
from maxmargin.features.extractor import TextFeatures
from maxmargin.models.chain import Chain, ChainBound
from maxmargin.models.chain_elsewhere import ChainElsewhere, PartFacts
from maxmargin.models.chain_parts import PackedPart
from maxmargin.oracles.counting import all_losses
from maxmargin.oracles.oracle import ModelOracle

RNG = np.random.default_rng(0)
SENTENCES = [[(f"w{RNG.zipf(1.6)}", f"{RNG.integers(3)}") for _ in range(RNG.integers(1, 9))] for _ in range(50)]


class Held(NamedTuple):
    """A part, and how often it was fetched."""

    bound: ChainBound
    facts: PartFacts
    fetched: list[int]

    def packed(self) -> PackedPart:
        self.fetched[0] += 1
        return PackedPart.of(self.bound)


@pytest.fixture
def oracles():
    """The oracle of all, the one of parts, and the parts."""
    X = TextFeatures("U1:%x[0,0]\nU2:%x[-1,0]\n").fit_transform(SENTENCES)
    Y = [[f"L{tag}" for _, tag in sentence] for sentence in SENTENCES]
    whole = Chain().bind(X, Y)
    bound = [Chain().bind(X[a:b], Y[a:b], layout=whole.layout) for a, b in pairwise([0, 20, 20, 33, 50])]
    parts = [Held(part, PartFacts.of(part), [0]) for part in bound]
    return ModelOracle(whole), ModelOracle(ChainElsewhere.of(whole.layout, parts)), parts


def same(found, wanted):
    for name in ("example", "indptr", "indices", "data", "b", "bound"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert found.counts == wanted.counts


@pytest.mark.parametrize("n_workers", [1, 2, 7, 80])
def test_answers_are_those_of_the_whole(oracles, n_workers):
    whole, elsewhere, _ = oracles
    executor = Threads(n_workers)
    oracle, w = spread_over(elsewhere, executor), RNG.normal(size=whole.n_columns)
    assert (oracle.n_examples, oracle.longest, oracle.fused()) == (50, whole.longest, None)
    assert oracle.fingerprint == whole.fingerprint
    for examples in (np.arange(50), RNG.permutation(50), RNG.permutation(50)[:30], np.array([49]), np.arange(0)):
        for most in (1, 3):
            same(oracle.planes(w, examples, most), whole.planes(w, examples, most))
        same(oracle.predicting().planes(w, examples), whole.predicting().planes(w, examples))
        scale = RNG.random(len(examples))
        found, wanted = oracle.sum(w, examples, scale), whole.sum(w, examples, scale)
        np.testing.assert_allclose(found.a, wanted.a, atol=1e-12)
        np.testing.assert_array_equal(found.losses, wanted.losses)
    np.testing.assert_array_equal(all_losses(oracle, w), all_losses(whole, w))
    executor.close()


def test_examples_are_fetched_when_first_asked_about_and_let_go_for_shards(oracles):
    _, elsewhere, parts = oracles
    executor = Threads(1)
    oracle, w = spread_over(elsewhere, executor), np.zeros(elsewhere.n_columns)
    assert sum(part.fetched[0] for part in parts) == 0
    for _ in range(2):
        oracle.planes(w, np.array([25]))
    assert [part.fetched[0] for part in parts] == [1, 0, 1, 1]
    assert oracle.spread() == (elsewhere, executor)
    oracle.planes(w, np.array([25]))
    assert [part.fetched[0] for part in parts] == [2, 0, 2, 2]
