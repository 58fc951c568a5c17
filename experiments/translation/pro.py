"""Tuning as ranking: pairs of candidates whose quality differs become examples of a binary classifier.

From every list 5,000 pairs are drawn, those that differ by at least ``least`` are kept, and of them the 50 that differ
most; ``phi(better) - phi(worse)`` is an example of class 1, its negative one of class -1. The weights are those of a
linear classifier without intercept. Hopkins, May 2011, Tuning as ranking.
"""

from __future__ import annotations

import numpy as np
from lists import CandidateLists
from sklearn.linear_model import LogisticRegression

__all__ = ["pairs", "pro"]


def pairs(
    lists: CandidateLists, drawn: int = 5_000, kept: int = 50, least: float = 0.0, random_state: int = 0
) -> np.ndarray:
    """Differences ``phi(better) - phi(worse)`` of the pairs kept, (m, d)."""
    rng = np.random.default_rng(random_state)
    rows = []
    for i in range(len(lists)):
        begin, end = lists.starts[i], lists.starts[i + 1]
        one, other = rng.integers(begin, end, (2, drawn))
        gap = lists.quality[one] - lists.quality[other]
        _, first = np.unique(
            np.minimum(one, other) * (lists.starts[-1] + 1) + np.maximum(one, other), return_index=True
        )
        first = first[np.abs(gap[first]) > least]
        top = first[np.argsort(-np.abs(gap[first]), kind="stable")[:kept]]
        sign = np.sign(gap[top])[:, None]
        rows.append(sign * (lists.features[one[top]] - lists.features[other[top]]))
    return np.concatenate(rows)


def pro(lists: CandidateLists, C: float = 1.0, random_state: int = 0, **sampling: float) -> np.ndarray:
    """Weights of a logistic regression on the pairs, features scaled to unit variance and back."""
    differences = pairs(lists, random_state=random_state, **sampling)
    scale = np.sqrt((differences**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    sign = np.where(np.arange(len(differences)) % 2, 1, -1)  # a pair and its negative have the same loss: one is enough
    X = differences * (sign[:, None] / scale)
    return LogisticRegression(C=C, fit_intercept=False, max_iter=1000).fit(X, sign).coef_[0] / scale
