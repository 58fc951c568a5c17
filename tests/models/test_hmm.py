"""The hidden Markov model: its kernel against enumeration, its counts against a loop, its refusals."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.costs import HammingCost
from maxmargin.models.hmm import HMM
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.testing.compiled_checks import _ask

RING = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def features(x, y, K, V):
    """Counts of initial state, transitions and emissions, by a loop; None is a missing observation."""
    initial, transition, emission = np.zeros(K), np.zeros((K, K)), np.zeros((K, V))
    for t, (symbol, state) in enumerate(zip(x, y, strict=True)):
        if t == 0:
            initial[state] += 1
        else:
            transition[y[t - 1], state] += 1
        if symbol is not None:
            emission[state, symbol] += 1
    return np.concatenate([initial, transition.ravel(), emission.ravel()])


def random_data(rng, n, K, V, longest, missing=0.2):
    X, Y = [], []
    for _ in range(n):
        T = int(rng.integers(0, longest + 1))
        X.append([None if rng.random() < missing else int(v) for v in rng.integers(0, V, T)])
        Y.append([int(k) for k in rng.integers(0, K, T)])
    return X, Y


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    K=st.integers(1, 3),
    V=st.integers(1, 3),
    cost_weight=st.sampled_from([0.0, 1.0, 0.3, -1.0]),
    ties=st.booleans(),
    normalize=st.booleans(),
    zeros=st.booleans(),
)
def test_kernel_is_enumeration(seed, K, V, cost_weight, ties, normalize, zeros):
    rng = np.random.default_rng(seed)
    X, Y = random_data(rng, 4, K, V, 5)
    bound = HMM(cost=HammingCost(normalize=normalize), classes=range(K), symbols=range(V)).bind(X, Y)
    w = rng.integers(-2, 1, bound.n_weights).astype(float) if ties else rng.normal(-1, 1, bound.n_weights)
    if zeros:  # impossible events
        w[rng.random(len(w)) < 0.2] = -np.inf
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        outputs = list(product(range(K), repeat=len(y)))
        phi = np.array([features(x, output, K, V) for output in outputs])
        with np.errstate(invalid="ignore"):
            scores = np.where(phi > 0, phi * w, 0.0).sum(axis=1)
        costs = np.array([np.sum(np.array(output) != y) / (max(len(y), 1) if normalize else 1) for output in outputs])
        best = (scores + cost_weight * costs).max()
        made, output, result, planes, iwork = _ask(bound, w, i, cost_weight, 1)
        if best == -np.inf:
            assert made == -1
            continue
        assert made == 1 and not iwork.any()
        found = outputs.index(tuple(output.tolist()))
        assert scores[found] + cost_weight * costs[found] == pytest.approx(best, abs=1e-9)
        index, value, b = planes[0]
        dense = np.zeros(len(w))
        np.add.at(dense, index, value)
        np.testing.assert_allclose(dense, features(x, y, K, V) - phi[found])
        assert b == pytest.approx(costs[found]) and len(set(index.tolist())) == len(index)
        truth = scores[outputs.index(tuple(y))]
        if np.isfinite(truth):
            assert result[0] == pytest.approx(best - truth, abs=1e-9) and result[1] == result[0]
        else:
            assert result[1] == np.inf


def test_separate_runs_of_errors_are_planes_of_their_own():
    rng = np.random.default_rng(0)
    X, Y = [rng.integers(0, 3, 30).tolist()], [rng.integers(0, 3, 30).tolist()]
    bound = HMM(cost=RING, classes=range(3), symbols=range(3)).bind(X, Y)
    w = rng.normal(size=bound.n_weights)
    made, output, _, planes, iwork = _ask(bound, w, 0, -1.0, 20)
    wrong = output != Y[0]
    runs = np.flatnonzero(np.diff(np.concatenate([[0], wrong])) == 1)
    assert made == 1 + len(runs) > 3 and not iwork.any()
    truth, expected = features(X[0], Y[0], 3, 3), []
    for begin in runs:
        end = begin
        part = list(Y[0])
        while end < 30 and wrong[end]:
            part[end] = int(output[end])
            end += 1
        expected.append((truth - features(X[0], part, 3, 3), sum(RING[a][b] for a, b in zip(Y[0], part, strict=True))))
    for (index, value, b), (dense, cost) in zip(planes[1:], expected, strict=True):
        mine = np.zeros(len(w))
        np.add.at(mine, index, value)
        np.testing.assert_allclose(mine, dense)
        assert b == pytest.approx(cost)
    assert sum(b for _, _, b in planes[1:]) == pytest.approx(planes[0][2])


def test_counts_are_those_of_a_loop():
    X, Y = random_data(np.random.default_rng(1), 12, 3, 4, 6)
    bound = HMM(classes=range(3), symbols=range(4)).bind(X, Y)
    np.testing.assert_array_equal(bound.counts(), sum(features(x, y, 3, 4) for x, y in zip(X, Y, strict=True)))


def test_batches_sums_and_decoding_work_unchanged():
    rng = np.random.default_rng(2)
    X, Y = random_data(rng, 20, 3, 4, 8)
    bound = HMM(cost=RING, classes=range(3), symbols=range(4)).bind(X, Y)
    w = rng.normal(-1, 1, bound.n_weights)
    oracle, everyone = ModelOracle(bound), np.arange(20)
    planes = oracle.planes(w, everyone)
    np.testing.assert_allclose(np.maximum(planes.violations(w), 0.0), np.maximum(planes.bound, 0.0), atol=1e-9)
    a, b, losses, _ = oracle.sum(w, everyone, np.ones(20))
    np.testing.assert_allclose(a, planes.to_csr().sum(axis=0))
    assert b == pytest.approx(planes.b.sum())
    np.testing.assert_allclose(losses, planes.bound)
    for x, codes in zip(X, bound.argmax(w).outputs, strict=True):
        best = max(product(range(3), repeat=len(x)), key=lambda y, x=x: features(x, y, 3, 4) @ w)
        assert features(x, best, 3, 4) @ w == pytest.approx(features(x, codes.tolist(), 3, 4) @ w)


def test_layout_names_and_joins_its_tables():
    layout = HMM().bind([["a", "b"], ["c"]], [["rain", "sun"], ["sun"]]).layout
    assert layout.states.classes == ["rain", "sun"] and layout.symbols.classes == ["a", "b", "c"]
    assert len(layout.tables) == 5 and layout.tables.names[1] == "transition from 'rain'"
    w = np.arange(float(layout.n_weights))
    groups = layout.groups(w)
    assert groups["transition"].shape == (2, 2) and groups["emission"].shape == (2, 3)
    np.testing.assert_array_equal(layout.join(**groups), w)
    with pytest.raises(ValueError, match="emission has shape"):
        layout.join(groups["initial"], groups["transition"], groups["emission"].T)
    assert layout.cost(["rain", "snow"], ["sun", "sun"]) == 2.0


def test_columns_of_symbols_and_strings_are_sequences():
    bound = HMM().bind([np.array([[1], [0]]), np.array([[1]])], [np.array([0, 1]), np.array([1])])
    assert bound.codes[1].tolist() == [1, 0, 1]
    assert HMM().bind(["ACGT", "CA"], ["0110", "01"]).layout.symbols.classes == ["A", "C", "G", "T"]


def test_unknown_symbols_are_errors_or_missing():
    first = HMM().bind([["a", "b"]], [[0, 1]])
    with pytest.raises(ValueError, match="example 0, position 1 has the symbol 'z'"):
        HMM().bind([["a", "z"]], layout=first.layout)
    open_ = HMM(unknown="missing").bind([["a", "b"]], [[0, 1]])
    assert HMM().bind([["a", "z", None, float("nan")]], layout=open_.layout).codes[1].tolist() == [0, -1, -1, -1]


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([["a"]], [["s", "t"]], "example 0 has 1 observations and 2 states"),
        ([["a"]], [["s"], ["t"]], "1 sequences and y has 2"),
        ([[]], [[]], "every sequence is empty"),
        ([[None]], [["s"]], "every observation is missing"),
        ([["a", "b"]], [["s", None]], "example 0 has a position without a state"),
        ([[0.25, 0.5]], [[0, 1]], "looks continuous"),
        ([np.zeros((3, 2))], [[0, 1, 0]], "example 0 of X has shape"),
    ],
    ids=["lengths", "numbers", "empty", "missing", "no state", "continuous", "two columns"],
)
def test_bad_data_is_refused(X, Y, message):
    with pytest.raises(ValueError, match=message):
        HMM().bind(X, Y)


def test_wrong_kinds_are_refused():
    with pytest.raises(TypeError, match="list of sequences"):
        HMM().bind("abc", ["a"])
    with pytest.raises(TypeError, match="For a single sequence"):
        HMM().bind([1, 2], [0, 1])
    with pytest.raises(TypeError, match="cannot be a symbol"):
        HMM(symbols=["a"]).bind([[["a"]]], [[0]])
    with pytest.raises(ValueError, match="pass Y"):
        HMM().bind([["a"]])
    with pytest.raises(ValueError, match="unknown must be"):
        HMM(unknown="guess").bind([["a"]], [[0]])
