"""The weights of a chain in compact form: no padding, no zeros, no objects.

A group of weights is a matrix with one column per label: ``sparse`` and ``dense`` features, and ``edge`` features (one
row for each feature and left label). It is stored by rows, without its zeros:

=================  ==================================================================================================
``name.counts``    non-zero weights of each row; a feature without any costs one byte (with up to 255 labels)
``name.labels``    their columns, in rising order within a row
``name.values``    the weights
=================  ==================================================================================================

or as the full matrix ``name`` where that takes fewer bytes. How rows are padded in memory is not stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.models.chain import ChainLayout
from maxmargin.models.labels import Labels, padded

__all__ = ["pack_chain", "unpack_chain"]


def pack_chain(
    layout: ChainLayout, weights: np.ndarray, *, precision: str = "float64"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and tensors from which :func:`unpack_chain` makes the layout and the weights again. O(n_weights).

    Parameters
    ----------
    layout : ChainLayout
    weights : array (n_weights,)
    precision : {"float64", "float32"}
        Of the stored weights; float32 halves the file and changes scores by a relative 6e-8.

    Returns
    -------
    facts : dict
        labels (a list); n_sparse, n_dense, n_edge; observed, ends, normalize.
    tensors : dict of arrays
    """
    if precision not in ("float64", "float32"):
        raise ValueError(f'precision must be "float64" or "float32", got {precision!r}.')
    weights = np.asarray(weights, np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"the layout has {layout.n_weights} weights, got an array of shape {weights.shape}.")
    if not np.isfinite(weights).all():
        raise ValueError("some weights are NaN or infinite; fit again, with finite features and a smaller C.")
    if precision == "float32" and np.abs(weights).max(initial=0.0) > np.finfo(np.float32).max:
        raise ValueError('some weights are too large for precision="float32"; use precision="float64".')
    K = len(layout.labels)
    tensors: dict[str, np.ndarray] = {}
    for name, group in layout.groups(weights).items():
        if name in ("transition", "start", "end"):
            tensors[name] = group.astype(precision)
        else:
            tensors |= _pack_rows(name, group if sp.issparse(group) else group.reshape(-1, K), precision)
    tensors["cost"] = layout.cost_table
    for name, mask in (("start", layout.start_mask), ("end", layout.end_mask), ("pairs", layout.pair_mask)):
        tensors[f"allowed.{name}"] = ~np.isinf(mask)
    facts = {
        "labels": list(layout.labels.classes),
        "n_sparse": layout.n_sparse,
        "n_dense": layout.n_dense,
        "n_edge": layout.n_edge,
        "observed": layout.pair_rows is not None,
        "ends": layout.ends,
        "normalize": bool(layout.normalize),
    }
    return facts, tensors


def unpack_chain(facts: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> tuple[ChainLayout, np.ndarray]:
    """Layout and weights from what :func:`pack_chain` made, or from any other source: everything is checked.

    Features keep their numbers. A chain with all weights gets all of them back, so that scores are equal to the last
    bit; of observed pairs only those with a weight other than zero come back, which leaves all scores equal too.
    Memory: that of the weights, at most 2^31 of them, and a few times that of the tensors.

    Raises
    ------
    ValueError
        When facts and tensors do not fit each other, or weights are not finite.
    """
    flags = {name: facts.get(name) for name in ("observed", "ends", "normalize")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"the fact {name!r} of the chain must be true or false, got {value!r}")
    labels = _labels(facts.get("labels"))
    K = len(labels)
    groups = {name: _Rows(name, tensors, K) for name in ("sparse", "dense", "edge")}
    for name, rows in groups.items():
        width = facts.get(f"n_{name}")
        if type(width) is not int or rows.n_rows != (width * K if name == "edge" else width):
            raise ValueError(f"the {name} weights have {rows.n_rows} rows, which does not fit {width!r} features")
    pair_rows = pair_labels = None
    if flags["observed"]:
        pair_rows, pair_labels, observed = groups["sparse"].compressed()
    cost = _floats(tensors, "cost", (K, K)).astype(np.float64)
    if (cost < 0).any():
        raise ValueError("the cost table has negative entries")
    layout = ChainLayout(
        labels=labels,
        stride=padded(K),
        n_sparse=groups["sparse"].n_rows,
        n_dense=groups["dense"].n_rows,
        n_edge=facts["n_edge"],
        ends=bool(flags["ends"]),
        pair_rows=pair_rows,
        pair_labels=pair_labels,
        cost_table=cost,
        normalize=bool(flags["normalize"]),
        start_mask=_mask(tensors, "allowed.start", (K,)),
        end_mask=_mask(tensors, "allowed.end", (K,)),
        pair_mask=_mask(tensors, "allowed.pairs", (K, K)),
    )
    weights = _zeros(layout.n_weights)
    places = layout.groups(weights)
    for name, rows in groups.items():
        if name == "sparse" and flags["observed"]:
            weights[: layout.n_emission] = observed
        elif name in places:
            rows.fill(places[name])
    for name in ("transition", "start", "end"):
        if name in places:
            places[name][...] = _floats(tensors, name, places[name].shape)
    return layout, weights


def _pack_rows(name: str, group: Any, precision: str) -> dict[str, np.ndarray]:
    n_rows, K = group.shape
    if sp.issparse(group):
        group = group.sorted_indices()
        rows, columns = np.repeat(np.arange(n_rows), np.diff(group.indptr)), group.indices
        values = group.data.astype(precision)
        kept = values != 0
        rows, columns, values = rows[kept], columns[kept], values[kept]
        full = None
    else:
        full = group.astype(precision)
        rows, columns = np.nonzero(full)
        values = full[rows, columns]
    counts = np.bincount(rows, minlength=n_rows)
    parts = {
        f"{name}.counts": counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
        f"{name}.labels": columns.astype(np.min_scalar_type(K - 1)),
        f"{name}.values": values,
    }
    if full is not None and full.nbytes <= sum(part.nbytes for part in parts.values()):
        return {name: full}
    return parts


class _Rows:
    """A stored group of weights, checked; without rows when it is not there."""

    def __init__(self, name: str, tensors: Mapping[str, np.ndarray], K: int) -> None:
        self.full: np.ndarray | None = None
        self.K = K
        if name in tensors:
            self.full = _floats(tensors, name, (None, K))
            self.n_rows = len(self.full)
            return
        if f"{name}.counts" not in tensors:
            self.n_rows, self.counts = 0, np.zeros(0, np.int64)
            self.columns, self.values = np.zeros(0, np.int32), np.zeros(0)
            return
        counts, columns = _whole(tensors, f"{name}.counts"), _whole(tensors, f"{name}.labels")
        self.n_rows = len(counts)
        if counts.max(initial=0) > K or columns.max(initial=0) >= K:
            raise ValueError(f"the {name} weights name more labels than the {K} there are")
        self.counts, self.columns = counts.astype(np.int64), columns.astype(np.int32)
        if self.counts.sum() != len(columns):
            raise ValueError(f"the {name} weights have {len(columns)} labels where {self.counts.sum()} are announced")
        self.values = _floats(tensors, f"{name}.values", (len(columns),))
        first = np.zeros(len(columns) + 1, bool)  # the labels rise, but for the first of each row
        first[np.cumsum(self.counts) - self.counts] = True
        if not (first[1:-1] | (np.diff(self.columns) > 0)).all():
            raise ValueError(f"the {name} weights have a label twice in a row, or labels out of order")

    def compressed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row pointers, labels and weights of the stored pairs."""
        if self.full is not None:
            raise ValueError("observed pairs of features and labels must be stored by rows")
        rows = np.zeros(self.n_rows + 1, np.int32)
        np.cumsum(self.counts, out=rows[1:])
        return rows, self.columns, self.values

    def fill(self, place: np.ndarray) -> None:
        """Write the weights into a matrix of zeros (n_rows, K), or (n_edge, K, K)."""
        if self.full is not None:
            place[...] = self.full.reshape(place.shape)
            return
        rows = np.repeat(np.arange(self.n_rows), self.counts)
        where = (rows,) if place.ndim == 2 else (rows // self.K, rows % self.K)
        place[(*where, self.columns)] = self.values


def _labels(classes: Any) -> Labels:
    if not isinstance(classes, list) or not classes:
        raise ValueError("the labels of the chain must be a list with at least one label")
    if any(isinstance(label, np.ndarray) or not isinstance(label, Hashable) or label != label for label in classes):
        raise ValueError("the labels of the chain must be text, numbers, None, or tuples of them")
    try:
        return Labels(classes)
    except TypeError as error:  # a tuple that holds a list
        raise ValueError(f"the labels of the chain must be hashable: {error}") from None


def _tensor(tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if name not in tensors:
        raise ValueError(f"the tensor {name!r} of the chain is missing")
    return tensors[name]


def _floats(tensors: Mapping[str, np.ndarray], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    array = _tensor(tensors, name)
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if array.dtype.kind != "f" or not fits:
        raise ValueError(f"the tensor {name!r} has dtype {array.dtype} and shape {array.shape}; expected {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"the tensor {name!r} has numbers that are NaN or infinite")
    return array


def _whole(tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    array = _tensor(tensors, name)
    if array.dtype.kind != "u" or array.ndim != 1:
        raise ValueError(f"the tensor {name!r} has dtype {array.dtype} and shape {array.shape}; expected counts")
    return array


def _mask(tensors: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    allowed = _tensor(tensors, name)
    if allowed.dtype != bool or allowed.shape != shape:
        raise ValueError(f"the tensor {name!r} has dtype {allowed.dtype} and shape {allowed.shape}; expected {shape}")
    return np.where(allowed, 0.0, -np.inf)


def _zeros(n_weights: int) -> np.ndarray:
    """Zeros that take memory only where they are written to, on most systems."""
    if n_weights < 2**31:
        try:
            return np.zeros(n_weights)
        except MemoryError:
            pass
    raise ValueError(f"the chain has {n_weights} weights ({n_weights * 8 / 2**30:.1f} GB), more than fit in memory")
