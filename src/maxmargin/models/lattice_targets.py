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

__all__ = ["Target", "as_target", "check_path"]


class Target(NamedTuple):
    """Costs of the arcs of a lattice, float64 (E,), and the arcs of its good path, int32.

    A path may cost less than the good one: it may then outscore it by that much.
    """

    costs: np.ndarray
    path: np.ndarray


def as_target(given: object, lattice: Lattice, example: int) -> Target:
    """The target of an example from what a user gives; errors name the example.

    ==========================  =====================================================================================
    array of E floats           costs of the arcs; the cheapest path is the good one
    set of arcs                 good arcs; every other one costs 1, and a path of good arcs must exist
    list of arcs                the good path; every other arc costs 1
    list of lists of arcs       good paths, the first of which is to win; arcs on none of them cost 1
    :class:`Target`             costs, and the good path
    ==========================  =====================================================================================
    """
    if isinstance(given, Target):
        costs, path = given
        return Target(_checked_costs(costs, lattice, example), check_path(path, lattice, example))
    if isinstance(given, AbstractSet):
        return _from_arcs(given, lattice, example)
    if isinstance(given, (list, tuple)) and len(given) and all(isinstance(part, (list, tuple)) for part in given):
        paths = [check_path(part, lattice, example) for part in given]
        return Target(_others_cost(np.concatenate(paths), lattice), paths[0])
    if isinstance(given, (list, tuple, np.ndarray)):
        whole = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
        if whole or (len(given) and all(isinstance(arc, (int, np.integer)) for arc in given)):
            path = check_path(given, lattice, example)
            return Target(_others_cost(path, lattice), path)
        return _cheapest(_checked_costs(given, lattice, example), lattice)
    what = "costs of the arcs (floats), a set of good arcs, or a path"
    raise TypeError(f"the target of example {example} is {given!r:.60}; give {what}.")


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
