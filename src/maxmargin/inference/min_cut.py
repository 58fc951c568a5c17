"""Minimum cuts: the labelling of least energy of binary grids and graphs, with real capacities.

The energy of labels y in {0, 1} is ``E(y) = sum_p unary[p, y_p] + sum_{pairs (p, q)} capacity_pq [y_p != y_q]`` with
capacities >= 0. :func:`grid_cut` and :func:`graph_cut` cut once; :class:`GridCut` keeps its flow and repairs it when
costs have changed. Of several labellings of least energy all of them give the one with the fewest ones. Whole numbers
are cut exactly, others up to rounding. All run without the GIL: cut many images in threads, each with an object of its
own.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import edge_list, first_place, indices, numbers

__all__ = ["GridCut", "directions", "graph_cut", "grid_cut", "submodular_terms", "workspace_sizes"]

NEIGHBOURS = {2: (4, 8), 3: (6, 18, 26)}
_MOST_ARCS = 2**31 - 1


def directions(neighbours: int) -> np.ndarray:
    """The steps to half of the neighbours, (neighbours / 2, 2 or 3): the order of capacities by direction.

    The other half are the same steps backwards. Steps along the last axis come first, diagonals last.
    """
    from maxmargin.inference.min_cut_grid_kernel import FLAT, SOLID

    if not any(neighbours in counts for counts in NEIGHBOURS.values()):
        raise ValueError(f"neighbours is {neighbours!r}; give 4 or 8 for flat grids and 6, 18 or 26 for volumes")
    return FLAT[: neighbours // 2, 1:].copy() if neighbours in (4, 8) else SOLID[: neighbours // 2].copy()


def workspace_sizes(shape: tuple[int, ...], neighbours: int) -> tuple[int, int]:
    """Lengths of the int32 and the float64 scratch that the kernel ``cut_grid`` needs for a grid; longer serves too."""
    from maxmargin.inference.min_cut_grid_kernel import grid_layout
    from maxmargin.inference.min_cut_kernel import STATE_SIZE

    sides = np.asarray(shape)
    if sides.ndim != 1 or len(sides) not in NEIGHBOURS or sides.dtype.kind not in "iu" or sides.min() < 1:
        raise ValueError(f"the grid has shape {shape!r}; give ([depth,] height, width), whole numbers >= 1")
    if neighbours not in NEIGHBOURS[len(sides)]:
        raise ValueError(f"neighbours is {neighbours!r} with {len(sides)} axes; give one of {NEIGHBOURS[len(sides)]}")
    *depth, height, width = map(int, sides)
    nodes = grid_layout(*(depth or [1]), height, width, neighbours)[3]
    if nodes * neighbours > _MOST_ARCS:
        found = f"a grid of shape {tuple(shape)} with {neighbours} neighbours has {nodes * neighbours} arcs, more than"
        raise ValueError(f"{found} the {_MOST_ARCS} that can be numbered; cut it in pieces or use fewer neighbours")
    return STATE_SIZE + 5 * nodes, nodes * (neighbours + 1) + 1


def grid_cut(unary: ArrayLike, capacities: ArrayLike, neighbours: int | None = None) -> tuple[np.ndarray, float]:
    """Labels of least energy of a grid, and the energy; as :meth:`GridCut.solve`, whose class has an example."""
    unary = _checked_unary(unary)
    return GridCut(unary.shape[:-1], neighbours).solve(unary, capacities)


class GridCut:
    """Minimum cuts of one grid, flat or a volume, that repair the last cut when only costs have changed.

    Parameters
    ----------
    shape : (height, width) or (depth, height, width)
    neighbours : int, optional
        4 (default) or 8 for flat grids, 6 (default), 18 or 26 for volumes.

    Examples
    --------
    >>> cut = GridCut((2, 3))
    >>> unary = np.zeros((2, 3, 2))  # two rows of three pixels; what labels 0 and 1 cost
    >>> unary[0, 0, 0], unary[1, 2, 1] = 2.0, 2.0
    >>> labels, energy = cut.solve(unary, capacities=0.5)
    >>> unary[0, 1, 1] = np.inf  # this pixel must be 0
    >>> labels, energy = cut.solve(unary)
    >>> labels.tolist(), energy
    ([[1, 0, 0], [0, 0, 0]], 1.0)
    """

    def __init__(self, shape: tuple[int, ...], neighbours: int | None = None) -> None:
        if neighbours is None:
            neighbours = NEIGHBOURS.get(np.size(shape), (4,))[0]
        n_int, n_float = map(int, workspace_sizes(shape, neighbours))  # checks both
        self.shape, self.neighbours = tuple(map(int, shape)), int(neighbours)
        self._sides = (*((1,) * (3 - len(self.shape))), *self.shape, self.neighbours)
        self._work, self._fwork = np.zeros(n_int, np.int32), np.empty(n_float)
        self._excess: np.ndarray | None = None  # of the last cut
        self._decisive: float | None = None  # an excess that the capacities cannot outweigh, once it is needed

    def solve(self, unary: ArrayLike, capacities: ArrayLike | None = None) -> tuple[np.ndarray, float]:
        """Labels of least energy, and the energy.

        Formula: ``E(y) = sum_p unary[p, y_p] + sum_{j, p} capacities[j, p] [y_p != y_{p + directions[j]}]``.

        Complexity: about O(n) on usual energies, O(n^2 m) at worst for n pixels and m pairs. After a change of the
        costs of a few pixels about O(those) and one look at all. Memory: 36 + 8 neighbours bytes a pixel. Goldberg et
        al. (2015), Faster and more dynamic maximum flow by incremental breadth-first search.

        Parameters
        ----------
        unary : array ``(*shape, 2)``
            Costs of labels 0 and 1; inf forbids a label.
        capacities : array, broadcast to ``(neighbours / 2, *shape)``, optional
            Between each pixel and its neighbour in each of :func:`directions`; ignored where that is outside. Given:
            a cut from the start. Left out: those of the last call, whose flow is repaired.

        Returns
        -------
        labels : int32 ``(*shape)``
        energy : float
        """
        from maxmargin.inference.min_cut_grid_kernel import grid_labels, grid_load, grid_solve
        from maxmargin.inference.min_cut_kernel import terminals

        unary = _checked_unary(unary)
        if unary.shape[:-1] != self.shape:
            raise ValueError(f"unary has shape {unary.shape}; give two costs for each place, {(*self.shape, 2)}")
        given = None if capacities is None else self._checked_capacities(capacities)
        last, decisive = (self._excess, self._decisive) if given is None else (None, None)
        if given is None and last is None:
            raise ValueError("the first cut needs capacities; give them, later ones may go without")
        excess = np.empty(unary.size // 2) if last is None else last
        costs = unary.reshape(-1, 2)
        base, n_changed = terminals(costs, excess, last is None)
        if np.isnan(base):
            if decisive is None:
                rooms = self._fwork[: self._fwork.size // (self.neighbours + 1) * self.neighbours]
                decisive = _decisive(rooms if given is None else given, self.neighbours)
            costs, base = _without_huge(unary, decisive)
            n_changed = terminals(costs, excess, last is None)[1]
        self._excess, self._decisive = None, decisive  # no flow is trusted before it is complete
        if given is None:
            from maxmargin.inference.min_cut_update_kernel import grid_update

            grid_update(*self._sides, costs, excess, n_changed, self._work, self._fwork)
        else:
            bad = grid_load(*self._sides, excess, given.reshape(-1), self._work, self._fwork)
            if bad >= 0:
                _refuse_capacity("capacities", np.unravel_index(bad, given.shape), given)
            grid_solve(*self._sides, self._work, self._fwork)
        self._excess = excess
        labels = np.empty(len(excess), np.int32)
        energy = base + grid_labels(*self._sides, labels, self._work, self._fwork)
        return labels.reshape(self.shape), float(energy)

    def _checked_capacities(self, capacities: ArrayLike) -> np.ndarray:
        """Of the right shape; the kernel that reads them finds bad numbers."""
        full = (self.neighbours // 2, *self.shape)
        given = numbers(capacities, "capacities")
        if given.shape == full:
            return given  # spares a copy
        try:
            return np.require(np.broadcast_to(given, full), requirements=["C", "W"])
        except ValueError:
            raise ValueError(f"capacities have shape {given.shape}; give {full}, or what broadcasts to that") from None


def graph_cut(
    unary: ArrayLike, edges: ArrayLike, capacities: ArrayLike, backward: ArrayLike | None = None
) -> tuple[np.ndarray, float]:
    """Labels of least energy of a graph, and the energy.

    Formula: ``E(y) = sum_p unary[p, y_p] + sum_{e = (p, q)} (capacities[e] (1 - y_p) y_q + backward[e] y_p
    (1 - y_q))``, that is ``capacities[e] [y_p != y_q]`` when both are equal.

    Complexity: as :meth:`GridCut.solve`. Memory: 40 bytes per node, 52 per edge. Goldberg et al. (2011), Maximum flows
    by incremental breadth-first search.

    Parameters
    ----------
    unary : array (n, 2)
        Costs of labels 0 and 1; inf forbids a label.
    edges : int array (m, 2)
        Pairs of different nodes; a pair may come several times.
    capacities : array, broadcast to (m,)
    backward : array, broadcast to (m,), optional
        What edge (p, q) costs when p has label 1 and q has label 0; ``capacities`` are then for 0 and 1. Without it
        they are for both.

    Returns
    -------
    labels : int32 (n,)
    energy : float

    Examples
    --------
    >>> labels, energy = graph_cut([[0, 3], [1, 1], [2, 0]], edges=[[0, 1], [1, 2]], capacities=[0.5, 1.0])
    >>> labels.tolist(), energy
    ([0, 1, 1], 1.5)
    """
    from maxmargin.inference.min_cut_graph_kernel import graph_labels, graph_load, graph_rows, graph_solve
    from maxmargin.inference.min_cut_kernel import STATE_SIZE, terminals

    unary = _checked_unary(unary)
    if unary.ndim != 2:
        raise ValueError(f"unary has shape {unary.shape}; give two costs for each node, (n, 2)")
    pairs = edge_list(len(unary), edges)
    n, m = len(unary) + 1, 2 * len(pairs) + 1
    if m > _MOST_ARCS:
        raise ValueError(f"{len(pairs)} edges are more than the {_MOST_ARCS // 2} that can be numbered")
    forward = _edge_capacities("capacities", capacities, len(pairs))
    reverse = forward if backward is None else _edge_capacities("backward", backward, len(pairs))
    begin, place = np.zeros(n + 1, np.int32), np.empty(len(pairs), np.int32)
    head, back = np.empty(m, np.int32), np.empty(m, np.int32)
    graph_rows(pairs, begin, head, back, place)
    excess = np.empty(len(unary))
    base, _ = terminals(unary, excess, True)
    if np.isnan(base):
        most = _decisive(np.maximum(forward, reverse), int(np.diff(begin).max()))
        costs, base = _without_huge(unary, most)
        terminals(costs, excess, True)
    work, fwork = np.zeros(STATE_SIZE + 5 * n, np.int32), np.empty(m + n + 1)
    graph_load(excess, forward, reverse, back, place, fwork)
    graph_solve(begin, head, back, work, fwork)
    labels = np.empty(len(unary), np.int32)
    energy = base + graph_labels(labels, head, work, fwork)
    return labels, float(energy)


def submodular_terms(n_nodes: int, edges: ArrayLike, tables: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Costs of pairs of labels as unary costs and capacities, for :func:`graph_cut`.

    Formula: ``table[y_p, y_q] = table[0, 0] + (table[1, 0] - table[0, 0] - c) y_p + (table[0, 1] - table[0, 0] - c) y_q
    + c [y_p != y_q]`` with ``c = (table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1]) / 2``. A cut can minimise it
    when c >= 0, that is when the table is submodular. Kolmogorov, Zabih (2004), What energy functions can be minimized
    via graph cuts?

    Parameters
    ----------
    n_nodes : int
    edges : int array (m, 2)
    tables : array (m, 2, 2)
        Cost of labels (y_p, y_q) for each edge (p, q); finite.

    Returns
    -------
    unary : float64 (n, 2)
        To be added to the other unary costs.
    capacities : float64 (m,)
    """
    indices([n_nodes], 2**31, "n_nodes")
    edges = edge_list(n_nodes, edges)
    tables = numbers(tables, "tables")
    if tables.shape != (len(edges), 2, 2):
        raise ValueError(f"tables have shape {tables.shape}; give a 2 x 2 table for each edge, {(len(edges), 2, 2)}")
    if not np.isfinite(tables).all():
        e, i, j = map(int, np.argwhere(~np.isfinite(tables))[0])
        raise ValueError(f"tables[{e}, {i}, {j}] is {tables[e, i, j]}; costs of pairs must be finite")
    low, high = tables[:, 0, 0] + tables[:, 1, 1], tables[:, 0, 1] + tables[:, 1, 0]
    capacities = 0.5 * (high - low)
    # Rounding of a table that is modular in exact numbers is no offence.
    offence = capacities < -1e-12 * np.abs(tables).max(axis=(1, 2), initial=0.0)
    if offence.any():
        e = int(np.argmax(offence))
        found = f"equal labels cost {low[e]} in sum, different ones {high[e]}"
        needs = "cuts need equal labels to be no dearer than different ones"
        raise ValueError(f"tables[{e}], of edge {tuple(edges[e].tolist())}, is not submodular: {found}; {needs}")
    capacities = np.maximum(capacities, 0.0)
    p, q = edges.T
    zero = np.bincount(p, tables[:, 0, 0], n_nodes)
    one = np.bincount(p, tables[:, 1, 0] - capacities, n_nodes)
    one += np.bincount(q, tables[:, 0, 1] - tables[:, 0, 0] - capacities, n_nodes)
    return np.stack([zero, one], axis=1, dtype=np.float64), capacities  # counts of nothing are integers


def _decisive(capacities: np.ndarray, degree: int) -> float:
    """A difference of costs that all capacities of a node together cannot outweigh: it fixes the label."""
    return 1.0 + 2.0 * degree * float(capacities[np.isfinite(capacities)].max(initial=0.0))


def _without_huge(unary: np.ndarray, decisive: float) -> tuple[np.ndarray, float]:
    """Costs with the same differences, but none larger than decides, and what is missing from them.

    Larger differences, infinite or not, would only drown the others in rounding.
    """
    bad = np.isnan(unary) | (unary == -np.inf)
    if bad.any():
        where = first_place(bad)
        raise ValueError(f"unary{list(where)} is {unary[where]}; costs must be numbers, or inf to forbid a label")
    both = np.isinf(unary).all(axis=-1)
    if both.any():
        raise ValueError(f"unary{list(first_place(both))} forbids both labels; leave at least one of them finite")
    zero, one = unary.reshape(-1, 2).T
    costs = np.zeros((len(zero), 2))
    with np.errstate(over="ignore"):  # found below
        costs[:, 1] = np.clip(one - zero, -decisive, decisive)
        base = float(np.where(costs[:, 1] == -decisive, one + decisive, zero).sum())
    if not (np.isfinite(costs).all() and np.isfinite(base)):
        raise ValueError("the costs in unary are so large that their sums overflow; scale them below 1e300")
    return costs, base


def _edge_capacities(name: str, capacities: ArrayLike, n_edges: int) -> np.ndarray:
    given = numbers(capacities, name)
    if given.shape not in ((), (1,), (n_edges,)):
        raise ValueError(f"{name} have shape {given.shape}; give one for each of the {n_edges} edges")
    full = np.array(np.broadcast_to(given, (n_edges,)))
    bad = ~((full >= 0.0) & (full < np.inf))
    if bad.any():
        _refuse_capacity(name, (int(np.argmax(bad)),), full)
    return full


def _checked_unary(unary: ArrayLike) -> np.ndarray:
    unary = numbers(unary, "unary")
    if unary.ndim < 2 or unary.shape[-1] != 2:
        raise ValueError(f"unary has shape {unary.shape}; the last axis must hold the costs of labels 0 and 1")
    return unary


def _refuse_capacity(name: str, where: tuple[np.intp, ...] | tuple[int, ...], values: np.ndarray) -> NoReturn:
    where = tuple(map(int, where))
    raise ValueError(f"{name}{list(where)} is {values[where]}; capacities must be finite and not negative")
