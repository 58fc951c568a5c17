"""Stop when a held-out score no longer improves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
    best_score_, best_weights_, best_pass_, best_certificate_
        The best score, a copy of its weights (of equals the last), when it was seen, and the certificate of these
        weights. The result of the run keeps the *final* weights; :meth:`restore` gives an estimator the best ones.
    scores_ : list of float

    Examples
    --------
    >>> stopping = EarlyStopping((X_held, y_held))  # doctest: +SKIP
    >>> tagger = SequenceTagger(callbacks=[stopping]).fit(X, y)  # doctest: +SKIP
    >>> stopping.restore(tagger)  # doctest: +SKIP
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
        self.best_certificate_: Any = None
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
        better = score > self.best_score_ + self.min_delta or (self.best_weights_ is None and not np.isnan(score))
        self._waited = 0 if better else self._waited + 1
        if better or score == self.best_score_:  # of equals the last, whose gap is smallest
            self.best_score_, self.best_weights_, self.best_pass_ = score, np.array(weights), run.passes
            self.best_certificate_ = run.certificate
        return "stop" if self._waited >= self.patience and run.passes >= self.min_passes else None

    def restore(self, estimator: Any) -> None:
        """Give the estimator of the run the best weights, and the certificate and the status that belong to them.

        The history, the counts and the state for a warm start remain those of the whole run.

        Parameters
        ----------
        estimator : fitted estimator
            Its ``weights_``, ``certificate_`` and ``status_`` are replaced.
        """
        if getattr(self, "best_weights_", None) is None:
            raise ValueError("no score was a number yet; fit the estimator with this callback first.")
        estimator.weights_[:] = self.best_weights_
        estimator.certificate_ = self.best_certificate_
        gap, status = self.best_certificate_.relative_gap, estimator.status_
        said = status.sentence
        if status.code == "stopped by callback":
            said = said.partition(" Next: ")[0]  # it ended as it was meant to end
        # the run may have converged later, with weights that score less
        code = "stopped by callback" if status.converged and gap > estimator.tol else status.code
        estimator.status_ = replace(
            status,
            code=code,
            sentence=f"{said} Kept: the weights of pass {self.best_pass_:.4g}, which scored best "
            f"({self.best_score_:.6g}) on held-out examples; their relative gap is {gap:.2g}.",
        )
