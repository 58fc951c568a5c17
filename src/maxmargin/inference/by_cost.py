"""Best score of a chain for every value of an integer cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.inference.tables import cost_table, refuse_large, score_tables
from maxmargin.kernel import kernel

__all__ = ["by_cost", "by_cost_labels", "by_cost_table"]


@kernel("void(float64[:, ::1], float64[:, :, ::1], int64[:, ::1], float64[:, :, ::1], float64[::1])", fast=False)
def by_cost_table(unary, transition, cost, table, scores_out):
    """Fill the best score of every beginning by end label and cost, and of every whole labeling by cost.

    Formula: ``table[t, k, c] = unary[t, k] + max_j (table[t-1, j, c - cost[t, k]] + transition[t-1, j, k])`` and
    ``scores_out[c] = max_k table[T-1, k, c]``; -inf where no labeling has that cost.

    Parameters
    ----------
    unary : float64 (T, K)
        Without cost augmentation.
    transition : float64 (S, K, K)
        S == 1 or S == T - 1.
    cost : int64 (T, K)
        Not negative. Labelings whose cost exceeds c_max are left out.
    table : float64 (T, K, c_max + 1)
        Work table, overwritten; :func:`by_cost_labels` reads it.
    scores_out : float64 (c_max + 1,)

    Complexity: O(T K^2 c_max) time, O(T K c_max) memory. Only the costs that t positions can reach are visited.

    References
    ----------
    Bauer, Goernitz, Biegler, Mueller and Kloft (2014), Efficient algorithms for exact inference in sequence labeling
    SVMs, IEEE Trans. Neural Networks and Learning Systems 25(5):870-881.
    """
    length, n_labels = unary.shape
    width = scores_out.shape[0]
    scores_out[:] = -np.inf
    if width == 0:
        return
    if length == 0:
        scores_out[0] = 0.0
        return
    for t in range(length):
        for k in range(n_labels):
            for c in range(width):
                table[t, k, c] = -np.inf
    moving = transition.shape[0] > 1
    low = np.int64(width)
    high = np.int64(0)
    for k in range(n_labels):
        c = cost[0, k]
        if c < width:
            table[0, k, c] = unary[0, k]
            low = min(low, c)
            high = max(high, c)
    for t in range(1, length):
        pairs = transition[t - 1 if moving else 0]
        least = cost[t, 0]
        most = cost[t, 0]
        for k in range(n_labels):
            shift = cost[t, k]
            least = min(least, shift)
            most = max(most, shift)
            stop = min(high, width - 1 - shift) + 1
            if stop <= low or unary[t, k] == -np.inf:
                continue
            here = table[t, k, low + shift : stop + shift]
            for j in range(n_labels):
                score = pairs[j, k]
                if score == -np.inf:
                    continue
                left = table[t - 1, j, low:stop]
                for c in range(here.shape[0]):
                    value = left[c] + score
                    here[c] = value if value > here[c] else here[c]
            for c in range(here.shape[0]):
                here[c] += unary[t, k]
        low = min(low + least, width)
        high = min(high + most, width - 1)
    for k in range(n_labels):
        for c in range(width):
            scores_out[c] = max(scores_out[c], table[length - 1, k, c])


@kernel("float64(float64[:, :, ::1], int64[:, ::1], float64[:, :, ::1], int64, int64[::1])", fast=False)
def by_cost_labels(transition, cost, table, c, labels_out):
    """Write the best labeling of cost exactly ``c`` from a filled table and return its score (-1 and -inf if none).

    Ties as in :func:`~maxmargin.inference.viterbi.viterbi`: smallest last label, then smallest before it, and so on.
    Complexity: O(T K).
    """
    length, n_labels = cost.shape
    if length == 0:
        return 0.0 if c == 0 else -np.inf
    moving = transition.shape[0] > 1
    top = -np.inf
    label = -1
    for k in range(n_labels):
        if 0 <= c < table.shape[2] and table[length - 1, k, c] > top:
            top = table[length - 1, k, c]
            label = k
    if label < 0:
        labels_out[:] = -1
        return top
    labels_out[length - 1] = label
    for t in range(length - 1, 0, -1):
        pairs = transition[t - 1 if moving else 0]
        c -= cost[t, label]
        value = -np.inf
        came = 0
        for j in range(n_labels):
            candidate = table[t - 1, j, c] + pairs[j, label]
            if candidate > value:
                value = candidate
                came = j
        label = came
        labels_out[t - 1] = label
    return top


def by_cost(
    unary: ArrayLike, transition: ArrayLike, cost: ArrayLike, max_cost: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The best score and labeling among the labelings of each cost 0, 1, ..., max_cost.

    Parameters
    ----------
    unary : array (T, K)
    transition : array (K, K), (1, K, K) or (T - 1, K, K)
    cost : array (T, K)
        Whole numbers >= 0; the cost of a labeling is their sum along it.
    max_cost : int, optional
        Largest cost looked at; by default the largest that any labeling has.

    Returns
    -------
    scores : float64 (max_cost + 1,)
        -inf where no feasible labeling has that cost.
    labels : int64 (max_cost + 1, T)
        Rows of -1 where no feasible labeling has that cost.
    """
    unary, transition = score_tables(unary, transition)
    cost = cost_table(cost, unary.shape)
    length, n_labels = unary.shape
    if max_cost is None:
        max_cost = int(cost.max(axis=1).sum()) if cost.size else 0
    if max_cost < 0:
        raise ValueError(f"max_cost is {max_cost}; give 0 or more")
    width = int(max_cost) + 1
    refuse_large(
        8 * length * n_labels * width,
        f"by_cost with costs up to {max_cost} on {length} positions and {n_labels} labels",
        "set a smaller max_cost or use coarser costs",
    )
    table = np.empty((length, n_labels, width))
    scores = np.empty(width)
    labels = np.empty((width, length), np.int64)
    by_cost_table(unary, transition, cost, table, scores)
    for c in range(width):
        by_cost_labels(transition, cost, table, c, labels[c])
    return scores, labels
