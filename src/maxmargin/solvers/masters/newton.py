"""Projected Newton: the second-order master solver on simplexes, orthants and products of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["Curvature", "DenseCurvature", "Newton", "Objective", "projected_newton"]

_ARMIJO = 1e-4  # share of the first-order gain that a step must keep
_RIDGE = 1e-12  # added to the unit diagonal of the scaled curvature: equal planes make it singular
_DAMPING = 1e-10  # keeps a Newton step below 1e10 times the size of the domain where there is no curvature
_ROUNDING = 4e-16  # gaps below this share of f are not resolved by float64
_EDGE = 1e-3  # a variable below this share of its block counts as being at the boundary


class Curvature(Protocol):
    """-f'' along differences of variables, ``e_i - e_j``; j = -1 stands for ``e_i`` alone. i and j are arrays (k,)."""

    def widths(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The curvature along each of them, (k,)."""

    def matrix(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """That between any two of them, (k, k)."""

    def along(self, x: np.ndarray) -> float:
        """The curvature along x (m,)."""


class DenseCurvature:
    """That of a matrix H (m, m)."""

    def __init__(self, H: np.ndarray) -> None:
        self.H = H

    def widths(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        diagonal = self.H.diagonal()
        return diagonal[i] + np.where(j < 0, 0.0, diagonal[j] - 2.0 * self.H[i, j])

    def matrix(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        both = (j >= 0).astype(np.float64)
        cross = self.H[np.ix_(i, j)] * both
        return self.H[np.ix_(i, i)] - cross - cross.T + self.H[np.ix_(j, j)] * np.outer(both, both)

    def along(self, x: np.ndarray) -> float:
        return float(x @ self.H @ x)


class Objective(Protocol):
    """A concave function of the multipliers, m of them."""

    def value(self, q: np.ndarray) -> float:
        """f(q)."""

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """f'(q), shape (m,)."""

    def hessian(self, q: np.ndarray) -> Curvature:
        """The positive semidefinite -f''(q); a generalised one where f is piecewise quadratic."""


class Newton(NamedTuple):
    """What the master hands back.

    ``status`` is "converged" (gap <= tol), "stalled" (no step raises f any more: rounding), "max_iterations" or
    "unbounded" (f grows without curvature along a ray of an orthant; q is the last finite point).
    """

    q: np.ndarray
    value: float
    gap: float
    iterations: int
    status: str


def projected_newton(
    objective: Objective,
    block: np.ndarray,
    total: np.ndarray,
    q0: np.ndarray | None = None,
    tol: float = 1e-9,
    max_iterations: int = 500,
) -> Newton:
    """Maximise a concave f(q) over a product of scaled simplexes and orthants.

    Each simplex eliminates its largest variable k, so that r_j = f'_j - f'_k is the reduced gradient (r = f' on an
    orthant). Variables at the boundary that r pushes outwards are active; the others take the Newton direction::

        (H_ff - H_fk - H_kf + H_kk) d_f = r_f          d_j = -q_j on the active set

    and the step is the longest s tried whose projection [q + s d]_+ raises f enough (Armijo): 1, then the s at which
    half of the variables that fall have reached 0, a quarter, ..., one. When no s does, one exact step between the
    best and the worst variable of a block is taken instead. f never decreases beyond its rounding.

    The gap of a simplex is total * max f' - f'.q >= f(q*) - f(q). On an orthant, where no such bound exists, the
    Newton decrement r.d plus the complementarity -r.q of the active variables takes its place; it equals the distance
    from the optimum up to a factor 2 near a nondegenerate one.

    Parameters
    ----------
    objective : Objective
        value, gradient and hessian (of -f).
    block : int array (m,)
        Block of each variable. A block may have no variables.
    total : float array (n_blocks,)
        Sum of each block; inf makes the block an orthant, 0 fixes its variables at 0.
    q0 : float array (m,), optional
        Warm start; negative entries are cut and simplexes rescaled. Without it simplexes start at their centre
        and orthants at 0.
    tol : float
        Stop when the sum of the block gaps, in units of f, is at most this.
    max_iterations : int
        Largest number of Newton steps.

    Returns
    -------
    Newton
        q with exact zeros where variables were cut, f(q), the gap, the number of steps and the status.

    Notes
    -----
    O(m^3) per step for the Cholesky factor of the free variables, O(m^2) for each trial of the arc.

    References
    ----------
    Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM J. Control and
    Optimization 20(2), 1982. Yu and Rousu, restricted simplicial decomposition on the reduced dual, 2007.
    """
    domain = _Domain(np.asarray(block, np.int64), np.asarray(total, np.float64))
    q = domain.feasible(q0)
    value = objective.value(q)
    gap, lowest, highest, idle = 0.0, np.inf, value, 0
    for iteration in range(max_iterations + 1):
        gradient = objective.gradient(q)
        gap = domain.simplex_gap(q, gradient)
        if gap <= tol and not domain.open.any():
            return Newton(q, value, gap, iteration, "converged")
        pivot = domain.pivots(q)
        here = _Here(domain, objective, q, value, gradient, objective.hessian(q), pivot, domain.reduce(gradient, pivot))
        direction, decrement = _direction(here)
        if domain.open.any():
            gap += decrement
            if gap <= tol:
                return Newton(q, value, gap, iteration, "converged")
            if _is_ray(here, direction):
                return Newton(q, value, np.inf, iteration, "unbounded")
        if idle > 10 or gap <= _ROUNDING * (abs(value) + float(np.abs(gradient) @ q)):
            return Newton(q, value, gap, iteration, "stalled")
        if iteration == max_iterations:
            break
        found = _search_arc(here, direction) or _pairwise_step(here)
        if found is None:
            return Newton(q, value, gap, iteration, "stalled")
        # at the rounding floor steps gain noise only: neither f nor the gap improves visibly
        idle = 0 if found[1] - highest > 1e-14 * abs(value) or gap < 0.5 * lowest else idle + 1
        highest, lowest = max(highest, found[1]), min(lowest, gap)
        q, value = found
    return Newton(q, value, gap, max_iterations, "max_iterations")


class _Domain:
    """The product of simplexes and orthants: its geometry, one line each."""

    def __init__(self, block: np.ndarray, total: np.ndarray) -> None:
        if block.ndim != 1 or total.ndim != 1:
            raise ValueError(f"block and total must be vectors, got shapes {block.shape} and {total.shape}")
        if len(block) and not (block.min() >= 0 and block.max() < len(total)):
            raise ValueError(f"block names blocks {block.min()}..{block.max()} but total has {len(total)} entries")
        if np.isnan(total).any() or (total < 0).any():
            bad = np.flatnonzero(~(total >= 0))[0]
            raise ValueError(f"total must be >= 0 (inf for an orthant), but block {bad} has {total[bad]}")
        self.block, self.total, self.n_blocks = block, total, len(total)
        self.room = total[block]
        self.open = np.isinf(self.room)  # variables of orthants
        self.closed = ~self.open  # variables of simplexes
        self.movable = self.room > 0

    def sums(self, x: np.ndarray) -> np.ndarray:
        return np.bincount(self.block, weights=x, minlength=self.n_blocks)

    def feasible(self, q0: np.ndarray | None) -> np.ndarray:
        q = self.closed.astype(np.float64) if q0 is None else np.maximum(np.array(q0, np.float64), 0.0)
        if q.shape != self.block.shape or not np.isfinite(q).all():
            raise ValueError(f"q0 must be {len(self.block)} finite numbers, one per variable, got shape {q.shape}")
        now = self.sums(q)
        empty = (now[self.block] == 0) & self.closed
        q[empty] = 1.0
        q[self.closed] *= (self.room / self.sums(q)[self.block].clip(min=1e-300))[self.closed]
        return q

    def simplex_gap(self, q: np.ndarray, gradient: np.ndarray) -> float:
        top = np.full(self.n_blocks, -np.inf)
        np.maximum.at(top, self.block, gradient)
        return float(q[self.closed] @ (top[self.block] - gradient)[self.closed])

    def pivots(self, q: np.ndarray) -> np.ndarray:
        """For each variable the largest variable of its simplex; for variables of orthants -1."""
        order = np.lexsort((q, self.block))  # the last of each block is its largest
        largest = np.zeros(self.n_blocks, np.int64)
        largest[self.block[order]] = order
        return np.where(self.closed, largest[self.block], -1)

    def reduce(self, gradient: np.ndarray, pivot: np.ndarray) -> np.ndarray:
        return gradient - np.where(self.closed, gradient[pivot], 0.0) if len(gradient) else gradient

    def arc(self, q: np.ndarray, direction: np.ndarray, s: float, pivot: np.ndarray) -> np.ndarray:
        """[q + s d]_+, the pivot of each simplex taking up the rest; shortened where the pivot would go below 0."""
        new = q + s * direction
        new[new <= 1e-13 * q] = 0.0
        head = np.arange(len(q)) == pivot
        new[head] = q[head]
        taken = self.sums(np.where(self.closed, new - q, 0.0))
        left = self.sums(np.where(head, q, 0.0))
        over = (taken > 0) & (taken >= (1 - 1e-13) * left)
        share = np.where(over, np.minimum(left / np.where(over, taken, 1.0), 1.0), 1.0)[self.block]
        new = np.where(share < 1.0, q + share * (new - q), new)
        new[head] = 0.0
        rest = np.maximum(self.total - self.sums(np.where(self.closed, new, 0.0)), 0.0)
        new[head] = np.where(over, 0.0, rest)[self.block[head]]
        return new

    def lengths(self, q: np.ndarray, direction: np.ndarray, pivot: np.ndarray) -> Iterator[float]:
        """Step lengths to try: 1, then where half of the bends of the arc, a quarter, ..., one lie behind.

        Without curvature a Newton step is many orders too long; the bends are the scale that matters. Up to the first
        bend the arc is straight, where a Newton step gains, so shorter steps are for objectives with kinks only.
        """
        taken = self.sums(np.where(self.closed, direction, 0.0))[self.block]
        fall = np.where(np.arange(len(q)) == pivot, taken, -direction)
        falling = (fall > 0) & (q > 0)
        bends = np.sort(q[falling] / fall[falling])
        bends = bends[bends < 1.0]
        yield 1.0
        k = len(bends)
        while k > 0:
            k //= 2
            yield float(bends[k])
        first = float(bends[0]) if len(bends) else 1.0
        for halving in range(1, 50):
            yield first * 0.5**halving


class _Here(NamedTuple):
    """Where the search stands."""

    domain: _Domain
    objective: Objective
    q: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: Curvature
    pivot: np.ndarray
    r: np.ndarray  # the reduced gradient


def _direction(here: _Here) -> tuple[np.ndarray, float]:
    """Two-metric direction and its decrement, the measure of what is left to gain.

    A zero that the joint Newton step would push below 0 breaks the step of all the others on stiff problems, so such
    variables stay where they are and the rest is solved again.
    """
    domain, _, q, _, _, hessian, pivot, r = here
    others = domain.movable & (np.arange(len(q)) != pivot)
    curvature = np.maximum(hessian.widths(np.arange(len(q)), pivot), 0.0)
    size = np.where(domain.closed, domain.room, np.maximum(domain.sums(q), 1.0)[domain.block])
    damping = _DAMPING * np.abs(r) / np.where(domain.movable, size, 1.0)
    scale = curvature + damping
    scale[scale == 0] = 1.0
    # the boundary layer shrinks with the distance from the optimum, so that in the end only exact zeros are active
    distance = domain.sums(np.where(others, np.abs(q - np.maximum(q + r / scale, 0.0)), 0.0))[domain.block]
    active = others & (q <= np.minimum(_EDGE * size, distance)) & (r <= 0)
    direction = np.where(active & (r < 0), -q, 0.0)
    left = -float(r[active] @ q[active])
    free = np.flatnonzero(others & ~active)
    matrix = hessian.matrix(free, pivot[free])
    while len(free):
        step = _solve(matrix, damping[free], scale[free], r[free])
        held = (q[free] == 0) & (step < 0)
        if not held.any():
            direction[free] = step
            left += max(0.0, float(r[free] @ step))
            break
        left += float((r[free[held]] ** 2 / scale[free[held]]).sum())  # what each of them could gain alone
        free, matrix = free[~held], matrix[np.ix_(~held, ~held)]
    return direction, left


def _solve(matrix: np.ndarray, damping: np.ndarray, scale: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Solve (matrix + diag(damping)) d = r after scaling to a unit diagonal; the diagonal alone when it is not PD."""
    root = 1.0 / np.sqrt(scale)
    scaled = matrix * np.outer(root, root)
    unit = scaled.diagonal() + damping * root * root
    for ridge in (_RIDGE, 1e3 * _RIDGE, 1e6 * _RIDGE):
        np.fill_diagonal(scaled, unit + ridge)
        try:
            solution = root * cho_solve(cho_factor(scaled, lower=True), root * r)
        except (LinAlgError, ValueError):
            continue
        if np.isfinite(solution).all():
            return solution
    return r / scale


def _is_ray(here: _Here, direction: np.ndarray) -> bool:
    """Whether f grows linearly for ever along the part of the direction that enters the orthants."""
    ray = np.where(here.domain.open, np.maximum(direction, 0.0), 0.0)
    longest = ray.max(initial=0.0)
    if longest == 0.0:
        return False
    ray /= longest
    slope = float(here.gradient @ ray)
    alone = here.hessian.widths(np.arange(len(ray)), np.full(len(ray), -1))
    if slope <= 0 or here.hessian.along(ray) > 1e-14 * alone.max() * (ray @ ray):
        return False
    far = here.q + 1e8 * (1.0 + here.q.max()) * ray  # a kink of f may lie ahead: look whether the slope survives
    return float(here.objective.gradient(far) @ ray) >= (1 - 1e-6) * slope


def _accepts(here: _Here, new: np.ndarray, slope: float) -> float | None:
    """f(new) when the step gains enough, else None.

    Close to the optimum the gain drowns in the rounding of f. There the mean of the slopes at both ends decides,
    which is the exact relative gain of a quadratic.
    """
    q, value, r = here.q, here.value, here.r
    after = here.objective.value(new)
    if not np.isfinite(after):
        return None
    gain = after - value
    if gain >= _ARMIJO * slope:
        return after
    if gain < -1e-12 * (abs(value) + abs(slope) + float(np.abs(r) @ q)):
        return None
    r_after = here.domain.reduce(here.objective.gradient(new), here.pivot)
    return after if 0.5 * float((r + r_after) @ (new - q)) >= _ARMIJO * slope else None


def _search_arc(here: _Here, direction: np.ndarray) -> tuple[np.ndarray, float] | None:
    for s in here.domain.lengths(here.q, direction, here.pivot):
        new = here.domain.arc(here.q, direction, s, here.pivot)
        slope = float(here.r @ (new - here.q))
        after = _accepts(here, new, slope) if slope > 0 else None
        if after is not None:
            return new, after
    return None


def _pairwise_step(here: _Here) -> tuple[np.ndarray, float] | None:
    """Exact step from the worst to the best variable of one simplex, or of one variable of an orthant."""
    domain, _, q, _, gradient, hessian, *_ = here
    best = (0.0, 0, -1, 0.0)  # predicted gain, variable to raise, variable to lower (-1: none), step
    rise, fall = np.full(domain.n_blocks, -1), np.full(domain.n_blocks, -1)
    order = np.argsort(gradient, kind="stable")
    rise[domain.block[order]] = order
    down = order[::-1][q[order[::-1]] > 0]
    fall[domain.block[down]] = down
    pairs = (rise >= 0) & (fall >= 0) & (rise != fall) & np.isfinite(domain.total)
    rise, fall = rise[pairs], fall[pairs]
    for i, j, curve in zip(rise, fall, hessian.widths(rise, fall), strict=True):
        slope = gradient[i] - gradient[j]
        step = q[j] if curve * q[j] <= slope else slope / curve
        best = max(best, (slope * step - 0.5 * curve * step * step, int(i), int(j), step))
    free = np.flatnonzero(domain.open & ((gradient > 0) | (q > 0)))
    for i, curve in zip(free, hessian.widths(free, np.full(len(free), -1)), strict=True):
        if curve <= 0:
            step = 1.0 + q[i] if gradient[i] > 0 else -q[i]
        else:
            step = max(gradient[i] / curve, -q[i])
        best = max(best, (gradient[i] * step - 0.5 * curve * step * step, int(i), -1, step))
    predicted, i, j, step = best
    while predicted > 0 and abs(step) > 1e-300:
        new = q.copy()
        new[i] += step
        if j >= 0:
            new[j] = 0.0 if step == q[j] else new[j] - step
        if np.array_equal(new, q):
            return None
        slope = step * (gradient[i] - (gradient[j] if j >= 0 else 0.0))
        pivot = np.where(domain.closed, j, -1)
        after = _accepts(here._replace(pivot=pivot, r=domain.reduce(gradient, pivot)), new, slope)
        if after is not None:
            return new, after
        step *= 0.5
    return None
