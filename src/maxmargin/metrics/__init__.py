"""Scores of predictions, counted by the conventions of the field."""

from maxmargin.metrics.scorers import SCORERS, Scorer, get_scorer
from maxmargin.metrics.segmentation import boundary_f, mean_dice, mean_iou, pixel_accuracy
from maxmargin.metrics.spans import (
    Span,
    SpanReport,
    SpanScores,
    span_f1,
    span_precision,
    span_recall,
    span_report,
    spans,
)
from maxmargin.metrics.tokens import sequence_accuracy, token_accuracy, token_error

__all__ = [
    "SCORERS", "Scorer", "Span", "SpanReport", "SpanScores", "boundary_f", "get_scorer", "mean_dice", "mean_iou",
    "pixel_accuracy", "sequence_accuracy", "span_f1", "span_precision", "span_recall", "span_report", "spans",
    "token_accuracy", "token_error",
]  # fmt: skip
