"""First-order chains: sequence labelling.

    w . phi(x, y) = sum_t w_em[x_t, y_t] + sum_t w_tr[y_{t-1}, y_t]  (+ start, end and edge-feature weights)

Taskar, Guestrin, Koller 2003; Tsochantaridis et al. 2005.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.costs import as_cost
from maxmargin.features.sequences import Sequences
from maxmargin.inference.constraints import transition_mask
from maxmargin.models.chain_slack import chain_slack_search
from maxmargin.models.labels import Labels, padded, plain
from maxmargin.models.layout_state import StateReader, check_finite, counted, plain_facts
from maxmargin.models.sequence_bound import SequenceBound
from maxmargin.parameters import Parameters

__all__ = ["Chain", "ChainBound", "ChainLayout"]

TOKENS_AT_ONCE = 1 << 15  # whose observed pairs are collected together


@dataclass(frozen=True)
class ChainLayout:
    """Where each weight of a chain lives. ``stride`` is the number of labels, padded so that rows stay aligned."""

    labels: Labels
    stride: int
    n_sparse: int
    n_dense: int
    n_edge: int
    ends: bool
    pair_rows: np.ndarray | None  # observed (feature, label) pairs, row-compressed; None when all pairs have a weight
    pair_labels: np.ndarray | None
    cost_table: np.ndarray
    normalize: bool
    start_mask: np.ndarray  # 0 where allowed, -inf where forbidden
    end_mask: np.ndarray
    pair_mask: np.ndarray

    @cached_property
    def n_emission(self) -> int:
        return self.n_sparse * self.stride if self.pair_rows is None else int(self.pair_rows[-1])

    @cached_property
    def starts(self) -> dict[str, int]:
        """First weight of each group."""
        K, S = len(self.labels), self.stride
        sizes = {
            "sparse": self.n_emission,
            "dense": self.n_dense * S,
            "transition": K * S,
            "start": S if self.ends else 0,
            "end": S if self.ends else 0,
            "edge": self.n_edge * K * S,
        }
        places, at = {}, 0
        for name, size in sizes.items():
            places[name] = at
            at += size
        return places | {"total": at}

    @property
    def n_weights(self) -> int:
        return self.starts["total"]

    @cached_property
    def constrained(self) -> bool:
        return any(np.isinf(mask).any() for mask in (self.start_mask, self.end_mask, self.pair_mask))

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Weights by group: sparse (F, K) or a csr matrix of observed pairs, dense (D, K), transition (K, K), ..."""
        K, S, at = len(self.labels), self.stride, self.starts
        out: dict[str, Any] = {}
        if self.n_sparse:
            if self.pair_rows is None:
                out["sparse"] = w[: self.n_sparse * S].reshape(-1, S)[:, :K]
            else:
                out["sparse"] = sp.csr_array(
                    (w[: self.n_emission], self.pair_labels, self.pair_rows), shape=(self.n_sparse, K)
                )
        if self.n_dense:
            out["dense"] = w[at["dense"] : at["transition"]].reshape(-1, S)[:, :K]
        out["transition"] = w[at["transition"] : at["start"]].reshape(K, S)[:, :K]
        if self.ends:
            out["start"] = w[at["start"] : at["start"] + K]
            out["end"] = w[at["end"] : at["end"] + K]
        if self.n_edge:
            out["edge"] = w[at["edge"] :].reshape(self.n_edge, K, S)[:, :, :K]
        return out

    def output(self, codes: np.ndarray) -> list:
        """Labels of a decoded sequence."""
        return self.labels.decode(codes)

    def cost(self, y_true: Any, y: Any) -> float:
        """Cost of one sequence of labels where another is true."""
        if len(y_true) != len(y):
            raise ValueError(f"the sequences have {len(y_true)} and {len(y)} labels; they must agree.")
        code = self.labels.code
        worst = float(self.cost_table.max(initial=0.0))  # a true label never seen in training cannot be predicted
        total = sum(
            self.cost_table[code[true], code[found]] if true in code else worst
            for true, found in zip(plain(y_true), plain(y), strict=True)
        )
        return float(total) / max(len(y_true), 1) if self.normalize else float(total)

    def real(self) -> np.ndarray:
        """Mask of the weights that are not padding."""
        mask = np.ones(self.n_weights, bool)
        K, S = len(self.labels), self.stride
        if S > K:
            begin = 0 if self.pair_rows is None else self.n_emission
            mask[begin:] = np.tile(np.arange(S) < K, (self.n_weights - begin) // S)
        return mask

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """Facts and tensors for a model file; see :class:`~maxmargin.models.layout_state.StorableLayout`."""
        facts = plain_facts(self, "n_sparse", "n_dense", "n_edge", "ends", "normalize")
        facts |= {"labels": list(self.labels.classes), "observed": self.pair_rows is not None}
        masks = {"start": self.start_mask, "end": self.end_mask, "pairs": self.pair_mask}
        tensors = {"cost": self.cost_table} | {f"allowed.{name}": ~np.isinf(mask) for name, mask in masks.items()}
        if self.pair_rows is not None and self.pair_labels is not None:
            rows = counted(self.pair_rows, self.pair_labels, len(self.labels))
            tensors["observed.counts"], tensors["observed.labels"] = rows
        return facts, tensors

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> ChainLayout:
        """The layout behind :meth:`to_state`; everything is checked."""
        state = StateReader(facts, tensors)
        labels, n_sparse = state.labels("labels"), state.whole("n_sparse")
        K = len(labels)
        pair_rows, pair_labels = state.rows("observed", K) if state.flag("observed") else (None, None)
        if pair_rows is not None and len(pair_rows) != n_sparse + 1:
            raise ValueError(
                f"its observed pairs have {len(pair_rows) - 1} rows, which does not fit {n_sparse} features"
            )
        return cls(
            labels=labels,
            stride=padded(K),
            n_sparse=n_sparse,
            n_dense=state.whole("n_dense"),
            n_edge=state.whole("n_edge"),
            ends=state.flag("ends"),
            pair_rows=pair_rows,
            pair_labels=pair_labels,
            cost_table=state.cost_table("cost", K),
            normalize=state.flag("normalize"),
            start_mask=state.mask("allowed.start", (K,)),
            end_mask=state.mask("allowed.end", (K,)),
            pair_mask=state.mask("allowed.pairs", (K, K)),
        )

    check_weights = staticmethod(check_finite)

    def without_zeros(self, w: np.ndarray) -> tuple[ChainLayout, np.ndarray]:
        """The same scores with only those observed pairs that have a weight other than zero."""
        if self.pair_rows is None or self.pair_labels is None:
            return self, w
        kept = w[: self.n_emission] != 0
        rows = np.concatenate([[0], np.cumsum(kept)])[self.pair_rows].astype(np.int32)
        layout = replace(self, pair_rows=rows, pair_labels=self.pair_labels[kept])
        return layout, np.concatenate([w[: self.n_emission][kept], w[self.n_emission :]])


@dataclass(frozen=True, kw_only=True)
class ChainBound(SequenceBound):
    """The chain model bound to n sequences."""

    layout: ChainLayout

    def tables(self, w: np.ndarray, example: int, cost_weight: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        from maxmargin.models import chain_kernel as ck

        K, S = len(self.layout.labels), self.layout.stride
        first, last = self.output_at[example], self.output_at[example + 1]
        unary, pair = np.empty((last - first, S)), np.empty((K, S))
        ck.score_table(self.meta, self.ints, self.floats, w, example, cost_weight, unary.reshape(-1))
        positions = range(first + 1, last) if self.layout.n_edge else [first]
        pairs = np.empty((len(positions), K, K))
        for p, t in enumerate(positions):
            ck.pair_table(self.meta, self.ints, self.floats, w, t, pair.reshape(-1))
            pairs[p] = pair[:, :K]
        return np.ascontiguousarray(unary[:, :K]), pairs


class Chain(Parameters):
    """First-order chain model.

    Parameters
    ----------
    weights : {"all", "observed"}
        A weight for each (feature, label) pair, or only for pairs seen in the training data (sparse features only).
    ends : bool
        Weights for the first and the last label.
    cost : str, mapping, array, callable or Cost
        Cost between outputs, summed over tokens; see :func:`maxmargin.costs.as_cost`.
    constraints : None, "bio", "iobes", pairs or boolean matrix
        Label pairs that may not follow each other, in training and prediction.
    classes : sequence of hashable, optional
        All labels that may occur; learned from the training data when missing.
    """

    def __init__(
        self,
        *,
        weights: str = "all",
        ends: bool = False,
        cost: Any = "hamming",
        constraints: Any = None,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.weights = weights
        self.ends = ends
        self.cost = cost
        self.constraints = constraints
        self.classes = classes

    def bind(
        self,
        X: Any,
        Y: Any = None,
        *,
        layout: ChainLayout | None = None,
        class_weight: dict | None = None,
        fixed: Any = None,
    ) -> ChainBound:
        """Pack sequences (and their labels) for the kernels.

        Parameters
        ----------
        X : list of sequences or Sequences
        Y : list of label sequences, optional
            Missing at prediction time.
        layout : ChainLayout, optional
            The layout of the training data, for further data.
        class_weight : mapping of label to weight, optional
            Multiplies the cost of mistakes on tokens with that true label.
        fixed : list of sequences, optional
            Known labels (None where unknown) that every output must have.
        """
        sequences = Sequences.of(X)
        if Y is not None:
            Y = _label_lists(Y)
            _check_lengths(sequences, Y, "Y", "label")
        if layout is None:
            if Y is None:
                raise ValueError("labels are needed to learn the layout of a chain; pass Y.")
            if len(sequences) == 0:
                raise ValueError("X is empty; at least one sequence is needed.")
            layout = self._layout(sequences, Y, class_weight)
        elif class_weight is not None:
            raise ValueError("class_weight is part of the layout; pass one or the other.")
        sequences = _same_kind(sequences, layout)
        for kind, expected in (("sparse", layout.n_sparse), ("dense", layout.n_dense), ("edge", layout.n_edge)):
            block = getattr(sequences, kind)
            got = 0 if block is None else block.shape[1]
            if got != expected and len(sequences):
                raise ValueError(f"X has {got} {kind} features a token; the model was fitted with {expected}.")
        codes = _codes(layout.labels, Y)
        fixed_codes = _fixed_codes(layout.labels, fixed, sequences)
        if codes is not None:
            _check_allowed(layout, sequences, codes, fixed_codes)
        return _pack(layout, sequences, codes, fixed_codes)

    def _layout(self, sequences: Sequences, Y: list, class_weight: dict | None) -> ChainLayout:
        if self.weights not in ("all", "observed"):
            raise ValueError(f'weights must be "all" or "observed", got {self.weights!r}.')
        labels = Labels(plain(self.classes)) if self.classes is not None else Labels.of(t for y in Y for t in y)
        if len(labels) == 0:
            raise ValueError("every sequence is empty; at least one token with a label is needed.")
        if any(label != label for label in labels.classes):
            i = next(i for i, y in enumerate(Y) if any(label != label for label in y))
            raise ValueError(f"example {i} has the label nan; give the token a label, or leave the example out.")
        K = len(labels)
        stride = padded(K)
        n_sparse = 0 if sequences.sparse is None else sequences.sparse.shape[1]
        pair_rows = pair_labels = None
        if self.weights == "observed":
            if sequences.sparse is None:
                raise ValueError('weights="observed" needs sparse features; these are dense. Use weights="all".')
            pair_rows, pair_labels = _observed(sequences.sparse, np.asarray(_codes(labels, Y)), K)
        cost = as_cost(self.cost)
        table = np.ascontiguousarray(cost.table(labels.classes), dtype=np.float64)
        if class_weight is not None:
            factors = np.array([float(class_weight.get(label, 1.0)) for label in labels.classes])
            if not (np.isfinite(factors).all() and (factors >= 0).all()):
                raise ValueError(f"class_weight has negative or infinite weights: {class_weight!r}.")
            table = table * factors[:, None]
        mask = transition_mask(labels.classes, self.constraints)
        layout = ChainLayout(
            labels=labels,
            stride=stride,
            n_sparse=n_sparse,
            n_dense=0 if sequences.dense is None else sequences.dense.shape[1],
            n_edge=0 if sequences.edge is None else sequences.edge.shape[1],
            ends=bool(self.ends),
            pair_rows=pair_rows,
            pair_labels=pair_labels,
            cost_table=table,
            normalize=cost.normalize,
            start_mask=np.where(mask.start, 0.0, -np.inf),
            end_mask=np.where(mask.end, 0.0, -np.inf),
            pair_mask=np.where(mask.pairs, 0.0, -np.inf),
        )
        if layout.n_weights >= 2**31:
            raise ValueError(
                f"{n_sparse + layout.n_dense} features and {K} labels make {layout.n_weights} weights "
                f"({layout.n_weights * 8 / 2**30:.1f} GB), more than 2^31. Use fewer features, or sparse features with "
                'weights="observed".'
            )
        return layout


def _same_kind(sequences: Sequences, layout: ChainLayout) -> Sequences:
    """Features of the kind the layout has, where there is only one kind: sparse and dense are both fine."""
    if layout.n_dense == 0 and sequences.sparse is None and sequences.dense is not None:
        return replace(sequences, sparse=sp.csr_array(sequences.dense), dense=None)
    if layout.n_sparse == 0 and sequences.dense is None and sequences.sparse is not None:
        return replace(sequences, sparse=None, dense=sequences.sparse.toarray().astype(np.float64))
    return sequences


def _label_lists(Y: Any) -> list[list]:
    lists = []
    for i, y in enumerate(Y):
        try:
            lists.append(plain(y))
        except TypeError:
            raise TypeError(
                f"example {i}: {y!r} is not a sequence of labels; give a list with one label for each token."
            ) from None
    return lists


def _check_lengths(sequences: Sequences, Y: list, name: str, what: str) -> None:
    if len(Y) != len(sequences):
        raise ValueError(f"X has {len(sequences)} sequences and {name} has {len(Y)}; they must agree.")
    lengths = np.diff(sequences.offsets)
    for i, y in enumerate(Y):
        if len(y) != lengths[i]:
            raise ValueError(f"example {i} has {lengths[i]} tokens and {len(y)} {what}s; they must agree.")


def _codes(labels: Labels, Y: list | None) -> np.ndarray | None:
    if Y is None:
        return None
    parts = [labels.encode(y, i) for i, y in enumerate(Y)]
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _fixed_codes(labels: Labels, fixed: Any, sequences: Sequences) -> np.ndarray | None:
    if fixed is None:
        return None
    lengths = np.diff(sequences.offsets)
    fixed = [[None] * lengths[i] if y is None and i < len(lengths) else y for i, y in enumerate(fixed)]
    _check_lengths(sequences, fixed, "fixed", "fixed label")
    return np.concatenate(
        [np.array([-1 if t is None else labels.encode([t], i)[0] for t in y], np.int32) for i, y in enumerate(fixed)]
        or [np.empty(0, np.int32)]
    )


def _check_allowed(layout: ChainLayout, sequences: Sequences, codes: np.ndarray, fixed: np.ndarray | None) -> None:
    """The true output must be allowed, or the loss would not be bounded below by zero."""
    offsets = sequences.offsets
    wrong = np.zeros(len(codes), bool)
    wrong[1:] |= np.isinf(layout.pair_mask[codes[:-1], codes[1:]])
    wrong[offsets[offsets < len(codes)]] = False  # no pair crosses into a new sequence
    full = np.flatnonzero(np.diff(offsets))
    wrong[offsets[full]] |= np.isinf(layout.start_mask[codes[offsets[full]]])
    wrong[offsets[full + 1] - 1] |= np.isinf(layout.end_mask[codes[offsets[full + 1] - 1]])
    if fixed is not None:
        wrong |= (fixed >= 0) & (fixed != codes)
    if wrong.any():
        token = int(np.flatnonzero(wrong)[0])
        i = int(np.searchsorted(offsets, token, side="right")) - 1
        raise ValueError(
            f"example {i}, position {token - offsets[i]}: the given label {layout.labels.classes[codes[token]]!r} "
            "breaks the constraints. Correct the labels, or drop constraints."
        )


def _observed(sparse: sp.csr_array, codes: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of feature and label that occur: where the pairs of each feature begin, and their labels."""
    pairs = np.empty(0, np.int64)
    for begin in range(0, sparse.shape[0], TOKENS_AT_ONCE):  # the pairs of all tokens at once would take the most room
        end = min(begin + TOKENS_AT_ONCE, sparse.shape[0])
        first, last = sparse.indptr[begin], sparse.indptr[end]
        labels = np.repeat(codes[begin:end], np.diff(sparse.indptr[begin : end + 1]))
        found = np.unique(sparse.indices[first:last].astype(np.int64) * K + labels)
        pairs = np.union1d(pairs, found)
    rows = np.zeros(sparse.shape[1] + 1, np.int64)
    np.cumsum(np.bincount(pairs // K, minlength=sparse.shape[1]), out=rows[1:])
    return rows.astype(np.int32), (pairs % K).astype(np.int32)


def _pack(layout: ChainLayout, sequences: Sequences, codes: Any, fixed: Any) -> ChainBound:
    """The arrays of the kernels; what only training needs is left out without labels."""
    from maxmargin.models import chain_kernel as ck

    n, N, K, S = len(sequences), sequences.n_tokens, len(layout.labels), layout.stride
    lengths = np.diff(sequences.offsets)
    longest = int(lengths.max(initial=1))
    constrained = layout.constrained or fixed is not None
    meta = np.zeros(ck.META_SIZE, np.int64)
    ints: list[np.ndarray] = []
    floats: list[np.ndarray] = [np.empty(0)]

    def put(parts: list[np.ndarray], **arrays: Any) -> None:
        at = sum(part.size for part in parts)
        for name, array in arrays.items():
            meta[getattr(ck, name)] = at
            parts.append(array.ravel())
            at += array.size

    sparse, edge = sequences.sparse, sequences.edge
    binary = sparse is None or bool((sparse.data == 1).all())
    rows = np.zeros(N + 1, np.int32) if sparse is None else sparse.indptr
    put(ints, AT_TOKENS=sequences.offsets, AT_ROWS=rows)
    if sparse is not None:
        if sparse.nnz >= 2**31:
            raise ValueError(f"{sparse.nnz} sparse entries are more than 2^31; bind the data in parts.")
        put(ints, AT_COLUMNS=sparse.indices)
        if not binary:
            put(floats, AT_VALUES=sparse.data)
    if layout.pair_rows is not None:
        put(ints, AT_PAIR_ROWS=layout.pair_rows, AT_PAIR_LABELS=layout.pair_labels)
    if sequences.dense is not None:
        put(floats, AT_DENSE=sequences.dense)
    if edge is not None:
        put(ints, AT_EDGE_ROWS=edge.indptr, AT_EDGE_COLUMNS=edge.indices)
        put(floats, AT_EDGE_VALUES=edge.data)
    if constrained:
        put(ints, AT_FIXED=np.full(N, -1, np.int32) if fixed is None else fixed)
        put(floats, AT_MASK=layout.pair_mask, AT_START_MASK=layout.start_mask, AT_END_MASK=layout.end_mask)
    bits = room = 0
    if codes is not None:
        weight = np.repeat(1.0 / np.maximum(lengths, 1), lengths) if layout.normalize else np.ones(N)
        put(ints, AT_LABELS=codes)
        put(floats, AT_COST=layout.cost_table, AT_TOKEN_WEIGHT=weight)
        bits, room = _plane_size(layout, sequences) if n else (0, 0)
    meta[ck.N_LABELS : ck.N_EDGE + 1] = K, S, layout.n_sparse, layout.n_dense, layout.n_edge
    meta[ck.BINARY : ck.HAS_ENDS + 1] = binary, layout.pair_rows is not None, codes is not None, layout.ends
    meta[ck.W_DENSE : ck.W_EDGE + 1] = [layout.starts[name] for name in ("dense", "transition", "start", "end", "edge")]
    meta[ck.TABLE_BITS], meta[ck.CONSTRAINED] = bits, constrained
    return ChainBound(
        n_examples=n,
        n_weights=layout.n_weights,
        layout=layout,
        capabilities=frozenset({"exact", "k_best", "marginals", "part_scores"}),
        plane=ck.chain_plane,
        meta=meta,
        ints=np.concatenate(ints, dtype=np.int32, casting="same_kind"),
        floats=np.concatenate(floats, dtype=np.float64),
        room=room,
        iwork_size=(1 << bits) + longest,
        fwork_size=longest * S + K * S + 2 * S,
        output_at=sequences.offsets,
        searches={"slack": partial(chain_slack_search, layout=layout)} if codes is not None else {},
        least_cost=_least_cost(layout, sequences.offsets, codes) if codes is not None else np.zeros(0),
    )


def _least_cost(layout: ChainLayout, offsets: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The least positive cost that an output of each sequence can have; 0 where none costs anything."""
    table, lengths = layout.cost_table, np.diff(offsets)
    by_label = np.where(table > 0, table, np.inf).min(axis=1, initial=np.inf)
    tokens = np.append(by_label[codes], np.inf)
    least = np.where(lengths > 0, np.minimum.reduceat(tokens, offsets[:-1]), np.inf) if len(lengths) else np.zeros(0)
    least = np.where(np.isfinite(least), least, 0.0)
    return least / np.maximum(lengths, 1) if layout.normalize else least


def _plane_size(layout: ChainLayout, sequences: Sequences) -> tuple[int, int]:
    """Bits of the table in which a plane is added up, and room for all planes of one example."""
    lengths, K = np.diff(sequences.offsets), len(layout.labels)
    entries = np.zeros(sequences.n_tokens + 1, np.int64)  # of each token, and of a token behind the last
    for block in (sequences.sparse, sequences.edge):
        if block is not None:
            entries[:-1] += np.diff(block.indptr)
    per_sequence = np.where(lengths > 0, np.add.reduceat(entries, sequences.offsets[:-1]), 0)
    # the most non-zeros a plane can have: two for each feature of each token and pair, never more than all weights
    dense = np.minimum(2 * lengths * layout.n_dense, K * layout.n_dense)
    one = min(int((2 * per_sequence + dense + 2 * lengths + 4).max()) + 1, layout.n_weights + 1)
    # planes of single runs of errors together hold what the plane of all errors holds, before it is merged
    unmerged = int((2 * per_sequence + 2 * lengths * layout.n_dense + 2 * lengths + 4).max())
    return max(6, int(np.ceil(np.log2(2 * one + 1)))), one + unmerged + 2 * int(lengths.max(initial=1))
