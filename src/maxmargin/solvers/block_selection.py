"""Which blocks a solver visits next. Each policy is one function (store, rng, count) -> blocks, in order of visit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxmargin.solvers.working_set_kernel import Store

__all__ = ["POLICIES", "select"]

MIX = 0.03  # share of visits drawn uniformly beside gap-proportional ones, so that no block is forgotten


def whole(store: Store, rng: np.random.Generator, count: int) -> np.ndarray:
    """All blocks, in their order."""
    return np.arange(len(store.held))


def permutation(store: Store, rng: np.random.Generator, count: int) -> np.ndarray:
    """All blocks (or ``count`` of them), each once, in random order."""
    return rng.permutation(len(store.held))[:count]


def random(store: Store, rng: np.random.Generator, count: int) -> np.ndarray:
    """``count`` blocks drawn uniformly with replacement, as the rates of Lacoste-Julien et al. 2013 assume."""
    return rng.integers(0, len(store.held), count)


def gap(store: Store, rng: np.random.Generator, count: int) -> np.ndarray:
    """Blocks never visited first; then blocks in proportion to their last known gap, mixed with uniform ones.

    Drawn without replacement by exponential clocks (Efraimidis, Spirakis 2006). Gaps are stale by the time they are
    used, hence the mixture. Osokin et al. 2016.
    """
    new = np.flatnonzero(np.isinf(store.gap))
    if len(new):
        return rng.permutation(new)
    n = len(store.gap)
    total = store.gap.sum()
    chance = np.full(n, 1.0 / n) if total <= 0 else (1.0 - MIX) * store.gap / total + MIX / n
    clock = rng.exponential(size=n) / chance
    count = min(count, n)
    chosen = np.argpartition(clock, count - 1)[:count]
    return rng.permutation(np.sort(chosen))


def key(store: Store, rng: np.random.Generator, count: int) -> np.ndarray:
    """The key examples: blocks whose multipliers have left the origin or whose last gap is positive; random order.

    Yu & Rousu 2007 advise them for the late phase. Blocks never visited count as key; when no block does, all do.
    """
    chosen = np.flatnonzero((store.gap > 0) | ((store.held > 0) & (store.origin < store.total)))
    if len(chosen) == 0:
        chosen = np.arange(len(store.held))
    return rng.permutation(chosen)[:count]


POLICIES: dict[str, Callable[[Store, np.random.Generator, int], np.ndarray]] = {
    policy.__name__: policy for policy in (whole, permutation, random, gap, key)
}


def select(
    name: str, store: Store, rng: np.random.Generator, count: int, cursor: np.ndarray, n: int | None = None
) -> np.ndarray:
    """Blocks to visit next, ``count`` of them where the policy can choose.

    "cyclic" and "shuffled" go on where they stopped, ``cursor[0]`` visits from the beginning; the latter takes a new
    random order for each pass, which is in ``cursor[1:]``. Only these two can choose among ``n`` subsets of blocks.
    """
    if name in ("cyclic", "shuffled"):
        n = len(store.held) if n is None else n
        visits = cursor[0] + np.arange(min(count, n))
        cursor[0] += len(visits)
        if name == "cyclic":
            return visits % n
        chosen = np.empty(len(visits), np.int64)
        for i, visit in enumerate(visits):
            if visit % n == 0:
                cursor[1:] = rng.permutation(n)
            chosen[i] = cursor[1 + visit % n]
        return chosen
    if name not in POLICIES:
        raise ValueError(f"selection must be one of {', '.join(['cyclic', 'shuffled', *POLICIES])}; got {name!r}.")
    n = len(store.held)
    return POLICIES[name](store, rng, max(1, min(count, n) if name != "random" else count)).astype(np.int64)
