"""The oracle of a bound model: the most violating output of each example at given weights, as planes.

    loss_i(w) = max_y  b_i(y) - w . a_i(y)          (a, b) from (psi, cost) by the table in oracles/rescaling.py

Margin rescaling with cost weight 1 is the structured hinge; with cost weights -1 and 0 the planes are those of the
concave part of the ramp losses.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np

from maxmargin.contracts import BoundModel, Fused, ModelKernel, Sum
from maxmargin.oracles.part import ElsewhereModel, offers_parts
from maxmargin.oracles.rescaling import rescaling_named
from maxmargin.planes import Planes

__all__ = ["BoundOracle", "ModelOracle"]

AT_ONCE = 64  # examples of a model in plain Python, whose argmax is worth spreading over workers
BUFFER = 1 << 16  # non-zeros, at least


@dataclass(frozen=True)
class BoundOracle:
    """What oracles that ask a bound model themselves have in common."""

    model: BoundModel

    @property
    def n_examples(self) -> int:
        return self.model.n_examples

    def spread(self) -> None:
        """None: it answers here."""


@dataclass(frozen=True)
class ModelOracle(BoundOracle):
    """Planes of a bound model; a value, so that anything that differs makes another oracle."""

    rescaling: str = "margin"  # a row of :data:`~maxmargin.oracles.rescaling.RESCALINGS`
    cost_weight: float = 1.0  # lam
    # float64 (n_examples,) or (0,): entry of the extra column that squared slacks give to each example. Planes
    # then have ``n_weights + n_examples`` columns, and so have the weights passed in
    lift: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    # whether outputs are predictions instead of the most violating ones; then only one at a time, and not fused
    predicts: bool = False
    _scratch: threading.local = field(default_factory=threading.local, repr=False, compare=False, init=False)

    def __getstate__(self) -> tuple:
        return self.model, self.rescaling, self.cost_weight, self.lift, self.predicts

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)  # type: ignore[misc]  # scratch belongs to the threads of one process

    def holding(self, first: int, last: int) -> tuple[ModelOracle, int]:
        """An oracle with the data of some examples alone, and the number that the first has there.

        The same oracle where the model cannot be cut, or slacks are squared: their columns count all examples.
        """
        if len(self.lift) or not offers_parts(self.model):
            return self, first
        model, at = self.model.holding(first, last)
        return replace(self, model=model), at

    @cached_property
    def elsewhere(self) -> ElsewhereModel | None:
        """See :class:`~maxmargin.oracles.part.HoldsParts`."""
        return cast(ElsewhereModel, self.model) if "elsewhere" in self.model.capabilities else None

    def here(self, first: int, last: int) -> ModelOracle:
        """The oracle of some examples alone, which come here from elsewhere; slacks are not squared."""
        assert self.elsewhere is not None and len(self.lift) == 0
        return replace(self, model=self.elsewhere.here(first, last))

    @property
    def n_columns(self) -> int:
        return self.model.n_weights + len(self.lift)

    @property
    def longest(self) -> int:
        room = self.model.n_weights if self._kernel is None else self._kernel.room
        return room + (1 if len(self.lift) else 0)

    @property
    def batch_hint(self) -> int:
        """Many for a model in plain Python, one for a compiled one."""
        return AT_ONCE if self._kernel is None else 1

    @property
    def fingerprint(self) -> str:
        """That of the model, marked where the planes are not those of the hinge."""
        hinge = (self.rescaling, self.cost_weight) == ("margin", 1.0)
        return self.model.fingerprint + ("" if hinge else f" {self.rescaling} {self.cost_weight!r}")

    @cached_property
    def _kernel(self) -> ModelKernel | None:
        return self.model.kernel(rescaling_named(self.rescaling).search)

    def _workspace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scratch of this thread."""
        assert self._kernel is not None
        if "space" not in self._scratch.__dict__:
            self._scratch.space = self._kernel.workspace()
        return self._scratch.space

    def fused(self) -> Fused | None:
        """None for a model in plain Python, and where the examples are elsewhere."""
        if self._kernel is None or self.predicts or self.elsewhere is not None:
            return None
        code = rescaling_named(self.rescaling).code
        return Fused(self._kernel, code, self.cost_weight, self.lift, self._workspace)

    def predicting(self) -> ModelOracle:
        """The planes of predictions, with the same offsets."""
        return replace(self, predicts=True)

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """Planes of the most violating outputs of ``examples`` at ``w``, in their order.

        Beyond ``most = 1``, models that can add the planes of the separate parts in which the output differs from the
        truth.
        """
        if self._kernel is None or self.predicts or self.elsewhere is not None:
            return self._plain(w, examples)
        return self._compiled(w, np.ascontiguousarray(examples, dtype=np.int64), most)

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """``(sum_i scale_i a_i, sum_i scale_i b_i, losses)`` over ``examples``: the planes, reduced on the spot."""
        fused = self.fused()
        if fused is not None and len(self.lift) == 0:
            from maxmargin.oracles.batch_kernel import sum_batch

            a, losses = np.zeros(self.n_columns), np.empty(len(examples))
            examples = np.ascontiguousarray(examples, dtype=np.int64)
            scale = np.ascontiguousarray(scale, dtype=np.float64)
            kernel, pack = fused.kernel, packed(fused, 1)
            b = sum_batch(kernel.search, kernel.plane, pack, w, examples, scale, a, losses)
            return Sum(a, float(b), losses, taken(pack.counts))
        return reduced(self.planes(w, examples), scale, w)

    def _compiled(self, w: np.ndarray, examples: np.ndarray, most: int) -> Planes:
        from maxmargin.oracles.batch_kernel import planes_batch

        fused = self.fused()
        assert fused is not None
        kernel, pack = fused.kernel, packed(fused, most)
        rows = buffers(len(examples) * most + most + 1, max(16 * pack.room, BUFFER))
        parts, done = [], 0
        while True:
            done = planes_batch(kernel.search, kernel.plane, pack, w, examples, done, most, rows)
            made = int(np.argmax(rows.example < 0)) if len(examples) else 0
            nnz = rows.indptr[made]
            parts.append(
                Planes(
                    rows.indptr[: made + 1].copy(), rows.indices[:nnz].copy(), rows.values[:nnz].copy(),
                    rows.b[:made].copy(), examples[rows.example[:made]], rows.bound[:made].copy(), self.n_columns,
                    taken(pack.counts),
                )
            )  # fmt: skip
            if done == len(examples):
                return Planes.concatenate(parts)

    def _plain(self, w: np.ndarray, examples: np.ndarray) -> Planes:
        from maxmargin.oracles.batch_kernel import OPEN
        from maxmargin.oracles.rescaling_kernel import rescaled

        n_weights, (code, search) = self.model.n_weights, rescaling_named(self.rescaling)
        rows, b, bound, queries, unproven = [], [], [], 0, 0
        for i in examples:
            lam = 0.0 if self.predicts else self.cost_weight
            index, psi, cost, value, top, asked = self.model.answer(w[:n_weights], int(i), lam, search)
            queries, unproven = queries + asked, unproven + (top > max(value, 0.0) + OPEN * max(1.0, abs(top)))
            scale, offset = rescaled(code, self.cost_weight, cost)
            index, a = (index, scale * psi) if scale != 0.0 else (index[:0], psi[:0])
            if len(self.lift) and (len(index) or cost > 0):
                index, a = np.append(index, n_weights + i), np.append(a, self.lift[i])
            rows.append((index, a))
            b.append(offset)
            bound.append(top)
        planes = Planes.from_rows(rows, np.array(b), np.asarray(examples), np.array(bound), self.n_columns)
        return replace(planes, counts=(queries, unproven))


def packed(fused: Fused, most: int):  # type: ignore[no-untyped-def]  # a tuple of numba's own module
    """The arrays of a question as the compiled loops take them, with room for ``most`` planes per example."""
    from maxmargin.oracles.batch_kernel import Pack

    k, space = fused.kernel, fused.workspace()
    lam = float(fused.cost_weight)
    return Pack(
        k.meta, k.ints, k.floats, *space, k.room + most, fused.rescaling, lam, fused.lift, np.zeros(2, np.int64)
    )


def taken(counts: np.ndarray) -> tuple[int, int]:
    """What a compiled loop has counted; it begins anew."""
    queries, unproven = counts.tolist()
    counts[:] = 0
    return queries, unproven


def buffers(planes: int, entries: int):  # type: ignore[no-untyped-def]
    """Room for so many planes and non-zeros."""
    from maxmargin.oracles.batch_kernel import Rows

    return Rows(
        np.empty(planes, np.int64), np.empty(planes, np.int64), np.empty(entries, np.int32), np.empty(entries),
        np.empty(planes), np.empty(planes),
    )  # fmt: skip


def rows_of(planes: Planes):  # type: ignore[no-untyped-def]
    """Planes as kernels read them."""
    from maxmargin.oracles.batch_kernel import Rows

    return Rows(planes.example, planes.indptr, planes.indices, planes.data, planes.b, planes.bound)


def reduced(planes: Planes, scale: np.ndarray, w: np.ndarray) -> Sum:
    """The first plane of each example, added up with weights ``scale``; where the true output is above it, nothing."""
    first = np.flatnonzero(np.diff(planes.example, prepend=-1))
    weight = np.zeros(len(planes))
    weight[first] = np.where(planes.violations(w)[first] >= 0.0, scale, 0.0)
    a = np.zeros(planes.n_weights)
    np.add.at(a, planes.indices, planes.data * np.repeat(weight, np.diff(planes.indptr)))
    return Sum(a, float(weight @ planes.b), planes.bound[first], planes.counts)
