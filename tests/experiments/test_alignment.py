"""The alignment experiment: its heuristics by hand, and the whole on a made bitext."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from maxmargin.datasets import Alignments, Links
from maxmargin.features.word_models import learn


@pytest.fixture(scope="module")
def script(experiment):
    return experiment("alignment", "hansards")


def made(n, seed):
    """Sentences whose words are translated one by one, some neighbours in reverse, and their links."""
    rng, pairs, links = np.random.default_rng(seed), [], []
    for _ in range(n):
        words = rng.integers(0, 30, rng.integers(3, 8)).tolist()
        order = list(range(len(words)))
        if rng.random() < 0.5:
            order[:2] = order[1::-1]
        pairs.append(([f"{word}left" for word in words], [f"{words[i]}right" for i in order]))
        links.append(Links(frozenset((i, j) for j, i in enumerate(order))))
    return pairs, links


def test_words_that_choose_each_other_are_linked(script):
    pairs, links = made(200, 0)
    for models in (learn(pairs), learn(pairs, agree=False)):
        found = script.agreed(models, pairs, "two")
        right = sum(len(a & b.sure) for a, b in zip(found, links, strict=True))
        assert right > 0.9 * sum(map(len, found)) and right > 0.5 * sum(len(b.sure) for b in links)


def test_links_grow_from_those_of_both_directions(script):
    forward, reverse = {(0, 0), (1, 1), (2, 2), (4, 0)}, {(0, 0), (1, 2), (3, 3)}
    # (1, 1), then (2, 2), (1, 2) and (3, 3) touch what is linked and have a word without a link; (4, 0) touches nothing
    assert script.grown(forward, reverse) == {(0, 0), (1, 1), (2, 2), (1, 2), (3, 3)}


def test_the_experiment_runs_to_its_end(script, monkeypatch, capsys):
    pairs, links = made(60, 1)
    data = Alignments(pairs[:30], links[:30], pairs[30:])
    monkeypatch.setattr(script, "load_hansards", lambda: data)
    monkeypatch.setattr(script.shutil, "which", lambda name, path: None)
    for name, value in (("N_TRAIN", 16), ("LETTERS", (0, 2)), ("GRID", [(1.0, 3.0)])):
        monkeypatch.setattr(script, name, value)
    monkeypatch.setattr(sys, "argv", ["hansards.py", "--splits", "2", "--bitext", "hansards"])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("ours, 1 link a word "))
    assert float(row[47:].split()[2]) < 20.0
