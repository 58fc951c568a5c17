"""Word lattices: directed acyclic graphs whose paths spell outputs, with features on every arc.

    0 --the--> 1 --small--> 2 --house--> 3          "the small house", "the little house", "the cottage"
               1 --little-> 2
               1 ---------cottage------> 3

An n-best list is the flat special case: two nodes, and one arc for each hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.door import LARGEST_FEATURE, first_bad_row, indices, sparse_block

__all__ = ["Lattice", "WordCodes", "as_lattice", "grouped", "word_codes"]

MOST = 2**31  # nodes, arcs and words, which kernels count in 32 bits
ArcFeatures: TypeAlias = "ArrayLike | sp.csr_array | Sequence[Mapping[str, float]]"
ArcWords = Iterable[str | Sequence[str]]


class WordCodes(NamedTuple):
    """The words of all arcs as numbers: those of arc e are ``code[begin[e] : begin[e + 1]]``."""

    begin: np.ndarray  # int32 (E + 1,)
    code: np.ndarray  # int32
    vocabulary: list[object]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Lattice:
    """A directed acyclic graph with words and features on its arcs; immutable, and checked when it is made.

    Every path from node 0 to the last node spells an output: the words of its arcs, one after the other. Several paths
    may spell the same.

    Parameters
    ----------
    n_nodes : int
        Nodes are numbered so that every arc goes upwards; 0 is the start and the last one the end. Every node lies on
        a path from the start to the end.
    tails, heads : array (E,)
        Where each arc begins and ends. Several arcs may join the same two nodes.
    features : array or sparse matrix (E, F), or list of E dicts
        Of each arc; dicts hold numbers by name, and a name that is missing stands for 0.
    words : list of E texts, or of E lists of words
        What each arc says: one word, several, or nothing.
    names : list of F texts, optional
        Of the columns of a matrix; their positions by default.
    n_dense : int, optional
        The first so many columns are features that every lattice has; a model refuses lattices without them. Further
        ones, such as single phrases, may be missing here and new there. All columns of a matrix by default, none of
        dicts.
    trim : bool
        Leave out the nodes that lie on no path from the start to the end, and their arcs, instead of refusing them. The
        others are numbered anew.
    """

    n_nodes: int
    tails: np.ndarray  # int32 (E,)
    heads: np.ndarray  # int32 (E,)
    features: sp.csr_array  # float64 (E, F)
    words: tuple[str, ...]  # of each arc, one space between words
    names: tuple[str, ...]
    n_dense: int

    def __init__(
        self,
        n_nodes: int,
        tails: ArrayLike,
        heads: ArrayLike,
        features: ArcFeatures,
        words: ArcWords,
        names: Sequence[str] | None = None,
        n_dense: int | None = None,
        trim: bool = False,
    ) -> None:
        n, tail, head = _checked_ends(n_nodes, tails, heads)
        matrix, known, dense = _checked_features(features, names, n_dense)
        said = _checked_words(words)
        for count, what in ((matrix.shape[0], "rows of features"), (len(said), "texts")):
            if count != len(tail):
                raise ValueError(f"there are {len(tail)} arcs and {count} {what}; give one for each arc.")
        if trim:
            n, tail, head, kept = _trimmed(n, tail, head)
            matrix, said = matrix[kept], tuple(said[e] for e in kept.tolist())
        _check_arcs(n, tail, head)
        for array in (tail, head, matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        self.__dict__.update(n_nodes=n, tails=tail, heads=head, features=matrix, words=said, names=known, n_dense=dense)

    @classmethod
    def from_nbest(
        cls,
        hypotheses: ArcWords,
        features: ArcFeatures,
        names: Sequence[str] | None = None,
        n_dense: int | None = None,
    ) -> Lattice:
        """The flat lattice of an n-best list: one arc from node 0 to node 1 for each hypothesis."""
        said = _checked_words(hypotheses)
        if not said:
            raise ValueError("the list has no hypothesis; give at least one.")
        n = len(said)
        return cls(2, np.zeros(n, np.int32), np.ones(n, np.int32), features, said, names, n_dense)

    @property
    def n_arcs(self) -> int:
        return len(self.tails)

    @property
    def flat(self) -> bool:
        """Whether it is a list: every path has one arc."""
        return self.n_nodes == 2

    def text(self, arcs: Iterable[int]) -> str:
        """What a path says, by its arcs in order."""
        return " ".join(self.words[e] for e in arcs if self.words[e])

    @cached_property
    def entering(self) -> tuple[np.ndarray, np.ndarray]:
        """The arcs by the nodes that they lead to, and where those of each node begin; see :func:`grouped`."""
        return grouped(self.heads, self.n_nodes)

    @cached_property
    def leaving(self) -> tuple[np.ndarray, np.ndarray]:
        """The arcs by the nodes that they leave, and where those of each node begin; see :func:`grouped`."""
        return grouped(self.tails, self.n_nodes)

    @cached_property
    def codes(self) -> WordCodes:
        """The words of all arcs as numbers."""
        return word_codes([text.split() for text in self.words])

    def path_of(self, text: str) -> list[int] | None:
        """The arcs of a path that says a text; None when there is none. Of several, the first by its arcs."""
        said, (order, begin) = text.split(), self.leaving
        reached: list[dict[int, int]] = [{} for _ in range(self.n_nodes)]  # by node: words said, and the arc before
        reached[0][0] = -1
        for v in range(self.n_nodes - 1):
            for e in order[begin[v] : begin[v + 1]].tolist() if reached[v] else ():
                words = self.words[e].split()
                for n in reached[v]:
                    if said[n : n + len(words)] == words:
                        reached[self.heads[e]].setdefault(n + len(words), e)
        node, n, path = self.n_nodes - 1, len(said), []
        if n not in reached[node]:
            return None
        while node > 0:
            e = reached[node][n]
            path.append(e)
            node, n = int(self.tails[e]), n - len(self.words[e].split())
        return path[::-1]

    def __len__(self) -> int:
        return self.n_arcs

    def __repr__(self) -> str:
        return f"Lattice({self.n_nodes} nodes, {self.n_arcs} arcs, {len(self.names)} features)"


def word_codes(words: Sequence[Sequence[object]]) -> WordCodes:
    """The words of each arc as numbers, in the order in which they first come."""
    vocabulary: dict[object, int] = {}
    code = [vocabulary.setdefault(word, len(vocabulary)) for said in words for word in said]
    begin = np.concatenate([[0], np.cumsum([len(said) for said in words])]).astype(np.int32)
    return WordCodes(begin, np.array(code, np.int32), list(vocabulary))


def grouped(ends: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Arcs sorted by one of their ends, in their own order among equal ones, and where those of each node begin.

    int32 (E,) and (n_nodes + 1,).
    """
    begin = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n_nodes))]).astype(np.int32)
    rising = len(ends) < 2 or bool((ends[1:] >= ends[:-1]).all())
    order = np.arange(len(ends)) if rising else np.argsort(ends, kind="stable")
    return order.astype(np.int32), begin


def as_lattice(given: object, example: int) -> Lattice:
    """A lattice, or what its constructor takes as a mapping; errors name the example."""
    if isinstance(given, Lattice):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"example {example} is a {type(given).__name__}; give a Lattice, or a mapping of its parts.")
    try:
        return Lattice(**given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"example {example}: {error}") from None


def _checked_ends(n_nodes: object, tails: ArrayLike, heads: ArrayLike) -> tuple[int, np.ndarray, np.ndarray]:
    """Nodes and the ends of arcs, each a node."""
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, (int, np.integer)) or not 2 <= n_nodes < MOST:
        raise ValueError(f"n_nodes is {n_nodes!r:.60}; give a whole number from 2 on: a start and an end at least.")
    n = int(n_nodes)
    found = [indices(given, n, name) for name, given in (("tails", tails), ("heads", heads))]
    if found[0].ndim != 1 or found[0].shape != found[1].shape:
        shapes = f"tails has shape {found[0].shape} and heads {found[1].shape}"
        raise ValueError(f"{shapes}; give one number for each arc in both.")
    if len(found[0]) >= MOST:
        raise ValueError(f"there are {len(found[0])} arcs, where 2^31 - 1 can be counted; make the lattice smaller.")
    return n, found[0].astype(np.int32), found[1].astype(np.int32)


def _trimmed(n: int, tail: np.ndarray, head: np.ndarray) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and arcs on paths from the first node to the last, and which of the arcs these are."""
    from scipy.sparse.csgraph import breadth_first_order

    graph = sp.csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(n, n))
    ways = np.zeros(n, int)
    for start, arcs in ((0, graph), (n - 1, sp.csr_array(graph.T))):
        ways[breadth_first_order(arcs, start, return_predecessors=False)] += 1
    on_path = ways == 2
    if not on_path[0]:
        raise ValueError(f"there is no path from node 0 to node {n - 1}; such a lattice has no output.")
    new, kept = (np.cumsum(on_path) - 1).astype(np.int32), np.flatnonzero(on_path[tail] & on_path[head])
    return int(on_path.sum()), new[tail[kept]], new[head[kept]], kept


def _check_arcs(n: int, tail: np.ndarray, head: np.ndarray) -> None:
    """Refuse arcs that do not go upwards, and nodes on no path from the first to the last."""
    if (tail >= head).any():
        raise ValueError(_not_upwards(n, tail, head))
    entered, left = np.zeros(n, bool), np.zeros(n, bool)
    entered[head], left[tail] = True, True
    entered[0] = left[-1] = True  # where arcs go upwards, nodes that can be entered at all are reached from node 0
    advice = "remove such nodes, or let trim=True do it"
    for mark, what in ((entered, "cannot be reached from node 0"), (left, f"does not lead to node {n - 1}")):
        if not mark.all():
            node = int(np.argmin(mark))
            if node in (0, n - 1):
                raise ValueError(f"there is no path from node 0 to node {n - 1}: no arc is at node {node}; add one.")
            raise ValueError(f"node {node} {what}; {advice}.")


def _not_upwards(n: int, tail: np.ndarray, head: np.ndarray) -> str:
    """What is wrong with arcs that do not all go upwards: a cycle, or only the numbers of nodes."""
    from scipy.sparse.csgraph import connected_components

    e = int(np.argmax(tail >= head))
    graph = sp.csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(n, n))
    _, part = connected_components(graph, connection="strong")
    inside = np.flatnonzero(part[tail] == part[head])
    if len(inside):
        nodes = np.flatnonzero(part == part[tail[inside[0]]])
        named = ", ".join(map(str, nodes[:8].tolist())) + ", ..." * (len(nodes) > 8)
        what = f"goes round a cycle: node {named} leads to itself" if len(nodes) == 1 else f"is on a cycle of {named}"
        arc = f"arc {inside[0]}, from {tail[inside[0]]} to {head[inside[0]]}"
        return f"{arc}, {what}; a lattice has none: remove an arc of it."
    return f"arc {e} goes from {tail[e]} to {head[e]}; number the nodes so that every arc goes upwards."


def _checked_features(
    features: ArcFeatures, names: Sequence[str] | None, n_dense: int | None
) -> tuple[sp.csr_array, tuple[str, ...], int]:
    """Features in compressed rows of sorted columns, the names of the columns, and how many are dense."""
    rows = _rows_of_dicts(features)
    if rows is not None:
        if names is not None:
            raise ValueError("names are for a matrix of features; dicts bring their own.")
        matrix, known = rows
    else:
        matrix = sp.csr_array(sparse_block(features, "features"), dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        known = tuple(map(str, range(matrix.shape[1]))) if names is None else tuple(names)
        if len(known) != matrix.shape[1]:
            raise ValueError(
                f"there are {len(known)} names for {matrix.shape[1]} columns of features; they must agree."
            )
        if len(set(known)) < len(known) or not all(isinstance(name, str) for name in known):
            raise ValueError("names must be texts, none twice.")
    bad = first_bad_row(matrix)
    if bad >= 0:
        raise ValueError(f"arc {bad} has features that are NaN, infinite or beyond {LARGEST_FEATURE:g}; replace them.")
    dense = (0 if rows is not None else len(known)) if n_dense is None else n_dense
    if isinstance(dense, bool) or not isinstance(dense, (int, np.integer)) or not 0 <= dense <= len(known):
        raise ValueError(f"n_dense is {n_dense!r:.60}; give a whole number from 0 to {len(known)}.")
    return matrix, known, int(dense)


def _rows_of_dicts(features: object) -> tuple[sp.csr_array, tuple[str, ...]] | None:
    """A matrix and its names from one dict for each arc; None when the features are not dicts."""
    if not isinstance(features, (list, tuple)) or not features or not isinstance(features[0], Mapping):
        return None
    column: dict[str, int] = {}
    pointers, columns, values = [0], [], []
    for e, row in enumerate(features):
        if not isinstance(row, Mapping):
            raise TypeError(f"arc {e} has a {type(row).__name__} where others have a dict; give one for each arc.")
        for name, value in row.items():
            if not isinstance(name, str) or isinstance(value, str):
                raise TypeError(f"arc {e} has the feature {name!r:.40}: {value!r:.40}; give numbers by name.")
            columns.append(column.setdefault(name, len(column)))
            try:
                values.append(float(value))
            except (TypeError, ValueError, OverflowError):
                raise TypeError(f"arc {e}: feature {name!r:.40} is {value!r:.40}; give a number.") from None
        pointers.append(len(columns))
    matrix = sp.csr_array(
        (np.array(values, np.float64), np.array(columns, np.int32), np.array(pointers, np.int32)),
        shape=(len(features), len(column)),
    )
    matrix.sort_indices()
    return matrix, tuple(column)


def _checked_words(words: ArcWords) -> tuple[str, ...]:
    """One text for each arc, its words between single spaces."""
    if isinstance(words, (str, bytes)) or not isinstance(words, Iterable):
        raise TypeError(f"words are {words!r:.60}; give one text for each arc.")
    found = []
    for e, text in enumerate(words):
        if isinstance(text, (list, tuple)) and all(isinstance(word, str) for word in text):
            text = " ".join(text)
        if not isinstance(text, str):
            raise TypeError(f"arc {e} says {text!r:.60}; give a text, which may be empty.")
        found.append(" ".join(text.split()))
    return tuple(found)
