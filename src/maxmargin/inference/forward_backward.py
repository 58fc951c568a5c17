"""Log-partition and marginals of the distribution p(y) proportional to exp(score(y)) on a chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.inference.tables import refuse_large, score_tables
from maxmargin.kernel import kernel

__all__ = ["forward_backward", "marginals"]


@kernel("float64(float64[::1])")
def log_sum_exp(values):
    """log sum exp, shifted by the largest value; -inf for an empty or all -inf array."""
    top = -np.inf
    for i in range(values.shape[0]):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(values.shape[0]):
        total += np.exp(values[i] - top)
    return top + np.log(total)


@kernel("float64(float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, :, ::1])")
def forward_backward(unary, transition, unary_out, pairwise_out):
    """Write the marginals and return the log-partition.

    Formula: ``forward[t, k] = unary[t, k] + logsumexp_j (forward[t-1, j] + transition[t-1, j, k])``,
    ``backward[t, j] = logsumexp_k (transition[t, j, k] + unary[t+1, k] + backward[t+1, k])``; marginals of a position
    are proportional to ``exp(forward + backward)`` and are normalised position by position, so that they sum to one
    however long the chain is.

    Parameters
    ----------
    unary : float64 (T, K)
    transition : float64 (S, K, K)
        S == 1 or S == T - 1.
    unary_out : float64 (T, K)
        Receives p(y_t = k); zeros when no labeling is feasible.
    pairwise_out : float64 (T - 1, K, K) or (0, K, K)
        Receives p(y_t = j, y_{t+1} = k); not computed when it has no rows.

    Returns
    -------
    float
        log sum_y exp(score(y)); -inf when no labeling is feasible; 0 when T == 0.

    Complexity: O(T K^2) time, O(T K) memory beside the results.

    References
    ----------
    Rabiner (1989), A tutorial on hidden Markov models and selected applications in speech recognition.
    """
    length, n_labels = unary.shape
    if length == 0:
        return 0.0
    moving = transition.shape[0] > 1
    forward = np.empty((length, n_labels))
    backward = np.zeros((length, n_labels))
    terms = np.empty(n_labels)
    for k in range(n_labels):
        forward[0, k] = unary[0, k]
    for t in range(1, length):
        pairs = transition[t - 1 if moving else 0]
        for k in range(n_labels):
            for j in range(n_labels):
                terms[j] = forward[t - 1, j] + pairs[j, k]
            forward[t, k] = unary[t, k] + log_sum_exp(terms)
    log_partition = log_sum_exp(forward[length - 1])
    if log_partition == -np.inf:
        unary_out[:] = 0.0
        pairwise_out[:] = 0.0
        return log_partition
    for t in range(length - 2, -1, -1):
        pairs = transition[t if moving else 0]
        for j in range(n_labels):
            for k in range(n_labels):
                terms[k] = pairs[j, k] + (unary[t + 1, k] + backward[t + 1, k])
            backward[t, j] = log_sum_exp(terms)
    for t in range(length):
        for k in range(n_labels):
            terms[k] = forward[t, k] + backward[t, k]
        norm = log_sum_exp(terms)
        for k in range(n_labels):
            unary_out[t, k] = np.exp(terms[k] - norm)
    for t in range(pairwise_out.shape[0]):
        pairs = transition[t if moving else 0]
        total = 0.0
        for j in range(n_labels):
            for k in range(n_labels):
                score = forward[t, j] + pairs[j, k] + unary[t + 1, k] + backward[t + 1, k]
                pairwise_out[t, j, k] = np.exp(score - log_partition)
                total += pairwise_out[t, j, k]
        for j in range(n_labels):
            for k in range(n_labels):
                pairwise_out[t, j, k] /= total
    return log_partition


def marginals(
    unary: ArrayLike, transition: ArrayLike, *, pairwise: bool = True
) -> tuple[float, np.ndarray, np.ndarray | None]:
    """Log-partition, unary marginals and (unless ``pairwise=False``) pairwise marginals of a chain.

    Parameters
    ----------
    unary : array (T, K)
    transition : array (K, K), (1, K, K) or (T - 1, K, K)
    pairwise : bool
        Pairwise marginals take (T - 1) K^2 numbers; switch them off for long chains with many labels.

    Returns
    -------
    log_partition : float
        -inf when no labeling is feasible; the marginals are then zero.
    unary_marginals : float64 (T, K)
    pairwise_marginals : float64 (T - 1, K, K) or None
    """
    unary, transition = score_tables(unary, transition)
    length, n_labels = unary.shape
    steps = max(length - 1, 0) if pairwise else 0
    refuse_large(
        8 * steps * n_labels**2, f"marginals of {length} positions and {n_labels} labels", "set pairwise=False"
    )
    unary_out = np.empty_like(unary)
    pairwise_out = np.empty((steps, n_labels, n_labels))
    log_partition = forward_backward(unary, transition, unary_out, pairwise_out)
    return log_partition, unary_out, pairwise_out if pairwise else None
