"""Which weights must not be negative: from names, indices or a mask to a mask over all weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["positive_mask"]


def positive_mask(positive: Any, layout: Any) -> np.ndarray | None:
    """A boolean mask over the weights, or None when all are free.

    Parameters
    ----------
    positive : None, bool, str, list of str, array of indices, or boolean mask (n_weights,)
        Names are those of ``layout.groups``; True means all weights.
    layout : layout of a model
        Has ``n_weights`` and ``groups``, whose arrays are views of the weights.
    """
    n = layout.n_weights
    if positive is None or positive is False:
        return None
    mask = np.zeros(n, bool)
    if positive is True:
        return ~mask
    names = [positive] if isinstance(positive, str) else positive
    if isinstance(names, (list, tuple, set, frozenset)) and names and all(isinstance(name, str) for name in names):
        if not callable(getattr(layout, "groups", None)):
            raise ValueError(f"positive is {positive!r}, but the weights of this model have no names; give indices.")
        groups = layout.groups(mask)  # views: what is set in them is set in the mask
        for name in names:
            if name not in groups:
                raise ValueError(f"positive names {name!r}; the weights are {', '.join(groups)}.")
            part = groups[name].data if sp.issparse(groups[name]) else groups[name]
            if part.size and not np.shares_memory(part, mask):
                raise ValueError(f"positive cannot be given by the name {name!r} in this model; give indices.")
            part[...] = True
        return mask
    given = np.asarray(positive)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"positive has shape {given.shape}; the model has {n} weights.")
        return given
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"positive is {positive!r}; give names, a mask, or indices of weights from 0 to {n - 1}.")
    if given.size and (given.min() < 0 or given.max() >= n):
        wrong = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"positive names weight {wrong}; the model has weights 0 to {n - 1}.")
    mask[given.astype(np.int64)] = True
    return mask
