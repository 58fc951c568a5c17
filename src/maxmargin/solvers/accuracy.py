"""How exactly the blocks of a working set are solved."""

from __future__ import annotations

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.planes import Planes
from maxmargin.solvers.state import FIRST_TAU, DualState

__all__ = ["Scales", "block_accuracy"]

TAU_SHARE = 0.03  # share of the gap that blocks solved to within tau may leave, all together

Scales = tuple[np.ndarray, np.ndarray]  # of :meth:`~maxmargin.solvers.working_set.WorkingSet.scales`


def block_accuracy(state: DualState, certificate: Certificate, scales: Scales, planes: Planes | None) -> float:
    """tau: what all blocks leave together is at most a share of the gap.

    Gradients within ``tau |b|`` leave ``total tau |b|`` in a block, and ``C_i (tau |b|)^2 / 2`` more when its slack is
    squared. When the dual has hardly moved since the last certificate, tau was too large all the same. ``planes`` are
    those of the certificate, which only groups of examples need.
    """
    totals, largest = scales
    left = TAU_SHARE * max(certificate.gap, 0.0)
    tau = left / max(float(totals @ largest), 1e-300)
    if state.problem.squared and state.members is None:
        tau = min(tau, np.sqrt(2.0 * left / max(float(state.problem.weight @ largest**2), 1e-300)))
    elif state.problem.squared:  # a ray for many examples has no scale of its own: its gradient is what there is
        assert planes is not None
        scale = np.maximum(np.abs(planes.b), largest[planes.example])
        violation = np.maximum(planes.violations(state.w), 0.0)
        tau = min(tau, TAU_SHARE * float((violation / np.maximum(scale, 1e-300)).max(initial=0.0)))
    if certificate.dual - state.reached <= 1e-3 * certificate.gap:
        tau = min(tau, 0.01 * state.tau)
    return float(np.clip(tau, 1e-14, FIRST_TAU))
