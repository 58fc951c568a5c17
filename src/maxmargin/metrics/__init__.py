"""Scores of predictions, counted by the conventions of the field."""

from maxmargin.metrics.alignments import AlignmentReport, alignment_error_rate, alignment_report
from maxmargin.metrics.hierarchies import hierarchical_f1, micro_average_precision
from maxmargin.metrics.label_sets import (
    LabelReport,
    example_f1,
    jaccard_accuracy,
    label_loss,
    label_report,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
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
from maxmargin.metrics.translation import (
    Bleu,
    bleu,
    bleu_of,
    bleu_statistics,
    nist,
    paired_randomisation,
    sentence_bleu,
)

__all__ = [
    "SCORERS", "AlignmentReport", "Bleu", "LabelReport", "Scorer", "Span", "SpanReport", "SpanScores",
    "alignment_error_rate", "alignment_report", "bleu", "bleu_of", "bleu_statistics", "boundary_f", "example_f1",
    "get_scorer", "hierarchical_f1", "jaccard_accuracy", "label_loss", "label_report", "macro_f1", "mean_dice",
    "mean_iou", "micro_average_precision", "micro_f1", "nist", "paired_randomisation", "pixel_accuracy",
    "sentence_bleu", "sequence_accuracy", "span_f1", "span_precision", "span_recall", "span_report", "spans",
    "subset_accuracy", "token_accuracy", "token_error",
]  # fmt: skip
