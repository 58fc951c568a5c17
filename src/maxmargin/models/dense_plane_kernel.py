"""The plane of a model with few weights, from an array of all of them."""

from __future__ import annotations

from numba.extending import register_jitable


@register_jitable
def dense_plane(psi, w, cost, cost_weight, gap, emit, has_labels, index, value, result):
    """Write the answer of ``psi = phi(truth) - phi(labels)``, whose value is at most ``gap`` from the largest."""
    gain = cost_weight * cost
    for c in range(len(psi)):
        gain -= w[c] * psi[c]
    result[0] = gain
    # the truth gives 0; an argmax may miss it by rounding
    result[1] = max(gain + gap, 0.0) if has_labels else gain + gap
    result[2] = cost
    result[3] = 0.0
    if emit == 0 or not has_labels:
        return 0
    nnz = 0
    for c in range(len(psi)):
        if psi[c] != 0.0:
            index[nnz], value[nnz] = c, psi[c]
            nnz += 1
    result[3] = nnz
    return 1
