"""How long rounds become: near the length that takes the least time, within limits, and the same after a resume."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.driver import run
from maxmargin.solvers.round_length import RoundLength
from reference.problems import random_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# seconds of a visit and of each entry of its planes, of an exchange and of each entry of its changes
COSTS = (1e-6, 2.5e-9, 2e-3, 2.5e-8)
MANY = 10**6  # blocks, columns


def settled(plane_entries, entries, v0, certificates=30, blocks=MANY):
    """The length where ``1 / (1 + v / v0)`` of the gain is left of a round of v visits."""
    length = RoundLength.of(None, blocks, MANY)
    for _ in range(certificates):
        for _ in range(3):
            length.note(2.0, 2.0 / (1.0 + length.visits / v0), entries)
        length.adjust(plane_entries)
    return length.visits


@pytest.mark.parametrize("plane_entries", [3e4, 1e5, 3e5])
@pytest.mark.parametrize("entries", [0, 10_000, 100_000])
@pytest.mark.parametrize("v0", [100, 400, 2000])
def test_the_length_takes_the_least_time_for_a_given_gain(plane_entries, entries, v0):
    """Beside the times of all lengths that the rule may choose."""
    visit, per_entry, exchange, per_change = COSTS
    v = np.arange(8, 257)
    left = 1.0 / (1.0 + v / v0)
    seconds = (v * (visit + per_entry * plane_entries) + exchange + per_change * entries) / (v * left)
    found = settled(plane_entries, entries, v0)
    near = (v <= 64) | (left >= 0.9)  # never longer where more than a tenth is lost
    assert seconds[v == found] <= 1.05 * seconds[near].min()


def test_limits():
    assert settled(10, 10**7, 1e9) == 256  # exchanges cost much, nothing is lost
    assert settled(10**4, 10**7, 1e9, blocks=1600) == 200  # an eighth of a shard
    assert settled(10, 10**7, 1e9, blocks=160) == 243  # or what takes an eighth of an exchange
    assert settled(10**9, 0, 10) == 8  # visits cost much, much is lost
    assert settled(10, 10**7, 200) == 64  # more than a tenth is lost: no longer rounds, however much exchanges cost
    assert RoundLength.of(None, 3, MANY).visits == 8 and RoundLength.of(None, 100, MANY).visits == 12
    assert RoundLength.of(None, 100, 3).visits == 64  # planes of three entries are soon visited
    assert settled(10, 10**7, 1e9, certificates=1) == 128  # twice as long at once


def test_a_given_length_stays():
    length = RoundLength.of(17, MANY, MANY)
    length.note(1.0, 1.0, 10**6)
    length.adjust(1.0)
    length.resume(100)
    assert length.visits == 17


def test_without_gain_the_length_stays():
    length = RoundLength.of(None, MANY, MANY)
    length.adjust(1.0)
    length.note(0.0, 0.0, 0)
    length.adjust(1.0)
    assert length.visits == 64


def test_rounds_of_a_fit_become_longer_and_a_resumed_run_goes_on_with_them():
    X, Y = random_chains(1200, 60, 3, lengths=(1, 6), seed=0)  # whose features are seldom the same
    problem = RescaledHinge().problem(mm.Chain().bind([x * (x > 1.5) for x in X], Y), C=0.1)
    engine = mm.Sharded(shards=2).engine(problem, 0)
    first = run(engine, problem, tol=0.0, max_passes=8)
    assert first.state.length.visits > 64
    resumed = engine.from_arrays(problem, first.state.to_arrays())
    assert resumed.length.visits == first.state.length.visits
    forged = first.state.to_arrays()
    forged["sharded"][2] = 2**40
    assert engine.from_arrays(problem, forged).length.visits <= 256
