"""Bayesian networks to and from other libraries and files.

Every function takes or gives a :class:`~maxmargin.models.network.Network` and its probabilities, an array (n_weights,)
in the order of the network's weights.

Tables may sum to less than 1: what they leave belongs to values never seen. Other libraries and files hold
distributions only, so there every such variable, and all below it, gets :data:`UNSEEN` as its last state, which takes
that mass, and which a parent in that state makes certain. As no row ever shows it, all probabilities of the other
values are in proportion as they were, and so are the most probable ones. The functions that read take the state away.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.estimators.bayes_net_parts import States
from maxmargin.models.network import Network
from maxmargin.persistence.bif import Bif, read_bif, write_bif

if TYPE_CHECKING:
    import networkx
    import pyagrum
    from pgmpy.models import DiscreteBayesianNetwork

__all__ = ["from_bif", "from_networkx", "from_pgmpy", "from_pyagrum", "to_bif", "to_networkx", "to_pgmpy", "to_pyagrum"]

SUM = 1e-6  # how far from 1 a distribution may sum
UNSEEN = "never_seen_"  # the state that takes the mass that tables leave

Values = Mapping[str, Sequence[Hashable]]


def to_bif(network: Network, probabilities: np.ndarray, path: str | os.PathLike[str], *, name: str = "unknown") -> Path:
    """Write a BIF file. States are written as text; names and numbers are read back exactly.

    What some reader would not take for a word, a space for instance, goes in as its code: ``sea_x0020_level``.
    """
    network, p = completed(network, probabilities)
    return write_bif(path, Bif(name, _texts(network), _parents(network), network.groups(p)))


def from_bif(path: str | os.PathLike[str], states: States = None) -> tuple[Network, np.ndarray]:
    """The network of a BIF file; ``states`` by name, in the order of the file, where they are not to be text."""
    bif = read_bif(path)
    return _assembled(bif.states, bif.parents, bif.tables, states, str(path))


def to_pyagrum(network: Network, probabilities: np.ndarray) -> pyagrum.BayesNet:
    """As ``pyagrum.BayesNet``; its labels are the states as text."""
    try:
        import pyagrum as gum
    except ImportError:
        raise ImportError("to_pyagrum() needs pyagrum; pip install pyagrum") from None
    network, p = completed(network, probabilities)
    tables = network.groups(p)
    net = gum.BayesNet()
    for name, labels in _texts(network).items():
        net.add(gum.LabelizedVariable(name, name, labels))
    for child, above in _parents(network).items():
        for parent in reversed(above):  # its arrays have the parents last to first
            net.addArc(parent, child)
        net.cpt(child)[:] = tables[child]
    return net


def from_pyagrum(net: pyagrum.BayesNet, states: States = None) -> tuple[Network, np.ndarray]:
    """From ``pyagrum.BayesNet``; ``states`` as for :func:`from_bif`."""
    names = [net.variable(node).name() for node in net.nodes()]
    labels = {name: list(net.variable(name).labels()) for name in names}
    parents, tables = {}, {}
    for name in names:
        axes = list(net.cpt(name).names)[::-1]  # numpy's order
        parents[name] = [other for other in axes if other != name]
        array = np.asarray(net.cpt(name).toarray(), np.float64)
        tables[name] = np.transpose(array, [axes.index(other) for other in (*parents[name], name)])
    return _assembled(labels, parents, tables, states, "the network")


def to_pgmpy(network: Network, probabilities: np.ndarray) -> DiscreteBayesianNetwork:
    """As pgmpy's ``DiscreteBayesianNetwork``, with the states themselves."""
    try:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError:
        raise ImportError("to_pgmpy() needs pgmpy; pip install pgmpy.") from None
    network, p = completed(network, probabilities)
    tables = network.groups(p)
    net = DiscreteBayesianNetwork()
    net.add_nodes_from(network.names)
    net.add_edges_from(network.edges)
    for v, (name, above) in enumerate(_parents(network).items()):
        *cards, size = (len(network.states[u]) for u in network.family(v))
        values = np.moveaxis(tables[name], -1, 0).reshape(size, -1)
        known = {"evidence": above, "evidence_card": cards} if above else {}
        states = {network.names[u]: list(network.states[u].classes) for u in network.family(v)}
        net.add_cpds(TabularCPD(name, size, values, state_names=states, **known))
    return net


def from_pgmpy(net: DiscreteBayesianNetwork, states: States = None) -> tuple[Network, np.ndarray]:
    """From pgmpy's ``DiscreteBayesianNetwork``; ``states`` as for :func:`from_bif`."""
    cpds = {node: net.get_cpds(node) for node in net.nodes()}
    for node, cpd in cpds.items():
        if cpd is None:
            raise ValueError(f"the pgmpy network has no probabilities for {str(node)!r}; fit it first.")
    labels = {str(node): list(cpd.state_names[node]) for node, cpd in cpds.items()}
    parents = {str(node): [str(other) for other in cpd.variables[1:]] for node, cpd in cpds.items()}
    tables = {str(node): np.moveaxis(np.asarray(cpd.values, np.float64), 0, -1) for node, cpd in cpds.items()}
    for node, cpd in cpds.items():  # a parent's states may stand in another order in a child
        for axis, other in enumerate(cpd.variables[1:]):
            order = [cpd.state_names[other].index(state) for state in labels[str(other)]]
            tables[str(node)] = np.take(tables[str(node)], order, axis=axis)
    return _assembled(labels, parents, tables, states, "the pgmpy network")


def to_networkx(network: Network, probabilities: np.ndarray) -> networkx.DiGraph:
    """As ``networkx.DiGraph``: nodes have ``states``, ``parents`` in order, and a ``table`` (its own axis last)."""
    try:
        import networkx
    except ImportError:
        raise ImportError("to_networkx() needs networkx; pip install networkx.") from None
    tables = network.groups(_checked(network, probabilities))
    graph = networkx.DiGraph()
    for (name, parents), labels in zip(_parents(network).items(), network.states, strict=True):
        graph.add_node(name, states=list(labels.classes), parents=parents, table=tables[name].copy())
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: networkx.DiGraph, states: States = None) -> tuple[Network, np.ndarray]:
    """From a graph as :func:`to_networkx` makes it; without ``parents``, the axes are in the order of predecessors."""
    labels, parents, tables = {}, {}, {}
    for name, facts in graph.nodes(data=True):
        for key in ("states", "table"):
            if key not in facts:
                raise ValueError(f"the node {name!r} has no {key!r}; set it with graph.nodes[{name!r}][{key!r}] = ...")
        labels[name], tables[name] = list(facts["states"]), np.asarray(facts["table"], np.float64)
        above = list(graph.predecessors(name))
        parents[name] = list(facts.get("parents", above))
        if sorted(map(str, parents[name])) != sorted(map(str, above)):
            found = f"has the parents {parents[name]}, and edges from {above}"
            raise ValueError(f"the node {name!r} {found}; make them agree.")
    return _assembled(labels, parents, tables, states, "the graph")


def _assembled(
    labels: Values, parents: Mapping[str, Sequence[str]], tables: Mapping[str, np.ndarray], states: States, source: str
) -> tuple[Network, np.ndarray]:
    labels, tables = _without_unseen(labels, parents, tables)
    named = dict(labels)
    for name, values in (states or {}).items():
        if name not in labels:
            raise ValueError(f"states are given for {name!r}, which {source} does not have; correct the name.")
        if len(values) != len(labels[name]):
            raise ValueError(f"{name!r} has {len(labels[name])} states in {source}, and {len(values)} are given.")
        named[name] = values
    try:
        network = Network.of(parents, named)
        return network, _checked(network, network.join(tables))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} cannot be used: {error}") from error


def _parents(network: Network) -> dict[str, list[str]]:
    return {name: [network.names[u] for u in above] for name, above in zip(network.names, network.parents, strict=True)}


def _texts(network: Network) -> dict[str, list[str]]:
    """States as text, which must still differ."""
    texts = {}
    for name, labels in zip(network.names, network.states, strict=True):
        texts[name] = [str(state) for state in labels.classes]
        if len(set(texts[name])) < len(labels):
            shown = ", ".join(texts[name])[:80]
            raise ValueError(f"two states of {name!r} look the same as text ({shown}); rename one.")
    return texts


def _checked(network: Network, probabilities: np.ndarray) -> np.ndarray:
    p = np.asarray(probabilities, np.float64)
    if p.shape != (network.n_weights,):
        raise ValueError(f"the network has {network.n_weights} probabilities, got an array of shape {p.shape}.")
    bad = np.flatnonzero(~(np.isfinite(p) & (p >= 0)))
    if len(bad):
        table = network.tables.name(int(network.tables.table[bad[0]]))
        raise ValueError(f"{table} has the probability {p[bad[0]]}; give finite numbers >= 0, not logarithms.")
    return p


def completed(network: Network, probabilities: np.ndarray) -> tuple[Network, np.ndarray]:
    """The network with :data:`UNSEEN` wherever tables leave mass, and below; as it is where none does."""
    p = _checked(network, probabilities)
    sums = network.tables.sums(p)
    above = np.flatnonzero(sums > 1 + SUM)
    if len(above):
        name = network.tables.name(int(above[0]))
        raise ValueError(f"{name} sums to {sums[above[0]]:.6g}, more than 1; divide every table by its sum first.")
    parents, old = _parents(network), network.groups(p)
    grown = {name for name, table in old.items() if (table.sum(axis=-1) < 1 - SUM).any()}
    if not grown:
        return network, p
    while more := {name for name, own in parents.items() if name not in grown and not grown.isdisjoint(own)}:
        grown |= more
    states = {name: list(labels.classes) for name, labels in zip(network.names, network.states, strict=True)}
    tables = {}
    for name, table in old.items():
        if name not in grown:
            tables[name] = table
            continue
        if UNSEEN in map(str, states[name]):
            raise ValueError(f"{name!r} has a state {UNSEEN!r}, which stands for values never seen; rename it.")
        wider = np.zeros([len(states[other]) + (other in grown) for other in (*parents[name], name)])
        wider[..., -1] = 1.0
        inside = tuple(slice(size) for size in table.shape[:-1])
        wider[inside] = np.concatenate([table, np.maximum(1.0 - table.sum(axis=-1, keepdims=True), 0.0)], axis=-1)
        tables[name] = wider
    states = {name: [*own, UNSEEN] if name in grown else own for name, own in states.items()}
    whole = Network.of(parents, states)
    return whole, whole.join(tables)


def _without_unseen(
    labels: Values, parents: Mapping[str, Sequence[str]], tables: Mapping[str, np.ndarray]
) -> tuple[Values, Mapping[str, np.ndarray]]:
    """Undo :func:`completed`."""
    grown = {name for name, own in labels.items() if len(own) > 1 and str(own[-1]) == UNSEEN}
    if not grown:
        return labels, tables
    kept = {}
    for name, table in tables.items():
        cut = tuple(slice(-1 if other in grown else None) for other in (*parents[name], name))
        kept[name] = table[cut] if table.ndim == len(cut) else table  # the network refuses other shapes
    return {name: own[:-1] if name in grown else own for name, own in labels.items()}, kept
