"""Fitted generative models in model files, and back: hidden Markov models and Bayesian networks."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.costs import MatrixCost
from maxmargin.estimators.saving import as_mapping, header_of, restore_training, storable, unfitted
from maxmargin.models.hmm import UNKNOWN, HMMLayout
from maxmargin.models.labels import Labels
from maxmargin.persistence.model_file import write_model
from maxmargin.persistence.values import pack_value, unpack_value

__all__ = ["restore", "save_generative"]

HMM, NET = "DiscriminativeHMM", "DiscriminativeBayesNet"
VECTORS = ("weights", "reference", "counts")


def save_generative(estimator: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted generative model: parameters, states, log-probabilities, reference, counts and certificate.

    Not stored: callbacks, the start of a ramp fit, the history and the trace, and the state behind ``partial_fit``. A
    cost that is a function is stored as its table, a reference model as its probabilities, a graph as its edges.
    """
    estimator._check_fitted()
    layout = estimator.layout_
    tensors = {name: np.array(getattr(estimator, f"{name}_"), np.float64) for name in VECTORS}
    is_hmm = isinstance(layout, HMMLayout)
    facts = _hmm_facts(layout) if is_hmm else _net_facts(layout)
    parameters = storable(estimator, ("callbacks", "start"), partial(_stand_in, estimator))
    header = {
        **header_of(HMM if is_hmm else NET, estimator, parameters, tensors),
        "layout": _packed(facts, tensors),
        "data": pack_value(_data(estimator, is_hmm), tensors, "data"),
    }
    return write_model(path, header, tensors)


def restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """The model of a header and tensors."""
    facts = as_mapping(unpack_value(header["layout"], tensors), "layout")
    layout: Any = _hmm_layout(facts) if header["kind"] == HMM else _net_layout(facts)
    vectors = {name: np.array(tensors[name], np.float64) for name in VECTORS}
    _check_vectors(layout.n_weights, vectors)
    estimator = unfitted(cls, header, tensors)
    data = as_mapping(unpack_value(header["data"], tensors), "data")
    if header["kind"] == HMM:
        estimator.model_ = estimator._model()
    else:
        estimator._take_network(layout.network, _list(data["target"], "targets"), data["hidden"])
    estimator._take_layout(layout)
    estimator.n_seen_ = _whole(data["n_seen"])
    for name, vector in vectors.items():
        setattr(estimator, f"{name}_", vector)
    restore_training(estimator, header, tensors)
    return estimator


def _data(estimator: Any, is_hmm: bool) -> dict[str, Any]:
    """What is known of the training data."""
    data: dict[str, Any] = {"n_seen": int(estimator.n_seen_)}
    return data if is_hmm else {**data, "target": list(estimator.target_), "hidden": estimator.hidden_}


def _check_vectors(n_weights: int, vectors: dict[str, np.ndarray]) -> None:
    for name, vector in vectors.items():
        if vector.shape != (n_weights,):
            raise ValueError(f"its {name} have shape {vector.shape}, its states need ({n_weights},)")
    w = vectors["weights"]
    if not (w <= 1e-6).all():  # minus infinity is a probability of 0
        raise ValueError("some of its weights are no logarithms of probabilities")
    c, counts = vectors["reference"], vectors["counts"]
    if not ((c > 0) & (c <= 1 + 1e-6)).all() or not ((counts >= 0) & np.isfinite(counts)).all():
        raise ValueError("its reference has what is no probability, or its counts what is no count")


# --- layouts ----------------------------------------------------------------------------------------------------------


def _packed(facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    try:
        return pack_value(facts, tensors, "layout")
    except ValueError as error:
        raise ValueError(f"the states or symbols cannot be stored: {error}.") from None


def _hmm_facts(layout: HMMLayout) -> dict[str, Any]:
    return {
        "states": layout.states.classes,
        "symbols": layout.symbols.classes,
        "cost_table": layout.cost_table,
        "normalize": bool(layout.normalize),
        "margin": float(layout.margin),
        "unknown": layout.unknown,
    }


def _hmm_layout(facts: dict[str, Any]) -> HMMLayout:
    states, symbols = Labels(_list(facts["states"], "states")), Labels(_list(facts["symbols"], "symbols"))
    if not len(states) or not len(symbols):
        raise ValueError("it has no states or no symbols")
    if facts["unknown"] not in UNKNOWN:
        raise ValueError(f"its rule for unknown symbols is {str(facts['unknown'])[:40]!r}")
    table = _cost_table(facts["cost_table"], len(states))
    return HMMLayout(states, symbols, table, facts["normalize"] is True, _margin(facts["margin"]), facts["unknown"])


def _net_facts(layout: Any) -> dict[str, Any]:
    net = layout.network
    return {
        "names": list(net.names),
        "states": [labels.classes for labels in net.states],
        "parents": [list(above) for above in net.parents],
        "costs": dict(layout.costs),
        "normalize": bool(layout.normalize),
        "margin": float(layout.margin),
    }


def _net_layout(facts: dict[str, Any]) -> Any:
    from maxmargin.models.bayes_net import BayesNetLayout
    from maxmargin.models.network import Network

    states = [Labels(_list(classes, "states")) for classes in _list(facts["states"], "states")]
    parents = [tuple(_list(above, "parents")) for above in _list(facts["parents"], "parents")]
    if not all(type(u) is int for above in parents for u in above):
        raise ValueError("its parents are no positions of variables")
    net = Network(tuple(_list(facts["names"], "names")), tuple(states), tuple(parents))
    costs = {}
    for v, table in dict(facts["costs"]).items():
        if type(v) is not int or not 0 <= v < len(net):
            raise ValueError(f"it has a cost of the unknown variable {str(v)[:40]!r}")
        costs[v] = _cost_table(table, len(net.states[v]))
    return BayesNetLayout(net, costs, facts["normalize"] is True, _margin(facts["margin"]))


def _list(value: Any, name: str) -> list:
    if type(value) is not list:
        raise ValueError(f"its {name} are not a list")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError(f"its number of examples is {str(value)[:40]!r}")
    return value


def _margin(value: Any) -> float:
    if type(value) is not float or not 0 <= value < np.inf:
        raise ValueError(f"its margin is {str(value)[:40]!r}")
    return value


def _cost_table(value: Any, size: int) -> np.ndarray:
    table = np.ascontiguousarray(value, np.float64)
    if table.shape != (size, size) or not np.isfinite(table).all() or (table < 0).any() or np.diag(table).any():
        raise ValueError(f"its costs are not a table of {size} by {size} with zeros where nothing is wrong")
    return table


# --- parameters -------------------------------------------------------------------------------------------------------


def _stand_in(estimator: Any, name: str) -> Any:
    """A plain value for a parameter that a file cannot hold."""
    layout = estimator.layout_
    is_hmm = isinstance(layout, HMMLayout)
    if name == "reference":
        groups = layout.groups if is_hmm else layout.network.groups
        return {key: table.copy() for key, table in groups(estimator.reference_).items()}
    if name == "structure":
        net = layout.network
        return {name: [net.names[u] for u in above] for name, above in zip(net.names, net.parents, strict=True)}
    if name == "cost" and is_hmm:
        return MatrixCost(layout.cost_table, labels=layout.states.classes, normalize=layout.normalize)
    if name == "cost":
        net, normalize = layout.network, layout.normalize
        return {
            net.names[v]: MatrixCost(table, labels=net.states[v].classes, normalize=normalize)
            for v, table in layout.costs.items()
        }
    return None
