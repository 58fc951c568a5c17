"""Ramp losses of generative models over enumerated outputs: the objective, and minima of majorants by a conic solver.

    J(theta) = c . (ln c - theta) + pull/2 |theta - ln c|^2 + sum_k C_k [ r_k(theta; above) - r_k(theta; below) ]
    r_k(theta; weight) = max_s (weight cost_k(s) - a_k(s) . theta)

`planes[k] = (A, cost)` has a row for every output but the true one, whose plane is zero; `starts` bounds the tables.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from maxmargin.formulations.ramp import RampProblem
from reference.generative import ArrayOracle, generative_problem, optimum


def parts(planes, theta, weight: float) -> np.ndarray:
    """max_s (weight cost_k(s) - a_k(s) . theta) of each example."""
    return np.array([max(0.0, (weight * cost - A @ theta).max(initial=0.0)) for A, cost in planes])


def anchor(c, starts) -> np.ndarray:
    """ln c, every table normalised."""
    return np.concatenate([np.log(c[a:b] / c[a:b].sum()) for a, b in pairwise(starts)])


def ramp_objective(planes, C, c, starts, theta, above: float, below: float, pull: float = 0.0) -> float:
    """J."""
    away = theta - anchor(c, starts)
    losses = parts(planes, theta, above) - parts(planes, theta, below)
    return float(-c @ away + 0.5 * pull * away @ away + np.asarray(C) @ losses)


def majorant_minimum(planes, C, c, starts, outputs, above: float, below: float, pull: float = 0.0) -> tuple:
    """(value, theta) with the outputs that attain the concave part held fixed; -1 is the true one."""
    shift, offset = np.zeros(len(c)), 0.0
    for weight, (A, cost), s in zip(C, planes, outputs, strict=True):
        if s >= 0:
            shift, offset = shift + weight * A[s], offset - weight * below * cost[s]
    convex = [(A, above * cost) for A, cost in planes]
    centre = anchor(c, starts) if pull else None
    value, theta = optimum(convex, C, c, starts, gamma=pull, centre=centre, u=-shift)
    return value + offset, theta


def next_minimum(planes, C, c, starts, theta, above: float, below: float, pull: float = 0.0, ties=1e-9) -> tuple:
    """(value, theta) of the majorant that touches J at theta, which is stationary when both are its own.

    Where outputs tie there are several majorants; theta is stationary when it is the minimum of one, so the highest
    minimum is returned. Without ``ties`` the truth and then the first output go before others.
    """
    tied = []
    for A, cost in planes:
        values = np.insert(below * cost - A @ theta, 0, 1e-12)  # the first is the truth
        near = np.flatnonzero(values >= values.max() - ties)
        tied.append([int(s) - 1 for s in (near if ties else near[:1])])
    every = (majorant_minimum(planes, C, c, starts, list(s), above, below, pull) for s in product(*tied))
    return max(every, key=lambda found: found[0])


def global_minimum(planes, C, c, starts, above: float, below: float) -> tuple:
    """The least of the minima over all choices of one output an example for the concave part: J is their minimum."""
    every = product(*(range(-1, len(cost)) for _, cost in planes))
    return min(
        (majorant_minimum(planes, C, c, starts, outputs, above, below) for outputs in every), key=lambda found: found[0]
    )


def ramp_problem(planes, C, c, starts, above: float, below: float, pull: float = 0.0) -> RampProblem:
    """The library's problem over the same planes."""
    convex = generative_problem([(A, above * cost) for A, cost in planes], C, c, starts, pull=pull)
    concave = ArrayOracle([(A, below * cost) for A, cost in planes], len(c))
    return RampProblem(convex, concave, below, convex)
