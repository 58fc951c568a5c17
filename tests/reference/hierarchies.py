"""All outputs of tiny hierarchies, written out from the definition."""

from __future__ import annotations

import numpy as np

from reference.label_sets import all_sets


def outputs(parents, single=False, leaves_only=False) -> np.ndarray:
    """Sets (n, M) of 0 and 1, by trying them all; ``parents`` holds a list of parents for each label."""
    M = len(parents)
    children = [[k for k in range(M) if p in parents[k]] for p in range(M)]

    def ancestors(k):
        return {k}.union(*(ancestors(p) for p in parents[k]))

    kept = []
    for y in all_sets(M):
        on = {k for k in range(M) if y[k]}
        closed = all(set(parents[k]) <= on for k in on)
        ends = all(not children[k] or on & set(children[k]) for k in on)
        path = not on or any(ancestors(k) == on for k in on)
        if closed and (ends or not leaves_only) and (path or not single):
            kept.append(y)
    return np.array(kept)
