"""Model files of version 0.1 of the library, in which each kind of estimator had a form of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from maxmargin.estimators.model_files import Contents, as_mapping
from maxmargin.estimators.registry import KINDS
from maxmargin.models.chain import ChainLayout
from maxmargin.models.layout_state import StateReader
from maxmargin.persistence.values import Maker, unpack_value
from maxmargin.persistence.vectors import zeros

__all__ = ["read_0_1"]


def read_0_1(header: Mapping[str, str], tensors: Mapping[str, np.ndarray], make: Maker) -> Contents:
    """The contents of a file, as one of today has them."""
    kind = header["kind"]
    facts = as_mapping(unpack_value(header["layout"], tensors), "layout")
    stored = [name for name in ("labels", "features", "method", "data") if name in header]
    fitted = {name: unpack_value(header[name], tensors) for name in stored}
    arrays: dict[str, np.ndarray] = {}
    weights: Mapping[str, np.ndarray] = tensors
    more: dict[str, object] = {}
    if kind == "SequenceTagger":
        facts["labels"] = fitted["labels"]
        arrays, weights = _chain(facts, tensors)
    elif kind == "GraphLabeler":
        more = {"method": fitted.get("method")}
        factors = facts["factors"]
        facts["factors"] = list(factors) if isinstance(factors, tuple) else factors
    elif kind in ("DiscriminativeHMM", "DiscriminativeBayesNet"):
        more = as_mapping(fitted["data"], "data") | {name: tensors[name] for name in ("reference", "counts")}
    if kind == "DiscriminativeBayesNet":
        costs = facts["costs"]
        if not isinstance(costs, dict):
            raise ValueError("its costs are not a mapping")
        facts["costs"] = list(costs)
        arrays = {f"cost.{v}": np.asarray(table, np.float64) for v, table in costs.items()}
    elif kind in ("GraphLabeler", "DiscriminativeHMM"):
        arrays = {"cost": np.asarray(facts.pop("cost_table"), np.float64)}
    features = None if fitted.get("features") is None else as_mapping(fitted["features"], "feature extractor")
    if features is not None and kind == "ImageSegmenter":
        features = {**features, "kind": "ImageFeatures"}
    parameters = as_mapping(unpack_value(header["parameters"], tensors, make), "parameters")
    if kind == "GraphLabeler" and "positive" in parameters:  # None stood for no weights, "auto" for what None is now
        given = parameters["positive"]
        parameters["positive"] = [] if given is None else None if type(given) is str and given == "auto" else given
    if kind == "ImageSegmenter" and isinstance(parameters.get("start"), str):  # it said where a ramp begins
        parameters["start"] = None
    training = as_mapping(unpack_value(header["training"], tensors), "training")
    return Contents(kind, parameters, training, (KINDS[kind].layout, facts, arrays), weights, more, features)


def _chain(
    facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Tensors of the layout, and the weights of a chain in one vector.

    Groups of weights were stored by rows, one column per label: as ``name.counts``, ``name.labels`` and ``name.values``
    without zeros, or as the full matrix ``name``.
    """
    old = {name.removeprefix("chain."): array for name, array in tensors.items() if name.startswith("chain.")}
    arrays = {name: old[name] for name in ("cost", "allowed.start", "allowed.end", "allowed.pairs")}
    if facts.get("observed") is True:
        arrays |= {f"observed.{part}": old[f"sparse.{part}"] for part in ("counts", "labels")}
    layout, state = ChainLayout.from_state(facts, arrays), StateReader({}, old)
    K = len(layout.labels)
    vector = zeros(layout.n_weights, "weights")
    for name, place in layout.groups(vector).items():
        if sp.issparse(place):
            vector[: layout.n_emission] = state.floats(f"{name}.values", (layout.n_emission,))
        elif f"{name}.counts" in old:
            pointers, columns = state.rows(name, K)
            rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
            if len(pointers) - 1 != place.size // K:
                raise ValueError(f"its {name} weights have {len(pointers) - 1} rows where {place.size // K} are needed")
            where = (rows,) if place.ndim == 2 else (rows // K, rows % K)
            place[(*where, columns)] = state.floats(f"{name}.values", columns.shape)
        else:
            shape = (place.size // K, K) if place.ndim == 3 else place.shape
            place[...] = state.floats(name, shape).reshape(place.shape)
    return arrays, {"weights": vector}
