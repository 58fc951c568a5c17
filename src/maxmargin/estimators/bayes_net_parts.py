"""Parts of the estimator of Bayesian networks: its graph from a frame, its reference, samples and tables as frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from maxmargin.models.frames import Frame, encode_column, learn_states
from maxmargin.models.labels import Labels, plain
from maxmargin.models.network import Network, Structure
from maxmargin.models.structure import learn_structure

if TYPE_CHECKING:
    import pandas
    import pyagrum

__all__ = ["aligned_network", "build_network", "column_of", "draw", "hidden_mask", "table_frames"]

States = Mapping[str, Sequence[Hashable]] | None


@runtime_checkable
class NamedGraph(Protocol):
    """networkx's graphs."""

    @property
    def nodes(self) -> Iterable[str]: ...


@runtime_checkable
class NumberedGraph(Protocol):
    """pyAgrum's graphs."""

    def arcs(self) -> Iterable[tuple[int, int]]: ...
    def nodes(self) -> Iterable[int]: ...
    def parents(self, node: int) -> Iterable[int]: ...


@runtime_checkable
class NumberedNetwork(NumberedGraph, Protocol):
    """pyAgrum's networks."""

    def variable(self, node: int) -> pyagrum.DiscreteVariable: ...


def build_network(structure: object, frame: Frame, states: States, targets: Sequence[str], unknown: str) -> Network:
    """The network of a frame; parameters as those of the estimator.

    The variables of a graph are those in its edges and the targets; other columns are not used. ``states`` are values
    of some columns; those of the others are learned.
    """
    if isinstance(structure, NumberedGraph):  # pyAgrum's networks and graphs number their variables
        if not isinstance(structure, NumberedNetwork):
            raise ValueError("the graph has numbers for variables; give a network, or edges by name.")
        named = {v: structure.variable(v).name() for v in structure.nodes()}
        structure = {name: [named[p] for p in structure.parents(v)] for v, name in named.items()}
    if isinstance(structure, Network):
        _check_columns(frame, structure.names)
        return structure
    names = list(frame.columns) if isinstance(structure, str) else _names(structure, frame, targets)
    _check_columns(frame, [*names, *targets])
    labels = {name: _states(frame, name, states) for name in names}
    if not isinstance(structure, str):
        return Network.of(cast(Structure, structure), {name: own.classes for name, own in labels.items()})
    codes = np.empty((frame.n_rows, len(names)), np.int32)
    for v, name in enumerate(names):
        codes[:, v] = encode_column(frame.columns[name], labels[name], name, unknown)
    if structure in ("naive", "tan") and len(targets) != 1:
        given = f"has one class; got {len(targets)} targets"
        raise ValueError(f'structure "{structure}" {given}. Use "chow-liu" or give a graph.')
    return learn_structure(structure, names, [labels[name] for name in names], codes, targets[0] if targets else None)


def _names(structure: object, frame: Frame, targets: Sequence[str]) -> list[str]:
    """Variables of a graph, in the order of the frame."""
    if isinstance(structure, NamedGraph):
        used = set(structure.nodes)
    elif isinstance(structure, Mapping):
        used = set(structure).union(*(above for above in structure.values() if not isinstance(above, str)))
    else:
        try:
            pairs = cast(Iterable[Sequence[str]], structure)
            used = {name for pair in pairs if not isinstance(pair, str) for name in pair}
        except TypeError:
            raise TypeError(
                'structure must be "naive", "tan", "chow-liu", a Network, a list of edges (parent, child), a mapping '
                f"of child to parents, or a networkx.DiGraph; got {structure!r}."
            ) from None
    used |= set(targets)
    _check_columns(frame, sorted(used, key=str))
    return [name for name in frame.columns if name in used]


def _check_columns(frame: Frame, names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        shown = ", ".join(map(repr, list(frame.columns)[:8])) + (", ..." if len(frame.columns) > 8 else "")
        advice = "add it, with None where a value is missing."
        raise ValueError(f"the frame has no column {lacking[0]!r} (it has {shown}); {advice}")


def _states(frame: Frame, name: str, states: States) -> Labels:
    if states is not None and name in states:
        return Labels(plain(states[name]))
    if name in frame.categories:
        return Labels(frame.categories[name])
    return learn_states(frame.columns[name], name)


def hidden_mask(hidden: object, network: Network, n: int) -> np.ndarray:
    """Hidden variables from lists of names, one for each row; bool (n, v)."""
    if isinstance(hidden, str) or not isinstance(hidden, (Sequence, np.ndarray)):
        raise TypeError(f'hidden must be "coding" or one list of names for each row; got {hidden!r}.')
    if len(hidden) != n:
        raise ValueError(f"there are {n} rows and {len(hidden)} hidden lists; give one for each row, empty for none.")
    mask = np.zeros((n, len(network)), bool)
    for i, names in enumerate(hidden):
        if isinstance(names, str):
            raise TypeError(f"example {i} has the text {names!r} for its hidden variables; give a list of names.")
        for name in names:
            if name not in network.code:
                raise ValueError(f"example {i} hides {name!r}, which is not a variable of the network.")
            mask[i, network.code[name]] = True
    return mask


def aligned_network(network: Network, other: Network, probabilities: np.ndarray) -> np.ndarray:
    """The probabilities of another network with the same graph; states that it does not know get none."""
    groups, tables = other.groups(probabilities), {}
    for v, name in enumerate(network.names):
        own = [network.names[u] for u in network.parents[v]]
        theirs = [other.names[u] for u in other.parents[other.code[name]]] if name in other.code else None
        if theirs is None or set(own) != set(theirs):
            found = "is not in it" if theirs is None else f"has the parents {theirs} there and {own} here"
            raise ValueError(f"the reference model has another graph: {name!r} {found}. Give both the same structure.")
        axes = [theirs.index(u) for u in own] + [len(own)]
        table = np.pad(np.transpose(groups[name], axes), [(0, 1)] * len(axes))
        codes = [
            [other.states[other.code[u]].code.get(x, -1) for x in network.states[network.code[u]].classes]
            for u in [*own, name]
        ]
        if all(code < 0 for code in codes[-1]):
            raise ValueError(f"the reference model has none of the states of {name!r}; check the names.")
        tables[name] = table[np.ix_(*codes)]
    return network.join(tables)


def draw(network: Network, probabilities: np.ndarray, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Codes of n rows, parents before children, (n, v)."""
    codes = np.empty((n, len(network)), np.int64)
    groups = network.groups(probabilities)
    for v in network.order:
        cumulative = np.cumsum(groups[network.names[v]][tuple(codes[:, u] for u in network.parents[v])], axis=-1)
        point = rng.random_sample(n)[:, None] * cumulative[..., -1:]
        codes[:, v] = np.minimum((cumulative <= point).sum(axis=-1), network.cardinalities[v] - 1)
    return codes


def table_frames(network: Network, probabilities: np.ndarray) -> dict[str, pandas.DataFrame | pandas.Series]:
    """Tables with the names of states: a Series without parents, else a frame with a row for each configuration."""
    try:
        import pandas
    except ImportError:
        raise ImportError("tables() needs pandas; pip install pandas") from None
    frames: dict[str, pandas.DataFrame | pandas.Series] = {}
    for v, (name, table) in enumerate(network.groups(probabilities).items()):
        classes = [network.states[u].classes for u in network.family(v)]
        if len(classes) == 1:
            frames[name] = pandas.Series(table, index=classes[0], name=name)
            continue
        above = [network.names[u] for u in network.parents[v]]
        index = pandas.Index(classes[0], name=above[0])
        if len(above) > 1:
            index = pandas.MultiIndex.from_product(classes[:-1], names=above)
        frames[name] = pandas.DataFrame(table.reshape(-1, len(classes[-1])), index=index, columns=classes[-1])
    return frames


def column_of(labels: list) -> np.ndarray:
    """Labels as an array of one dimension, whatever they are."""
    array = np.array(labels) if labels and all(isinstance(x, type(labels[0])) for x in labels) else None
    if array is None or array.ndim != 1:
        array = np.empty(len(labels), object)
        array[:] = labels
    return array
