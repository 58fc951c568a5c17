"""What a report says about the sentences of a tagger: those it gets most wrong, and how sure it may be."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.estimators.explaining import Contribution, explain
from maxmargin.features.sequences import Sequences
from maxmargin.pages.html import Section, paragraph, table
from maxmargin.pages.labels import reliability

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import SequenceInput, SequenceTagger

__all__ = ["label_text", "tagger_sections"]

SHOWN, LOOKED_AT, REASONS = 5, 40, 4
AROUND = 15  # words before the first mistake


def tagger_sections(tagger: SequenceTagger, X: SequenceInput, y: Sequence[Sequence[Hashable]]) -> list[Section]:
    """The sequences with the largest lead of a wrong labelling, explained; and calibration."""
    sequences = X if isinstance(X, Sequences) else tagger._made(X)
    packed = sequences if isinstance(sequences, Sequences) else Sequences.of(sequences)
    predicted, known = tagger.predict(packed), set(tagger.classes_)
    wrong = [i for i, labels in enumerate(predicted) if list(y[i]) != labels and known.issuperset(y[i])]
    leads = []
    for i in wrong[:LOOKED_AT]:
        reasons = explain(tagger, packed[i : i + 1], predicted[i], list(y[i]))
        leads.append((sum(reason["contribution"] for reason in reasons), i, reasons))
    leads.sort(key=lambda lead: -lead[0])
    blocks = []
    for lead, i, reasons in leads[:SHOWN]:
        blocks.append(paragraph(f"Example {i}: {_mistakes(_words(X, i), y[i], predicted[i])}"))
        ahead = f"The predicted labels score {lead:.3g} more than the true ones. The main reasons, for and against:"
        blocks.append(paragraph(ahead, "soft"))
        blocks.append(table(["position", "feature", "predicted", "true", "adds"], map(_reason, reasons[:REASONS])))
    sections = [Section("Hardest examples", blocks)]
    marginals, right, sure = tagger.predict_marginals(packed), [], []
    for table_, labels, true in zip(marginals, predicted, y, strict=True):
        codes = tagger.layout_.labels.encode(labels, 0)
        sure.append(table_[np.arange(len(codes)), codes])
        right += [a == b for a, b in zip(labels, true, strict=True)]
    calibrated = "temperature_" in vars(tagger)
    return [*sections, reliability(np.concatenate([np.empty(0), *sure]), np.array(right, float), calibrated)]


def label_text(label: Hashable) -> str:
    """A label, or a pair of labels that follow each other."""
    return " → ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _mistakes(words: Sequence[str] | None, true: Sequence[Hashable], predicted: Sequence[Hashable]) -> str:
    """The words around the mistakes, with ``[true → predicted]`` behind each; positions where there are no words."""
    places = [t for t, (a, b) in enumerate(zip(true, predicted, strict=True)) if a != b]
    marks = {t: f"[{true[t]} → {predicted[t]}]" for t in places}
    if words is None:
        more = f" and {len(places) - 6} more" if len(places) > 6 else ""
        return ", ".join(f"position {t} {marks[t]}" for t in places[:6]) + more
    begin, end = max(0, places[0] - AROUND), min(len(words), places[0] + 2 * AROUND)
    told = [f"{words[t]} {marks[t]}" if t in marks else words[t] for t in range(begin, end)]
    return " ".join(["…"] * (begin > 0) + told + ["…"] * (end < len(words)))


def _words(X: SequenceInput, i: int) -> list[str] | None:
    """The words of an example: its tokens, or their first columns; None where tokens are something else."""
    tokens = list(X[i]) if isinstance(X, list | tuple) else []
    first = [token[0] if isinstance(token, tuple) and token else token for token in tokens]
    words = [word for word in first if isinstance(word, str)]
    return words if words and len(words) == len(first) else None


def _reason(row: Contribution) -> tuple[int, str, str, str, float]:
    return row["position"], row["feature"], label_text(row["label"]), label_text(row["other"]), row["contribution"]
