"""Spans against hand-made cases and against seqeval's conlleval-like mode."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from maxmargin.metrics import Span, span_f1, span_report, spans


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-NP I-NP O B-VP", [("NP", 0, 2), ("VP", 3, 4)]),
        ("B-NP B-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("I-NP I-NP O I-NP", [("NP", 0, 2), ("NP", 3, 4)]),  # IOB1
        ("I-NP B-NP I-NP", [("NP", 0, 1), ("NP", 1, 3)]),
        ("B-NP I-VP I-VP", [("NP", 0, 1), ("VP", 1, 3)]),  # ill-formed: the type changes inside
        ("S-NP B-NP I-NP E-NP S-NP", [("NP", 0, 1), ("NP", 1, 4), ("NP", 4, 5)]),
        ("E-NP E-NP I-NP", [("NP", 0, 1), ("NP", 1, 2), ("NP", 2, 3)]),
        ("S-NP I-NP E-NP", [("NP", 0, 1), ("NP", 1, 3)]),
        ("B-NP S-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("B I O I", [("", 0, 2), ("", 3, 4)]),
        ("B-NP-SBJ I-NP-SBJ", [("NP-SBJ", 0, 2)]),
    ],
)
def test_hand_made(labels, expected):
    assert spans(labels.split()) == [Span(*span) for span in expected]


def random_sequences(rng, n, labels):
    return [[str(label) for label in rng.choice(labels, size=rng.integers(1, 12))] for _ in range(n)]


@pytest.mark.parametrize("scheme", ["BI", "BIES", "I"])
def test_agrees_with_seqeval_on_random_sequences(scheme):
    metrics = pytest.importorskip("seqeval.metrics")
    from seqeval.metrics.sequence_labeling import get_entities

    rng = np.random.default_rng(7)
    labels = ["O"] + [f"{prefix}-{type_}" for prefix in scheme for type_ in ("NP", "VP", "PP")]
    truth = random_sequences(rng, 1000, labels)
    guess = [[w if rng.random() < 0.7 else str(rng.choice(labels)) for w in sequence] for sequence in truth]
    for sequence in truth:
        assert [(s.type, s.start, s.end - 1) for s in spans(sequence)] == get_entities(sequence)

    report = span_report(truth, guess)
    assert span_f1(truth, guess) == pytest.approx(metrics.f1_score(truth, guess), abs=1e-12)
    assert report.overall.precision == pytest.approx(metrics.precision_score(truth, guess), abs=1e-12)
    assert report.overall.recall == pytest.approx(metrics.recall_score(truth, guess), abs=1e-12)
    peer = metrics.classification_report(truth, guess, output_dict=True)
    assert set(report.by_type) == {"NP", "VP", "PP"}
    for type_, scores in report.by_type.items():
        assert scores.f1 == pytest.approx(peer[type_]["f1-score"], abs=1e-12)
        assert scores.n_true == peer[type_]["support"]


def test_agrees_with_seqeval_without_true_spans():
    metrics = pytest.importorskip("seqeval.metrics")
    truth, guess = [["O", "O"]], [["O", "B-NP"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert span_f1(truth, guess) == metrics.f1_score(truth, guess) == 0.0
    assert span_f1([["O"]], [["O"]]) == 0.0


def test_spans_do_not_cross_sequences():
    assert span_report([["B-NP"], ["I-NP"]], [["B-NP"], ["I-NP"]]).overall.n_true == 2


def test_numpy_labels_and_table():
    truth = [np.array(["B-NP", "I-NP", "O"]), np.array(["B-VP"])]
    guess = [np.array(["B-NP", "I-NP", "O"]), np.array(["B-NP"])]
    report = span_report(truth, guess)
    assert (report.overall.n_true, report.overall.n_predicted, report.overall.n_right) == (2, 2, 1)
    assert report.by_type["VP"].f1 == 0.0
    assert "50.00" in str(report).splitlines()[-1]


@pytest.mark.parametrize("label", ["NP", "X-NP", "BI-NP", "", "B-", "O-NP", 3])
def test_unreadable_label_is_named(label):
    with pytest.raises(ValueError, match=r"y_pred\[1\].*position 2"):
        span_f1([["O"], ["O", "O", "O"]], [["O"], ["O", "O", label]])
