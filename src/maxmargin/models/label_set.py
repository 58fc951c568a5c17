"""Multi-label classification: outputs are sets of labels, with weights between labels that go together.

    w . phi(x, y) = sum_(k in y) (W[:, k] . x + b_k) + sum_((j, k) in graph, j and k in y) v_jk

Exact inference, by what there is to know of the graph and the cost:

====================================================  ===========================  ===================================
graph and cost                                        argmax                       other rescalings
====================================================  ===========================  ===================================
no edges, cost by the numbers of mistakes             each label by itself;        all numbers of mistakes, exact
                                                      all numbers of mistakes
up to 18 labels, any graph, any cost                  all sets (forests: dynamic   all sets, exact
                                                      program)
a forest, cost that adds up over labels               dynamic program              a few queries, then all costs, exact
                                                                                   where these are multiples of one
                                                                                   number; else as with cycles
cycles, more labels, cost that adds up over labels    roof duality, then           relaxed walk along the hull, then
                                                      branching, with a bound      branching, with a bound
====================================================  ===========================  ===================================

Branching has a budget (:data:`MOST_WORK`); where that ends, the best set found comes with the bound of the relaxation.

With a hierarchy, outputs are closed under ancestors (:mod:`maxmargin.models.hierarchy_pack`).

Choi, Meshi, Srebro 2016, Fast and scalable structural SVM with slack rescaling. Finley, Joachims 2008, Training
structural SVMs when exact inference is intractable (the pairwise model).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from maxmargin.contracts import Answer, ModelKernel
from maxmargin.costs.units import unit_of
from maxmargin.door import weight_vector
from maxmargin.models.base import POWERS, CompiledModel, laid_out, least_positive, offsets_of
from maxmargin.models.hierarchy import MOST_LISTED, Hierarchy, Outputs, stored_outputs, with_named_labels
from maxmargin.models.label_graph import COST_KINDS, Forest, forest_of, label_costs, label_edges
from maxmargin.models.label_targets import LabelTargets
from maxmargin.models.labels import Labels
from maxmargin.models.layout_state import StateReader, facts_of
from maxmargin.models.multiclass import (
    Dense,
    FeatureRows,
    FeatureRowsBound,
    FeatureRowsModel,
    Sparse,
    both_blocks,
    packed_rows,
)
from maxmargin.models.search import has_highs

__all__ = ["LabelSet", "LabelSetBound", "LabelSetLayout"]

MOST_ENUMERATED = 18  # labels whose sets are all looked at
PATHS = ("multiple", "single")
MOST_WORK = 8_000_000  # of branching, M^2 a part, before it gives up: some hundredths of a second
MOST_TABULATED = 500  # labels of a forest, of one cost, whose tables of costs are made: some megabytes


@dataclass(frozen=True)
class LabelSetLayout(FeatureRows):
    """The rows of weights of :class:`~maxmargin.models.multiclass.FeatureRows`, then one weight per edge.

    ``edges`` (E, 2) are the pairs of labels with a weight; ``costs`` (M, 2) what it costs to add and to miss each
    label, where ``cost_kind``, a place in :data:`~maxmargin.models.label_graph.COST_KINDS`, is 0.
    """

    cost_kind: int
    edges: np.ndarray
    costs: np.ndarray
    outputs: Outputs | None = None  # which sets are outputs, where not all are

    @property
    def n_weights(self) -> int:
        return (self.n_features + self.intercept) * self.stride + len(self.edges)

    @property
    def by_counts(self) -> bool:
        """Whether a cost depends on the numbers of added and missed labels only."""
        return self.cost_kind > 0 or bool((self.costs == self.costs[0]).all())

    @property
    def enumerable(self) -> bool:
        return len(self.labels) <= MOST_ENUMERATED

    @property
    def unit(self) -> float:
        """The number of which all costs are whole multiples, 0 where there is none or a table of them is too large."""
        unit = unit_of(self.costs) if self.cost_kind == 0 else None
        units = self.costs.max(axis=1).sum() / unit if unit else np.inf
        return unit if unit and len(self.labels) * units <= MOST_TABULATED**2 else 0.0

    @property
    def tabulated(self) -> bool:
        """Whether forests are searched by tables of costs."""
        return not self.enumerable and self.unit > 0.0

    @property
    def inference(self) -> str:
        """How the best set is found."""
        if self.outputs is not None:
            return self.outputs.inference
        if forest_of(len(self.labels), self.edges) is not None and self.cost_kind == 0:
            return "dynamic program" if len(self.edges) else "label by label"
        if len(self.edges) == 0:
            return "numbers of mistakes"
        return "all sets" if self.enumerable else "branch and bound"

    def inference_at(self, w: np.ndarray) -> str:
        """How the best set is found with these weights: a cut, where branch and bound never has to branch."""
        cut = self.inference == "branch and bound" and bool((self.groups(w)["edge"] >= 0.0).all())
        return "minimum cut" if cut else self.inference

    @property
    def slack_inference(self) -> str:
        """How the most violating set of slack rescaling is found."""
        if self.outputs is not None:
            from maxmargin.models.hierarchy_pack import slack_inference

            return slack_inference(self)
        if len(self.edges) == 0 and self.by_counts:
            return "numbers of mistakes"
        if self.enumerable:
            return "all sets"
        return "all costs" if self.tabulated and forest_of(len(self.labels), self.edges) is not None else "branching"

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``coef`` (F, M), ``intercept`` (M,), and ``edge`` (E,), in the order of ``edges``."""
        return super().groups(w) | {"edge": w[self.n_weights - len(self.edges) : self.n_weights]}

    def output(self, codes: np.ndarray) -> set[Hashable]:
        """The labels that are on."""
        return {self.labels.classes[k] for k in np.flatnonzero(codes)}

    def cost(self, y_true: Iterable[Hashable], y: Iterable[Hashable]) -> float:
        """Cost of one set of labels where another is true; labels never seen in training count as missed or added."""
        true, given = set(y_true), set(y)
        missed, added, both = true - given, given - true, len(true & given)
        if self.cost_kind:
            union = both + len(missed) + len(added)
            parts = (2 * both, both + union) if COST_KINDS[self.cost_kind] == "f1" else (both, union)
            return 1.0 - parts[0] / parts[1] if union else 0.0
        worst = self.costs.max(axis=0)
        code, sides = self.labels.code, ((added, 0), (missed, 1))
        return float(sum(self.costs[code[k], s] if k in code else worst[s] for labels, s in sides for k in labels))

    def real(self) -> np.ndarray:
        return np.append(super().real(), np.ones(len(self.edges), bool))

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        tensors = {"edges": self.edges.astype(np.uint32), "costs": self.costs}
        if self.outputs is None:
            return facts_of(self), tensors
        flags = {"single": self.outputs.single, "leaves_only": self.outputs.leaves_only}
        return facts_of(self, **flags), tensors | {"above": self.outputs.hierarchy.edges.astype(np.uint32)}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> LabelSetLayout:
        state = StateReader(facts, tensors)
        M = len(state.labels("labels"))
        costs, edges = state.floats("costs", (M, 2)), state.tensor("edges")
        if (costs < 0).any():
            raise ValueError("its tensor 'costs' has negative entries")
        if edges.dtype.kind != "u" or edges.ndim != 2 or edges.shape[1] != 2 or edges.max(initial=0) >= M:
            raise ValueError(f"its tensor 'edges' does not hold pairs of {M} labels")
        edges = edges.astype(np.int32)
        keys = edges[:, 0].astype(np.int64) * M + edges[:, 1]
        if (edges[:, 0] >= edges[:, 1]).any() or (np.diff(keys) <= 0).any():
            raise ValueError("its tensor 'edges' has an edge twice, or edges out of order")
        scaling, kind = state.number("intercept_scaling", 1e-300), state.whole("cost_kind", 0, len(COST_KINDS))
        outputs = stored_outputs(state) if "above" in tensors else None
        known = {"intercept_scaling": scaling, "cost_kind": kind, "edges": edges, "costs": costs, "outputs": outputs}
        layout = cls(**state.announced(cls, **known))
        check_inference(layout)
        return layout


@dataclass(frozen=True, kw_only=True)
class LabelSetBound(FeatureRowsBound):
    """The label-set model bound to n examples."""

    layout: LabelSetLayout

    def max_marginals(self, w: np.ndarray) -> np.ndarray:
        """For each label the best score with it on minus the best with it off, (n, M).

        Exact where inference is; by branch and bound, from the best sets found within its budget.
        """
        from maxmargin.models import label_enumeration_kernel as ek
        from maxmargin.models.multiclass_kernel import HAS_LABELS

        layout, meta, (iwork, fwork, _) = self.layout, self.meta.copy(), self.workspace()
        meta[HAS_LABELS] = 0  # scores count from the empty set
        out, w = np.empty((self.n_examples, len(layout.labels))), weight_vector(w, self.n_weights)
        if layout.outputs is not None:
            from maxmargin.models.hierarchy_pack import fill_max_marginals

            return fill_max_marginals(self, meta, w)
        if "exact" not in self.capabilities:
            from maxmargin.models.label_cycle_kernel import cycle_max_marginals

            cycle_max_marginals(meta, self.ints, self.floats, w, iwork, fwork, out)
            return out
        forest = forest_of(len(layout.labels), layout.edges) is not None
        fill = ek.forest_max_marginals if forest else ek.all_sets_max_marginals
        fill(meta, self.ints, self.floats, w, fwork, out)
        return out

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best sets, bool (m, M), and their scores (m,), best first."""
        from maxmargin.models.label_kbest import (
            k_best_of_all,
            k_best_of_forest,
            k_best_of_hierarchy,
            k_best_of_listed,
        )

        layout, pair = self.layout, self.layout.groups(w)["edge"]
        gain = self.scores(w, np.array([example]))[0]
        if layout.outputs is not None:
            tree, listed = layout.outputs.hierarchy.forest, layout.outputs.listed
            if listed is not None:
                return k_best_of_listed(gain, listed, k)
            assert tree is not None
            return k_best_of_hierarchy(gain, tree, layout.outputs.leaves_only, k)
        forest = forest_of(len(layout.labels), layout.edges)
        if forest is not None:
            return k_best_of_forest(gain, forest, pair, k)
        return k_best_of_all(gain, layout.edges, pair, k)

    def answer_between(
        self, w: np.ndarray, example: int, cost_weight: float, mu: float, low: float, high: float
    ) -> Answer | None:
        from maxmargin.models.label_angles import best_between

        w = np.ascontiguousarray(w[: self.n_weights], np.float64)
        return best_between(self, w, example, cost_weight, mu, low, high)

    def answer_relaxed(self, w: np.ndarray, example: int, cost_weight: float) -> Answer:
        from maxmargin.models.label_angles import best_relaxed

        return best_relaxed(self, np.ascontiguousarray(w[: self.n_weights], np.float64), example, cost_weight)

    def unproven(self, w: np.ndarray) -> np.ndarray:
        """Of which examples the best set is not proven, bool (n,); branch and bound may end before that."""
        if "exact" in self.capabilities:
            return np.zeros(self.n_examples, bool)
        answers = self.argmax(w)
        return answers.bound > answers.value + 1e-9 * np.maximum(1.0, np.abs(answers.bound))

    def indicators(self, w: np.ndarray) -> np.ndarray:
        """The sets of largest score, bool (n, M)."""
        outputs = self.argmax(w).outputs
        return np.concatenate([np.empty(0, np.int32), *outputs]).reshape(-1, len(self.layout.labels)) != 0


@dataclass(kw_only=True, repr=False, eq=False)
class LabelSet(FeatureRowsModel[LabelSetLayout, LabelTargets, LabelSetBound]):
    """A set of labels per example.

    Parameters
    ----------
    graph : None, "tree", "full", pairs of labels, or networkx.Graph
        Pairs of labels with a weight for both being on; "tree" is the spanning forest of the largest mutual information
        in the training data.
    cost : {"hamming", "f1", "jaccard"}, HammingCost, WeightedHammingCost, or mapping of label to weight
        The number of wrong labels, plain or weighted; or 1 - F1, 1 - Jaccard index of the two sets.
    hierarchy : None, networkx.DiGraph, pairs (parent, child), mapping of child to parent(s), or vector of parents
        A label is on only where all its parents are; see :mod:`maxmargin.models.hierarchy_pack`. A vector has the
        number of the parent's column for each label, -1 for roots. ``graph`` must be None then.
    paths : {"multiple", "single"}
        "single": an output is one label with its ancestors.
    leaves_only : bool
        Outputs are sets of leaves with their ancestors; otherwise a path may stop at any label.
    fit_intercept, intercept_scaling, classes
        As those of :class:`~maxmargin.models.multiclass.Multiclass`, an intercept for each label.
    """

    graph: object = None
    cost: object = "hamming"
    hierarchy: object = None
    paths: str = "multiple"
    leaves_only: bool = False
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    classes: Iterable[Hashable] | None = None

    kind: ClassVar[str] = "label-set"

    def _targets(self, Y: object, n: int, layout: LabelSetLayout | None) -> LabelTargets:
        classes = self.classes if layout is None else layout.labels.classes
        targets = LabelTargets.of(Y, classes)
        if classes is None and self.hierarchy is not None:
            targets = with_named_labels(targets, self.hierarchy)
        if len(targets.on) != n:
            raise ValueError(f"X has {n} examples and Y has {len(targets.on)}; they must agree.")
        return targets

    def _layout(
        self, sparse: Sparse, dense: Dense, targets: LabelTargets, class_weight: Mapping[Hashable, float] | None
    ) -> LabelSetLayout:
        labels = targets.labels
        kind, costs = label_costs(self.cost, labels, class_weight)
        edges, rows = label_edges(self.graph, targets.on, labels), self._rows(labels, sparse, dense)
        layout = LabelSetLayout(**rows, cost_kind=kind, edges=edges, costs=costs, outputs=self._outputs(labels))
        check_inference(layout)
        return layout

    def _pack(
        self, layout: LabelSetLayout, n: int, sparse: Sparse, dense: Dense, targets: LabelTargets | None
    ) -> LabelSetBound:
        if targets is not None and targets.labels.classes != layout.labels.classes:
            raise ValueError("Y has other labels than the model, or in another order; give those it was fitted with.")
        on = None if targets is None else targets.on
        if layout.outputs is None:
            return _pack(layout, n, sparse, dense, on)
        from maxmargin.models.hierarchy_pack import pack

        fault = None if on is None else layout.outputs.fault(on)
        if fault is not None:
            raise ValueError(fault.said(layout.labels))
        return pack(layout, n, sparse, dense, on)

    def _outputs(self, labels: Labels) -> Outputs | None:
        if self.paths not in PATHS:
            raise ValueError(f'paths must be "multiple" or "single"; got {self.paths!r}.')
        if self.hierarchy is None:
            if self.paths != "multiple" or self.leaves_only:
                raise ValueError("paths and leaves_only are about a hierarchy; give hierarchy=, or leave them out.")
            return None
        if self.graph is not None:
            raise ValueError("graph and hierarchy cannot be combined; leave one of them None.")
        return Outputs(Hierarchy.of(self.hierarchy, labels), self.paths == "single", bool(self.leaves_only))


def check_inference(layout: LabelSetLayout) -> None:
    """Refuse what has no argmax, and say what has."""
    if layout.outputs is not None:
        if layout.cost_kind and layout.outputs.listed is None:
            name = COST_KINDS[layout.cost_kind]
            advice = 'use cost="hamming" or weights of labels, or paths="single"'
            raise ValueError(f'cost="{name}" needs a hierarchy with at most {MOST_LISTED} outputs; {advice}.')
        return
    if layout.cost_kind and len(layout.edges) and not layout.enumerable:
        name, M = COST_KINDS[layout.cost_kind], len(layout.labels)
        advice = f'with more than {MOST_ENUMERATED} labels use graph=None, or cost="hamming"'
        raise ValueError(f'cost="{name}" of {M} labels with edges has no inference; {advice}.')


def _enumerated(bound: CompiledModel, power: float, plane: Callable[..., int]) -> ModelKernel:
    """An exact search for a power of the cost: a kernel that looks at all answers is asked once."""
    from maxmargin.models.search_kernel import argmax

    return replace(bound, plane=plane).packed(argmax, power)


def _tabulated(bound: CompiledModel, power: float, unit: float) -> ModelKernel:
    """An exact search of a forest by costs."""
    from maxmargin.models.label_forest_kernel import forest_search

    return bound.packed(forest_search, power, np.concatenate([bound.least_cost, np.full(bound.n_examples, unit)]))


def _branched(bound: CompiledModel, power: float) -> ModelKernel:
    """A search by relaxation and branching, with a bound."""
    from maxmargin.models.label_cycle_kernel import cycle_search

    return bound.packed(cycle_search, power, bound.least_cost)


def _pack(layout: LabelSetLayout, n: int, sparse: Sparse, dense: Dense, on: np.ndarray | None) -> LabelSetBound:
    from maxmargin.models import label_set_kernel as lk
    from maxmargin.models import multiclass_kernel as mk
    from maxmargin.models.label_cycle_kernel import cycle_plane, scratch_sizes
    from maxmargin.models.label_enumeration_kernel import LOW, all_sets_plane

    M, E = len(layout.labels), len(layout.edges)
    meta, ints, floats, most = packed_rows(layout, *both_blocks(n, sparse, dense), lk.META_SIZE)
    forest = forest_of(M, layout.edges)
    chart = Forest(*np.zeros((3, 0), np.int32)) if forest is None else forest
    ints[mk.AT_LABELS] = np.empty(0, np.int32) if on is None else on.astype(np.int32)
    ints |= {lk.AT_EDGES: layout.edges, lk.AT_ORDER: chart.order, lk.AT_PARENT: chart.parent, lk.AT_ABOVE: chart.above}
    floats[mk.AT_COST] = layout.costs
    meta[[mk.HAS_LABELS, lk.N_EDGES, lk.COST_KIND]] = on is not None, E, layout.cost_kind
    meta[lk.W_EDGES] = layout.n_weights - E
    plane = all_sets_plane if layout.enumerable else cycle_plane
    if forest is not None and layout.cost_kind == 0:
        plane = lk.forest_plane
    elif E == 0:
        plane = lk.counts_plane
    by_counts = E == 0 and layout.by_counts
    exact = by_counts or layout.enumerable
    scratch, iwork = 2 * M + 2, 0  # of forests and numbers of mistakes; that of all sets, and of tables, is larger
    searches: dict[str, Callable[[CompiledModel], ModelKernel]] = {}
    if exact:
        answers = lk.counts_plane if by_counts else all_sets_plane
        searches = {name: partial(_enumerated, power=power, plane=answers) for name, power in POWERS.items()}
    elif layout.tabulated and forest is not None:
        unit = layout.unit
        child, following, size = forest.siblings(np.rint(layout.costs.max(axis=1) / unit))
        at = offsets_of(2 * (size.astype(np.int64) + 1))
        ints |= {lk.AT_CHILD: child, lk.AT_NEXT: following, lk.AT_SIZE: size, lk.AT_TABLE: at[:-1].astype(np.int32)}
        scratch = max(scratch, M + 2 + int(at[-1]))
        searches = {name: partial(_tabulated, power=power, unit=unit) for name, power in POWERS.items()}
    else:
        ends = np.argsort(layout.edges.ravel(), kind="stable")
        begin = np.searchsorted(layout.edges.ravel()[ends], np.arange(M + 1))
        ints |= {lk.AT_BEGIN: begin.astype(np.int32), lk.AT_ENDS: ends.astype(np.int32)}
        meta[lk.PARTS] = MOST_WORK // M**2
        iwork, more = scratch_sizes(M, E)
        scratch = max(scratch, more)
        searches = {name: partial(_branched, power=power) for name, power in POWERS.items()}
    if layout.enumerable:
        low = min(M, LOW)
        scratch = max(scratch, M * M + (2 * (M - low) + 6) * 2**low + (M + 1) ** 2)
    return LabelSetBound(
        n_examples=n,
        layout=layout,
        int_parts=tuple(ints),
        float_parts=tuple(floats),
        capabilities=frozenset(_capabilities(layout, on is not None)),
        plane=plane,
        searches=searches,
        least_cost=np.zeros(0) if exact or on is None else least_costs(layout, on),
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out(floats, meta, np.float64),
        room=M * most + E + 1,  # one more for the extra column of squared slacks
        iwork_size=iwork,
        fwork_size=layout.stride + 2 * M + E + scratch,
        output_at=np.arange(n + 1, dtype=np.int64) * M,
    )


def _capabilities(layout: LabelSetLayout, has_labels: bool) -> Iterator[str]:
    branched = layout.inference == "branch and bound"
    yield "parts"
    yield from () if branched else ("exact", "k_best")
    if has_labels and layout.cost_kind == 0:
        yield from ("constrained",) if has_highs() else ()
        yield from ("relaxed",) if branched else ()


def least_costs(layout: LabelSetLayout, on: np.ndarray) -> np.ndarray:
    """The least positive cost of one mistake, for each example."""
    flips = np.where(on, layout.costs[:, 1], layout.costs[:, 0])
    return np.array([least_positive(row) for row in flips])
