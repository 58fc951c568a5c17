"""Scores of word alignments against sure and possible links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maxmargin.datasets.links import as_links

__all__ = ["AlignmentReport", "alignment_error_rate", "alignment_report"]

MOST = 2**31


class AlignmentReport(NamedTuple):
    """Precision (of links that are possible), recall (of sure links) and alignment error rate, over all examples."""

    precision: float
    recall: float
    error_rate: float


def alignment_report(
    y_true: Iterable[object],
    y_pred: Iterable[object],
    sample_weight: Iterable[float] | None = None,
    shapes: Sequence[tuple[int, int]] | None = None,
) -> AlignmentReport:
    """Compare links with gold ones.

    ``AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)`` with the links A found, sure ones S and possible ones P, S included.
    Och, Ney 2003, A systematic comparison of various statistical alignment models.

    Parameters
    ----------
    y_true : list of links
        Text such as "0-0 1-2 2?1", :class:`~maxmargin.datasets.links.Links`, or pairs, which are sure.
    y_pred : list of links
    sample_weight : numbers, one per example, optional
        How much the links of each example count.
    shapes : list of (int, int), optional
        How many words each example has on both sides; true links beyond them are refused.
    """
    if not isinstance(y_true, Iterable) or not isinstance(y_pred, Iterable):
        raise TypeError(f"links are {y_true!r:.60} and {y_pred!r:.60}; give those of each example.")
    golds, founds = list(y_true), list(y_pred)
    if len(golds) != len(founds):
        raise ValueError(f"there are {len(golds)} examples with true links and {len(founds)} with found ones.")
    found = sure = right_sure = right = 0.0
    weights = [1.0] * len(golds) if sample_weight is None else [float(weight) for weight in sample_weight]
    for i, (gold, given, weight) in enumerate(zip(golds, founds, weights, strict=True)):
        truth = as_links(gold, i, (MOST, MOST) if shapes is None else shapes[i])
        links = as_links(given, i, (MOST, MOST)).sure
        found, sure = found + weight * len(links), sure + weight * len(truth.sure)
        right_sure += weight * len(links & truth.sure)
        right += weight * len(links & (truth.sure | truth.possible))
    share = (right_sure + right) / (found + sure) if found + sure else 1.0
    return AlignmentReport(right / found if found else 1.0, right_sure / sure if sure else 1.0, 1.0 - share)


def alignment_error_rate(
    y_true: Iterable[object], y_pred: Iterable[object], sample_weight: Iterable[float] | None = None
) -> float:
    """The error rate of :func:`alignment_report`; less is better."""
    return alignment_report(y_true, y_pred, sample_weight).error_rate
