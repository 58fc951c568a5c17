"""Scores of label sequences under the names of sklearn-crfsuite: scikit-learn's, over the tokens of all sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from maxmargin.metrics.tokens import check_lengths

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]


def flat_accuracy_score(y_true: Sequence, y_pred: Sequence, **options: Any) -> float:
    """Share of tokens with the right label."""
    return _flat("accuracy_score", y_true, y_pred, **options)


def flat_precision_score(y_true: Sequence, y_pred: Sequence, **options: Any) -> Any:
    """Precision over tokens; options as in :func:`sklearn.metrics.precision_score`."""
    return _flat("precision_score", y_true, y_pred, **options)


def flat_recall_score(y_true: Sequence, y_pred: Sequence, **options: Any) -> Any:
    """Recall over tokens; options as in :func:`sklearn.metrics.recall_score`."""
    return _flat("recall_score", y_true, y_pred, **options)


def flat_f1_score(y_true: Sequence, y_pred: Sequence, **options: Any) -> Any:
    """F1 over tokens; options as in :func:`sklearn.metrics.f1_score`. For spans see :mod:`maxmargin.metrics`."""
    return _flat("f1_score", y_true, y_pred, **options)


def flat_fbeta_score(y_true: Sequence, y_pred: Sequence, beta: float, **options: Any) -> Any:
    """F-beta over tokens; options as in :func:`sklearn.metrics.fbeta_score`."""
    return _flat("fbeta_score", y_true, y_pred, beta=beta, **options)


def flat_classification_report(y_true: Sequence, y_pred: Sequence, labels: Any = None, **options: Any) -> Any:
    """Precision, recall and F1 of each label; options as in :func:`sklearn.metrics.classification_report`."""
    return _flat("classification_report", y_true, y_pred, labels=labels, **options)


def sequence_accuracy_score(y_true: Sequence, y_pred: Sequence) -> float:
    """Share of sequences with all labels right; 0 when there are none."""
    if not len(y_true):
        return 0.0
    check_lengths(y_true, y_pred)
    return sum(list(true) == list(found) for true, found in zip(y_true, y_pred, strict=True)) / len(y_true)


def _flat(name: str, y_true: Sequence, y_pred: Sequence, **options: Any) -> Any:
    from sklearn import metrics

    check_lengths(y_true, y_pred)
    flat = [list(chain.from_iterable(y)) for y in (y_true, y_pred)]
    return getattr(metrics, name)(*flat, **options)
