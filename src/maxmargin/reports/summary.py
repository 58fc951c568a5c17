"""One paragraph about a fitted estimator."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from maxmargin.pages.time_split import time_split

if TYPE_CHECKING:
    from maxmargin.estimators.base import Structured

__all__ = ["conversions", "summary"]


def conversions(C: float, n: int) -> dict[str, float]:
    """C in the two other conventions of the literature, for n examples.

    This library minimises ``R(w) + C sum_i loss_i(w)``. It has the same minimiser as

    * ``R(w) + (C'/n) sum_i loss_i(w)`` with ``C' = C n`` (key ``"over_n"``),
    * ``lambda R(w) + (1/n) sum_i loss_i(w)`` with ``lambda = 1 / (C n)`` (key ``"lambda"``; inf when C is 0).

    With squared losses, read ``loss_i(w)^2``.
    """
    return {"over_n": C * n, "lambda": 1.0 / (C * n) if C * n > 0 else math.inf}


def summary(estimator: Structured) -> str:
    """Describe the fit of an estimator in one paragraph: status, certificate, C in other conventions, time split."""
    name = type(estimator).__name__
    if "certificate_" not in vars(estimator):
        raise ValueError(f"this {name} is not fitted yet; call fit first.")
    # a pass is one oracle call per example; stored estimators do not keep the number of examples
    n = round(estimator.oracle_calls_ / estimator.n_iter_) if estimator.n_iter_ else 0
    certificate = estimator.certificate_
    bounds = f"Certificate: {certificate}"
    if certificate.certified and math.isfinite(certificate.gap):
        bounds += f"; the objective is within {max(certificate.gap, 0.0):.3g} of the best possible"
    loss = "loss^2" if estimator.loss == "squared_hinge" else "loss"
    C = vars(estimator).get("C_", estimator.C)  # chosen in the fit, or given
    other = conversions(C, n)
    return (
        f"{name} on {n} examples. {estimator.status_.sentence} {bounds}. "
        f"C = {C:.4g} on the sum of the losses, which is C' = {other['over_n']:.4g} in "
        f"1/2 |w|^2 + (C'/n) sum {loss} and lambda = {other['lambda']:.4g} in "
        f"lambda/2 |w|^2 + (1/n) sum {loss}. Time {time_split(estimator.seconds_)}."
    )
