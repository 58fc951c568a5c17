"""Packed planes: those of a working set in a third of the memory, for passes over planes at hand.

See :mod:`~maxmargin.solvers.packed_kernel`. Whether planes are packed changes no result.
"""

from __future__ import annotations

import numpy as np

from maxmargin.solvers import packed_kernel as pk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.state import DualState
from maxmargin.solvers.working_set import extended

__all__ = ["PackedPlanes", "packed_planes"]

MOST = 1 << pk.BITS  # columns in use


class PackedPlanes:
    """The planes of a working set in words, which follow as planes come."""

    def __init__(self, columns: int) -> None:
        most = min(columns, MOST)
        self.fits = True  # until a plane comes that does not
        self._compactions = 0  # that the words have seen
        self._packed = pk.Packed(
            np.zeros(0, np.int32), np.zeros(columns, np.int32), np.empty(most, np.int32), np.empty(most),
            np.zeros(2, np.int64),
        )  # fmt: skip

    def follow(self, store: wk.Store) -> bool:
        """Pack what has come since the last call; whether all planes fit."""
        packed, pool = self._packed, len(store.columns)
        if len(packed.word) != pool:
            self._packed = packed = packed._replace(word=extended(packed.word, int(packed.size[pk.MADE]), pool))
        if store.size[wk.COMPACTIONS] != self._compactions:
            packed.size[pk.MADE], self._compactions = 0, int(store.size[wk.COMPACTIONS])
        self.fits = pk.pack(store, packed)
        return self.fits

    def fetch(self, u: np.ndarray) -> None:
        """Let visits begin at u."""
        pk.fetch(self._packed, u)

    def visit(self, store: wk.Store, blocks: np.ndarray, visit: wk.Visit) -> float:
        """Visit blocks in turn; the gain of the dual."""
        return pk.packed_pass(store, self._packed, blocks, visit)

    def bring_back(self, u: np.ndarray) -> None:
        """Let u be where visits have led."""
        pk.bring_back(self._packed, u)


def packed_planes(state: DualState, strands: int) -> PackedPlanes | None:
    """The packed planes of a state, at its u; None where they do not fit, or visits need more than they have.

    That is so with strands, which have folds, with signs and other regularisers than the quadratic one, with averages,
    and where changes of u are noted.
    """
    store = state.working_set.store
    plain = state.w is state.u and state.log is None and state.echo == 1.0
    if strands > 1 or not plain or store.moment[wk.RULE] != wk.NO_MEAN:
        return None
    if state.packed is None:
        state.packed = PackedPlanes(len(state.u))
    if not state.packed.fits or not state.packed.follow(store):
        return None
    state.packed.fetch(state.u)
    return state.packed
