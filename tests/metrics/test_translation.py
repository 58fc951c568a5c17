"""BLEU against sacrebleu where that is installed and against worked examples; NIST by hand; tests of significance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.metrics import bleu, bleu_of, bleu_statistics, nist, paired_randomisation, sentence_bleu
from maxmargin.metrics.translation import tokens_13a

WORDS = [
    "the",
    "cat",
    "sat",
    "3.5",
    "on-top",
    "Mr.",
    "it's",
    "&amp;",
    "&quot;x&quot;",
    "1,000",
    ".",
    ",",
    "(a)",
    "€5",
    "a/b",
]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(SENTENCES, SENTENCES, SENTENCES), min_size=1, max_size=5))
def test_bleu_is_that_of_sacrebleu(corpus):
    sacrebleu = pytest.importorskip("sacrebleu")
    hypotheses, *references = map(list, zip(*corpus, strict=True))
    for streams in (references[:1], references):
        theirs = sacrebleu.corpus_bleu(hypotheses, streams)
        ours = bleu(hypotheses, [list(row) for row in zip(*streams, strict=True)])
        assert ours.score == pytest.approx(theirs.score, abs=1e-9)
        assert ours.precisions == pytest.approx(theirs.precisions, abs=1e-9)
        assert (ours.hypothesis_length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)
        assert ours.brevity_penalty == pytest.approx(theirs.bp)
    one = sacrebleu.sentence_bleu(hypotheses[0], [references[0][0], references[1][0]])
    assert sentence_bleu(hypotheses[0], [references[0][0], references[1][0]]) == pytest.approx(one.score, abs=1e-9)


def test_bleu_of_a_worked_example():
    found = bleu(["the the the cat sat"], ["the cat sat on the mat"])
    # clipped: the 2, cat, sat of 5; "the cat", "cat sat" of 4; "the cat sat" of 3; none of 2, which counts a half
    assert found.precisions == pytest.approx((80.0, 50.0, 100 / 3, 25.0))
    assert found.brevity_penalty == pytest.approx(np.exp(1 - 6 / 5))
    assert found.score == pytest.approx(np.exp(-0.2) * (80 * 50 * 100 / 3 * 25) ** 0.25)
    assert bleu(["a b c d"], ["a b c d"]).score == pytest.approx(100.0)
    assert bleu([""], ["a"]).score == 0.0
    assert bleu([["a", "b"], ["c"]], [["a", "b"], ["c"]]).precisions[0] == 100.0
    none = bleu_of(bleu_statistics(["a b c d e"], ["a x c y e"])[0], smoothing="none")
    assert none.score == 0.0
    assert bleu_of(bleu_statistics(["a b"], ["a c"])[0], "add-one", True).precisions[:2] == (50.0, 50.0)


def test_words_are_split_as_by_the_official_script():
    assert tokens_13a('He said: "3.5%, 1,000-fold &quot;a.b&quot;"') == [
        "He", "said", ":", '"', "3.5", "%", ",", "1,000", "-", "fold", '"', "a", ".", "b", '"', '"',
    ]  # fmt: skip


def test_nist_by_hand():
    # references "a b a c": a twice in four words says log2(4 / 2) = 1, b log2(4) = 2, "a b" log2(2 / 1) = 1
    assert nist(["a b"], ["a b a c"], str.split) == pytest.approx(
        ((1 + 2) / 2 + 1 / 1) * np.exp(np.log(0.5) / np.log(1.5) ** 2 * np.log(0.5) ** 2)
    )
    assert nist(["a b a c"], ["a b a c"], str.split) == pytest.approx((1 + 2 + 1 + 2) / 4 + (1 + 1 + 0) / 3)
    assert nist([""], ["a"]) == 0.0


def test_equal_systems_do_not_differ_and_others_do():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 2, (60, 1)).astype(float)

    def total(statistics):
        return float(statistics[0])

    assert paired_randomisation(counts, counts, total, 200) == 1.0
    assert paired_randomisation(counts, counts + 1.0, total, 200) < 0.02
    # of n = 3 sentences all eight swaps are equally likely; only two of them differ as much as the original
    few = np.zeros((3, 1))
    assert paired_randomisation(few, few + 1.0, total, 4000) == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], []), "must agree"),
        ((["a"], [[]]), "example 0 has no reference"),
        (("a", ["a"]), "lists of sentences"),
        (([3], ["a"]), "a sentence is 3"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bleu(*arguments)
    with pytest.raises(ValueError, match="smoothing"):
        bleu_of(np.zeros(10), smoothing="some")
    with pytest.raises(ValueError, match="shapes"):
        paired_randomisation(np.zeros((2, 1)), np.zeros((3, 1)), float)
