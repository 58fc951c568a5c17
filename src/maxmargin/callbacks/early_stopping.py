"""Stop when a held-out score no longer improves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.callbacks.base import Callback

__all__ = ["EarlyStopping"]


class EarlyStopping(Callback):
    """Score the weights at each certificate, keep the best ones, stop after ``patience`` scores without a better one.

    Parameters
    ----------
    score : callable or pair
        Held-out examples ``(X, y)``, scored with the estimator's own ``score``; or a function of the weights (d,) that
        returns a number. Higher is better.
    patience : int
        Number of scores in a row without improvement that ends the run.
    min_delta : float
        What counts as an improvement.
    min_passes : float
        Scores of the first passes never end the run.

    Attributes
    ----------
    best_score_, best_weights_, best_pass_
        The best score, a copy of its weights, and when it was seen. The result of the run keeps the *final* weights,
        to which its certificate belongs; take ``best_weights_`` to use the best ones.
    scores_ : list of float
    """

    def __init__(
        self,
        score: Callable[[np.ndarray], float] | tuple[Any, Any],
        *,
        patience: int = 5,
        min_delta: float = 0.0,
        min_passes: float = 0.0,
    ) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, got {patience}")
        self.score = score
        self.patience = patience
        self.min_delta = min_delta
        self.min_passes = min_passes

    def on_begin(self, run: Any) -> None:
        self.scores_: list[float] = []
        self.best_score_ = -np.inf
        self.best_weights_: np.ndarray | None = None
        self.best_pass_ = 0.0
        self._waited = 0

    def on_certificate(self, run: Any) -> str | None:
        weights = run.weights()
        if callable(self.score):
            score = float(self.score(weights))
        elif run.evaluate is not None:
            score = float(run.evaluate(weights, *self.score))
        else:
            raise ValueError(
                "held-out examples can be scored in the fit of an estimator only; give a function of the weights."
            )
        self.scores_.append(score)
        run.history.annotate(score=score)
        if score > self.best_score_ + self.min_delta or (self.best_weights_ is None and not np.isnan(score)):
            self.best_score_, self.best_weights_, self.best_pass_ = score, np.array(weights), run.passes
            self._waited = 0
        else:
            self._waited += 1
        return "stop" if self._waited >= self.patience and run.passes >= self.min_passes else None
