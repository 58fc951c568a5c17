"""Which weights must not be negative: one dialect for all estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.contracts import Layout

__all__ = ["Positive", "positive_weights"]

Positive = bool | str | Sequence[str] | ArrayLike | None
Blocks = Mapping[str, Sequence[np.ndarray | sp.csr_array]]


def positive_weights(
    positive: Positive, layout: Layout, named: Callable[[Mapping], Blocks] | None = None
) -> np.ndarray | None:
    """A boolean mask over the weights, or None when all are free.

    Names are those of ``layout.groups``, or the keys of ``named(groups)``; True stands for all weights but intercepts.
    """
    n = layout.n_weights
    if positive is None or positive is False:
        return None
    mask = np.zeros(n, bool)
    groups = layout.groups(mask)  # views: what is set in them is set in the mask
    blocks: Blocks = {name: [block] for name, block in groups.items()} if named is None else named(groups)
    names: Sequence[object] = [positive] if isinstance(positive, str) else []
    if positive is True:
        if not groups:
            return layout.real()
        names = [name for name in groups if name != "intercept"]
    elif isinstance(positive, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in positive):
        names = list(positive)
    if names:
        for name in names:
            if not groups:
                raise ValueError(
                    f"positive is {positive!r}, but the weights of this model have no names; give indices."
                )
            if name not in blocks:
                shown = ", ".join([*blocks][:8]) + ", ..." * (len(blocks) > 8)
                raise ValueError(f"positive names {name!r}; the weights are {shown}.")
            for block in blocks[str(name)]:
                part = block.data if isinstance(block, sp.csr_array) else block
                if part.size and not np.shares_memory(part, mask):
                    raise ValueError(f"positive cannot be given by the name {name!r} in this model; give indices.")
                part[...] = True
        return mask
    given = np.asarray(positive)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"positive has shape {given.shape}; the model has {n} weights.")
        return given & layout.real()
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"positive is {positive!r}; give names, a mask, or indices of weights from 0 to {n - 1}.")
    if given.size and (given.min() < 0 or given.max() >= n):
        wrong = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"positive names weight {wrong}; the model has weights 0 to {n - 1}.")
    mask[given.astype(np.int64)] = True
    return mask & layout.real()
