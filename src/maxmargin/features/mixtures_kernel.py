"""Compiled densities of Gaussian mixtures."""

from __future__ import annotations

import numpy as np

from maxmargin.kernel import kernel

BLOCK = 256  # points at a time, whose intermediate values stay in the fastest memory


@kernel("void(float64[:, ::1], float64[::1], float64[:, ::1], float64[:, :, ::1], float64[::1])")
def log_densities(x, heights, shifts, factors, out):
    """``log sum_k exp(heights_k - |factors_k' x_i - shifts_k|^2 / 2)`` for the columns of x (d, n), into out (n,).

    The factors (K, d, d) are upper triangular. The loops inside run over points, so that they become vector code.
    """
    K, d = shifts.shape
    n = x.shape[1]
    z, parts = np.empty(BLOCK), np.empty((K, BLOCK))
    largest, total = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, n, BLOCK):
        m = min(BLOCK, n - begin)
        largest[:] = -np.inf
        for k in range(K):
            part = parts[k]
            part[:] = heights[k]
            for e in range(d):
                z[:] = -shifts[k, e]
                for c in range(e + 1):
                    factor, row = factors[k, c, e], x[c, begin : begin + m]
                    for i in range(m):
                        z[i] += factor * row[i]
                for i in range(m):
                    part[i] -= 0.5 * z[i] * z[i]
            for i in range(m):
                largest[i] = max(largest[i], part[i])
        total[:] = 0.0
        for k in range(K):
            part = parts[k]
            for i in range(m):
                total[i] += np.exp(part[i] - largest[i])
        for i in range(m):
            out[begin + i] = largest[i] + np.log(total[i])
