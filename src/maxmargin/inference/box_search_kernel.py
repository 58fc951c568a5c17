"""Compiled branch and bound for the largest quadratic function of binary variables, with concave bounds.

Wanted is the largest ``f(z) = sum_k gain_k z_k + 1/2 z' P z`` over z in {0, 1}^n, P symmetric with a zero diagonal. For
any diagonal D such that D - P is positive semidefinite, the function

    f(z) + 1/2 sum_k D_k z_k (1 - z_k)

is concave and agrees with f where z is binary, so its maximum over the box [0, 1]^n is an upper bound, and so is that
of any tangent plane of it: no bound waits for a solver to converge. Many weak pairs that exclude each other, where the
linear relaxation sets everything to one half, are no trouble for it.

The search has one of two aims (:func:`objective`): f itself, or the product of cost and violation of slack rescaling;
f is then ``h + mu g`` for points (h, g), with g the sum of the costs.

Hammer, Rubin (1970), Some remarks on quadratic programming with 0-1 variables. Billionnet, Elloumi (2007), Using a
mixed integer quadratic programming solver for the unconstrained quadratic 0-1 problem.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

FREE = -1  # state of a variable that is not set
LARGEST = 128  # variables of a search
CLOSED = 1e-11  # relative: differences below this are rounding
GOALS = 4  # bounds between the best found and the first one that are tried
ROOT_SWEEPS, SWEEPS = 60, 12  # of a concave bound, at the start and further down
POWER_STEPS = 20  # of the power method
POWER, MU, LAM, AIM_SIZE = range(4)  # what a search is for
SUM = -1.0  # in place of the power: f itself


def search_sizes(n: int) -> tuple[int, int]:
    """Integers and floats that :func:`branch` needs as scratch for n variables."""
    return (n + 1) * (n + 3), 2 * (n + 1) * n


@register_jitable
def objective(value, paid, aim):
    """What a search is for, of a point with ``f = value`` and cost ``paid``: -inf where that is none."""
    if aim[POWER] == SUM:
        return value
    height = aim[LAM] + value - aim[MU] * paid
    if paid <= 0.0 or height <= 0.0:
        return -np.inf
    return height * paid ** aim[POWER]


@register_jitable
def least_value(top, aim):
    """The least f of all points whose :func:`objective` is at least ``top``."""
    power, mu = aim[POWER], aim[MU]
    if power == SUM:
        return top
    if top <= 0.0:
        return -aim[LAM]
    if power == 0.0:
        return top - aim[LAM]
    paid = (power * top / mu) ** (1.0 / (1.0 + power))
    return top / paid**power + mu * paid - aim[LAM]


@register_jitable
def greatest_objective(value, aim):
    """The largest :func:`objective` of all points whose f is at most ``value``."""
    power, mu = aim[POWER], aim[MU]
    if power == SUM:
        return value
    reach = max(aim[LAM] + value, 0.0)
    if power == 0.0:
        return reach
    paid = power * reach / ((1.0 + power) * mu)
    return paid**power * (reach - mu * paid)


@register_jitable
def curvatures(P, D, scratch):
    """Fill D (n,) so that D - P is positive semidefinite, and as small as one factor for all rows allows.

    D is in proportion to the lengths of the rows of P; the factor is estimated by the power method and proven by a
    Cholesky factorisation, in ``scratch`` (n, n). O(n^3).
    """
    n = len(D)
    largest = 0.0
    for k in range(n):
        square = 0.0
        for j in range(n):
            square += P[k, j] * P[k, j]
        D[k] = np.sqrt(square)
        largest = max(largest, D[k])
    if largest == 0.0:
        return
    for k in range(n):
        D[k] = np.sqrt(max(D[k], 1e-3 * largest))  # for now its root
    x, y, shift, factor = scratch[0], scratch[1] if n > 1 else scratch[0], 0.0, 0.0
    for k in range(n):
        x[k] = 1.0 + 0.37 * ((k * 7919) % 13)  # no symmetry to be stuck in
        row = 0.0
        for j in range(n):
            row += abs(P[k, j]) / (D[k] * D[j])
        shift = max(shift, row)
    for _ in range(POWER_STEPS if n > 1 else 0):
        norm, product = 0.0, 0.0
        for k in range(n):
            y[k] = shift * x[k]
            for j in range(n):
                y[k] += P[k, j] * x[j] / (D[k] * D[j])
            norm += x[k] * x[k]
            product += x[k] * y[k]
        factor = product / norm - shift
        size = np.sqrt(product / norm) + 1e-300
        for k in range(n):
            x[k] = y[k] / (size * size)
    factor = max(factor, 1e-3) * 1.01
    for k in range(n):
        D[k] *= D[k]
    while not is_definite(P, D, factor, scratch):
        factor *= 1.05
    for k in range(n):
        D[k] *= factor


@register_jitable
def is_definite(P, D, factor, L):
    """Whether ``factor D - P`` is positive definite, by Cholesky's factorisation into L."""
    n = len(D)
    for k in range(n):
        for j in range(k + 1):
            total = factor * D[k] if j == k else -P[k, j]
            for i in range(j):
                total -= L[k, i] * L[j, i]
            if j < k:
                L[k, j] = total / L[j, j]
            elif total <= 1e-12 * factor * D[k]:
                return False
            else:
                L[k, k] = np.sqrt(total)
    return True


@register_jitable
def move(P, D, k, step, z, gradient):
    """Change variable k by ``step``; the gradient follows. O(n)."""
    z[k] += step
    for j in range(len(z)):
        gradient[j] += P[k, j] * step
    gradient[k] -= D[k] * step


@register_jitable
def slack_of(k, z, gradient):
    """What the tangent plane gains when variable k moves to its better end."""
    return max(gradient[k] * (1.0 - z[k]), -gradient[k] * z[k])


@register_jitable
def concave_bound(gain, P, D, state, z, gradient, enough, sweeps):
    """Raise the concave function over the free variables; returns the bound of its tangent plane at z.

    Coordinate by coordinate; ends when the bound falls to ``enough`` or hardly differs from the value. O(n^2) a sweep.
    """
    n, upper = len(z), np.inf
    for sweep in range(sweeps):
        for k in range(n):
            if state[k] != FREE:
                continue
            if D[k] > 0.0:
                step = min(max(z[k] + gradient[k] / D[k], 0.0), 1.0) - z[k]
            else:
                step = (1.0 if gradient[k] > 0.0 else 0.0) - z[k]
            if step != 0.0:
                move(P, D, k, step, z, gradient)
        if sweep % 3 == 2 or sweep + 1 == sweeps:
            value, left = 0.0, 0.0
            for k in range(n):
                # the gradient is gain + P z + D / 2 - D z
                value += 0.5 * z[k] * (gain[k] + gradient[k] + 0.5 * D[k])
                if state[k] == FREE:
                    left += slack_of(k, z, gradient)
            upper = value + left
            if upper <= enough or left <= 1e-3 * max(value - enough, 0.0) + CLOSED:
                break
    return upper


@register_jitable
def start_box(gain, P, D, z, gradient):
    """The gradient at z."""
    for k in range(len(z)):
        gradient[k] = gain[k] + 0.5 * D[k] - D[k] * z[k]
        for j in range(len(z)):
            gradient[k] += P[k, j] * z[j]


@register_jitable
def settle(P, D, upper, enough, state, z, gradient):
    """Set all variables of which the tangent plane, with bound ``upper``, rules out one value; how many stay free."""
    free = 0
    for k in range(len(z)):
        if state[k] == FREE:
            rest = upper - slack_of(k, z, gradient)
            if rest + gradient[k] * (1.0 - z[k]) <= enough:
                state[k] = 0
            elif rest - gradient[k] * z[k] <= enough:
                state[k] = 1
            else:
                free += 1
    for k in range(len(z)):
        if state[k] != FREE and z[k] != state[k]:
            move(P, D, k, state[k] - z[k], z, gradient)
    return free


@register_jitable
def most_divided(state, z):
    """The free variable nearest to one half."""
    found, least = -1, 2.0
    for k in range(len(z)):
        if state[k] == FREE and abs(z[k] - 0.5) < least:
            found, least = k, abs(z[k] - 0.5)
    return found


@register_jitable
def value_of(gain, P, cost, state):
    """f and the cost of binary variables."""
    total, paid = 0.0, 0.0
    for k in range(len(gain)):
        if state[k] != 0:
            paid += cost[k]
            total += gain[k]
            for j in range(k):
                if state[j] != 0:
                    total += P[k, j]
    return total, paid


@register_jitable
def rounded(z, side):
    """As many variables as z adds up to, those of largest z: into ``side``."""
    side[:] = 0
    for _ in range(int(z.sum() + 0.5)):
        found = -1
        for k in range(len(z)):
            if side[k] == 0 and (found < 0 or z[k] > z[found]):
                found = k
        side[found] = 1


@register_jitable
def ascend(gain, P, cost, aim, side, field):
    """Change one variable, or let two change places, while that raises the objective; returns it.

    The best change of each kind at a time; ``field`` (n,) is scratch. O(n^2) a change.
    """
    n = len(gain)
    value, paid = value_of(gain, P, cost, side)
    for k in range(n):
        field[k] = gain[k]
        for j in range(n):
            if side[j] != 0:
                field[k] += P[k, j]
    top = objective(value, paid, aim)
    for _ in range(4 * n):
        first, second, best = -1, -1, top + CLOSED * max(1.0, abs(top)) if top > -np.inf else top
        for k in range(n):
            sign = 1.0 if side[k] == 0 else -1.0
            found = objective(value + sign * field[k], paid + sign * cost[k], aim)
            if found > best:
                first, second, best = k, -1, found
        if first < 0:
            for k in range(n):
                if side[k] == 0:
                    continue
                for j in range(n):
                    if side[j] == 0:
                        change = field[j] - field[k] - P[k, j]
                        found = objective(value + change, paid + cost[j] - cost[k], aim)
                        if found > best:
                            first, second, best = k, j, found
        if first < 0:
            break
        for k in (first, second):
            if k >= 0:
                sign = 1.0 if side[k] == 0 else -1.0
                value += sign * field[k]
                paid += sign * cost[k]
                side[k] = 1 - side[k]
                for j in range(n):
                    field[j] += sign * P[k, j]
        top = best
    value, paid = value_of(gain, P, cost, side)
    return objective(value, paid, aim)


@register_jitable
def branch(gain, P, D, cost, aim, top, goal, fixed, most, start, best, iwork, fwork):
    """Look for z of larger :func:`objective` than ``top`` and ``goal``: into ``best``, if there is one.

    Returns the larger of its objective and ``top``, an upper bound of all, at least ``goal``, and the number of parts
    looked at, at most ``most``. Variables that are not FREE in ``fixed`` (n,) stay as they are there. ``start`` (n,) is
    where the first bound begins. Depth first; a variable near one half is set next, first to the nearer value. O(n^2) a
    part.
    """
    n = len(gain)
    states, at = iwork[: (n + 1) * n].reshape((n + 1, n)), (n + 1) * n
    chosen, tried, first = iwork[at : at + n + 1], iwork[at + n + 1 : at + 2 * (n + 1)], iwork[at + 2 * (n + 1) :]
    both = fwork[: 2 * (n + 1) * n].reshape((2, n + 1, n))
    points, gradients = both[0], both[1]
    state, z, gradient = states[0], points[0], gradients[0]
    for k in range(n):
        state[k] = fixed[k]
        z[k] = start[k] if fixed[k] == FREE else fixed[k]
    start_box(gain, P, D, z, gradient)
    enough, left, parts, depth = least_value(max(top, goal), aim), -np.inf, 0, 0
    upper = concave_bound(gain, P, D, state, z, gradient, enough, ROOT_SWEEPS)
    size = CLOSED * max(1.0, abs(upper))
    enough += size
    if upper <= enough:
        depth = -1
    elif most <= 0:
        left, depth = upper, -1
    else:
        free = settle(P, D, upper, enough, state, z, gradient)
        chosen[0], tried[0] = most_divided(state, z) if free > 0 else -1, 0
    while depth >= 0:
        state, z, gradient, k = states[depth], points[depth], gradients[depth], chosen[depth]
        if k < 0:  # all is set
            value, paid = value_of(gain, P, cost, state)
            found = objective(value, paid, aim)
            if found > top:
                top = found
                best[:n] = state
                enough = least_value(max(top, goal), aim) + size
            depth -= 1
            continue
        if tried[depth] == 2:
            depth -= 1
            continue
        if tried[depth] == 0:
            first[depth] = 1 if z[k] > 0.5 else 0
        v = first[depth] if tried[depth] == 0 else 1 - first[depth]
        tried[depth] += 1
        state, z, gradient = states[depth + 1], points[depth + 1], gradients[depth + 1]
        state[:] = states[depth]
        z[:] = points[depth]
        gradient[:] = gradients[depth]
        state[k] = v
        move(P, D, k, v - z[k], z, gradient)
        upper = concave_bound(gain, P, D, state, z, gradient, enough, SWEEPS)
        if upper <= enough:
            continue
        if parts >= most:
            left = max(left, upper)
            continue
        parts += 1
        free = settle(P, D, upper, enough, state, z, gradient)
        depth += 1
        chosen[depth], tried[depth] = most_divided(state, z) if free > 0 else -1, 0
    iwork[: (n + 1) * (n + 3)] = 0
    bound = max(top, goal) if left == -np.inf else max(top, goal, greatest_objective(left, aim))
    return top, bound, parts


@register_jitable
def branch_and_bound(gain, P, D, cost, aim, top, bound, fixed, most, start, best, iwork, fwork):
    """:func:`branch` for the best z, and where half of the budget leaves a doubt, for less than ``bound``.

    Depth first leaves the first parts open, with bounds as at the start. So the other half goes into goals between the
    best z found and the bound, by halves: parts below the goal need not be looked into. Returns objective and bound.
    """
    top, limit, _ = branch(gain, P, D, cost, aim, top, -np.inf, fixed, most // 2, start, best, iwork, fwork)
    bound = min(bound, limit)
    low = top
    for _ in range(GOALS if most > 0 else 0):
        low = max(low, top)
        if bound - low <= CLOSED * max(1.0, abs(bound)):
            break
        goal = 0.5 * (low + bound)
        top, limit, _ = branch(gain, P, D, cost, aim, top, goal, fixed, most // (2 * GOALS), start, best, iwork, fwork)
        bound = min(bound, limit)
        if bound > goal:
            low = goal
    return top, max(bound, top)
