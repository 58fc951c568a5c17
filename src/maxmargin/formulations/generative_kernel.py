"""Compiled kernels of the generative formulation: theta in closed form, lambda eliminated, the best shrink."""

from __future__ import annotations

import math

import numpy as np

from maxmargin.kernel import kernel

MOST_STEPS = 100  # of the one-dimensional searches; six are usual
FOLLOW_STEPS = 8  # of Newton's method from a solution nearby
# kernels that both sum and write are not fast: their results must not depend on where short tables lie in memory


@kernel("float64(float64)")
def wright_omega(z):
    """The solution w of ``w + ln w = z``, to a few units of the last place.

    Two steps of fourth order from a series. Lawrence, Corless, Jeffrey 2012, Algorithm 917.
    """
    if z < -36.0:
        return math.exp(z)
    if z > 1e17:
        return z
    if z <= -2.0:
        w = math.exp(z)
        w *= 1.0 - w + 1.5 * w * w
    elif z < 1.0 + math.pi:
        y = z - 1.0
        w = 1.0 + y * (1.0 / 2.0 + y * (1.0 / 16.0 - y * (1.0 / 192.0 + y / 3072.0)))
    else:
        log = math.log(z)
        w = z - log + log / z
    for _ in range(2):
        r = z - w - math.log(w)
        t = 2.0 * (w + 1.0) * (w + 1.0 + 2.0 * r / 3.0)
        w *= 1.0 + r / (w + 1.0) * (t - r) / (t - 2.0 * r)
    return w


@kernel("float64(float64, float64, float64)")
def newton_theta(s, L, gamma):
    """The theta with ``e^(L + theta) + gamma theta = s`` by Newton's method, falling from an upper bound of it."""
    x = s / gamma
    if s > 0.0:
        x = min(x, max(math.log(s) - L, 0.0))
    for _ in range(MOST_STEPS):
        grown = math.exp(L + x)
        step = (grown + gamma * x - s) / (grown + gamma)
        x -= step
        if abs(step) <= 1e-15 * max(1.0, abs(x)):
            break
    return x


@kernel("float64(float64[::1], float64[::1], int64, float64[::1])", fast=False, borrows=True)
def solve_table(s, gamma, newton, theta):
    """Of one table theta and the least lambda >= 0 with ``lambda e^theta + gamma theta = s`` and ``1'e^theta <= 1``.

    With L = ln lambda, theta is closed (Wright omega) and ``ln 1'e^theta`` falls in L with a slope between -1 and 0:
    Newton steps, kept inside a bracket. ``theta`` (size of the table,) receives the answer, lambda is returned. O(size)
    a step. With ``newton`` theta comes from Newton's method too, in place of the closed form.
    """
    top, positive = -np.inf, 0.0
    for q in range(len(s)):
        theta[q] = s[q] / gamma[q]
        top = max(top, theta[q])
        positive += max(s[q], 0.0)
    total = 0.0
    for q in range(len(s)):
        total += math.exp(theta[q] - top)
    if top + math.log(total) <= 0.0:  # the constraint does not bind
        return 0.0
    L, low, high = math.log(max(positive, gamma[0])), -np.inf, np.inf  # the root is sum(s - gamma theta)
    for _ in range(MOST_STEPS):
        total, slope = 0.0, 0.0
        for q in range(len(s)):
            ratio, log = s[q] / gamma[q], math.log(gamma[q]) - L
            z = ratio - log
            if newton:
                theta[q] = newton_theta(s[q], L, gamma[q])
                w = math.exp(theta[q] - log)
            else:
                w = wright_omega(z)
                theta[q] = ratio - w if z < 1.0 else math.log(w) + log  # each form cancels where the other is used
            p = math.exp(theta[q])
            total += p
            slope += p * w / (1.0 + w)
        excess = math.log(total)
        if excess > 0.0:
            low = L
        else:
            high = L
        if abs(excess) <= 1e-15:
            break
        new = L + excess * total / slope if slope > 0.0 else np.inf
        if not (low < new < high):
            if np.isinf(low):
                new = high - 20.0
            elif np.isinf(high):
                new = low + 20.0
            else:
                new = 0.5 * (low + high)
        if abs(new - L) <= 2.3e-16 * max(1.0, abs(L)):
            break
        L = new
    return math.exp(L)


@kernel("float64(float64[::1], float64[::1], float64, float64[::1], float64[::1])", fast=False, borrows=True)
def follow_table(s, gamma, lam, theta, p):
    """:func:`solve_table` from a solution of nearby s: ``theta``, which receives the new one, and ``lam``.

    Newton's method on both equations at once takes three or four steps, each of one exponential an entry and nothing
    else; where it does not settle down the search from scratch does. ``p`` (size of the table,) is scratch.
    """
    n = len(s)
    for _ in range(FOLLOW_STEPS if lam > 0.0 else 0):
        total, inner, mass = 0.0, 0.0, 0.0
        for q in range(n):
            p[q] = math.exp(theta[q])
            grown = lam * p[q]
            scaled = p[q] / (grown + gamma[q])
            total += p[q]
            inner += scaled * (grown + gamma[q] * theta[q] - s[q])
            mass += scaled * p[q]
        change = (total - 1.0 - inner) / max(mass, 1e-300)
        longest = 0.0
        for q in range(n):
            grown = lam * p[q]
            step = (s[q] - grown - gamma[q] * theta[q] - p[q] * change) / (grown + gamma[q])
            longest = max(longest, abs(step))
            theta[q] += step
        lam += change
        if not (longest < 3.0 and lam > 0.0):
            break
        if longest <= 1e-8:  # the next step would be of the order of its square
            return lam
    return solve_table(s, gamma, 0, theta)


@kernel("void(int64[::1], float64[::1], float64[::1], int64, float64[::1], float64[::1])")
def solve_tables(starts, s, gamma, newton, theta, lam):
    """:func:`solve_table` for all tables; ``theta`` (d,) and ``lam`` (J,) receive the answer."""
    for j in range(len(starts) - 1):
        begin, end = starts[j], starts[j + 1]
        lam[j] = solve_table(s[begin:end], gamma[begin:end], newton, theta[begin:end])


@kernel("void(int64[::1], float64[::1], float64[::1])")
def table_entropies(starts, v, entropy):
    """``-v_j . ln(v_j / 1'v_j)`` of each table into ``entropy`` (J,); -inf where an entry is negative."""
    for j in range(len(starts) - 1):
        total, value, least = 0.0, 0.0, 0.0
        for q in range(starts[j], starts[j + 1]):
            total += v[q]
            least = min(least, v[q])
        if least < 0.0:
            entropy[j] = -np.inf
            continue
        for q in range(starts[j], starts[j + 1]):
            if v[q] > 0.0:
                value -= v[q] * math.log(v[q] / total)
        entropy[j] = value


@kernel("float64(int64[::1], float64[::1], float64[::1], float64, float64, float64[::1], float64[::1])")
def best_shrink(starts, c, u, linear, quadratic, scale, entropy):
    """The largest of ``t linear - t^2 quadratic / 2 + sum_j H_j(c + t u)`` over t in [0, 1] where ``c + t u >= 0``.

    Concave in t: bisection on the slope. ``scale[0]`` receives t, and ``entropy`` (J,) the H_j there, which the value
    that is returned leaves out. O(d) per step.
    """
    most = 1.0
    for q in range(len(c)):
        if u[q] < 0.0:
            most = min(most, -c[q] / u[q])
    low, high = 0.0, most
    t = most
    for _ in range(MOST_STEPS):
        slope = linear - t * quadratic
        for j in range(len(starts) - 1):
            total = 0.0
            for q in range(starts[j], starts[j + 1]):
                total += max(c[q] + t * u[q], 0.0)
            for q in range(starts[j], starts[j + 1]):
                v = c[q] + t * u[q]
                if v > 0.0:
                    slope -= u[q] * math.log(v / total)
                elif u[q] != 0.0:
                    slope = -np.inf  # an entry has just reached 0: the slope there is minus infinity
        if slope >= 0.0:
            low = t
            if t == most:
                break
        else:
            high = t
        if high - low <= 1e-12 * most:
            break
        t = 0.5 * (low + high)
    scale[0] = low
    inside = np.empty(len(c))
    for q in range(len(c)):
        inside[q] = max(c[q] + low * u[q], 0.0)
    table_entropies(starts, inside, entropy)
    return low * linear - 0.5 * low * low * quadratic
