"""The adaptation experiment on made-up sentences: pooled counts by hand, word classes, and what is printed."""

import lzma

import numpy as np
import pytest


@pytest.fixture(scope="module")
def task(adaptation):
    """The same two states in both domains, but one word belongs to the other state in the target."""
    rng = np.random.default_rng(0)

    def sentences(n, domain):
        X, y = [], []
        for _ in range(n):
            states = rng.integers(0, 2, 8)
            words = [["a", "b"][s] if rng.random() < 0.5 else ["c", "d"][s ^ domain] for s in states]
            X.append(words)
            y.append([["N", "V"][s] for s in states])
        return adaptation.Data(X, y)

    return adaptation.Task(sentences(80, 0), sentences(60, 1), sentences(60, 1), ["N", "V"], list("abcd"))


def test_pooled_counts_are_a_weighted_sum(adaptation, task):
    source = adaptation.hmm(task, C=0.0, reference="smoothed", smoothing=0.01).fit(*task.source)
    few = task.target.take(np.arange(5))
    pooled = adaptation.Pooled(task, source, 10.0).fit(*few)

    def count(data, state, word):
        return sum((s, w) == (state, word) for x, y in zip(*data, strict=True) for w, s in zip(x, y, strict=True))

    row = [count(task.source, "V", w) + 10 * count(few, "V", w) + 0.01 for w in "abcd"]
    np.testing.assert_allclose(pooled.emission_[1], np.array(row) / sum(row), atol=1e-9)


def test_a_run_adapts(adaptation, task, capsys):
    source = adaptation.hmm(task, C=0.0, reference="smoothed", smoothing=0.01).fit(*task.source)
    runs = [adaptation.run(task, source, 20, seed) for seed in (0, 1)]
    for scores, facts in runs:
        assert scores["pooled"] > scores["source"] + 10  # half of the words have changed sides
        assert facts["multiple"] in adaptation.MULTIPLES and facts["C n"] in adaptation.TOTALS and facts["gap"] < 0.05
    adaptation.print_size(20, {n: np.array([s[n] for s, _ in runs]) for n in adaptation.MODELS}, [f for _, f in runs])
    printed = capsys.readouterr().out
    assert f"{np.mean([s['margin'] for s, _ in runs]):.2f}" in printed and "2 seeds" in printed


def test_words_and_their_classes(adaptation):
    known = {"the", "cells"}
    words = {"the": "the", "cells": "cells", "12.5": "<number>", "binding": "<-ing>", "Binding": "<C-ing>"}
    words |= {"NF-KAPPA": "<upper>", "il2": "<digit>", "b-cell": "<hyphen>", "gene": "<>", "Gene": "<C>"}
    assert {word: adaptation.symbol(word, known) for word in words} == words


def test_reading(adaptation, tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="GENIA treebank"):
        adaptation.read_genia("train")
    (tmp_path / "genia_pos").mkdir()
    text = "#doc 1\nThe\tDT\ncell\tNN\n\n\n#doc 2\n#1\tCD\n"
    (tmp_path / "genia_pos" / "train.tsv.xz").write_bytes(lzma.compress(text.encode()))
    assert adaptation.read_genia("train") == [[("The", "DT"), ("cell", "NN")], [("#1", "CD")]]
