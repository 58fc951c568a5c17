"""What residents take along to a worker: their own examples, arrays in common once, mapped arrays as names of files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.execution.executors import Threads
from maxmargin.execution.home import Home, pack
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.models.user import PythonModel
from maxmargin.persistence.mapped import create_array
from reference.own_models import Nearest
from reference.problems import random_chains

RNG = np.random.default_rng(1)


def sent(residents):
    """Bytes that each resident takes along, with those of its large arrays, and bytes that are sent in all."""
    packed, arrays = pack(dict(enumerate(residents)), pickle.Pickler)
    own = [len(data) + sum(len(arrays[key]) for key in set(keys)) for data, keys in packed.values()]
    different = {id(data): len(data) for data, _ in packed.values()}
    return own, sum(different.values()) + sum(map(len, arrays.values()))


def grids():
    X = [{"node": RNG.normal(size=(12, 12, 20)), "edge": np.ones((2, 12, 12, 1))} for _ in range(60)]
    return mm.Grid().bind(X, [RNG.integers(0, 2, (12, 12)) for _ in X])


BOUND = {
    "chain": lambda: mm.Chain().bind(*random_chains(4000, 4, 3, lengths=(5, 9), seed=0)),
    "grid": grids,
    "multiclass": lambda: mm.Multiclass().bind(RNG.normal(size=(4000, 50)), RNG.integers(0, 4, 4000)),
    "own model": lambda: PythonModel(Nearest()).bind(
        list(RNG.normal(size=(20_000, 3))), RNG.integers(0, 4, 20_000).tolist()
    ),
}


@pytest.mark.parametrize("model", BOUND)
def test_shards_travel_with_their_own_examples_alone(model):
    bound = BOUND[model]()
    whole = len(pickle.dumps(bound))
    problem = mm.MarginRescaling().problem(bound, C=1.0)
    problem = problem.with_oracles(lambda oracle: ShardedOracle(oracle, Threads(2)))
    shards = mm.Sharded(shards=4).engine(problem, 0).init(problem).shards
    own, everything = sent(shards)
    working_set = max(len(pickle.dumps(shard.state.working_set)) for shard in shards)
    assert max(own) < 0.3 * whole + working_set + 50_000
    assert everything < 1.1 * whole + 4 * (working_set + 50_000)


def test_what_residents_have_in_common_is_sent_once():
    data = RNG.normal(size=(50_000,))
    own, everything = sent([{"common": data, "own": k} for k in range(4)])
    assert min(own) > data.nbytes and everything < 1.1 * data.nbytes
    same = {"common": data}
    assert sent([same, same])[1] < 1.1 * data.nbytes


def test_mapped_arrays_travel_as_the_names_of_their_files(tmp_path):
    array = create_array(tmp_path / "numbers", np.float64, 100_000)
    array[:] = np.arange(100_000)
    assert sent([{"array": array}, {"array": array}])[1] < 2_000
    packed, arrays = pack({7: {"array": array, "part": array[3:]}}, pickle.Pickler)
    home, (data, keys) = Home({}), packed[7]
    assert pickle.loads(home.settle([7], keys, data, *(arrays[key] for key in keys))) is None
    got = home.residents[7]["array"]
    np.testing.assert_array_equal(got, array)
    np.testing.assert_array_equal(home.residents[7]["part"], array[3:])
    assert isinstance(got.base, np.memmap)
    (tmp_path / "numbers").unlink()
    assert "No such file" in pickle.loads(home.settle([8], [], packed[7][0]))
