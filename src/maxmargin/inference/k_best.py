"""The k best label sequences of a chain (list Viterbi)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.inference.tables import refuse_large, score_tables
from maxmargin.kernel import kernel

__all__ = ["k_best", "list_viterbi"]


@kernel("void(int64[::1], int64, float64[::1], int64)", fast=False)
def _sift_down(heap, size, value, place):
    """Restore the heap below ``place``: larger value first, smaller label among equal values."""
    item = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        a = heap[child]
        if child + 1 < size:
            b = heap[child + 1]
            if value[b] > value[a] or (value[b] == value[a] and b < a):
                child += 1
                a = b
        if value[item] > value[a] or (value[item] == value[a] and item < a):
            break
        heap[place] = a
        place = child
    heap[place] = item


@kernel(
    "int64(float64[:, ::1], int64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[::1], int32[::1])",
    fast=False,
)
def _merge(lists, counts, added, value, rank, heap, scores, came):
    """Merge the sorted lists of all labels, each shifted by ``added``, into one of at most k entries.

    ``came`` receives ``label * k + rank`` of each entry. Returns the number of entries.
    """
    n_labels, k = lists.shape
    size = 0
    for j in range(n_labels):
        if counts[j] > 0 and added[j] > -np.inf:
            value[j] = lists[j, 0] + added[j]
            rank[j] = 0
            heap[size] = j
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, value, place)
    n = 0
    while n < k and size > 0:
        j = heap[0]
        scores[n] = value[j]
        came[n] = j * k + rank[j]
        n += 1
        rank[j] += 1
        if rank[j] < counts[j]:
            value[j] = lists[j, rank[j]] + added[j]
        else:
            size -= 1
            heap[0] = heap[size]
        if size > 0:
            _sift_down(heap, size, value, 0)
    return n


@kernel("int64(float64[:, ::1], float64[:, :, ::1], int64[:, ::1], float64[::1])", fast=False)
def list_viterbi(unary, transition, labels_out, scores_out):
    """Write the k distinct best labelings, best first, and return how many exist (at most k).

    Formula: the sorted list of the k best beginnings that end at (t, label) is the merge, by a heap over the previous
    label j, of the lists of (t-1, j) shifted by ``transition[t-1, j, label]``.

    Ties: equal scores are ordered as :func:`~maxmargin.inference.viterbi.viterbi` breaks them: compared from the last
    position backwards, smaller labels first. The first row is therefore the labeling that Viterbi gives.

    Parameters
    ----------
    unary : float64 (T, K)
    transition : float64 (S, K, K)
        S == 1 or S == T - 1.
    labels_out : int64 (k, T)
    scores_out : float64 (k,)

    Returns
    -------
    int
        Number of rows written; 0 when nothing is feasible; -1 when K * k does not fit in 31 bits.

    Complexity: O(T K (K + k log K)) time, O(T K k) memory.

    References
    ----------
    Seshadri and Sundberg (1994), List Viterbi decoding algorithms with applications, IEEE Trans. Communications 42.
    """
    length, n_labels = unary.shape
    k = scores_out.shape[0]
    if n_labels * k >= 2**31:
        return -1
    if k == 0:
        return 0
    if length == 0:
        scores_out[0] = 0.0
        return 1
    moving = transition.shape[0] > 1
    came = np.empty((length, n_labels, k), np.int32)
    left = np.empty((n_labels, k))
    here = np.empty((n_labels, k))
    left_counts = np.zeros(n_labels, np.int64)
    here_counts = np.zeros(n_labels, np.int64)
    added = np.zeros(n_labels)
    value = np.empty(n_labels)
    rank = np.empty(n_labels, np.int64)
    heap = np.empty(n_labels, np.int64)
    for label in range(n_labels):
        if unary[0, label] > -np.inf:
            left[label, 0] = unary[0, label]
            left_counts[label] = 1
    for t in range(1, length):
        pairs = transition[t - 1 if moving else 0]
        for label in range(n_labels):
            here_counts[label] = 0
            if unary[t, label] == -np.inf:
                continue
            for j in range(n_labels):
                added[j] = pairs[j, label]
            n = _merge(left, left_counts, added, value, rank, heap, here[label], came[t, label])
            for r in range(n):
                here[label, r] += unary[t, label]
            here_counts[label] = n
        left, here = here, left
        left_counts, here_counts = here_counts, left_counts

    last = np.empty(k, np.int32)
    added[:] = 0.0
    found = _merge(left, left_counts, added, value, rank, heap, scores_out, last)
    for n in range(found):
        state = last[n]
        for t in range(length - 1, -1, -1):
            label = state // k
            labels_out[n, t] = label
            if t > 0:
                state = came[t, label, state - label * k]
    return found


def k_best(unary: ArrayLike, transition: ArrayLike, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k distinct best labelings of a chain, best first.

    Parameters
    ----------
    unary : array (T, K)
    transition : array (K, K), (1, K, K) or (T - 1, K, K)
    k : int
        At least 1.

    Returns
    -------
    labels : int64 (k', T)
        k' <= k; smaller when fewer labelings are feasible.
    scores : float64 (k',)
        Not increasing; ties as in :func:`list_viterbi`.
    """
    unary, transition = score_tables(unary, transition)
    length, n_labels = unary.shape
    k = int(k)
    if k < 1:
        raise ValueError(f"k is {k}; ask for at least one labeling")
    k = min(k, n_labels ** min(length, k.bit_length()))  # never more rows than labelings; the cut keeps the power small
    if n_labels * k >= 2**31:
        raise ValueError(f"{n_labels} labels times k = {k} is above 2**31; ask for a smaller k")
    what = f"k_best with k = {k} on {length} positions and {n_labels} labels"
    refuse_large(4 * length * n_labels * k, what, "ask for a smaller k")
    labels = np.empty((k, length), np.int64)
    scores = np.empty(k)
    found = list_viterbi(unary, transition, labels, scores)
    return labels[:found], scores[:found]
