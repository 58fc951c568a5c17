"""How sure a prediction is: the k best outputs, the margin to the runner-up, and marginals.

An estimator has these where its bound model can (:data:`maxmargin.needs.CAPABILITIES`), and else says what would.
"""

from __future__ import annotations

from typing import Generic, TypeVar, cast

import numpy as np

from maxmargin.contracts import BoundModel, offers_k_best, offers_marginals
from maxmargin.estimators.base import Inputs, Structured
from maxmargin.estimators.calibration import check_temperature
from maxmargin.needs import refusal

Output = TypeVar("Output", covariant=True)

__all__ = ["RankedOutputs", "WithMarginals"]


class RankedOutputs(Generic[Inputs, Output]):
    """Several outputs of each example instead of one."""

    def _bound_scores(self, X: Inputs) -> tuple[BoundModel, np.ndarray]:
        """Examples bound to the fitted model, and the weights that score their outputs."""
        assert isinstance(self, Structured)
        weights = self._checked_weights()
        return self._bind_held_out(X, None), weights

    def predict_kbest(self, X: Inputs, k: int) -> list[list[tuple[Output, float]]]:
        """The ``k`` best outputs of each example with their scores, best first; fewer when there are no more."""
        if not (isinstance(k, (int, np.integer)) and k >= 1):
            raise ValueError(f"k must be a whole number >= 1, got {k!r}.")
        if isinstance(X, (list, tuple)) and not X:
            return []
        bound, w = self._bound_scores(X)
        answers = []
        if not offers_k_best(bound):
            raise _refused(self, bound, "predict_kbest", "k_best", "predict, or predict_marginals where there is one,")
        for i in range(bound.n_examples):
            codes, scores = bound.k_best(w, i, int(k))
            answers.append([(self._shown(bound, i, row), float(s)) for row, s in zip(codes, scores, strict=True)])
        return answers

    def _shown(self, bound: BoundModel, example: int, codes: np.ndarray) -> Output:
        """An output as users see it."""
        return cast(Output, bound.layout.output(codes))

    def predict_margin(self, X: Inputs) -> np.ndarray:
        """Score of the best output minus that of the runner-up: confidence, in units of the score. inf: no other."""
        scores = [[score for _, score in answers] for answers in self.predict_kbest(X, 2)]
        return np.array([s[0] - s[1] if len(s) > 1 else np.inf for s in scores])


class WithMarginals(RankedOutputs[Inputs, Output]):
    """The k best outputs, and probabilities of the labels of each part of an output."""

    def predict_marginals(self, X: Inputs, temperature: float | None = None) -> list[np.ndarray]:
        """Marginals (length, n_classes) of the distribution proportional to exp(score / temperature).

        At temperature 1 they are the posterior probabilities of a hidden Markov model, whose tables may leave mass to
        values never seen.

        Parameters
        ----------
        X : as in fit
        temperature : float, optional
            Above 1 evens the marginals out, below 1 sharpens them. When missing it is ``temperature_`` where that was
            learned (:meth:`SequenceTagger.fit_temperature`), or else 1, which is not calibrated.
        """
        return marginal_tables(self, *self._bound_scores(X), temperature)


def marginal_tables(estimator: object, bound: BoundModel, w: np.ndarray, temperature: float | None) -> list[np.ndarray]:
    """Marginals (parts, n_classes) of each example at a temperature."""
    learned = vars(estimator).get("temperature_", 1.0)
    w = w / check_temperature(learned if temperature is None else temperature)  # scores are linear in the weights
    if not offers_marginals(bound):
        raise _refused(estimator, bound, "predict_marginals", "marginals", "predict")
    return [bound.marginals(w, i) for i in range(bound.n_examples)]


def _refused(estimator: object, bound: BoundModel, method: str, capability: str, instead: str) -> ValueError:
    return refusal(
        f"{method} of {type(estimator).__name__}",
        {capability},
        f"a {type(bound).__name__} of these examples",
        "chains, hidden Markov models, classes, label sets (up to 18 labels, a graph without cycles, or a hierarchy of "
        "trees), matchings, and graphs that are forests or narrow enough for a junction tree do. "
        f"Use {instead} here",
    )
