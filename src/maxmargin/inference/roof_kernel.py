"""Compiled roof duality: the linear relaxation of the largest quadratic function of binary variables, by one cut.

Wanted is the largest ``f(z) = sum_k gain_k z_k + sum_e pair_e z_j z_k`` over z in {0, 1}^n, for any signs. A minimum
cut of the graph with a twin for every variable solves the linear relaxation: its value is an upper bound, and its
solution is half-integral. Some best z agrees with it wherever it is whole. On forests, and when all pairs are positive,
or become so when the values of some variables change places, both of its sides (``one`` and ``other``) are best.

Boros, Hammer (2002), Pseudo-Boolean optimization. Kolmogorov, Rother (2007), Minimizing non-submodular functions with
graph cuts.
"""

from __future__ import annotations

from numba.extending import register_jitable

from maxmargin.inference.min_cut_graph_kernel import graph_labels, graph_load, graph_rows, graph_solve
from maxmargin.inference.min_cut_kernel import STATE_SIZE

CLOSED = 1e-11  # steps below this are rounding
SWEEPS = 20  # of single changes


def roof_sizes(n: int, m: int) -> tuple[int, int]:
    """Integers (zeros before and after) and floats that :func:`roof` needs as scratch, for n variables and m pairs."""
    return 14 * m + 4 * n + 4 + STATE_SIZE + 5 * (2 * n + 1), 8 * m + 4 * n + 3


@register_jitable
def roof(edges, gain, pair, iwork, fwork, one, other):
    """Solve the relaxation: its half-integral solution is ``(one + other) / 2``, (n,) each; returns the bound.

    One cut of 2 n nodes and 2 m edges.
    """
    n, m = len(gain), len(pair)
    N, A = 2 * n, 2 * m
    twins = iwork[: 2 * A].reshape((A, 2))
    at = 2 * A
    begin, at = iwork[at : at + N + 2], at + N + 2
    head, at = iwork[at : at + 2 * A + 1], at + 2 * A + 1
    back, at = iwork[at : at + 2 * A + 1], at + 2 * A + 1
    place, at = iwork[at : at + A], at + A
    work, at = iwork[at : at + STATE_SIZE + 5 * (N + 1)], at + STATE_SIZE + 5 * (N + 1)
    labels = iwork[at : at + N]
    forward, backward, excess = fwork[:A], fwork[A : 2 * A], fwork[2 * A : 2 * A + N]
    room = fwork[2 * A + N : 4 * A + 2 * N + 3]
    constant = 0.0
    for k in range(n):
        excess[k] = -gain[k]
        constant -= gain[k]
    for e in range(m):
        j, k, p = edges[2 * e], edges[2 * e + 1], pair[e]
        if p > 0.0:
            twins[2 * e, 0], twins[2 * e, 1] = j, k
            twins[2 * e + 1, 0], twins[2 * e + 1, 1] = n + j, n + k
            half = 0.5 * p
            excess[j] -= half
            excess[k] -= half
            constant -= p
            for r in range(2 * e, 2 * e + 2):
                forward[r], backward[r] = half, half
        else:
            twins[2 * e, 0], twins[2 * e, 1] = n + k, j
            twins[2 * e + 1, 0], twins[2 * e + 1, 1] = n + j, k
            for r in range(2 * e, 2 * e + 2):
                forward[r], backward[r] = -p, 0.0
    for k in range(n):
        excess[n + k] = -excess[k]
    graph_rows(twins, begin, head, back, place)
    graph_load(excess, forward, backward, back, place, room)
    graph_solve(begin, head, back, work, room)
    energy = graph_labels(labels, head, work, room)
    for k in range(n):
        one[k], other[k] = labels[k], 1 - labels[n + k]
    iwork[: at + N] = 0
    return -0.5 * (constant + energy)


@register_jitable
def climb(edges, begin, ends, gain, pair, held, z):
    """Change single variables of ``z``, but not ``held``, while that raises f; returns f. O(m) a sweep."""
    n = len(gain)
    for _ in range(SWEEPS):
        changed = False
        for k in range(n):
            step = gain[k]
            for a in range(begin[k], begin[k + 1]):
                if z[edges[ends[a] ^ 1]] != 0:
                    step += pair[ends[a] >> 1]
            if k != held and (step > CLOSED if z[k] == 0 else step < -CLOSED):
                z[k] = 1 - z[k]
                changed = True
        if not changed:
            break
    total = 0.0
    for k in range(n):
        if z[k] != 0:
            total += gain[k]
    for e in range(len(pair)):
        if z[edges[2 * e]] != 0 and z[edges[2 * e + 1]] != 0:
            total += pair[e]
    return total
