"""Minimum error rate training: exact line searches over lists of candidates.

Along a direction v from weights w every candidate is a line ``t -> w . phi + t v . phi``, and the candidate that a list
chooses at t is the one on the upper envelope of its lines. The statistics of the chosen candidates are therefore
constant between the corners of all envelopes; adding up their changes from left to right gives the score of the corpus
for every t, whatever function of the statistics it is. O(N log N) for N candidates.

Och 2003, Minimum error rate training in statistical machine translation. Directions are the features in turn, and
random ones (Cer, Jurafsky, Manning 2008, Regularization and search for minimum error rate training).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from lists import CandidateLists

from maxmargin.kernel import kernel

__all__ = ["Step", "bleu_of_sums", "envelopes", "line_search", "mert"]

FAR = 1.0  # beyond the outermost corner, when the best interval has no end
LEAST_GAIN = 1e-9

Score = Callable[[np.ndarray], np.ndarray]  # sums of statistics (m, s) -> scores (m,)


class Step(NamedTuple):
    """The best point on a line and its score."""

    t: float
    score: float


@kernel("int64(int64[::1], float64[::1], float64[::1], float64[::1], int64[::1], int64[::1])")
def envelopes(starts, at_zero, slopes, corners, before, after):
    """Corners of the upper envelopes of all lists: where they are, and the candidates before and after; their number.

    Every list first gives its candidate at minus infinity, as ``after`` of a corner there.
    """
    found = 0
    for i in range(len(starts) - 1):
        begin, end = starts[i], starts[i + 1]
        order = begin + np.argsort(slopes[begin:end], kind="mergesort")
        base = found
        for n in range(end - begin):
            y = order[n]
            # a line of equal slope counts only when it is above, and then replaces the one before
            if found > base and slopes[y] == slopes[after[found - 1]]:
                if at_zero[y] <= at_zero[after[found - 1]]:
                    continue
                found -= 1
            meet = -np.inf
            while found > base:
                top = after[found - 1]
                meet = (at_zero[top] - at_zero[y]) / (slopes[y] - slopes[top])
                if meet > corners[found - 1]:
                    break
                found -= 1
            corners[found] = meet if found > base else -np.inf
            before[found] = after[found - 1] if found > base else -1
            after[found] = y
            found += 1
    return found


def line_search(lists: CandidateLists, at_zero: np.ndarray, slopes: np.ndarray, score: Score) -> Step:
    """The best interval of a line: its middle, and the score of the corpus there.

    Parameters
    ----------
    lists : CandidateLists
    at_zero, slopes : float array (N,)
        Scores of the candidates at the present weights, and what one step changes them by.
    score : callable
        Scores (m,) of statistics that were added up, (m, s).
    """
    N = len(slopes)
    corners, before, after = np.empty(N), np.empty(N, np.int64), np.empty(N, np.int64)
    n = envelopes(np.asarray(lists.starts, np.int64), at_zero, slopes, corners, before, after)
    corners, before, after = corners[:n], before[:n], after[:n]
    first = before < 0
    order = np.argsort(corners[~first], kind="stable")
    t, moves = corners[~first][order], lists.statistics[after[~first][order]] - lists.statistics[before[~first][order]]
    sums = np.vstack([lists.statistics[after[first]].sum(axis=0), moves]).cumsum(axis=0)
    if not len(t):
        return Step(0.0, float(score(sums)[0]))
    left, right = np.concatenate([[t[0] - 2.0 * FAR], t]), np.concatenate([t, [t[-1] + 2.0 * FAR]])
    values = np.where(right > left, score(sums), -np.inf)
    best = int(np.argmax(values))
    return Step(float(0.5 * (left[best] + right[best])), float(values[best]))


def mert(
    lists: CandidateLists, score: Score, start: np.ndarray, restarts: int = 8, directions: int = 8, sweeps: int = 30,
    random_state: int = 0,
) -> np.ndarray:  # fmt: skip
    """Weights of the highest score that line searches find from ``start`` and some random weights.

    A sweep searches along each feature in turn, then along ``directions`` random vectors; sweeps end when one gains
    nothing.
    """
    rng = np.random.default_rng(random_state)
    d, best, best_score = lists.n_features, start, -np.inf
    scale = np.abs(start).mean() or 1.0
    for restart in range(restarts + 1):
        w = start.astype(np.float64).copy() if restart == 0 else scale * rng.uniform(-1.0, 1.0, d)
        current = -np.inf
        for _ in range(sweeps):
            at_zero, before = lists.features @ w, current  # afresh: rounding adds up
            for move in [*range(d), *rng.normal(size=(directions, d))]:
                slopes = lists.columns[:, move] if isinstance(move, int) else lists.features @ (scale * move)
                step = line_search(lists, at_zero, slopes, score)
                if step.score > current + LEAST_GAIN:
                    current = step.score
                    at_zero = at_zero + step.t * slopes
                    if isinstance(move, int):
                        w[move] += step.t
                    else:
                        w += step.t * scale * move
            if current <= before + LEAST_GAIN:
                break
        if current > best_score:
            best, best_score = w, current
    return best


def bleu_of_sums(sums: np.ndarray) -> np.ndarray:
    """Corpus BLEU (m,) of sums of statistics (m, 10), as :func:`maxmargin.metrics.translation.bleu_of`, unsmoothed."""
    length, reference = sums[:, 0], sums[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sums[:, 2:6] / sums[:, 6:10]).mean(axis=1) + np.minimum(0.0, 1.0 - reference / length)
    return 100.0 * np.exp(np.where(np.isfinite(logs), logs, -np.inf))
