"""First-order chains: sequence labelling.

    w . phi(x, y) = sum_t w_em[x_t, y_t] + sum_t w_tr[y_{t-1}, y_t]  (+ start, end and edge-feature weights)

Taskar, Guestrin, Koller 2003; Tsochantaridis et al. 2005.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from maxmargin.costs import as_cost
from maxmargin.features.sequences import Sequences
from maxmargin.inference.constraints import transition_mask
from maxmargin.models.base import POWERS, laid_out, offsets_of
from maxmargin.models.chain_size import plane_size, reach
from maxmargin.models.chain_slack import slack_search, wrong_search
from maxmargin.models.labels import Labels, check_count, check_lengths, label_lists, padded, weighted
from maxmargin.models.layout_state import StateReader, StorableLayout, counted, facts_of
from maxmargin.models.sequence_bound import SequenceBound
from maxmargin.parameters import Parameters

__all__ = [
    "Chain", "ChainBound", "ChainLayout", "bound_to", "check_allowed", "observed_pairs", "pack",
    "widths",
]  # fmt: skip

TOKENS_AT_ONCE = 1 << 15  # whose observed pairs are collected together


@dataclass(frozen=True)
class ChainLayout(StorableLayout):
    """Where each weight of a chain lives."""

    labels: Labels
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
    def stride(self) -> int:
        """The number of labels, padded so that rows stay aligned."""
        return padded(len(self.labels))

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
        return dict(zip([*sizes, "total"], offsets_of(list(sizes.values())).tolist(), strict=True))

    @property
    def n_weights(self) -> int:
        return self.starts["total"]

    @cached_property
    def constrained(self) -> bool:
        return any(np.isinf(mask).any() for mask in (self.start_mask, self.end_mask, self.pair_mask))

    @cached_property
    def sizes(self) -> np.ndarray:
        """What the layout says in the ``meta`` of the kernels; what belongs to the data is zero."""
        from maxmargin.models import chain_kernel as ck

        meta = np.zeros(ck.META_SIZE, np.int64)
        meta[ck.N_LABELS : ck.N_EDGE + 1] = len(self.labels), self.stride, self.n_sparse, self.n_dense, self.n_edge
        meta[ck.OBSERVED], meta[ck.HAS_ENDS] = self.pair_rows is not None, self.ends
        meta[ck.W_DENSE : ck.W_EDGE + 1] = [
            self.starts[name] for name in ("dense", "transition", "start", "end", "edge")
        ]
        meta[ck.CONSTRAINED] = self.constrained
        return meta

    @cached_property
    def observed_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """``pair_rows`` and ``pair_labels`` as kernels take them; empty when all pairs have a weight."""
        given = (self.pair_rows, self.pair_labels)
        rows, labels = (np.require([] if part is None else part, np.int32, ["C", "W"]) for part in given)
        return rows, labels

    @cached_property
    def masks(self) -> np.ndarray:
        """Those of pairs, starts and ends, one behind the other; empty when nothing is forbidden."""
        masks = [self.pair_mask.ravel(), self.start_mask, self.end_mask]
        return np.concatenate(masks) if self.constrained else np.empty(0)

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray | sp.csr_array]:
        """Weights by group: sparse (F, K) or a csr matrix of observed pairs, dense (D, K), transition (K, K), ..."""
        K, S, at = len(self.labels), self.stride, self.starts
        out: dict[str, np.ndarray | sp.csr_array] = {}
        if self.n_sparse and self.pair_rows is None:
            out["sparse"] = w[: self.n_emission].reshape(-1, S)[:, :K]
        elif self.n_sparse:
            pairs = (w[: self.n_emission], self.pair_labels, self.pair_rows)
            out["sparse"] = sp.csr_array(pairs, shape=(self.n_sparse, K))
        if self.n_dense:
            out["dense"] = w[at["dense"] : at["transition"]].reshape(-1, S)[:, :K]
        out["transition"] = w[at["transition"] : at["start"]].reshape(K, S)[:, :K]
        if self.ends:
            out |= {name: w[at[name] : at[name] + K] for name in ("start", "end")}
        if self.n_edge:
            out["edge"] = w[at["edge"] :].reshape(self.n_edge, K, S)[:, :, :K]
        return out

    def output(self, codes: np.ndarray) -> list[Hashable]:
        """Labels of a decoded sequence."""
        return self.labels.decode(codes)

    def cost(self, y_true: Sequence[Hashable], y: Sequence[Hashable]) -> float:
        """Cost of one sequence of labels where another is true."""
        return self.labels.cost(self.cost_table, y_true, y, self.normalize)

    def real(self) -> np.ndarray:
        """Mask of the weights that are not padding."""
        mask = np.ones(self.n_weights, bool)
        K, S = len(self.labels), self.stride
        if S > K:
            begin = 0 if self.pair_rows is None else self.n_emission
            mask[begin:] = np.tile(np.arange(S) < K, (self.n_weights - begin) // S)
        return mask

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        facts = facts_of(self, observed=self.pair_rows is not None)
        masks = {"start": self.start_mask, "end": self.end_mask, "pairs": self.pair_mask}
        tensors = {"cost": self.cost_table} | {f"allowed.{name}": ~np.isinf(mask) for name, mask in masks.items()}
        if self.pair_rows is not None and self.pair_labels is not None:
            rows = counted(self.pair_rows, self.pair_labels, len(self.labels))
            tensors["observed.counts"], tensors["observed.labels"] = rows
        return facts, tensors

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> ChainLayout:
        state = StateReader(facts, tensors)
        K, n_sparse = len(state.labels("labels")), state.whole("n_sparse")
        pair_rows, pair_labels = state.rows("observed", K) if state.flag("observed") else (None, None)
        if pair_rows is not None and len(pair_rows) != n_sparse + 1:
            raise ValueError(f"its {len(pair_rows) - 1} rows of observed pairs do not fit {n_sparse} features")
        masks = {f"{name}_mask": state.mask(f"allowed.{name}", (K,)) for name in ("start", "end")}
        masks["pair_mask"] = state.mask("allowed.pairs", (K, K))
        table = state.cost_table("cost", K)
        return cls(**state.announced(cls, pair_rows=pair_rows, pair_labels=pair_labels, cost_table=table, **masks))

    def without_zeros(self, w: np.ndarray) -> tuple[ChainLayout, np.ndarray]:
        """The same scores with only those observed pairs that have a weight other than zero."""
        if self.pair_rows is None or self.pair_labels is None:
            return self, w
        kept = w[: self.n_emission] != 0
        rows = offsets_of(kept)[self.pair_rows].astype(np.int32)
        layout = replace(self, pair_rows=rows, pair_labels=self.pair_labels[kept])
        return layout, np.concatenate([w[: self.n_emission][kept], w[self.n_emission :]])

    def in_use(self, w: np.ndarray) -> np.ndarray:
        """Which sparse features have a weight other than zero, bool (n_sparse,); the first counts always."""
        used = np.zeros(self.n_sparse, bool)
        used[:1] = True
        return used | (np.asarray((self.groups(w)["sparse"] != 0).sum(axis=1)) > 0) if self.n_sparse else used

    def keeping(self, w: np.ndarray, kept: np.ndarray) -> tuple[ChainLayout, np.ndarray]:
        """The same scores without the sparse features that ``kept``, bool (n_sparse,), leaves out."""
        own = np.repeat(kept, self.stride if self.pair_rows is None else np.diff(self.pair_rows))
        layout = replace(self, n_sparse=int(kept.sum()))
        if self.pair_rows is not None and self.pair_labels is not None:
            rows = offsets_of(np.diff(self.pair_rows)[kept]).astype(np.int32)
            layout = replace(layout, pair_rows=rows, pair_labels=self.pair_labels[own])
        return layout, np.concatenate([w[: self.n_emission][own], w[self.n_emission :]])


@dataclass(frozen=True, kw_only=True)
class ChainBound(SequenceBound):
    """The chain model bound to n sequences."""

    layout: ChainLayout
    capabilities: frozenset[str] = frozenset({"exact", "k_best", "marginals", "part_scores", "outputs", "parts"})

    @cached_property
    def fingerprint(self) -> str:
        """Digest of features, labels, costs and constraints, however the sequences are divided into parts."""
        from maxmargin.models.chain_digest import digest_of, fingerprint_of

        return fingerprint_of(self, digest_of(self))

    def holding(self, first: int, last: int) -> tuple[ChainBound, int]:
        """The model bound to the sequences from ``first`` to ``last`` (exclusive), numbered from 0; the 0.

        Data that are mapped into memory stay whole: they are in files, which others map as well.
        """
        from maxmargin.models.chain_parts import cut

        return (self, first) if isinstance(self.ints.base, np.memmap) else (cut(self, first, last), 0)

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi(x, y_i) - phi(x, y)`` of given labels, as indices and values."""
        from maxmargin.models.chain_output_kernel import chain_output

        index, value, result = np.empty(self.room, np.int32), np.empty(self.room), np.zeros(4)
        iwork, _, _ = self.workspace()
        codes = np.ascontiguousarray(codes, np.int32)
        chain_output(self.meta, self.ints, self.floats, example, codes, iwork, index, value, result)
        nnz = int(result[3])
        return index[:nnz], value[:nnz]

    def codes(self, example: int, output: object) -> np.ndarray:
        """The labels of a sequence as codes (T,)."""
        wanted = int(self.output_at[example + 1] - self.output_at[example])
        labels = output if isinstance(output, (list, tuple, np.ndarray)) else [output]
        if len(labels) != wanted:
            raise ValueError(f"example {example} has {wanted} tokens, but an output of {len(labels)} labels.")
        return self.layout.labels.encode(list(labels), example)

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

    def truth(self, example: int) -> np.ndarray:
        from maxmargin.models.chain_kernel import AT_LABELS

        return self.ints[self.meta[AT_LABELS] :][self.output_at[example] : self.output_at[example + 1]]


@dataclass(kw_only=True, repr=False, eq=False)
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

    weights: str = "all"
    ends: bool = False
    cost: object = "hamming"
    constraints: object = None
    classes: Sequence[Hashable] | None = None

    def bind(
        self,
        X: object,
        Y: Iterable[Iterable[Hashable]] | None = None,
        *,
        layout: ChainLayout | None = None,
        class_weight: Mapping[Hashable, float] | None = None,
        fixed: Iterable[Sequence[Hashable] | None] | None = None,
    ) -> ChainBound:
        """Pack sequences (and their labels) for the kernels.

        Parameters
        ----------
        X : list of sequences or Sequences
        Y : list of label sequences; missing at prediction time
        layout : ChainLayout of the training data, for further data
        class_weight : mapping of label to weight, optional
            Multiplies the cost of mistakes on tokens with that true label.
        fixed : list of sequences, optional
            Known labels (None where unknown) that every output must have.
        """
        sequences, lists = Sequences.of(X), None
        if Y is not None:
            lists = label_lists(Y)
            check_lengths(np.diff(sequences.offsets), lists, "Y", "tokens", "labels")
        if layout is None:
            if lists is None:
                raise ValueError("labels are needed to learn the layout of a chain; pass Y.")
            if len(sequences) == 0:
                raise ValueError("X is empty; at least one sequence is needed.")
            layout = self._layout(sequences, lists, class_weight)
        elif class_weight is not None:
            raise ValueError("class_weight is part of the layout; pass one or the other.")
        sequences = _same_kind(sequences, layout)
        for name, width in widths(sequences).items():
            if len(sequences) and width != (fitted := getattr(layout, name)):
                kind = name.removeprefix("n_")
                raise ValueError(f"X has {width} {kind} features a token; the model was fitted with {fitted}.")
        codes = None if lists is None else _codes(layout.labels, lists)
        fixed_codes = _fixed_codes(layout.labels, fixed, sequences)
        if codes is not None:
            check_allowed(layout, sequences.offsets, codes, fixed_codes)
        return pack(layout, sequences, codes, fixed_codes)

    def _layout(
        self, sequences: Sequences, Y: list[list[Hashable]], class_weight: Mapping[Hashable, float] | None
    ) -> ChainLayout:
        if self.weights not in ("all", "observed"):
            raise ValueError(f'weights must be "all" or "observed", got {self.weights!r}.')
        labels = Labels.chosen(self.classes, (t for y in Y for t in y))
        if len(labels) == 0:
            raise ValueError("every sequence is empty; at least one token with a label is needed.")
        if any(label != label for label in labels.classes):
            i = next(i for i, y in enumerate(Y) if any(label != label for label in y))
            raise ValueError(f"example {i} has the label nan; give the token a label, or leave the example out.")
        pairs = None
        if self.weights == "observed":
            if sequences.sparse is None:
                raise ValueError('weights="observed" needs sparse features; these are dense. Use weights="all".')
            pairs = observed_pairs(sequences.sparse, _codes(labels, Y), len(labels))
        return self.layout_of(labels, widths(sequences), pairs, class_weight)

    def layout_of(
        self,
        labels: Labels,
        features: Mapping[str, int],
        pairs: np.ndarray | None = None,
        class_weight: Mapping[Hashable, float] | None = None,
    ) -> ChainLayout:
        """The layout for labels, features of each kind (as :func:`widths` names them) and observed pairs, if any."""
        pair_rows = pair_labels = None
        if pairs is not None:
            rows = np.bincount(pairs // len(labels), minlength=features["n_sparse"])
            pair_rows, pair_labels = offsets_of(rows).astype(np.int32), (pairs % len(labels)).astype(np.int32)
        cost = as_cost(self.cost)
        mask = transition_mask(labels.classes, self.constraints)
        layout = ChainLayout(
            labels=labels,
            **features,
            ends=bool(self.ends),
            pair_rows=pair_rows,
            pair_labels=pair_labels,
            cost_table=weighted(cost.table(labels.classes), labels, class_weight),
            normalize=cost.normalize,
            start_mask=np.where(mask.start, 0.0, -np.inf),
            end_mask=np.where(mask.end, 0.0, -np.inf),
            pair_mask=np.where(mask.pairs, 0.0, -np.inf),
        )
        what = f"{layout.n_sparse + layout.n_dense} features and {len(labels)} labels make"
        check_count(layout.n_weights, "weights", what, 'use fewer features, or sparse features with weights="observed"')
        return layout


def widths(sequences: Sequences) -> dict[str, int]:
    """Features of each kind, by the names that layouts have for them."""
    blocks = {"n_sparse": sequences.sparse, "n_dense": sequences.dense, "n_edge": sequences.edge}
    return {name: 0 if block is None else block.shape[1] for name, block in blocks.items()}


def _same_kind(sequences: Sequences, layout: ChainLayout) -> Sequences:
    """Features of the kind the layout has, where there is only one kind: sparse and dense are both fine."""
    if layout.n_dense == 0 and sequences.sparse is None and sequences.dense is not None:
        return replace(sequences, sparse=sp.csr_array(sequences.dense), dense=None)
    if layout.n_sparse == 0 and sequences.dense is None and sequences.sparse is not None:
        return replace(sequences, sparse=None, dense=sequences.sparse.toarray().astype(np.float64))
    return sequences


def _codes(labels: Labels, Y: list[list[Hashable]]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int32), *(labels.encode(y, i) for i, y in enumerate(Y))])


def _fixed_codes(
    labels: Labels, fixed: Iterable[Sequence[Hashable] | None] | None, sequences: Sequences
) -> np.ndarray | None:
    if fixed is None:
        return None
    lengths = np.diff(sequences.offsets)
    if not isinstance(fixed, Iterable):
        raise TypeError(f"fixed is {fixed!r:.80}; give a list with the known labels of each sequence.")
    rows = ([None] * lengths[i] if y is None and i < len(lengths) else y for i, y in enumerate(fixed))
    lists = label_lists([] if y is None else y for y in rows)
    check_lengths(lengths, lists, "fixed", "tokens", "fixed labels")
    codes = [-1 if t is None else labels.encode([t], i)[0] for i, y in enumerate(lists) for t in y]
    return np.array(codes, np.int32)


def check_allowed(layout: ChainLayout, offsets: np.ndarray, codes: np.ndarray, fixed: np.ndarray | None = None) -> None:
    """The true output must be allowed, or the loss would not be bounded below by zero."""
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
        what = f"example {i}, position {token - offsets[i]}: the given label {layout.labels.classes[codes[token]]!r}"
        raise ValueError(f"{what} breaks the constraints. Correct the labels, or drop constraints.")


def observed_pairs(sparse: sp.csr_array, codes: np.ndarray, K: int) -> np.ndarray:
    """The pairs of feature f and label k that occur, as ``f K + k``, sorted (int64)."""
    pairs = np.empty(0, np.int64)
    for begin in range(0, sparse.shape[0], TOKENS_AT_ONCE):  # the pairs of all tokens at once would take the most room
        end = min(begin + TOKENS_AT_ONCE, sparse.shape[0])
        first, last = sparse.indptr[begin], sparse.indptr[end]
        labels = np.repeat(codes[begin:end], np.diff(sparse.indptr[begin : end + 1]))
        pairs = np.union1d(pairs, sparse.indices[first:last].astype(np.int64) * K + labels)
    return pairs


def pack(
    layout: ChainLayout, sequences: Sequences, codes: np.ndarray | None, fixed: np.ndarray | None = None
) -> ChainBound:
    """The arrays of the kernels; what only training needs is left out without labels."""
    from maxmargin.models import chain_kernel as ck

    n, N = len(sequences), sequences.n_tokens
    lengths = np.diff(sequences.offsets)
    constrained = layout.constrained or fixed is not None
    sparse, edge = sequences.sparse, sequences.edge
    binary = sparse is None or bool((sparse.data == 1).all())
    ints = {ck.AT_TOKENS: sequences.offsets, ck.AT_ROWS: np.zeros(N + 1, np.int32) if sparse is None else sparse.indptr}
    floats: dict[int, np.ndarray] = {}
    if sparse is not None:
        check_count(sparse.nnz, "sparse entries", "there are", "bind the data in parts")
        ints[ck.AT_COLUMNS] = sparse.indices
        if not binary:
            floats[ck.AT_VALUES] = sparse.data
    if layout.pair_rows is not None and layout.pair_labels is not None:
        ints |= {ck.AT_PAIR_ROWS: layout.pair_rows, ck.AT_PAIR_LABELS: layout.pair_labels}
    if sequences.dense is not None:
        floats[ck.AT_DENSE] = sequences.dense
    if edge is not None:
        ints |= {ck.AT_EDGE_ROWS: edge.indptr, ck.AT_EDGE_COLUMNS: edge.indices}
        floats[ck.AT_EDGE_VALUES] = edge.data
    if constrained:
        ints[ck.AT_FIXED] = np.full(N, -1, np.int32) if fixed is None else fixed
        floats |= {ck.AT_MASK: layout.pair_mask, ck.AT_START_MASK: layout.start_mask, ck.AT_END_MASK: layout.end_mask}
    bits = room = 0
    if codes is not None:
        weight = np.repeat(1.0 / np.maximum(lengths, 1), lengths) if layout.normalize else np.ones(N)
        ints[ck.AT_LABELS] = codes
        floats |= {ck.AT_COST: layout.cost_table, ck.AT_TOKEN_WEIGHT: weight}
        rows = [block.indptr for block in (sparse, edge) if block is not None]
        bits, room = plane_size(layout, reach(layout, sequences.offsets, rows)) if n else (0, 0)
    meta = layout.sizes.copy()
    meta[ck.BINARY], meta[ck.HAS_LABELS], meta[ck.TABLE_BITS] = binary, codes is not None, bits
    meta[ck.CONSTRAINED] = constrained
    arrays = laid_out(ints, meta, np.int32), laid_out(floats, meta, np.float64)
    return bound_to(layout, sequences.offsets, meta, *arrays, room)


def bound_to(
    layout: ChainLayout, offsets: np.ndarray, meta: np.ndarray, ints: np.ndarray, floats: np.ndarray, room: int
) -> ChainBound:
    """The model bound to packed sequences, of which i has the tokens ``offsets[i]:offsets[i+1]``."""
    from maxmargin.models import chain_kernel as ck

    K, S, longest = len(layout.labels), layout.stride, int(np.diff(offsets).max(initial=1))
    return ChainBound(
        n_examples=len(offsets) - 1,
        layout=layout,
        plane=ck.chain_plane,
        needs_finite=False,
        meta=meta,
        ints=ints,
        floats=floats,
        room=room,
        iwork_size=(1 << int(meta[ck.TABLE_BITS])) + longest,
        fwork_size=longest * S + K * S + 2 * S,
        output_at=offsets,
        searches={
            "slack": partial(slack_search, layout=layout, power=POWERS["slack"]),
            "sqrt_slack": partial(slack_search, layout=layout, power=POWERS["sqrt_slack"]),
            "best_wrong": wrong_search,
        },
    )
