"""A fitted estimator in one paragraph."""

from __future__ import annotations

import math
from typing import Any

from maxmargin.reports.time_split import time_split

__all__ = ["conversions", "summary"]


def conversions(C: float, n: int) -> dict[str, float]:
    """C in the two other conventions of the literature, for n examples.

    This library minimises ``R(w) + C sum_i loss_i(w)``. The same minimiser belongs to

    * ``R(w) + (C'/n) sum_i loss_i(w)`` with ``C' = C n`` (key ``"over_n"``),
    * ``lambda R(w) + (1/n) sum_i loss_i(w)`` with ``lambda = 1 / (C n)`` (key ``"lambda"``; inf when C is 0).

    With squared losses both hold for ``loss_i(w)^2``.
    """
    return {"over_n": C * n, "lambda": 1.0 / (C * n) if C * n > 0 else math.inf}


def summary(estimator: Any) -> str:
    """What a fit did, as one paragraph: status, certificate, C in other conventions, time split.

    Parameters
    ----------
    estimator : a fitted estimator of this library

    Raises
    ------
    ValueError
        When the estimator is not fitted.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "certificate_"):
        raise ValueError(f"this {name} is not fitted yet; call fit before you ask for a summary.")
    # a pass is one oracle call per example; the count of examples itself is not kept with a stored estimator
    n = round(estimator.oracle_calls_ / estimator.n_iter_) if estimator.n_iter_ else 0
    certificate = estimator.certificate_
    bounds = f"Certificate: {certificate}"
    if certificate.certified and math.isfinite(certificate.gap):
        bounds += f"; the objective is within {max(certificate.gap, 0.0):.3g} of the best possible"
    loss = "loss^2" if estimator.loss == "squared_hinge" else "loss"
    other = conversions(estimator.C, n)
    return (
        f"{name} on {n} examples. {estimator.status_.sentence} {bounds}. "
        f"C = {estimator.C:.4g} on the sum of the losses, which is C' = {other['over_n']:.4g} in "
        f"1/2 |w|^2 + (C'/n) sum {loss} and lambda = {other['lambda']:.4g} in "
        f"lambda/2 |w|^2 + (1/n) sum {loss}. Time {time_split(estimator.seconds_)}."
    )
