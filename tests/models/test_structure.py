"""Trees against enumeration of all trees, information against closed forms."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.models.labels import Labels
from maxmargin.models.structure import chow_liu, information, learn_structure, naive_bayes, tree_augmented


def likelihood(rows, parents):
    """Largest ln P of the rows in a network: counts of families over counts of parents."""
    total = 0.0
    for v, above in enumerate(parents):
        families = Counter((*(row[u] for u in above), row[v]) for row in rows)
        before = Counter(tuple(row[u] for u in above) for row in rows)
        total += sum(n * math.log(n / before[key[:-1]]) for key, n in families.items())
    return total


def all_trees(n):
    """Parents in every tree over n variables, rooted at 0: one for each Pruefer sequence."""
    for sequence in itertools.product(range(n), repeat=n - 2):
        degree = [1 + sequence.count(v) for v in range(n)]
        neighbours = {v: set() for v in range(n)}
        for v in sequence:
            leaf = degree.index(1)
            neighbours[leaf].add(v), neighbours[v].add(leaf)
            degree[leaf], degree[v] = 0, degree[v] - 1
        a, b = (v for v in range(n) if degree[v] == 1)
        neighbours[a].add(b), neighbours[b].add(a)
        parents, stack = {0: ()}, [0]
        while stack:
            u = stack.pop()
            for v in neighbours[u] - set(parents):
                parents[v] = (u,)
                stack.append(v)
        yield tuple(parents[v] for v in range(n))


def test_there_are_as_many_trees_as_cayley_says():
    assert len(set(all_trees(4))) == 16 and len(set(all_trees(5))) == 125


def dependent_codes(seed, n, sizes):
    """Variables that each follow an earlier one, more or less."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, len(sizes)), int)
    for v, size in enumerate(sizes):
        follow = codes[:, rng.integers(v)] if v else np.zeros(n, int)
        codes[:, v] = np.where(rng.random(n) < rng.random(), follow % size, rng.integers(0, size, n))
    return codes[:, rng.permutation(len(sizes))] % np.array(sizes)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 5))
def test_chow_liu_has_the_largest_likelihood_of_all_trees(seed, v):
    sizes = [2, 3, 2, 4, 3][:v]
    codes = dependent_codes(seed, 60, sizes)
    rows = codes.tolist()
    best = max(likelihood(rows, parents) for parents in all_trees(v))
    assert likelihood(rows, chow_liu(codes, sizes)) == pytest.approx(best, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_tree_augmented_naive_bayes_has_the_largest_likelihood_of_its_kind(seed, target):
    sizes = [2, 3, 2, 3, 2]
    codes = dependent_codes(seed, 60, sizes)
    rows, others = codes.tolist(), [v for v in range(5) if v != target]
    values = []
    for tree in all_trees(4):
        parents = [()] * 5
        for v, above in zip(others, tree, strict=True):
            parents[v] = (target, *(others[u] for u in above))
        values.append(likelihood(rows, parents))
    found = tree_augmented(codes, sizes, target)
    assert likelihood(rows, found) == pytest.approx(max(values), abs=1e-8)
    assert found[target] == () and all(above[0] == target and len(above) <= 2 for v, above in enumerate(found) if above)


def test_information_of_copies_coins_and_parity():
    a, b = np.array(list(itertools.product(range(2), range(2)))).T
    codes = np.stack([a, b, a ^ b, a, np.zeros(4, int)], axis=1)
    value = information(codes, [2, 2, 2, 2, 1])
    assert value[0, 3] == pytest.approx(math.log(2)) and value[3, 0] == value[0, 3]
    assert value[0, 1] == value[0, 2] == value[0, 4] == value[0, 0] == 0.0
    value = information(codes, [2, 2, 2, 2, 1], given=2)
    assert value[0, 1] == pytest.approx(math.log(2))  # parity makes two coins one
    assert not value[2].any() and not value[:, 2].any()


def test_information_equals_the_definition():
    codes = dependent_codes(3, 200, [3, 4, 2])
    p = np.zeros((3, 4, 2))
    np.add.at(p, tuple(codes.T), 1 / 200)
    ab, a, b = p.sum(2), p.sum((1, 2)), p.sum((0, 2))
    outer = np.outer(a, b)
    expected = (ab[ab > 0] * np.log(ab[ab > 0] / outer[ab > 0])).sum()
    assert information(codes, [3, 4, 2])[0, 1] == pytest.approx(expected, abs=1e-10)
    c, ac, bc = p.sum((0, 1)), p.sum(1), p.sum(0)
    ratio = p * c / np.maximum(ac[:, None] * bc[None], 1e-300)
    expected = (p[p > 0] * np.log(ratio[p > 0])).sum()
    assert information(codes, [3, 4, 2], given=2)[0, 1] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("given", [None, 3])
def test_missing_values_are_left_out_pair_by_pair(given):
    rng = np.random.default_rng(5)
    sizes = [2, 3, 4, 2]
    codes = dependent_codes(5, 300, sizes)
    codes[rng.random(codes.shape) < 0.2] = -1
    value = information(codes, sizes, given)
    for a, b in itertools.combinations(range(3), 2):
        there = (codes[:, [a, b]] >= 0).all(axis=1)
        there &= (codes[:, given] >= 0) if given is not None else True
        assert value[a, b] == pytest.approx(information(codes[there], sizes, given)[a, b], abs=1e-12)


def test_ties_go_to_the_first_variable_and_no_information_to_no_edge():
    coin = np.array([0, 1, 0, 1])
    alike = np.stack([coin] * 4, axis=1)
    assert chow_liu(alike, [2] * 4) == ((), (0,), (0,), (0,))
    assert chow_liu(alike, [2] * 4, root=2) == ((2,), (2,), (), (2,))
    apart = np.array(list(itertools.product(range(2), repeat=3)))
    assert chow_liu(apart, [2] * 3) == ((), (), ())
    assert tree_augmented(apart, [2] * 3, 1) == ((1,), (), (1,))
    assert chow_liu(np.empty((0, 3), int), [2] * 3) == ((), (), ())
    assert chow_liu(np.zeros((3, 1), int), [1]) == ((),)


def test_by_name():
    codes = dependent_codes(1, 100, [2, 2, 2])
    states = [Labels(["no", "yes"])] * 3
    net = learn_structure("naive", ["a", "b", "c"], states, codes, "b")
    assert net.edges == [("b", "a"), ("b", "c")] and naive_bayes(3, 1) == net.parents
    assert learn_structure("tan", "abc", states, codes, "a").parents == tree_augmented(codes, [2, 2, 2], 0)
    assert learn_structure("chow-liu", "abc", states, codes).parents == chow_liu(codes, [2, 2, 2])
    with pytest.raises(ValueError, match="naive, tan, chow-liu"):
        learn_structure("tree", "abc", states, codes)
    with pytest.raises(ValueError, match="needs one target"):
        learn_structure("tan", "abc", states, codes)
    with pytest.raises(ValueError, match="target 'd'"):
        learn_structure("tan", "abc", states, codes, "d")
    with pytest.raises(ValueError, match="example 7 has the code 5 in variable 2"):
        broken = codes.copy()
        broken[7, 2] = 5
        learn_structure("tan", "abc", states, broken, "a")
    with pytest.raises(ValueError, match="whole numbers"):
        chow_liu(codes * 0.5, [2, 2, 2])
