"""Hierarchical multi-label classification: outputs are sets of labels that are closed under ancestors.

    w . phi(x, y) = sum_(k in y) (W[:, k] . x + b_k)            y with each label has all its parents

so a label is on where it and what it brings along are worth it. Edges between parents and children would add nothing:
both are on exactly where the child is. The empty set is always an output. Exact inference, by the shape and the cost:

=============================================  ===================  =================================================
hierarchy, outputs and cost                    argmax               other rescalings
=============================================  ===================  =================================================
single paths: one label with its ancestors     all outputs          all outputs, exact, any cost
up to 4096 outputs                             all outputs, or as   all outputs, exact, any cost
                                               below
trees, cost that adds up over labels           dynamic program      whole costs up to 1000 units in all: a few queries,
                                                                    then all costs, exact; others: queries, with a bound
several parents, cost that adds up             minimum cut          queries, with a bound
several parents, outputs that end in leaves    a set with a bound   queries, with a bound
=============================================  ===================  =================================================

Cai, Hofmann 2004, Hierarchical document categorization with support vector machines. Choi, Meshi, Srebro 2016, Fast and
scalable structural SVM with slack rescaling (sets of leaves). Picard 1976, Maximal closure of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from maxmargin.contracts import LabelBlocks, ModelKernel
from maxmargin.costs.units import unit_of
from maxmargin.models.base import POWERS, CompiledModel, laid_out, offsets_of
from maxmargin.models.hierarchy import Hierarchy, Outputs
from maxmargin.models.label_set import LabelSetBound, LabelSetLayout, least_costs
from maxmargin.models.multiclass import Dense, Sparse, both_blocks, packed_rows, squares

__all__ = ["cost_units", "fill_max_marginals", "pack", "slack_inference"]

MOST_UNITS = 1000  # of all costs together, for tables over costs: some megabytes


def outputs_of(layout: LabelSetLayout) -> Outputs:
    """Which sets are outputs of a layout with a hierarchy."""
    assert layout.outputs is not None
    return layout.outputs


def cost_units(costs: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Costs (M, 2) as whole multiples of a unit; None where they are no such multiples, or too many."""
    unit = unit_of(costs)
    if not unit or costs.max(axis=1).sum() / unit > MOST_UNITS:
        return None
    return unit, np.rint(costs / unit).astype(np.int32)


def slack_inference(layout: LabelSetLayout) -> str:
    """How the most violating output of slack rescaling is found."""
    outputs = outputs_of(layout)
    if outputs.inference == "dynamic program" and layout.cost_kind == 0 and cost_units(layout.costs) is not None:
        return "all costs"
    return "bisecting" if outputs.listed is None else "all outputs"


def _listed(bound: CompiledModel, power: float) -> ModelKernel:
    """An exact search among all outputs for a power of the cost."""
    from maxmargin.models.hierarchy_list_kernel import listed_search

    return bound.packed(listed_search, power)


def _tabulated(bound: CompiledModel, power: float) -> ModelKernel:
    """An exact search of a tree by costs."""
    from maxmargin.models.hierarchy_table_kernel import tree_search

    return bound.packed(tree_search, power, bound.least_cost)


def pack(layout: LabelSetLayout, n: int, sparse: Sparse, dense: Dense, on: np.ndarray | None) -> LabelSetBound:
    """The bound model of a layout with a hierarchy."""
    from maxmargin.inference.min_cut_kernel import STATE_SIZE
    from maxmargin.models import hierarchy_cut_kernel, hierarchy_list_kernel
    from maxmargin.models import hierarchy_kernel as hk
    from maxmargin.models import label_set_kernel as lk
    from maxmargin.models import multiclass_kernel as mk

    outputs = outputs_of(layout)
    M, tree, listed, units = len(layout.labels), outputs.hierarchy.forest, outputs.listed, cost_units(layout.costs)
    meta, ints, floats, most = packed_rows(layout, *both_blocks(n, sparse, dense), hk.META_SIZE)
    ints[mk.AT_LABELS] = np.empty(0, np.int32) if on is None else on.astype(np.int32)
    ints[lk.AT_ORDER] = outputs.hierarchy.order
    floats[mk.AT_COST] = layout.costs
    meta[[mk.HAS_LABELS, lk.COST_KIND, hk.LEAVES_ONLY]] = on is not None, layout.cost_kind, outputs.leaves_only
    scratch, iwork = 8 * M, 0
    searches: dict[str, Callable[[CompiledModel], ModelKernel]] = {}
    if tree is not None:
        ints[lk.AT_PARENT] = tree.parent
    if listed is not None:
        ints |= {hk.AT_LISTED: offsets_of([len(labels) for labels in listed]).astype(np.int32)}
        ints |= {hk.AT_MEMBERS: np.array([k for labels in listed for k in labels], np.int32)}
        meta[hk.N_LISTED] = len(listed)
        searches = {name: partial(_listed, power=power) for name, power in POWERS.items()}
    if outputs.inference == "dynamic program" and layout.cost_kind == 0 and tree is not None and units is not None:
        unit, whole = units
        child, following, size = tree.siblings(whole.max(axis=1))
        at = offsets_of(2 * (size.astype(np.int64) + 1))
        ints |= {lk.AT_CHILD: child, lk.AT_NEXT: following, lk.AT_SIZE: size, lk.AT_TABLE: at[:-1].astype(np.int32)}
        ints[hk.AT_UNITS], floats[hk.UNIT] = whole, np.array([unit])
        scratch = max(scratch, 4 * M + 2 + int(at[-1]))
        searches = {name: partial(_tabulated, power=power) for name, power in POWERS.items()}
    if outputs.inference == "minimum cut":
        E = len(outputs.hierarchy.edges)
        meta[hk.N_PAIRS] = E
        ints |= {hk.AT_PAIRS: outputs.hierarchy.edges, hk.AT_ARCS: _arcs(outputs.hierarchy)}
        scratch, iwork = max(scratch, 5 * M + 4 * E + 3), STATE_SIZE + 5 * (M + 1)
    plane = {
        "dynamic program": hk.tree_plane if layout.cost_kind == 0 else hierarchy_list_kernel.listed_plane,
        "all outputs": hierarchy_list_kernel.listed_plane,
        "minimum cut": hierarchy_cut_kernel.closure_plane,
    }[outputs.inference]
    return LabelSetBound(
        n_examples=n,
        layout=layout,
        int_parts=tuple(ints),
        float_parts=tuple(floats),
        capabilities=frozenset(_capabilities(outputs)),
        plane=plane,
        searches=searches,
        least_cost=np.zeros(0) if on is None else least_costs(layout, on),
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out(floats, meta, np.float64),
        room=M * most + 1,  # one more for the extra column of squared slacks
        iwork_size=iwork,
        fwork_size=layout.stride + 2 * M + scratch,
        output_at=np.arange(n + 1, dtype=np.int64) * M,
        labels=_blocks(layout, sparse, dense, n) if on is not None and plane is hk.tree_plane else None,
    )


def _capabilities(outputs: Outputs) -> Iterator[str]:
    yield "parts"
    yield from ("exact",) if outputs.exact else ()
    yield from ("k_best",) if outputs.ranked else ()


def _blocks(layout: LabelSetLayout, sparse: Sparse, dense: Dense, n: int) -> LabelBlocks | None:
    """What solves the whole block of an example; the hull of sets that end in leaves has no projection here."""
    from maxmargin.models import hierarchy_kernel as hk
    from maxmargin.models.multiclass_kernel import label_add, label_fetch

    if outputs_of(layout).leaves_only:
        return None
    square, density = squares(layout, *both_blocks(n, sparse, dense))
    M, hull = len(layout.labels), (hk.tree_excess, hk.tree_retreat)
    return LabelBlocks(hk.set_scores, label_add, label_fetch, M, layout.stride, square, density, *hull)


def _arcs(hierarchy: Hierarchy) -> np.ndarray:
    """The rows of arcs that the cut reads: begin, head, back and place, one behind the other."""
    from maxmargin.inference.min_cut_graph_kernel import graph_rows

    M, E = hierarchy.n_labels, len(hierarchy.edges)
    begin, place = np.zeros(M + 2, np.int32), np.empty(E, np.int32)
    head, back = np.empty((2, 2 * E + 1), np.int32)
    graph_rows(hierarchy.edges, begin, head, back, place)
    return np.concatenate([begin, head, back, place])


def fill_max_marginals(bound: LabelSetBound, meta: np.ndarray, w: np.ndarray) -> np.ndarray:
    """For each label the best score with it on minus the best with it off, (n, M); of a child at most its parent's.

    Trees: a pass up and one down. Few outputs: all of them. Labels with several parents: a cut for each label; where
    outputs end in leaves and are many, those of sets that need not.
    """
    from maxmargin.models import hierarchy_cut_kernel, hierarchy_kernel, hierarchy_list_kernel

    outputs = outputs_of(bound.layout)
    fill = {
        "dynamic program": hierarchy_kernel.tree_max_marginals,
        "all outputs": hierarchy_list_kernel.listed_max_marginals,
        "minimum cut": hierarchy_cut_kernel.closure_max_marginals,
    }[outputs.inference]
    out, (iwork, fwork, _) = np.empty((bound.n_examples, len(bound.layout.labels))), bound.workspace()
    fill(meta, bound.ints, bound.floats, w, iwork, fwork, out)
    return out
