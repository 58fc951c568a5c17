"""Junction trees against brute force over all labels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference.junction_tree import JunctionTree, TooWide


@st.composite
def problems(draw):
    """A few variables (some with one state), factors of up to four variables in any order, some -inf or tied."""
    states = draw(st.lists(st.integers(1, 3), max_size=6))
    scope = st.permutations(range(len(states))).flatmap(lambda p: st.integers(0, min(4, len(p))).map(lambda k: p[:k]))
    scopes = [tuple(s) for s in draw(st.lists(scope, max_size=6))]
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    tied, forbidden = draw(st.booleans()), draw(st.sampled_from([0.0, 0.3]))
    tables = []
    for s in scopes:
        table = rng.integers(-2, 3, [states[v] for v in s]) if tied else rng.normal(size=[states[v] for v in s])
        tables.append(np.where(rng.random(table.shape) < forbidden, -np.inf, table))
    return states, scopes, tables


def enumerate_all(states, scopes, tables):
    """Value of every labelling."""
    return {
        x: float(sum(t[tuple(x[v] for v in s)] for s, t in zip(scopes, tables, strict=True)))
        for x in product(*map(range, states))
    }


def flat(tables):
    return np.concatenate([np.zeros(0), *(t.ravel() for t in tables)])


@settings(deadline=None, max_examples=150)
@given(problems())
def test_argmax_is_the_best_of_all_labels(problem):
    states, scopes, tables = problem
    values = enumerate_all(*problem)
    value, labels = JunctionTree.build(states, scopes).argmax(flat(tables))
    best = max(values.values())
    assert value == pytest.approx(best, abs=1e-9)
    if best > -np.inf:
        assert values[tuple(labels)] == pytest.approx(best, abs=1e-9)


@settings(deadline=None, max_examples=150)
@given(problems())
def test_partition_and_marginals_are_sums_over_all_labels(problem):
    states, scopes, tables = problem
    weights = {x: np.exp(v) for x, v in enumerate_all(*problem).items()}
    total = sum(weights.values())
    tree = JunctionTree.build(states, scopes)
    log_partition, marginals = tree.marginals(flat(tables))
    with np.errstate(divide="ignore"):
        assert log_partition == pytest.approx(np.log(total), abs=1e-9)
    assert tree.log_partition(flat(tables)) == log_partition
    for v, K in enumerate(states):
        for k in range(K):
            mass = sum(p for x, p in weights.items() if x[v] == k)
            assert marginals[v][k] == pytest.approx(mass / total if total else 0.0, abs=1e-9)


@settings(deadline=None, max_examples=150)
@given(problems(), st.floats(0.2, 1.0))
def test_mini_buckets_are_upper_bounds_and_their_labels_lower(problem, share):
    states, scopes, tables = problem
    values = enumerate_all(*problem)
    exact = JunctionTree.build(states, scopes)
    try:
        tree = JunctionTree.build(states, scopes, max(1, int(share * exact.cells)), bounded=True)
    except TooWide:
        return
    value, labels = tree.argmax(flat(tables))
    assert value >= max(values.values()) - 1e-9
    assert values[tuple(labels)] <= max(values.values()) + 1e-9
    if tree.exact:
        assert value == pytest.approx(max(values.values()), abs=1e-9)
    else:
        with pytest.raises(ValueError, match="exact tree"):
            tree.log_partition(flat(tables))


def grid(n):
    across = [(i * n + j, i * n + j + 1) for i in range(n) for j in range(n - 1)]
    return across + [(i * n + j, i * n + j + n) for i in range(n - 1) for j in range(n)]


def test_widths_of_known_graphs():
    assert JunctionTree.build([2] * 50, [(i, i + 1) for i in range(49)]).width == 1
    assert JunctionTree.build([2] * 50, [(0, i) for i in range(1, 50)]).width == 1
    assert JunctionTree.build([2] * 9, [(i, (i + 1) % 9) for i in range(9)]).width == 2
    assert JunctionTree.build([2] * 5, [(a, b) for a in range(5) for b in range(a)]).width == 4
    assert JunctionTree.build([2] * 16, grid(4)).width == 4
    assert JunctionTree.build([3] * 4, []).width == 0


def test_a_wide_star_is_planned_quickly():
    tree = JunctionTree.build([2] * 2001, [(0, i) for i in range(1, 2001)])
    value, labels = tree.argmax(np.tile([0.0, 1.0, 0.5, 0.0], 2000))
    assert (value, labels.sum()) == (2000.0, 2000)  # hub 0, all others 1


def test_too_wide_is_refused_with_numbers():
    with pytest.raises(TooWide, match=r"clique of \d+ variables has [\d,]+ cells.*MiB.*limit is 1,000 cells") as error:
        JunctionTree.build([2] * 100, grid(10), max_cells=1000)
    assert error.value.cells > error.value.limit == 1000
    assert JunctionTree.build([2] * 100, grid(10), max_cells=10_000, bounded=True).cells <= 10_000


def test_no_variables():
    tree = JunctionTree.build([], [(), ()])
    value, labels = tree.argmax([1.0, 2.0])
    assert (value, len(labels), tree.log_partition([1.0, 2.0])) == (3.0, 0, 3.0)
    assert JunctionTree.build([], []).argmax([])[0] == 0.0
    assert JunctionTree.build([], []).marginals([]) == (0.0, [])


def test_ties_go_to_the_first_state():
    assert JunctionTree.build([3, 2], [(0, 1)]).argmax(np.zeros(6))[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("states", "scopes", "message"),
    [
        ([2, 0], [], "variable 1 has 0 states"),
        ([2, 2], [(0, 2)], r"factor 0 has the scope \(0, 2\)"),
        ([2, 2], [(0,), (1, 1)], "factor 1"),
    ],
)
def test_bad_graphs(states, scopes, message):
    with pytest.raises(ValueError, match=message):
        JunctionTree.build(states, scopes)


def test_tables_of_the_wrong_size():
    with pytest.raises(ValueError, match="6 cells together; got 5"):
        JunctionTree.build([2, 3], [(0, 1)]).argmax(np.zeros(5))
