"""Multiclass classification with one weight vector per class.

    w . phi(x, y) = W[:, y] . x  (+ the intercept of class y)

Crammer and Singer 2001, On the algorithmic implementation of multiclass kernel-based vector machines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, NamedTuple, Self, TypeAlias, TypedDict, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from maxmargin.contracts import LabelBlocks, ModelKernel
from maxmargin.costs import as_cost
from maxmargin.door import LARGEST_FEATURE, copied_rows, dense_block, first_bad_row, sparse_block
from maxmargin.models.base import POWERS, CompiledModel, cut_out, laid_out
from maxmargin.models.labels import Labels, check_count, padded, plain, weighted
from maxmargin.models.layout_state import StateReader, StorableLayout, facts_of
from maxmargin.parameters import Parameters

__all__ = ["FeatureRows", "FeatureRowsBound", "FeatureRowsModel", "Multiclass", "MulticlassBound", "MulticlassLayout"]

Sparse: TypeAlias = "sp.csr_array | None"
Dense: TypeAlias = "np.ndarray | None"
Rows = TypeVar("Rows", bound="FeatureRows")
Targets = TypeVar("Targets")
Bound = TypeVar("Bound", bound="FeatureRowsBound")


@dataclass(frozen=True)
class FeatureRows(StorableLayout):
    """Where each weight lives: one row of ``stride`` weights a feature (sparse, then dense), one for the intercept."""

    labels: Labels
    n_sparse: int
    n_dense: int
    intercept: bool
    intercept_scaling: float

    @property
    def n_features(self) -> int:
        return self.n_sparse + self.n_dense

    @property
    def n_weights(self) -> int:
        return (self.n_features + self.intercept) * self.stride

    @property
    def stride(self) -> int:
        """The number of labels, padded so that rows stay aligned."""
        return padded(len(self.labels))

    @abstractmethod
    def output(self, codes: np.ndarray) -> object:
        """The user's output behind a decoded one."""

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``coef`` (F, K), sparse features first, and ``intercept`` (K,): the scores are ``X @ coef + intercept``."""
        K, F = len(self.labels), self.n_features
        rows = w[: (F + self.intercept) * self.stride].reshape(-1, self.stride)[:, :K]
        intercept = rows[F] if self.intercept else np.zeros(K)
        if self.intercept_scaling != 1.0:
            intercept = self.intercept_scaling * intercept
        return {"coef": rows[:F], "intercept": intercept}

    def real(self) -> np.ndarray:
        """Mask of the weights that are not padding."""
        return np.tile(np.arange(self.stride) < len(self.labels), self.n_features + self.intercept)


class FeatureCounts(TypedDict):
    """The fields of :class:`FeatureRows`."""

    labels: Labels
    n_sparse: int
    n_dense: int
    intercept: bool
    intercept_scaling: float


@dataclass(frozen=True)
class MulticlassLayout(FeatureRows):
    """The rows of weights of :class:`FeatureRows`, and what each label costs where another is true."""

    cost_table: np.ndarray

    def output(self, codes: np.ndarray) -> Hashable:
        """Label of a decoded example."""
        return self.labels.classes[int(codes[0])]

    def cost(self, y_true: Hashable, y: Hashable) -> float:
        """Cost of one label where another is true; labels never seen in training cost the most."""
        return self.labels.cost(self.cost_table, [y_true], [y], False)

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        return facts_of(self), {"cost": self.cost_table}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> MulticlassLayout:
        state = StateReader(facts, tensors)
        table = state.cost_table("cost", len(state.labels("labels")))
        scaling = state.number("intercept_scaling", 1e-300)
        return cls(**state.announced(cls, intercept_scaling=scaling, cost_table=table))


@dataclass(frozen=True, kw_only=True)
class FeatureRowsBound(CompiledModel):
    """A model with the rows of weights of :class:`FeatureRows`, bound to n examples.

    ``int_parts`` and ``float_parts`` say under which keys of ``meta`` the parts of its arrays begin, in order.
    """

    layout: FeatureRows
    int_parts: tuple[int, ...]
    float_parts: tuple[int, ...]

    def holding(self, first: int, last: int) -> tuple[Self, int]:
        """The model bound to the examples from ``first`` to ``last`` (exclusive), numbered from 0; the 0.

        Scratch sizes stay those of all examples.
        """
        from maxmargin.models import multiclass_kernel as mk

        n, meta, D = self.n_examples, self.meta.copy(), int(self.meta[mk.N_DENSE])
        rows = self.ints[meta[mk.AT_ROWS] + first : meta[mk.AT_ROWS] + last + 1]
        entries, each = slice(int(rows[0]), int(rows[-1])), int(self.output_at[-1]) // n if meta[mk.HAS_LABELS] else 0
        ints = {mk.AT_ROWS: rows - rows[0], mk.AT_COLUMNS: entries, mk.AT_LABELS: slice(first * each, last * each)}
        floats = {mk.AT_VALUES: entries, mk.AT_DENSE: slice(first * D, last * D)}
        labels = self.labels
        part = replace(
            self,
            n_examples=last - first,
            ints=cut_out(self.ints, meta, self.int_parts, ints),
            floats=cut_out(self.floats, meta, self.float_parts, floats),
            meta=meta,
            output_at=self.output_at[first : last + 1] - self.output_at[first],
            least_cost=self.least_cost[first:last],
            labels=None if labels is None else labels._replace(square=labels.square[first:last]),
        )
        return part, 0

    def scores(self, w: np.ndarray, examples: np.ndarray | None = None) -> np.ndarray:
        """What each label scores by itself: (n, K), or one row for each of ``examples``."""
        from maxmargin.models import multiclass_kernel as mk

        n, meta, rows = self.n_examples, self.meta, slice(None) if examples is None else examples
        weights = self.layout.groups(w)
        D, F = int(meta[mk.N_DENSE]), self.layout.n_features
        out = np.tile(weights["intercept"], (n if examples is None else len(examples), 1))
        if D:
            dense = self.floats[meta[mk.AT_DENSE] : meta[mk.AT_DENSE] + n * D].reshape(n, D)
            out += dense[rows] @ weights["coef"][F - D :]
        if F > D:
            starts = self.ints[meta[mk.AT_ROWS] : meta[mk.AT_ROWS] + n + 1]
            entries = (self.floats[meta[mk.AT_VALUES] :][: starts[-1]], self.ints[meta[mk.AT_COLUMNS] :][: starts[-1]])
            out += sp.csr_array((*entries, starts), shape=(n, F - D))[rows] @ weights["coef"][: F - D]
        return out


@dataclass(frozen=True, kw_only=True)
class MulticlassBound(FeatureRowsBound):
    """The multiclass model bound to n examples."""

    layout: MulticlassLayout

    def truth(self, example: int) -> np.ndarray:
        """Code (1,) of the true label."""
        from maxmargin.models.multiclass_kernel import AT_LABELS

        return self.ints[self.meta[AT_LABELS] + example :][:1]

    def tables(self, w: np.ndarray, example: int, cost_weight: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Scores (1, K) of the labels of one example, and (0, K, K) of pairs."""
        scores, K = self.scores(w, np.array([example])), len(self.layout.labels)
        cost = self.layout.cost_table[self.truth(example)] if cost_weight else 0.0
        return scores + cost_weight * cost, np.zeros((0, K, K))

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi(x, y_i) - phi(x, y)`` of a given label, as indices and values."""
        from maxmargin.models import multiclass_kernel as mk

        n, meta, D, F = self.n_examples, self.meta, int(self.meta[mk.N_DENSE]), self.layout.n_features
        rows, entries = [np.arange(F - D, F)], [self.floats[meta[mk.AT_DENSE] + example * D :][:D]]
        if F > D:
            starts = self.ints[meta[mk.AT_ROWS] : meta[mk.AT_ROWS] + n + 1]
            own = slice(starts[example], starts[example + 1])
            rows.append(self.ints[meta[mk.AT_COLUMNS] :][own])
            entries.append(self.floats[meta[mk.AT_VALUES] :][own])
        if self.layout.intercept:
            rows.append(np.array([F]))
            entries.append(np.array([self.layout.intercept_scaling]))
        at, x, truth = np.concatenate(rows) * self.layout.stride, np.concatenate(entries), int(self.truth(example)[0])
        if int(codes[0]) == truth:
            return np.empty(0, np.int32), np.empty(0)
        return np.concatenate([at + truth, at + int(codes[0])]).astype(np.int32), np.concatenate([x, -x])

    def codes(self, example: int, output: Hashable) -> np.ndarray:
        """A label as a code (1,)."""
        return self.layout.labels.encode([output], example)

    def part_scores(self, w: np.ndarray, codes: Sequence[np.ndarray]) -> np.ndarray:
        """The scores (n, K): an example has one part."""
        return self.scores(w)

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, 1) and scores (m,) of the k classes of largest score, best first."""
        scores = self.scores(w, np.array([example]))[0]
        order = np.argsort(-scores, kind="stable")[:k]
        return order[:, None], scores[order]

    def marginals(self, w: np.ndarray, example: int) -> np.ndarray:
        """``exp(score)`` of the classes, divided by their sum, (1, K)."""
        return softmax(self.scores(w, np.array([example])), axis=1)


class FeatureRowsModel(Parameters, Generic[Rows, Targets, Bound]):
    """Base of models with one row of weights per feature, an entry for each label: binds examples step by step."""

    fit_intercept: bool
    intercept_scaling: float
    kind: ClassVar[str]  # for messages

    def bind(
        self,
        X: object,
        Y: object = None,
        *,
        layout: Rows | None = None,
        class_weight: Mapping[Hashable, float] | None = None,
    ) -> Bound:
        """Pack examples (and their outputs) for the kernel.

        Parameters
        ----------
        X : array (n, F), sparse matrix (n, F), or mapping
            A mapping has the keys ``"sparse"`` and ``"dense"``, each a matrix with n rows.
        Y : n labels or sets of labels, in any form that the model takes; missing at prediction time
        layout : that of the training data, for further data
        class_weight : mapping of label to weight, optional
            Multiplies the cost of missing that label; stored in the layout.
        """
        sparse, dense = feature_blocks(X)
        n = next(block.shape[0] for block in (sparse, dense) if block is not None)
        targets = None if Y is None else self._targets(Y, n, layout)
        if layout is None:
            if targets is None:
                raise ValueError(f"labels are needed to learn the layout of a {self.kind} model; pass Y.")
            if n == 0:
                raise ValueError("X is empty; at least one example is needed.")
            layout = self._layout(sparse, dense, targets, class_weight)
            check_size(layout)
        elif class_weight is not None:
            raise ValueError("class_weight is part of the layout; pass one or the other.")
        check_width(layout, sparse, dense)
        return self._pack(layout, n, sparse, dense, targets)

    @abstractmethod
    def _targets(self, Y: object, n: int, layout: Rows | None) -> Targets:
        """The outputs of n examples, checked as far as that needs no layout."""

    @abstractmethod
    def _layout(
        self, sparse: Sparse, dense: Dense, targets: Targets, class_weight: Mapping[Hashable, float] | None
    ) -> Rows:
        """The layout that training data ask for."""

    @abstractmethod
    def _pack(self, layout: Rows, n: int, sparse: Sparse, dense: Dense, targets: Targets | None) -> Bound:
        """The bound model."""

    def _rows(self, labels: Labels, sparse: Sparse, dense: Dense) -> FeatureCounts:
        """What all layouts of rows have."""
        return {
            "labels": labels,
            "n_sparse": 0 if sparse is None else sparse.shape[1],
            "n_dense": 0 if dense is None else dense.shape[1],
            "intercept": bool(self.fit_intercept),
            "intercept_scaling": positive_scaling(self.intercept_scaling),
        }


@dataclass(kw_only=True, repr=False, eq=False)
class Multiclass(FeatureRowsModel[MulticlassLayout, list[Hashable], MulticlassBound]):
    """One label per example.

    Parameters
    ----------
    cost : str, mapping, array, callable or Cost
        Cost of a label where another is true; see :func:`maxmargin.costs.as_cost`.
    fit_intercept : bool
        A constant for each class, regularised like the other weights.
    intercept_scaling : float
        The constant feature behind the intercept; larger values regularise the intercept less.
    classes : sequence of hashable, optional
        All labels that may occur; learned from the training data when missing.
    """

    cost: object = "hamming"
    fit_intercept: bool = False
    intercept_scaling: float = 1.0
    classes: Sequence[Hashable] | None = None

    kind: ClassVar[str] = "multiclass"

    def _targets(self, Y: object, n: int, layout: MulticlassLayout | None) -> list[Hashable]:
        return _labels(Y, n)

    def _layout(
        self, sparse: Sparse, dense: Dense, targets: list[Hashable], class_weight: Mapping[Hashable, float] | None
    ) -> MulticlassLayout:
        labels = Labels.chosen(self.classes, targets)
        costs = weighted(as_cost(self.cost).table(labels.classes), labels, class_weight)
        return MulticlassLayout(**self._rows(labels, sparse, dense), cost_table=costs)

    def _pack(
        self, layout: MulticlassLayout, n: int, sparse: Sparse, dense: Dense, targets: list[Hashable] | None
    ) -> MulticlassBound:
        codes = None if targets is None else _codes(layout.labels, targets)
        return _pack(layout, n, *both_blocks(n, sparse, dense), codes)


def _enumerated(bound: CompiledModel, power: float) -> ModelKernel:
    """A search that looks at all labels."""
    from maxmargin.models.multiclass_kernel import multiclass_search

    return bound.packed(multiclass_search, power)


def positive_scaling(given: float) -> float:
    """The constant feature behind the intercept, checked."""
    scaling = float(given)
    if not (np.isfinite(scaling) and scaling > 0):
        raise ValueError(f"intercept_scaling is {given}; give a positive number.")
    return scaling


def check_size(layout: FeatureRows) -> None:
    """Refuse no weights, and more than kernels can count."""
    if layout.n_weights == 0:
        raise ValueError("X has no features; give at least one, or set fit_intercept=True.")
    what = f"{layout.n_features} features times {len(layout.labels)} classes make"
    check_count(layout.n_weights, "weights", what, "hash or select the features")


def feature_blocks(X: object) -> tuple[Sparse, Dense]:
    """The sparse and the dense features, checked: two dimensions, numbers, finite."""
    named = X if isinstance(X, Mapping) else {"sparse" if sp.issparse(X) else "dense": X}
    if not named or set(named) - {"sparse", "dense"}:
        raise ValueError(f"X has the keys {sorted(map(str, named))}; use 'sparse' and/or 'dense'.")
    given = sparse_block(named["sparse"], "X") if named.get("sparse") is not None else None
    dense = dense_block(named["dense"], "X") if named.get("dense") is not None else None
    sparse, bad = None, -1
    if given is not None:
        sparse, bad = copied_rows(given)  # a copy, because entries are summed and left out in place
        sparse.sum_duplicates()
        if bad < 0 and sparse.nnz < given.nnz:
            bad = first_bad_row(sparse)  # a sum may be too large
        sparse.eliminate_zeros()
    if bad < 0 and dense is not None:
        bad = first_bad_row(dense)
    if bad >= 0:
        what = f"example {bad} has NaN or infinite features"
        raise ValueError(f"{what}; replace or remove them before fitting, and keep to {LARGEST_FEATURE:g}.")
    if sparse is not None and dense is not None and len(dense) != sparse.shape[0]:
        raise ValueError(f"'sparse' has {sparse.shape[0]} rows and 'dense' has {len(dense)}; they must agree.")
    return sparse, dense


def _labels(Y: object, n: int) -> list[Hashable]:
    if not isinstance(Y, Iterable):
        raise TypeError(f"Y is {Y!r:.80}; give one label for each example.")
    labels = plain(Y)
    if len(labels) != n:
        raise ValueError(f"X has {n} examples and Y has {len(labels)}; they must agree.")
    with suppress(TypeError, ValueError):  # what cannot be hashed or compared is named below
        if all(label == label for label in set(labels)):
            return labels
    for i, label in enumerate(labels):
        try:
            fine = hash(label) is not None and label == label
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise ValueError(f"example {i} has the label {label!r:.80}; labels must be hashable, and not NaN.")
    return labels


def _codes(labels: Labels, Y: list[Hashable]) -> np.ndarray:
    if not labels.code.keys() >= set(Y):
        unknown = next(i for i, label in enumerate(Y) if label not in labels.code)
        labels.encode([Y[unknown]], unknown)  # raises, naming the example and its label
    return np.fromiter(map(labels.code.__getitem__, Y), np.int32, len(Y))


def check_width(layout: FeatureRows, sparse: Sparse, dense: Dense) -> None:
    """With one block only, dense data may follow sparse and the other way round: the weights are the same."""
    widths = [0 if block is None else block.shape[1] for block in (sparse, dense)]
    expected = [layout.n_sparse, layout.n_dense]
    if sum(widths) != sum(expected) or (all(expected) and widths != expected):
        got, wanted = (f"{a} sparse and {b} dense features" for a, b in (widths, expected))
        raise ValueError(f"X has {got}; the model was fitted with {wanted}.")


class PackedRows(NamedTuple):
    """What :func:`~maxmargin.models.multiclass_kernel.multiclass_scores` reads, part by part, not yet laid out."""

    meta: np.ndarray
    ints: dict[int, np.ndarray]
    floats: dict[int, np.ndarray]
    most: int  # features of one example, the intercept among them


def both_blocks(n: int, sparse: Sparse, dense: Dense) -> tuple[sp.csr_array, np.ndarray]:
    """The features of n examples, the block that is missing without columns."""
    return sp.csr_array((n, 0)) if sparse is None else sparse, np.empty((n, 0)) if dense is None else dense


def packed_rows(layout: FeatureRows, sparse: sp.csr_array, dense: np.ndarray, meta_size: int) -> PackedRows:
    """Features of all examples, for ``laid_out``; the room for true labels is the caller's to fill."""
    from maxmargin.models import multiclass_kernel as mk

    check_count(sparse.nnz, "sparse entries", "there are", "bind the data in parts")
    rows, D = sparse.indptr, dense.shape[1]
    meta = np.zeros(meta_size, np.int64)
    meta[[mk.N_LABELS, mk.STRIDE, mk.N_DENSE]] = len(layout.labels), layout.stride, D
    meta[mk.HAS_INTERCEPT] = layout.intercept
    meta[[mk.W_DENSE, mk.W_INTERCEPT]] = sparse.shape[1] * layout.stride, layout.n_features * layout.stride
    ints = {mk.AT_ROWS: rows, mk.AT_COLUMNS: sparse.indices}
    floats = {mk.AT_VALUES: sparse.data, mk.AT_DENSE: dense, mk.AT_SCALING: np.array([layout.intercept_scaling])}
    return PackedRows(meta, ints, floats, int(np.diff(rows).max(initial=0)) + D + layout.intercept)


def _pack(
    layout: MulticlassLayout, n: int, sparse: sp.csr_array, dense: np.ndarray, codes: np.ndarray | None
) -> MulticlassBound:
    from maxmargin.models import multiclass_kernel as mk

    meta, ints, floats, most = packed_rows(layout, sparse, dense, mk.META_SIZE)
    meta[mk.HAS_LABELS] = codes is not None
    ints[mk.AT_LABELS] = np.empty(0, np.int32) if codes is None else codes
    floats[mk.AT_COST] = layout.cost_table
    return MulticlassBound(
        n_examples=n,
        layout=layout,
        int_parts=tuple(ints),
        float_parts=tuple(floats),
        capabilities=frozenset({"exact", "k_best", "marginals", "part_scores", "outputs", "parts"}),
        plane=mk.multiclass_plane,
        searches={name: partial(_enumerated, power=power) for name, power in POWERS.items()},
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out(floats, meta, np.float64),
        room=2 * most + 1,  # one more for the extra column of squared slacks
        iwork_size=0,
        fwork_size=layout.stride,
        output_at=np.arange(n + 1, dtype=np.int64),
        labels=None if codes is None else _label_blocks(layout, sparse, dense),
    )


def squares(layout: FeatureRows, sparse: sp.csr_array, dense: np.ndarray) -> tuple[np.ndarray, float]:
    """The squared length of the features of each example, the constant one among them, and their density."""
    n = len(dense)
    squared = sp.csr_array((sparse.data**2, sparse.indices, sparse.indptr), shape=sparse.shape)
    square = squared @ np.ones(sparse.shape[1]) + np.einsum("ij,ij->i", dense, dense)
    if layout.intercept:
        square += layout.intercept_scaling**2
    return square, (sparse.nnz + dense.size) / max(1, n * layout.n_features)


def _label_blocks(layout: MulticlassLayout, sparse: sp.csr_array, dense: np.ndarray) -> LabelBlocks:
    from maxmargin.models.multiclass_kernel import label_add, label_fetch, label_scores

    square, density = squares(layout, sparse, dense)
    return LabelBlocks(label_scores, label_add, label_fetch, len(layout.labels), layout.stride, square, density)
