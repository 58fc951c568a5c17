"""Unit margins with an L2 penalty, the quadratic program that linear programs are compared with: every dual solver
reaches the optimum of a conic solver over all outputs of chains and classes."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from agreement.every_solver import DUAL, ONE_PLANE
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.solvers.driver import run
from reference.linear_programs import unit
from reference.problems import chain_planes, multiclass_planes, random_chains, random_multiclass
from reference.qp import objective, solve_primal

C = 0.1


def sample(kind):
    """A bound model, and the planes of all outputs."""
    if kind == "chain":
        X, y = random_chains(4, 3, 2, lengths=(1, 4), seed=5)
        return mm.Chain().bind(X, y), chain_planes(X, y, 3).planes
    X, y = random_multiclass(6, 3, 2, seed=5)
    return mm.Multiclass().bind(X, y), multiclass_planes(X, y, 3).planes


@pytest.mark.parametrize("name", DUAL)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_unit_margins_reach_the_optimum(kind, loss, name):
    squared = loss == "squared_hinge"
    bound, planes = sample(kind)
    planes, weight = [unit(psi, cost) for psi, cost in planes], np.full(bound.n_examples, C * (2.0 if squared else 1.0))
    optimum = solve_primal(planes, weight, squared=squared).objective
    problem = RescaledHinge(loss, "unit").problem(bound, C=C)
    result = run(DUAL[name].engine(problem, 0), problem, tol=1e-8, max_passes=2000)
    for row in result.history:
        assert row["dual"] <= optimum * (1 + 1e-7) and optimum <= row["primal"] * (1 + 2e-7)
    value = objective(planes, weight, result.weights, squared=squared)
    assert max(value / optimum - 1.0, 1.0 - result.certificate.dual / optimum) <= (1e-3 if name in ONE_PLANE else 1e-6)
