"""Hierarchies of labels: trees, and graphs in which a label may have several parents, in all forms that users have."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from maxmargin.models.label_graph import Forest, NetworkGraph, Pair
from maxmargin.models.label_targets import LabelTargets
from maxmargin.models.labels import Labels, plain
from maxmargin.models.layout_state import StateReader

__all__ = ["Hierarchy", "HierarchyLike", "Outputs", "with_ancestors"]

MOST_LISTED = 4096  # outputs that are all looked at; single paths may be as many as there are labels

FORMS = "a directed graph of networkx, pairs (parent, child), a mapping of child to parent, or a vector of parents"


HierarchyLike: TypeAlias = NetworkGraph | Mapping[Hashable, Hashable] | Iterable[Pair] | Iterable[int]


class Fault(NamedTuple):
    """An example whose set of labels is no output, the label at fault, what is wrong with it, another label or -1."""

    example: int
    label: int
    what: str
    other: int
    advice: str

    def said(self, labels: Labels) -> str:
        other = f" {labels.classes[self.other]!r}" if self.other >= 0 else ""
        return f"example {self.example} has the label {labels.classes[self.label]!r} {self.what}{other}; {self.advice}."


@dataclass(frozen=True)
class Hierarchy:
    """Labels 0, ..., n_labels - 1 and the pairs (parent, child) among them, int32 (E, 2), without a cycle.

    Pairs that follow from others are left out: those of a label and one of its ancestors that is no parent.
    """

    n_labels: int
    edges: np.ndarray

    @staticmethod
    def of(given: object, labels: Labels) -> Hierarchy:
        """Read a hierarchy over these labels; a ValueError names a label that is unknown, or a cycle.

        Parameters
        ----------
        given : networkx.DiGraph, pairs (parent, child), mapping of child to parent(s), or one parent for each label
            A vector of parents has the number of the parent's column, -1 for roots. In a mapping, None is the parent of
            roots, and a list or set holds several parents.
        """
        codes = _parent_codes(given, labels)
        if codes is None:
            codes = []
            for ends in _pairs(given):
                for end in ends:
                    if not isinstance(end, Hashable) or end not in labels.code:
                        known = f"labels are {labels.classes[:8]}"
                        raise ValueError(f"hierarchy has {end!r:.60}, which is not a label; {known}.")
                codes.append((labels.code[ends[0]], labels.code[ends[1]]))
        parents: list[set[int]] = [set() for _ in labels.classes]
        for parent, child in codes:
            parents[child].add(parent)
        order = _parents_first(parents)
        if len(order) < len(parents):
            cycle = " -> ".join(repr(labels.classes[k]) for k in _cycle(parents, set(order)))
            raise ValueError(f"hierarchy has a cycle: {cycle}; remove one of these pairs of parent and child.")
        above: list[set[int]] = [set() for _ in parents]
        for k in order:
            above[k] = set().union(*(above[p] for p in parents[k]))
            parents[k] -= above[k]
            above[k] |= parents[k]
        edges = [(p, k) for k, ps in enumerate(parents) for p in sorted(ps)]
        return Hierarchy(len(parents), np.array(edges, np.int32).reshape(-1, 2))

    @cached_property
    def parents(self) -> list[list[int]]:
        return self._joined(1)

    @cached_property
    def children(self) -> list[list[int]]:
        return self._joined(0)

    def _joined(self, end: int) -> list[list[int]]:
        lists: list[list[int]] = [[] for _ in range(self.n_labels)]
        for edge in self.edges.tolist():
            lists[edge[end]].append(edge[1 - end])
        return lists

    @cached_property
    def order(self) -> np.ndarray:
        """Labels, parents before their children, int32 (n_labels,)."""
        return np.array(_parents_first([set(ps) for ps in self.parents]), np.int32)

    @cached_property
    def closures(self) -> list[list[int]]:
        """Each label with all its ancestors, sorted."""
        found: list[set[int]] = [set() for _ in range(self.n_labels)]
        for k in self.order.tolist():
            found[k] = {k}.union(*(found[p] for p in self.parents[k]))
        return [sorted(labels) for labels in found]

    @property
    def leaves(self) -> list[int]:
        return [k for k, below in enumerate(self.children) if not below]

    @cached_property
    def depth(self) -> np.ndarray:
        """Steps from a root, the longest way, (n_labels,); 0 for roots."""
        steps = np.zeros(self.n_labels, np.int64)
        for k in self.order.tolist():
            steps[k] = max((steps[p] + 1 for p in self.parents[k]), default=0)
        return steps

    @property
    def forest(self) -> Forest | None:
        """Order and parents where every label has at most one; None where one has several."""
        if any(len(ps) > 1 for ps in self.parents):
            return None
        parent = np.array([ps[0] if ps else -1 for ps in self.parents], np.int32)
        return Forest(self.order, parent, np.zeros(self.n_labels, np.int32))

    def closed(self, on: np.ndarray) -> np.ndarray:
        """Sets of labels, bool (n, n_labels), with all ancestors."""
        on = on.copy()
        for k in self.order[::-1].tolist():
            for p in self.parents[k]:
                on[:, p] |= on[:, k]
        return on


@dataclass(frozen=True)
class Outputs:
    """Which sets of labels are outputs: those closed under ancestors; single paths; those that end in leaves.

    The empty set is one always.
    """

    hierarchy: Hierarchy
    single: bool
    leaves_only: bool

    @cached_property
    def listed(self) -> list[list[int]] | None:
        """All outputs, the empty one first, where they are single paths or at most :data:`MOST_LISTED`."""
        tree = self.hierarchy
        ends = tree.leaves if self.leaves_only else list(range(tree.n_labels))
        if self.single:
            return [[], *(tree.closures[k] for k in ends)]
        if self.leaves_only:
            if 2 ** len(ends) > MOST_LISTED:
                return None
            chosen = (some for size in range(len(ends) + 1) for some in combinations(ends, size))
            return [sorted(set().union(*(tree.closures[k] for k in some))) for some in chosen]
        sets: list[list[int]] = [[]]
        for k in tree.order.tolist():
            above = set(tree.parents[k])
            sets += [[*labels, k] for labels in sets if above.issubset(labels)]
            if len(sets) > MOST_LISTED:
                return None
        return [sorted(labels) for labels in sets]

    @property
    def inference(self) -> str:
        """How the best of them is found where the cost adds up over labels; other costs look at all outputs."""
        if self.hierarchy.forest is not None and not self.single:
            return "dynamic program"
        return "minimum cut" if self.listed is None else "all outputs"

    @property
    def exact(self) -> bool:
        """Whether the best of them is found for sure."""
        return self.inference != "minimum cut" or not self.leaves_only

    @property
    def ranked(self) -> bool:
        """Whether the k best of them are found."""
        return self.inference != "minimum cut"

    def fault(self, on: np.ndarray) -> Fault | None:
        """The first example, with a label, whose set (a row of bool (n, n_labels)) is no output."""
        add = "add all ancestors, as maxmargin.with_ancestors(y, hierarchy) does"
        tree, faults = self.hierarchy, []
        for p, k in tree.edges.tolist():
            missing = np.flatnonzero(on[:, k] & ~on[:, p])[:1]
            faults += [Fault(int(i), k, "without its parent", p, add) for i in missing]
        if self.leaves_only:
            allow = "add the leaf, or set leaves_only=False"
            for k, below in enumerate(tree.children):
                idle = np.flatnonzero(on[:, k] & ~on[:, below].any(axis=1))[: len(below) > 0]
                faults += [Fault(int(i), k, "and none of its children", -1, allow) for i in idle]
        if self.single and not faults:
            sizes = np.array([len(labels) for labels in tree.closures])
            several = np.flatnonzero((on * sizes).max(axis=1, initial=0) < on.sum(axis=1))[:1]
            for i in several.tolist():
                longest = int((on[i] * sizes).argmax())
                other = next(k for k in np.flatnonzero(on[i]).tolist() if k not in tree.closures[longest])
                faults.append(Fault(i, other, "beside the path to", longest, 'set paths="multiple"'))
        return min(faults, default=None)


def with_named_labels(targets: LabelTargets, hierarchy: object) -> LabelTargets:
    """Sets of labels over all labels of the hierarchy too, where examples need not have them all."""
    if targets.form != "sets" or _parent_codes(hierarchy, targets.labels) is not None:
        return targets
    labels = Labels.of([*targets.labels.classes, *_named(hierarchy)])
    on = np.zeros((len(targets.on), len(labels)), bool)
    on[:, [labels.code[k] for k in targets.labels.classes]] = targets.on
    return replace(targets, on=on, labels=labels)


def stored_outputs(state: StateReader) -> Outputs:
    """The outputs that a model file has; a ValueError says what does not fit."""
    labels, above = state.labels("labels"), state.tensor("above")
    M = len(labels)
    if above.dtype.kind != "u" or above.ndim != 2 or above.shape[1] != 2 or above.max(initial=0) >= M:
        raise ValueError(f"its tensor 'above' does not hold pairs of {M} labels")
    found = Hierarchy.of([(labels.classes[p], labels.classes[k]) for p, k in above.tolist()], labels)
    if not np.array_equal(found.edges, above):
        raise ValueError("its tensor 'above' has a pair twice, or pairs out of order")
    return Outputs(found, state.flag("single"), state.flag("leaves_only"))


def with_ancestors(y: object, hierarchy: object, classes: Iterable[Hashable] | None = None) -> object:
    """Sets of labels with all ancestors of their labels, in the form of y.

    Parameters
    ----------
    y : matrix of 0 and 1 with one column per label (array, sparse, frame), or a list with one set of labels per example
    hierarchy : networkx.DiGraph, pairs (parent, child), mapping of child to parent(s), or vector of parents
        As in MultilabelClassifier.
    classes : labels of the columns of a matrix, optional
        Else the columns of a frame, or their numbers.

    Examples
    --------
    >>> with_ancestors([{"cat"}, {"stone"}], [("animal", "cat"), ("thing", "animal"), ("thing", "stone")])
    [{'animal', 'cat', 'thing'}, {'stone', 'thing'}]
    """
    targets = LabelTargets.of(y, classes)
    if classes is None:
        targets = with_named_labels(targets, hierarchy)
    on = Hierarchy.of(hierarchy, targets.labels).closed(targets.on)
    found = replace(targets, on=on)
    return found.in_form(y)


def _parent_codes(given: object, labels: Labels) -> list[tuple[int, int]] | None:
    """Pairs of codes from a vector of parents; None for other forms."""
    if isinstance(given, (NetworkGraph, Mapping, str, Iterator)) or not isinstance(given, Iterable):
        return None
    listed = plain(given)
    if not listed or not all(isinstance(p, (int, np.integer, float)) and float(p).is_integer() for p in listed):
        return None
    listed = [int(p) for p in listed]
    if len(listed) != len(labels):
        what = f"hierarchy is a vector of {len(listed)} parents for {len(labels)} labels"
        raise ValueError(f"{what}; give one for each label, in the order of the columns of y, -1 for roots.")
    if not -1 <= min(listed) <= max(listed) < len(labels):
        wrong = next(k for k, p in enumerate(listed) if not -1 <= p < len(labels))
        what = f"hierarchy has {listed[wrong]} as the parent of label {labels.classes[wrong]!r}"
        raise ValueError(f"{what}; give the number of a column, 0 to {len(labels) - 1}, or -1 for a root.")
    return [(p, k) for k, p in enumerate(listed) if p >= 0]


def _pairs(given: object) -> list[Pair]:
    if isinstance(given, NetworkGraph):
        if not given.is_directed():
            raise ValueError("hierarchy is an undirected graph; give a DiGraph, with edges from parent to child.")
        return [(edge[0], edge[1]) for edge in given.edges]
    if isinstance(given, Mapping):
        pairs: list[Pair] = []
        for child, parent in given.items():
            several = list(parent) if isinstance(parent, (list, set, frozenset)) else [parent]
            pairs += [(p, child) for p in several if p is not None]
        return pairs
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Iterator)):
        raise TypeError(f"hierarchy is {given!r:.80}; give {FORMS}.")
    for pair in (listed := plain(given)):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"hierarchy has {pair!r:.60} in place of a pair (parent, child); give {FORMS}.")
    return [(parent, child) for parent, child in listed]


def _named(given: object) -> list[Hashable]:
    """All labels that a hierarchy names, also those without relations."""
    alone = given.nodes if isinstance(given, NetworkGraph) else given if isinstance(given, Mapping) else []
    return [*alone, *(end for pair in _pairs(given) for end in pair)]


def _parents_first(parents: list[set[int]]) -> list[int]:
    """All labels that no cycle holds back, parents before children, level by level."""
    children: list[list[int]] = [[] for _ in parents]
    waiting = [len(ps) for ps in parents]
    for k, ps in enumerate(parents):
        for p in ps:
            children[p].append(k)
    order = [k for k, n in enumerate(waiting) if n == 0]
    for k in order:
        for c in children[k]:
            waiting[c] -= 1
            if waiting[c] == 0:
                order.append(c)
    return order


def _cycle(parents: list[set[int]], fine: set[int]) -> list[int]:
    """Labels of a cycle, from a label down to itself."""
    path = [next(k for k in range(len(parents)) if k not in fine)]
    while path[-1] not in path[:-1]:
        path.append(next(p for p in sorted(parents[path[-1]]) if p not in fine))
    return path[path.index(path[-1]) :][::-1]
