"""Compiled planes of points among and between label sets: x = (z, y), how far each flip and each pair of flips is on.

Flips are those of :mod:`maxmargin.models.label_set_kernel`. Label sets have whole z and ``y_e = z_j z_k``; points of
the linear relaxation have ``max(0, z_j + z_k - 1) <= y_e <= min(z_j, z_k)``.
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.roof_kernel import roof
from maxmargin.kernel import kernel
from maxmargin.models import multiclass_kernel as mk
from maxmargin.models.label_set_kernel import AT_EDGES, N_EDGES, W_EDGES, flip_scores, is_on, parted, write_label

POINT = "int64[::1], int32[::1], float64[::1], float64[::1], int64, float64, int32[::1], float64[::1], int32[:,::1]"


@kernel(f"float64({POINT}, float64[::1])")
def relaxed_point(meta, ints, floats, w, example, mu, iwork, fwork, sides, x):
    """Fill x (M + E) with the relaxed point of largest ``h + mu cost``, which is returned; one cut.

    ``iwork`` and what is left of ``fwork`` behind :func:`parted` are the scratch of roof duality, ``sides`` (2, M).
    """
    M, E = meta[mk.N_LABELS], meta[N_EDGES]
    score, gain, cost, pair, rest = parted(meta, fwork)
    flip_scores(meta, ints, floats, w, example, score, gain, cost, pair)
    for k in range(M):
        gain[k] += mu * cost[k]
    edges = ints[meta[AT_EDGES] : meta[AT_EDGES] + 2 * E]
    upper = roof(edges, gain, pair, iwork, rest, sides[0], sides[1])
    for k in range(M):
        x[k] = 0.5 * (sides[0, k] + sides[1, k])
    for e in range(E):
        one, other = x[edges[2 * e]], x[edges[2 * e + 1]]
        x[M + e] = min(one, other) if pair[e] > 0.0 else max(one + other - 1.0, 0.0)
    return upper


@kernel("int64(int64[::1], int32[::1], float64[::1], int64, float64[::1], int32[::1], float64[::1], float64[::1])")
def plane_of_point(meta, ints, floats, example, x, index, value, paid):
    """Write the plane of a point x (M + E), none twice, and its cost into ``paid`` (1,); returns its non-zeros."""
    M, nnz = meta[mk.N_LABELS], 0
    begin, end = np.int64(ints[meta[mk.AT_ROWS] + example]), np.int64(ints[meta[mk.AT_ROWS] + example + 1])
    paid[0] = 0.0
    for k in range(M):
        if x[k] == 0.0:
            continue
        on = is_on(meta, ints, example, k)
        step = x[k] if on else -x[k]
        paid[0] += x[k] * floats[meta[mk.AT_COST] + 2 * k + on]
        nnz = write_label(meta, ints, floats, example, begin, end, k, step, index, value, nnz)
    for e in range(meta[N_EDGES]):
        j, k = ints[meta[AT_EDGES] + 2 * e], ints[meta[AT_EDGES] + 2 * e + 1]
        on_j, on_k = is_on(meta, ints, example, j), is_on(meta, ints, example, k)
        change = x[M + e] if on_j == on_k else -x[M + e]
        if on_j:
            change += -x[k] if on_k else x[k]
        if on_k:
            change += -x[j] if on_j else x[j]
        if change != 0.0:
            index[nnz], value[nnz] = meta[W_EDGES] + e, -change
            nnz += 1
    return nnz
