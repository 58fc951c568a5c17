"""Paths through lattices: which output of a directed acyclic graph is best.

    w . phi(x, y) = sum_{arcs e of the path y} w . x_e          cost(y) = sum_{e in y} c_e - sum_{e in y_i} c_e

with features x_e and costs c_e of arcs; y_i is the good path of example i. The argmax is a longest path, exact, in time
that is linear in the features of all arcs. All rescalings are searched exactly, unless that takes more memory than is
set aside (:mod:`maxmargin.models.lattice_slack_kernel`). n-best lists are lattices with two nodes, where costs c_e can
be anything.

Wang, Shawe-Taylor 2009, Large-margin structured prediction via linear programming, section on word lattices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import ModelKernel
from maxmargin.datasets.lattice import Lattice, as_lattice
from maxmargin.inference.paths import best_outputs
from maxmargin.models.base import POWERS, CompiledModel, laid_out, offsets_of
from maxmargin.models.labels import MOST, Labels, check_count
from maxmargin.models.lattice_targets import Target, as_target, check_path, cost_of
from maxmargin.models.layout_state import StateReader, StorableLayout, facts_of
from maxmargin.models.user import merged
from maxmargin.parameters import Parameters

__all__ = ["LatticeBound", "LatticeLayout", "LatticeModel"]

MOST_PARTS = 12  # the least cost may be so many times the number that all costs are multiples of


@dataclass(frozen=True)
class LatticeLayout(StorableLayout):
    """Where each weight lives: features that every lattice has, then those that some have."""

    columns: Labels  # names of features
    n_dense: int

    @property
    def n_weights(self) -> int:
        return len(self.columns)

    def names(self) -> list[str]:
        """Names of the features, in the order of their weights."""
        return [str(name) for name in self.columns.classes]

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``dense`` (n_dense,) and ``sparse``, the others."""
        return {"dense": w[: self.n_dense], "sparse": w[self.n_dense :]}

    def output(self, codes: np.ndarray) -> list[int]:
        """The arcs of a path in order; codes hold -1 behind the last."""
        return codes[codes >= 0].tolist()

    def cost(self, y_true: object, y: Sequence[int]) -> float:
        """Cost of a path by its arcs; see :func:`~maxmargin.models.lattice_targets.cost_of`."""
        return cost_of(y_true, y)

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        return facts_of(self), {}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> LatticeLayout:
        state = StateReader(facts, tensors)
        columns = state.labels("columns")
        if not all(isinstance(name, str) for name in columns.classes):
            raise ValueError("its 'columns' must be names of features")
        return cls(columns, state.whole("n_dense", 0, len(columns) + 1))

    @staticmethod
    def of(lattices: Sequence[Lattice]) -> LatticeLayout:
        """All features of some lattices, the dense ones of the first in front."""
        dense = lattices[0].names[: lattices[0].n_dense]
        distinct = dict.fromkeys(dense)
        for names in {id(x.names): x.names for x in lattices}.values():
            distinct |= dict.fromkeys(names)
        if not distinct:
            raise ValueError("example 0 has no features; give at least one for the arcs.")
        return LatticeLayout(Labels(list(distinct)), len(dense))

    def placed(self, lattice: Lattice, example: int) -> np.ndarray:
        """The weight of each column of a lattice, -1 for one that is new; the dense ones must be the same."""
        code = self.columns.code
        known = np.array([code.get(name, -1) for name in lattice.names], np.int64)
        dense = known[: lattice.n_dense]
        if len(dense) == self.n_dense and ((dense >= 0) & (dense < self.n_dense)).all():
            return known
        own, others = set(lattice.names[: lattice.n_dense]), set(self.names()[: self.n_dense])
        lacking, extra = sorted(others - own), sorted(own - others)
        what = f"lacks the feature {lacking[0]!r}" if lacking else f"has the feature {extra[0]!r}"
        raise ValueError(f"example {example} {what}, unlike the others; give every lattice the same dense features.")


@dataclass(frozen=True, kw_only=True)
class LatticeBound(CompiledModel):
    """The lattice model bound to n examples."""

    layout: LatticeLayout
    lattices: list[Lattice]
    features: list[sp.csr_array]  # (E, n_weights) each, arcs in the order of the lattice
    truth: list[np.ndarray] | None  # arcs of the good paths

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, longest) and scores (m,) of the k best distinct outputs, best first, each by its best path."""
        lattice, longest = self.lattices[example], int(np.diff(self.output_at)[example])
        score = self.features[example] @ np.asarray(w, np.float64)[: self.n_weights]
        return best_outputs(lattice.leaving, lattice.heads.copy(), score, lattice.codes, k, longest)

    def content(self, example: int, codes: np.ndarray) -> np.ndarray:
        """The words of an output, as numbers, whatever path says them."""
        words = self.lattices[example].codes
        parts = [words.code[words.begin[e] : words.begin[e + 1]] for e in codes[codes >= 0].tolist()]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi(x, y_i) - phi(x, y)`` of the path with these codes, as indices and values."""
        if self.truth is None:
            raise ValueError("differences from the good path need the good path; bind with Y.")
        true, path = self.truth[example], codes[codes >= 0]
        rows = self.features[example][np.concatenate([true, path])]
        sign = np.repeat(np.repeat([1.0, -1.0], [len(true), len(path)]), np.diff(rows.indptr))
        return merged(rows.indices.astype(np.int64), sign * rows.data)

    def codes(self, example: int, output: object) -> np.ndarray:
        """The codes of a path, given by its arcs or by what it says; a ValueError that names the example."""
        lattice = self.lattices[example]
        if isinstance(output, str):
            found = lattice.path_of(output)
            if found is None:
                raise ValueError(f"example {example}: no path says {output!r:.80}; give an output of the lattice.")
            output = found
        path = check_path(output, lattice, example)
        codes = np.full(int(np.diff(self.output_at)[example]), -1, np.int32)
        codes[: len(path)] = path
        return codes


class LatticeModel(Parameters):
    """Paths through lattices."""

    def bind(
        self, X: Iterable[object], Y: Iterable[object] | None = None, *, layout: LatticeLayout | None = None
    ) -> LatticeBound:
        """Pack examples for the kernel.

        Parameters
        ----------
        X : list of :class:`~maxmargin.datasets.lattice.Lattice`
            Or of mappings with the arguments of one.
        Y : list of targets; missing at prediction time
            Costs of arcs, good arcs, or a good path; see :func:`~maxmargin.models.lattice_targets.as_target`.
        layout : LatticeLayout of the training data, for further data
            Features beyond the dense ones that it does not know count nothing.
        """
        if isinstance(X, (str, Mapping, Lattice)) or not isinstance(X, Iterable):
            raise TypeError(f"X is {X!r:.60}; give a list of lattices.")
        lattices = [as_lattice(x, i) for i, x in enumerate(X)]
        if not lattices:
            raise ValueError("X is empty; at least one lattice is needed.")
        layout = LatticeLayout.of(lattices) if layout is None else layout
        targets = None
        if Y is not None:
            given = list(Y)
            if len(given) != len(lattices):
                raise ValueError(f"X has {len(lattices)} examples and Y has {len(given)}; they must agree.")
            targets = [as_target(y, x, i) for i, (x, y) in enumerate(zip(lattices, given, strict=True))]
        return _pack(layout, lattices, targets)


def _features(layout: LatticeLayout, lattices: list[Lattice]) -> list[sp.csr_array]:
    """The features of each lattice in the columns of the weights."""
    found = []
    for i, x in enumerate(lattices):
        place, rows = layout.placed(x, i), x.features
        columns = place[rows.indices]
        kept = columns >= 0
        starts = offsets_of(kept)[rows.indptr] if not kept.all() else rows.indptr
        parts = (rows.data[kept], columns[kept].astype(np.int32), starts.astype(np.int64))
        found.append(sp.csr_array(parts, shape=(x.n_arcs, layout.n_weights)))
    return found


def _pack(layout: LatticeLayout, lattices: list[Lattice], targets: list[Target] | None) -> LatticeBound:
    from maxmargin.models import lattice_kernel as lk

    features = _features(layout, lattices)
    check_count(sum(x.nnz for x in features), "numbers", "the features of all arcs are", "bind the examples in parts")
    check_count(sum(x.n_arcs for x in lattices), "arcs", "the lattices have", "bind the examples in parts")
    orders = [x.entering[0] for x in lattices]
    begins = [x.entering[1] for x in lattices]
    tails = [x.tails[order] for x, order in zip(lattices, orders, strict=True)]
    sizes = [np.diff(x.indptr)[order] for x, order in zip(features, orders, strict=True)]
    true: list[np.ndarray] = []
    if targets is not None:
        for order, target in zip(orders, targets, strict=True):
            place = np.empty(len(order), np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            true.append(place[target.path])
    room, longest = _longest(begins, tails, sizes, true)
    counts = np.array([(x.n_nodes, x.n_arcs) for x in lattices], np.int64)
    n_true = np.array([len(path) for path in true]) if true else np.zeros(len(lattices), np.int64)
    rows = np.column_stack(
        [offsets_of(counts[:, 0] + 1)[:-1], counts[:, 0], offsets_of(counts[:, 1])[:-1], counts[:, 1],
         offsets_of(n_true)[:-1], n_true]
    )  # fmt: skip
    sorted_rows = [x[order] for x, order in zip(features, orders, strict=True)]
    meta = np.zeros(lk.META_SIZE, np.int64)
    most_nodes, most_arcs = (int(count) for count in counts.max(axis=0))
    facts = [lk.N_WEIGHTS, lk.MOST_NODES, lk.MOST_ARCS, lk.HAS_TRUTH]
    meta[facts] = layout.n_weights, most_nodes, most_arcs, targets is not None
    ints = {
        lk.AT_ROWS: rows,
        lk.AT_BEGIN: np.concatenate(begins),
        lk.AT_TAILS: np.concatenate(tails),
        lk.AT_ARC_NUMBERS: np.concatenate(orders),
        lk.AT_POINTERS: offsets_of(np.concatenate(sizes)),
        lk.AT_COLUMNS: np.concatenate([x.indices for x in sorted_rows]),
        lk.AT_TRUTH: np.concatenate([np.empty(0, np.int32), *true]),
    }
    costs = [] if targets is None else [t.costs[order] for t, order in zip(targets, orders, strict=True)]
    floats = {
        lk.AT_VALUES: np.concatenate([x.data for x in sorted_rows]),
        lk.AT_COSTS: np.concatenate([np.empty(0), *costs]),
    }
    flat = all(x.flat for x in lattices)
    return LatticeBound(
        n_examples=len(lattices),
        layout=layout,
        capabilities=frozenset({"exact", "k_best", "outputs"}),
        plane=lk.lattice_plane,
        searches={name: partial(_searched, flat=flat, power=power) for name, power in POWERS.items()},
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out(floats, meta, np.float64),
        room=min(room, layout.n_weights) + 1,  # one more for the extra column of squared slacks
        iwork_size=layout.n_weights + 2 * most_nodes,
        fwork_size=most_arcs + most_nodes,
        output_at=offsets_of(longest),
        least_cost=np.zeros(0) if targets is None or flat else _least_costs(targets),
        lattices=lattices,
        features=features,
        truth=None if targets is None else [target.path for target in targets],
    )


def _longest(
    begins: list[np.ndarray], tails: list[np.ndarray], sizes: list[np.ndarray], true: list[np.ndarray]
) -> tuple[int, np.ndarray]:
    """The most features of a path and the good path together, and the most arcs of a path of each lattice."""
    from maxmargin.models.lattice_kernel import longest_sums

    room, longest = 0, np.empty(len(begins), np.int64)
    for i, (begin, tail, size) in enumerate(zip(begins, tails, sizes, strict=True)):
        sums, arcs = np.empty(len(begin) - 1, np.int64), np.empty(len(begin) - 1, np.int64)
        longest_sums(begin, tail, size.astype(np.int64), sums, arcs)
        longest[i] = arcs[-1]
        room = max(room, int(sums[-1]) + (int(size[true[i]].sum()) if true else 0))
    return min(room, MOST), longest


def _least_costs(targets: list[Target]) -> np.ndarray:
    """A lower bound of the least positive cost of a path, for each example; empty where it is not known.

    Whole multiples of one number differ by that number at least; other costs may differ by anything.
    """
    found = np.zeros(len(targets))
    for i, target in enumerate(targets):
        sizes = np.unique(np.abs(target.costs[target.costs != 0]))
        for part in range(1, MOST_PARTS + 1) if len(sizes) else ():
            multiples = sizes * (part / sizes[0])
            if (np.abs(multiples - np.rint(multiples)) <= 1e-9 * multiples).all():
                found[i] = sizes[0] / part * (1.0 - 1e-6)
                break
        else:
            if len(sizes):
                return np.zeros(0)
    return found


def _searched(bound: CompiledModel, flat: bool, power: float) -> ModelKernel:
    """With the search for the largest ``cost^power (lam - w . psi)``: of lists all hypotheses are looked at."""
    from maxmargin.models.lattice_kernel import list_search
    from maxmargin.models.lattice_slack_kernel import path_search

    if flat:
        return bound.packed(list_search, power)
    return bound.packed(path_search, power, bound.least_cost if len(bound.least_cost) else np.zeros(bound.n_examples))
