"""The rules of a search over cost weights: which weight to try next, and what the answers so far prove.

Every output y is a point (h, g) of the plane: h = lam - w . psi(y) and g = cost(y). Wanted is the largest ``g^p h``,
p = 1 for slack rescaling and 1/2 for its square root. The argmax at cost weight mu answers with the point of largest
``h + mu g``, and proves that ``h + mu g <= B`` for all points. Compiled searches and those in plain Python share these.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

LOW, HIGH = 0, 1  # rows of the answers kept: best weights at least, and below, those that they were found at
H, G, AT, BOUND = range(4)  # columns: the point, its cost weight (0: there is none yet), what it proves
GROWTH = 4.0  # of the cost weight while no answer lies on the other side ...
LEAP = 4096.0  # ... and at most; so far where the true output wins, whose margin from all others must be shown


@register_jitable
def raised(cost, power):
    """``cost^p``; the powers that searches use take no time."""
    if power == 1.0:
        return cost
    return np.sqrt(cost) if power == 0.5 else cost**power


@kernel("float64(float64[:, ::1], float64, float64, float64, float64, float64)", borrows=True)
def next_cost_weight(kept, mu, h, g, bound, power):
    """Keep the answer (h, g) at cost weight mu and its bound; the cost weight to try next, or 0 when nothing is left.

    ``g^p h`` touches the line ``h + mu g = B`` in a point with ``p h = mu g``, so answers with ``mu g <= p h`` ask for
    a larger cost weight and others for a smaller one. With answers on both sides the next line runs through both: it
    finds a corner of the hull between them, or proves that there is none. Until then the line that touches at the
    answer is next, or GROWTH times more or less; an h or g that is nothing but rounding leads no farther than LEAP.
    """
    side = LOW if mu * g <= power * h else HIGH
    for s in range(2):
        if kept[s, AT] > 0.0 and kept[s, H] == h and kept[s, G] == g:
            if kept[1 - s, AT] > 0.0 or s != side:
                return 0.0
    kept[side, H], kept[side, G], kept[side, AT], kept[side, BOUND] = h, g, mu, bound
    if kept[1 - side, AT] > 0.0:
        rise, run = kept[LOW, H] - kept[HIGH, H], kept[HIGH, G] - kept[LOW, G]
        middle = rise / run if run > 0.0 and rise > 0.0 else 0.0
        return middle if kept[LOW, AT] < middle < kept[HIGH, AT] else 0.0
    if side == LOW:
        if g <= 0.0:
            return LEAP * mu
        touching = power * h / g
        return min(touching, LEAP * mu) if touching > mu else GROWTH * mu
    return max(power * h / g, mu / LEAP) if h > 0.0 else mu / GROWTH


@kernel("float64(float64[:, ::1], float64, float64, float64, float64)")
def proven_bound(kept, mu, bound, power, least):
    """The largest ``g^p h`` with g >= least that the answers kept and a new one, ``h + mu g <= bound``, leave possible.

    The function is quasi-concave, so its maximum over the polygon is where it touches one of the three lines, in a
    corner, or at g = least.
    """
    weights, bounds, n = np.empty(3), np.empty(3), 1
    weights[0], bounds[0] = mu, bound
    for s in range(2):
        if kept[s, AT] > 0.0:
            weights[n], bounds[n] = kept[s, AT], kept[s, BOUND]
            n += 1
    best = 0.0
    for i in range(n):
        for j in range(i, n):
            if i == j:
                g = power * bounds[i] / ((1.0 + power) * weights[i])
            elif weights[i] != weights[j]:
                g = (bounds[i] - bounds[j]) / (weights[i] - weights[j])
            else:
                continue
            g = max(g, least)
            h = np.inf
            for k in range(n):
                h = min(h, bounds[k] - weights[k] * g)
            if g > 0.0 and h > 0.0:
                best = max(best, raised(g, power) * h)
    return best
