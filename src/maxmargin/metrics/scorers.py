"""Scores by name for ``GridSearchCV`` and ``cross_validate``, pooled over all sequences; larger is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from maxmargin.metrics.spans import SpanScores, span_report
from maxmargin.metrics.tokens import Labels, sequence_accuracy, token_accuracy

__all__ = ["SCORERS", "get_scorer"]


class Predictor(Protocol):
    """A fitted estimator of label sequences."""

    def predict(self, X: object) -> Sequence[Labels]: ...


Scorer = Callable[[Predictor, object, Sequence[Labels]], float]


def get_scorer(name: str) -> Scorer:
    """The function ``scorer(estimator, X, y)`` of a name, one of :data:`SCORERS`.

    Parameters
    ----------
    name : {"span_f1", "span_precision", "span_recall", "token_accuracy", "sequence_accuracy"}

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from maxmargin import SequenceTagger
    >>> search = GridSearchCV(SequenceTagger(), {"C": [0.1, 1.0]}, scoring=get_scorer("span_f1"))
    """
    try:
        return SCORERS[name]
    except (KeyError, TypeError):
        raise ValueError(f"{name!r} is not a scorer; use one of {', '.join(SCORERS)}.") from None


# Named functions, not closures, so that a parallel search can pickle them.


def span_f1_scorer(estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
    """F1 of the predicted spans."""
    return _spans(estimator, X, y).f1


def span_precision_scorer(estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
    """Share of the predicted spans that are right."""
    return _spans(estimator, X, y).precision


def span_recall_scorer(estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
    """Share of the true spans that are predicted."""
    return _spans(estimator, X, y).recall


def token_accuracy_scorer(estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
    """Share of tokens with the right label."""
    return token_accuracy(y, estimator.predict(X))


def sequence_accuracy_scorer(estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
    """Share of sequences without a mistake."""
    return sequence_accuracy(y, estimator.predict(X))


def _spans(estimator: Predictor, X: object, y: Sequence[Labels]) -> SpanScores:
    return span_report(y, estimator.predict(X)).overall


SCORERS: dict[str, Scorer] = {
    "span_f1": span_f1_scorer,
    "span_precision": span_precision_scorer,
    "span_recall": span_recall_scorer,
    "token_accuracy": token_accuracy_scorer,
    "sequence_accuracy": sequence_accuracy_scorer,
}
