"""Spans and their scores against the rules of the script conlleval, stated here a second time.

conlleval reads both columns token by token. Whether a span ends before a token, or starts with it, depends on two
neighbouring labels alone: a table of their prefixes, or a change of type. ``E`` is the prefix of the IOE schemes.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from typer.testing import CliRunner

from maxmargin.cli.main import app
from maxmargin.datasets import data_home, load_conll2000
from maxmargin.metrics import span_report, spans, token_accuracy

# prefixes of a label and of the next one
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
STARTS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
BIO, IOE = ("O", "B", "I"), ("O", "I", "E")


def parts(label):
    prefix, _, type_ = label.partition("-")
    return prefix, type_


def ends(label, following):
    (prefix, type_), (next_prefix, next_type) = parts(label), parts(following)
    return prefix + next_prefix in ENDS or (prefix != "O" and type_ != next_type)


def starts(before, label):
    (previous, previous_type), (prefix, type_) = parts(before), parts(label)
    return previous + prefix in STARTS or (prefix != "O" and previous_type != type_)


def conlleval(true, predicted):
    """Counters of true, predicted and right spans by type, and the number of right tokens, in one pass."""
    n_true, n_predicted, n_right = Counter(), Counter(), Counter()
    right_tokens, agreeing = 0, False  # agreeing: both columns are in a span that began at one token with one type
    last_true = last_predicted = "O"
    for pair in (p for a, b in zip(true, predicted, strict=True) for p in [*zip(a, b, strict=True), None]):
        now_true, now_predicted = ("O", "O") if pair is None else pair  # a blank line is outside of everything
        if agreeing:
            over = ends(last_true, now_true), ends(last_predicted, now_predicted)
            if all(over):
                n_right[parts(last_true)[1]] += 1
            if any(over) or parts(now_true)[1] != parts(now_predicted)[1]:
                agreeing = False
        begun = starts(last_true, now_true), starts(last_predicted, now_predicted)
        agreeing |= all(begun) and parts(now_true)[1] == parts(now_predicted)[1]
        n_true[parts(now_true)[1]] += begun[0]
        n_predicted[parts(now_predicted)[1]] += begun[1]
        right_tokens += pair is not None and now_true == now_predicted
        last_true, last_predicted = now_true, now_predicted
    return n_true, n_predicted, n_right, right_tokens


def random_pairs(prefixes, n, seed):
    """Sentences of any labels whatever, ill-formed ones too, and predictions that agree with them in part."""
    rng = random.Random(seed)
    labels = ["O", *(f"{p}-{t}" for p in prefixes if p != "O" for t in ("NP", "VP", "NP-SBJ"))]
    true = [[rng.choice(labels) for _ in range(rng.randint(1, 15))] for _ in range(n)]
    return true, [[label if rng.random() < 0.75 else rng.choice(labels) for label in y] for y in true]


def check(true, predicted):
    report = span_report(true, predicted)
    n_true, n_predicted, n_right, right_tokens = conlleval(true, predicted)
    types = {type_ for counts in (n_true, n_predicted) for type_, n in counts.items() if n}
    assert set(report.by_type) == types
    for type_, scores in report.by_type.items():
        counted = n_true[type_], n_predicted[type_], n_right[type_]
        assert (scores.n_true, scores.n_predicted, scores.n_right) == counted, type_
    overall = report.overall
    assert (overall.n_true, overall.n_predicted, overall.n_right) == tuple(
        sum(counts.values()) for counts in (n_true, n_predicted, n_right)
    )
    assert token_accuracy(true, predicted) == right_tokens / sum(map(len, true))


@pytest.mark.parametrize("prefixes", [BIO, IOE, ("O", "I")], ids="".join)
def test_random_sequences(prefixes):
    true, predicted = random_pairs(prefixes, 1000, seed=len(prefixes))
    check(true, predicted)
    for one, other in zip(true, predicted, strict=True):  # no mistake of one sentence may make up for another's
        check([one], [other])


@pytest.mark.parametrize(
    ("true", "predicted", "counts"),  # true, predicted and right spans, counted by hand
    [
        ("B-A I-A O", "B-A I-A O", (1, 1, 1)),
        ("B-A I-A O", "I-A I-A O", (1, 1, 1)),  # I after O starts a span as B does
        ("B-A I-A O", "B-A B-A O", (1, 2, 0)),
        ("B-A I-A I-A", "B-A I-A O", (1, 1, 0)),  # the end differs
        ("O B-A I-A", "B-A I-A I-A", (1, 1, 0)),  # the start differs
        ("B-A I-A", "B-B I-B", (1, 1, 0)),  # the type differs
        ("B-A I-B", "B-A I-A", (2, 1, 0)),  # another type inside starts a span
        ("B-A I-B I-B", "B-A B-B I-B", (2, 2, 2)),
        ("B-A B-A", "B-A I-A", (2, 1, 0)),
        ("I-A B-A I-A O I-A", "B-A B-A I-A O B-A", (3, 3, 3)),
        ("E-A E-A I-A E-A", "I-A E-A I-A E-A", (3, 2, 1)),  # IOE
        ("O O", "O B-A", (0, 1, 0)),
        ("O O", "O O", (0, 0, 0)),
        ("B-A | I-A", "B-A | B-A", (2, 2, 2)),  # no span goes over the end of a sentence
    ],
)
def test_by_hand(true, predicted, counts):
    true, predicted = ([part.split() for part in text.split("|")] for text in (true, predicted))
    overall = span_report(true, predicted).overall
    assert (overall.n_true, overall.n_predicted, overall.n_right) == counts
    assert tuple(sum(counted.values()) for counted in conlleval(true, predicted)[:3]) == counts


def test_spans_are_what_starts_and_ends_enclose():
    for sentence in random_pairs(BIO, 300, seed=5)[0] + random_pairs(IOE, 300, seed=6)[0]:
        padded = ["O", *sentence, "O"]
        begins = [t for t in range(len(sentence)) if starts(padded[t], padded[t + 1])]
        stops = [t + 1 for t in range(len(sentence)) if ends(padded[t + 1], padded[t + 2])]
        assert [(s.start, s.end) for s in spans(sentence)] == list(zip(begins, stops, strict=True))


def test_the_command_prints_these_numbers():
    true, predicted = random_pairs(BIO, 1000, seed=9)
    blocks = (zip(y, z, strict=True) for y, z in zip(true, predicted, strict=True))
    text = "\n".join("".join(f"w {a} {b}\n" for a, b in block) for block in blocks)
    done = CliRunner().invoke(app, ["evaluate", "--predicted", "-"], input=text)
    assert done.exit_code == 0, done.output
    n_true, n_predicted, n_right, right_tokens = conlleval(true, predicted)
    assert f"token accuracy     {100 * right_tokens / sum(map(len, true)):.2f}%" in done.stdout
    counts = {type_: (n_true[type_], n_predicted[type_], n_right[type_]) for type_ in ("NP", "NP-SBJ", "VP")}
    counts["all"] = tuple(sum(column) for column in zip(*counts.values(), strict=True))
    for type_, (a, b, right) in counts.items():
        precision, recall = 100 * right / b, 100 * right / a
        row = re.search(rf"^{type_} +(.*)$", done.stdout, re.MULTILINE)[1].split()
        f1 = 2 * precision * recall / (precision + recall)  # as the script computes it
        assert row == [f"{precision:.2f}", f"{recall:.2f}", f"{f1:.2f}", str(a), str(b), str(right)]


@pytest.mark.data
def test_published_baseline_of_conll2000():
    """The task's own baseline, the most frequent chunk label of each part of speech, as conlleval judged it there."""
    if not all((data_home() / f"conll2000/{split}.txt.gz").is_file() for split in ("train", "test")):
        pytest.skip("CoNLL-2000 is not on disk")
    by_tag: dict[str, Counter] = {}
    for sentence in load_conll2000("train"):
        for _, tag, label in sentence:
            by_tag.setdefault(tag, Counter())[label] += 1
    test = load_conll2000("test")
    true = [[label for _, _, label in sentence] for sentence in test]
    guess = [[by_tag[tag].most_common(1)[0][0] for _, tag, _ in sentence] for sentence in test]
    report = span_report(true, guess).overall
    assert sum(map(len, true)) == 47377
    assert (report.n_true, report.n_predicted, report.n_right) == (23852, 26992, 19592)
    assert f"{100 * token_accuracy(true, guess):.2f}" == "77.29"
    assert [f"{100 * x:.2f}" for x in (report.precision, report.recall, report.f1)] == ["72.58", "82.14", "77.07"]
