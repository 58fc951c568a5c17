"""The margin oracle: the most violating output of each example at given weights, as planes.

    loss_i(w) = max_y  lam cost_i(y) - w . psi_i(y),        plane  a = psi_i(y*),  b = lam cost_i(y*)

with cost weight lam = 1 for margin rescaling (Taskar, Guestrin, Koller 2003; Tsochantaridis et al. 2005). With lam = -1
and 0 it is the concave part of the ramp losses.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from maxmargin.models.base import BoundModel, CompiledModel
from maxmargin.planes import Planes

__all__ = ["MarginOracle"]

_NO_LIFT = np.empty(0)


class MarginOracle:
    """Planes of the margin-rescaled hinge.

    Parameters
    ----------
    model : BoundModel
    lift : float64 array (n_examples,), optional
        Entry of the extra column that squared slacks give to each example; None without squared slacks. Planes then
        have ``n_weights + n_examples`` columns, and so have the weights passed in.
    parts : int
        The most planes of one argmax: beyond 1, models that can add the planes of the separate parts in which the
        output differs from the truth.
    cost_weight : float
        lam.
    """

    def __init__(
        self, model: BoundModel, *, lift: np.ndarray | None = None, parts: int = 1, cost_weight: float = 1.0
    ) -> None:
        self.model = model
        self.cost_weight = cost_weight
        self.lift = _NO_LIFT if lift is None else np.ascontiguousarray(lift, dtype=np.float64)
        self.parts = parts
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    @property
    def n_examples(self) -> int:
        return self.model.n_examples

    @property
    def n_columns(self) -> int:
        """Length of a plane: the weights, and one column per example when slacks are squared."""
        return self.model.n_weights + len(self.lift)

    @property
    def longest(self) -> int:
        """The most non-zeros that one plane can have."""
        room = self.model.room if isinstance(self.model, CompiledModel) else self.model.n_weights
        return room + (1 if len(self.lift) else 0)

    def planes(self, w: np.ndarray, examples: np.ndarray, known: np.ndarray | None = None) -> Planes:
        """Planes of the most violating outputs of ``examples`` at ``w``, in their order.

        ``known`` (the best violation already cached, by example) is there for oracles that can prune with it.
        """
        if isinstance(self.model, CompiledModel):
            return self._compiled(w, np.ascontiguousarray(examples, dtype=np.int64))
        return self._plain(w, examples)

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """``(sum_i scale_i a_i, sum_i scale_i b_i, losses)`` over ``examples``: the planes, reduced on the spot."""
        a = np.zeros(self.n_columns)
        if isinstance(self.model, CompiledModel) and len(self.lift) == 0:
            from maxmargin.oracles.batch_kernel import sum_batch

            m, losses = self.model, np.empty(len(examples))
            b = sum_batch(
                m.kernel, m.meta, m.ints, m.floats, w, np.ascontiguousarray(examples, dtype=np.int64),
                self.cost_weight, *self._workspace()[:3], m.room, np.ascontiguousarray(scale, dtype=np.float64), a,
                losses,
            )  # fmt: skip
            return a, float(b), losses
        planes = self.planes(w, examples)
        first = np.flatnonzero(np.diff(planes.example, prepend=-1))
        weight = np.zeros(len(planes))
        weight[first] = scale
        np.add.at(a, planes.indices, planes.data * np.repeat(weight, np.diff(planes.indptr)))
        return a, float(weight @ planes.b), planes.bound[first]

    def _workspace(self) -> tuple:
        """Scratch of this thread: (iwork, fwork, output, index, value)."""
        if not hasattr(self._local, "space"):
            assert isinstance(self.model, CompiledModel)
            room = max(16 * (self.model.room + self.parts), 1 << 16)
            self._local.space = (*self.model.workspace(), np.empty(room, np.int32), np.empty(room))
        return self._local.space

    def _compiled(self, w: np.ndarray, examples: np.ndarray) -> Planes:
        from maxmargin.oracles.batch_kernel import planes_batch

        m = self.model
        assert isinstance(m, CompiledModel)
        iwork, fwork, output, index, value = self._workspace()
        most = len(examples) * self.parts + self.parts + 1
        rows, indptr = np.empty(most, np.int64), np.empty(most, np.int64)
        b, bound = np.empty(most), np.empty(most)
        parts, done = [], 0
        while True:
            done = planes_batch(
                m.kernel, m.meta, m.ints, m.floats, w, examples, self.cost_weight, self.parts, self.lift, iwork, fwork,
                output, m.room + self.parts, done, rows, indptr, index, value, b, bound,
            )  # fmt: skip
            made = int(np.argmax(rows < 0)) if len(examples) else 0
            nnz = indptr[made]
            parts.append(
                Planes(
                    indptr[: made + 1].copy(), index[:nnz].copy(), value[:nnz].copy(), b[:made].copy(),
                    examples[rows[:made]], bound[:made].copy(), self.n_columns,
                )
            )  # fmt: skip
            if done == len(examples):
                return Planes.concatenate(parts)

    def _plain(self, w: np.ndarray, examples: np.ndarray) -> Planes:
        n_weights = self.model.n_weights
        rows, b, bound = [], [], []
        for i in examples:
            index, value, cost, _, top = self.model.plane(  # type: ignore[attr-defined]
                w[:n_weights], int(i), self.cost_weight
            )
            if len(self.lift) and (len(index) or cost > 0):
                index, value = np.append(index, n_weights + i), np.append(value, self.lift[i])
            rows.append((index, value))
            b.append(self.cost_weight * cost)
            bound.append(top)
        return Planes.from_rows(rows, np.array(b), np.asarray(examples), np.array(bound), self.n_columns)
