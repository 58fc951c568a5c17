"""The regularisation path: solutions for a range of C, certified, with as few fits as possible.

Scaling the multipliers of a solution at C by ``rho = C' / C >= 1`` gives a feasible point at C', the weights scale
along, and since costs are not negative its gap is bounded without a single oracle call:

    gap(C') <= rho^2 gap(C) + rho (rho - 1) sum alpha b

So one fit serves all C' up to where this bound meets the tolerance; there the next fit starts, warm. For the hinge,
with or without sign constraints. After Osokin et al. 2016, Minding the gaps for block Frank-Wolfe optimization of
structured SVMs, section 5.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin.certificate import Certificate
from maxmargin.estimators.base import Inputs, Outputs, SampleWeight, Structured
from maxmargin.estimators.large_margin import incremental
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.needs import require

__all__ = ["PathPoint", "RegularisationPath", "regularisation_path"]

FIT_SHARE = 0.3  # a fit goes to this share of tol, the rest is for scaling


@dataclass(frozen=True)
class PathPoint:
    """A fit on the path, good for all values from ``C`` to ``C_until``.

    It has ``weights`` and a ``certificate``, ``linear`` (sum alpha b), and took so many ``passes``.
    """

    C: float
    C_until: float
    weights: np.ndarray
    certificate: Certificate
    linear: float
    passes: float

    def scaled(self, C: float) -> tuple[np.ndarray, Certificate]:
        """Weights and certificate at another ``C``, at least that of the point, without oracle calls."""
        rho = C / self.C
        dual, gap = scaled_bound(self.certificate, self.linear, rho)
        return rho * self.weights, Certificate(dual + gap, dual, self.certificate.certified)


def scaled_bound(certificate: Certificate, linear: float, rho: float) -> tuple[float, float]:
    """Dual value, and bound of the gap, after scaling multipliers and C by ``rho >= 1``."""
    dual = rho * linear - rho**2 * (linear - certificate.dual)
    gap = rho**2 * max(certificate.gap, 0.0) + rho * (rho - 1.0) * linear
    return dual, gap


def largest_step(certificate: Certificate, linear: float, tol: float, most: float = 1e6) -> float:
    """The largest rho >= 1 (at most ``most``) whose scaled solution is certified to the relative gap ``tol``."""

    def holds(rho: float) -> bool:
        dual, gap = scaled_bound(certificate, linear, rho)
        return (dual > 0 and gap <= tol * dual) or gap == 0.0

    if holds(most):
        return most
    low, high = 1.0, most
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return float(low)


@dataclass(frozen=True)
class RegularisationPath:
    """Certified solutions for all C in a range: its ``points`` have a relative gap of at most ``tol``."""

    points: list[PathPoint]
    tol: float

    @property
    def passes(self) -> float:
        """Oracle passes of the whole path."""
        return sum(point.passes for point in self.points)

    def at(self, C: float) -> tuple[np.ndarray, Certificate]:
        """Weights and certificate at any ``C`` of the range."""
        first, last = self.points[0].C, self.points[-1].C_until
        if not first <= C <= last:
            raise ValueError(f"the path goes from C = {first:g} to {last:g}; C = {C:g} is outside.")
        point = max((p for p in self.points if p.C <= C), key=lambda p: p.C)
        return point.scaled(C)


def regularisation_path(
    estimator: Structured[Inputs, Outputs],
    X: Inputs,
    y: Outputs,
    *,
    C_min: float,
    C_max: float,
    tol: float = 0.05,
    sample_weight: SampleWeight = None,
) -> RegularisationPath:
    """Solutions for every C from ``C_min`` to ``C_max`` with a relative duality gap of at most ``tol``.

    Parameters
    ----------
    estimator : SequenceTagger, MulticlassClassifier, StructuredSVM, GraphLabeler or ImageSegmenter
        With ``loss="hinge"``; it is cloned, not fitted.
    X, y, sample_weight : training examples, as for its ``fit``
    C_min, C_max : float
    tol : float
        A coarse one makes long steps: the number of fits is about log(C_max / C_min) / (tol / 2).

    Returns
    -------
    RegularisationPath
        ``path.at(C)`` gives weights and certificate for any C; ``path.points`` the fits.
    """
    if not 0 < C_min <= C_max < np.inf:
        raise ValueError(f"need 0 < C_min <= C_max, got {C_min} and {C_max}.")
    if not 0 < tol < 1:
        raise ValueError(f"tol must be between 0 and 1, got {tol}.")
    instead = "fit with warm_start=True at each C"
    require("the path", {"quadratic"}, type(estimator).__name__, estimator.traits, instead)
    formulation = estimator._formulation()
    if not (isinstance(formulation, RescaledHinge) and formulation.loss == "hinge"):
        raise ValueError(f'the path needs loss="hinge"; for other losses {instead}.')
    if C_min < C_max and incremental(estimator.solver):  # told before the first fit
        raise ValueError(
            "the path starts every fit from the multipliers of the last one, which the solvers that learn example by "
            f'example cannot at another C; got solver={estimator.solver!r}, use "auto", "simplicial" or "bcfw".'
        )
    work = clone(estimator)
    work.set_params(warm_start=True, tol=FIT_SHARE * tol)
    points: list[PathPoint] = []
    C = C_min
    while True:
        work.set_params(C=C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            work.fit(X, y, sample_weight=sample_weight)
        solver = work._engine(work.state_.problem)
        if not solver.minimises:
            raise ValueError(f"the path needs multipliers, which solver={work.solver!r} does not have; use another.")
        if not work.status_.converged:
            raise ConvergenceWarning(work.status_.sentence)
        linear, certificate = solver.dual_point(work.state_).linear, work.certificate_
        until = min(C * largest_step(certificate, linear, tol), C_max)
        points.append(PathPoint(C, until, work.weights_.copy(), certificate, linear, work.n_iter_))
        if until >= C_max:
            return RegularisationPath(points, tol)
        C = until
