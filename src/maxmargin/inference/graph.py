"""The best labels of a graph whose score adds up over nodes and edges, with a bound of what any labels could score.

    score(y) = sum_p unary[p, y_p] + sum_{e = (p, q)} pairwise[e, y_p, y_q] + sum_f factor_f[y_scope(f)]

Exact on forests, for two labels where edges favour equal ones (a minimum cut), and where the treewidth is small; every
other answer comes with an upper bound, so that its distance from the best is known. :func:`graph_argmax` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import LARGEST_FEATURE, LARGEST_WEIGHT, edge_list, first_place, indices, numbers
from maxmargin.inference.junction_tree import MAX_CELLS as JUNCTION_TREE_CELLS
from maxmargin.inference.junction_tree import JunctionTree, TooWide

__all__ = ["GraphAnswer", "GraphProblem", "Structure", "graph_argmax"]

Factors = Sequence[tuple[Sequence[int], ArrayLike]]  # (scope, table)
METHODS = (
    "auto", "tree", "cut", "junction_tree", "roof_duality", "expansion", "trws", "branch_and_bound", "relaxation",
    "integer",
)  # fmt: skip
MAX_CELLS = 2**18
PASSES = 200
BRANCHES = 100
MOST_BRANCHES = 10**6  # each takes 56 bytes before the first is looked at
SMALL = 20_000  # "auto" solves linear relaxations up to this many variables
LARGEST_SCORE = LARGEST_FEATURE * LARGEST_WEIGHT  # sums of these stay finite
CLOSED = 1e-9  # relative: a gap below this is rounding


class GraphAnswer(NamedTuple):
    """Labels with a certificate: no labels score more than ``bound``.

    Attributes
    ----------
    labels : int32 array (n,)
    value : float
        Their score.
    bound : float
        At least the score of any labels.
    method : str
        The method that found them; "a+b" when the bound is from b.
    """

    labels: np.ndarray
    value: float
    bound: float
    method: str

    @property
    def exact(self) -> bool:
        """Whether the bound proves that no labels are better."""
        return self.bound - self.value <= CLOSED * max(1.0, abs(self.value), abs(self.bound))


@dataclass(frozen=True)
class Structure:
    """Nodes and edges as the kernels read them, int32; see :mod:`maxmargin.inference.graph_kernel`."""

    n_nodes: int
    edges: np.ndarray  # (m, 2)
    begin: np.ndarray  # (n + 1,)
    ends: np.ndarray  # (2 m,)
    order: np.ndarray  # (n,)
    up: np.ndarray  # (n,)
    forest: bool

    @staticmethod
    def of(n_nodes: int, edges: ArrayLike) -> Structure:
        """From pairs of different nodes; a pair may occur several times."""
        from maxmargin.inference.graph_kernel import spanning_forest

        pairs = edge_list(n_nodes, edges)
        begin, ends = np.zeros(n_nodes + 1, np.int32), np.empty(2 * len(pairs), np.int32)
        order, up = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
        forest = spanning_forest(pairs.reshape(-1), begin, ends, order, up)
        return Structure(n_nodes, pairs, begin, ends, order, up, bool(forest))


@dataclass(frozen=True)
class GraphProblem:
    """Scores of one graph."""

    structure: Structure
    unary: np.ndarray  # float64 (n, K)
    pairwise: np.ndarray  # float64 (m, K, K)
    factors: Sequence[tuple[tuple[int, ...], np.ndarray]] = ()  # scopes of any size and their tables

    @staticmethod
    def of(
        unary: ArrayLike, edges: ArrayLike, pairwise: ArrayLike, weights: ArrayLike | None = None, factors: Factors = ()
    ) -> GraphProblem:
        """Check the scores; see :func:`graph_argmax`."""
        scores = numbers(unary, "unary")
        if scores.ndim != 2 or scores.shape[1] == 0:
            raise ValueError(f"unary has shape {scores.shape}; give a row of scores for each node, (n, K).")
        n, K = scores.shape
        structure = Structure.of(n, edges)
        m = len(structure.edges)
        tables = numbers(pairwise, "pairwise")
        if tables.shape not in ((K, K), (m, K, K)):
            raise ValueError(f"pairwise has shape {tables.shape}; give one table {(K, K)} or one per edge, {(m, K, K)}")
        if weights is not None:
            scale = numbers(weights, "weights")
            if scale.shape != (m,):
                raise ValueError(f"weights have shape {scale.shape}; give one for each of the {m} edges.")
            tables = scale[:, None, None] * tables
        tables = np.require(np.broadcast_to(tables, (m, K, K)), requirements=["C", "W"])
        for name, array in (("unary", scores), ("pairwise", tables)):
            bad = ~(np.abs(array) <= LARGEST_SCORE)
            if bad.any():
                where = first_place(bad)
                found = f"{name}{list(where)} is {array[where]}"
                raise ValueError(f"{found}; scores must be finite, a large negative number (to -1e250) forbids.")
        return GraphProblem(structure, scores, tables, [_factor(f, pair, n, K) for f, pair in enumerate(factors)])

    def score(self, labels: ArrayLike) -> float:
        """Score of labels (n,)."""
        y = np.asarray(labels, np.int64)
        first, second = self.structure.edges.T
        total = self.unary[np.arange(len(y)), y].sum()
        total += self.pairwise[np.arange(len(first)), y[first], y[second]].sum()
        return float(total + sum(table[tuple(y[list(scope)])] for scope, table in self.factors))

    def answer(self, labels: np.ndarray, bound: float, method: str) -> GraphAnswer:
        """Labels with their score; a bound below it is due to rounding."""
        value = self.score(labels)
        return GraphAnswer(labels, value, max(float(bound), value), method)

    @property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Unary scores, and pairwise ones followed by the same with nodes exchanged, as the kernels read them."""
        turned = self.pairwise.transpose(0, 2, 1)
        return self.unary.reshape(-1), np.concatenate([self.pairwise.ravel(), turned.ravel()])

    @property
    def arrays(self) -> tuple:
        """What most kernels take first: n, K, edges, begin, ends, unary, pair."""
        s = self.structure
        return *self.unary.shape, s.edges.reshape(-1), s.begin, s.ends, *self.scores


def _factor(f: int, pair: tuple[Sequence[int], ArrayLike], n: int, K: int) -> tuple[tuple[int, ...], np.ndarray]:
    scope = tuple(indices(pair[0], n, f"the scope of factor {f}").ravel().tolist())
    table = numbers(pair[1], f"the table of factor {f}")
    if len(set(scope)) != len(scope) or any(not 0 <= p < n for p in scope):
        raise ValueError(f"factor {f} has the scope {scope}; give different nodes between 0 and {n - 1}.")
    if table.shape != (K,) * len(scope):
        raise ValueError(f"factor {f} has a table of shape {table.shape}; its scope {scope} needs {(K,) * len(scope)}.")
    if not (np.abs(table) <= LARGEST_SCORE).all():
        raise ValueError(f"factor {f} has scores that are not finite; a large negative number (to -1e250) forbids.")
    return scope, table


def graph_argmax(
    unary: ArrayLike,
    edges: ArrayLike,
    pairwise: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    factors: Factors = (),
    method: str = "auto",
    max_cells: int = MAX_CELLS,
    message_passes: int = PASSES,
    max_branches: int = BRANCHES,
) -> GraphAnswer:
    """Labels of a graph, their score, and an upper bound of all scores: a :class:`GraphAnswer`.

    Formula: maximises ``sum_p unary[p, y_p] + sum_{e = (p, q)} weights[e] pairwise[e, y_p, y_q] + sum_f
    table_f[y_scope(f)]`` over labels y in {0, ..., K - 1}^n.

    Parameters
    ----------
    unary : float array (n, K)
        Score of each label at each node; finite.
    edges : int array (m, 2)
        Pairs of different nodes.
    pairwise : float array (m, K, K) or (K, K)
        ``pairwise[e, i, j]`` for label i at the first and j at the second node of edge e; one table serves all edges.
    weights : float array (m,), optional
        Factors of the tables.
    factors : list of (scope, table), optional
        Further terms over any number of nodes; only the junction tree can handle them.
    method : str
        "tree", "cut" and "junction_tree" are exact and refuse other graphs. "roof_duality" (two labels),
        "expansion" (metric tables), "trws" (any) and "relaxation" (any, small) give labels and a bound;
        "branch_and_bound" continues from "trws" with parts of the labellings until both meet or ``max_branches`` run
        out, "integer" until they meet. "auto": exact where that is cheap, otherwise the best labels and the best bound
        of those that apply.
    max_cells : int
        Maximum number of cells in the tables of a junction tree.
    message_passes : int
        Maximum number of passes of tree-reweighted messages.
    max_branches : int
        Maximum number of parts in a branch and bound.

    Returns
    -------
    GraphAnswer
        ``labels``, ``value``, ``bound``, ``method``, and ``exact``: whether the bound proves that no labels are better.

    Examples
    --------
    >>> answer = graph_argmax([[1.0, 0.0], [0.0, 0.4], [0.0, 2.0]], [[0, 1], [1, 2], [2, 0]], 0.5 * np.eye(2))
    >>> answer.labels.tolist(), answer.value, answer.exact
    ([0, 1, 1], 3.9, True)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    check_limits(max_cells, message_passes, max_branches)
    problem = GraphProblem.of(unary, edges, pairwise, weights, factors)
    return solve(problem, method, max_cells, message_passes, max_branches)


def check_limits(max_cells: object, message_passes: object, max_branches: object) -> None:
    """Refuse limits that are not whole numbers in their range."""
    limits = (
        ("max_cells", max_cells, 0, 2**31 - 1),
        ("message_passes", message_passes, 1, 2**31 - 1),
        ("max_branches", max_branches, 0, MOST_BRANCHES),
    )
    for name, number, least, most in limits:
        if isinstance(number, bool) or not (isinstance(number, (int, np.integer)) and least <= number <= most):
            limit = "2^31 - 1" if most == 2**31 - 1 else most
            raise ValueError(f"{name} must be a whole number from {least} to {limit}, got {number!r}.")


def solve(
    problem: GraphProblem,
    method: str = "auto",
    max_cells: int = MAX_CELLS,
    passes: int = PASSES,
    branches: int = BRANCHES,
) -> GraphAnswer:
    """:func:`graph_argmax` for checked scores."""
    from maxmargin.inference.expansion import expansion, is_metric
    from maxmargin.inference.relaxation import relaxation
    from maxmargin.inference.roof_duality import roof_duality

    if problem.factors and method not in ("auto", "junction_tree"):
        raise ValueError(f'method {method!r} handles pairs of nodes; larger factors need "junction_tree".')
    if len(problem.unary) == 0:
        return problem.answer(np.empty(0, np.int32), 0.0, "tree")
    ways: dict[str, Callable[[], GraphAnswer]] = {
        "tree": lambda: tree(problem),
        "cut": lambda: cut(problem),
        "junction_tree": lambda: junction_tree(problem, max_cells),
        "roof_duality": lambda: roof_duality(problem),
        "expansion": lambda: expansion(problem, passes=passes),
        "trws": lambda: trws(problem, passes),
        "branch_and_bound": lambda: branch_and_bound(problem, passes, branches),
        "relaxation": lambda: relaxation(problem),
        "integer": lambda: relaxation(problem, integer=True),
    }
    if method != "auto":
        return ways[method]()
    n, K = problem.unary.shape
    if problem.factors:
        return junction_tree(problem, max_cells)
    if problem.structure.forest:
        return tree(problem)
    if K == 2 and is_submodular(problem):
        return cut(problem)
    try:
        return junction_tree(problem, max_cells)
    except TooWide:
        pass
    found = roof_duality(problem) if K == 2 else trws(problem, passes)
    if K > 2 and not found.exact and is_metric(problem):
        found = _better(found, expansion(problem, found.labels, bound=found.bound))
    if not found.exact:
        found = _better(found, branch_and_bound(problem, passes, branches))
    if not found.exact and n * K + len(problem.pairwise) * K * K <= SMALL:
        found = _better(found, relaxation(problem))
    return found


def _better(a: GraphAnswer, b: GraphAnswer) -> GraphAnswer:
    """The better labels with the better bound."""
    best, least = (a if a.value >= b.value else b), (a if a.bound <= b.bound else b)
    first, last = best.method.split("+")[0], least.method.split("+")[-1]
    method = first if first == last else f"{first}+{last}"
    return GraphAnswer(best.labels, best.value, max(least.bound, best.value), method)


def tree(problem: GraphProblem) -> GraphAnswer:
    """Max-product on a forest; exact. O(n K^2)."""
    from maxmargin.inference.graph_kernel import tree_argmax

    s, (n, K) = problem.structure, problem.unary.shape
    if not s.forest:
        raise ValueError('the edges close a cycle; method="tree" is for forests, use "auto".')
    labels = np.empty(n, np.int32)
    value = tree_argmax(n, K, s.edges.reshape(-1), s.order, s.up, *problem.scores, labels, np.empty(n * K))
    return problem.answer(labels, value, "tree")


def is_submodular(problem: GraphProblem) -> bool:
    """Whether there are two labels and all edges favour equal ones, up to rounding."""
    from maxmargin.inference import graph_kernel as gk

    m = len(problem.pairwise)
    return problem.unary.shape[1] == 2 and bool(gk.is_submodular(m, problem.pairwise.reshape(-1), np.empty(m)))


def cut(problem: GraphProblem) -> GraphAnswer:
    """A minimum cut; exact up to rounding, for two labels and edges that favour equal ones."""
    from maxmargin.inference.min_cut import graph_cut, submodular_terms

    if problem.unary.shape[1] != 2:
        raise ValueError(f'there are {problem.unary.shape[1]} labels; method="cut" is for two, use "auto".')
    n, edges = len(problem.unary), problem.structure.edges
    unary, capacities = submodular_terms(n, edges, -problem.pairwise)
    labels, energy = graph_cut(unary - problem.unary, edges, capacities)
    return problem.answer(labels, -energy, "cut")


def junction_tree(problem: GraphProblem, max_cells: int = MAX_CELLS) -> GraphAnswer:
    """Max-product on a tree of cliques; exact, for small treewidth and any factors. Raises TooWide otherwise."""
    cliques, tables = _cliques(problem, max_cells)
    value, labels = cliques.argmax(tables)
    return problem.answer(labels, value, "junction_tree")


def marginals(problem: GraphProblem) -> np.ndarray:
    """Probabilities (n, K) of the labels under the distribution proportional to exp(score); may raise TooWide."""
    cliques, tables = _cliques(problem)
    return np.array(cliques.marginals(tables)[1]).reshape(problem.unary.shape)


def k_best(problem: GraphProblem, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best labellings (m, n) and their scores (m,), best first; m < k when there are no more. May raise TooWide.

    All labellings but the best are split by the first node at which they differ from it; the best of each part is an
    argmax with some nodes fixed and one label forbidden, and so on with the best of these. At most k n argmaxes. Lawler
    (1972), A procedure for computing the K best solutions to discrete optimization problems. Nilsson (1998), An
    efficient algorithm for finding the M most probable configurations in probabilistic expert systems.
    """
    cliques, tables = _cliques(problem)
    n, K = problem.unary.shape
    parts: list[tuple[float, tuple[int, ...], int, np.ndarray]] = []  # its best, and the first node that may differ

    def add(allowed: np.ndarray, first: int) -> None:
        restricted = tables.copy()
        restricted[: n * K][~allowed.reshape(-1)] = -np.inf
        value, labels = cliques.argmax(restricted)
        if value > -np.inf:
            heappush(parts, (-value, tuple(labels.tolist()), first, allowed))

    add(np.ones((n, K), bool), 0)
    found: list[tuple[int, ...]] = []
    while parts and len(found) < k:
        _, labels, first, allowed = heappop(parts)
        found.append(labels)
        for p in range(first, n):
            without = allowed.copy()
            without[p, labels[p]] = False
            add(without, p)
            allowed[p] = False
            allowed[p, labels[p]] = True
    return np.array(found, np.int64).reshape(len(found), n), np.array([problem.score(labels) for labels in found])


def _cliques(problem: GraphProblem, max_cells: int = JUNCTION_TREE_CELLS) -> tuple[JunctionTree, np.ndarray]:
    """The junction tree of a graph and its tables, those of the nodes first; raises TooWide."""
    n, K = problem.unary.shape
    scopes = [(p,) for p in range(n)] + [tuple(e) for e in problem.structure.edges.tolist()]
    scopes += [scope for scope, _ in problem.factors]
    flat = [problem.unary.ravel(), problem.pairwise.ravel(), *(table.ravel() for _, table in problem.factors)]
    return JunctionTree.build(np.full(n, K), scopes, max_cells), np.concatenate(flat)


def trws(problem: GraphProblem, passes: int = PASSES) -> GraphAnswer:
    """Labels, and the bound that messages prove; see :func:`maxmargin.inference.graph_kernel.trws`."""
    from maxmargin.inference import graph_kernel as gk

    n, K = problem.unary.shape
    labels, work = np.zeros(2 * n, np.int32), np.empty((2 * len(problem.pairwise) + 2) * K)
    _, bound = gk.trws(*problem.arrays, passes, -np.inf, True, labels, work)
    return problem.answer(labels[:n].copy(), bound, "trws")


def branch_and_bound(problem: GraphProblem, passes: int = PASSES, branches: int = BRANCHES) -> GraphAnswer:
    """Messages on ever smaller parts; see :func:`maxmargin.inference.branch_kernel.branch_and_bound`."""
    from maxmargin.inference import branch_kernel as bk

    n, K = problem.unary.shape
    labels, work = np.zeros(3 * n, np.int32), np.empty(bk.scratch_size(n, len(problem.pairwise), K, branches))
    _, bound, _ = bk.branch_and_bound(*problem.arrays, passes, branches, -np.inf, labels, work)
    return problem.answer(labels[:n].copy(), bound, "branch_and_bound")


def improved(problem: GraphProblem, labels: np.ndarray) -> np.ndarray:
    """Change single labels while that raises the score."""
    from maxmargin.inference.graph_kernel import improve

    labels = np.array(labels, np.int32)
    improve(*problem.arrays, labels, np.empty(problem.unary.shape[1]))
    return labels
