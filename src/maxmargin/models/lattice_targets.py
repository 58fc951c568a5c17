"""What is good in a lattice: arcs that cost something, and the path that is to win.

The cost of a path is the sum of the costs of its arcs, less that of the good path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from maxmargin.datasets.lattice import Lattice
from maxmargin.door import indices, numbers, refuse_not_finite
from maxmargin.inference.paths import best_path

__all__ = ["Target", "as_target", "check_path", "cost_of"]


class Target(NamedTuple):
    """Costs of the arcs of a lattice, float64 (E,), and the arcs of its good path, int32.

    A path may cost less than the good one: it may then outscore it by that much.
    """

    costs: np.ndarray
    path: np.ndarray


def as_target(given: object, lattice: Lattice, example: int) -> Target:
    """The target of an example from what a user gives; errors name the example.

    ==========================  =====================================================================================
    array or list of E floats   costs of the arcs; the cheapest path is the good one
    set of arcs                 good arcs; every other one costs 1, and a path of good arcs must exist
    list or array of arcs       the good path; every other arc costs 1
    list of such paths          good paths, the first of which is to win; arcs on none of them cost 1
    :class:`Target`             costs, and the good path
    ==========================  =====================================================================================
    """
    found = _read(given, f"the target of example {example}")
    if found.costs is not None:
        costs = _checked_costs(found.costs, lattice, example)
        return Target(costs, check_path(found.paths[0], lattice, example)) if found.paths else _cheapest(costs, lattice)
    if found.paths:
        paths = [check_path(path, lattice, example) for path in found.paths]
        return Target(_others_cost(np.concatenate(paths), lattice), paths[0])
    return _from_arcs(found.arcs, lattice, example)


def cost_of(given: object, path: Sequence[int]) -> float:
    """The cost of a path by its arcs where a target is given as for :func:`as_target`, without the lattice.

    Only there must the good path be known where there are costs: give a :class:`Target`.
    """
    found = _read(given, "a target")
    if found.costs is None:
        good = set(found.arcs).union(*(np.ravel(np.array(one)).tolist() for one in found.paths))
        return float(len(set(path) - good))
    if not found.paths:
        what = "costs of arcs alone do not say which path is the good one"
        raise ValueError(f"{what}; give Target(costs, path) from maxmargin.models.lattice_targets.")
    costs = numbers(found.costs, "the costs of a target")
    return float(costs[list(path)].sum() - costs[np.array(found.paths[0])].sum())


class _Given(NamedTuple):
    """What a target says: costs of arcs or None, good paths, and good arcs."""

    costs: Sequence[float] | np.ndarray | None = None
    paths: tuple[object, ...] = ()
    arcs: AbstractSet[object] = frozenset()


def _read(given: object, what: str) -> _Given:
    """Which kind of target is given; its numbers are not checked."""
    if isinstance(given, Target):
        return _Given(given.costs, (given.path,))
    if isinstance(given, AbstractSet):
        return _Given(arcs=given)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iuf":
        return _Given(given) if given.dtype.kind == "f" else _Given(paths=(given,))
    if isinstance(given, (list, tuple)) and len(given):
        if all(_are_arcs(part) for part in given):
            return _Given(paths=tuple(given))
        if _are_arcs(given):
            return _Given(paths=(given,))
        if all(isinstance(cost, (int, float, np.integer, np.floating)) for cost in given):
            return _Given(given)
    kinds = "costs of the arcs (floats), a set of good arcs, a path, or a list of paths"
    raise TypeError(f"{what} is {given!r:.60}; give {kinds}.")


def _are_arcs(given: object) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim == 1 and given.dtype.kind in "iu"
    return isinstance(given, (list, tuple)) and all(isinstance(arc, (int, np.integer)) for arc in given)


def check_path(arcs: object, lattice: Lattice, example: int) -> np.ndarray:
    """The arcs of a path from the start to the end, int32, or a ValueError that names the example."""
    listed = np.array(list(arcs) if isinstance(arcs, Iterable) else [arcs])
    given = indices(listed if listed.size else np.empty(0, int), lattice.n_arcs, _name("path", example))
    path = given.astype(np.int32).reshape(-1)
    nodes = [0, *lattice.heads[path].tolist()]
    if nodes[-1] != lattice.n_nodes - 1 or nodes[:-1] != lattice.tails[path].tolist() or not len(path):
        shown = ", ".join(map(str, path[:12].tolist())) + ", ..." * (len(path) > 12)
        what = f"arcs {shown or 'none'} of example {example} are no path from node 0 to node {lattice.n_nodes - 1}"
        raise ValueError(f"{what}; give its arcs in order. Costs of arcs are given as floats.")
    return path


def _name(what: str, example: int) -> str:
    return f"the {what} of example {example}"


def _checked_costs(costs: object, lattice: Lattice, example: int) -> np.ndarray:
    found = numbers(costs if isinstance(costs, Sequence | np.ndarray) else [], _name("costs", example))
    if found.shape != (lattice.n_arcs,):
        what = f"the costs of example {example} have shape {found.shape}, its lattice has {lattice.n_arcs} arcs"
        raise ValueError(f"{what}; give one for each.")
    refuse_not_finite(found, f"the costs of example {example} are NaN or infinite")
    return found


def _others_cost(good: np.ndarray, lattice: Lattice) -> np.ndarray:
    costs = np.ones(lattice.n_arcs)
    costs[good] = 0.0
    return costs


def _cheapest(costs: np.ndarray, lattice: Lattice) -> Target:
    return Target(costs, best_path(lattice.tails, lattice.heads, -costs).arcs)


def _from_arcs(arcs: AbstractSet[object], lattice: Lattice, example: int) -> Target:
    given = sorted(arcs, key=str)
    good = indices(np.array(given) if given else np.empty(0, int), lattice.n_arcs, _name("good arcs", example))
    target = _cheapest(_others_cost(good, lattice), lattice)
    if target.costs[target.path].any():
        raise ValueError(f"example {example} has no good path: none has good arcs only; mark one from start to end.")
    return target
