"""Packed planes: those of a working set in a third of the memory, for passes over planes at hand.

See :mod:`~maxmargin.solvers.packed_kernel`. Whether planes are packed changes no result, to the last bit.
"""

from __future__ import annotations

import numpy as np

from maxmargin.solvers import packed_kernel as pk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation import Extrapolation
from maxmargin.solvers.settings import Settings
from maxmargin.solvers.state import DualState
from maxmargin.solvers.working_set import WorkingSet, extended

__all__ = ["PackedPlanes", "packed_planes"]

MOST = 1 << pk.BITS  # columns in use
_PER_ENTRY, _PER_COLUMN, _PER_NUMBER = 4, 4, 4 + 8


class PackedPlanes:
    """The planes of a working set in words, and u at the columns that they use."""

    def __init__(self, columns: int) -> None:
        most = min(columns, MOST)
        self._compactions = 0  # that the words have seen
        self._packed: pk.Packed | None = pk.Packed(
            np.zeros(0, np.int32), np.zeros(columns, np.int32), np.empty(most, np.int32), np.empty(most),
            np.zeros(2, np.int64),
        )  # fmt: skip

    def begin(self, ws: WorkingSet, u: np.ndarray) -> bool:
        """Pack what has come since the last time and begin at u; False, and for good, once something does not fit."""
        packed, store = self._packed, ws.store
        if packed is None:
            return False
        if len(packed.word) != len(store.columns):
            packed = packed._replace(word=extended(packed.word, int(packed.size[pk.MADE]), len(store.columns)))
        if store.size[wk.COMPACTIONS] != self._compactions:
            packed.size[pk.MADE], self._compactions = 0, int(store.size[wk.COMPACTIONS])
        self._packed = packed if pk.pack(store, packed) else None
        if self._packed is not None:
            pk.fetch(packed, u)
        return self._packed is not None

    def revisit(self, ws: WorkingSet, blocks: np.ndarray, visit: wk.Visit) -> float:
        """A pass over blocks with the planes they have; the gain of the dual."""
        assert self._packed is not None
        return pk.packed_pass(ws.store, self._packed, blocks, visit)

    def after_pass(self, state: DualState, jumps: Extrapolation) -> float:
        """Jump from where passes have led; the gain of the dual."""
        assert self._packed is not None
        self.end(state)
        gain = jumps.after_pass()
        pk.fetch(self._packed, state.u)
        return gain

    def end(self, state: DualState) -> None:
        """Let u be where passes have led."""
        assert self._packed is not None
        pk.bring_back(self._packed, state.u)


def packed_planes(state: DualState, settings: Settings) -> PackedPlanes | None:
    """The packed planes of a state, at its u; None where they do not fit, would not pay, or have not all that it takes.

    They do not pay where passes are over few blocks, and with strands, which have words of their own. Signs and other
    regularisers than the quadratic one, averages and notes of changes of u take more.
    """
    ws, columns = state.working_set, len(state.u)
    plain = state.w is state.u and state.log is None and state.echo == 1.0 and ws.store.moment[wk.RULE] == wk.NO_MEAN
    size = _PER_ENTRY * len(ws.store.columns) + _PER_COLUMN * columns + _PER_NUMBER * min(columns, MOST)
    many = settings.cached_passes > 0 and settings.cached_blocks == "all" and settings.strands == 1
    if not many or not plain or size > ws.left:
        state.packed = None
        return None
    if state.packed is None:
        state.packed = PackedPlanes(columns)
    return state.packed if state.packed.begin(ws, state.u) else None
