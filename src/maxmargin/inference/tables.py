"""Score tables of one chain: the checks between a caller's arrays and the kernels.

A chain of T positions over K labels has a unary table (T, K) and pairwise scores (S, K, K), where S == 1 means the same
transition scores at every position and S == T - 1 one matrix for each pair of neighbours. The score of a labelling y is

    unary[0, y_0] + sum_{t >= 1} ( transition[t - 1, y_{t-1}, y_t] + unary[t, y_t] ),

added from left to right; -inf forbids a label or a pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import first_place, numbers

__all__ = ["LARGEST_TABLE", "cost_table", "refuse_large", "refuse_scores", "score_tables"]

LARGEST_TABLE = 2**32  # bytes above which a work table is refused instead of allocated


def score_tables(unary: ArrayLike, transition: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Unary scores (T, K) and transition scores (S, K, K) as the kernels read them: float64, contiguous, checked.

    A (K, K) transition becomes (1, K, K). NaN and +inf are refused.
    """
    unary = numbers(unary, "unary")
    if unary.ndim != 2:
        raise ValueError(f"unary has shape {unary.shape}; give one row of label scores per position, (T, K)")
    length, n_labels = unary.shape
    transition = numbers(transition, "transition")
    if transition.ndim == 2:
        transition = transition[None]
    steps = max(length - 1, 0)
    if transition.ndim != 3 or transition.shape[1:] != (n_labels, n_labels) or len(transition) not in (1, steps):
        found = f"transition has shape {transition.shape} but unary has shape {unary.shape}"
        one = (n_labels, n_labels)
        raise ValueError(f"{found}; give {one}, {(1, *one)} or {(steps, *one)}")
    refuse_scores(unary=unary, transition=transition)
    return unary, transition


def refuse_scores(**tables: np.ndarray) -> None:
    """Raise a ValueError that names the first NaN or +inf."""
    for name, table in tables.items():
        bad = np.isnan(table) | (table == np.inf)
        if bad.any():
            where = first_place(bad)
            raise ValueError(f"{name}{list(where)} is {table[where]}; scores must be finite, or -inf to forbid")


def cost_table(cost: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Costs as contiguous int64; refuses negative and fractional costs."""
    whole = isinstance(cost, np.ndarray) and cost.dtype.kind in "iub"
    given = np.asarray(cost) if whole else numbers(cost, "cost")
    if given.shape != shape:
        raise ValueError(f"cost has shape {given.shape}, the scores have {shape}; give one cost for each score")
    whole = np.issubdtype(given.dtype, np.integer) or np.issubdtype(given.dtype, np.bool_)
    bad = ~np.isfinite(given) | (given < 0) | (given > 2**31) | (False if whole else given != np.rint(given))
    if bad.any():
        where = first_place(bad)
        raise ValueError(f"cost{list(where)} is {given[where]}; costs must be whole numbers from 0 to 2**31")
    return np.require(given, np.int64, ["C", "W"])


def refuse_large(n_bytes: int, what: str, advice: str) -> None:
    """Raise a ValueError with numbers when a work table would not fit."""
    if n_bytes > LARGEST_TABLE:
        needed, limit = n_bytes / 2**30, LARGEST_TABLE / 2**30
        raise ValueError(f"{what} needs a work table of {needed:.1f} GiB, above the limit of {limit:.1f} GiB; {advice}")
