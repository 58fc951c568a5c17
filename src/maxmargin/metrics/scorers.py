"""Scores by name for ``GridSearchCV`` and ``cross_validate``, of label sequences or label sets; larger is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from maxmargin.metrics.label_sets import example_f1, jaccard_accuracy, label_loss, macro_f1, micro_f1, subset_accuracy
from maxmargin.metrics.spans import span_f1, span_precision, span_recall
from maxmargin.metrics.tokens import Labels, sequence_accuracy, token_accuracy

__all__ = ["SCORERS", "Scorer", "get_scorer"]


class Predictor(Protocol):
    """A fitted estimator of label sequences or label sets."""

    def predict(self, X: object) -> Sequence[Labels]: ...


@dataclass(frozen=True)
class Scorer:
    """``scorer(estimator, X, y)``: a metric of the predictions times a sign; a parallel search can pickle it."""

    metric: Callable[..., float]
    sign: float = 1.0

    def __call__(self, estimator: Predictor, X: object, y: Sequence[Labels]) -> float:
        return self.sign * self.metric(y, estimator.predict(X))


_METRICS = (
    span_f1, span_precision, span_recall, token_accuracy, sequence_accuracy, subset_accuracy, jaccard_accuracy,
    micro_f1, macro_f1, example_f1,
)  # fmt: skip
SCORERS = {metric.__name__: Scorer(metric) for metric in _METRICS} | {"neg_label_loss": Scorer(label_loss, -1.0)}


def get_scorer(name: str) -> Scorer:
    """The function ``scorer(estimator, X, y)`` of the name of one of :data:`SCORERS`, such as "token_accuracy".

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
