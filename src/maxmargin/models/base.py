"""What a model is to the rest of the library.

A model is bound to data once (``bind``), and the result answers one question for any example: which output maximises
``w . phi(x, y) + cost_weight * cost(y)``, and what is its plane. Compiled models answer through a kernel of the one
signature in :mod:`maxmargin.models.signature`; plain-Python models through a method.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["BoundModel", "CompiledModel", "digest"]


@dataclass(frozen=True)
class BoundModel:
    """A model bound to n examples.

    Attributes
    ----------
    n_examples, n_weights : int
    layout : object
        What was learned from the training data (labels, widths); binds further data to the same weights.
    capabilities : frozenset of str
        What the model offers beyond the argmax: "k_best", "by_cost", "marginals", "exact", "radius", ...
    """

    n_examples: int
    n_weights: int
    layout: Any
    capabilities: frozenset[str] = frozenset({"exact"})

    @property
    def fingerprint(self) -> str:
        """Digest of the data and the cost: multipliers of one problem prove nothing about another."""
        raise NotImplementedError(f"{type(self).__name__} has no fingerprint.")


@dataclass(frozen=True)
class CompiledModel(BoundModel):
    """A bound model with a kernel.

    Attributes
    ----------
    kernel : numba function of ``PLANE_SIGNATURE``
    meta, ints, floats : arrays
        The packed data.
    room : int
        The most non-zeros that the planes of one example together can have.
    iwork_size, fwork_size : int
        Scratch the kernel needs.
    output_at : int64 array (n_examples + 1,)
        Where the decoded output of each example begins in one flat array.
    """

    kernel: Any = None
    meta: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    ints: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    floats: np.ndarray = field(default_factory=lambda: np.zeros(0))
    room: int = 0
    iwork_size: int = 0
    fwork_size: int = 0
    output_at: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the packed data, which holds features, labels, costs and constraints."""
        return digest(self.meta, self.ints, self.floats)

    def workspace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fresh scratch (iwork, fwork, output) for one thread."""
        longest = int(np.diff(self.output_at).max(initial=1))
        return np.zeros(self.iwork_size, np.int32), np.empty(self.fwork_size), np.empty(longest, np.int32)


def digest(*arrays: np.ndarray) -> str:
    """Hexadecimal digest of the contents of arrays."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return state.hexdigest()
