"""Scores of label sequences under the names of sklearn-crfsuite, computed by scikit-learn over all tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from sklearn import metrics

from maxmargin.metrics.tokens import Labels, check_lengths

__all__ = [
    "flat_accuracy_score", "flat_classification_report", "flat_f1_score", "flat_fbeta_score", "flat_precision_score",
    "flat_recall_score", "sequence_accuracy_score",
]  # fmt: skip

Score = TypeVar("Score")


def flat_accuracy_score(y_true: Sequence[Labels], y_pred: Sequence[Labels], **options: object) -> float:
    """Share of tokens with the right label."""
    return _flat(metrics.accuracy_score, y_true, y_pred, **options)


def flat_precision_score(y_true: Sequence[Labels], y_pred: Sequence[Labels], **options: object) -> float | np.ndarray:
    """Precision over tokens; options as in :func:`sklearn.metrics.precision_score`."""
    return _flat(metrics.precision_score, y_true, y_pred, **options)


def flat_recall_score(y_true: Sequence[Labels], y_pred: Sequence[Labels], **options: object) -> float | np.ndarray:
    """Recall over tokens; options as in :func:`sklearn.metrics.recall_score`."""
    return _flat(metrics.recall_score, y_true, y_pred, **options)


def flat_f1_score(y_true: Sequence[Labels], y_pred: Sequence[Labels], **options: object) -> float | np.ndarray:
    """F1 over tokens; options as in :func:`sklearn.metrics.f1_score`. For spans see :mod:`maxmargin.metrics`."""
    return _flat(metrics.f1_score, y_true, y_pred, **options)


def flat_fbeta_score(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], beta: float, **options: object
) -> float | np.ndarray:
    """F-beta over tokens; options as in :func:`sklearn.metrics.fbeta_score`."""
    return _flat(metrics.fbeta_score, y_true, y_pred, beta=beta, **options)


def flat_classification_report(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], labels: Sequence | None = None, **options: object
) -> str | dict:
    """Precision, recall and F1 of each label; options as in :func:`sklearn.metrics.classification_report`."""
    return _flat(metrics.classification_report, y_true, y_pred, labels=labels, **options)


def sequence_accuracy_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Share of sequences whose labels are all right; 0 for no sequences."""
    if not len(y_true):
        return 0.0
    check_lengths(y_true, y_pred)
    return sum(list(true) == list(found) for true, found in zip(y_true, y_pred, strict=True)) / len(y_true)


def _flat(score: Callable[..., Score], y_true: Sequence[Labels], y_pred: Sequence[Labels], **options: object) -> Score:
    check_lengths(y_true, y_pred)
    flat = [list(chain.from_iterable(y)) for y in (y_true, y_pred)]
    return score(*flat, **options)
