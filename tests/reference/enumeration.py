"""Brute force: look at every output. The reference for every kernel, and fast enough for tiny problems.

Labelings are visited in the order in which the kernels break ties: the first position changes fastest, so labeling
number i has ``y_t = (i // K**t) % K``, and the first of several best labelings is the one Viterbi returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.inference.tables import cost_table, score_tables

__all__ = [
    "MOST_LABELINGS",
    "chain_argmax",
    "chain_by_cost",
    "chain_k_best",
    "chain_marginals",
    "chain_scores",
    "enumerate_argmax",
    "labeling",
    "labeling_score",
    "labelings",
]

Output = TypeVar("Output")

MOST_LABELINGS = 2**20
_BLOCK = 4096


def _count(length: int, n_labels: int) -> int:
    """Number of labelings; refuses more than MOST_LABELINGS."""
    too_many = n_labels > 1 and length * np.log2(n_labels) > np.log2(MOST_LABELINGS) + 1e-9
    if too_many:
        raise ValueError(
            f"{n_labels} labels at {length} positions make {n_labels}**{length} labelings, more than the "
            f"{MOST_LABELINGS} that enumeration looks at; use the recursions instead (best, k_best, by_cost, marginals)"
        )
    return n_labels**length


def labeling(index: ArrayLike, length: int, n_labels: int) -> np.ndarray:
    """Labelings with the given numbers: an int64 array of shape (..., T)."""
    return np.asarray(index, np.int64)[..., None] // n_labels ** np.arange(length) % n_labels


def _blocks(length: int, n_labels: int) -> Iterator[np.ndarray]:
    """All labelings as arrays of shape (m, T) with m <= 4096."""
    count = _count(length, n_labels)
    for begin in range(0, count, _BLOCK):
        yield labeling(np.arange(begin, min(begin + _BLOCK, count)), length, n_labels)


def labelings(length: int, n_labels: int) -> Iterator[np.ndarray]:
    """All labelings of ``length`` positions, each an int64 array (T,), first position changing fastest."""
    for block in _blocks(length, n_labels):
        yield from block


def labeling_score(unary: ArrayLike, transition: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Scores of labelings (..., T), added from left to right as the kernels add them; shape (...)."""
    unary, transition = score_tables(unary, transition)
    labels = np.asarray(labels, np.int64)
    score = np.zeros(labels.shape[:-1])
    for t in range(len(unary)):
        if t > 0:
            step = t - 1 if len(transition) > 1 else 0
            score = score + transition[step, labels[..., t - 1], labels[..., t]]
        score = score + unary[t, labels[..., t]]
    return score


def chain_scores(unary: ArrayLike, transition: ArrayLike) -> np.ndarray:
    """Scores of all labelings, (K**T,), in the order of :func:`labelings`."""
    unary, transition = score_tables(unary, transition)
    parts = [labeling_score(unary, transition, block) for block in _blocks(*unary.shape)]
    return np.concatenate(parts) if parts else np.empty(0)


def chain_argmax(unary: ArrayLike, transition: ArrayLike) -> tuple[np.ndarray, float]:
    """Best labeling and its score; labels of -1 and -inf when nothing is feasible."""
    labels, scores = chain_k_best(unary, transition, 1)
    if len(scores) == 0:
        return np.full(len(np.asarray(unary)), -1), -np.inf
    return labels[0], float(scores[0])


def chain_k_best(unary: ArrayLike, transition: ArrayLike, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best feasible labelings (k', T) and their scores (k',), best first."""
    length, n_labels = np.shape(unary)
    scores = chain_scores(unary, transition)
    order = np.argsort(-scores, kind="stable")[:k]
    order = order[scores[order] > -np.inf]
    return labeling(order, length, n_labels), scores[order]


def chain_by_cost(
    unary: ArrayLike, transition: ArrayLike, cost: ArrayLike, max_cost: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Best score (max_cost + 1,) and labeling (max_cost + 1, T) for each cost; -inf and -1 where there is none."""
    length, n_labels = np.shape(unary)
    cost = cost_table(cost, (length, n_labels))
    if max_cost is None:
        max_cost = int(cost.max(axis=1).sum()) if cost.size else 0
    scores = chain_scores(unary, transition)
    sums = [cost[np.arange(length), y].sum(axis=1) for y in _blocks(length, n_labels)]
    totals = np.concatenate(sums) if sums else np.empty(0)
    best = np.full(max_cost + 1, -np.inf)
    labels = np.full((max_cost + 1, length), -1)
    for c in range(max_cost + 1):
        members = np.flatnonzero((totals == c) & (scores > -np.inf))
        if len(members):
            top = members[np.argmax(scores[members])]
            best[c] = scores[top]
            labels[c] = labeling(top, length, n_labels)
    return best, labels


def chain_marginals(unary: ArrayLike, transition: ArrayLike) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-partition, unary (T, K) and pairwise (T - 1, K, K) marginals; zeros when nothing is feasible."""
    length, n_labels = np.shape(unary)
    scores = chain_scores(unary, transition)
    single = np.zeros((length, n_labels))
    pairs = np.zeros((max(length - 1, 0), n_labels, n_labels))
    top = scores.max(initial=-np.inf)
    if top == -np.inf:
        return -np.inf, single, pairs
    weight = np.exp(scores - top)
    total = weight.sum()
    y = np.concatenate(list(_blocks(length, n_labels)))
    for t in range(length):
        np.add.at(single[t], y[:, t], weight / total)
        if t > 0:
            np.add.at(pairs[t - 1], (y[:, t - 1], y[:, t]), weight / total)
    return float(top + np.log(total)), single, pairs


def enumerate_argmax(outputs: Iterable[Output], score: Callable[[Output], float]) -> tuple[Output, float]:
    """The first output of largest score, and that score, for any finite output space."""
    best: tuple[Output, float] | None = None
    for n, output in enumerate(outputs):
        if n >= MOST_LABELINGS:
            raise ValueError(f"more than {MOST_LABELINGS} outputs; enumeration is for tiny problems: write an argmax")
        value = float(score(output))
        if np.isnan(value):
            raise ValueError(f"the score of output number {n} ({output!r}) is NaN; scores must be numbers or -inf")
        if best is None or value > best[1]:
            best = (output, value)
    if best is None:
        raise ValueError("there are no outputs to enumerate; give at least one")
    return best
