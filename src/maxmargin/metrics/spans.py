"""Precision, recall and F1 of labelled spans, counted as the script ``conlleval`` counts them.

Labels are ``O`` (outside) or a prefix and a type, ``B-NP``: begin, inside, end, single (``B I E S``). BIO, IOB and
IOBES need no option, and ill-formed sequences are accepted: ``I-NP`` after ``O`` or after another type opens a span. A
predicted span is right when start, end and type are all right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from maxmargin.metrics.tokens import Labels, check_lengths

__all__ = ["Span", "SpanReport", "SpanScores", "span_f1", "span_precision", "span_recall", "span_report", "spans"]

PREFIXES = "BIES"


class Span(NamedTuple):
    """Tokens ``start`` to ``end`` (excluded) of one sequence, with their type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class SpanScores:
    """Counts of spans and their ratios; a ratio with denominator 0 is 0."""

    n_true: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        return self.n_right / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        total = self.n_true + self.n_predicted
        return 2.0 * self.n_right / total if total else 0.0


@dataclass(frozen=True)
class SpanReport:
    """Scores over all spans and for each type (sorted by name); prints as a table."""

    overall: SpanScores
    by_type: Mapping[str, SpanScores]

    def __str__(self) -> str:
        rows = {**self.by_type, "all": self.overall}
        width = max(map(len, rows))
        lines = [f"{'':{width}}  precision  recall      f1   true  predicted   right"]
        for name, s in rows.items():
            ratios = f"{100 * s.precision:8.2f}%  {100 * s.recall:5.2f}%  {100 * s.f1:6.2f}"
            lines.append(f"{name:{width}}  {ratios}  {s.n_true:5d}  {s.n_predicted:9d}  {s.n_right:6d}")
        return "\n".join(lines)


def spans(labels: Labels, name: str = "labels") -> list[Span]:
    """Spans of one label sequence, in order; ``name`` is what errors call it.

    A token opens a span when its prefix is B or S, or when it is I or E with nothing to continue: the previous token
    is outside, closed its span (E, S) or has another type. A span ends before the next token that opens one or
    is outside. O(T).

    References
    ----------
    Tjong Kim Sang, Buchholz. Introduction to the CoNLL-2000 shared task: chunking. CoNLL 2000 (script conlleval).
    """
    found: list[Span] = []
    open_type, start = None, 0  # type and start of the span that the next token may continue
    for t, label in enumerate(labels):
        prefix, type_ = _split(label, t, name)
        if open_type is not None and (prefix in "OBS" or type_ != open_type):
            found.append(Span(open_type, start, t))
            open_type = None
        if prefix == "O":
            continue
        if open_type is None:
            open_type, start = type_, t
        if prefix in "ES":
            found.append(Span(type_, start, t + 1))
            open_type = None
    if open_type is not None:
        found.append(Span(open_type, start, len(labels)))
    return found


def span_report(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> SpanReport:
    """Span precision, recall and F1, overall and for each type, of label sequences with the same lengths."""
    check_lengths(y_true, y_pred)
    counts: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())  # by type: true, predicted, right
    for i, (true_labels, predicted_labels) in enumerate(zip(y_true, y_pred, strict=True)):
        true, predicted = spans(true_labels, f"y_true[{i}]"), spans(predicted_labels, f"y_pred[{i}]")
        for count, found in zip(counts, (true, predicted, set(true) & set(predicted)), strict=True):
            count.update(span.type for span in found)
    types = sorted(counts[0].keys() | counts[1].keys())
    by_type = {type_: SpanScores(*(count[type_] for count in counts)) for type_ in types}
    return SpanReport(SpanScores(*(count.total() for count in counts)), by_type)


def span_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """F1 of all spans together: ``2 * right / (true + predicted)``, 0 when there are none."""
    return span_report(y_true, y_pred).overall.f1


def span_precision(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Share of the predicted spans that are right."""
    return span_report(y_true, y_pred).overall.precision


def span_recall(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Share of the true spans that are predicted."""
    return span_report(y_true, y_pred).overall.recall


def _split(label: object, position: int, name: str) -> tuple[str, str]:
    """Prefix and type of a label; the type of ``O`` and of a bare prefix is ''."""
    if isinstance(label, str):
        prefix, dash, type_ = label.partition("-")
        if (label == "O") or (len(prefix) == 1 and prefix in PREFIXES and bool(dash) == bool(type_)):
            return prefix, type_
    raise ValueError(
        f"{name} has the label {label!r} at position {position}, which is neither 'O' nor one of B-, I-, E-, S- with "
        "a type: decode integer labels first, rename L- to E- and U- to S-, or use token_accuracy if there are no spans"
    )
