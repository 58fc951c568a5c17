"""Best paths and best outputs of lattices against looking at all paths, ties and parallel paths included."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.inference import best_path, k_best_paths
from reference.lattices import VOCABULARY, all_paths, random_arcs


def graphs(count, seed):
    """Graphs with scores that tie often, and such that never do."""
    rng = np.random.default_rng(seed)
    for case in range(count):
        n, tails, heads = random_arcs(rng)
        whole = rng.integers(-2, 3, len(tails)).astype(float)
        scores = whole if case % 2 else rng.normal(size=len(tails))
        if case % 5 == 0:
            scores[rng.integers(len(scores))] = -np.inf
        words = rng.choice(VOCABULARY, len(tails)).tolist()
        yield tails, heads, scores, words, all_paths(n, tails, heads)


def test_the_best_path_is_that_of_brute_force():
    for tails, heads, scores, _, paths in graphs(2000, 0):
        best = max(scores[path].sum() for path in paths)
        if best == -np.inf:
            with pytest.raises(ValueError, match="no allowed path"):
                best_path(tails, heads, scores)
            continue
        found = best_path(tails, heads, scores)
        assert found.arcs.tolist() in paths
        assert found.score == pytest.approx(best, abs=1e-12)
        assert scores[found.arcs].sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("labelled", [True, False])
def test_the_k_best_are_those_of_brute_force(labelled):
    rng = np.random.default_rng(1)
    for tails, heads, scores, words, paths in graphs(1500, 2):
        best: dict[object, float] = {}
        for path in paths:
            output = " ".join(words[e] for e in path).split() if labelled else path
            best[tuple(output)] = max(best.get(tuple(output), -np.inf), scores[path].sum())
        expected = sorted((score for score in best.values() if score > -np.inf), reverse=True)
        k = int(rng.integers(1, 12))
        found = k_best_paths(tails, heads, scores, k, labels=words if labelled else None)
        np.testing.assert_allclose([path.score for path in found], expected[:k], atol=1e-12)
        outputs = []
        for path in found:
            arcs = path.arcs.tolist()
            assert arcs in paths
            assert scores[arcs].sum() == pytest.approx(path.score, abs=1e-12)
            outputs.append(tuple(" ".join(words[e] for e in arcs).split() if labelled else arcs))
        assert len(set(outputs)) == len(outputs)


def test_more_outputs_are_the_same_and_further_ones():
    """Also where many have the same score: whoever asks for more has seen the first."""
    for tails, heads, scores, words, _ in graphs(200, 5):
        for labels in (words, None):
            rows = [k_best_paths(tails, heads, np.round(scores), k, labels=labels) for k in (1, 2, 3, 5, 9, 40)]
            for few in rows:
                expected = [path.arcs.tolist() for path in rows[-1][: len(few)]]
                assert [path.arcs.tolist() for path in few] == expected


def test_many_derivations_of_few_outputs():
    """A ladder of 2^30 paths that say three outputs in all."""
    tails = np.repeat(np.arange(30), 2)
    words = ["a", "a"] * 29 + ["b", "c"]
    scores = np.tile([0.0, -1.0], 30)
    found = k_best_paths(tails, tails + 1, scores, 100, labels=words)
    assert [path.score for path in found] == [0.0, -1.0]


def test_ties_that_rounding_hides_do_not_make_the_search_go_wide():
    """2^60 outputs whose scores are the same but for rounding: 100 of them are found at once."""
    rng = np.random.default_rng(0)
    tails = np.repeat(np.arange(60), 2)
    scores = np.repeat(rng.choice([0.1, 0.2, 0.3, -0.7], 60), 2)
    found = k_best_paths(tails, tails + 1, scores, 100, labels=["a", "b"] * 60)
    np.testing.assert_allclose([path.score for path in found], scores[::2].sum(), rtol=1e-12)
    assert len({tuple(path.arcs.tolist()) for path in found}) == 100


def test_words_are_compared_across_arcs():
    """ "a b" and "c", "a" and "b c": one output."""
    tails, heads = [0, 0, 1, 2, 0], [1, 2, 3, 3, 3]
    found = k_best_paths(tails, heads, [1.0, 2.0, 1.0, 1.0, 9.0], 5, labels=["a b", "a", "c", "b c", ["a", "b"]])
    assert [(path.arcs.tolist(), path.score) for path in found] == [([4], 9.0), ([1, 3], 3.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0], [1.0]), "arc 0 goes from 0 to 0"),
        (([0, 1], [1], [1.0]), "one number for each arc"),
        (([], [], []), "no arcs"),
        (([0], [1], [np.nan]), "nan"),
        (([0.5], [1], [1.0]), "whole numbers"),
        (([0], [2**31], [1.0]), "heads"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_path(*arguments)


@pytest.mark.parametrize("k", [0, 1.5, -1])
def test_k_is_checked(k):
    with pytest.raises(ValueError, match="k is"):
        k_best_paths([0], [1], [1.0], k)


def test_labels_are_counted():
    with pytest.raises(ValueError, match="2 arcs"):
        k_best_paths([0, 0], [1, 1], [1.0, 2.0], 2, labels=["a"])
