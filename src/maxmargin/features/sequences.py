"""Many sequences in a few flat arrays: what the chain model binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import scipy.sparse as sp

from maxmargin.door import LARGEST_FEATURE, check_compressed, dense_block, first_bad_row, pointers, sparse_block

__all__ = ["Sequences"]

_KINDS = ("sparse", "dense", "edge")


@dataclass(frozen=True)
class Sequences:
    """Features of n sequences, stored token after token.

    A sequence is a (T, F) array, a (T, F) sparse matrix, or a mapping with any of the keys ``"sparse"``, ``"dense"``
    and ``"edge"`` (features of the T - 1 neighbouring pairs, or T rows, where the first is ignored).

    Attributes
    ----------
    offsets : int64 array (n + 1,)
        Sequence i owns tokens ``offsets[i]:offsets[i+1]``.
    sparse, edge : csr_array or None
        One row per token; edge row t describes the pair (t - 1, t).
    dense : float64 array (tokens, D) or None
    """

    offsets: np.ndarray
    sparse: sp.csr_array | None = None
    dense: np.ndarray | None = None
    edge: sp.csr_array | None = None

    def __post_init__(self) -> None:
        """Check everything: the kernels trust these arrays."""
        offsets = pointers(self.offsets, "offsets", "sequence")
        object.__setattr__(self, "offsets", offsets)
        for kind, block in self._blocks().items():
            if not isinstance(block, np.ndarray if kind == "dense" else (sp.csr_array, sp.csr_matrix)):
                wanted = "numpy array" if kind == "dense" else "csr_array"
                raise TypeError(f"{kind} features must be a {wanted}; make it with Sequences.of(list of sequences).")
            if not isinstance(block, np.ndarray):
                check_compressed(block, f"{kind} features")
            if block.ndim != 2 or block.shape[0] != offsets[-1] or block.dtype.kind not in "fiub":
                wanted = f"numbers, one row for each of the {offsets[-1]} tokens"
                raise ValueError(f"{kind} features must be {wanted}; got shape {block.shape} and dtype {block.dtype}.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    def _blocks(self) -> dict[str, np.ndarray | sp.csr_array]:
        """The kinds of features that there are, one row per token."""
        blocks = {"sparse": self.sparse, "dense": self.dense, "edge": self.edge}
        return {kind: block for kind, block in blocks.items() if block is not None}

    @overload
    def __getitem__(
        self, key: int | np.integer
    ) -> np.ndarray | sp.csr_array | dict[str, np.ndarray | sp.csr_array]: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Sequences: ...

    def __getitem__(self, key: int | np.integer | slice | Sequence[int] | np.ndarray) -> object:
        if isinstance(key, (int, np.integer)):
            n = len(self)
            if not -n <= key < n:
                raise IndexError(f"sequence {key} of {n}")
            rows = slice(self.offsets[key % n], self.offsets[key % n + 1])
            parts = {kind: block[rows] for kind, block in self._blocks().items()}
            return next(iter(parts.values())) if len(parts) == 1 and "edge" not in parts else parts
        chosen = np.arange(len(self))[key]
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], lengths)
        return Sequences(offsets, **{kind: block[rows] for kind, block in self._blocks().items()})

    @staticmethod
    def of(X: object) -> Sequences:
        """Sequences from a list of sequences (or unchanged), after a check of shapes, widths and finite numbers."""
        if isinstance(X, Sequences):
            X.__post_init__()  # again: its arrays may have been changed since
            X.check_finite()
            return X
        if isinstance(X, str) or not isinstance(X, (Sequence, np.ndarray)):
            wanted = "a list of sequences, each a (length, n_features) array or sparse matrix"
            raise TypeError(f"X must be {wanted}; got {type(X).__name__}.")
        if isinstance(X, np.ndarray) and X.dtype != object and X.ndim == 2:
            raise ValueError(f"X has shape {X.shape}; a list of sequences is needed. For a single sequence pass [X].")
        parts: dict[str, list] = {kind: [] for kind in _KINDS}
        lengths: list[int] = []
        for i, x in enumerate(X):
            named = x if isinstance(x, Mapping) else {"sparse" if sp.issparse(x) else "dense": x}
            if set(named) - set(_KINDS) or not set(named) & {"sparse", "dense"}:
                keys = sorted(map(str, named))
                raise ValueError(f"sequence {i} has the keys {keys}; use 'sparse' and/or 'dense', optionally 'edge'.")
            tokens = -1
            for kind in ("sparse", "dense"):
                if kind in named:
                    block = (dense_block if kind == "dense" else sparse_block)(named[kind], f"sequence {i}")
                    if tokens >= 0 and block.shape[0] != tokens:
                        rows = f"'sparse' has {tokens} rows and 'dense' {block.shape[0]}"
                        raise ValueError(f"sequence {i}: {rows}; they must agree.")
                    tokens = block.shape[0]
                    parts[kind].append(block)
            if "edge" in named:
                parts["edge"].append(_edges(sparse_block(named["edge"], f"sequence {i}"), tokens, i))
            lengths.append(tokens)
            for kind, blocks in parts.items():
                if blocks and len(blocks) != i + 1:
                    lacks = 0 if kind in named else i
                    raise ValueError(f"'{kind}' features are missing in sequence {lacks}; give them for all or none.")
                widths = [block.shape[1] for block in blocks[:1] + blocks[-1:]]
                if len(set(widths)) > 1:
                    raise ValueError(f"sequence {i} has {widths[1]} {kind} features, sequence 0 has {widths[0]}.")
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        dense = np.ascontiguousarray(np.concatenate(parts["dense"])) if parts["dense"] else None
        sparse, edge = (_below(parts[kind]) if parts[kind] else None for kind in ("sparse", "edge"))
        stacked = Sequences(offsets, sparse, dense, edge)
        stacked.check_finite()
        return stacked

    def check_finite(self) -> None:
        """Raise a ValueError naming the first sequence with NaN, infinite or huge features."""
        for kind, block in self._blocks().items():
            token = first_bad_row(block)
            if token >= 0:
                i = int(np.searchsorted(self.offsets, token, side="right")) - 1
                beyond = f"NaN, infinite or huge (beyond {LARGEST_FEATURE:g})"
                found = f"sequence {i} has {beyond} {kind} features (position {token - self.offsets[i]})"
                raise ValueError(f"{found}; replace or remove them before fitting.")


def _below(blocks: list[sp.csr_array]) -> sp.csr_array:
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def _edges(block: sp.csr_array, tokens: int, i: int) -> sp.csr_array:
    if block.shape[0] == tokens:
        return block
    if block.shape[0] == max(tokens - 1, 0):
        return _below([sp.csr_array((tokens - block.shape[0], block.shape[1])), block])
    raise ValueError(f"sequence {i} has {tokens} tokens and {block.shape[0]} rows of edge features; give {tokens - 1}.")
