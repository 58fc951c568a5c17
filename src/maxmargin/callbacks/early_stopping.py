"""Stop when a held-out score no longer improves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from maxmargin.callbacks.base import Callback, Run
from maxmargin.certificate import Certificate

__all__ = ["EarlyStopping"]


class Fitted(Protocol):
    """A fitted estimator; the class of its status belongs to the solvers."""

    weights_: np.ndarray
    certificate_: Certificate
    status_: Any
    tol: float


@dataclass(repr=False, eq=False)
class EarlyStopping(Callback):
    """Score the weights at each certificate, keep the best ones, stop after ``patience`` scores without improvement.

    Parameters
    ----------
    score : callable or pair
        Held-out examples ``(X, y)``, scored with the estimator's own ``score``; or a function of the weights (d,) that
        returns a number. Higher is better.
    patience : int
        End the run after this many scores in a row without improvement.
    min_delta : float
        A score must exceed the best one by more than this to count as an improvement.
    min_passes : float
        Scores never end the run before this pass.

    Attributes
    ----------
    best_score_, best_weights_, best_pass_, best_certificate_
        The best score, a copy of its weights (the last ones among ties), its pass, and the certificate of these
        weights. The result of the run keeps the *final* weights; :meth:`restore` gives an estimator the best ones.
    scores_ : list of float

    Examples
    --------
    >>> stopping = EarlyStopping((X_held, y_held))  # doctest: +SKIP
    >>> tagger = SequenceTagger(callbacks=[stopping]).fit(X, y)  # doctest: +SKIP
    >>> stopping.restore(tagger)  # doctest: +SKIP
    """

    score: Callable[[np.ndarray], float] | tuple[object, object]
    _: KW_ONLY
    patience: int = 5
    min_delta: float = 0.0
    min_passes: float = 0.0
    best_weights_: np.ndarray | None = field(default=None, init=False)
    best_certificate_: Certificate | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, got {self.patience}")

    def on_begin(self, run: Run) -> None:
        self.scores_: list[float] = []
        self.best_score_, self.best_pass_, self._waited = -np.inf, 0.0, 0
        self.best_weights_ = self.best_certificate_ = None

    def on_certificate(self, run: Run) -> str | None:
        weights = run.weights()
        if callable(self.score):
            score = float(self.score(weights))
        elif run.evaluate is not None:
            score = float(run.evaluate(weights, *self.score))
        else:
            raise ValueError("only the fit of an estimator scores held-out examples; give a function of the weights.")
        self.scores_.append(score)
        run.history.annotate(score=score)
        better = score > self.best_score_ + self.min_delta or (self.best_weights_ is None and not np.isnan(score))
        self._waited = 0 if better else self._waited + 1
        if better or score == self.best_score_:  # among ties keep the last, whose gap is smallest
            self.best_score_, self.best_weights_, self.best_pass_ = score, np.array(weights), run.passes
            self.best_certificate_ = run.certificate
        return "stop" if self._waited >= self.patience and run.passes >= self.min_passes else None

    def restore(self, estimator: Fitted) -> None:
        """Give the fitted estimator of the run the best weights (``weights_``), with their certificate and status.

        The history, the counts and the state for a warm start still describe the whole run.
        """
        if self.best_weights_ is None or self.best_certificate_ is None:
            raise ValueError("no score was a number yet; fit the estimator with this callback first.")
        estimator.weights_[:] = self.best_weights_
        estimator.certificate_ = self.best_certificate_
        gap, status = self.best_certificate_.relative_gap, estimator.status_
        said = status.sentence
        if status.code == "stopped by callback":
            said = said.partition(" Next: ")[0]  # stopping early was the plan: no advice
        # the run may have converged later, at weights with a lower score
        code = "stopped by callback" if status.converged and gap > estimator.tol else status.code
        best = f"the weights of pass {self.best_pass_:.4g}, which scored best ({self.best_score_:.6g})"
        sentence = f"{said} Kept: {best} on held-out examples; their relative gap is {gap:.2g}."
        estimator.status_ = replace(status, code=code, sentence=sentence)
