"""The Bayesian network model against enumeration of all values of the unknown variables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.batches import Guarded

from maxmargin.inference.junction_tree import TooWide
from maxmargin.models.bayes_net import BayesNet
from maxmargin.models.bayes_net_scheme import coding_sets
from maxmargin.models.labels import Labels
from maxmargin.models.network import Network
from maxmargin.oracles.oracle import ModelOracle


def random_network(rng, n, most_parents=3):
    """A network of n variables with one to three states, edges from earlier to later ones in a random order."""
    order = rng.permutation(n)
    states = [Labels(list("abc"[: rng.integers(1, 4)])) for _ in range(n)]
    parents = [()] * n
    for k, v in enumerate(order):
        parents[v] = tuple(int(u) for u in rng.permutation(order[:k])[: rng.integers(0, most_parents + 1)])
    return Network(tuple(f"v{i}" for i in range(n)), tuple(states), tuple(parents))


def joint(network, w, codes):
    """ln P of a full row, family by family."""
    groups = network.groups(w)
    return sum(
        float(groups[name][(*(codes[u] for u in network.parents[v]), codes[v])]) for v, name in enumerate(network.names)
    )


def completions(network, codes, unknown):
    """All full rows with the given values elsewhere."""
    for values in product(*(range(network.cardinalities[u]) for u in unknown)):
        row = list(codes)
        for u, x in zip(unknown, values, strict=True):
            row[u] = x
        yield tuple(row)


@st.composite
def cases(draw):
    """A network with weights, rows with missing values, hidden sets that differ and may be empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    network = random_network(rng, draw(st.integers(1, 5)))
    n = draw(st.integers(1, 4))
    codes = np.array([[rng.integers(K) for K in network.cardinalities] for _ in range(n)], np.int32)
    hidden = rng.random(codes.shape) < draw(st.sampled_from([0.2, 0.5, 1.0]))
    codes[(rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.4]))) & ~hidden] = -1
    w = network.tables.normalised(rng.normal(size=network.n_weights))
    return network, codes, hidden, w


def plane(bound, w, example, cost_weight=1.0):
    guarded = Guarded()
    iwork, fwork, output = guarded.workspace(bound)
    index, value, result = np.empty(bound.room, np.int32), np.empty(bound.room), np.zeros(4)
    made = bound.plane(
        bound.meta, bound.ints, bound.floats, w, example, cost_weight, 1, iwork, fwork, output, index, value, result
    )
    guarded.check()
    assert made == 1 and not iwork.any()
    a = np.zeros(len(w))
    a[index[: int(result[3])]] = value[: int(result[3])]
    assert len(set(index[: int(result[3])])) == int(result[3])
    return result, a, output[: bound.output_at[example + 1] - bound.output_at[example]]


@settings(deadline=None, max_examples=150)
@given(cases())
def test_losses_and_planes_are_those_of_enumeration(case):
    """With all values there, loss = max over hidden values of margin cost + ln P - ln P of the truth."""
    network, codes, hidden, w = case
    codes = np.where(codes < 0, 0, codes)
    bound = BayesNet(network, margin=0.7).bind(codes, hidden)
    for i, row in enumerate(codes):
        unknown = np.flatnonzero(hidden[i])
        truth = joint(network, w, row)
        values = {
            full: joint(network, w, full) - truth + 0.7 * sum(full[u] != row[u] for u in unknown)
            for full in completions(network, row, unknown)
        }
        result, a, output = plane(bound, w, i)
        assert result[0] == pytest.approx(max(values.values()), abs=1e-9) and result[1] == result[0]
        found = list(row)
        for u, x in zip(unknown, output, strict=True):
            found[u] = int(x)
        assert values[tuple(found)] == pytest.approx(result[0], abs=1e-9)
        assert result[2] == pytest.approx(0.7 * sum(found[u] != row[u] for u in unknown))
        assert result[2] - w @ a == pytest.approx(result[0], abs=1e-9)
        expected = network.counts(row[None]) - network.counts(np.array([found]))
        np.testing.assert_array_equal(a, expected)


@settings(deadline=None, max_examples=150)
@given(cases())
def test_posteriors_and_likelihoods_are_sums(case):
    network, codes, hidden, w = case
    bound = BayesNet(network).bind(codes, hidden, labels=False, all_missing=True)
    values, posteriors = bound.sums(w)
    for i, row in enumerate(codes):
        unknown = [v for v in range(len(network)) if hidden[i, v] or row[v] < 0]
        weights = {full: np.exp(joint(network, w, full)) for full in completions(network, row, unknown)}
        total = sum(weights.values())
        assert values[i] == pytest.approx(np.log(total), abs=1e-9)
        at = int((bound.pattern[:i] == bound.pattern[i]).sum())
        for v, table in posteriors[bound.pattern[i]].items():
            for x in range(network.cardinalities[v]):
                mass = sum(p for full, p in weights.items() if full[v] == x)
                assert table[at, x] == pytest.approx(mass / total, abs=1e-9)
        assert set(np.flatnonzero(hidden[i])) <= set(posteriors[bound.pattern[i]])


@settings(deadline=None, max_examples=150)
@given(cases())
def test_missing_values_are_maximised_where_they_matter(case):
    """The decoded hidden values, completed as well as can be, are as probable as any: with what is below summed out."""
    network, codes, hidden, w = case
    bound = BayesNet(network).bind(codes, hidden, labels=False)
    needed = below(network, codes, hidden)
    for i, output in enumerate(bound.argmax(w).outputs):
        row = np.where(hidden[i], -1, codes[i])
        rest = [v for v in range(len(network)) if row[v] < 0 and needed[i][v]]
        scores = {full: partial_joint(network, w, full, needed[i]) for full in completions(network, row, rest)}
        own = bound.unknown[bound.pattern[i]]
        assert set(np.flatnonzero(hidden[i])) <= set(own) <= set(rest)
        mine = max(s for full, s in scores.items() if all(full[v] == x for v, x in zip(own, output, strict=True)))
        assert mine == pytest.approx(max(scores.values()), abs=1e-9)


def below(network, codes, hidden):
    """For each row which variables are known, hidden, or above one that is."""
    answers = []
    for row, own in zip(codes, hidden, strict=True):
        wanted = {v for v in range(len(network)) if own[v] or row[v] >= 0}
        while True:
            more = {u for v in wanted for u in network.parents[v]} - wanted
            if not more:
                break
            wanted |= more
        answers.append([v in wanted for v in range(len(network))])
    return answers


def partial_joint(network, w, codes, needed):
    groups = network.groups(w)
    return sum(
        float(groups[name][(*(codes[u] for u in network.parents[v]), codes[v])])
        for v, name in enumerate(network.names)
        if needed[v]
    )


@settings(deadline=None, max_examples=60)
@given(cases())
def test_losses_with_missing_values_are_not_negative_and_linear(case):
    """The completed truth is one of the outputs, so losses are >= 0 and planes fit them at any weights."""
    network, codes, hidden, w = case
    bound = BayesNet(network).bind(codes, hidden, start=w)
    planes = ModelOracle(bound).planes(w, np.arange(len(codes)))
    assert (planes.bound >= -1e-12).all()
    np.testing.assert_allclose(planes.violations(w), planes.bound, atol=1e-9)
    assert (bound.counts() == network.counts(codes)).all()


def test_costs_by_name_matrix_and_number():
    network = Network.of([("a", "b")], {"a": [0, 1], "b": [0, 1, 2]})
    far = np.abs(np.subtract.outer(range(3), range(3))).astype(float)
    model = BayesNet(network, cost={"a": 5.0, "b": far}, margin=2.0)
    bound = model.bind(np.array([[0, 0]]), [(0, 1)])
    w = np.zeros(network.n_weights)
    result, _, output = plane(bound, w, 0)
    assert result[0] == 2.0 * (5.0 + 2.0) and output.tolist() == [1, 2]
    from maxmargin.costs import HammingCost

    half = BayesNet(network, cost=HammingCost(normalize=True)).bind(np.array([[0, 0]]), [(0, 1)])
    assert plane(half, w, 0)[0][0] == 1.0
    with pytest.raises(ValueError, match="cost of 'a' cannot be used: the cost matrix has 3 rows"):
        BayesNet(network, cost=far).bind(np.array([[0, 0]]), [(0,)])


def grid_network(n):
    """A square of binary variables, each with its left and upper neighbour as parents, and a child of all corners."""
    name = [[f"x{i}{j}" for j in range(n)] for i in range(n)]
    edges = [(name[i][j], name[i][j + 1]) for i in range(n) for j in range(n - 1)]
    edges += [(name[i][j], name[i + 1][j]) for i in range(n - 1) for j in range(n)]
    return Network.of(edges, {v: [0, 1] for row in name for v in row})


def test_too_wide_trees_are_refused_with_numbers_or_bounded():
    network = grid_network(6)
    codes = np.zeros((1, 36), np.int32)
    everything = [tuple(range(36))]
    with pytest.raises(TooWide, match=r"example 0, with 36 unknown variables \(x00, .*limit is 800 cells"):
        BayesNet(network, max_cells=800).bind(codes, everything)
    w = network.tables.normalised(np.random.default_rng(0).normal(size=network.n_weights))
    exact = BayesNet(network).bind(codes, everything)
    rough = BayesNet(network, max_cells=800, inference="bounded").bind(codes, everything)
    assert "exact" in exact.capabilities and "exact" not in rough.capabilities
    best, found = plane(exact, w, 0), plane(rough, w, 0)
    assert found[0][0] <= best[0][0] + 1e-9 <= found[0][1] + 2e-9
    assert found[0][2] - w @ found[1] == pytest.approx(found[0][0])


def test_coding_sets_cover_the_graph_and_do_not_touch():
    rng = np.random.default_rng(5)
    for _ in range(20):
        network = random_network(rng, 8)
        sets = coding_sets(network)
        assert sorted(v for own in sets for v in own) == list(range(8))
        for own in sets:
            for v in range(8):
                assert len(set(network.family(v)) & set(own)) <= 1


def test_patterns_share_trees():
    network = Network.of([("c", "a"), ("c", "b")], {"c": [0, 1], "a": [0, 1], "b": [0, 1]})
    codes = np.zeros((1000, 3), np.int32)
    codes[::2, 2] = -1
    bound = BayesNet(network).bind(codes, [(0,)] * 1000)
    assert bound.unknown == [(0,), (0,)] and len(bound.meta) < 2100  # b is missing, and says nothing


@pytest.mark.parametrize(
    ("words", "codes", "hidden", "message"),
    [
        ({"margin": -1.0}, [[0, 0]], [(0,)], "margin must be"),
        ({"inference": "loopy"}, [[0, 0]], [(0,)], "inference must be one of exact, bounded"),
        ({}, [[0, 0, 0]], [(0,)], "one column for each of 2"),
        ({}, [[0, 2]], [(0,)], "example 0 has the code 2 for 'b'"),
        ({}, [[0, 0], [-1, 0]], [(0,), (0,)], "example 1 has no value for the hidden variable 'a'"),
        ({}, [[0, 0]], [], "1 rows and 0 hidden sets"),
    ],
    ids=["margin", "inference", "columns", "code", "truth", "sets"],
)
def test_bad_input(words, codes, hidden, message):
    network = Network.of([("a", "b")], {"a": [0, 1], "b": [0, 1]})
    with pytest.raises(ValueError, match=message):
        BayesNet(network, **words).bind(np.array(codes), hidden)
