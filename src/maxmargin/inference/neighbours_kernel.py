"""Compiled matching with bonuses for neighbouring links, by a Lagrangian bound and branching.

    max_y  value(y) + bonus[0] #{(i, j), (i + 1, j + 1) in y} + bonus[1] #{(i, j), (i + 1, j - 1) in y}

where value(y) is that of :mod:`maxmargin.inference.matching_kernel`. The product of two links that touch is at most a
linear function of them, whatever a number l between 0 and 1:

    b z_p z_q <= b (l z_p + (1 - l) z_q)   for b >= 0,        b z_p z_q <= l b (z_p + z_q - 1)   for b < 0

so the best matching with the scores that this adds is an upper bound, and the smallest such bound is that of the linear
program over the matching polytope. Subgradient steps lower it; the matchings on the way are candidates. What gap is
left is closed by branching on a pair that is linked or not, as far as a number of matchings goes. The bound that is
returned holds in any case. Lacoste-Julien et al. 2006, Word alignment via quadratic assignment. Komodakis et al. 2007,
MRF optimization via dual decomposition, for such steps.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.inference.matching_kernel import FORCED, FREE, best_links

N_STEPS = 2  # neighbours of (i, j): (i + 1, j + 1) and (i + 1, j - 1)
FIRST_ROUNDS, ROUNDS = 40, 10  # subgradient steps before branching, and of every branch
DEEPEST = 64  # branches on branches
CLOSE = 1e-9  # relative: a bound this close to the best matching is met


@register_jitable
def neighbour(p, d, n, m, down=1):
    """The pair below p, along the diagonal (d = 0) or across it, -1 when there is none; with ``down`` -1 that above."""
    i, j = p // m + down, p % m + (down if d == 0 else -down)
    return i * m + j if 0 <= i < n and 0 <= j < m else -1


@register_jitable
def quadratic_value(n, m, score, bonus, state):
    """The scores of the links in ``state`` and their bonuses; prices are not in it."""
    total = 0.0
    for p in range(n * m):
        if state[p] != FREE:
            total += score[p]
            for d in range(N_STEPS):
                q = neighbour(p, d, n, m)
                if q >= 0 and state[q] != FREE:
                    total += bonus[d]
    return total


@register_jitable
def forbid_hopeless(n, m, score, bonus):
    """Scores of -inf for pairs that cost more than all bonuses of their neighbours, which no best matching needs."""
    changed = True
    while changed:
        changed = False
        for p in range(n * m):
            if score[p] == -np.inf:
                continue
            most = score[p]
            for d in range(N_STEPS):
                for down in (1, -1):
                    q = neighbour(p, d, n, m, down)
                    if q >= 0 and score[q] > -np.inf:
                        most += max(bonus[d], 0.0)
            if most <= 0.0:
                score[p], changed = -np.inf, True


@register_jitable
def relaxed(n, m, score, bonus, share, fixed, table):
    """The scores ``table`` of the relaxation with shares l (N_STEPS, n m), and its constant.

    ``fixed`` is 1 for pairs that must be linked and -1 for those that must not.
    """
    constant = 0.0
    for p in range(n * m):
        table[p] = -np.inf if fixed[p] < 0 else score[p]
    for d in range(N_STEPS):
        b = bonus[d]
        if b == 0.0:
            continue
        for p in range(n * m):
            q = neighbour(p, d, n, m)
            if q < 0 or table[p] == -np.inf or table[q] == -np.inf:
                continue
            if b > 0.0:
                table[p] += b * share[d, p]
                table[q] += b * (1.0 - share[d, p])
            else:
                table[p] += b * share[d, p]
                table[q] += b * share[d, p]
                constant -= b * share[d, p]
    return constant


@register_jitable
def slope(d, p, q, bonus, state):
    """How the bound changes with the share of two neighbours: 0 where it is exact, or both agree."""
    linked = (1.0 if state[p] != FREE else 0.0), (1.0 if state[q] != FREE else 0.0)
    return bonus[d] * (linked[0] - linked[1] if bonus[d] > 0.0 else linked[0] + linked[1] - 1.0)


@register_jitable
def improve_shares(n, m, table, bonus, share, slopes, state, gap):
    """A subgradient step of Polyak's length, with ``slopes`` (N_STEPS, n m) as scratch; returns whether any moved."""
    square = 0.0
    for d in range(N_STEPS):
        for p in range(n * m):
            q, slopes[d, p] = neighbour(p, d, n, m), 0.0
            if q >= 0 and table[p] > -np.inf and table[q] > -np.inf:
                g = slope(d, p, q, bonus, state)
                if (g > 0.0 and share[d, p] > 0.0) or (g < 0.0 and share[d, p] < 1.0):
                    slopes[d, p] = g
                    square += g * g
    if square == 0.0:
        return False
    for d in range(N_STEPS):
        for p in range(n * m):
            share[d, p] = min(max(share[d, p] - gap * slopes[d, p] / square, 0.0), 1.0)
    return True


@register_jitable
def disputed(n, m, table, bonus, share, state, fixed):
    """The pair at which the relaxation gives most away, for branching; -1 when there is none."""
    found, most = -1, 0.0
    for p in range(n * m):
        if fixed[p] != 0 or table[p] == -np.inf:
            continue
        lost = 0.0
        for d in range(N_STEPS):
            if bonus[d] == 0.0:
                continue
            for down in (1, -1):
                q = neighbour(p, d, n, m, down)
                if q >= 0 and table[q] > -np.inf:
                    lost += abs(slope(d, p, q, bonus, state))
        if lost > most:
            found, most = p, lost
    return found


@register_jitable
def best_neighbours(n, m, score, left, right, bonus, limit, state, used, distance, back, fresh):
    """The links of largest value with bonuses, into ``state``; returns an upper bound less their value, >= 0.

    At most ``limit`` matchings are solved, and then what is open counts for the bound. ``score`` loses pairs that no
    best matching has; the others are scratch as in :func:`~maxmargin.inference.matching_kernel.best_links`.
    """
    pairs = n * m
    forbid_hopeless(n, m, score, bonus)
    table, share, slopes = np.empty(pairs), np.full((N_STEPS, pairs), 0.5), np.empty((N_STEPS, pairs))
    fixed, found = np.zeros(pairs, np.int8), np.zeros(pairs, np.int32)
    cell, second, above = np.empty(DEEPEST, np.int64), np.zeros(DEEPEST, np.int8), np.empty(DEEPEST)
    best, proven, depth, solved = 0.0, 0.0, 0, 0  # the empty matching
    while True:
        # the bound of this branch
        rounds, bound = (FIRST_ROUNDS if solved == 0 else ROUNDS), np.inf
        for _ in range(rounds):
            if solved >= limit:
                break
            constant = relaxed(n, m, score, bonus, share, fixed, table)
            state[:pairs] = FREE
            used[: n + m] = 0
            feasible = True
            for p in range(pairs):
                if fixed[p] > 0:
                    state[p] = FORCED
                    used[p // m] += 1
                    used[n + p % m] += 1
                    feasible = feasible and used[p // m] <= len(left) and used[n + p % m] <= len(right)
            if not feasible:
                bound = -np.inf
                break
            best_links(n, m, table, left, right, 0, state, used, distance, back, fresh)
            solved += 1
            paid = 0.0
            for v in range(n + m):
                for k in range(used[v]):
                    paid += left[k] if v < n else right[k]
            value = constant - paid
            for p in range(pairs):
                if state[p] != FREE:
                    value += table[p]
            bound = min(bound, value)
            own = quadratic_value(n, m, score, bonus, state) - paid
            if own > best:
                best = own
                found[:] = state[:pairs]
            close = CLOSE * (abs(best) + 1.0)
            if bound <= best + close or not improve_shares(n, m, table, bonus, share, slopes, state, value - best):
                break
        bound = min(bound, above[depth - 1] if depth > 0 else np.inf)
        p = -1
        if bound > best + CLOSE * (abs(best) + 1.0) and solved < limit and depth < DEEPEST:
            p = disputed(n, m, table, bonus, share, state, fixed)
        if p >= 0:
            cell[depth], second[depth], above[depth] = p, 0, bound
            fixed[p] = 1 if state[p] != FREE else -1
            depth += 1
            continue
        proven = max(proven, bound)
        while depth > 0 and (second[depth - 1] or solved >= limit):
            depth -= 1
            if not second[depth]:
                proven = max(proven, above[depth])
            second[depth] = 0
            fixed[cell[depth]] = 0
        if depth == 0:
            break
        second[depth - 1] = 1
        fixed[cell[depth - 1]] = -fixed[cell[depth - 1]]
    state[:pairs] = found
    return max(proven - best, 0.0)
